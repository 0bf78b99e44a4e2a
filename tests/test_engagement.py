"""Engagement scores and RED: against an independent pandas version, by properties, and on Spark."""

import dataclasses
import shutil

import comment_dump
import duckdb
import numpy as np
import pandas as pd
import pytest
import red_oracle

from lib import ROOT
from lib.endex import RedSettings as Settings
from lib.endex import red as engagement
from lib.endex import reddit
from lib.endex.red import NoPostsError, prepare


def two_months(tmp_path, n, window_log=22):
    """Dumps with every trap, the second in several frames and overlapping the first month.

    Beside them a stand-in for the classifier: a fixed fraction per comment, missing for a few.
    """
    first = comment_dump.write(
        tmp_path / "RC_1.zst", n // 2, seed=1, window_log=window_log
    )
    second = comment_dump.write(
        tmp_path / "RC_2.zst", n - n // 2, seed=2, frames=3, first_id=36**6 + n
    )
    reddit.to_parquet([first, second], tmp_path / "red")
    duckdb.sql(
        "copy (select id, (tokens * 37 % 101) / 100.0::double as ee "
        f"from '{tmp_path}/red/**/*.parquet' where tokens % 50 <> 49) "
        f"to '{tmp_path}/ee.pq' (format parquet)"
    )
    return [first, second], tmp_path / "red", tmp_path / "ee.pq"


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    dumps, folder, emotions = two_months(tmp_path_factory.mktemp("months"), 30_000)
    comments = red_oracle.read(dumps)
    ee = pd.read_parquet(emotions).set_index("id")["ee"]
    return folder, emotions, comments, ee


@pytest.mark.parametrize(("alpha", "cap"), [("footnote", 500), ("median", 40_162)])
def test_posts_and_sample_equal_the_oracle(months, alpha, cap):
    """With a cap that binds, and without one."""
    folder, emotions, comments, ee = months
    red = engagement.build_red(folder, Settings(alpha=alpha, cap=cap, seed=7), emotions)
    posts = red.posts().set_index("id").sort_index()
    oracle = red_oracle.posts(comments, ee, alpha).sort_index()
    assert (posts.index == oracle.index).all() and len(posts) > 3000
    for column in ("pv", "pvre", "pvbe", "ae", "z"):
        np.testing.assert_allclose(
            posts[column].astype(float), oracle[column].astype(float)
        )
    assert posts[["n_re", "n_be", "n_ae", "n_ee", "endex"]].stack().between(0, 1).all()
    drawn, sizes = (
        red_oracle.sample(oracle, cap, seed=7),
        oracle["label"].value_counts(),
    )
    assert sizes[0] != sizes[1]
    assert red.sample["label"].value_counts().eq(min(cap, sizes.min())).all()
    assert red_oracle.fingerprint(red.sample) == red_oracle.fingerprint(drawn)


def test_draw_carries_its_texts_and_follows_the_seed(months):
    folder, emotions, comments, _ = months
    first = engagement.build_red(folder, Settings(cap=200, seed=1), emotions).sample
    second = engagement.build_red(folder, Settings(cap=200, seed=2), emotions).sample
    texts = comments.set_index("id")["body"]
    assert (first["response"] == first["id"].map(texts)).all()
    assert (first["context"] == first["parent"].map(texts)).all()
    assert 0 < len(first.merge(second, on="id")) < len(first)


