"""Run the notebooks headlessly, and give each one a place for its tables and figures.

Inside a notebook: `run = notebook_runs.start("08", PROFILE, SEED)`, then `run.table`, `run.figure`,
`run.read`. From a shell: `python -m lib.notebook_runs --profile public --only 08`.
"""

import ast
import json
import random
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pydantic
import seaborn as sns
from IPython.display import display

from lib import ROOT

PROFILES = ("sample", "public")
STRICT = pydantic.ConfigDict(strict=True, extra="forbid")
SAMPLE_STAMP = "synthetic sample data"


def profile_folder(profile: str, kind: str) -> Path:
    """Folder of a profile's `results`, `reference` tables, `figures` or `notebooks`.

    The public profile writes what is committed; the sample profile writes to `build/sample`, so
    that trying things out never changes a committed result.

    >>> profile_folder("sample", "results").relative_to(ROOT).as_posix()
    'build/sample/results'
    >>> profile_folder("public", "results").relative_to(ROOT).as_posix()
    'data/results'
    """
    if profile not in PROFILES:
        raise ValueError(f"PROFILE is {profile!r}; it must be one of {', '.join(PROFILES)}")
    if profile == "sample":
        return ROOT / "build" / "sample" / kind
    return ROOT / "data" / kind if kind in ("results", "reference") else ROOT / kind


@dataclass(frozen=True)
class Run:
    """One run of one notebook.

    Attributes:
        number: two digits, as in the notebook's file name; its output files start with it.
        profile: "sample" or "public"; it names the output folders.
        own: with parameters that are not the profile's; it writes to `build/own`.
    """

    number: str
    profile: str
    own: bool = False

    def table(self, frame: pd.DataFrame, name: str, kind: str = "results") -> pd.DataFrame:
        """Write `NN_name.csv` (6 significant digits, a named index kept); return the frame."""
        written = frame.reset_index() if any(frame.index.names) else frame
        if self.number == "yours":  # texts of a user's file, which no spreadsheet should run
            written = written.map(escape_formula).rename(columns=escape_formula)
        path = self._path(kind, f"{name}.csv")
        written.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
        return frame

    def reference(self, frame: pd.DataFrame, name: str) -> pd.DataFrame:
        """Write a table that `lib.report` reads: `table`, in the folder `reference`."""
        return self.table(frame, name, kind="reference")

    def figure(self, figure, name: str, synthetic: bool | None = None) -> None:
        """Write a matplotlib figure to `NN_name.png`; one of the sample is stamped as synthetic.

        `synthetic` overrides that for a notebook run by hand on a corpus of the user's choice. A
        figure with a label is displayed with it, as the words for those who cannot see it.
        """
        if self.profile == "sample" if synthetic is None else synthetic:
            stamp_synthetic(figure)
        path = self._path("figures", f"{name}.png")
        # No software tag in the file: the same figure must give the same bytes.
        figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})
        if words := figure.get_label():
            display(figure, metadata={"image/png": {"alt": words}})
            plt.close(figure)  # or the cell would show it once more

    def results(self, pattern: str) -> list[Path]:
        """Tables of this profile whose file name matches, such as "[0-9][0-9]_*_scores.csv"."""
        return sorted(profile_folder(self.profile, "results").glob(pattern))

    def read(self, name: str, **options) -> pd.DataFrame:
        """Read the result `NN_name` of an earlier notebook; `options` go to `pandas.read_csv`.

        Raises:
            FileNotFoundError: when it is missing; the message names the command that makes it.
        """
        path = profile_folder(self.profile, "results") / f"{name}.csv"
        if not path.is_file():
            command = f"make notebooks PROFILE={self.profile} ONLY={name[:2]}"
            raise FileNotFoundError(f"the table {name}.csv is missing. Make it with: {command}")
        return pd.read_csv(path, **options)

    def _path(self, kind: str, name: str) -> Path:
        place = ROOT / "build" / "own" / kind if self.own else profile_folder(self.profile, kind)
        path = place / f"{self.number}_{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def escape_formula(cell):
    """A text that a spreadsheet would take for a formula, behind an apostrophe; all else as it is.

    >>> [escape_formula(cell) for cell in ("=1+1", "1+1", -1.0)]
    ["'=1+1", '1+1', -1.0]
    """
    risky = isinstance(cell, str) and cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if risky else cell


