"""The tables of notebook 08 that need more than one call."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lib import analysis, metrics
from lib.analysis import agreement
from lib.data.dialogues import DataError
from lib.meta_evaluation.metrics import FAMILIES, family
from lib.meta_evaluation.panels import Panel


def describe(panels: Iterable[Panel]) -> pd.DataFrame:
    """One row per panel: level, rating, and how many items, clusters, systems and metrics.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> describe([load_panel("sample_bots")])[["corpus", "systems"]].values.tolist()
    [['sample_bots', 3]]
    """
    return pd.DataFrame(
        [
            {
                "corpus": panel.name,
                "level": panel.level,
                "rating": panel.dimension,
                "items": len(panel.human),
                "clusters": panel.clusters.nunique(),
                "systems": panel.table["system"].nunique(),
                "metrics": panel.scores.shape[1],
            }
            for panel in panels
        ]
    )


def families_at_hand(panels: Iterable[Panel]) -> pd.DataFrame:
    """The metrics of each family that some panel has scores of; "none" if there are none.

    >>> families_at_hand([]).loc[0].tolist()
    ['baseline', 'none']
    """
    names = sorted({metric for panel in panels for metric in panel.scores})
    rows = [(f, ", ".join(n for n in names if family(n) == f) or "none") for f in FAMILIES]
    return pd.DataFrame(rows, columns=["family", "metrics"])


def with_metrics(panels: Iterable[Panel]) -> list[Panel]:
    """The panels that have a metric to judge; says which have none and are left out.

    Raises `DataError` when none is left: a corpus of rated dialogs whose scores nobody shipped has
    nothing to judge here, because the metrics that are computed score single turns.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> with_metrics([load_panel("sample_bots")])
    Traceback (most recent call last):
    ...
    lib.data.dialogues.errors.DataError: no metric is at hand for sample_bots.
    What to do: ...
    """
    panels = list(panels)
    kept = [panel for panel in panels if panel.scores.shape[1]]
    bare = ", ".join(panel.name for panel in panels if not panel.scores.shape[1])
    if not kept:
        raise DataError(
            f"no metric is at hand for {bare}",
            fix="take a corpus whose single turns were rated, or one that came with scores of its "
            "dialogs (gpt4_fed, gpt4_reliable): see corpora.available()",
        )
    if bare:
        print(f"left out, no metric is at hand: {bare}")
    return kept


def nearest_metrics(panel: Panel, method: str = "spearman") -> tuple[str, str]:
    """The two metrics of a panel that correlate most with each other.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> length = panel.table["response"].str.len()
    >>> panel = panel.with_scores(pd.DataFrame({"a": length, "b": length + 1, "c": length % 5}))
    >>> nearest_metrics(panel)
    ('a', 'b')
    """
    agree = panel.scores.corr(method).abs()
    agree = agree.where(np.triu(np.ones(agree.shape, bool), 1))
    return agree.stack().idxmax()


def difference_tests(
    panel: Panel,
    a: str,
    b: str,
    method: str = "spearman",
    alternative: str = "two-sided",
    draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Two metrics of a panel compared in four ways, one row each.

    Rows: swap items (PERM-BOTH), swap dialogs, Williams (p-values) and the bootstrap interval of
    the difference over dialogs (low, high). Columns: test, a, b, difference, p, low, high, n,
    reason.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> length = panel.table["response"].str.len()
    >>> panel = panel.with_scores(pd.DataFrame({"a": length, "c": length % 5}))
    >>> difference_tests(panel, "a", "c", draws=50)["test"].tolist()
    ['swap items', 'swap dialogs', 'Williams', 'bootstrap dialogs']
    """
    pair, clusters = (panel.scores[a], panel.scores[b], panel.human), panel.clusters
    tests = {
        "swap items": analysis.permutation_test(*pair, method, None, alternative, draws, seed),
        "swap dialogs": analysis.permutation_test(
            *pair, method, clusters, alternative, draws, seed
        ),
        "Williams": analysis.williams_test(*pair, method, alternative),
    }
    rows = [{"test": name} | result._asdict() for name, result in tests.items()]
    interval = analysis.bootstrap_difference(*pair, clusters, method, draws, seed=seed)
    bounds = {"difference": interval.value, "low": interval.low, "high": interval.high}
    rows.append({"test": "bootstrap dialogs", "n": interval.n} | bounds)
    columns = ["test", "a", "b", "difference", "p", "low", "high", "n", "reason"]
    return pd.DataFrame(rows).reindex(columns=columns).fillna({"reason": interval.reason})