def test_every_condition_of_the_funnel_is_counted_by_pandas(months):
    """Each one on its own, in the order of the funnel, from the comments that the oracle read."""
    folder, emotions, comments, ee = months
    red = engagement.build_red(folder, Settings(), emotions)
    funnel = red.funnel().set_index("condition")
    assert funnel["comments"].iloc[-1] == len(red.posts())
    c = comments.set_index("id")
    parent = c.reindex(c["parent"]).set_axis(c.index)
    reply = c[c["parent"].notna()].assign(ee=ee.reindex(c.index))
    readable = reply[reply["usable"]]
    pv = 2 * c["parent"].map(reply.groupby("parent").size()) + parent["score"]
    conditions = {
        "answers another comment": c["parent"].notna(),
        "parent in the data": c["parent"].isin(c.index),
        "both texts usable": c["usable"] & (parent["usable"] == True),  # noqa: E712
        "neither text quotes": ~c["quote"] & (parent["quote"] == False),  # noqa: E712
        "has a reply": c.index.isin(reply["parent"]),
        "has a readable reply": c.index.isin(readable["parent"])
        & c.index.isin(readable.dropna(subset="ee")["parent"]),
        "votes known": c["score"].notna() & parent["score"].notna(),
        "popularity value above 0": pv > 0,
        "time known": c["created"].notna(),
        "not of the last days": c["created"] <= c["created"].max() - 86_400,
    }
    passed = pd.Series(True, c.index)
    for name, holds in conditions.items():
        passed &= holds
        assert funnel.loc[name, "comments"] == passed.sum(), name
        assert funnel.loc[name, "lost"] > 0, f"no trap for {name!r}"
    parts = (
        red.funnel("source").set_index(["source", "condition"])["comments"].unstack()
    )
    assert (parts.sum()[funnel.index] == funnel["comments"]).all() and len(parts) == 2
    assert parts["comment"].to_dict() == comments.groupby("source").size().to_dict()


def test_posts_of_unknown_time_have_a_reason_of_their_own(tmp_path):
    """Nobody can say whether they are of the last days, so they are left out with these.

    A post that is exactly one day older than the last comment stays, one a second younger goes.
    """
    rows = [("p", None, 5, 1), ("a", "p", 6, 3), ("b", "p", 6, 3), ("c", "p", 6, 3)]
    rows += [("r" + post, post, 1, 5) for post in "abc"]
    frame = make(rows).astype({"created": "Int64"})
    frame["created"] = [0, 9 * 86_400, None, 9 * 86_400 + 1, 10 * 86_400, 0, 0]
    for days, ids in ((1, ["a"]), (0, ["a", "b", "c"])):
        posts = score(frame, tmp_path, edge_days=days)
        assert sorted(posts["id"]) == ids


def test_equation_by_hand(tmp_path):
    """One thread: a parent with 3 votes and 2 replies, a post with 1 reply of 4 words, edited."""
    rows = [("p", None, 3, 0), ("a", "p", 4, 2), ("b", "p", 1, 3)]
    rows += [("r", "a", 1, 4), ("s", "b", 2, 6)]
    frame = make(rows, edited={"r"})
    posts = score(frame, tmp_path, ee={"r": 0.5, "s": 0.25}).set_index("id")
    # PV = 2 * 2 + 3 = 7 for both posts; medians: PV 7, RE 1, BE (4 + 1) / 2.
    assert posts["pv"].tolist() == [7, 7] and posts["re"].tolist() == [1, 1]
    assert posts.loc["a", "pvre"] == 1 + 7 / 1 * 1 / 7 * 1
    assert posts.loc["a", "pvbe"] == pytest.approx(4 + 7 / 2.5 * 4 / 7 * 4)
    assert posts.loc["a", "ae"] == 4 + 10 and posts.loc["b", "ae"] == 6
    expected = (3 * 2 / 3 + 10.4 / 12.4 + 3 * 14 / 32 + 2 * 0.5) / 9
    assert posts.loc["a", "endex"] == pytest.approx(expected)


def make(rows, **flags):
    """Comments from (id, parent, score, tokens); flags: sets of ids by column."""
    frame = pd.DataFrame(rows, columns=["id", "parent", "score", "tokens"])
    frame = frame.assign(link="l", source="d", subreddit="s", created=range(len(frame)))
    frame["retrieved"] = 0
    for column in ("controversial", "edited", "quote"):
        frame[column] = frame["id"].isin(flags.get(column, set()))
    frame["usable"] = ~frame["id"].isin(flags.get("unusable", set()))
    return frame.assign(body="text of " + frame["id"]).astype(
        {"score": "Int64", "tokens": "Int64"}
    )


