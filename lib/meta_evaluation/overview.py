"""All metrics on all panels: one table, one heat map."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import analysis
from lib.meta_evaluation.metrics import FAMILIES, family
from lib.meta_evaluation.panels import Panel

#: A metric is ranked on a panel if it scores at least this share of its items.
COVERAGE = 0.8


def overview(
    panels: Iterable[Panel], method: str = "spearman", draws: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Correlation, interval and significance cluster of each metric on each panel.

    Value and interval use the items that the metric scores; the rank uses the items that all ranked
    metrics score, so metrics that miss more than a fifth of the items are not ranked.

    Returns
    -------
    DataFrame with the columns panel, rating, metric, family, value, low, high, n, clusters, rank
    (1 is the best cluster, NaN if not ranked), reason.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> panel = panel.with_scores(pd.DataFrame({"length": panel.table["response"].str.len()}))
    >>> overview([panel], draws=50)[["metric", "family", "rank"]].values.tolist()
    [['length', 'baseline', 1]]
    """
    parts = [_one(panel, method, draws, seed) for panel in tqdm(list(panels), desc="overview")]
    return pd.concat(parts, ignore_index=True)


def _one(panel: Panel, method: str, draws: int, seed: int) -> pd.DataFrame:
    covered = panel.scores.notna().mean()
    ranked = [name for name in panel.scores if covered[name] >= COVERAGE]
    ranks = analysis.rank_metrics(
        panel.scores[ranked], panel.human, panel.clusters, method, resamples=draws, seed=seed
    ).set_index("metric")["rank"]
    rows = []
    for name in panel.scores:
        found = analysis.bootstrap_interval(
            panel.scores[name], panel.human, panel.clusters, method, draws, seed=seed
        )
        few = "" if name in ranked else f"scores {covered[name]:.0%} of the items"
        rows.append(
            {
                "panel": panel.name,
                "rating": panel.dimension,
                "metric": name,
                "family": family(name),
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "n": found.n,
                "clusters": found.clusters,
                "rank": ranks.get(name, np.nan),
                "reason": found.reason or few,
            }
        )
    return pd.DataFrame(rows)


def in_family_order(metrics: Iterable[str]) -> list[str]:
    """Metric names sorted by family (the order of `FAMILIES`), then by name.

    >>> in_family_order(["gpt4_overall", "rouge_l", "bleu4"])
    ['bleu4', 'rouge_l', 'gpt4_overall']
    """
    order = {name: position for position, name in enumerate([*FAMILIES, "other"])}
    return sorted(set(metrics), key=lambda metric: (order[family(metric)], metric))
