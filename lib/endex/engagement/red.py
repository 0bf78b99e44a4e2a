"""Build RED, the Reddit Engagement Dataset: labelled pairs of a comment and its parent."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib.endex.engagement.engines import DuckDB, Spark
from lib.endex.engagement.settings import Settings
from lib.endex.engagement.steps import text, up_to
from lib.endex.reddit import parquet_files

CONDITIONS = (
    "comment",
    "answers another comment",
    "parent in the data",
    "both texts usable",
    "neither text quotes",
    "has a reply",
    "has a readable reply",
    "neither text toxic",
    "votes known",
    "popularity value above 0",
    "time known",
    "not of the last days",
)


class NoPostsError(ValueError):
    """No sample can be drawn; the message says at which condition the posts were lost."""


@dataclass(frozen=True, eq=False)
class Red:
    """The sample, and the engine that still holds the posts it was drawn from.

    Attributes:
        sample: one row per labelled pair: id, parent, link, subreddit, label (1 engaging, 0 not),
            endex (0-1), z, n_re, n_be, n_ae, n_ee (0-1), draw, context, response.
        settings: the choices that made it.
        engine: answers further queries on `comments`, `emotions`, `settings` and `posts`.
    """

    sample: pd.DataFrame
    settings: Settings
    engine: DuckDB | Spark

    def posts(self) -> pd.DataFrame:
        """Every eligible post with raw, adjusted and normalised dimensions, score, z and label."""
        frame = self.engine.frame("select * from posts order by draw, id")
        frame["label"] = frame["label"].astype("Int8")
        return frame

    def step(self, name: str) -> pd.DataFrame:
        """The rows of one step of posts.sql, such as "medians" or "alphas"."""
        return self.engine.frame(up_to(name))

    def funnel(self) -> pd.DataFrame:
        """How many comments are left after each condition, and how many each one takes away."""
        return _funnel(self.engine, self.settings)


def build(
    comments: str | Path | Iterable[str | Path],
    settings: Settings | None = None,
    emotions: str | Path | None = None,
    toxicity: str | Path | None = None,
    engine: DuckDB | Spark | None = None,
) -> Red:
    """Score the engagement of posts and draw a balanced sample of engaging and other posts.

    EnDex, section 2 and appendix A: posts.sql holds one step per equation.

    Args:
        comments: folders written by `lib.endex.reddit`, or one folder that holds them.
        settings: the paper's values by default.
        emotions: Parquet file or folder with id and ee, the positive emotion of each reply (0-1),
            written by `lib.endex.emotions`. Needed unless the weight of EE is 0.
        toxicity: Parquet with id and toxicity (0-1); needed where `toxicity_above` is set.
        engine: `DuckDB()` by default; `Spark(session)` runs the same SQL on a cluster.

    Returns:
        A `Red`. The same ids and labels on every engine, whatever the order of the input.

    Raises:
        NoPostsError: no post is eligible, or all labelled posts are of one class.
        ValueError: emotions or toxicity are needed and not given, or a median is 0.
    """
    settings, engine = settings or Settings(), engine or DuckDB()
    prepare(engine, settings, comments, emotions, toxicity)
    engine.keep("posts", text("posts"))
    _check_posts(engine, settings)
    sample = engine.frame(text("sample"))
    return Red(sample, settings, engine)


def fingerprint(sample: pd.DataFrame) -> str:
    """md5 over ids and labels in the order of the ids: equal for equal samples.

    >>> fingerprint(pd.DataFrame({"id": ["b", "a"], "label": [0, 1]}))[:8]
    'a4173f9c'
    """
    ordered = sample.sort_values("id")
    lines = "".join(f"{i},{int(v)}\n" for i, v in zip(ordered["id"], ordered["label"], strict=True))
    return hashlib.md5(lines.encode()).hexdigest()


def prepare(engine, settings: Settings, comments, emotions=None, toxicity=None) -> None:
    """Give the engine the relations that the SQL texts read: comments, emotions and settings."""
    if emotions is None and dict(settings.weights)["ee"] > 0:
        raise ValueError(
            "EE has a weight and no emotions are given: pass emotions= (see lib.endex.emotions), or "
            "weights with ee 0."
        )
    if toxicity is None and settings.toxicity_above is not None:
        raise ValueError("toxicity_above is set: pass toxicity=, a Parquet of id and toxicity.")
    engine.read("features", parquet_files(comments))
    if engine.frame("select count(*) - count(distinct id) as n from features")["n"][0]:
        engine.keep("single", _LATEST)
    else:
        engine.view("single", "select * from features")
    if emotions is None:
        engine.view("emotions", "select id, cast(null as double) as ee from single where 1 = 0")
    else:
        engine.read("emotions", parquet_files(emotions))
    if toxicity is None:
        engine.view("comments", "select *, cast(null as double) as toxicity from single")
    else:
        engine.read("toxicities", parquet_files(toxicity))
        engine.view("comments", "select * from single left join toxicities using (id)")
    before = _edge(engine, settings.edge_days)
    engine.view("settings", f"{settings.sql()}, cast({before} as bigint) as created_before")


def _edge(engine, days: float) -> int | str:
    """First second of the last days of the data; "null" where they are not left out."""
    if not days:
        return "null"
    last = engine.frame("select max(created) as last from single")["last"][0]
    # Without any time known the edge is nowhere: every post is left out, and counted as such.
    return 0 if pd.isna(last) else int(last - days * 86_400) + 1


# The same comment in two dumps: the record made last, whatever the order of the files.
_LATEST = """
select * from (
    select features.*, row_number() over (
        partition by id order by coalesce(retrieved, 0) desc, coalesce(score, 0) desc, body
    ) as version from features
) versions where version = 1
"""


def _check_posts(engine, settings: Settings) -> None:
    """Stop where no sample can be drawn, and say why."""
    counts = engine.frame(
        "select count(*) as posts, count(case when label = 1 then 1 end) as engaging, "
        "count(case when label = 0 then 1 end) as other, count(pvre) as re, count(pvbe) as be "
        "from posts"
    ).iloc[0]
    if counts["posts"] == 0:
        lost = _funnel(engine, settings).to_string(index=False)
        raise NoPostsError(f"no eligible post. Comments left after each condition:\n{lost}")
    if counts["be"] < counts["posts"]:
        raise ValueError(
            f"half of the {counts['posts']} eligible posts have no votes: the median of BE is 0, "
            "and equation 6 divides by it. Use more comments or other forums."
        )
    if not counts["engaging"] or not counts["other"]:
        raise NoPostsError(
            f"one class only: {counts['engaging']} engaging and {counts['other']} non-engaging "
            f"posts of {counts['posts']} at kappa {settings.kappa}. Use more comments, or a "
            "smaller kappa."
        )


def _funnel(engine, settings: Settings) -> pd.DataFrame:
    passed = engine.frame(text("funnel")).set_index("passed")["n"]
    passed = passed.reindex(range(len(CONDITIONS)), fill_value=0)
    left = passed[::-1].cumsum()[::-1]
    funnel = pd.DataFrame(
        {"condition": CONDITIONS, "comments": left.to_numpy(), "lost": -left.diff().to_numpy()}
    ).astype({"lost": "Int64"})
    off = []
    if settings.toxicity_above is None:
        off.append("neither text toxic")
    if not settings.edge_days:
        off += ["time known", "not of the last days"]
    funnel["applied"] = ~funnel["condition"].isin(off)
    return funnel
