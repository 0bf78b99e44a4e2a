"""The typed parameters of a notebook: what it knows, and whether a run was given something else.

papermill only warns of a name that the notebook does not know, and never looks at types; so a
notebook looks itself, when it calls `notebook_runs.start`.
"""

import ast
import builtins
import json
import tomllib
from pathlib import Path
from typing import Any

from lib import ROOT


def load_profiles() -> dict:
    """Read `profiles.toml`."""
    return tomllib.loads((ROOT / "notebooks" / "profiles.toml").read_text(encoding="utf-8"))


def parameters(profile: str, notebook: Path) -> dict[str, Any]:
    """What the profile sets in this notebook.

    Raises:
        ValueError: on a parameter that the notebook does not know; papermill would only warn.
    """
    chosen, known = load_profiles().get(profile, {}), declared(notebook)
    values = chosen.get("all", {}) | chosen.get(notebook.name[:2], {})
    if unknown := sorted(set(values) - set(known)):
        raise ValueError(
            f"{notebook.name}: unknown parameter {', '.join(unknown)} in profile {profile!r} "
            f"(notebooks/profiles.toml); the notebook knows {', '.join(sorted(known))}"
        )
    return values


def declared(notebook: Path) -> dict[str, tuple[str, Any]]:
    """Type and default of each parameter, from the cell tagged "parameters"."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    (cell,) = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    lines = ast.parse("".join(cell["source"])).body
    return {
        line.target.id: (ast.unparse(line.annotation), ast.literal_eval(line.value))
        for line in lines
    }


def fits(value: Any, kind: str) -> bool:
    """Whether a value is of a type as a parameters cell writes it.

    >>> fits(["TP"], "list[str]"), fits([1], "list[str]"), fits("no", "bool"), fits(2, "float")
    (True, False, False, True)
    """
    outer, _, inner = kind.removesuffix("]").partition("[")
    if inner:
        return fits(value, outer) and all(fits(one, inner) for one in value)
    return type(value) in ((int, float) if outer == "float" else (getattr(builtins, outer),))


def check(name: str, value: Any, kind: str, default: Any) -> None:
    """Refuse a value of another type, a negative number, and 0 where a count starts at 1.

    Raises:
        ValueError: it names the parameter, the value and what is wanted.

    >>> check("DRAWS", 0, "int", 200)
    Traceback (most recent call last):
    ValueError: parameter DRAWS is 0; it must be 1 or more (as it stands in the notebook: 200)
    """
    wanted = "" if fits(value, kind) else f"of type {kind}"
    if not wanted and kind in ("int", "float"):
        least = min(1, default) if kind == "int" else 0
        wanted = "" if value >= least else f"{least} or more"
    if wanted:
        found = f"parameter {name} is {value!r}; it must be {wanted}"
        raise ValueError(f"{found} (as it stands in the notebook: {default!r})")


def changed(number: str, profile: str, kernel: dict[str, Any]) -> list[str]:
    """Check the parameters in a running notebook; return those that are not the profile's.

    Args:
        number: of the notebook, "08"; a run of another name ("yours") declares nothing.
        profile: whose values, in `profiles.toml`, are the expected ones.
        kernel: the variables of the notebook.

    Raises:
        ValueError: for a name that the notebook does not know, or a value that `check` refuses.
    """
    known, values = {}, {}
    for path in (ROOT / "notebooks").glob(f"{number}_*.ipynb"):
        known, values = declared(path), parameters(profile, path)
    injected = [c for c in kernel.get("In", []) if c.startswith("# Parameters\n")]
    given = {line.targets[0].id for cell in injected for line in ast.parse(cell).body}
    if known and (unknown := sorted(given - set(known))):
        raise ValueError(f"no parameter {', '.join(unknown)}: this notebook has {', '.join(known)}")
    other = []
    for name, (kind, default) in known.items():
        value = kernel.get(name, default)
        check(name, value, kind, default)
        other += [name] if name in kernel and value != values.get(name, default) else []
    return other
