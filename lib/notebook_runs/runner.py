"""Execute the notebooks in order, strictly, and skip what is up to date."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from papermill.exceptions import PapermillExecutionError

from lib import ROOT
from lib.notebook_runs import profiles
from lib.notebook_runs.cleaning import clean, put_outputs_back, write
from lib.notebook_runs.outputs import folder

CODE_AND_DATA = ("lib", "data/sample", "data/published", "data/models")


@dataclass
class Outcome:
    """What became of one notebook: `ran`, `up to date`, `failed` or `not run`."""

    notebook: str
    status: str
    seconds: float = 0.0
    message: str = ""


def run_all(
    profile: str, only: list[str] | None = None, force: bool = False, source: Path | None = None
) -> list[Outcome]:
    """Run the notebooks of a profile in order.

    Parameters
    ----------
    profile : str
        "sample" or "public".
    only : list of str, optional
        Numbers to run, for example ["03", "08"]; all when left out.
    force : bool
        Also run what is up to date.
    source : Path, optional
        Folder of the notebooks; the repository's own when left out.

    Returns
    -------
    list of Outcome
        One for each notebook asked for. A notebook whose needs failed is `not run`; the others go
        on.

    Raises
    ------
    ValueError
        On an unknown profile, parameter or number, before anything runs.
    """
    source = source or profiles.NOTEBOOKS
    settings, notebooks = profiles.load(source), profiles.find(source)
    numbers = {path.name[:2] for path in notebooks}
    if only and set(only) - numbers:
        raise ValueError(f"no notebook with number {', '.join(sorted(set(only) - numbers))}")
    chosen = [path for path in notebooks if not only or path.name[:2] in only]
    values = {path: profiles.parameters(profile, path, settings) for path in chosen}
    needs = settings.get("needs", {})
    broken: set[str] = set()
    outcomes = []
    for path in chosen:
        number = path.name[:2]
        missing = sorted(broken & set(needs.get(number, [])))
        if missing:
            outcome = Outcome(path.stem, "not run", message=f"needs {', '.join(missing)}")
        else:
            outcome = run_one(path, profile, values[path], needs.get(number, []), force)
        if outcome.status in ("failed", "not run"):
            broken.add(number)
        outcomes.append(outcome)
    return outcomes


def run_one(path: Path, profile: str, values: dict, needs: list[str], force: bool) -> Outcome:
    """Run one notebook unless it is up to date; a failure becomes an `Outcome`."""
    stamp = ROOT / "build" / profile / "fingerprints" / f"{path.stem}.json"
    executed = ROOT / "build" / profile / "executed" / path.name
    print_now = fingerprint(path, profile, values, needs)
    if not force and _up_to_date(stamp, print_now):
        return Outcome(path.stem, "up to date")
    executed.parent.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    try:
        papermill.execute_notebook(
            path,
            executed,
            parameters=values,
            kernel_name="python3",
            language="python",
            cwd=path.parent,
            progress_bar={"desc": path.stem, "unit": "cell"},
            # Otherwise every kernel warns that it talks over a local port.
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
    except PapermillExecutionError as error:
        stamp.unlink(missing_ok=True)
        return Outcome(path.stem, "failed", time.perf_counter() - began, explain(path, error))
    seconds = time.perf_counter() - began
    notebook = nbformat.read(executed, as_version=4)
    if profile == "public":
        write(put_outputs_back(nbformat.read(path, as_version=4), notebook), path)
    else:
        write(clean(notebook), folder(profile, "notebooks") / path.name)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps({"fingerprint": print_now, "outputs": _outputs(path, profile)}))
    return Outcome(path.stem, "ran", seconds)


def explain(path: Path, error: PapermillExecutionError) -> str:
    """Say where a notebook failed: notebook, cell, source line, error."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    arrows = re.findall(r"^-+> *(\d+) (.*)$", plain, flags=re.MULTILINE)
    # An error raised while another was handled is preceded by arrows into the library.
    lines = {(str(k), line.strip()) for k, line in enumerate(error.source.splitlines(), start=1)}
    own = [(number, text) for number, text in arrows if (number, text.strip()) in lines]
    number, text = (own or arrows or [("1", error.source.splitlines()[0])])[0]
    # Counted in the notebook as the reader sees it, without the cell that papermill injects.
    code = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    cell = code.index(error.source) + 1 if error.source in code else error.exec_count
    return (
        f"{path.name}, code cell {cell}, line {number}: {text.strip()}\n"
        f"    {error.ename}: {error.evalue}"
    )


def fingerprint(path: Path, profile: str, values: dict, needs: list[str]) -> str:
    """SHA-256 over all that the outputs depend on.

    That is the notebook's sources, its parameters, the code of `lib`, the shipped data, the locked
    versions, and the results of the notebooks it needs.
    """
    digest = hashlib.sha256()
    cells = nbformat.read(path, as_version=4).cells
    sources = [(cell.cell_type, cell.source) for cell in cells]
    digest.update(json.dumps([sources, values, profile], sort_keys=True).encode())
    files = [ROOT / "requirements.lock"]
    for name in CODE_AND_DATA:
        files += sorted(p for p in (ROOT / name).rglob("*") if p.is_file() and p.suffix != ".pyc")
    for number in needs:
        files += sorted(folder(profile, "results").glob(f"{number}_*.csv"))
    for file in files:
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _outputs(path: Path, profile: str) -> dict[str, str]:
    """The files that a notebook wrote, relative to the repository, each with its SHA-256."""
    files = [folder(profile, "notebooks") / path.name]
    for kind in ("results", "figures"):
        files += folder(profile, kind).glob(f"{path.name[:2]}_*")
    return {file.relative_to(ROOT).as_posix(): _sha256(file) for file in sorted(files)}


def _sha256(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def _up_to_date(stamp: Path, fingerprint_now: str) -> bool:
    """Whether nothing changed, on either side.

    A notebook run by hand with other parameters writes the same files, so these are checked too.
    """
    if not stamp.is_file():
        return False
    last = json.loads(stamp.read_text())
    unchanged = last["fingerprint"] == fingerprint_now
    return unchanged and all(_sha256(ROOT / file) == sha for file, sha in last["outputs"].items())
