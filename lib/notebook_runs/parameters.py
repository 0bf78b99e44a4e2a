"""The parameters of a notebook: declared in its cell, set by a profile, checked when it starts."""

import ast
import json
import pprint
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    for line in _parameter_lines(notebook):
        name = ast.unparse(line.target)
        type_name = ast.unparse(line.annotation)
        default = ast.literal_eval(line.value)
        minimum = None
        if type_name == "int":
            minimum = min(1, default)
        elif type_name == "float":
            minimum = 0
        fields[name] = (type_name, pydantic.Field(default, ge=minimum))
    return pydantic.create_model(notebook.stem, __config__=STRICT, **fields)


def _parameter_lines(notebook: Path) -> list[ast.AnnAssign]:
    """The typed lines of the parameter cell.

    papermill's `inspect_notebook` would do the same, but its import costs a kernel over a second.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if "parameters" in cell["metadata"].get("tags", []):
            body = ast.parse("".join(cell["source"])).body
            return [line for line in body if isinstance(line, ast.AnnAssign)]
    return []


@dataclass(frozen=True)
class ParameterChanges:
    """The parameters of a running notebook that have other values than a reader may expect.

    Attributes:
        from_cell: name and value of each parameter that differs from the notebook's parameter
            cell, in the order of the cell.
        from_profile: names of those that differ from the values of the profile.
    """

    from_cell: dict[str, Any]
    from_profile: list[str]

    def describe(self) -> str:
        """The parameters of `from_cell`, one assignment a line; "" without any.

        >>> print(ParameterChanges({"CORPUS": "dstc7", "SEEDS": [0, 1]}, []).describe())
        parameters that differ from the cell above:
            CORPUS = 'dstc7'
            SEEDS = [0, 1]
        """
        lines = []
        for name, value in self.from_cell.items():
            start = f"    {name} = "
            written = pprint.pformat(
                value, width=88 - len(start), compact=True, sort_dicts=False
            )
            lines.append(start + written.replace("\n", "\n" + " " * len(start)))
        if not lines:
            return ""
        return "\n".join(["parameters that differ from the cell above:", *lines])


def check_parameters(
    number: str, profile: str, variables: dict[str, Any]
) -> ParameterChanges:
    """Check the parameters of a running notebook; compare them with its cell and its profile.

    papermill only warns about a name that the notebook does not declare, and never checks types.

    Args:
        number: number of the notebook, such as "09".
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

    changes = ParameterChanges(from_cell={}, from_profile=[])
    for notebook in (ROOT / "notebooks").glob(f"{number}_*.ipynb"):
        model = parameter_model(notebook)
        values = {
            name: variables[name] for name in model.model_fields if name in variables
        }
        actual = model(**injected | values)
        declared = model()
        expected = model(**profile_parameters(profile, notebook))
        for name, value in actual:
            # The first line of a run states the profile.
            if value != getattr(declared, name) and name != "PROFILE":
                changes.from_cell[name] = value
            # Models go with a profile of their own, or into the sample's folder, by command.
            by_command = name == "MODELS" and profile != "public"
            if value != getattr(expected, name) and not by_command:
                changes.from_profile.append(name)
    return changes