def score(frame, tmp_path, ee=None, **options):
    """The eligible posts of a few comments; no edge, and any label distribution."""
    folder = tmp_path / "few"
    folder.mkdir(exist_ok=True)
    frame.to_parquet(folder / "part.parquet")
    ee = {i: 0.5 for i in frame["id"]} if ee is None else ee
    pd.DataFrame(ee.items(), columns=["id", "ee"]).to_parquet(tmp_path / "ee.parquet")
    engine = engagement.DuckDB()
    choices = Settings(**{"edge_days": 0, **options})
    prepare(engine, choices, folder, tmp_path / "ee.parquet")
    return engine.frame(engagement.POSTS)


def test_traps_of_the_formula(tmp_path):
    """No exposure, downvotes, controversy, missing votes and unreadable replies."""
    rows = [("p", None, 5, 1), ("q", None, -9, 1), ("h", None, None, 1)]
    rows += [("a", "p", 6, 3), ("b", "p", -3, 3), ("c", "p", 8, 3), ("d", "q", 4, 3)]
    rows += [("e", "h", 4, 3), ("f", "p", 4, 3), ("n", "p", None, 3)]
    rows += [("r" + post, post, 1, 5) for post in "abcdefn"]
    posts = score(make(rows, controversial={"c"}, unusable={"rf"}), tmp_path).set_index(
        "id"
    )
    assert sorted(posts.index) == [
        "a",
        "b",
        "c",
    ]  # d: PV < 0; e, n: votes unknown; f: no text
    assert posts["be"].to_dict() == {"a": 6, "b": 0, "c": 0}
    assert posts["pvbe"].isna().all()  # the median of BE is 0


def test_what_a_source_does_not_carry_is_missing_and_the_rest_is_summed(tmp_path):
    """No edits of the answers: e is missing and AE the longest answer; no flag: the votes count."""
    rows = [("p", None, 5, 1), ("a", "p", 6, 3), ("b", "p", 6, 3)]
    frame = make([*rows, ("r", "a", 1, 5), ("s", "b", 1, 5)], edited={"r"})
    frame = frame.astype({"edited": "boolean", "controversial": "boolean"})
    frame.loc[frame["id"] == "s", "edited"] = pd.NA
    frame.loc[frame["id"] == "b", "controversial"] = pd.NA
    posts = score(frame, tmp_path).set_index("id").sort_index()
    assert posts["e"].fillna(-1).tolist() == [1, -1] and posts["ae"].tolist() == [15, 5]
    assert posts["be"].tolist() == [6, 6]


def test_bots_and_deleted_replies_count_as_replies_only(tmp_path):
    rows = [("p", None, 5, 1), ("a", "p", 6, 3), ("r", "a", 1, 5), ("s", "a", 1, 50)]
    posts = score(make(rows, unusable={"s"}), tmp_path, ee={"r": 0.2, "s": 1.0})
    assert posts[["re", "t", "ee"]].iloc[0].tolist() == [2, 5, 0.2]
    assert (
        score(make(rows), tmp_path, {"r": 0.2, "s": 1.0}, ee_aggregate="max")["ee"][0]
        == 1
    )


@pytest.mark.parametrize(
    ("toxicity", "ids"), [([0.1, 0.9, 0.2], ["b"]), ([0.9, 0.1, 0.2], [])]
)
def test_toxicity_leaves_out_posts_and_parents(tmp_path, toxicity, ids):
    """A toxic parent takes both of its answers with it."""
    rows = [("p", None, 5, 1), ("a", "p", 6, 3), ("b", "p", 6, 3)]
    score(make([*rows, ("ra", "a", 1, 5), ("rb", "b", 1, 5)]), tmp_path)
    toxic = pd.DataFrame({"id": ["p", "a", "b"], "toxicity": toxicity})
    toxic.to_parquet(tmp_path / "toxic.parquet")
    engine, choices = engagement.DuckDB(), Settings(toxicity_above=0.5, edge_days=0)
    scores = {
        "emotions": tmp_path / "ee.parquet",
        "toxicity": tmp_path / "toxic.parquet",
    }
    prepare(engine, choices, tmp_path / "few", **scores)
    assert engine.frame(engagement.POSTS)["id"].tolist() == ids
    funnel = engagement.Red(toxic, engine).funnel().set_index("condition")
    assert funnel.loc["neither text toxic", "lost"] == 2 - len(ids)


