"""Execute the notebooks, strictly and two at a time, and skip what is up to date."""

import copy
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from lib import ROOT
from lib.data.storage import atomic_write, file_sha256
from lib.notebook_runs import load_profiles, profile_folder, profile_parameters

CODE_AND_DATA = ("lib", "data/sample", "data/published", "data/models")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}


@dataclass
class Outcome:
    """What became of one notebook: `ran`, `up to date`, `failed` or `not run`."""

    notebook: str
    status: str
    seconds: float = 0.0
    message: str = ""


def find_notebooks() -> list[Path]:
    """All numbered notebooks, each after those that it needs: by glob, so that none is missed.

    Else the later ones come first: they take longest, and the last to end should be a short one.
    """
    needs = load_profiles().get("needs", {})

    def steps(number: str) -> int:
        return max((1 + steps(before) for before in needs.get(number, [])), default=0)

    paths = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"), reverse=True)
    return sorted(paths, key=lambda path: steps(path.name[:2]))


def run_all(profile: str, only: list[str] | None = None, force: bool = False) -> list[Outcome]:
    """Run the notebooks of a profile, two at a time, each after those that it needs.

    Args:
        profile: "sample" or "public".
        only: numbers to run, for example ["03", "08"]; all when left out.
        force: also run what is up to date.

    Returns:
        One outcome for each notebook asked for. A notebook whose needs failed is `not run`; the
        others go on.

    Raises:
        ValueError: on an unknown profile, parameter or number, before anything runs.
    """
    profile_folder(profile, "results")
    paths, needed = (
        {path.name[:2]: path for path in find_notebooks()},
        load_profiles().get("needs", {}),
    )
    if unknown := set(only or []) - set(paths):
        raise ValueError(f"no notebook with number {', '.join(sorted(unknown))}")
    values = {n: profile_parameters(profile, paths[n]) for n in paths if not only or n in only}
    started: dict[str, Future[Outcome]] = {}

    def run(number: str) -> Outcome:
        path, needs = paths[number], needed.get(number, [])
        # Those before it have started already, so waiting for them here cannot block them.
        if missing := [n for n in needs if n in started and started[n].result().message]:
            outcome = Outcome(path.stem, "not run", message=f"needs {', '.join(missing)}")
        else:
            outcome = run_one(path, profile, values[number], needs, force)
        print(f"{outcome.status:>10} {outcome.seconds:7.1f} s  {outcome.notebook}", flush=True)
        return outcome

    if len(values) > 1:  # two kernels that each want all the cores hold each other up
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // 2)))
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
    now = fingerprint(path, profile, values, needs)
    last = json.loads(stamp.read_text()) if stamp.is_file() else None
    if not force and last == [now, output_digests(path, profile)]:
        return Outcome(path.stem, "up to date")
    stamp.unlink(missing_ok=True)
    began = time.perf_counter()
    try:
        ran = papermill.execute_notebook(
            path, None, values, kernel_name="python3", language="python", progress_bar=False,
            # `resources` is the folder to run in: papermill's `cwd` would move both threads.
            resources={"metadata": {"path": str(path.parent)}},
            # What the kernel itself has to say: that it talks over a local port. And at the end it
            # is interrupted before it is asked to stop (by jupyter_client); while it is still busy
            # with its last answer it logs that as an error, which it is not.
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )  # fmt: skip
    except PapermillExecutionError as error:
        return Outcome(path.stem, "failed", time.perf_counter() - began, explain(path, error))
    cleaned = nbformat.writes(with_outputs(nbformat.read(path, as_version=4), ran))
    with atomic_write(profile_folder(profile, "notebooks") / path.name) as file:
        file.write_text(cleaned.rstrip("\n") + "\n", "utf-8")
    with atomic_write(stamp) as file:
        file.write_text(json.dumps([now, output_digests(path, profile)]))
    return Outcome(path.stem, "ran", time.perf_counter() - began)


def explain(path: Path, error: PapermillExecutionError) -> str:
    """Say where a notebook failed: notebook, code cell, the line, the error."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    arrows = re.findall(r"^-+> *\d+ (.*)$", plain, flags=re.MULTILINE)
    # An error raised while another was handled is preceded by arrows into the library.
    line = next((text.strip() for text in arrows if text.strip() in error.source), "")
    # Counted in the notebook as the reader sees it, without the cell that papermill injects.
    code = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    cell = code.index(error.source) + 1 if error.source in code else error.exec_count
    return f"{path.name}, code cell {cell}: {line}\n    {error.ename}: {error.evalue}"


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
    result.metadata = nbformat.from_dict(METADATA)
    for cell in result.cells:
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k == "tags" and v})
    code = [cell for cell in result.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, start=1):
        cell.execution_count = count
        cell.outputs = [output for output in ran[cell.id].outputs if _is_kept(output)]
        for output in cell.outputs:
            alike = {"execution_count": count, "metadata": NotebookNode()}
            output.update({name: alike[name] for name in alike if name in output})
    # How the kernel cuts one stream into messages depends on timing.
    return CoalesceStreamsPreprocessor().preprocess(result, {})[0]


def _is_kept(output: NotebookNode) -> bool:
    return output.get("name") != "stderr" and "widget" not in " ".join(output.get("data", ()))


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
        files += sorted(profile_folder(profile, "results").glob(f"{number}_*.csv"))
    state = [[(cell.cell_type, cell.source) for cell in cells], values, profile, _digests(files)]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def output_digests(path: Path, profile: str) -> list:
    """What a notebook wrote, with its SHA-256: a run by hand writes the same files."""
    files = [profile_folder(profile, "notebooks") / path.name]
    for kind in ("results", "figures"):
        files += profile_folder(profile, kind).glob(f"{path.name[:2]}_*")
    return _digests(file for file in sorted(files) if file.is_file())


def _digests(files: Iterable[Path]) -> list[list[str]]:
    return [[file.relative_to(ROOT).as_posix(), file_sha256(file)] for file in files]
