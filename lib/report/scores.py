"""Score a user's turns with everything their columns allow, weigh the scores, and draw them."""

import os
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from lib import ROOT, cpdscore, metrics
from lib.analysis import resampling, significance
from lib.analysis.variance_components import variance_split
from lib.cpdscore import local
from lib.data import DataError
from lib.meta_evaluation import evaluation_sets
from lib.metrics.registry import BATCH_ROWS
from lib.report.dialogs import rated
from lib.report.verdict import KEY, bootstrap_units

PSYCHOLOGY = ("emotional_entropy", "emotional_entropy_paper")
PSYCHOLOGY += ("emotion_matching", "language_style_matching")
#: Metrics that describe how an agent talks rather than how good it is.
PROFILE = (*PSYCHOLOGY, "agreeableness", "empathy", "length", "question", "context_similarity")
#: Shown beside the references, in this order, where they were computed.
SHOWN = ("length", "specificity", "context_similarity", "reference_similarity", "rouge_l_coco")
SHOWN += PSYCHOLOGY

MANY = 12  # agents or systems that a figure can tell apart
SENT = {"temperature": 0, "max_tokens": 96, "logprobs": True, "top_logprobs": 20}
STORE = ROOT / "data" / "cache" / "judges" / "report.sqlite"  # every reply of a judge
FOLLOWS = "follows people"
BOUNDS = ["value", "low", "high"]
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


def report_scores(
    turns: pd.DataFrame, embeddings: bool = True, most: float = np.inf, seed: int = 0
) -> pd.DataFrame:
    """Every metric that needs no download, one column each, on the index of `turns`.

    The file's own `score_*` columns come first, then baseline, overlap and psychological metrics,
    those registered in a notebook, and (with `embeddings`) those of the encoder with the shipped
    EnDex, nearly all of the cost, which read the replies that are `drawn`; `lib.metrics.compute`
    keeps them all. A metric that is defined nowhere (no references, say) gives no column;
    `coverage` says what it needs.

    >>> from lib.data import load
    >>> "length" in report_scores(load("sample_bots").turns.head(4), embeddings=False)
    True
    """
    parts = [evaluation_sets.shipped_scores(turns)]
    parts.append(_computed(turns, (*evaluation_sets.QUICK, *evaluation_sets.own_metrics())))
    if embeddings:
        parts.append(_computed(sample_dialogs(turns, most, seed), evaluation_sets.ENCODER))
    scores = pd.concat(parts, axis=1)
    return scores.loc[:, ~scores.columns.duplicated()].dropna(axis=1, how="all")


