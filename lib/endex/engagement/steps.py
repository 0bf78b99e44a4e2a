"""The SQL texts of this package, whole and step by step, for a notebook to show and run."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_STEP = re.compile(r"((?:^--[^\n]*\n)*)^(\w+) as \(\n(.*?)^\),?\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One common table expression: its name, what it computes, and its SQL."""

    name: str
    meaning: str
    sql: str


@cache
def text(name: str) -> str:
    """The SQL text `posts`, `sample` or `funnel`."""
    return (
        resources.files("lib.endex.engagement").joinpath(f"{name}.sql").read_text(encoding="utf-8")
    )


@cache
def steps(name: str = "posts") -> tuple[Step, ...]:
    """The steps of an SQL text, in order.

    >>> [step.name for step in steps()][:4]
    ['reactions', 'pairs', 'eligible', 'medians']
    """
    return tuple(
        Step(found[2], " ".join(re.sub(r"^--", "", found[1], flags=re.M).split()), found[0])
        for found in ((match[0], match[1], match[2]) for match in _STEP.finditer(text(name)))
    )


def up_to(name: str) -> str:
    """The query that gives the rows of one step of `posts`.

    Raises:
        KeyError: no such step; names those there are.

    >>> up_to("medians").splitlines()[-1]
    'select * from medians'
    """
    names = [step.name for step in steps()]
    if name not in names:
        raise KeyError(f"no step {name!r} in posts.sql; there are {', '.join(names)}")
    kept = [step.sql.rstrip().rstrip(",") for step in steps()[: names.index(name) + 1]]
    return "with\n\n" + ",\n\n".join(kept) + f"\n\nselect * from {name}"
