"""Score a user's turns with everything their columns allow, weigh the scores, and draw them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from lib import ROOT, analysis, meta_evaluation, metrics
from lib.data import DataError
from lib.report.dialogs import rated

#: Metrics that describe how an agent talks rather than how good it is.
PROFILE = ("emotional_entropy", "emotional_entropy_paper", "emotion_matching")
PROFILE += ("language_style_matching", "agreeableness", "empathy")
PROFILE += ("length", "question", "context_similarity")

BOX = {"q05": "whislo", "q25": "q1", "q50": "med", "q75": "q3", "q95": "whishi"}
LOOK = {
    "orientation": "horizontal",
    "manage_ticks": False,
    "showfliers": False,
    "showcaps": False,
    "patch_artist": True,
    "medianprops": {"color": "black"},
}
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
MARKERS = "osD^vP*Xp<>"
#: Shown beside the references, in this order, where they were computed.
SHOWN = ("length", "specificity", "context_similarity", "reference_similarity")
SHOWN += ("rouge_l_coco", "emotional_entropy", "emotional_entropy_paper")
SHOWN += ("emotion_matching", "language_style_matching")


def score(turns: pd.DataFrame, embeddings: bool = True) -> pd.DataFrame:
    """Every metric that needs no download, one column each, on the index of `turns`.

    The file's own `score_*` columns come first, then baseline, overlap, psychological and (with
    `embeddings`) encoder metrics and those registered in a notebook, which `lib.metrics.compute`
    keeps. A metric that is defined nowhere (no references, say) gives no column; `coverage` says
    what it needs.

    >>> from lib.data import load
    >>> "length" in score(load("sample_bots").turns.head(4), embeddings=False)
    True
    """
    unrated = pd.Series(np.nan, index=turns.index, name="human_none")
    shipped = meta_evaluation.shipped_scores(turns)
    items = meta_evaluation.EvaluationSet("yours", "turn", turns, unrated, shipped)
    names = meta_evaluation.QUICK + (meta_evaluation.ENCODER if embeddings else ())
    return meta_evaluation.score_set(items, names=(*names, *meta_evaluation.own_metrics())).scores


def coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Per family: which metrics were computed, and on what share of the turns.

    Columns family, metrics, scored (lowest share within the family), needs. Families of metrics
    registered in a notebook, and scores of no family, come last.

    >>> coverage(pd.DataFrame({"length": [3.0, 4.0]})).loc[0, "metrics"]
    'length'
    """
    families = {name: meta_evaluation.family(name) for name in scores}
    needs = {family: set() for family in [*meta_evaluation.FAMILIES, *families.values()]}
    for name in {*meta_evaluation.QUICK, *meta_evaluation.ENCODER, *scores} & set(metrics.METRICS):
        needs[meta_evaluation.family(name)] |= set(metrics.METRICS[name].needs)
    rows = []
    for family, columns in needs.items():
        names = [name for name in scores if families[name] == family]
        share = scores[names].notna().mean().min() if names else 0.0
        wanted = (
            ", ".join(sorted(columns)) or "scores of another notebook, as columns score_<metric>"
        )
        rows.append((family, ", ".join(names) or "none", share, wanted))
    return pd.DataFrame(rows, columns=["family", "metrics", "scored", "needs"])


def evidence() -> pd.DataFrame:
    """Median correlation of each metric with people over the public corpora (notebook 08).

    Read from `data/results/08_standing.csv`; columns metric, corpora, median. Empty when notebook
    08 was never run on the public corpora.

    >>> set(evidence().columns) >= {"metric", "median"}
    True
    """
    path = ROOT / "data" / "results" / "08_standing.csv"
    if not path.is_file():
        return pd.DataFrame(columns=["metric", "corpora", "median"])
    return pd.read_csv(path)


def composite(scores: pd.DataFrame, weights: pd.Series) -> pd.Series:
    r"""One score to sort turns by: the weighted mean of standardised metrics.

    .. math:: s_i = \sum_m w_m z_{im} \Big/ \sum_m w_m

    over the metrics that have a positive weight and a value for turn i. It is a reading aid, no
    measurement: weights come from other people's dialogs. NaN without any such metric.

    >>> composite(pd.DataFrame({"words": [1.0, 3.0]}), pd.Series({"words": 0.2})).tolist()
    [-1.0, 1.0]
    """
    weights = weights[weights > 0]
    used = [name for name in scores if name in weights.index and scores[name].std(ddof=0) > 0]
    z = (scores[used] - scores[used].mean()) / scores[used].std(ddof=0)
    total = z.notna().astype(float) @ weights[used].astype(float)
    return (z.fillna(0) @ weights[used] / total.where(total > 0)).astype(float).rename("composite")