@pytest.mark.parametrize("order", range(12))
def test_a_post_at_the_threshold_has_no_label_in_any_order(tmp_path, order):
    """Each of two posts is one standard deviation from the mean, give or take a rounding error."""
    answered = [0, 1, 0, 0, 3, 1, 1, 2, 7, 7, 0, 0, 0, 0, 1, 0, 11, 0, 0, 8]
    votes = [
        14,
        0,
        None,
        None,
        None,
        None,
        0,
        11,
        1,
        None,
        0,
        0,
        2,
        0,
        0,
        0,
        1,
        0,
        0,
        None,
    ]
    ids = [f"c{i:02d}" for i in range(20)]
    parents = [ids[a] if a < i else None for i, a in enumerate(answered)]
    frame = make(zip(ids, parents, votes, [0] * 19 + [1], strict=True), edited={"c18"})
    ee = dict.fromkeys(ids, 0.0) | {"c16": 0.09375, "c19": 1.0}
    posts = score(frame.sample(frac=1, random_state=order), tmp_path, ee)
    assert posts["z"].abs().tolist() == pytest.approx([1, 1], abs=1e-12)
    assert posts["label"].isna().all()


def test_copies_of_a_comment_count_once(months, tmp_path):
    folder, emotions, _, _ = months
    shutil.copytree(folder, tmp_path / "twice")
    copy = tmp_path / "twice" / "copy.parquet"
    part = next(folder.rglob("part-00000.parquet"))
    duckdb.sql(
        f"copy (select * replace (retrieved - 9 as retrieved, score + 5 as score) from '{part}') "
        f"to '{copy}' (format parquet)"
    )
    plain = engagement.build_red(folder, Settings(cap=300), emotions)
    doubled = engagement.build_red(tmp_path / "twice", Settings(cap=300), emotions)
    assert red_oracle.fingerprint(plain.sample) == red_oracle.fingerprint(
        doubled.sample
    )


def test_no_post_and_one_class_say_what_to_do(tmp_path):
    folder = tmp_path / "few"
    folder.mkdir()
    make([("p", None, 5, 1), ("a", "p", 6, 3)]).to_parquet(folder / "part.parquet")
    choices = Settings(edge_days=0, weights={"re": 1, "be": 1, "ae": 1, "ee": 0})
    with pytest.raises(NoPostsError, match="has a reply") as error:
        engagement.build_red(folder, choices)
    assert "answers another comment         1" in str(error.value)
    rows = [("p", None, 5, 1), ("a", "p", 6, 3), ("r", "a", 1, 9)]
    make(rows).to_parquet(folder / "part.parquet")
    with pytest.raises(
        NoPostsError, match="of 1 eligible posts: 0 engaging and 0 non-engaging"
    ):
        engagement.build_red(folder, choices)
    make([rows[0], ("a", "p", 0, 3), rows[2]]).to_parquet(folder / "part.parquet")
    with pytest.raises(ValueError, match="median of BE is 0"):
        engagement.build_red(folder, choices)


def test_missing_inputs_are_named(tmp_path, months):
    with pytest.raises(ValueError, match="pass emotions="):
        engagement.build_red(months[0])
    with pytest.raises(FileNotFoundError, match="run lib.endex.to_parquet first"):
        engagement.build_red(tmp_path, emotions=months[1])


def command(*options, **paths):
    """Run the command; paths become options."""
    for name, path in paths.items():
        options = (*options, f"--{name}", str(path))
    return engagement.main(list(options))