def _computed(turns: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    # Block by block and not metric by metric: the encoder reads each text of a block once.
    starts = tqdm(range(0, len(turns), BATCH_ROWS), desc="scores", leave=False)
    blocks = (turns.iloc[start : start + BATCH_ROWS] for start in starts)
    return pd.concat(evaluation_sets.computed_scores(block, names) for block in blocks)


def sample_dialogs(turns: pd.DataFrame, most: float, seed: int = 0) -> pd.DataFrame:
    """Whole dialogs, drawn at random until they hold `most` replies; all where there are no more.

    Every system gets the same number of replies, or all that it has. Dialogs of different systems
    that begin alike are drawn together, so that they stay pairs.

    >>> turns = pd.DataFrame({"system": list("AAAB"), "agent": "x", "dialog": list("1223"),
    ...                       "turn": 1, "context": [[]] * 4})
    >>> sorted(set(sample_dialogs(turns, 2)["system"])), len(sample_dialogs(turns, 4))
    (['A', 'B'], 4)
    """
    if len(turns) <= most:
        return turns
    unit = bootstrap_units(turns)
    place = np.random.default_rng(seed).permutation(len(turns))[unit]
    dialogs = turns.assign(place=place).groupby(KEY)["place"].agg(["first", "size"])
    size = dialogs.sort_values("first", kind="stable")["size"]
    size = size.loc[size.groupby("system").cumsum().sort_values(kind="stable").index]
    before = size.cumsum() - size
    return turns[pd.MultiIndex.from_frame(turns[KEY]).isin(size.index[before < most])]


def judge_replies(turns: pd.DataFrame, judge: str, most: int = 200) -> pd.Series:
    """CPDScore of the first replies (see `lib.cpdscore`): 1 to 5, higher is more like a person.

    The prompt is the detailed one without reference; the mark is weighted by the judge's odds
    where the server tells them. Every system's first dialogs come first, so that versions can be
    compared. What was asked once is kept in `data/cache/judges/report.sqlite`. How many requests
    are left is told on standard error before they are sent, and then how many could be read.

    Args:
        turns: turn table.
        judge: "packaged", or a model of the server at OPENAI_BASE_URL (OpenAI where it is not set).
        most: replies that are read; all others are NaN.

    Raises:
        JudgeStopped: when no request can succeed any more (key, quota, no server).

    >>> from lib.data import load
    >>> int(judge_replies(load("sample_bots").turns, "packaged", most=1).between(1, 5).sum())
    1
    """
    own, address = judge == local.PACKAGED, os.environ.get("OPENAI_BASE_URL", "")
    place = turns.groupby("system")["dialog"].transform(lambda names: pd.factorize(names)[0])
    chosen = turns.loc[place.sort_values(kind="stable").index[:most]]
    model = cpdscore.JudgeModel("smollm2-135m-instruct" if own else judge, 1, 0, SENT, own)
    prompt = cpdscore.load_template("detail_without_reference")
    with local.served(judge if own else address) as url, cpdscore.ReplyStore(STORE) as store:
        jobs = [cpdscore.Job(one, 0) for one in cpdscore.turn_requests(chosen, prompt, model)]
        told = cpdscore.forecast(jobs, store)[["requests", "prompt_tokens"]].sum().to_dict()
        print(f"judge: {len(chosen)} of {len(turns)} replies, left to ask: {told}", file=sys.stderr)
        ask = cpdscore.asker("live", store, url, cpdscore.JudgeSettings(workers=1 if own else 16))
        items = cpdscore.score_turns(chosen, prompt, model, store, ask).items
    print(f"judge: what came back: {items['status'].value_counts().to_dict()}", file=sys.stderr)
    return items["weighted"].fillna(items["score"]).reindex(turns.index).rename("cpds")


def coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Per family: which metrics were computed, and on what share of the turns.

    Columns family, metrics, scored (lowest share within the family), needs. Families of metrics
    registered in a notebook, and scores of no family, come last.

    >>> coverage(pd.DataFrame({"length": [3.0, 4.0]})).loc[0, "metrics"]
    'length'
    """
    of = evaluation_sets.metric_family
    needs = {family: set() for family in [*evaluation_sets.FAMILIES, *map(of, scores)]}
    for name in {*evaluation_sets.QUICK, *evaluation_sets.ENCODER, *scores} & set(metrics.METRICS):
        needs[of(name)] |= set(metrics.METRICS[name].needs)
    rows = []
    for family, columns in needs.items():
        names = [name for name in scores if of(name) == family]
        share = scores[names].notna().mean().min() if names else 0.0
        wanted = ", ".join(sorted(columns)) or "your own scores, as columns score_<metric>"
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
    for name, seen in {"sees": damage["low"] > 0.5, "prefers": damage["high"] < 0.5}.items():
        table[name] = table["metric"].map(seen.groupby(damage["metric"]).sum())
    same, rare = scores.nunique().le(1).to_numpy(), _shares(scores).lt(0.5).to_numpy()
    tested, follows = table["corpora"] >= 3, table["lowest"] > 0
    says = ["nothing here", "not tested", "nothing here", FOLLOWS]
    table["says"] = np.select([same, ~tested, rare, follows], says, "changes sides")
    place = table["median"].where(table["says"] == FOLLOWS)
    return table.loc[place.sort_values(ascending=False).index].reset_index(drop=True)


def _shares(scores: pd.DataFrame) -> pd.Series:
    """Share of the replies that each metric scored; of a network's, among those that were drawn."""
    known, networks = scores.notna(), scores.columns.isin(evaluation_sets.ENCODER)
    of = np.where(networks, known.loc[:, networks].any(axis=1).sum(), len(scores))
    return known.sum() / of


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
    most = scores.loc[:, _shares(scores) >= 0.8]
    table = significance.rank_metrics(most, turns[chosen], turns["dialog"], "spearman", 1000, seed)
    table.insert(0, "rating", chosen)
    return table.assign(rank=table["rank"].mask((table["low"] <= 0) & (table["high"] >= 0)))


def group_means(
    turns: pd.DataFrame, values: pd.DataFrame, by: list[str], seed: int = 0
) -> pd.DataFrame:
    """Mean of each column per group of turns, with a 95 % bootstrap interval over its dialogs.

    Columns: those of `by`, metric, value, low, high, dialogs, turns (those with a value). With one
    dialog the interval is NaN.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1", "1", "2"]})
    >>> group_means(turns, pd.DataFrame({"length": [1.0, 3.0, 5.0]}), ["system"])["value"].tolist()
    [3.0]
    """
    rows = []
    for group, of in turns.groupby(by, sort=False):
        for name in values:
            found = resampling.bootstrap_mean(values.loc[of.index, name], of["dialog"], seed=seed)
            rows.append((*group, name, *found[:3], found.clusters, found.n))
    return pd.DataFrame(rows, columns=[*by, "metric", *BOUNDS, "dialogs", "turns"])


def mean_ratings(turns: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """`means` of each rating per system: system, rating, mean, low, high, dialogs, replies.

    No rows without ratings; counted are the replies that were rated.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1", "2"], "human_fun": [2.0, 4.0]})
    >>> mean_ratings(turns)[["system", "rating", "mean"]].values.tolist()
    [['A', 'human_fun', 3.0]]
    """
    names = {"metric": "rating", "value": "mean", "turns": "replies"}
    return group_means(turns, turns[rated(turns)], ["system"], seed).rename(columns=names)


def agent_profile(turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """`means` of each profile metric per agent, also in standard deviations of turns.

    Further columns: z (value minus the mean over all turns, in their standard deviations), z_low,
    z_high; NaN for a metric that is the same everywhere.

    >>> turns = pd.DataFrame({"system": "A", "agent": ["A", "B"], "dialog": ["1", "2"]})
    >>> agent_profile(turns, pd.DataFrame({"length": [1.0, 5.0]}))["z"].tolist()
    [-1.0, 1.0]
    """
    values = scores[[metric for metric in PROFILE if metric in scores]]
    table = group_means(turns, values, ["system", "agent"], seed)
    mean, spread = (table["metric"].map(of) for of in (values.mean(), values.std(ddof=0)))
    z = table[BOUNDS].sub(mean, axis=0).div(spread.replace(0, np.nan), axis=0)
    return table.join(z.set_axis(["z", "z_low", "z_high"], axis=1))


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
        try:
            shares = variance_split(turns, scores[name])["share"]
            rows.append({"metric": name, "note": "", **shares})
        except DataError as error:
            rows.append({"metric": name, "note": str(error).splitlines()[0]})
    return pd.DataFrame(rows, columns=["metric", "system", "agent", "dialog", "turn", "note"])


def strip_symbols(label: str) -> str:
    """A label without what figure fonts lack (emoji and other rare symbols), and no formula.

    >>> strip_symbols("Ada \U0001f916")
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


def beside_references(turns: pd.DataFrame, scores: pd.DataFrame, yours: str) -> Figure:
    """Each metric of `SHOWN`: middle half (bar), middle 90 % (line) and median of each corpus.

    In colour those of the file's systems (all as one, if many), with `yours` before their names;
    below them the public corpora, as notebook 11 recorded them in `11_reference_quantiles.csv`.

    >>> turns = pd.DataFrame({"system": ["A", "A", "A"]})
    >>> len(beside_references(turns, pd.DataFrame({"length": [1.0, 2.0, 3.0]}), "mine").axes)
    1
    """
    count = turns["system"].nunique()
    names = turns["system"] if count <= MANY else f"all {count} systems" + turns["system"].str[:0]
    own = pd.concat(quantiles(of, f"{yours}: {name}") for name, of in scores.groupby(names))
    public = recorded("11_reference_quantiles", [*own])
    table = pd.concat([own.assign(whose="your file"), public.assign(whose="public corpora")])
    table["who"] = table["corpus"].map(strip_symbols)
    shown = [name for name in SHOWN if name in set(own["metric"])]
    figure = _panels(table, shown, [("q05", "q95", 1.5), ("q25", "q75", 8)], "q50")
    medians = table.groupby(["metric", "whose"], sort=False)["q50"].agg(["min", "max"]).round(2)
    told = [f"{metric} {low:g} to {high:g} ({whose})"
            for (metric, whose), low, high in medians.loc[shown].itertuples()]  # fmt: skip
    figure.set_label(f"Quantiles of each corpus. Medians: {'; '.join(told)}.")
    return figure


def _panels(
    table: pd.DataFrame, shown: list[str], spans: list, dot: str, shared: str = ""
) -> Figure:
    """A panel per metric, in it a row per `who`: lines from one column to another, and a dot.

    `shared` names the axis that all panels share; without it each has its own.
    """
    size = 0.9 + 0.27 * table["who"].nunique()
    look = {"palette": ["C1", "0.6"], "sharex": bool(shared), "height": size, "aspect": 3.4 / size}
    look |= {"col": "metric", "col_order": shown, "col_wrap": min(3, len(shown))}
    grid = sns.FacetGrid(table, hue="whose", **look)
    for low, high, width in spans:
        grid.map(plt.hlines, "who", low, high, linewidth=width)
    grid.map(plt.scatter, dot, "who", s=45, color="black", edgecolor="white", zorder=3)
    grid.set_titles("{col_name}").set_axis_labels(shared, "")
    grid.axes.flat[0].invert_yaxis()
    return grid.figure


def profile_plot(profile: pd.DataFrame) -> Figure:
    """Each agent's profile: means in standard deviations of turns, with their intervals.

    Of more than twelve agents only the twelve that lie farthest out.

    >>> row = {"system": "A", "agent": "A", "metric": "length"}
    >>> row |= {"z": 0.2, "z_low": 0.0, "z_high": 0.4}
    >>> profile_plot(pd.DataFrame([row])).get_label()
    'Means of 1 agents. length: highest A (+0.2), lowest A (+0.2).'
    """
    own = profile["agent"] == profile["system"]
    who = (
        profile["agent"].where(own, profile["system"] + ": " + profile["agent"]).map(strip_symbols)
    )
    profile = profile.assign(who=who, whose="").dropna(subset="z")
    z = profile.pivot_table("z", "who", "metric", sort=False)
    outer = profile[profile["who"].isin(z.abs().max(axis=1).nlargest(MANY).index)]
    figure = _panels(outer, [*z], [("z_low", "z_high", 4)], "z", "standard deviations of turns")
    told = [f"{name}: highest {of.idxmax()} ({of.max():+.1f}), lowest {of.idxmin()} "
            f"({of.min():+.1f})" for name, of in z.items()]  # fmt: skip
    figure.set_label(f"Means of {len(z)} agents. {'; '.join(told)}.")
    return figure
