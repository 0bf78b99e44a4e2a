"""Ridge regression from an author's language to a trait: train, validate, keep, load."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file
from scipy import stats
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold

from lib.data.dialogues import DataError
from lib.psychology.lexicons import Lexicon, TokenCounts, count_tokens
from lib.psychology.traits.features import design_matrix, frequent_features

PUBLISHED_R = {"agreeableness": 0.35, "empathic_concern": 0.26}
"""Out-of-sample Pearson r of the paper's models, which were never released."""

PENALTIES = tuple(float(10**k) for k in np.arange(0, 7.5, 0.5))


@dataclass(frozen=True)
class TraitModel:
    """A fitted ridge regression and what it was fitted on.

    Attributes
    ----------
    trait : str
    ngrams : mapping of order (1, 2, 3) to the n-grams used
    topics : str
        Name of the topic lexicon that scoring needs, "" for none.
    coefficients, center, scale : arrays over features (n-grams by order, then topics)
    intercept, penalty : float
    authors, texts : int
        Size of the training set.
    out_of_sample_r : float
        Pearson r between predicted and measured trait of authors in held-out folds.
    r_low, r_high : float
        95 % interval of that r (Fisher's z over authors).
    trained_on : str
        What the texts were; "synthetic" for the sample.
    """

    trait: str
    ngrams: Mapping[int, tuple[str, ...]]
    topics: str
    coefficients: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    intercept: float
    penalty: float
    authors: int
    texts: int
    out_of_sample_r: float
    r_low: float
    r_high: float
    trained_on: str = field(default="")

    def predict(self, design: np.ndarray) -> np.ndarray:
        """Predict the trait of rows of a design matrix (NaN rows stay NaN)."""
        return (design - self.center) / self.scale @ self.coefficients + self.intercept

    def save(self, folder: str | Path) -> Path:
        """Write model.json and model.safetensors (no pickle) into a folder, and return it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS}
        save_file(arrays, folder / "model.safetensors")
        facts = {k: v for k, v in asdict(self).items() if k not in _ARRAYS}
        facts["ngrams"] = {str(n): list(terms) for n, terms in self.ngrams.items()}
        text = json.dumps(facts, indent=1, ensure_ascii=False)
        (folder / "model.json").write_text(text + "\n", encoding="utf-8")
        return folder


_ARRAYS = ("coefficients", "center", "scale")


def load_trait_model(folder: str | Path) -> TraitModel:
    """Load a model that `TraitModel.save` wrote.

    Raises
    ------
    DataError
        If a file is missing or the number of coefficients is not that of the features.
    """
    folder = Path(folder)
    absent = [n for n in ("model.json", "model.safetensors") if not (folder / n).is_file()]
    if absent:
        raise DataError(
            f"there is no {' and no '.join(absent)}",
            file=folder,
            fix="name a folder written by TraitModel.save, or train with fit_trait_model",
        )
    facts = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    facts["ngrams"] = {int(n): tuple(terms) for n, terms in facts["ngrams"].items()}
    model = TraitModel(**facts, **load_file(folder / "model.safetensors"))
    terms = sum(len(t) for t in model.ngrams.values())
    if len(model.coefficients) < terms or (not model.topics and len(model.coefficients) != terms):
        raise DataError(
            f"{len(model.coefficients)} coefficients for {terms} n-grams",
            file=folder,
            fix="the two files belong to different models: save the model again",
        )
    return model


def fit_trait_model(
    texts: pd.DataFrame,
    trait: str,
    *,
    author: str = "author",
    text: str = "text",
    orders: Sequence[int] = (1, 2, 3),
    topics: Lexicon | None = None,
    min_share: float = 0.05,
    penalties: Sequence[float] = PENALTIES,
    folds: int = 10,
    seed: int = 0,
    trained_on: str = "",
) -> TraitModel:
    """Fit trait = b0 + sum_j b_j z(x_j) by ridge regression over an author's pooled language.

    Section 5, "Agreeableness" (1-3grams and 2,000 topics) and "Empathy" (topics, ridge, 10-fold
    cross-validation). An author's texts are pooled first, so that no author is in two folds; the
    n-grams, their scaling and the penalty are chosen anew inside each training part.

    Parameters
    ----------
    texts : DataFrame
        One row per text with author, text and the trait (the mean is taken per author).
    trait : str
        Column with the questionnaire score; NaN rows are left out.
    orders : sequence of int
        Orders of the n-grams; empty for topics alone.
    topics : Lexicon, optional
        p(topic | word), e.g. `lexicons.facebook_topics()`.
    min_share : float
        Least share of training authors that use an n-gram.
    penalties : sequence of float
        Candidates, chosen by leave-one-out error within the training part.
    folds, seed : int
    trained_on : str
        Description kept with the model.

    Returns
    -------
    TraitModel
        Fitted on all authors; `.out_of_sample_r` comes from the folds. No public model of either
        trait was found, so a model fitted here is a stand-in, to be named as such.

    Raises
    ------
    DataError
        For missing columns, no features, or fewer authors than 2 per fold.

    References
    ----------
    Park et al. (2015), Automatic personality assessment through social media language, JPSP 108(6).

    Examples
    --------
    >>> from lib.psychology.traits.essays import sample_essays
    >>> model = fit_trait_model(sample_essays(), "agreeableness", orders=(1,), folds=5)
    >>> model.authors, model.out_of_sample_r > 0.4
    (80, True)
    """
    absent = [c for c in (author, text, trait) if c not in texts]
    if absent:
        raise DataError(f"there is no column {absent}, only {list(texts.columns)}")
    if not orders and topics is None:
        raise DataError("a model needs features", fix="give n-gram orders, topics or both")
    rows = texts.dropna(subset=[author, text, trait])
    target = rows.groupby(author, sort=False)[trait].mean()
    if len(target) < 2 * folds:
        raise DataError(
            f"{len(target)} authors are too few for {folds} folds",
            fix="give more authors (several hundred for a usable model), or fewer folds",
        )
    counts = {n: count_tokens(rows[text], n=n).pool(rows[author]) for n in sorted({1, *orders})}
    y = target.to_numpy(float)
    predicted = np.empty(len(y))
    for train, test in KFold(folds, shuffle=True, random_state=seed).split(y):
        part = _fit(_rows(counts, train), y[train], orders, topics, min_share, penalties)
        design = design_matrix(_rows(counts, test), part["ngrams"], topics)
        z = (np.nan_to_num(design) - part["center"]) / part["scale"]
        predicted[test] = z @ part["coefficients"] + part["intercept"]
    interval = stats.pearsonr(predicted, y)
    low, high = interval.confidence_interval(0.95)
    return TraitModel(
        trait=trait,
        topics=topics.name if topics else "",
        authors=len(y),
        texts=len(rows),
        out_of_sample_r=float(interval.statistic),
        r_low=float(low),
        r_high=float(high),
        trained_on=trained_on,
        **_fit(counts, y, orders, topics, min_share, penalties),
    )


def _rows(counts: Mapping[int, TokenCounts], chosen: np.ndarray) -> dict[int, TokenCounts]:
    return {
        n: TokenCounts(c.matrix[chosen], c.features, c.index[chosen]) for n, c in counts.items()
    }


def _fit(
    counts: Mapping[int, TokenCounts],
    y: np.ndarray,
    orders: Sequence[int],
    topics: Lexicon | None,
    min_share: float,
    penalties: Sequence[float],
) -> dict:
    ngrams = {n: frequent_features(counts[n], min_share) for n in sorted(orders)}
    design = np.nan_to_num(design_matrix(counts, ngrams, topics))
    center, scale = design.mean(axis=0), design.std(axis=0)
    scale[scale == 0] = 1.0  # a feature that never varies gets coefficient 0 whatever its scale
    ridge = RidgeCV(alphas=list(penalties)).fit((design - center) / scale, y)
    return {
        "ngrams": ngrams,
        "coefficients": ridge.coef_.astype(float),
        "center": center,
        "scale": scale,
        "intercept": float(ridge.intercept_),
        "penalty": float(ridge.alpha_),
    }