def fine_and_coarse(panel: Panel, metric: str, levels: int = 5) -> pd.DataFrame:
    """A metric, and a copy of it cut into equally filled levels, by every coefficient and acc23.

    Columns: metric, pearson, spearman, kendall, acc23 (pairs within a cluster), threshold.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> panel = panel.with_scores(pd.DataFrame({"a": panel.table["response"].str.len()}))
    >>> fine_and_coarse(panel, "a")["metric"].tolist()
    ['a', 'a in 5 levels']
    """
    fine = panel.scores[metric].dropna()
    human, clusters = panel.human[fine.index], panel.clusters[fine.index]
    coarse = np.ceil(fine.rank(pct=True) * levels)
    rows = []
    for name, values in ((metric, fine), (f"{metric} in {levels} levels", coarse)):
        row = {m: analysis.coefficient(values, human, m).value for m in analysis.METHODS}
        accuracy = analysis.pairwise_accuracy(values, human, clusters)
        row |= {"acc23": accuracy.value, "threshold": accuracy.threshold}
        rows.append({"metric": name} | row)
    return pd.DataFrame(rows)


def system_intervals(
    panel: Panel, metric: str, method: str = "spearman", draws: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """System-level correlation with intervals over contexts, over systems, and over both.

    Columns: resampled, then those of `analysis.Interval` (n is the number of systems).

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> panel = panel.with_scores(pd.DataFrame({"a": panel.table["response"].str.len()}))
    >>> system_intervals(panel, "a", draws=20)["n"].tolist()
    [3, 3, 3]
    """
    judged, rated = (
        analysis.system_matrix(values, panel.table)
        for values in (panel.scores[metric], panel.human)
    )
    rows = []
    for kind in ("contexts", "systems", "both"):
        found = analysis.system_interval(judged, rated, method, kind, draws, seed=seed)
        rows.append({"resampled": kind} | found._asdict())
    return pd.DataFrame(rows)


def soft_accuracies(panel: Panel, draws: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Soft pairwise accuracy of every metric that scores all items, best first (metric, spa).

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> panel = panel.with_scores(pd.DataFrame({"a": panel.table["response"].str.len()}))
    >>> soft_accuracies(panel)["spa"].between(0, 1).all()
    np.True_
    """
    rated = analysis.system_matrix(panel.human, panel.table)
    complete = [name for name in panel.scores if panel.scores[name].notna().all()]
    rows = []
    for name in complete:
        judged = analysis.system_matrix(panel.scores[name], panel.table)
        rows.append((name, analysis.soft_pairwise_accuracy(judged, rated, draws, seed)))
    table = pd.DataFrame(rows, columns=["metric", "spa"])
    return table.sort_values("spa", ascending=False, ignore_index=True)


def agreement_table(panels: Iterable[Panel]) -> pd.DataFrame:
    """`agreement.summary` of every panel that keeps single ratings, with its corpus.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> agreement_table([load_panel("sample_bots")])["corpus"].unique().tolist()
    ['sample_bots']
    """
    parts = [
        agreement.summary(panel.ratings, panel.clusters).assign(corpus=panel.name)
        for panel in panels
        if panel.ratings is not None and len(panel.ratings)
    ]
    if not parts:
        return pd.DataFrame(columns=["corpus", "dimension", "items", "alpha", "low", "high"])
    table = pd.concat(parts, ignore_index=True)
    return table[["corpus", *table.columns.drop("corpus")]]


def system_means(turns: pd.DataFrame) -> pd.DataFrame:
    """Mean of every rating per system, in long form: system, rating, value.

    >>> turns = pd.DataFrame({"system": ["A", "A"], "human_overall": [1.0, 2.0]})
    >>> system_means(turns).values.tolist()
    [['A', 'overall', 1.5]]
    """
    means = turns.groupby("system")[[c for c in turns if c.startswith("human_")]].mean()
    means.columns = means.columns.str.removeprefix("human_")
    return means.melt(ignore_index=False, var_name="rating").reset_index()


def panel_of_turns(turns: pd.DataFrame, rating: str, names: list[str]) -> Panel:
    """The rated rows of a turn table as a panel with registered metrics.

    >>> from lib.data import corpora
    >>> turns = corpora.load("sample_bots").turns
    >>> panel_of_turns(turns, "overall", ["length"]).scores.columns.tolist()
    ['length']
    """
    rated = turns[turns[f"human_{rating}"].notna()].reset_index(drop=True)
    found = metrics.compute(rated, names, say=lambda line: None)
    return Panel("turns", "turn", rated, rated[f"human_{rating}"], found, None, False)
