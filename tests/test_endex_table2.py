"""EnDex beside the rules: the numbers by other formulas, and what notebook 06 says of them."""

import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_notebooks import prose

from lib import ROOT, endex, metrics
from lib.meta_evaluation import figures
from lib.meta_evaluation.replication import endex_table2

COEFFICIENTS = ("pearson", "spearman")
WORDS = [
    "no",
    "we swam",
    "how was it ?",
    "I baked a loaf of rye",
    "the lake was cold and clear",
]


def turns(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 4))) for _ in range(n)]
    keys = {
        "system": "A",
        "agent": "A",
        "dialog": [f"d{i}" for i in range(n)],
        "turn": 1,
    }
    return pd.DataFrame({**keys, "context": [["hello"]] * n, "response": texts})


@pytest.fixture
def sets():
    rng = np.random.default_rng(7)
    result = {}
    for name, table in {"P": turns(40, 0), "Q": turns(25, 1)}.items():
        ratings = rng.integers(1, 6, len(table)) * 1.0
        result[name] = (table, pd.Series(ratings, table.index))
    return result


@pytest.fixture
def values(sets):
    """Scores in the form of `all_scores`, of two methods with three seeds and of one rule."""
    rng = np.random.default_rng(3)
    frames = {}
    for name, (table, human) in sets.items():
        columns = {("Length", 0): metrics.length(table)}
        for key in product(endex_table2.METHODS, range(3)):
            columns[key] = 0.1 * human + rng.random(len(table))
        frames[name] = pd.DataFrame(columns).rename_axis(["method", "seed"], axis=1)
    return frames


@pytest.fixture
def runs(tmp_path):
    """Two methods with two seeds each; losses and AUC that tell the runs apart."""
    models = {}
    for i, key in enumerate(product(endex_table2.METHODS, (0, 1))):
        history = [(step, 0.7 / step + 0.01 * i) for step in range(1, 9)]
        validation = [{"epoch": e, "auc": 0.5 + 0.1 * e + 0.01 * i} for e in range(3)]
        record = {"history": history, "validation": validation}
        models[key] = endex.TrainedModel(tmp_path / f"{i}", record)
    return models


@pytest.fixture
def networks(monkeypatch):
    """The score of a network, made of its folder's name and the reply's length."""

    def compute(table, names, options, **_):
        assert names == ["endex"] and options["endex"]["max_length"] == 40
        folder = Path(options["endex"]["model"])
        return pd.DataFrame({"endex": metrics.length(table) / (10 + int(folder.name))})

    monkeypatch.setattr(endex_table2, "compute", compute)


def test_a_missing_reply_has_no_score_and_seeds_are_averaged(runs, networks):
    table = turns(6, 0).assign(response=[*WORDS, None]).astype({"response": object})
    scores = endex_table2.all_scores(table, runs, 40)
    assert scores["Question", 0].tolist()[:3] == [0, 0, 1]
    assert scores.drop(columns="Random", level="method").iloc[5].isna().all()
    means = endex_table2.seed_means(scores)
    assert means.loc[1, "EnDex"] == pytest.approx((2 / 10 + 2 / 11) / 2)


def test_correlations_are_those_of_scipy(values, sets):
    table2 = endex_table2.endex_correlations(values, sets)
    table2 = table2.set_index(["dataset", "method", "seed"])
    assert len(table2) == sum(frame.shape[1] for frame in values.values())
    for name, (table, human) in sets.items():
        words = [len(re.findall(r"\w+", text)) for text in table["response"]]
        for (method, seed), score in values[name].items():
            row = table2.loc[name, method, seed]
            assert row["pearson"] == pytest.approx(
                stats.pearsonr(score, human).statistic
            )
            assert row["spearman"] == pytest.approx(
                stats.spearmanr(score, human).statistic
            )
            assert row["with length"] == pytest.approx(
                stats.spearmanr(score, words).statistic
            )
            if method == "Length":
                assert np.isnan(row["partial"])  # length explains all of length
            else:
                assert row["partial"] == pytest.approx(
                    residual_correlation(score, human, words)
                )


def residual_correlation(x, y, z):
    """Correlation of what a line in the ranks of z leaves of the ranks of x and y."""
    x, y, z = (stats.rankdata(v) for v in (x, y, z))
    design = np.column_stack([np.ones_like(z), z])
    residuals = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    return np.corrcoef(residuals)[0, 1]


