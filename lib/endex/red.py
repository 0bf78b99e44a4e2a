"""RED, the Reddit Engagement Dataset: posts scored by the reactions they received, and labelled.

The equations are plain SQL, which DuckDB and Spark run unchanged: the dimensions and their monotone
submodular normalization in engagement.sql, the labelled sample in sample.sql.

From a shell, on this machine or on a Spark cluster (`pip install '.[spark]'`):

    python -m lib.endex.red --comments comments --emotions emotions --out red.parquet
    python -m lib.endex.red --engine spark --master spark://host:7077 --comments comments \
        --without-emotions --out red.parquet
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pandas as pd

from lib.data.storage import atomic_write
from lib.endex.reddit import parquet_files

# Of Table 1: the footnote of section 2.4; "median": the median of the adjusted dimension, as the
# text says.
FOOTNOTE_ALPHAS = {"re": 1.0, "be": 2.0, "ae": 18.0}
# Of the reply, attentional, emotional and behavioral dimension.
FOOTNOTE_WEIGHTS = {"re": 3.0, "ae": 3.0, "ee": 2.0, "be": 1.0}
FOLDER = Path(__file__).parent
POSTS = (FOLDER / "engagement.sql").read_text(encoding="utf-8")
SAMPLE = (FOLDER / "sample.sql").read_text(encoding="utf-8")
FUNNEL = (FOLDER / "funnel.sql").read_text(encoding="utf-8")


@dataclass(frozen=True)
class RedSettings:
    """Choices of the recipe; the defaults are the paper's where it states them.

    Attributes:
        alpha: "footnote" (1, 2, 18 for RE, BE, AE) or "median" of each adjusted dimension.
        weights: by dimension; re 3, ae 3, ee 2, be 1 in the footnote. EE with weight 0 needs no
            classifier.
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
    weights: Mapping[str, float] = field(default_factory=FOOTNOTE_WEIGHTS.copy)
    kappa: float = 1.0
    cap: int = 40_162
    seed: int = 0
    ee_aggregate: str = "mean"
    toxicity_above: float | None = None
    edge_days: float = 1.0

    def __post_init__(self) -> None:
        if self.alpha not in ("footnote", "median") or self.ee_aggregate not in (
            "mean",
            "max",
        ):
            raise ValueError(
                "alpha is 'footnote' or 'median', and ee_aggregate 'mean' or 'max'"
            )
        if (
            self.weights.keys() != FOOTNOTE_WEIGHTS.keys()
            or max(self.weights.values()) <= 0
        ):
            raise ValueError(
                f"weights need re, be, ae and ee, not all 0: {self.weights}"
            )

    def sql(self) -> str:
        """The one row of the relation `settings`, as a query over `single` for any engine.

        >>> RedSettings().sql().split(", ")[0]
        'select cast(1.0 as double) as kappa'
        """
        numbers = {"kappa": self.kappa, "toxicity_above": self.toxicity_above}
        for name, alpha in FOOTNOTE_ALPHAS.items():
            numbers[f"alpha_{name}"] = alpha if self.alpha == "footnote" else None
        for name, weight in self.weights.items():
            numbers[f"w_{name}"] = weight
        columns = []
        for name, number in numbers.items():
            value = "null" if number is None else float(number)
            columns.append(f"cast({value} as double) as {name}")
        # Up to the first second of the last days; it is 0 where no time is known: no post is left.
        return f"""select {", ".join(columns)}, {self.cap} as cap, {self.seed} as seed,
            '{self.ee_aggregate}' as ee_aggregate, case when {self.edge_days} > 0 then
                coalesce(cast(floor(max(created) - {self.edge_days * 86_400}) as bigint) + 1, 0)
            end as created_before from single"""


class DuckDB:
    """DuckDB inside this process: one machine, no set-up.

    A name that is given again stands for the new files or query alone.
    """

    def __init__(self):
        self.connection = duckdb.connect()
        self._kinds: dict[str, str] = {}  # "view" or "table", by name

    def read(self, name: str, files: Sequence[Path]) -> None:
        """Give Parquet files a name."""
        paths = []
        for file in files:
            path = str(file).replace("'", "''")
            paths.append(f"'{path}'")
        self.view(name, f"select * from read_parquet([{', '.join(paths)}])")

    def view(self, name: str, sql: str, materialize: bool = False) -> None:
        """Give a query a name; it runs each time the name is used, or once if materialized."""
        kind = "table" if materialize else "view"
        earlier = self._kinds.get(name, kind)
        # DuckDB replaces a view by a view and a table by a table only.
        if earlier != kind:
            self.connection.execute(f"drop {earlier} {name}")
        self.connection.execute(f"create or replace temp {kind} {name} as {sql}")
        self._kinds[name] = kind

    def frame(self, sql: str) -> pd.DataFrame:
        """Run a query and return its rows."""
        return self.connection.execute(sql).df()


