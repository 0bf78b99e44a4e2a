"""Run the notebooks headlessly, and give each one a place for its tables and figures.

Inside a notebook: `run = notebook_runs.start("09", PROFILE, SEED)`, then `run.table`, `run.figure`,
`run.read`. From a shell: `python -m lib.notebook_runs --profile public --only 09`.
"""

import random
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import display

from lib import ROOT
from lib.notebook_runs.parameters import check_parameters

DATA = {
    "sample": "synthetic sample",
    "public": "public corpora",
    "hub": "public corpora, with models of the hub",
}
PROFILES = tuple(DATA)
STATED_PACKAGES = ("numpy", "pandas", "scipy")
SAMPLE_STAMP = "synthetic sample data"


def profile_folder(profile: str, kind: str) -> Path:
    """Folder of a profile's `results`, `reference` tables, `figures` or `notebooks`.

    The public profile writes what is committed; the others write to `build/sample` and `build/hub`,
    so that trying things out never changes a committed result.

    >>> profile_folder("sample", "results").relative_to(ROOT).as_posix()
    'build/sample/results'
    >>> profile_folder("public", "results").relative_to(ROOT).as_posix()
    'data/results'
    """
    if profile not in PROFILES:
        raise ValueError(
            f"PROFILE is {profile!r}; it must be one of {', '.join(PROFILES)}"
        )
    if profile != "public":
        return ROOT / "build" / profile / kind
    if kind in ("results", "reference"):
        return ROOT / "data" / kind
    return ROOT / kind


@dataclass(frozen=True)
class Run:
    """One run of one notebook.

    Attributes:
        number: two digits, as in the notebook's file name; its output files start with it.
        profile: "sample", "public" or "hub"; it names the output folders.
        own: with parameters that are not the profile's, or of a file of the user's; it writes to
            `build/own`.
    """

    number: str
    profile: str
    own: bool = False

    def table(
        self, frame: pd.DataFrame, name: str, kind: str = "results"
    ) -> pd.DataFrame:
        """Write `NN_name.csv` (6 significant digits, a named index kept); return the frame."""
        table = frame
        if any(frame.index.names):
            table = frame.reset_index()
        if self.own:
            # No spreadsheet should run the texts of a user's file.
            table = table.map(escape_formula).rename(columns=escape_formula)
        path = self._path(kind, f"{name}.csv")
        table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
        return frame

    def reference(self, frame: pd.DataFrame, name: str) -> pd.DataFrame:
        """Write a table that `lib.report` reads: `table`, in the folder `reference`."""
        return self.table(frame, name, kind="reference")

    def figure(self, figure, name: str, synthetic: bool | None = None) -> None:
        """Write a matplotlib figure to `NN_name.png`, stamped as synthetic in the sample profile.

        Args:
            figure: its label, if it has one, becomes the alternative text.
            name: name of the file without the notebook's number.
            synthetic: whether the data are synthetic, where the profile does not tell: a notebook
                run by hand on another corpus.
        """
        if synthetic is None:
            synthetic = self.profile == "sample"
        if synthetic:
            stamp_synthetic(figure)
        path = self._path("figures", f"{name}.png")
        # Without the software tag, the same figure gives the same bytes.
        figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})
        if figure.get_label():
            display(figure, metadata={"image/png": {"alt": figure.get_label()}})
            plt.close(figure)  # else the cell shows it a second time

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
            raise FileNotFoundError(
                f"the table {name}.csv is missing. Make it with: {command}"
            )
        return pd.read_csv(path, **options)

    def _path(self, kind: str, name: str) -> Path:
        folder = profile_folder(self.profile, kind)
        if self.own:
            folder = ROOT / "build" / "own" / kind
        path = folder / f"{self.number}_{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def escape_formula(cell):
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    >>> [escape_formula(cell) for cell in ("=1+1", "1+1", -1.0)]
    ["'=1+1", '1+1', -1.0]
    """
    if isinstance(cell, str) and cell.lstrip(" ").startswith(
        ("=", "+", "-", "@", "\t", "\r")
    ):
        return f"'{cell}"
    return cell


def stamp_synthetic(figure) -> None:
    """Write "synthetic sample data" at the lower right, below everything else in the figure.

    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> stamp_synthetic(figure)
    >>> figure.texts[0].get_text()
    'synthetic sample data'
    """
    figure.draw_without_rendering()  # labels have a position only after the layout
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    right = box.x1 / width
    top = (box.y0 - 0.05) / height
    figure.text(right, top, SAMPLE_STAMP, ha="right", va="top", fontsize=8, color="0.4")


def start(number: str, profile: str, seed: int = 0, own: bool = False) -> Run:
    """Begin a notebook: check its parameters, seed the random generators, set the figure style.

    Prints the profile, the versions of numpy, pandas and scipy, and every parameter whose value
    differs from the notebook's parameter cell. A run with parameters other than the profile's
    (`profiles.toml`) writes its tables and figures to `build/own`, never over those of the profile.

    Args:
        number: number of the notebook, such as "09".
        profile: "sample", "public" or "hub".
        seed: for `random`, `numpy.random` and, if it is imported already, `torch`. Functions of
            `lib` that draw at random have a seed of their own.
        own: write to `build/own` in any case: the notebook reads a file of the user's, whose name
            may have been saved in the parameter cell.

    Raises:
        ValueError: for an unknown profile, an unknown parameter or a parameter of the wrong type.
    """
    profile_folder(profile, "results")  # refuses an unknown profile before any work
    changes = check_parameters(number, profile, vars(sys.modules["__main__"]))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries below may draw from the global state
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    style = {
        "axes.titlesize": "medium",
        "axes.titleweight": "bold",
        "figure.dpi": 100,
        "figure.figsize": (7, 4),
        "svg.hashsalt": "lib.notebook_runs",  # else the bytes change from run to run
    }
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette="colorblind",
        font_scale=0.9,
        rc=style,
    )
    packages = ", ".join(f"{package} {version(package)}" for package in STATED_PACKAGES)
    print(
        f"notebook {number}, profile {profile} ({DATA[profile]}), seed {seed}; {packages}"
    )
    if changes.from_cell:
        print(changes.describe())
    if changes.from_profile:
        print(f"set by hand: {', '.join(changes.from_profile)}")
    own = own or bool(changes.from_profile)
    if own:
        print("tables and figures go to build/own")
    return Run(number, profile, own)
