"""Which parameters a profile sets in which notebook, and which notebook needs which."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import nbformat

from lib import ROOT
from lib.notebook_runs.outputs import PROFILES

NOTEBOOKS = ROOT / "notebooks"


def find(folder: Path = NOTEBOOKS) -> list[Path]:
    """All numbered notebooks, in order: by glob, so that none can be forgotten."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))


def known_parameters(notebook: Path) -> set[str]:
    """Names assigned in the cell tagged `parameters`.

    Raises
    ------
    ValueError
        When the notebook has no such cell.
    """
    for cell in nbformat.read(notebook, as_version=4).cells:
        if "parameters" in cell.metadata.get("tags", []):
            nodes = ast.parse(cell.source).body
            single = {n.target.id for n in nodes if isinstance(n, ast.AnnAssign)}
            plain = {t.id for n in nodes if isinstance(n, ast.Assign) for t in n.targets}
            return single | plain
    raise ValueError(f"{notebook.name}: no cell is tagged 'parameters'")


def parameters(profile: str, notebook: Path, settings: dict) -> dict:
    """What the profile sets in this notebook; refuses a name that the notebook does not know.

    Raises
    ------
    ValueError
        On an unknown profile or parameter; papermill alone would only print a warning.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile {profile!r} is unknown; choose one of {', '.join(PROFILES)}")
    chosen = settings.get(profile, {})
    values = {**chosen.get("all", {}), **chosen.get(notebook.name[:2], {})}
    known = known_parameters(notebook)
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(
            f"{notebook.name}: unknown parameter {', '.join(unknown)} in profile {profile!r} "
            f"(notebooks/profiles.toml); the notebook knows {', '.join(sorted(known))}"
        )
    return values


def load(folder: Path = NOTEBOOKS) -> dict:
    """Read `profiles.toml` and check that every notebook number in it exists.

    Raises
    ------
    ValueError
        When a section names a notebook that is not there.
    """
    settings = tomllib.loads((folder / "profiles.toml").read_text(encoding="utf-8"))
    numbers = {path.name[:2] for path in find(folder)}
    needs = settings.get("needs", {})
    named = set(needs) | {number for group in needs.values() for number in group}
    for profile in PROFILES:
        named |= set(settings.get(profile, {})) - {"all"}
    if named - numbers:
        raise ValueError(
            f"profiles.toml names notebooks that do not exist: {', '.join(sorted(named - numbers))}"
        )
    return settings