def reading_list(turns: pd.DataFrame, scores: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """All replies with what was said before them, best composite first.

    `known` is `evidence()`: its medians are the weights; without any, all metrics count alike.
    Columns: system, agent, dialog, turn, before, reply, composite. Replies that no weighted metric
    scores are left out.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1", "2"], "turn": [1, 1],
    ...     "context": [["Hi"], []], "response": ["Yes", "Why do you ask?"]})
    >>> reading_list(turns, pd.DataFrame({"length": [1.0, 4.0]}), pd.DataFrame())["reply"].tolist()
    ['Why do you ask?', 'Yes']
    """
    alike = pd.Series(1.0, index=scores.columns)
    weights = known.set_index("metric")["median"] if len(known) else alike
    table = turns[["system", "agent", "dialog", "turn"]].assign(
        before=turns["context"].map(lambda context: context[-1] if context else ""),
        reply=turns["response"],
        composite=composite(scores, weights),
    )
    return table.dropna(subset="composite").sort_values(
        "composite", ascending=False, kind="stable", ignore_index=True
    )


def against_ratings(turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Spearman of each metric with one rating of the file, with intervals and clusters.

    The rating is human_overall where there is one, else the first; the column `rating` names it.
    `analysis.rank_metrics` on the metrics that score at least 80 % of the replies, dialogs
    resampled. An empty table when the file has no ratings.

    >>> turns = pd.DataFrame({"response": ["a"], "dialog": ["1"]})
    >>> len(against_ratings(turns, pd.DataFrame({"length": [1.0]})))
    0
    """
    if not (known := rated(turns)):
        return pd.DataFrame(columns=["rating", "metric", "value", "low", "high", "n", "rank"])
    chosen = "human_overall" if "human_overall" in known else known[0]
    covering = scores.loc[:, scores.notna().mean() >= 0.8]
    table = analysis.rank_metrics(
        covering, turns[chosen], turns["dialog"], "spearman", resamples=1000, seed=seed
    )
    table.insert(0, "rating", chosen)
    return table


def agent_profile(turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Mean of each profile metric per agent, with a 95 % bootstrap interval over its dialogs.

    Columns: system, agent, metric, value, low, high, dialogs, turns, z (value minus the mean over
    all turns, in standard deviations of turns), z_low, z_high. With one dialog the interval is NaN.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1", "1", "2"]})
    >>> agent_profile(turns, pd.DataFrame({"length": [1.0, 3.0, 5.0]}))["value"].tolist()
    [3.0]
    """
    rows = []
    for name in [metric for metric in PROFILE if metric in scores]:
        mean, spread = scores[name].mean(), scores[name].std(ddof=0) or np.nan
        for (system, agent), group in turns.groupby(["system", "agent"], sort=True):
            found = analysis.bootstrap_mean(
                scores.loc[group.index, name], group["dialog"], seed=seed
            )
            bounds = found[:3]
            z = [(value - mean) / spread for value in bounds]
            rows.append((system, agent, name, *bounds, found.clusters, len(group), *z))
    columns = ["system", "agent", "metric", "value", "low", "high", "dialogs", "turns"]
    return pd.DataFrame(rows, columns=[*columns, "z", "z_low", "z_high"])


def state_or_trait(turns: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Share of each profile metric's variance between systems, agents, dialogs and turns.

    A trait belongs to the agent (large shares of system and agent), a state to the moment (large
    share of turn). Columns: metric, system, agent, dialog, turn (shares that add up to 1; NaN for a
    level that cannot be told apart), note (why nothing could be split).

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1"] * 4})
    >>> state_or_trait(turns, pd.DataFrame({"length": [1.0, 2, 3, 4]}))["note"].item() != ""
    True
    """
    rows = []
    for name in [metric for metric in PROFILE if metric in scores]:
        row = {"metric": name, "note": ""}
        try:
            row |= analysis.variance_split(turns, scores[name])["share"].to_dict()
        except DataError as error:
            row["note"] = str(error).splitlines()[0]
        rows.append(row)
    return pd.DataFrame(rows, columns=["metric", "system", "agent", "dialog", "turn", "note"])


def plain(label: str) -> str:
    """A label without the characters that figure fonts lack (emoji and other rare symbols).

    >>> plain("Ada \U0001f916")
    'Ada'
    """
    return "".join(c for c in label if ord(c) < 0x2190).strip() or "?"


def quantiles(scores: pd.DataFrame, corpus: str) -> pd.DataFrame:
    """Five quantiles of every metric: what a corpus looks like, without its texts.

    Columns corpus, metric, n, q05, q25, q50, q75, q95; metrics without values are left out.

    >>> quantiles(pd.DataFrame({"length": [1.0, 2.0, 3.0]}), "toy")["q50"].tolist()
    [2.0]
    """
    table = scores.quantile(list(QUANTILES.values())).T.set_axis([*QUANTILES], axis=1).dropna()
    table = table.assign(corpus=corpus, n=scores.notna().sum()).rename_axis("metric")
    return table.reset_index()[["corpus", "metric", "n", *QUANTILES]]


def with_references(turns: pd.DataFrame, scores: pd.DataFrame, yours: str) -> pd.DataFrame:
    """Quantiles of each of the file's systems, then those of the public corpora.

    The public ones were recorded by notebook 11 in `data/results/11_reference_quantiles.csv`;
    without that file only the file's own systems are listed.

    >>> turns = pd.DataFrame({"system": ["A", "A"]})
    >>> table = with_references(turns, pd.DataFrame({"length": [1.0, 2.0]}), "mine")
    >>> table["corpus"].iloc[0]
    'mine: A'
    """
    systems = scores.groupby(turns["system"])
    parts = [quantiles(group, f"{yours}: {name}") for name, group in systems]
    path = ROOT / "data" / "results" / "11_reference_quantiles.csv"
    parts += [pd.read_csv(path)] if path.is_file() else []
    return pd.concat(parts, ignore_index=True)


def beside_references(table: pd.DataFrame, yours: str) -> Figure:
    """Each metric of `SHOWN`: middle half (bar), middle 90 % (line) and median of each corpus.

    `table` comes from `quantiles`; rows of the corpora in `yours` are drawn in colour.

    >>> frame = quantiles(pd.DataFrame({"length": [1.0, 2.0, 3.0]}), "mine")
    >>> len(beside_references(frame, "mine").axes)
    1
    """
    own = set(table.loc[table["corpus"].str.startswith(yours), "metric"])
    shown = [metric for metric in SHOWN if metric in own]
    corpora, columns = list(table["corpus"].unique())[::-1], min(3, len(shown))
    lines = -(-len(shown) // columns)
    size = (4.2 * columns, lines * (0.9 + 0.27 * len(corpora)))
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, sharey=True)
    for axis, metric in zip(axes.flat, shown, strict=False):
        rows = table[table["metric"] == metric].rename(columns=BOX)
        places = rows["corpus"].map(corpora.index)
        drawn = axis.bxp(rows.to_dict("records"), positions=places, **LOOK)
        for box, corpus in zip(drawn["boxes"], rows["corpus"], strict=True):
            box.set_facecolor("C1" if corpus.startswith(yours) else "0.8")
        axis.set(title=metric, yticks=range(len(corpora)), yticklabels=map(plain, corpora))
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    figure.tight_layout()
    return figure


def profile_plot(profile: pd.DataFrame) -> Figure:
    """Each agent's profile: standardised means with intervals, a colour and a marker per agent.

    >>> row = {"system": "A", "agent": "A", "metric": "length"}
    >>> row |= {"z": 0.2, "z_low": 0.0, "z_high": 0.4}
    >>> len(profile_plot(pd.DataFrame([row])).axes)
    1
    """
    metrics = list(dict.fromkeys(profile["metric"]))
    agents = profile.groupby(["system", "agent"], sort=False)
    step = 0.7 / len(agents)
    size = (8, 1.2 + len(metrics) * max(0.4, 0.13 * len(agents)))
    figure, axes = plt.subplots(figsize=size)
    colours = sns.color_palette("colorblind", len(agents))
    for k, ((system, agent), rows) in enumerate(agents):
        place = step * ((len(agents) - 1) / 2 - k) - rows["metric"].map(metrics.index)
        label = plain(agent if agent == system else f"{system}: {agent}")
        axes.hlines(place, rows["z_low"], rows["z_high"], color=colours[k], linewidth=1.6)
        marker = MARKERS[k % len(MARKERS)]
        axes.plot(rows["z"], place, marker, color=colours[k], markersize=4.5, label=label)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks([-k for k in range(len(metrics))], metrics)
    axes.set_xlabel("mean of the agent, in standard deviations of turns (0: all turns)")
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize=8)
    return figure


def share_plot(shares: pd.DataFrame) -> Figure:
    """Stacked bars: how much of each metric's variance lies between systems, ..., turns.

    >>> row = {"metric": "length", "system": 0.1, "agent": 0.1, "dialog": 0.2, "turn": 0.6}
    >>> len(share_plot(pd.DataFrame([row])).axes)
    1
    """
    known = shares.dropna(subset="turn").set_index("metric").iloc[::-1]
    axes = known[["system", "agent", "dialog", "turn"]].plot.barh(
        stacked=True,
        color=[*sns.color_palette("Blues_r", 4)[:3], "0.85"],
        figsize=(8, 1.1 + 0.34 * len(known)),
        title="Where the variance of each metric lies",
        xlabel="share of variance (trait: system and agent; state: turn)",
        ylabel="",
        xlim=(0, 1),
    )
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize=8)
    return axes.figure
