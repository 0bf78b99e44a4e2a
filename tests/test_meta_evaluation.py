"""Evaluation sets, the overview, family contributions, and the published figures."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import analysis, meta_evaluation
from lib.data import DataError
from lib.meta_evaluation import evaluation_sets, metrics_at_hand
from lib.metrics import kept_scores, registry
from lib.notebook_runs import Run


@pytest.fixture(scope="module")
def bots():
    return meta_evaluation.score_set(meta_evaluation.load_set("sample_bots"))


def test_set_keeps_items_ratings_and_scores_together(bots):
    rated = bots.ratings[bots.ratings["dimension"] == "overall"].groupby("item")["rating"].mean()
    assert rated.to_numpy() == pytest.approx(bots.human[rated.index].to_numpy())
    assert bots.scores.index.equals(bots.table.index)


def test_ground_truth_is_not_compared_with_itself(bots):
    gold = bots.table[bots.table["reference"].map(len) > 0].copy()
    gold["response"], gold["system"] = gold["reference"].str[0], "gold"
    table = pd.concat([bots.table, gold], ignore_index=True)
    items = meta_evaluation.EvaluationSet(
        "toy", "turn", table, table["human_overall"], pd.DataFrame(index=table.index), None, True
    )
    scores = meta_evaluation.computed_scores(items, ["rouge_l_coco", "length"])
    is_gold = table["system"] == "gold"
    assert scores.loc[is_gold, "rouge_l_coco"].isna().all()
    assert scores["length"].notna().all()
    assert scores.loc[~is_gold, "rouge_l_coco"].notna().any()


def test_pooled_corpora_keep_their_ratings_apart():
    class Part:
        level = "turn"

        def __init__(self, value):
            self.turns = pd.DataFrame({"dialog": ["d"] * 2})
            self.ratings = pd.DataFrame({"item": [0, 1], "rating": [value, value + 1]})

    table, ratings = evaluation_sets._stack([Part(1.0), Part(3.0)])
    assert len(table) == 4
    assert ratings["item"].tolist() == [0, 1, 2, 3]
    assert ratings["rating"].tolist() == [1, 2, 3, 4]


def test_runs_of_a_judge_are_averaged_and_missing_runs_skipped():
    table = pd.DataFrame(
        {"score_j_run1": [1.0, np.nan], "score_j_run2": [3.0, 5.0], "score_other": [0.0, 1.0]}
    )
    scores = meta_evaluation.shipped_scores(table)
    assert scores.to_dict("list") == {"j": [2.0, 5.0], "other": [0.0, 1.0]}


def test_unknown_rating_names_the_known_ones():
    with pytest.raises(ValueError, match="it has: .*overall"):
        meta_evaluation.load_set("sample_bots", "charm")


def test_recorded_scores_of_several_corpora_are_told_apart(bots, tmp_path, monkeypatch):
    key = ["system", "agent", "dialog", "turn"]
    own = bots.table[key].assign(endex=np.arange(len(bots.table), dtype=float))
    both = pd.concat([own.assign(corpus="fed_turn"), own.assign(corpus="better", endex=-1.0)])
    both.to_csv(tmp_path / "05_endex_scores.csv", index=False)
    monkeypatch.setattr("lib.notebook_runs.outputs.folder", lambda *_: tmp_path)
    for name, expected in (
        ("fed_turn", own["endex"]),
        ("fed_engaging", own["endex"]),  # the same replies under another loader
        ("better", own["endex"] * 0 - 1),
    ):
        found = meta_evaluation.recorded_scores(replace(bots, name=name), Run("08", "sample"))
        assert found["endex"].tolist() == expected.tolist()
    other = meta_evaluation.recorded_scores(replace(bots, name="dstc7"), Run("08", "sample"))
    assert "endex" not in other


def test_recorded_scores_are_matched_by_key(bots, tmp_path, monkeypatch):
    key = ["system", "agent", "dialog", "turn"]
    recorded = bots.table[key].assign(judge=np.arange(len(bots.table), dtype=float))
    recorded = recorded.sample(frac=1, random_state=0)
    recorded.to_csv(tmp_path / "07_judge_scores.csv", index=False)
    recorded.assign(dialog="elsewhere", foreign=1.0).to_csv(tmp_path / "06_scores.csv", index=False)
    monkeypatch.setattr("lib.notebook_runs.outputs.folder", lambda *_: tmp_path)
    found = meta_evaluation.recorded_scores(bots, Run("08", "sample"))
    assert found.columns.tolist() == ["judge"]
    assert found["judge"].tolist() == list(range(len(bots.table)))


def test_overview_ranks_only_metrics_that_cover_the_items(bots):
    few = bots.scores["length"].where(np.arange(len(bots.human)) < 20)
    table = meta_evaluation.overview([bots.with_scores(few.rename("few"))], resamples=60)
    row = table.set_index("metric").loc["few"]
    assert np.isnan(row["rank"]) and row["n"] == 20 and "of the items" in row["reason"]
    row = table.set_index("metric").loc["length"]
    expected = analysis.coefficient(bots.scores["length"], bots.human, "spearman").value
    assert row["value"] == pytest.approx(expected) and row["low"] < expected < row["high"]


def test_the_heat_map_stars_what_was_not_ranked_and_frames_the_best():
    table = pd.DataFrame(
        {"corpus": "a", "rating": "overall", "metric": ["length", "endex", "question"],
         "value": [0.3, 0.5, -0.001], "low": [0.2, 0.4, -0.1], "high": [0.4, 0.6, 0.1],
         "n": [100, 70, 100], "rank": [1, np.nan, 2]}
    )  # fmt: skip
    axes = meta_evaluation.heat_map(table, "one corpus").axes[0]
    said = {text.get_text() for text in axes.texts}
    assert {"0.30", "0.50*", "0.00"} <= said
    assert "not ranked" in axes.get_xlabel()
    assert len(axes.patches) == 1
    ranked = meta_evaluation.heat_map(table.assign(rank=1.0), "all ranked").axes[0]
    assert ranked.get_xlabel() == "" and len(ranked.patches) == 3


def test_a_metric_of_your_own_stands_in_every_table_and_in_the_figure(monkeypatch):
    """One decorator is enough, whatever its family is called (it once ended in a KeyError)."""
    monkeypatch.setattr(registry, "METRICS", dict(registry.METRICS))
    for module in (metrics_at_hand, kept_scores):
        monkeypatch.setattr(module, "METRICS", registry.METRICS, raising=False)

    @registry.metric("exclamations", "a family of mine")
    def exclamations(turns):
        return turns["response"].str.count("!").astype(float)

    items = meta_evaluation.score_set(meta_evaluation.load_set("sample_bots"))
    assert items.scores["exclamations"].sum() == items.table["response"].str.count("!").sum()
    families = meta_evaluation.families_at_hand([items]).set_index("family")["metrics"]
    assert families["a family of mine"] == "exclamations"
    table = meta_evaluation.overview([items], resamples=20)
    assert table.set_index("metric").loc["exclamations", "family"] == "a family of mine"
    axes = meta_evaluation.heat_map(table, "with a metric of mine").axes[0]
    assert axes.get_yticklabels()[-1].get_text() == "exclamations"


def test_sets_without_a_metric_are_left_out_by_name(bots, capsys):
    bare = replace(bots, name="bare", scores=bots.scores.iloc[:, :0])
    assert meta_evaluation.with_metrics([bots, bare]) == [bots]
    assert "left out, no metric is at hand: bare" in capsys.readouterr().out
    with pytest.raises(DataError, match="no metric is at hand for bare"):
        meta_evaluation.with_metrics([bare])


def test_contributions_equal_the_regressions(bots):
    items = meta_evaluation.EvaluationSet(
        bots.name, "turn", bots.table, bots.human,
        bots.scores[["length", "question", "emotional_entropy"]], None, True,
    )  # fmt: skip
    table = meta_evaluation.contributions([items]).set_index(["base", "added"])
    data = items.scores.assign(human=items.human).dropna()
    both = analysis.adjusted_r2(data, "human", ["length", "question", "emotional_entropy"])
    alone = analysis.adjusted_r2(data, "human", ["length", "question"])
    row = table.loc[("baseline", "psychological")]
    assert (row["r2_both"], row["r2_base"]) == pytest.approx((both, alone))
    assert table.loc[("none", "baseline"), "r2_both"] == pytest.approx(alone)


def test_fine_and_coarse_keeps_the_order_and_loses_accuracy():
    rng = np.random.default_rng(0)
    human = pd.Series(np.round(rng.normal(3, 1, 300)), name="human_x")
    table = pd.DataFrame({"dialog": np.arange(300) // 6, "system": "A"})
    scores = pd.DataFrame({"m": human + rng.normal(size=300)})
    items = meta_evaluation.EvaluationSet("toy", "turn", table, human, scores, None, True)
    fine, coarse = meta_evaluation.fine_and_coarse(items, "m").to_dict("records")
    assert coarse["kendall"] > fine["kendall"]
    assert coarse["acc23"] < fine["acc23"]


def test_beside_keeps_every_published_row():
    paper = pd.DataFrame({"m": ["a", "b"], "value": [0.1, 0.2]})
    table = meta_evaluation.beside(paper, paper.iloc[:1].assign(value=0.15), ["m"])
    assert table["difference"].tolist() == pytest.approx([0.05, np.nan], nan_ok=True)
    with pytest.raises(ValueError, match="repeat a key"):
        meta_evaluation.beside(paper, pd.concat([paper, paper]), ["m"])
    with pytest.raises(FileNotFoundError, match="endex_table2"):
        meta_evaluation.published("endex_table9")


@pytest.mark.public
def test_shipped_predictions_give_every_published_figure():
    paper = meta_evaluation.published("meta_evaluation")
    ours = pd.concat(meta_evaluation.published_pairs(n, paper) for n in paper["corpus"].unique())
    keys = ["corpus", "metric", "rating", "level", "method"]
    table = meta_evaluation.beside(paper, ours, keys)
    exact = table["corpus"] == "unieval_topical"
    assert exact.sum() == 18 and table.loc[exact, "difference"].abs().max() < 1e-6
    assert table["difference"].abs().max() < 6e-4  # the others were printed to 3 decimals


@pytest.mark.public
def test_dstc7_system_means_are_the_published_ones():
    from lib.data import corpora

    means = meta_evaluation.system_means(corpora.load("dstc7").turns)
    table = meta_evaluation.beside(
        meta_evaluation.published("dstc7_systems"), means, ["system", "rating"]
    )
    assert len(table) == 15 and table["difference"].abs().max() < 6e-4


def test_averaged_runs_are_means_over_all_subsets():
    rng = np.random.default_rng(0)
    runs = pd.DataFrame(rng.integers(1, 6, (30, 4)))
    human = pd.Series(rng.normal(size=30))
    found = meta_evaluation.averaged_runs(runs, human).set_index("runs")["spearman"]
    for size in (1, 3):
        values = [
            stats.spearmanr(runs[list(chosen)].mean(axis=1), human).statistic
            for chosen in combinations(range(4), size)
        ]
        assert found[size] == pytest.approx(np.mean(values))


@pytest.mark.public
def test_averaging_gpt4_runs_gives_the_known_gain():
    from lib.data import corpora

    table = corpora.load("gpt4_fed").dialogs
    runs = table[[f"score_gpt4_overall_run{k}" for k in range(1, 6)]]
    found = meta_evaluation.averaged_runs(runs, table["human_overall"]).set_index("runs")
    assert found["spearman"][[1, 3, 5]].tolist() == pytest.approx([0.648, 0.712, 0.725], abs=5e-4)


@pytest.mark.public
def test_question_baseline_is_the_one_of_notebook_05():
    run = Run("08", "public")
    for dataset, name, values in (
        ("BETTER", "better", (0.133, 0.133)),
        ("FED-ENG", "fed_engaging", (0.302, 0.302)),
    ):
        rows = meta_evaluation.endex_rows(dataset, name, run).query("method == 'Question'")
        assert rows["value"].tolist() == pytest.approx(values, abs=5e-4)


@pytest.mark.public
def test_systems_interval_on_usr_topical_is_the_measured_one():
    """Six systems, UniEval overall: other contexts .43 to .66, other systems nearly -1 to 1."""
    items = meta_evaluation.load_set("usr_topical")
    table = meta_evaluation.system_intervals(items, "unieval_overall", "spearman", 2000)
    table = table.set_index("resampled")
    assert table["value"]["contexts"] == pytest.approx(0.486, abs=5e-4)
    assert table.loc["contexts", ["low", "high"]].tolist() == pytest.approx(
        [0.429, 0.657], abs=0.06
    )
    assert table["low"]["systems"] < -0.85 and table["high"]["systems"] == 1
