"""Score a user's turns with everything their columns allow, weigh the scores, and draw them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from lib import ROOT, metrics
from lib.analysis import resampling, significance
from lib.analysis.variance_components import variance_split
from lib.data import DataError
from lib.meta_evaluation import evaluation_sets
from lib.metrics.kept_scores import ROWS
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
MANY = 12  # agents or systems that a figure can tell apart; beyond, it shows the crowd
FOLLOWS = "follows people"
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
    blocks = [turns.iloc[start : start + ROWS] for start in range(0, len(turns), ROWS)]
    # Block by block and not metric by metric: the encoder reads each text of a block once.
    parts = [_scored(block, embeddings) for block in tqdm(blocks, desc="scores", leave=False)]
    return pd.concat(parts)


def _scored(turns: pd.DataFrame, embeddings: bool) -> pd.DataFrame:
    unrated = pd.Series(np.nan, index=turns.index, name="human_none")
    shipped = evaluation_sets.shipped_scores(turns)
    items = evaluation_sets.EvaluationSet("yours", "turn", turns, unrated, shipped)
    names = evaluation_sets.QUICK + (evaluation_sets.ENCODER if embeddings else ())
    return evaluation_sets.score_set(items, names=(*names, *evaluation_sets.own_metrics())).scores


def coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Per family: which metrics were computed, and on what share of the turns.

    Columns family, metrics, scored (lowest share within the family), needs. Families of metrics
    registered in a notebook, and scores of no family, come last.

    >>> coverage(pd.DataFrame({"length": [3.0, 4.0]})).loc[0, "metrics"]
    'length'
    """
    families = {name: evaluation_sets.family(name) for name in scores}
    needs = {family: set() for family in [*evaluation_sets.FAMILIES, *families.values()]}
    for name in {*evaluation_sets.QUICK, *evaluation_sets.ENCODER, *scores} & set(metrics.METRICS):
        needs[evaluation_sets.family(name)] |= set(metrics.METRICS[name].needs)
    rows = []
    for family, columns in needs.items():
        names = [name for name in scores if families[name] == family]
        share = scores[names].notna().mean().min() if names else 0.0
        wanted = (
            ", ".join(sorted(columns)) or "scores of another notebook, as columns score_<metric>"
        )
        rows.append((family, ", ".join(names) or "none", share, wanted))
    return pd.DataFrame(rows, columns=["family", "metrics", "scored", "needs"])


def standing(scores: pd.DataFrame) -> pd.DataFrame:
    """What is known of each metric: does it follow people, which damage does it see?

    From notebook 08 on the public corpora: the median and the lowest Spearman correlation with
    people over so many `corpora`; `sees`, the kinds of damage (of 18) of which it prefers the whole
    text, its interval above one half, and `prefers`, those where it prefers the damage. `says`:

    - "follows people": on each of at least three corpora the correlation was above 0;
    - "changes sides": above 0 on some of them only;
    - "not tested": fewer corpora; "nothing here": it is constant on these replies, or defined for
      less than half of them.

    Metrics that follow people come first, by their median; the others have no order.

    >>> scores = pd.DataFrame({"flat": [1.0, 1.0], "mine": [1.0, 2.0]})
    >>> standing(scores)[["metric", "says"]].values.tolist()
    [['flat', 'nothing here'], ['mine', 'not tested']]
    """
    table = pd.DataFrame({"metric": list(scores)})
    table = table.merge(recorded("08_standing", ["metric", "corpora", "median", "lowest"]), "left")
    damage = recorded("08_robustness", ["metric", "low", "high"])
    sides = {"sees": damage["low"] > 0.5, "prefers": damage["high"] < 0.5}
    for name, seen in sides.items():
        table[name] = table["metric"].map(seen.groupby(damage["metric"]).sum())
    silent = scores.nunique().le(1) | scores.notna().mean().lt(0.5)
    tested, follows = table["corpora"] >= 3, table["lowest"] > 0
    said = np.select([silent.to_numpy(), ~tested, follows], ["nothing here", "not tested", FOLLOWS],
                     "changes sides")  # fmt: skip
    table["says"] = said
    order = table["median"].where(table["says"] == FOLLOWS).sort_values(ascending=False)
    return table.loc[order.index].reset_index(drop=True)


def recorded(name: str, columns: list[str]) -> pd.DataFrame:
    """Columns of a committed result; without the file no rows."""
    path = ROOT / "data" / "results" / f"{name}.csv"
    return pd.read_csv(path)[columns] if path.is_file() else pd.DataFrame(columns=columns)


