"""The parameters of the RED recipe, with the paper's values as defaults."""

from dataclasses import dataclass

# The footnote of section 2.4; "median": the median of the adjusted dimension, as the text says.
FOOTNOTE_ALPHAS = {"re": 1.0, "be": 2.0, "ae": 18.0}
FOOTNOTE_WEIGHTS = {"re": 3.0, "ae": 3.0, "ee": 2.0, "be": 1.0}
DIMENSIONS = ("re", "be", "ae", "ee")  # reply, behavioral, attentional, emotional


@dataclass(frozen=True)
class Settings:
    """Choices of the recipe; the defaults are the paper's where it states them.

    Attributes:
        alpha: "footnote" (1, 2, 18 for RE, BE, AE) or "median" of each adjusted dimension.
        weights: RE, AE, EE, BE; 3, 3, 2, 1 in the footnote. EE with weight 0 needs no classifier.
        kappa: standard deviations from the mean beyond which a post is labelled (paper: 1).
        cap: most posts of one class in the sample (paper: 40,162).
        seed: of the draw; the order of drawing is md5 of seed and comment id, on any engine.
        ee_aggregate: "mean" or "max" of the positive emotion over the replies (the paper does not
            say which).
        toxicity_above: posts whose own or whose parent's toxicity exceeds it are left out; None
            switches the filter off (the paper gives no threshold; Detoxify's habit is 0.5).
        edge_days: posts of the last days of the data are left out, since their replies may be
            missing (the paper does not say); so are posts whose time is not known. 0 keeps both.
    """

    alpha: str = "footnote"
    weights: tuple[tuple[str, float], ...] = tuple(FOOTNOTE_WEIGHTS.items())
    kappa: float = 1.0
    cap: int = 40_162
    seed: int = 0
    ee_aggregate: str = "mean"
    toxicity_above: float | None = None
    edge_days: float = 1.0

    def __post_init__(self) -> None:
        if self.alpha not in ("footnote", "median"):
            raise ValueError(f"alpha {self.alpha!r}: choose 'footnote' or 'median'")
        if self.ee_aggregate not in ("mean", "max"):
            raise ValueError(f"ee_aggregate {self.ee_aggregate!r}: choose 'mean' or 'max'")
        if set(dict(self.weights)) != set(DIMENSIONS):
            raise ValueError(f"weights need {', '.join(DIMENSIONS)}; got {dict(self.weights)}")
        if min(dict(self.weights).values()) < 0 or sum(dict(self.weights).values()) == 0:
            raise ValueError(f"weights must be 0 or more, not all 0; got {dict(self.weights)}")
        if self.kappa <= 0 or self.cap < 1:
            raise ValueError("kappa must be above 0, and cap at least 1")

    def sql(self) -> str:
        """The one row of the relation `settings`, as a query for any engine.

        >>> Settings().sql().split(", ")[0]
        'select cast(1.0 as double) as alpha_re'
        """
        alphas = FOOTNOTE_ALPHAS if self.alpha == "footnote" else dict.fromkeys(FOOTNOTE_ALPHAS)
        numbers = {f"alpha_{name}": value for name, value in alphas.items()}
        numbers |= {f"w_{name}": value for name, value in self.weights}
        numbers |= {"kappa": self.kappa, "toxicity_above": self.toxicity_above}
        columns = [
            f"cast({'null' if value is None else float(value)} as double) as {name}"
            for name, value in numbers.items()
        ]
        columns += [
            f"{self.cap} as cap",
            f"{self.seed} as seed",
            f"'{self.ee_aggregate}' as ee_aggregate",
        ]
        return "select " + ", ".join(columns)
