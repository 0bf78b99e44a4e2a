"""Persona profiles as ComperDial makes them (Wakaki et al. 2024, section 3.1 and appendix A.3).

A profile is one set of fictional personal information (name, age, family) and two personas, each
a head of the PeaCoK graph with one tail per relation. Contradictions are listed, not repaired:
the paper's authors settled them by hand, and so must you.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.storage import DataError, read_json

# The sentence forms of Table 12; they are the same with and without relationship.
FORMS = {
    "characteristic": "my character trait: {}.",
    "routine_habit": "i regularly or consistently {}.",
    "goal_plan": "i intend to {} in the future.",
    "experience": "i {} in the past.",
}
BASE_RELATIONS = tuple(FORMS)
RELATIONS = (*BASE_RELATIONS, *(f"{name}_relationship" for name in BASE_RELATIONS))
DEFAULT_AGES = {"start_age": 20, "end_age": 50}  # the range of most heads in Table 11
# Table 9 pairs the names of 2010 with age 10 and those of 1970 with age 50.
THIS_YEAR = 2020


@dataclass(frozen=True)
class Lists:
    """The lists that turn a graph into profiles.

    Attributes:
        names: generation, gender, name.
        families: sentence, start_age, end_age.
        head_ages: head, start_age, end_age.
        gender_neutral: gendered, neutral.
        negative: words that give a negative impression of a head.
    """

    names: pd.DataFrame
    families: pd.DataFrame
    head_ages: pd.DataFrame
    gender_neutral: pd.DataFrame
    negative: list[str]


@dataclass(frozen=True)
class Profile:
    """A profile: its sentences, and what was drawn for it; no sentence states the gender."""

    sentences: tuple[str, ...]
    heads: tuple[str, str]
    age: int
    name: str
    gender: str


def read_graph(path: str | Path) -> pd.DataFrame:
    """Facts of PeaCoK as a table: head, relation, tail.

    PeaCoK is given out by its authors; this project ships a small graph of its own in the same
    format: JSON, head -> attributes -> tail -> {"relation": one of `RELATIONS`}.

    Raises:
        DataError: when a fact has no relation, or one that is unknown.
    """
    rows = []
    for head, entry in read_json(Path(path)).items():
        for tail, details in entry.get("attributes", {}).items():
            relation = details.get("relation")
            rows.append(
                {"head": head.strip(), "relation": relation, "tail": tail.strip()}
            )
    graph = pd.DataFrame(rows, columns=["head", "relation", "tail"])
    unknown = graph[~graph["relation"].isin(RELATIONS)]
    if len(unknown):
        example = unknown.iloc[0].tolist()
        problem = f"{len(unknown)} facts have no known relation, such as {example}"
        raise DataError(problem, file=path)
    return graph.drop_duplicates(ignore_index=True)


def read_lists(folder: str | Path) -> Lists:
    """Read the lists of a folder (Tables 9-11 print excerpts of the authors').

    They are `names.csv`, `families.csv`, `head_ages.csv` and `gender_neutral.csv` with the columns
    of `Lists`, and `negative_heads.txt`, one word per line.
    """
    folder = Path(folder)
    words = (folder / "negative_heads.txt").read_text(encoding="utf-8").splitlines()
    return Lists(
        names=pd.read_csv(folder / "names.csv"),
        families=pd.read_csv(folder / "families.csv"),
        head_ages=pd.read_csv(folder / "head_ages.csv"),
        gender_neutral=pd.read_csv(folder / "gender_neutral.csv"),
        negative=[word for word in words if word],
    )


def fact_sentence(relation: str, tail: str) -> str:
    """A tail as a sentence of the profile, in the form of Table 12.

    >>> fact_sentence("goal_plan", "to sell honey")
    'i intend to sell honey in the future.'
    >>> fact_sentence("experience_relationship", "worked with a pianist")
    'i worked with a pianist in the past.'
    """
    base_relation = relation.removesuffix("_relationship")
    tail = tail.strip().rstrip(".")
    if base_relation == "goal_plan":
        tail = tail.removeprefix("to ")
    return FORMS[base_relation].format(tail)


def neutralize_gender(text: str, lists: Lists) -> str:
    """`text` with gendered words replaced where a neutral one exists (king and queen stay)."""
    for row in lists.gender_neutral.itertuples():
        pattern = rf"\b{re.escape(row.gendered)}\b"
        text = re.sub(pattern, row.neutral, text, flags=re.IGNORECASE)
    return text


def choose_heads(graph: pd.DataFrame, lists: Lists) -> pd.DataFrame:
    """Every head with its number of facts, its age range, and the reason if it is skipped.

    Heads that give a negative impression are skipped (section 3.1 a).

    Returns:
        head, facts (their number), start_age, end_age, skipped (empty where it is used).
    """
    heads = graph.groupby("head", sort=False).size().rename("facts").reset_index()
    heads = heads.merge(lists.head_ages[["head", *DEFAULT_AGES]], how="left", on="head")
    heads = heads.fillna(DEFAULT_AGES).astype(dict.fromkeys(DEFAULT_AGES, int))
    words = "|".join(map(re.escape, lists.negative))
    is_negative = heads["head"].str.contains(rf"\b(?:{words})\b", case=False)
    return heads.assign(skipped=np.where(is_negative, "negative impression", ""))


def make_profiles(
    graph: pd.DataFrame, lists: Lists, count: int, seed: int = 0
) -> list[Profile]:
    """Draw profiles: name, age and family, then two personas (section 3.1, appendix A.3).

    The age comes from the range of the first head, the name from the decade of birth and a
    gender that the profile does not state, the family from the sentences allowed at that age;
    `<n>` becomes a number. Each head brings one tail for each of the eight relations that it has.

    Raises:
        DataError: when a list has nothing for an age.
        ValueError: when fewer than two heads can be used; NumPy raises it while drawing two.
    """
    heads = choose_heads(graph, lists)
    heads = heads[heads["skipped"] == ""].reset_index(drop=True)
    tails = graph.groupby(["head", "relation"])["tail"].agg(list).to_dict()
    rng = np.random.default_rng(seed)
    return [_draw_profile(heads, tails, lists, rng=rng) for _ in range(count)]


def _draw_profile(heads: pd.DataFrame, tails: Mapping, lists: Lists, rng) -> Profile:
    """One profile; `tails` holds the tails of (head, relation)."""
    heads = heads.iloc[rng.choice(len(heads), size=2, replace=False)]
    first_head = heads.iloc[0]
    age = int(rng.integers(first_head["start_age"], first_head["end_age"] + 1))
    gender = str(rng.choice(["female", "male"]))
    decade = (THIS_YEAR - age) // 10 * 10
    generation = THIS_YEAR - decade
    names = lists.names[lists.names["generation"] == generation]
    names = names.loc[names["gender"] == gender, "name"]
    families = lists.families.query("start_age <= @age <= end_age")["sentence"]
    if names.empty or families.empty:
        raise DataError(
            f"the lists hold no {gender} name or no family for the age of {age}"
        )
    name = str(rng.choice(names))
    family = str(rng.choice(families))
    family = family.replace("<n>", str(rng.choice(["two", "three", "four"])))
    sentences = [
        f"my name is {name}.",
        f"i'm {age} years old.",
        family[0].lower() + family[1:],
    ]
    for head in heads["head"]:
        sentences.append(f"{head}.")
        for relation in RELATIONS:
            if (head, relation) in tails:
                tail = str(rng.choice(tails[head, relation]))
                sentences.append(fact_sentence(relation, tail))
    return Profile(
        sentences=tuple(neutralize_gender(sentence, lists) for sentence in sentences),
        heads=tuple(heads["head"]),
        age=age,
        name=name,
        gender=gender,
    )


def review(
    profiles: Iterable[Profile], graph: pd.DataFrame, lists: Lists
) -> pd.DataFrame:
    """List what looks contradictory, one row each, with an empty `decision` for a person to fill.

    Listed: years of doing something that the age does not allow ("for 20 years" at 25, section
    3.1), an age outside the range of a head, and repeated sentences. A table without rows
    is no proof of consistency: read the profiles.
    """
    heads = choose_heads(graph, lists).set_index("head")
    rows = []
    for number, profile in enumerate(profiles):
        for sentence, reason in _contradictions(profile, heads, lists):
            rows.append(
                {
                    "profile": number,
                    "sentence": sentence,
                    "reason": reason,
                    "decision": "",
                }
            )
    return pd.DataFrame(rows, columns=["profile", "sentence", "reason", "decision"])


def _contradictions(
    profile: Profile, heads: pd.DataFrame, lists: Lists
) -> Iterator[tuple[str, str]]:
    """Yield sentence and reason."""
    age = profile.age
    for sentence in profile.sentences[3:]:
        match = re.search(r"\b(?:for|more than|over) (\d+) years\b", sentence)
        if match and age - int(match[1]) < 15:
            yield sentence, f"at {age}, this began at {age - int(match[1])}"
    for head in profile.heads:
        low, high = heads.loc[head, ["start_age", "end_age"]]
        if not low <= age <= high:
            yield (
                neutralize_gender(f"{head}.", lists),
                f"age {age} is outside {low}-{high}",
            )
    counts = pd.Series(profile.sentences).value_counts()
    for sentence in counts.index[counts > 1]:
        yield sentence, "said twice"