def against_ratings(turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Spearman of each metric with one rating of the file, with intervals and clusters.

    The rating is human_overall where there is one, else the first; the column `rating` names it.
    `significance.rank_metrics` on the metrics that score at least 80 % of the replies, dialogs
    resampled. A metric whose interval holds 0 says nothing of that rating and has no rank. An empty
    table when the file has no ratings.

    >>> turns = pd.DataFrame({"response": ["a"], "dialog": ["1"]})
    >>> len(against_ratings(turns, pd.DataFrame({"length": [1.0]})))
    0
    """
    if not (known := rated(turns)):
        return pd.DataFrame(columns=["rating", "metric", "value", "low", "high", "n", "rank"])
    chosen = "human_overall" if "human_overall" in known else known[0]
    covering = scores.loc[:, scores.notna().mean() >= 0.8]
    table = significance.rank_metrics(
        covering, turns[chosen], turns["dialog"], "spearman", resamples=1000, seed=seed
    )
    table.insert(0, "rating", chosen)
    return table.assign(rank=table["rank"].mask((table["low"] <= 0) & (table["high"] >= 0)))


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
            found = resampling.bootstrap_mean(
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
            row |= variance_split(turns, scores[name])["share"].to_dict()
        except DataError as error:
            row["note"] = str(error).splitlines()[0]
        rows.append(row)
    return pd.DataFrame(rows, columns=["metric", "system", "agent", "dialog", "turn", "note"])


def plain(label: str) -> str:
    """A label without what figure fonts lack (emoji and other rare symbols), and no formula.

    >>> plain("Ada \U0001f916")
    'Ada'
    """
    return "".join(c for c in label if ord(c) < 0x2190).replace("$", r"\$").strip() or "?"


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
    """Quantiles of each of the file's systems (of all as one, if many), then of the public corpora.

    The public ones were recorded by notebook 11 in `data/results/11_reference_quantiles.csv`;
    without that file only the file's own systems are listed.

    >>> turns = pd.DataFrame({"system": ["A", "A"]})
    >>> table = with_references(turns, pd.DataFrame({"length": [1.0, 2.0]}), "mine")
    >>> table["corpus"].iloc[0]
    'mine: A'
    """
    count = turns["system"].nunique()
    names = turns["system"] if count <= MANY else f"all {count} systems" + turns["system"].str[:0]
    parts = [quantiles(group, f"{yours}: {name}") for name, group in scores.groupby(names)]
    parts.append(recorded("11_reference_quantiles", ["corpus", "metric", "n", *QUANTILES]))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


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
    own = table["corpus"].str.startswith(yours).map({True: "your file", False: "public corpora"})
    medians = table.groupby(["metric", own], sort=False)["q50"].agg(["min", "max"]).round(2)
    told = [f"{metric} {low:g} to {high:g} ({whose})"
            for (metric, whose), low, high in medians.loc[shown].itertuples()]  # fmt: skip
    figure.set_label(f"Box plots of each corpus. Medians: {'; '.join(told)}.")
    return figure


def profile_plot(profile: pd.DataFrame) -> Figure:
    """Each agent's profile: standardised means with intervals, a colour and a marker per agent.

    Of more than twelve agents a crowd of points, in which the outermost two are named.

    >>> row = {"system": "A", "agent": "A", "metric": "length"}
    >>> row |= {"z": 0.2, "z_low": 0.0, "z_high": 0.4}
    >>> profile_plot(pd.DataFrame([row])).get_label()
    'Means of 1 agents. length: highest A (+0.2), lowest A (+0.2).'
    """
    metrics = list(dict.fromkeys(profile["metric"]))
    own = profile["agent"] == profile["system"]
    names = profile["agent"].where(own, profile["system"] + ": " + profile["agent"]).map(plain)
    profile = profile.assign(who=names, place=-profile["metric"].map(metrics.index))
    count = profile.groupby(["system", "agent"]).ngroups
    size = (8, 1.2 + len(metrics) * max(0.4, 0.13 * min(count, MANY)))
    figure, axes = plt.subplots(figsize=size)
    (_crowd if count > MANY else _each)(axes, profile)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks([-k for k in range(len(metrics))], metrics)
    axes.set_xlabel("mean of the agent, in standard deviations of turns (0: all turns)")
    ends = [
        _outermost(rows) for _, rows in profile.dropna(subset="z").groupby("metric", sort=False)
    ]
    told = [f"{high.metric}: highest {high.who} ({high.z:+.1f}), lowest {low.who} ({low.z:+.1f})"
            for low, high in ends]  # fmt: skip
    figure.set_label(f"Means of {count} agents. {'; '.join(told)}.")
    return figure


def _outermost(rows: pd.DataFrame) -> list[pd.Series]:
    return [rows.loc[place] for place in (rows["z"].idxmin(), rows["z"].idxmax())]


def _each(axes, profile: pd.DataFrame) -> None:
    agents = profile.groupby(["system", "agent"], sort=False)
    colours, step = sns.color_palette("colorblind", len(agents)), 0.7 / len(agents)
    for k, (_, rows) in enumerate(agents):
        place = rows["place"] + step * ((len(agents) - 1) / 2 - k)
        axes.hlines(place, rows["z_low"], rows["z_high"], color=colours[k], linewidth=1.6)
        look = {"color": colours[k], "markersize": 4.5, "label": rows["who"].iloc[0]}
        axes.plot(rows["z"], place, MARKERS[k % len(MARKERS)], **look)
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize=8)


def _crowd(axes, profile: pd.DataFrame) -> None:
    axes.plot(profile["z"], profile["place"], "|", color="C0", alpha=0.4, markersize=9)
    for _, rows in profile.dropna(subset="z").groupby("metric"):
        for end, side in zip(_outermost(rows), ("right", "left"), strict=True):
            axes.text(
                end["z"], end["place"], f"  {end['who'][:24]}  ", ha=side, va="center", size=7
            )
    axes.margins(x=0.25)