def test_intervals_are_of_resampled_dialogs_and_of_the_mean_over_seeds(values, sets):
    """Defect N10: Table 2 had the spread of the seeds alone."""
    table, human = sets["P"]
    table["dialog"] = [f"d{i // 2}" for i in range(len(table))]  # two replies each
    intervals = endex_table2.item_intervals(values, sets, resamples=2000)
    rng = np.random.default_rng(1)
    means = []
    for _ in range(1000):
        first_replies = 2 * rng.integers(0, 20, 20)
        items = np.concatenate([first_replies, first_replies + 1])
        scores = values["P"]["EnDex"].iloc[items]
        means.append(
            np.mean([stats.pearsonr(scores[s], human.iloc[items])[0] for s in range(3)])
        )
    row = intervals.loc["EnDex", "P"]
    expected = np.percentile(means, [2.5, 97.5])
    np.testing.assert_allclose(
        row[["pearson low", "pearson high"]], expected, atol=0.04
    )
    values["P"].loc[0, ("EnDex", 1)] = np.nan
    assert endex_table2.item_intervals(values, sets, 50).notna().all(axis=None)


def test_reply_scores_without_a_method_are_missing(values, sets):
    only = {
        name: frame.drop(columns="EnDex+NS", level=0) for name, frame in values.items()
    }
    assert endex_table2.reply_scores(only, sets)["endex_ns_seeds"].isna().all()


def test_verdict_compares_the_mean_with_the_best_rule():
    rows = [("EnDex", 0, 0.3, 0.1), ("EnDex", 1, 0.5, 0.2), ("Question", 0, 0.1, 0.3)]
    rows += [
        ("Specificity", 0, 0.39, 0.1),
        ("Length", 0, -0.9, 0.0),
        ("Random", 0, 0.9, 0.9),
    ]
    table2 = pd.DataFrame(rows, columns=["method", "seed", "pearson", "spearman"])
    index = pd.MultiIndex.from_tuples([("EnDex", "P")], names=["method", "dataset"])
    paper = pd.DataFrame({"pearson": [0.6], "spearman": [0.1]}, index)
    row = endex_table2.compare_with_published(table2.assign(dataset="P"), paper).loc[
        "EnDex", "P"
    ]
    assert row["pearson"] == pytest.approx(0.4) and row["pearson, best rule"] == 0.39
    assert (
        row["pearson beats rules"] and not row["spearman beats rules"]
    )  # chance is no rule
    assert row["pearson minus paper"] == pytest.approx(-0.2)


def dialogs():
    table = pd.DataFrame(
        {"system": list("AAB"), "agent": list("aab"), "dialog": list("def")}
    )
    table["utterances"] = [
        ["hi", "we swam", "oh", "how was it ?"],
        ["hi", "no"],
        ["hi"],
    ]
    table["speakers"] = [["user", "system"] * 2, ["user", "system"], ["user"]]
    return table.assign(human_overall=[4.0, 2.0, 3.0]).set_index(pd.Index([5, 9, 2]))


def test_dialogs_are_means_over_their_replies(runs, networks):
    pooled = endex_table2.pool_dialogs(dialogs(), runs, 40)
    assert pooled["dialog"].tolist() == ["d", "e", "f"] and pooled.index.tolist() == [
        0,
        1,
        2,
    ]
    assert pooled["Length"].tolist()[:2] == [(2 + 3) / 2, 1]
    assert pooled.loc[0, "EnDex"] == pytest.approx(((2 + 3) / 10 + (2 + 3) / 11) / 4)
    assert pooled.loc[2, ["EnDex", "EnDex+NS", "Length"]].isna().all()  # no reply in it


def test_tracking_is_spearman_of_dialogs_and_of_agents():
    rng = np.random.default_rng(5)
    n = 60
    pooled = pd.DataFrame(rng.random((n, 3)), columns=["EnDex", "EnDex+NS", "Length"])
    pooled["agent"] = rng.choice(list("abcde"), n)
    pooled["human_overall"] = pooled["EnDex"] + rng.random(n)
    pooled["human_fun"] = rng.random(n)
    pooled["human_z_fun"] = 1.0
    table = endex_table2.dialog_correlations(pooled).set_index(["level", "rating"])
    assert table.index.tolist() == [
        ("dialog", "overall"),
        ("dialog", "fun"),
        ("agent", "overall"),
    ]
    human = pooled["human_fun"]
    row = table.loc["dialog", "fun"]
    assert row["Length"] == pytest.approx(
        stats.spearmanr(pooled["Length"], human).statistic
    )
    expected = residual_correlation(pooled["EnDex"], human, pooled["Length"])
    assert (row["EnDex, partial"], row["n"]) == pytest.approx((expected, n))
    means = pooled.groupby("agent")[["EnDex", "human_overall"]].mean()
    agents = table.loc["agent", "overall"]
    assert agents["n"] == 5 and agents["EnDex"] == pytest.approx(
        stats.spearmanr(means)[0]
    )


