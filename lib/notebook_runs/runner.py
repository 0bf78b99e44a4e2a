"""Execute the notebooks, strictly and two at a time, and skip what is up to date."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import time
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from lib import ROOT
from lib.data import sha256, written_whole
from lib.notebook_runs.outputs import folder

NOTEBOOKS = ROOT / "notebooks"
CODE_AND_DATA = ("lib", "data/sample", "data/published", "data/models")


@dataclass
class Outcome:
    """What became of one notebook: `ran`, `up to date`, `failed` or `not run`."""

    notebook: str
    status: str
    seconds: float = 0.0
    message: str = ""


def find(notebooks: Path = NOTEBOOKS) -> list[Path]:
    """All numbered notebooks, in order: by glob, so that none can be forgotten."""
    return sorted(notebooks.glob("[0-9][0-9]_*.ipynb"))


def load_profiles(notebooks: Path = NOTEBOOKS) -> dict:
    """Read `profiles.toml`.

    Raises:
        ValueError: when it names a notebook that is not there, or that a later one should feed.
    """
    settings = tomllib.loads((notebooks / "profiles.toml").read_text(encoding="utf-8"))
    needs = settings.setdefault("needs", {})
    named = {number for section in settings.values() for number in section} - {"all"}
    named |= {number for group in needs.values() for number in group}
    if absent := sorted(named - {path.name[:2] for path in find(notebooks)}):
        raise ValueError(f"profiles.toml: notebooks that do not exist: {', '.join(absent)}")
    if later := [number for number, group in needs.items() if max(group) >= number]:
        raise ValueError(f"profiles.toml: {', '.join(later)} needs a notebook that runs later")
    return settings


def parameters(profile: str, notebook: Path, settings: dict) -> dict:
    """What the profile sets in this notebook.

    Raises:
        ValueError: on a parameter that the notebook does not know; papermill would only warn.
    """
    chosen = settings.get(profile, {})
    values = {**chosen.get("all", {}), **chosen.get(notebook.name[:2], {})}
    known = papermill.inspect_notebook(str(notebook))
    if unknown := sorted(set(values) - set(known)):
        raise ValueError(
            f"{notebook.name}: unknown parameter {', '.join(unknown)} in profile {profile!r} "
            f"(notebooks/profiles.toml); the notebook knows {', '.join(sorted(known))}"
        )
    return values


def run_all(
    profile: str, only: list[str] | None = None, force: bool = False, notebooks: Path = NOTEBOOKS
) -> list[Outcome]:
    """Run the notebooks of a profile, two at a time, each after those that it needs.

    Args:
        profile: "sample" or "public".
        only: numbers to run, for example ["03", "08"]; all when left out.
        force: also run what is up to date.
        notebooks: their folder.

    Returns:
        One outcome for each notebook asked for. A notebook whose needs failed is `not run`; the
        others go on.

    Raises:
        ValueError: on an unknown profile, parameter or number, before anything runs.
    """
    folder(profile, "results")
    settings = load_profiles(notebooks)
    paths = {path.name[:2]: path for path in find(notebooks)}
    if unknown := set(only or []) - set(paths):
        raise ValueError(f"no notebook with number {', '.join(sorted(unknown))}")
    values = {n: parameters(profile, paths[n], settings) for n in paths if not only or n in only}
    started: dict[str, Future[Outcome]] = {}

    def run(number: str) -> Outcome:
        path, needs = paths[number], settings["needs"].get(number, [])
        # Those before it have started already, so waiting for them here cannot block them.
        before = {n: started[n].result().status for n in needs if n in started}
        if missing := [n for n, status in before.items() if status in ("failed", "not run")]:
            outcome = Outcome(path.stem, "not run", message=f"needs {', '.join(missing)}")
        else:
            outcome = run_one(path, profile, values[number], needs, force)
        print(f"{outcome.status:>10} {outcome.seconds:7.1f} s  {outcome.notebook}", flush=True)
        return outcome

    pool = ThreadPoolExecutor(2)
    try:
        for number in values:
            started[number] = pool.submit(run, number)
        return [future.result() for future in started.values()]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_one(path: Path, profile: str, values: dict, needs: list[str], force: bool) -> Outcome:
    """Run one notebook unless it is up to date; a failure becomes an `Outcome`."""
    stamp = ROOT / "build" / profile / "fingerprints" / f"{path.stem}.json"
    executed = ROOT / "build" / profile / "executed" / path.name
    now = fingerprint(path, profile, values, needs)
    if not force and _up_to_date(stamp, now):
        return Outcome(path.stem, "up to date")
    for file in (stamp, executed):
        file.parent.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    began = time.perf_counter()
    try:
        # `resources` is the folder to run in: papermill's `cwd` would move both threads at once.
        papermill.execute_notebook(
            path, executed, values, kernel_name="python3", language="python", progress_bar=False,
            resources={"metadata": {"path": str(path.parent)}},
            # Otherwise every kernel warns that it talks over a local port.
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )  # fmt: skip
    except PapermillExecutionError as error:
        return Outcome(path.stem, "failed", time.perf_counter() - began, explain(path, error))
    source, ran = (nbformat.read(file, as_version=4) for file in (path, executed))
    with written_whole(folder(profile, "notebooks") / path.name) as cleaned:
        cleaned.write_text(nbformat.writes(with_outputs(source, ran)).rstrip("\n") + "\n", "utf-8")
    stamp.write_text(json.dumps({"fingerprint": now, "outputs": _outputs(path, profile)}))
    return Outcome(path.stem, "ran", time.perf_counter() - began)


def explain(path: Path, error: PapermillExecutionError) -> str:
    """Say where a notebook failed: notebook, cell, source line, error."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    source = [(str(k), line.strip()) for k, line in enumerate(error.source.splitlines(), start=1)]
    arrows = re.findall(r"^-+> *(\d+) (.*)$", plain, flags=re.MULTILINE)
    # An error raised while another was handled is preceded by arrows into the library.
    own = [(number, text.strip()) for number, text in arrows if (number, text.strip()) in source]
    number, text = (own or source)[0]
    # Counted in the notebook as the reader sees it, without the cell that papermill injects.
    code = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    cell = code.index(error.source) + 1 if error.source in code else error.exec_count
    place = f"{path.name}, code cell {cell}, line {number}"
    return f"{place}: {text}\n    {error.ename}: {error.evalue}"