def stamp_synthetic(figure) -> None:
    """Write that the data are synthetic below everything that is drawn, at the right.

    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> stamp_synthetic(figure)
    >>> figure.texts[0].get_text()
    'synthetic sample data'
    """
    figure.draw_without_rendering()  # labels know their place only once they are laid out
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    right, below = drawn.x1 / width, (drawn.y0 - 0.05) / height
    figure.text(right, below, SAMPLE_STAMP, ha="right", va="top", fontsize=8, color="0.4")


def start(number: str, profile: str, seed: int = 0) -> Run:
    """Begin a notebook: seed the random generators, set the figure style, say what runs.

    Args:
        number: the notebook's number, for example "08".
        profile: "sample" or "public".
        seed: seeds `random`, `numpy.random` and, where it is already imported, `torch`. Functions
            of `lib` that draw take a seed of their own.

    A run with parameters that are not the profile's (`profiles.toml`) never writes over the
    profile's tables and figures: its own go to `build/own`.

    Raises:
        ValueError: on another profile; pydantic's for a parameter that `changed` refuses.
    """
    profile_folder(profile, "results")  # an unknown profile fails here, before any work
    other = changed_parameters(number, profile, vars(sys.modules["__main__"]))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries below may draw from the global state
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    titles = {"axes.titlesize": "medium", "axes.titleweight": "bold"}
    # A name drawn from a hash would change the file from run to run.
    size = {"figure.dpi": 100, "figure.figsize": (7, 4), "svg.hashsalt": "lib.notebook_runs"}
    sns.set_theme("notebook", "whitegrid", "colorblind", font_scale=0.9, rc=titles | size)
    packages = ", ".join(f"{p} {version(p)}" for p in ("numpy", "pandas", "scipy"))
    data = "synthetic sample" if profile == "sample" else "public corpora"
    print(f"notebook {number}, profile {profile} ({data}), seed {seed}; {packages}")
    if other:
        print(f"set by hand: {', '.join(other)}; tables and figures go to build/own")
    return Run(number, profile, own=bool(other))


def profile_parameters(profile: str, notebook: Path) -> dict[str, Any]:
    """What `profiles.toml` sets in this notebook.

    Raises:
        pydantic.ValidationError: for an unknown name or a wrong value.
    """
    chosen = load_profiles().get(profile, {})
    values = chosen.get("all", {}) | chosen.get(notebook.name[:2], {})
    parameter_model(notebook)(**values)
    return values


def load_profiles() -> dict:
    """Read `profiles.toml`."""
    return tomllib.loads((ROOT / "notebooks" / "profiles.toml").read_text(encoding="utf-8"))


def parameter_model(notebook: Path) -> type[pydantic.BaseModel]:
    """The parameters of a notebook, from the typed lines of the cell tagged "parameters".

    A number is 0 or more; where an int stands above 0 in the notebook, it counts from 1.

    >>> parameter_model(ROOT / "notebooks" / "08_correlation_with_human_ratings.ipynb")(DRAWS=0)
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for 08_correlation_with_hum...
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    (cell,) = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    fields = {}
    for line in ast.parse("".join(cell["source"])).body:
        kind, default = ast.unparse(line.annotation), ast.literal_eval(line.value)
        least = {"int": min(1, default), "float": 0}[kind] if kind in ("int", "float") else None
        fields[line.target.id] = (kind, pydantic.Field(default, ge=least))
    return pydantic.create_model(notebook.stem, __config__=STRICT, **fields)


def changed_parameters(number: str, profile: str, kernel: dict[str, Any]) -> list[str]:
    """Check the parameters in a running notebook; return those that are not the profile's.

    papermill only warns of a name that the notebook does not know, and never looks at types.

    Args:
        number: of the notebook, "08"; a run of another name ("yours") declares nothing.
        profile: whose values, in `profiles.toml`, are the expected ones.
        kernel: the variables of the notebook.

    Raises:
        pydantic.ValidationError: it names parameter, value and what is wanted.
    """
    other = []
    for path in (ROOT / "notebooks").glob(f"{number}_*.ipynb"):
        model, expected = parameter_model(path), profile_parameters(profile, path)
        injected = [cell for cell in kernel.get("In", []) if cell.startswith("# Parameters\n")]
        given = [line.targets[0].id for cell in injected for line in ast.parse(cell).body]
        own = {name: kernel[name] for name in [*model.model_fields, *given] if name in kernel}
        now, then = model(**own), model(**expected)
        other = [name for name, value in now if value != getattr(then, name)]
    return other
