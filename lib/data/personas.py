"""Persona profiles as ComperDial makes them (Wakaki et al. 2024, section 3.1 and appendix A.3).

A profile is one set of fictional personal information (name, age, family) and two personas, each
a head of the PeaCoK graph with one tail per relation. What contradicts is listed, not repaired:
the paper's authors settled contradictions by hand, and so must you.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from lib.data.storage import DataError

# The forms of Table 12; with and without relationship they are the same.
FORMS = {
    "characteristic": "my character trait: {}.",
    "routine_habit": "i regularly or consistently {}.",
    "goal_plan": "i intend to {} in the future.",
    "experience": "i {} in the past.",
}
BASE = tuple(FORMS)
RELATIONS = (*BASE, *(f"{name}_relationship" for name in BASE))
DEFAULT_AGES = {"start_age": 20, "end_age": 50}  # the range of most heads in Table 11
THIS_YEAR = 2020  # Table 9 pairs the names of 2010 with age 10 and those of 1970 with age 50


# What `read_lists` returns, and a persona: its sentences, and the heads, age, name and gender that
# were drawn for it; the gender is never stated.
Lists = Profile = SimpleNamespace


def read_graph(path: str | Path) -> pd.DataFrame:
    """Facts of PeaCoK as a table: head, relation, tail.

    PeaCoK is given out by its authors; this project ships a small graph of its own in the same
    format: JSON, head -> attributes -> tail -> {"relation": one of `RELATIONS`}.

    Raises:
        DataError: when a fact has no relation, or one that is unknown.
    """
    facts = [
        [head.strip(), details.get("relation"), tail.strip()]
        for head, entry in json.loads(Path(path).read_bytes()).items()
        for tail, details in entry.get("attributes", {}).items()
    ]
    if bad := [fact for fact in facts if fact[1] not in RELATIONS]:
        raise DataError(f"{len(bad)} facts have no known relation, such as {bad[0]}", path)
    table = pd.DataFrame(facts, columns=["head", "relation", "tail"])
    return table.drop_duplicates(ignore_index=True)


def read_lists(folder: str | Path) -> Lists:
    """Read the lists that turn a graph into profiles (Tables 9-11 print excerpts of the authors').

    They are `names.csv` (generation, gender, name), `families.csv` (sentence, start_age, end_age),
    `head_ages.csv` (head, start_age, end_age), `gender_neutral.csv` (gendered, neutral) and
    `negative_heads.txt` (words).
    """
    names = ("names", "families", "head_ages", "gender_neutral")
    tables = {name: pd.read_csv(Path(folder, f"{name}.csv")) for name in names}
    words = Path(folder, "negative_heads.txt").read_text(encoding="utf-8").splitlines()
    return Lists(**tables, negative=list(filter(None, words)))


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


def neutral(text: str, lists: Lists) -> str:
    """`text` with gendered words replaced where a neutral one exists (king and queen stay)."""
    for _, gendered, other in lists.gender_neutral[["gendered", "neutral"]].itertuples():
        text = re.sub(rf"\b{re.escape(gendered)}\b", other, text, flags=re.IGNORECASE)
    return text


def choose_heads(graph: pd.DataFrame, lists: Lists) -> pd.DataFrame:
    """Every head with its facts, its age range, and why it is skipped, if it is.

    Heads that give a negative impression are skipped (section 3.1 a).

    Returns:
        head, facts (their number), start_age, end_age, skipped (empty where it is used).
    """
    heads = graph.groupby("head", sort=False).size().rename("facts").reset_index()
    heads = heads.merge(lists.head_ages[["head", *DEFAULT_AGES]], how="left", on="head")
    heads = heads.fillna(DEFAULT_AGES).astype(dict.fromkeys(DEFAULT_AGES, int))
    words = "|".join(map(re.escape, lists.negative))
    bad = heads["head"].str.contains(rf"\b(?:{words})\b", case=False)
    return heads.assign(skipped=np.where(bad, "negative impression", ""))


def make_profiles(graph: pd.DataFrame, lists: Lists, count: int, seed: int = 0) -> list[Profile]:
    """Draw profiles: name, age and family, then two personas (section 3.1, appendix A.3).

    The age comes from the range of the first head, the name from the decade of birth and a
    hidden gender, the family from the sentences allowed at that age; `<n>` becomes a number.
    Each head brings one tail for each of the eight relations that it has.

    Raises:
        DataError: when a list has nothing for an age.
        ValueError: when fewer than two heads can be used.
    """
    heads = choose_heads(graph, lists)
    usable = heads[heads["skipped"] == ""].reset_index(drop=True)
    tails = graph.groupby(["head", "relation"])["tail"].agg(list).to_dict()
    rng = np.random.default_rng(seed)
    return [_profile(usable, tails, lists, rng) for _ in range(count)]


def _profile(heads: pd.DataFrame, tails: Mapping, lists: Lists, rng) -> Profile:
    """One profile; `tails` holds the tails of (head, relation)."""
    chosen = heads.iloc[rng.choice(len(heads), size=2, replace=False)]
    age = int(rng.integers(chosen["start_age"].iloc[0], chosen["end_age"].iloc[0] + 1))
    gender = str(rng.choice(["female", "male"]))
    decade = (THIS_YEAR - age) // 10 * 10
    peers = lists.names[lists.names["generation"] == THIS_YEAR - decade]
    names = peers.loc[peers["gender"] == gender, "name"]
    families = lists.families.query("start_age <= @age <= end_age")["sentence"]
    if names.empty or families.empty:
        raise DataError(f"the lists hold no {gender} name or no family for the age of {age}")
    name, family = str(rng.choice(names.tolist())), str(rng.choice(families))
    family = family.replace("<n>", str(rng.choice(["two", "three", "four"])))
    lines = [f"my name is {name}.", f"i'm {age} years old.", family[0].lower() + family[1:]]
    for head in chosen["head"]:
        known = [(relation, tails.get((head, relation))) for relation in RELATIONS]
        facts = [fact_sentence(rel, str(rng.choice(of_it))) for rel, of_it in known if of_it]
        lines += [f"{head}.", *facts]
    drawn = {"heads": tuple(chosen["head"]), "age": age, "name": name, "gender": gender}
    return Profile(sentences=tuple(neutral(line, lists) for line in lines), **drawn)


def review(profiles: Iterable[Profile], graph: pd.DataFrame, lists: Lists) -> pd.DataFrame:
    """What looks contradictory, one row each, with an empty `decision` for a person to fill.

    Found: years of doing something that the age does not allow ("for 20 years" at 25, section
    3.1), an age outside the range of a head, and a sentence said twice. A table without rows
    is no proof of consistency: read the profiles.
    """
    heads = choose_heads(graph, lists).set_index("head")
    rows = []
    for number, one in enumerate(profiles):
        rows += [(number, *doubt, "") for doubt in _doubts(one, heads, lists)]
    return pd.DataFrame(rows, columns=["profile", "sentence", "reason", "decision"])


def _doubts(one: Profile, heads: pd.DataFrame, lists: Lists) -> Iterator[tuple[str, str]]:
    for line in one.sentences[3:]:
        years = re.search(r"\b(?:for|more than|over) (\d+) years\b", line)
        if years and (began := one.age - int(years[1])) < 15:
            yield line, f"at {one.age}, this began at {began}"
    for head in one.heads:
        low, high = heads.loc[head, ["start_age", "end_age"]]
        if not low <= one.age <= high:
            yield neutral(f"{head}.", lists), f"age {one.age} is outside {low}-{high}"
    counts = pd.Series(one.sentences).value_counts()
    yield from ((line, "said twice") for line in counts.index[counts > 1])