def test_training_figure_shows_every_run(runs):
    figure = figures.training_plot(runs)
    plt.close(figure)
    loss, auc = figure.axes
    assert len(loss.lines) == len(auc.lines) == 4
    for i, (line, run) in enumerate(zip(loss.lines, runs.values(), strict=True)):
        smooth = run.history["loss"].ewm(span=20).mean()
        np.testing.assert_allclose(line.get_ydata(), smooth)
        np.testing.assert_allclose(
            auc.lines[i].get_ydata(), np.array([0.5, 0.6, 0.7]) + 0.01 * i
        )
    assert [text.get_text() for text in loss.get_legend().get_texts()] == [
        "EnDex",
        "EnDex+NS",
    ]


def test_scatter_shows_score_over_rating_with_length_as_colour(values, sets):
    figure = figures.score_scatter(values, sets)
    plt.close(figure)
    table, human = sets["Q"]
    points = figure.axes[1].collections[0]
    x, y = points.get_offsets().T
    np.testing.assert_allclose(y, values["Q"]["EnDex"].mean(axis=1))
    assert np.abs(x - human).max() < 0.2 and not np.array_equal(x, human)
    words = [len(re.findall(r"\w+", text)) for text in table["response"]]
    np.testing.assert_allclose(points.get_array(), words)


def results(name):
    return pd.read_csv(ROOT / f"data/results/06_{name}.csv")