class Spark:
    """A Spark session: the same SQL, by the same functions, on one machine or on a cluster.

    Args:
        session: a `pyspark.sql.SparkSession`. Files are named as its cluster sees them.
    """

    def __init__(self, session):
        self.session = session

    def read(self, name: str, files: Sequence[Path]) -> None:
        self.session.read.parquet(*map(str, files)).createOrReplaceTempView(name)

    def view(self, name: str, sql: str, materialize: bool = False) -> None:
        rows = self.session.sql(sql)
        if materialize:
            rows = rows.cache()
        rows.createOrReplaceTempView(name)

    def frame(self, sql: str) -> pd.DataFrame:
        return self.session.sql(sql).toPandas()


def sql_steps() -> dict[str, str]:
    """The steps of engagement.sql by name, in order, each with the comment above it.

    >>> list(sql_steps())[:4]
    ['reactions', 'pairs', 'eligible', 'medians']
    """
    step = r"(?:^--.*\n)*^(?P<name>\w+) as \(\n(?:.*\n)*?^\),?\n"
    return {match["name"]: match[0] for match in re.finditer(step, POSTS, re.MULTILINE)}


class NoPostsError(ValueError):
    """No sample can be drawn; the message says at which condition the posts were lost."""


@dataclass(frozen=True, eq=False)
class Red:
    """The sample, and the engine that still holds the posts it was drawn from.

    Attributes:
        sample: one row per labelled pair: id, parent, link, source (the dump), subreddit, label (1
            engaging, 0 not),
            endex (0-1), z, n_re, n_be, n_ae, n_ee (0-1), draw, context, response.
        engine: answers further queries on `comments`, `emotions`, `settings` and `posts`.
    """

    sample: pd.DataFrame
    engine: DuckDB | Spark

    def posts(self) -> pd.DataFrame:
        """Every eligible post with raw, adjusted and normalised dimensions, score, z and label."""
        return self.engine.frame("select * from posts order by draw, id").astype(
            {"label": "Int8"}
        )

    def step(self, name: str) -> pd.DataFrame:
        """The rows of one step of engagement.sql, such as "medians" or "alphas"."""
        before, step, _ = POSTS.partition(sql_steps()[name].rstrip(",\n"))
        return self.engine.frame(f"{before}{step} select * from {name}")

    def funnel(self, part: str | None = None) -> pd.DataFrame:
        """How many comments are left after each condition, and how many each one takes away.

        Args:
            part: "source" or "subreddit": counted for each of them; all comments by default.
        """
        column = part or "'all'"
        self.engine.view(
            "comments_by_part", f"select *, {column} as part from comments"
        )
        counts = self.engine.frame(FUNNEL).astype(
            {"comments": "int64", "lost": "Int64"}
        )
        if part is None:
            return counts.drop(columns="part")
        return counts.rename(columns={"part": part})


def build_red(
    comments: str | Path,
    settings: RedSettings | None = None,
    emotions: str | Path | None = None,
    toxicity: str | Path | None = None,
    engine: DuckDB | Spark | None = None,
) -> Red:
    """Score the engagement of posts and draw a balanced sample of engaging and other posts.

    EnDex, section 2 and appendix A: engagement.sql holds one step per equation.

    Args:
        comments: folder written by `lib.endex.to_parquet`, or one that holds such folders.
        settings: the paper's values by default.
        emotions: Parquet file or folder with id and ee, the positive emotion of each reply (0-1),
            written by `score_replies`. Needed unless the weight of EE is 0.
        toxicity: Parquet with id and toxicity (0-1) of posts and parents, such as
            `lib.metrics.toxicity` gives; needed where `toxicity_above` is set.
        engine: `DuckDB()` by default; `Spark(session)` runs the same SQL on a cluster.

    Returns:
        A `Red`. The same ids and labels on every engine, whatever the order of the input.

    Raises:
        NoPostsError: no post is eligible, or all labelled posts are of one class.
        ValueError: emotions are needed and not given, or a median is 0.
    """
    settings = settings or RedSettings()
    engine = engine or DuckDB()
    prepare(engine, settings, comments, emotions=emotions, toxicity=toxicity)
    engine.view("posts", POSTS, materialize=True)
    red = Red(engine.frame(SAMPLE), engine)
    if red.sample["label"].nunique() < 2:
        raise NoPostsError(_no_sample_message(red))
    return red


