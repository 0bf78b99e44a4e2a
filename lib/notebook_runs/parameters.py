"""The parameters of a notebook: declared in its cell, set by a profile, checked when it starts."""

import ast
import tomllib
from pathlib import Path
from typing import Any

import papermill
import pydantic

from lib import ROOT

STRICT = pydantic.ConfigDict(strict=True, extra="forbid")


def load_profiles() -> dict:
    """Read `notebooks/profiles.toml`."""
    return tomllib.loads(
        (ROOT / "notebooks" / "profiles.toml").read_text(encoding="utf-8")
    )


def profile_parameters(profile: str, notebook: Path) -> dict[str, Any]:
    """Parameters that `profiles.toml` sets for this notebook.

    Raises:
        pydantic.ValidationError: for an unknown name or a wrong value.
    """
    profiles = load_profiles()
    values = {}
    names = [profile]
    if profile == "hub":  # the public one, with what it changes itself
        names = ["public", "hub"]
    for name in names:
        sections = profiles.get(name, {})
        values |= sections.get("all", {}) | sections.get(notebook.name[:2], {})
    parameter_model(notebook)(**values)  # refuses unknown names and wrong values
    return values


def parameter_model(notebook: Path) -> type[pydantic.BaseModel]:
    """Model of a notebook's parameters, from the typed lines of the cell tagged "parameters".

    A number must be 0 or more. An int whose default is above 0 must be at least 1.

    >>> parameter_model(ROOT / "notebooks" / "09_correlation_with_human_ratings.ipynb")(DRAWS=0)
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for 09_correlation_with_hum...
    """
    fields = {}
    for name, parameter in papermill.inspect_notebook(str(notebook)).items():
        type_name = parameter["inferred_type_name"]
        default = ast.literal_eval(parameter["default"])
        minimum = None
        if type_name == "int":
            minimum = min(1, default)
        elif type_name == "float":
            minimum = 0
        fields[name] = (type_name, pydantic.Field(default, ge=minimum))
    return pydantic.create_model(notebook.stem, __config__=STRICT, **fields)


def changed_parameters(
    number: str, profile: str, variables: dict[str, Any]
) -> list[str]:
    """Check the parameters of a running notebook and name those that differ from its profile.

    papermill only warns about a name that the notebook does not declare, and never checks types.

    Args:
        number: number of the notebook, such as "09". Another name ("yours") declares nothing.
        profile: the profile whose values are expected.
        variables: variables of the running notebook. Its list of executed cells, `In`, holds the
            cell that papermill injected.

    Raises:
        pydantic.ValidationError: for an unknown name or a wrong value.
    """
    injected: dict[str, Any] = {}
    for source in variables.get("In", []):
        if source.startswith("# Parameters\n"):
            # Assignments of literals, which the notebook ran before.
            exec(source, {}, injected)

    changed = []
    for notebook in (ROOT / "notebooks").glob(f"{number}_*.ipynb"):
        model = parameter_model(notebook)
        values = {
            name: variables[name] for name in model.model_fields if name in variables
        }
        actual = model(**injected | values)
        expected = model(**profile_parameters(profile, notebook))
        for name, value in actual:
            # Models go with a profile of their own, or into the sample's folder, by command.
            by_command = name == "MODELS" and profile != "public"
            if value != getattr(expected, name) and not by_command:
                changed.append(name)
    return changed
