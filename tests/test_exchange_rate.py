"""How many ratings a score saves: known correlations, people left out, a ceiling, a placebo."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis.prediction_powered import powered_mean
from lib.meta_evaluation.evaluation_sets import EvaluationSet, load_set
from lib.meta_evaluation.exchange_rate import exchange_rates
from lib.meta_evaluation.figures import savings_plot

RATER_NOISE = 1.0


def make_set(contexts: int = 400, seed: int = 7) -> EvaluationSet:
    """Two machines of different quality and a person answer each context; three raters each.

    Within a system, the true quality of a reply has variance 1 and the metric's noise variance 1.
    The person is rated far higher by people and by the metric.
    """
    rng = np.random.default_rng(seed)
    systems = ["good bot", "bad bot", "person"]
    table = pd.DataFrame(
        {
            "system": np.tile(systems, contexts),
            "dialog": np.repeat([f"d{number}" for number in range(contexts)], 3),
        }
    )
    table["written_by"] = table["system"].map(
        {"good bot": "machine", "bad bot": "machine", "person": "person"}
    )
    level = table["system"].map({"good bot": 1.0, "bad bot": 0.0, "person": 9.0})
    quality = level + rng.normal(size=len(table))
    raters = quality.to_numpy()[:, None] + rng.normal(
        scale=RATER_NOISE, size=(len(table), 3)
    )
    ratings = pd.DataFrame(
        {
            "item": np.repeat(table.index, 3),
            "annotator": np.tile(["a", "b", "c"], len(table)),
            "dimension": "overall",
            "rating": raters.ravel(),
        }
    )
    return EvaluationSet(
        name="made",
        level="turn",
        table=table,
        human=pd.Series(raters.mean(axis=1), name="human_overall"),
        scores=pd.DataFrame({"metric": quality + rng.normal(size=len(table))}),
        ratings=ratings,
    )


def rates(items: EvaluationSet) -> pd.DataFrame:
    return exchange_rates(items, resamples=200).set_index(["metric", "estimand"])


def test_a_score_saves_the_square_of_its_correlation_within_a_system():
    items = make_set()
    table = rates(items)
    row = table.loc[("metric", "mean of one system")]
    correlations = []
    for system in ("good bot", "bad bot"):
        chosen = items.table["system"] == system
        correlations.append(
            np.corrcoef(items.scores.loc[chosen, "metric"], items.human[chosen])[0, 1]
        )
    assert row["correlation"] == pytest.approx(np.mean(correlations), abs=1e-12)
    assert row["saved"] == pytest.approx(100 * np.mean(correlations) ** 2)
    # variance of the quality 1, of the metric 2, of the mean of three raters 4/3
    assert row["low"] < 100 / (2 * 4 / 3) < row["high"]
    assert row["systems"] == 2, "the person is left out"
    assert row["dialogs"] == 400


def test_the_share_saved_is_what_the_powered_mean_saves_with_many_scored_dialogs():
    items = make_set(contexts=4000)
    bot = items.table["system"] == "good bot"
    ratings = items.human[bot].to_numpy()
    scores = items.scores.loc[bot, "metric"].to_numpy()
    powered = powered_mean(ratings[:200], scores[:200], scores[200:])
    one_system = rates(items).loc[("metric", "mean of one system")]
    assert 100 * powered.saving == pytest.approx(one_system["saved"], abs=8)


def test_a_difference_of_two_systems_has_the_correlation_of_the_differences():
    items = make_set()
    wide = items.table.assign(score=items.scores["metric"], rating=items.human)
    wide = wide.pivot(index="dialog", columns="system", values=["score", "rating"])
    score = wide["score", "good bot"] - wide["score", "bad bot"]
    rating = wide["rating", "good bot"] - wide["rating", "bad bot"]
    row = rates(items).loc[("metric", "difference of two systems")]
    assert row["correlation"] == pytest.approx(np.corrcoef(score, rating)[0, 1])


def test_no_score_can_save_more_than_the_noise_of_the_raters_leaves():
    items = make_set(contexts=2000)
    row = rates(items).loc[("metric", "mean of one system")]
    share = 1 / (1 + RATER_NOISE**2 / 3)
    assert row["noise_ceiling"] == pytest.approx(100 * share, abs=3)


def test_a_placebo_saves_nothing():
    row = rates(make_set(contexts=2000)).loc[("placebo", "mean of one system")]
    assert row["low"] == 0
    assert row["saved"] < 1


def test_scores_that_do_not_vary_within_a_system_have_no_rate_and_a_reason():
    items = make_set()
    items.scores["metric"] = items.table["system"].map(len).astype(float)
    row = rates(items).loc[("metric", "mean of one system")]
    assert np.isnan(row["saved"])
    assert "do not vary" in row["reason"]


def test_few_dialogs_have_no_rate_and_a_reason():
    """With three dialogs a random number would seem to save a quarter of the ratings."""
    table = rates(make_set(contexts=19))
    assert table[["saved", "low", "high"]].isna().all(axis=None)
    assert set(table["reason"]) == {"19 dialogs, fewer than 20"}
    assert rates(make_set(contexts=20))["saved"].notna().all()


def test_the_picture_has_the_best_scores_of_each_corpus_above_its_placebo():
    row = {"low": 0.0, "high": 9.0, "noise_ceiling": np.nan}
    rows = []
    for corpus in ("usr_topical", "gpt4_fed"):
        for metric, saved in {
            "length": 3.0,
            "unieval": 8.0,
            "bleu4": 1.0,
            "placebo": 4.0,
        }.items():
            names = {
                "corpus": corpus,
                "metric": metric,
                "estimand": "mean of one system",
            }
            rows.append({**row, **names, "saved": saved})
    (axes,) = savings_plot(pd.DataFrame(rows), count=2).axes
    from_below = [label.get_text() for label in axes.get_yticklabels()]
    assert from_below[::-1] == [
        "USR Topical: UniEval",
        "USR Topical: length in words",
        "USR Topical: placebo",
        "FED dialogs: UniEval",
        "FED dialogs: length in words",
        "FED dialogs: placebo",
    ]
    points = axes.collections[-1].get_offsets()
    assert points[:, 0].tolist() == [4, 3, 8, 4, 3, 8]


@pytest.mark.public
def test_gpt4_saves_a_sixth_to_a_quarter_of_the_ratings_of_one_bot():
    """Half is saved over all systems of FED pooled, .14 to .24 within one of them."""
    table = rates(load_set("gpt4_fed"))
    row = table.loc[("gpt4_overall", "mean of one system")]
    assert 15 < row["saved"] < 30
    assert row["low"] > 5