def with_outputs(source: NotebookNode, executed: NotebookNode) -> NotebookNode:
    """The source notebook with the outputs of its executed copy, alike for any two runs.

    Sources and tags are kept, and the default parameters: what a profile injected is not written
    back. Left out are run metadata, timings, standard error (progress bars and warnings about
    threads, which differ from run to run) and widgets. Cells are numbered 1..n.

    >>> cell = nbformat.v4.new_code_cell("1 + 1", execution_count=7, id="c01")
    >>> notebook = nbformat.v4.new_notebook(cells=[cell])
    >>> with_outputs(notebook, notebook).cells[0].execution_count
    1
    """
    result, ran = copy.deepcopy(source), {cell.id: cell for cell in executed.cells}
    result.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    for cell in result.cells:
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k == "tags" and v})
    code = [cell for cell in result.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, start=1):
        cell.execution_count = count
        cell.outputs = _cleaned(ran[cell.id].outputs, count)
    return result


def _cleaned(outputs: list[NotebookNode], count: int) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in outputs:
        if output.get("name") == "stderr" or any(
            "widget" in mime for mime in output.get("data", ())
        ):
            continue
        # How the kernel cuts one stream into messages depends on timing.
        if output.output_type == "stream" and kept and kept[-1].output_type == "stream":
            kept[-1].text += output.text
            continue
        changed = {"execution_count": count, "metadata": NotebookNode()}
        kept.append(NotebookNode(output | {k: v for k, v in changed.items() if k in output}))
    return kept


def fingerprint(path: Path, profile: str, values: dict, needs: list[str]) -> str:
    """SHA-256 over all that the outputs depend on.

    That is the notebook's sources, its parameters, the code of `lib`, the shipped data, the locked
    versions, and the results of the notebooks it needs.
    """
    cells = nbformat.read(path, as_version=4).cells
    files = [ROOT / "requirements.lock"]
    for name in CODE_AND_DATA:
        files += sorted(p for p in (ROOT / name).rglob("*") if p.is_file() and p.suffix != ".pyc")
    for number in needs:
        files += sorted(folder(profile, "results").glob(f"{number}_*.csv"))
    state = [[(cell.cell_type, cell.source) for cell in cells], values, profile, _digests(files)]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _outputs(path: Path, profile: str) -> dict[str, str | None]:
    """The files that a notebook wrote, each with its SHA-256."""
    files = [folder(profile, "notebooks") / path.name]
    for kind in ("results", "figures"):
        files += folder(profile, kind).glob(f"{path.name[:2]}_*")
    return _digests(sorted(files))


def _digests(files: list[Path]) -> dict[str, str | None]:
    """Per file, named from the repository, its SHA-256; None where there is no such file."""
    named = {file.relative_to(ROOT).as_posix(): file for file in files}
    return {name: sha256(file) if file.is_file() else None for name, file in named.items()}


def _up_to_date(stamp: Path, now: str) -> bool:
    """Whether nothing changed, on either side.

    A notebook run by hand with other parameters writes the same files, so these are checked too.
    """
    if not stamp.is_file():
        return False
    last = json.loads(stamp.read_text())
    written = [ROOT / name for name in last["outputs"]]
    return last["fingerprint"] == now and _digests(written) == last["outputs"]
