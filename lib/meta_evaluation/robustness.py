"""Robustness: does a metric score a reply above the same reply damaged in one known way?

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
#: They need a reference. There is none, so the last utterance of the context takes its place.
TO_CONTEXT = [name for name in QUICK if "reference" in get_metric(name).needs]


def text_sides(pairs: pd.DataFrame) -> pd.DataFrame:
    """List the turns of both sides of pairs: one of a reply, all of a dialog.

    Returns:
        pair (its row), side, context, response, and item: equal turns have the same number.

    >>> pairs = pd.DataFrame({"level": ["dialog"], "context": [[]],
    ...                       "original": [["Hi", "Bye"]], "perturbed": [["Bye"]]})
    >>> text_sides(pairs)[["side", "context", "response"]].values.tolist()[1:]
    [['original', ['Hi'], 'Bye'], ['perturbed', [], 'Bye']]
    """
    rows = []
    for side in ("original", "perturbed"):
        for number, pair in enumerate(pairs.to_dict("records")):
            text = pair[side]
            if pair["level"] == "turn":
                turns = [(pair["context"], text)]
            else:
                turns = [(text[:turn], text[turn]) for turn in range(len(text))]
            for context, response in turns:
                row = {
                    "pair": number,
                    "side": side,
                    "context": context,
                    "response": response,
                }
                rows.append(row)
    sides = pd.DataFrame(rows)
    texts = [(*row["context"], row["response"]) for row in rows]
    item, _ = pd.factorize(pd.Index(texts, tupleize_cols=False))
    return sides.assign(item=item)


def score_sides(sides: pd.DataFrame, encoder: bool = True) -> pd.DataFrame:
    """Score every turn of `text_sides`, equal turns once.

    Args:
        sides: the result of `text_sides`.
        encoder: also score the similarity with the last utterance, and EnDex (minutes).

    Returns:
        One column per metric, one row per item. Overlap metrics end in "_to_context".
    """
    items = sides.drop_duplicates("item").set_index("item")
    items["reference"] = [context[-1:] for context in items["context"]]
    names = [*QUICK[:3], "random", *QUICK[3:]]
    names = [name for name in names if name not in TO_CONTEXT]
    if encoder:
        names += ["endex", "context_similarity"]
    to_context = compute(items, TO_CONTEXT, log=lambda line: None)
    scores = compute(items, names, log=lambda line: None)
    missing = {
        f"{name}_to_context": counts
        for name, counts in to_context.attrs["missing"].items()
    }
    missing |= scores.attrs["missing"]
    scores = scores.join(to_context.add_suffix("_to_context"))
    scores.attrs = {"missing": missing}
    return scores


def win_shares(
    pairs: pd.DataFrame, sides: pd.DataFrame, scores: pd.DataFrame
) -> pd.DataFrame:
    """How often each metric scores the original above the perturbed text.

    A dialog's score is the mean over its turns that have one. The interval is Wilson's, with the
    number of different originals (contexts or whole dialogs) for n: several perturbations of one
    original are not independent. All intervals of the table hold together at 95 % (Bonferroni: of
    m shares each has the level 1 - .05 / m).

    Args:
        pairs: columns of `data.robustness_pairs`.
        sides: `text_sides(pairs)`.
        scores: a column per metric, a row per item of `sides`.

    Returns:
        A row per perturbation and metric: share of the pairs in which the original scores higher,
        ties (equal to nine decimals) counted half; tied, the share of ties; n, the pairs with a
        score on both sides, and their originals; missing, the pairs in which a side has no score;
        low, high; and the reasons that the metric gave. At .5 a metric is blind, below it prefers
        the damaged text.

    >>> pairs = pd.DataFrame({"perturbation": "dull", "dimension": "x", "level": "turn",
    ...     "context": [["a"], ["b"]], "original": ["so long", "ok"], "perturbed": ["no", "no"]})
    >>> sides = text_sides(pairs)
    >>> words = sides.drop_duplicates("item").set_index("item")[["response"]].map(len)
    >>> win_shares(pairs, sides, words)[["share", "tied", "n"]].values.tolist()
    [[0.75, 0.5, 2.0]]
    """
    turn_scores = scores.loc[sides["item"]].reset_index(drop=True)
    text_scores = turn_scores.groupby([sides["side"], sides["pair"]]).mean()
    difference = (text_scores.loc["original"] - text_scores.loc["perturbed"]).round(9)
    win = (np.sign(difference) + 1) / 2  # 1, 0.5 (tie) or 0
    win = win.reindex(range(len(pairs))).set_axis(pairs.index)

    is_turn = pairs["level"] == "turn"
    original = pairs["context"].where(is_turn, pairs["original"]).map(tuple)
    win = win.join(pairs[KIND]).assign(original=original)
    win = win.melt([*KIND, "original"], var_name="metric", value_name="win")

    causes = scores.attrs.get("missing", {})
    groups = win.groupby(["metric", *KIND], sort=False)
    level = 0.05 / groups.ngroups
    rows = []
    for (metric, *kind), group in groups:
        scored = group.dropna(subset="win")
        n = len(scored)
        missing = len(group) - n
        reasons = causes.get(metric, []) if missing else []
        share = scored["win"].mean()
        originals = scored["original"].nunique()
        low, high = proportion_confint(
            share * originals, originals or np.nan, alpha=level, method="wilson"
        )
        rows.append(
            {
                "metric": metric,
                **dict(zip(KIND, kind, strict=True)),
                "share": share,
                "tied": (scored["win"] == 0.5).mean(),
                "n": n,
                "originals": originals,
                "missing": missing,
                "low": low,
                "high": high,
                "reason": "; ".join(reasons).replace("reference", "context"),
            }
        )
    return pd.DataFrame(rows)


def plot_robustness(table: pd.DataFrame, title: str) -> Figure:
    """Metrics x perturbations: the share in percent; blue detects the damage, red prefers it.

    White: the interval (all of the table together at 95 %) holds .5, so the metric is not known to
    detect anything.

    >>> frame = pd.DataFrame({"perturbation": ["dull"], "level": "turn", "metric": "length",
    ...                       "share": 0.9, "low": 0.8, "high": 0.95})
    >>> len(plot_robustness(frame, "one cell").axes)
    2
    """
    kinds = table["perturbation"].unique()
    metrics = table["metric"].unique()
    blind = (table["low"] <= 0.5) & (table["high"] >= 0.5)
    percent = 100 * table["share"]
    wide = table.assign(percent=percent, colour=percent.mask(blind, 50))
    wide = wide.pivot(index="metric", columns="perturbation").rename(index=display_name)
    wide = wide.reindex(map(display_name, metrics)).reindex(columns=kinds, level=1)
    figure, axes = plt.subplots(figsize=(10, 1.9 + 0.33 * len(metrics)))
    sns.heatmap(
        wide["colour"],
        vmin=0,
        vmax=100,
        cmap="RdBu",
        annot=wide["percent"],
        fmt=".0f",
        annot_kws={"size": 9},
        cbar_kws={"label": "% original higher"},
        ax=axes,
    )
    turn_kinds = table.loc[table["level"] == "turn", "perturbation"].nunique()
    axes.axvline(turn_kinds, color="black")
    axes.set(title=title, xlabel="", ylabel="")
    axes.set_xticks(
        axes.get_xticks(), map(display_name, kinds), rotation=40, ha="right"
    )
    return figure
