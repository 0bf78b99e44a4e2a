"""Robustness: does a metric put a reply above the same reply made worse in one known way?

After Zhang et al. (2024), who asked it of language models as judges.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from statsmodels.stats.proportion import proportion_confint

from lib.meta_evaluation.evaluation_sets import QUICK
from lib.meta_evaluation.figures import display_name
from lib.metrics import compute, get_metric

KIND = ["perturbation", "dimension", "level"]
#: They ask for a reference. There is none, so the utterance before takes its place.
TO_CONTEXT = [name for name in QUICK if "reference" in get_metric(name).needs]


def text_sides(pairs: pd.DataFrame) -> pd.DataFrame:
    """List the turns of both sides of pairs: one of a reply, all of a dialog.

    Returns:
        pair (its row), side, context, response, and item: equal turns have one number.

    >>> pairs = pd.DataFrame({"level": ["dialog"], "context": [[]],
    ...                       "original": [["Hi", "Bye"]], "perturbed": [["Bye"]]})
    >>> text_sides(pairs)[["side", "context", "response"]].values.tolist()[1:]
    [['original', ['Hi'], 'Bye'], ['perturbed', [], 'Bye']]
    """
    rows = []
    for side in ("original", "perturbed"):
        for pair, whole in enumerate(pairs[["level", "context", side]].to_numpy()):
            rows += [(pair, side, *turn) for turn in _turns(*whole)]
    sides = pd.DataFrame(rows, columns=["pair", "side", "context", "response"])
    texts = [(*context, text) for context, text in sides[["context", "response"]].to_numpy()]
    return sides.assign(item=pd.factorize(pd.Index(texts, tupleize_cols=False))[0])


def _turns(level: str, context: list[str], said: str | list[str]) -> list[tuple[list[str], str]]:
    if level == "turn":
        return [(context, said)]
    return [(said[:place], said[place]) for place in range(len(said))]


def score_sides(sides: pd.DataFrame, encoder: bool = True) -> pd.DataFrame:
    """Score every turn of `both_sides`, equal turns once.

    Args:
        sides: the result of `both_sides`.
        encoder: also score the similarity with the utterance before, and EnDex (minutes).

    Returns:
        One column per metric, one row per item. Overlap metrics end in "_to_context".
    """
    items = sides.drop_duplicates("item").set_index("item")
    items["reference"] = [said[-1:] for said in items["context"]]
    plain = [name for name in (*QUICK[:3], "random", *QUICK[3:]) if name not in TO_CONTEXT]
    plain += ["endex", "context_similarity"] if encoder else []
    near = compute(items, TO_CONTEXT, log=lambda line: None)
    scores = compute(items, plain, log=lambda line: None)
    missing = {f"{name}_to_context": found for name, found in near.attrs["missing"].items()}
    missing |= scores.attrs["missing"]
    scores = scores.join(near.add_suffix("_to_context"))
    scores.attrs = {"missing": missing}
    return scores


def win_shares(pairs: pd.DataFrame, sides: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """How often each metric puts the original above the perturbed text.

    A dialog's score is the mean over its turns that have one. The interval is Wilson's, with the
    number of different originals (contexts or whole dialogs) for n: several perturbations of one
    original are not independent.

    Args:
        pairs: columns of `data.robustness_pairs`.
        sides: `both_sides(pairs)`.
        scores: a column per metric, a row per item of `sides`.

    Returns:
        A row per perturbation and metric: share of the pairs in which the original scores higher,
        ties (equal to nine decimals) counted half; low, high; tied, the share of ties; n pairs of
        so many originals; missing, the pairs in which a side has no score, and the reasons that
        the metric gave. At .5 a metric is blind, below it prefers the damage.

    >>> pairs = pd.DataFrame({"perturbation": "dull", "dimension": "x", "level": "turn",
    ...     "context": [["a"], ["b"]], "original": ["so long", "ok"], "perturbed": ["no", "no"]})
    >>> sides = text_sides(pairs)
    >>> words = sides.drop_duplicates("item").set_index("item")[["response"]].map(len)
    >>> win_shares(pairs, sides, words)[["share", "tied", "n"]].values.tolist()
    [[0.75, 0.5, 2.0]]
    """
    turns = scores.loc[sides["item"]].groupby([sides["side"].to_numpy(), sides["pair"].to_numpy()])
    means = turns.mean()
    gap = (means.loc["original"] - means.loc["perturbed"]).round(9)
    wins = ((np.sign(gap) + 1) / 2).reindex(range(len(pairs))).set_axis(pairs.index)
    source = pairs["context"].where(pairs["level"] == "turn", pairs["original"]).map(tuple)
    wins = wins.join(pairs[KIND]).assign(source=source)
    wins = wins.melt([*KIND, "source"], var_name="metric", value_name="win")
    there = wins.assign(tie=wins["win"].eq(0.5), source=wins["source"].where(wins["win"].notna()))
    table = there.groupby(["metric", *KIND], sort=False, as_index=False).agg(
        share=("win", "mean"), tied=("tie", "sum"), n=("win", "count"),
        originals=("source", "nunique"), missing=("win", "size"),
    )  # fmt: skip
    table["tied"], table["missing"] = table["tied"] / table["n"], table["missing"] - table["n"]
    n = table["originals"].where(table["n"] > 0)
    table["low"], table["high"] = proportion_confint(table["share"] * n, n, method="wilson")
    told = scores.attrs.get("missing", {}).items()
    causes = {name: "; ".join(found).replace("reference", "context") for name, found in told}
    return table.assign(reason=table["metric"].map(causes).where(table["missing"] > 0, ""))


def plot_robustness(table: pd.DataFrame, title: str) -> Figure:
    """Metrics x perturbations: the share in percent; blue sees the damage, red prefers it.

    White: the interval holds .5, so the metric is not known to see anything.

    >>> frame = pd.DataFrame({"perturbation": ["dull"], "level": "turn", "metric": "length",
    ...                       "share": 0.9, "low": 0.8, "high": 0.95})
    >>> len(plot_robustness(frame, "one cell").axes)
    2
    """
    known = table.assign(seen=table["low"].gt(0.5) | table["high"].lt(0.5))
    kinds, metrics = known["perturbation"].unique(), known["metric"].unique()
    wide = known.pivot(index="metric", columns="perturbation")
    shown = (wide[name].loc[metrics, kinds] for name in ("share", "seen"))
    share, seen = (part.rename(index=display_name, columns=display_name) for part in shown)
    figure, axes = plt.subplots(figsize=(10, 1.9 + 0.33 * len(metrics)))
    look = {"cmap": "RdBu", "annot_kws": {"size": 9}, "cbar_kws": {"label": "% original higher"}}
    colours = 100 * share.where(seen | share.isna(), 0.5)
    sns.heatmap(colours, vmin=0, vmax=100, annot=100 * share, fmt=".0f", ax=axes, **look)
    axes.axvline(known[known["level"] == "turn"]["perturbation"].nunique(), color="black")
    axes.set(title=title, xlabel="", ylabel="")
    axes.set_xticks(axes.get_xticks(), map(display_name, kinds), rotation=40, ha="right")
    return figure
