"""Who wrote the replies that a correlation pools, and what that changes."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.analysis.authorship import correlations_by_author, metrics_by_author
from lib.data import available, load
from lib.meta_evaluation.author_figures import author_table
from lib.meta_evaluation.evaluation_sets import load_set


def make_replies(seed: int = 0) -> pd.DataFrame:
    """Five systems answer 30 contexts; one is a person, who is rated high and writes more."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "system": np.tile(["person", "b1", "b2", "b3", "b4"], 30),
            "dialog": np.repeat([f"d{number}" for number in range(30)], 5),
        }
    )
    by_person = table["system"] == "person"
    table["context"] = table["dialog"].map(lambda dialog: [dialog])
    table["written_by"] = np.where(by_person, "person", "machine")
    table["score"] = rng.normal(size=150) + 3 * by_person
    table["human"] = rng.normal(size=150) + 3 * by_person
    return table


def by_author(replies: pd.DataFrame, **options) -> pd.DataFrame:
    options = {"resamples": 50, **options}
    table = correlations_by_author(
        replies["score"], replies["human"], replies, **options
    )
    return table.set_index("replies")


@pytest.mark.parametrize("method", ["pearson", "spearman", "kendall"])
def test_the_three_coefficients_are_scipys_on_the_replies_that_they_name(method):
    replies = make_replies()
    scipy = getattr(
        stats,
        {"pearson": "pearsonr", "spearman": "spearmanr"}.get(method, "kendalltau"),
    )
    table = by_author(replies, method=method)

    machines = replies[replies["system"] != "person"]
    means = replies.groupby("dialog")[["score", "human"]].transform("mean")
    centred = replies[["score", "human"]] - means
    expected = {
        "all": scipy(replies["score"], replies["human"])[0],
        "machines only": scipy(machines["score"], machines["human"])[0],
        "within context": scipy(centred["score"], centred["human"])[0],
    }
    for name, value in expected.items():
        assert table.loc[name, "value"] == pytest.approx(value, abs=1e-12), name
    assert table["systems"].tolist() == [5, 4, 5]
    assert table["people"].tolist() == [1, 0, 1]
    assert table["clusters"].tolist() == [30, 30, 30]
    assert (table["low"] < table["value"]).all() and (
        table["value"] < table["high"]
    ).all()


def test_people_among_machines_make_a_correlation_that_no_machine_has():
    table = by_author(make_replies())
    assert table.loc["all", "low"] > 0.2
    assert table.loc["machines only", "low"] < 0 < table.loc["machines only", "high"]


def test_a_corpus_that_does_not_say_who_wrote_its_replies_has_no_value_for_machines():
    replies = make_replies().assign(written_by=np.nan)
    table = by_author(replies)
    assert np.isnan(table.loc["machines only", "value"])
    assert "who wrote" in table.loc["machines only", "reason"]
    assert table.loc["all", "people"] == 0

    with pytest.raises(ValueError, match="written_by"):
        correlations_by_author(
            replies["score"], replies["human"], replies.drop(columns="written_by")
        )


def test_a_context_with_one_scored_reply_says_nothing_within_contexts():
    replies = make_replies()
    alone = replies.groupby("dialog").cumcount() == 0
    replies.loc[~alone & (replies["dialog"] == "d0"), "score"] = np.nan
    assert by_author(replies).loc["within context", "n"] == 145

    single = by_author(replies[alone])
    assert np.isnan(single.loc["within context", "value"])
    assert single.loc["within context", "reason"] == "no context has two replies"


def test_the_same_words_in_two_dialogs_are_two_contexts():
    replies = make_replies().assign(context=[["Hi"]] * 150)
    assert by_author(replies).equals(by_author(make_replies()))


def test_every_corpus_says_who_wrote_its_replies_or_that_it_does_not_know():
    corpora = available().set_index("name")
    assert corpora.loc["usr_topical", "people"] == 2
    assert corpora.loc["grade_convai2_dialogGPT", "people"] == 0
    # Zhao's replies are not labelled: that the first is a person's is only inferred from ratings.
    assert pd.isna(corpora.loc["zhao_persona", "people"])
    personas = load("sample_personas")
    for table in (personas.turns, personas.dialogs):
        assert set(table.loc[table["system"] == "human", "written_by"]) == {"person"}
        assert set(table.loc[table["system"] != "human", "written_by"]) == {"machine"}


@pytest.mark.public
@pytest.mark.parametrize("name", available().dropna(subset="systems")["name"])
def test_the_people_of_a_public_corpus_are_among_its_systems(name):
    items = load(name).items
    people = available().set_index("name").loc[name, "people"]
    assert items.groupby("written_by")["system"].nunique().get("person", 0) == (
        0 if pd.isna(people) else people
    )
    assert items["written_by"].isna().all() == pd.isna(people)


@pytest.mark.public
@pytest.mark.parametrize(
    ("corpus", "rating", "values", "interval"),
    [
        ("usr_topical", "overall", [0.30, 0.05], (-0.08, 0.19)),
        ("usr_persona", "overall", [0.27, -0.17], (-0.32, -0.03)),
        ("predeng600", "engaging", [0.14, -0.34], None),
    ],
)
def test_the_number_of_words_tells_people_from_machines_on_public_corpora(
    corpus, rating, values, interval
):
    """Recomputed elsewhere with other code; intervals to .03."""
    items = load_set(corpus, rating)
    words = items.table["response"].str.split().map(len)
    table = correlations_by_author(words, items.human, items.table).set_index("replies")
    assert table["value"].iloc[:2].tolist() == pytest.approx(values, abs=0.01)
    if interval:
        bounds = table.loc["machines only", ["low", "high"]].tolist()
        assert bounds == pytest.approx(interval, abs=0.03)


def test_a_table_names_each_line_by_all_its_columns():
    units = pd.DataFrame({"system": list("AABB"), "dialog": list("abcd")})
    units = units.assign(written_by=["person", "person", "machine", "machine"])
    scores = pd.DataFrame({"one": [1.0, 2, 3, 4], "two": [4.0, 3, 2, 1]})
    rows = metrics_by_author(scores, pd.Series([1.0, 2, 3, 5]), units, resamples=10)
    rows = rows.assign(dataset="fed_turn")
    shown = author_table(rows, rows=["dataset", "metric"])
    assert shown.index.tolist() == ["FED turns, one", "FED turns, two"]
    assert shown["all"].str.split().str[0].tolist() == ["1.00", "-1.00"]
    assert shown["systems (people)"].tolist() == ["2 (1)", "2 (1)"]
    assert author_table(rows[:0], rows=["dataset", "metric"]).empty