def test_the_command_writes_the_sample(months, tmp_path, capsys):
    folder, emotions, _, _ = months
    out = tmp_path / "red.parquet"
    given = {"comments": folder, "emotions": emotions, "out": out, "cap": 300}
    assert command(**given) == 0
    ours = engagement.build_red(folder, Settings(cap=300), emotions).sample
    pd.testing.assert_frame_equal(pd.read_parquet(out), ours, check_dtype=False)
    assert "300 engaging and 300 other posts" in capsys.readouterr().out
    assert command("--without-emotions", comments=folder, out=out) == 0
    assert command(comments=folder, out=out) == 1
    assert "pass emotions=" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_draws_the_same_sample_on_spark(months, tmp_path, monkeypatch):
    settings = "--conf spark.sql.shuffle.partitions=4 --conf spark.ui.enabled=false"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{settings} pyspark-shell")
    folder, emotions, _, _ = months
    given = {"comments": folder, "emotions": emotions, "cap": 300}
    assert command(out=tmp_path / "duckdb.parquet", **given) == 0
    spark = {"engine": "spark", "master": "local[2]"}
    assert command(out=tmp_path / "spark.parquet", **spark, **given) == 0
    ours, theirs = (
        pd.read_parquet(tmp_path / f"{engine}.parquet")
        for engine in ("duckdb", "spark")
    )
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, rtol=1e-9)


def test_settings_are_checked():
    for change in (
        {"alpha": "mean"},
        {"ee_aggregate": "sum"},
        {"weights": {"re": 1.0}},
    ):
        with pytest.raises(ValueError, match=r"alpha is|weights need"):
            dataclasses.replace(Settings(), **change)


def test_every_step_runs_alone_and_says_what_it_does(months):
    red = engagement.build_red(months[0], Settings(), months[1])
    assert len(engagement.sql_steps()) == 10
    for name, sql in engagement.sql_steps().items():
        assert sql.startswith("--") and len(red.step(name)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [20_000, 1_000_000])
def test_duckdb_spark_and_pandas_draw_the_same_sample(tmp_path, n):
    from pyspark.sql import SparkSession

    dumps, folder, emotions = two_months(tmp_path, n, window_log=31)
    choices = Settings(cap=min(n // 50, 40_162))
    ours = engagement.build_red(folder, choices, emotions).sample
    ee = pd.read_parquet(emotions).set_index("id")["ee"]
    oracle = red_oracle.sample(
        red_oracle.posts(red_oracle.read(dumps), ee), choices.cap
    )
    options = {"spark.ui.enabled": "false", "spark.driver.memory": "4g"}
    options["spark.sql.shuffle.partitions"] = "8"
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    try:
        spark = engagement.build_red(
            folder, choices, emotions, engine=engagement.Spark(session)
        ).sample
    finally:
        session.stop()
    assert len(ours) == 2 * choices.cap
    prints = {red_oracle.fingerprint(sample) for sample in (ours, spark, oracle)}
    print(n, prints)
    assert len(prints) == 1
    pd.testing.assert_frame_equal(ours, spark, check_dtype=False, rtol=1e-9)


def test_sentences_of_notebook_04_on_the_sources_follow_from_its_tables():
    forums, sources = results("05_forums"), results("05_sources").set_index("source")
    large = ["CollegeRant", "Emory", "CollegeMajors", "CollegeAdvice", "changemyview"]
    posts = forums.set_index("subreddit")["posts"]
    assert (
        len(forums) == 53 and 0.7 < posts[large].sum() / posts.sum() < 0.8
    )  # three of four
    assert posts.drop(large).median() == pytest.approx(60, abs=1)  # about 60 each
    funnel = results("05_funnel").set_index("condition")["comments"]
    assert funnel["has a reply"] / funnel["neither text quotes"] == pytest.approx(
        0.5, abs=0.01
    )
    other = sources.drop("reddit_college")
    assert (
        0.35 < other["pairs"].sum() / sources["pairs"].sum() < 0.42
    )  # two of five pairs
    by_source = results("05_funnel_sources").set_index("condition").loc["comment"]
    assert by_source.drop("reddit_college").sum() > by_source.sum() / 2
    medians = sources[["be", "ae"]]
    assert medians.idxmax().tolist() == ["reddit_52_forums", "reddit_cmv"]


def results(name):
    return pd.read_csv(ROOT / f"data/results/{name}.csv")
