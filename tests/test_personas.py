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
    heads = personas.choose_heads(graph, lists).set_index("head")
    for profile in profiles:
        name, age, family = profile.sentences[:3]
        first_head = heads.loc[profile.heads[0]]
        assert first_head["start_age"] <= profile.age <= first_head["end_age"]
        assert name == f"my name is {profile.name}."
        assert age == f"i'm {profile.age} years old."
        assert family.endswith(".")
        assert family[0].islower()
        template = re.sub(r"\b(two|three|four)\b", "<n>", family)
        rows = lists.families[
            lists.families["sentence"].str.lower() == template.lower()
        ]
        assert rows["start_age"].item() <= profile.age <= rows["end_age"].item()


def test_the_name_fits_gender_and_decade_of_birth_and_gender_stays_hidden(
    profiles, lists
):
    for profile in profiles:
        row = lists.names[lists.names["name"] == profile.name].iloc[0]
        assert row["gender"] == profile.gender
        assert 0 <= row["generation"] - profile.age <= 9
        assert not re.search(r"\b(fe)?male\b", " ".join(profile.sentences))
    assert {profile.gender for profile in profiles} == {"female", "male"}


def test_each_head_brings_one_tail_for_each_relation_it_has(profiles, graph, lists):
    for profile in profiles[:100]:
        n_sentences = 3
        for head in profile.heads:
            relations = graph.loc[graph["head"] == head, "relation"].unique()
            n_sentences += 1 + len(relations)
            assert personas.neutralize_gender(f"{head}.", lists) in profile.sentences
        assert len(profile.sentences) == n_sentences
        assert profile.heads[0] != profile.heads[1]


def test_negative_heads_are_skipped_and_named(profiles, graph, lists):
    heads = personas.choose_heads(graph, lists)
    assert heads.loc[heads["skipped"] != "", "head"].tolist() == ["i am a pickpocket"]
    assert "pickpocket" not in all_text(profiles)
    facts = graph.head(2).assign(
        head=["i am a Pickpocket", "i am a pickpocketing detective"]
    )
    skipped = personas.choose_heads(facts, lists)["skipped"]
    assert skipped.tolist() == ["negative impression", ""], (
        "in any case, but only as a word"
    )


def test_gendered_words_become_neutral_but_a_queen_stays(profiles, lists):
    text = all_text(profiles)
    assert "fisherman" not in text
    assert "i am a fisher." in text
    assert "i am a queen of a small island." in text
    neutral = personas.neutralize_gender(
        "A policeman and his Fireman, mailmanly", lists
    )
    assert neutral == "A police officer and his firefighter, mailmanly"


def all_text(profiles):
    return " ".join(" ".join(profile.sentences) for profile in profiles)


def test_contradictions_are_listed_for_a_person_to_settle(graph, lists):
    beekeeper = "i am a beekeeper"
    sentences = (
        "my name is A.",
        "i'm 25 years old.",
        "i have two cats.",
        "i worked at the same station for 20 years in the past.",
        "i am a beekeeper.",
        "i am a beekeeper.",
    )
    heads = ("i am a retired firefighter", beekeeper)
    young = Profile(sentences=sentences, heads=heads, age=25, name="A", gender="male")
    table = personas.review([young], graph, lists)
    assert table["reason"].tolist() == [
        "at 25, this began at 5",
        "age 25 is outside 45-50",
        "said twice",
    ]
    assert (table["decision"] == "").all()
    assert (table["profile"] == 0).all()


@pytest.mark.parametrize("age, n_reasons", [(34, 1), (35, 0)])
def test_work_begins_at_15_at_the_earliest(age, n_reasons, graph, lists):
    lines = (
        "my name is A.",
        "i'm grown.",
        "i have two cats.",
        "i sang for 20 years in the past.",
    )
    heads = ("i am a beekeeper", "i am a beekeeper")
    profile = Profile(sentences=lines, heads=heads, age=age, name="A", gender="male")
    assert len(personas.review([profile], graph, lists)) == n_reasons


def test_too_few_heads_or_names_are_an_error(graph, lists):
    beekeeper = graph[graph["head"] == "i am a beekeeper"]
    with pytest.raises(ValueError, match="larger sample"):
        personas.make_profiles(beekeeper, lists, count=1)
    no_names = dataclasses.replace(lists, names=lists.names.query("generation == 99"))
    with pytest.raises(ValueError, match="no (fe)?male name"):
        personas.make_profiles(graph, no_names, count=1)
