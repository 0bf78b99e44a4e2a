"""Persona profiles: every rule of section 3.1 and appendix A.3, on the sample graph."""

import dataclasses
import json
import re

import pytest

from lib import ROOT
from lib.data import personas
from lib.data.personas import Profile

FOLDER = ROOT / "data" / "sample" / "personas"


@pytest.fixture(scope="module")
def graph():
    return personas.read_graph(FOLDER / "peacok_kg.json")


@pytest.fixture(scope="module")
def lists():
    return personas.read_lists(FOLDER)


@pytest.fixture(scope="module")
def profiles(graph, lists):
    return personas.make_profiles(graph, lists, 400, seed=1)


@pytest.mark.parametrize("details", [{}, {"relation": "hobby"}])
def test_a_graph_without_known_relations_is_refused(details, tmp_path):
    path = tmp_path / "kg.json"
    path.write_text(json.dumps({"i am a cook": {"attributes": {"tidy": details}}}))
    with pytest.raises(ValueError, match="(?s)kg.json: 1 facts.*i am a cook"):
        personas.read_graph(path)


def test_age_and_family_are_within_their_ranges(profiles, graph, lists):
    ages = personas.choose_heads(graph, lists).set_index("head")
    for one in profiles:
        assert ages.loc[one.heads[0], "start_age"] <= one.age <= ages.loc[one.heads[0], "end_age"]
        assert one.sentences[:2] == (f"my name is {one.name}.", f"i'm {one.age} years old.")
        assert one.sentences[2].endswith(".") and one.sentences[2][0].islower()
        pattern = re.sub(r"\b(two|three|four)\b", "<n>", one.sentences[2])
        rows = lists.families[lists.families["sentence"].str.lower() == pattern.lower()]
        assert rows["start_age"].item() <= one.age <= rows["end_age"].item()


def test_the_name_fits_gender_and_decade_of_birth_and_gender_stays_hidden(profiles, lists):
    for one in profiles:
        row = lists.names[lists.names["name"] == one.name].iloc[0]
        assert row["gender"] == one.gender
        assert 0 <= row["generation"] - one.age <= 9
        assert not any(re.search(r"\b(fe)?male\b", line) for line in one.sentences)
    assert {one.gender for one in profiles} == {"female", "male"}


def test_each_head_brings_one_tail_for_each_relation_it_has(profiles, graph, lists):
    for one in profiles[:100]:
        expected = 3
        for head in one.heads:
            relations = graph.loc[graph["head"] == head, "relation"].unique()
            expected += 1 + len(relations)
            assert personas.neutralize_gender(f"{head}.", lists) in one.sentences
        assert len(one.sentences) == expected
        assert one.heads[0] != one.heads[1]


def test_negative_heads_are_skipped_and_named(profiles, graph, lists):
    heads = personas.choose_heads(graph, lists)
    assert heads.loc[heads["skipped"] != "", "head"].tolist() == ["i am a pickpocket"]
    assert not any("pickpocket" in line for one in profiles for line in one.sentences)
    words = graph.head(2).assign(head=["i am a Pickpocket", "i am a pickpocketing detective"])
    skipped = personas.choose_heads(words, lists)["skipped"]
    assert skipped.tolist() == ["negative impression", ""], "in any case, but only as a word"


def test_gendered_words_become_neutral_but_a_queen_stays(profiles, lists):
    text = " ".join(line for one in profiles for line in one.sentences)
    assert "fisherman" not in text and "i am a fisher." in text
    assert "i am a queen of a small island." in text
    assert personas.neutralize_gender("A policeman and his Fireman, mailmanly", lists) == (
        "A police officer and his firefighter, mailmanly"
    )


def test_contradictions_are_listed_for_a_person_to_settle(graph, lists):
    old = "i worked at the same station for 20 years in the past."
    young = Profile(
        sentences=("my name is A.", "i'm 25 years old.", "i have two cats.", old,
                   "i am a beekeeper.", "i am a beekeeper."),
        heads=("i am a retired firefighter", "i am a beekeeper"), age=25, name="A", gender="male",
    )  # fmt: skip
    table = personas.review([young], graph, lists)
    assert table["reason"].tolist() == [
        "at 25, this began at 5", "age 25 is outside 45-50", "said twice",
    ]  # fmt: skip
    assert (table["decision"] == "").all() and (table["profile"] == 0).all()
    said = (*young.sentences[:3], "i am a beekeeper.")
    calm = Profile(sentences=said, heads=(young.heads[1],) * 2, age=40, name="A", gender="male")
    assert personas.review([calm], graph, lists).empty


def test_too_few_heads_or_names_are_an_error(graph, lists):
    with pytest.raises(ValueError, match="larger sample"):
        personas.make_profiles(graph[graph["head"] == "i am a beekeeper"], lists, 1)
    few = dataclasses.replace(lists, names=lists.names.query("generation == 99"))
    with pytest.raises(ValueError, match="no (fe)?male name"):
        personas.make_profiles(graph, few, 1)