def prepare(
    engine, settings: RedSettings, comments, emotions=None, toxicity=None
) -> None:
    """Give the engine the relations that the SQL texts read: comments, emotions and settings."""
    if emotions is None and settings.weights["ee"] > 0:
        raise ValueError(
            "EE has a weight and no emotions are given: pass emotions= (see score_replies), or "
            "weights with ee 0."
        )
    read_comments(engine, comments)
    _register_scores(engine, "emotions", "ee", path=emotions)
    _register_scores(engine, "toxicities", "toxicity", path=toxicity)
    engine.view("comments", "select * from single left join toxicities using (id)")
    engine.view("settings", settings.sql(), materialize=True)


def read_comments(engine: DuckDB | Spark, comments: str | Path) -> None:
    """Give the engine the relation `single`: each comment once, although two dumps may hold it."""
    engine.read("features", parquet_files(comments))
    copies = engine.frame("select count(*) - count(distinct id) as n from features")[
        "n"
    ][0]
    if copies:
        engine.view("single", _LATEST, materialize=True)
    else:
        engine.view("single", "select * from features")


def _register_scores(engine, name: str, column: str, path: str | Path | None) -> None:
    """Register the scores of comments: a relation `name` with the columns id and `column`.

    It has no rows where `path` is None.
    """
    if path is None:
        engine.view(
            name, f"select id, cast(null as double) as {column} from single limit 0"
        )
    else:
        engine.read(name, parquet_files(path))


# The same comment in two dumps: the record made last, whatever the order of the files.
_LATEST = """
select * from (
    select features.*, row_number() over (
        partition by id order by coalesce(retrieved, 0) desc, coalesce(score, 0) desc, body
    ) as version from features
) versions where version = 1
"""


def _no_sample_message(red: Red) -> str:
    posts = red.posts()
    n_engaging = (posts["label"] == 1).sum()
    n_other = (posts["label"] == 0).sum()
    reason = f"{n_engaging} engaging and {n_other} non-engaging"
    if len(posts) and posts["pvbe"].isna().all():
        reason = (
            "half have no votes: the median of BE is 0, and equation 6 divides by it"
        )
    return (
        f"no sample can be drawn of {len(posts)} eligible posts: {reason}. Use more comments, "
        "other forums or a smaller kappa. Comments left after each condition:\n"
        + red.funnel().to_string(index=False)
    )


def main(arguments: list[str] | None = None) -> int:
    """Curate from a shell: score the posts, draw the sample, write it as one Parquet file."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.endex.red",
        description="Score the engagement of posts and draw RED's labelled sample.",
    )
    add = parser.add_argument
    add("--comments", required=True, help="folder written by lib.endex.to_parquet")
    add("--out", required=True, help="Parquet file for the sample")
    add("--emotions", help="Parquet with id and ee, written by lib.endex.score_replies")
    add("--without-emotions", action="store_true", help="give EE the weight 0")
    add("--toxicity", help="Parquet with id and toxicity; needs --toxicity-above")
    add("--toxicity-above", type=float, help="leave out more toxic posts")
    add("--kappa", type=float, default=1.0, help="standard deviations from the mean")
    add("--cap", type=int, default=40_162, help="most posts of a class")
    add("--edge-days", type=float, default=1.0, help="last days that are left out")
    add("--seed", type=int, default=0)
    add("--engine", choices=["duckdb", "spark"], default="duckdb")
    add(
        "--master",
        help="of Spark, such as spark://host:7077; its own setting by default",
    )
    args = parser.parse_args(arguments)
    weights = FOOTNOTE_WEIGHTS.copy()
    if args.without_emotions:
        weights["ee"] = 0.0
    settings = RedSettings(
        weights=weights,
        kappa=args.kappa,
        cap=args.cap,
        seed=args.seed,
        toxicity_above=args.toxicity_above,
        edge_days=args.edge_days,
    )
    engine = DuckDB()
    if args.engine == "spark":
        engine = Spark(_spark_session(args.master))
    try:
        red = build_red(
            args.comments,
            settings,
            emotions=args.emotions,
            toxicity=args.toxicity,
            engine=engine,
        )
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with atomic_write(args.out) as unfinished:
        red.sample.to_parquet(unfinished, index=False)
    counts = red.sample["label"].value_counts()
    print(f"{args.out}: {counts[1]:,} engaging and {counts[0]:,} other posts")
    return 0


def _spark_session(master: str | None):
    """A Spark session at a master, or where Spark's own settings say."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        sys.exit(
            "Spark is not installed: pip install '.[spark]' (it needs Java as well)"
        )
    builder = SparkSession.builder.appName("RED")
    if master:
        builder = builder.master(master)
    return builder.getOrCreate()


if __name__ == "__main__":
    sys.exit(main())
