"""Persona profiles as ComperDial makes them (Wakaki et al. 2024, section 3.1 and appendix A.3).

A profile is one set of fictional personal information (name, age, family) and two personas, each
a head of the PeaCoK graph with one tail per relation. What contradicts is listed, not repaired:
the paper's authors settled contradictions by hand, and so must you.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

BASE = ("characteristic", "routine_habit", "goal_plan", "experience")
RELATIONS = (*BASE, *(f"{name}_relationship" for name in BASE))
# The forms of Table 12; with and without relationship they are the same.
FORMS = {
    "characteristic": "my character trait: {}.",
    "routine_habit": "i regularly or consistently {}.",
    "goal_plan": "i intend to {} in the future.",
    "experience": "i {} in the past.",
}
Facts = dict[str, dict[str, list[str]]]  # head -> relation -> tails
DEFAULT_AGES = (20, 50)  # the range of most heads in Table 11
THIS_YEAR = 2020  # Table 9 pairs the names of 2010 with age 10 and those of 1970 with age 50
_NUMBERS = ("two", "three", "four")
_FILES = {
    "names": ["generation", "gender", "name"],
    "families": ["sentence", "start_age", "end_age"],
    "head_ages": ["head", "start_age", "end_age"],
    "gender_neutral": ["gendered", "neutral"],
}


@dataclass(frozen=True)
class PersonaLists:
    """The lists that turn a graph into profiles (Tables 9-11 print excerpts of the authors')."""

    names: pd.DataFrame
    families: pd.DataFrame
    head_ages: pd.DataFrame
    gender_neutral: pd.DataFrame
    negative: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """One persona: its sentences, and what was drawn for it. ``gender`` is never stated."""

    sentences: tuple[str, ...]
    heads: tuple[str, str]
    age: int
    name: str
    gender: str


def read_graph(path: str | Path, relation_field: str = "relation") -> pd.DataFrame:
    """Facts of PeaCoK as a table: head, relation, tail.

    Reads the graph (``.json``: head -> attributes -> details) and the tab-separated lists of
    head, relation and tail that come with its code. ``relation_field`` names the entry of the
    details that holds the relation, one of the eight in ``RELATIONS``.

    PeaCoK is given out by its authors; this project ships a small graph of its own in the same
    format. Raises ``ValueError`` naming the head or the line that is not as expected.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    rows = _nested(path, text, relation_field) if text.lstrip()[:1] == "{" else _tabbed(path, text)
    frame = pd.DataFrame(rows, columns=["head", "relation", "tail"]).drop_duplicates()
    unknown = set(frame["relation"]) - set(RELATIONS)
    if unknown:
        raise ValueError(f"{path}: unknown relations {sorted(unknown)}; known: {RELATIONS}")
    return frame.reset_index(drop=True)


def _nested(path: Path, text: str, field: str) -> list[tuple[str, str, str]]:
    rows = []
    for head, entry in json.loads(text).items():
        for tail, details in entry.get("attributes", {}).items():
            if field not in details:
                raise ValueError(
                    f"{path}: head {head!r}, attribute {tail!r}: no {field!r}; it has "
                    f"{sorted(details)}. Name the entry with the relation: relation_field=..."
                )
            rows.append((head, details[field], tail))
    return rows


def _tabbed(path: Path, text: str) -> list[tuple[str, str, str]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split("\t")
        if len(cells) != 3:
            raise ValueError(f"{path}: line {number}: {len(cells)} cells, not head, relation, tail")
        rows.append(tuple(cell.strip() for cell in cells))
    return rows


def read_lists(folder: str | Path) -> PersonaLists:
    """Read ``names.csv``, ``families.csv``, ``head_ages.csv``, ``gender_neutral.csv`` and
    ``negative_heads.txt`` from a folder. Raises ``ValueError`` naming a column that is missing."""
    folder, tables = Path(folder), {}
    for name, columns in _FILES.items():
        tables[name] = pd.read_csv(folder / f"{name}.csv")
        if missing := set(columns) - set(tables[name]):
            raise ValueError(f"{folder / name}.csv: no column {sorted(missing)}")
    negative = (folder / "negative_heads.txt").read_text(encoding="utf-8").split("\n")
    return PersonaLists(**tables, negative=tuple(line for line in negative if line.strip()))


def fact_sentence(relation: str, tail: str) -> str:
    """A tail as a sentence of the profile, in the form of Table 12.

    >>> fact_sentence("goal_plan", "to sell honey")
    'i intend to sell honey in the future.'
    >>> fact_sentence("experience_relationship", "worked with a pianist")
    'i worked with a pianist in the past.'
    """
    base = relation.removesuffix("_relationship")
    tail = tail.strip().rstrip(".")
    return FORMS[base].format(tail.removeprefix("to ") if base == "goal_plan" else tail)


def neutral(text: str, lists: PersonaLists) -> str:
    """``text`` with gendered words replaced where a neutral one exists (king and queen stay)."""
    table = lists.gender_neutral
    for word, other in zip(table["gendered"], table["neutral"], strict=True):
        text = re.sub(rf"\b{re.escape(word)}\b", other, text, flags=re.IGNORECASE)
    return text


def choose_heads(graph: pd.DataFrame, lists: PersonaLists) -> pd.DataFrame:
    """Every head with its facts, its age range, and why it is skipped, if it is.

    Heads that give a negative impression are skipped (section 3.1 a). Columns: head, facts,
    start_age, end_age, skipped (empty where it is used).
    """
    heads = graph.groupby("head", sort=False).size().rename("facts").reset_index()
    heads = heads.merge(lists.head_ages[["head", "start_age", "end_age"]], how="left", on="head")
    for column, default in zip(("start_age", "end_age"), DEFAULT_AGES, strict=True):
        heads[column] = heads[column].fillna(default).astype(int)
    words = "|".join(re.escape(word) for word in lists.negative)
    bad = heads["head"].str.contains(rf"\b(?:{words})\b", case=False) if words else False
    return heads.assign(skipped=np.where(bad, "negative impression", ""))


def make_profiles(
    graph: pd.DataFrame, lists: PersonaLists, count: int, seed: int = 0
) -> list[Profile]:
    """Draw profiles: name, age and family, then two personas (section 3.1, appendix A.3).

    The age comes from the range of the first head, the name from the decade of birth and a
    hidden gender, the family from the sentences allowed at that age; ``<n>`` becomes a number.
    Each head brings one tail for each of the eight relations that it has.
    """
    heads = choose_heads(graph, lists)
    usable = heads[heads["skipped"] == ""].reset_index(drop=True)
    if len(usable) < 2:
        raise ValueError(f"{len(usable)} usable heads; a profile needs two")
    facts = {
        head: rows.groupby("relation")["tail"].agg(list).to_dict()
        for head, rows in graph.groupby("head", sort=False)
    }
    rng = np.random.default_rng(seed)
    return [_profile(usable, facts, lists, rng) for _ in range(count)]


def _profile(
    heads: pd.DataFrame, facts: Facts, lists: PersonaLists,
    rng: np.random.Generator,
) -> Profile:  # fmt: skip
    first, second = (heads.iloc[i] for i in rng.choice(len(heads), size=2, replace=False))
    age = int(rng.integers(first["start_age"], first["end_age"] + 1))
    gender = str(rng.choice(["female", "male"]))
    name = str(rng.choice(_names(lists, age, gender)))
    families = lists.families
    allowed = families[(families["start_age"] <= age) & (age <= families["end_age"])]
    if allowed.empty:
        raise ValueError(f"families.csv: no sentence for age {age}")
    family = str(rng.choice(allowed["sentence"])).replace("<n>", str(rng.choice(_NUMBERS)))
    info = [f"my name is {name}.", f"i'm {age} years old.", family[0].lower() + family[1:]]
    personas = [line for head in (first, second) for line in _persona(head["head"], facts, rng)]
    sentences = tuple(neutral(line, lists) for line in [*info, *personas])
    return Profile(sentences, (first["head"], second["head"]), age, name, gender)


def _names(lists: PersonaLists, age: int, gender: str) -> list[str]:
    """Names popular when somebody of this age was born."""
    decade = (THIS_YEAR - age) // 10 * 10
    names = lists.names
    fits = (names["generation"] == THIS_YEAR - decade) & (names["gender"] == gender)
    if not fits.any():
        raise ValueError(f"names.csv: no {gender} name of generation {THIS_YEAR - decade}")
    return names.loc[fits, "name"].tolist()


def _persona(head: str, facts: Facts, rng: np.random.Generator) -> list[str]:
    """The head and one tail for each relation that it has."""
    lines = [f"{head}."]
    for relation in RELATIONS:
        if tails := facts[head].get(relation):
            lines.append(fact_sentence(relation, str(rng.choice(tails))))
    return lines


def review(profiles: Iterable[Profile], graph: pd.DataFrame, lists: PersonaLists) -> pd.DataFrame:
    """What looks contradictory, one row each, with an empty ``decision`` for a person to fill.

    Found: years of doing something that the age does not allow ("for 20 years" at 25, section
    3.1), an age outside the range of a head, and a sentence said twice. A table without rows
    is no proof of consistency: read the profiles.
    """
    ages = choose_heads(graph, lists).set_index("head")
    rows = []
    for number, one in enumerate(profiles):
        found = [*_years(one), *_ranges(one, ages, lists), *_repeats(one)]
        rows += [(number, sentence, reason, "") for sentence, reason in found]
    return pd.DataFrame(rows, columns=["profile", "sentence", "reason", "decision"])


def _years(one: Profile) -> list[tuple[str, str]]:
    found = []
    for line in one.sentences[3:]:
        years = re.search(r"\b(?:for|more than|over) (\d+) years\b", line)
        if years and one.age - int(years[1]) < 15:
            found.append((line, f"at {one.age}, this began at {one.age - int(years[1])}"))
    return found


def _ranges(one: Profile, ages: pd.DataFrame, lists: PersonaLists) -> list[tuple[str, str]]:
    outside = []
    for head in one.heads:
        low, high = ages.loc[head, ["start_age", "end_age"]]
        if not low <= one.age <= high:
            outside.append((neutral(f"{head}.", lists), f"age {one.age} is outside {low}-{high}"))
    return outside


def _repeats(one: Profile) -> list[tuple[str, str]]:
    counts = pd.Series(one.sentences).value_counts()
    return [(line, "said twice") for line in counts.index[counts > 1]]