def written(value, digits=2):
    """A number as the notebook writes it: .25, -.03."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def test_every_number_of_notebook_06_s_readings_stands_in_a_table():
    tables = [pd.read_csv(file) for file in (ROOT / "data/results").glob("06_*.csv")]
    tables.append(pd.read_csv(ROOT / "data/published/endex_table2.csv"))
    values = np.concatenate(
        [table.select_dtypes("number").to_numpy().ravel() for table in tables]
    )
    in_tables = {written(value) for value in values} | {
        written(value, 3) for value in values
    }
    for cell in ("c16", "t03", "e03", "t12", "t13", "v01", "ablation-told", "c39"):
        numbers = re.findall(r"(?<![\w.])[-−]?\.\d+", prose("06", cell))
        assert (
            numbers and {number.replace("−", "-") for number in numbers} <= in_tables
        ), cell


def test_sentences_of_notebook_06_follow_from_its_tables():
    """Who beats the rules, what more pairs do, what length does."""
    seen, found = (
        prose("06", "c39"),
        results("verdict").set_index(["method", "dataset"]),
    )
    table2 = results("table2").set_index(["method", "dataset"])
    assert set(table2.loc[["EnDex", "EnDex+NS"], "runs"]) == {5}
    three = ["BETTER", "GRADE", "PREDENG-600"]
    for method, ranks in (("EnDex", ["GRADE"]), ("EnDex+NS", ["FED-ENG", "GRADE"])):
        won = {
            how: found.loc[method].query(f"`{how} beats rules`") for how in COEFFICIENTS
        }
        assert (
            won["pearson"].index.tolist() == three
            and won["spearman"].index.tolist() == ranks
        )
    for name in three:
        assert written(-found.loc[("EnDex", name), "pearson minus paper"]) in seen, name
    grade = table2.loc[("EnDex", "GRADE")]
    assert max(grade["pearson low"], grade["spearman low"]) < 0
    matched = results("length_matched").set_index("pairs")
    lead = matched["AUC of length"] - matched["AUC of EnDex"]
    assert lead["as drawn"] > 0 > lead["matched in length"]
    amount = results("amount").set_index("trained on")
    curve = amount.filter(regex="pairs$", axis=0).sort_values("pairs")
    assert curve["auc"].is_monotonic_increasing and len(curve) == 5
    assert (
        matched.loc["matched in length", "highest"] < amount.loc["1,000 pairs", "low"]
    )
    wide, narrow = amount.loc["reddit_52_forums"], amount.loc["reddit_college"]
    assert (
        narrow["low"] < wide["auc"] < narrow["high"]
    )  # breadth: nothing that five seeds show
    causes = results("causes").set_index(["method", "dataset"])
    few, every = causes.loc["250 pairs"], causes.loc["all pairs"]
    assert (every["spearman"] > few["spearman"])[
        ["BETTER", "FED-ENG", "PREDENG-600"]
    ].all()
    assert every.loc["GRADE", "spearman"] < few.loc["GRADE", "spearman"]
    fixed = causes["partial"].unstack()[["GRADE", "PREDENG-600"]]
    assert (fixed.loc["matched in length"] > fixed.loc["all pairs"]).all()
    assert amount.loc["head alone", "high"] < amount.loc["all pairs", "low"]
    gain = every["spearman"] - causes.loc["head alone", "spearman"]
    assert gain.min() == gain["GRADE"] < 0 < gain[["BETTER", "FED-ENG"]].min()
    wider = (
        causes.loc["reddit_52_forums", "spearman"]
        > causes.loc["reddit_college", "spearman"]
    )
    assert wider.all()
    assert amount.loc["two layers", "low"] > amount.loc["all pairs", "high"]
    assert (causes.loc["two layers", "partial"] < every["partial"]).all()
    cut = causes["spearman high"].unstack().loc["cut to dialog lengths"]
    assert cut["FED-ENG"] < every.loc["FED-ENG", "spearman low"]
    ablation = results("ablation").set_index(["dataset", "trained"])
    missed = ablation[ablation["high"] < 0].index.tolist()
    assert sorted(missed) == [
        ("BETTER", "without attentional"), ("FED-ENG", "without behavioral"),
        ("FED-ENG", "without emotional"), ("GRADE", "without emotional"),
        ("PREDENG-600", "without attentional"), ("PREDENG-600", "without reply"),
        ("mean of sets", "without attentional"), ("mean of sets", "without emotional"),
    ]  # fmt: skip
    assert ablation["low"].max() < 0  # no dimension is shown to harm
    ten = results("ten").set_index("reply")["EnDex"].sort_values(ascending=False)
    rated = pd.read_csv(ROOT / "data/results/00_ten.csv").set_index("reply")["people"]
    assert sorted(ten.index[:2]) == [4, 10] and sorted(rated.nsmallest(3).index) == [
        4,
        8,
        10,
    ]


def test_our_rules_give_the_papers_values_on_no_set():
    """What notebook 06 says of *Question* and *Specificity* below Table 2."""
    rules = results("table2").query("method in ['Question', 'Specificity']")
    ours, paper = rules["pearson"].map(written), rules["pearson, paper"].map(written)
    assert len(rules) == 8 and (ours != paper).all()


def test_the_page_of_results_gives_the_question_rule_by_the_reading_of_notebook_15():
    readings = pd.read_csv(ROOT / "data/results/15_readings.csv")
    chosen = readings.query(
        "metric == 'question' and reading == 'token ? or question word' "
        "and statistic == 'pearson'"
    )
    text = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert len(chosen) == 4
    for value in chosen["ours"]:
        assert written(value, 3) in text


@pytest.mark.public
def test_question_words_give_the_row_of_the_paper_on_two_sets():
    """What notebook 06 says of the paper's rule, and why ours is another one."""
    words = {
        "how",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "?",
    }
    published = pd.read_csv(ROOT / "data/published/endex_table2.csv")
    published = published[published["method"] == "Question"].set_index("dataset")
    for name, (table, human) in endex_table2.endex_sets().items():
        asks = [
            not words.isdisjoint(text.lower().split()) for text in table["response"]
        ]
        found = stats.pearsonr(np.array(asks, float), human).statistic
        hit = round(found, 3) == published.loc[name, "pearson"]
        assert hit == (name in ("BETTER", "PREDENG-600"))


def test_a_method_whose_every_run_collapsed_stops_the_notebook_and_is_named():
    fine = SimpleNamespace(record={"collapsed": False})
    flat = SimpleNamespace(record={"collapsed": True})
    runs = {("EnDex", 0): flat, ("EnDex", 1): fine, ("EnDex+NS", 0): fine}
    usable = endex_table2.usable_runs(runs)
    assert list(usable) == [("EnDex", 1), ("EnDex+NS", 0)]
    with pytest.raises(ValueError, match="every run of EnDex\\+NS collapsed"):
        endex_table2.usable_runs(runs | {("EnDex+NS", 0): flat})
