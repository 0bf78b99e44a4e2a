"""Execute the notebooks, strictly and two at a time, and skip what is up to date."""

import copy
import os
import re
import time
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from lib import ROOT
from lib.data.storage import atomic_write
from lib.notebook_runs import profile_folder
from lib.notebook_runs.parameters import (
    load_profiles,
    parameter_model,
    profile_parameters,
)

INPUTS = ("lib", "data/sample", "data/published", "data/models", "data/reference")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
CAPTIONS = ROOT / "notebooks" / "captions.toml"
FIGURE_CALL = re.compile(r'run\.figure\([^"]*?, "(\w+)"')
METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}


@dataclass
class Outcome:
    """The outcome of one notebook: its status is "ran", "up to date", "failed" or "not run"."""

    notebook: str
    status: str
    seconds: float = 0.0
    message: str = ""


def find_notebooks() -> list[Path]:
    """All numbered notebooks, each after those whose results it needs.

    Among notebooks that could run at the same time, higher numbers come first: they take longest.
    """
    needs = load_profiles().get("needs", {})

    def depth(number: str) -> int:
        return max((1 + depth(needed) for needed in needs.get(number, [])), default=0)

    paths = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"), reverse=True)
    return sorted(paths, key=lambda path: depth(path.name[:2]))


def run_all(
    profile: str, only: list[str] | None = None, force: bool = False, models: str = ""
) -> list[Outcome]:
    """Run the notebooks of a profile, two at a time, each after those that it needs.

    Args:
        profile: "sample", "public" or "hub".
        only: numbers to run, for example ["03", "09"]; all by default.
        force: also run notebooks that are up to date.
        models: words of `lib.metrics.parse_models`, for the notebooks with a parameter MODELS.

    Returns:
        One outcome for each notebook asked for. A notebook whose needs failed is "not run"; the
        others go on.

    Raises:
        ValueError: for an unknown profile, parameter or number, before anything runs.
    """
    profile_folder(profile, "results")  # refuses an unknown profile
    paths = {path.name[:2]: path for path in find_notebooks()}
    unknown = set(only or []) - set(paths)
    if unknown:
        raise ValueError(f"no notebook with number {', '.join(sorted(unknown))}")
    if only:
        paths = {number: path for number, path in paths.items() if number in only}
    parameters = {
        number: profile_parameters(profile, path) for number, path in paths.items()
    }
    for number, path in paths.items():
        if models and "MODELS" in parameter_model(path).model_fields:
            parameters[number]["MODELS"] = models
    all_needs = load_profiles().get("needs", {})
    started: dict[str, Future[Outcome]] = {}

    def run(number: str) -> Outcome:
        path = paths[number]
        needs = all_needs.get(number, [])
        # Needed notebooks started earlier, so that waiting for them cannot block the pool.
        waited_for = [needed for needed in needs if needed in started]
        failed = [needed for needed in waited_for if started[needed].result().message]
        if failed:
            outcome = Outcome(
                path.stem, "not run", message=f"needs {', '.join(failed)}"
            )
        elif not force and is_up_to_date(path, profile, needs, models):
            outcome = Outcome(path.stem, "up to date")
        else:
            outcome = run_notebook(path, profile, parameters[number], models=models)
        print(
            f"{outcome.status:>10} {outcome.seconds:7.1f} s  {outcome.notebook}",
            flush=True,
        )
        return outcome

    if len(paths) > 1:  # two kernels that each use all cores slow each other down
        os.environ.setdefault(
            "OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // 2))
        )
    pool = ThreadPoolExecutor(2)
    try:
        for number in paths:
            started[number] = pool.submit(run, number)
        return [future.result() for future in started.values()]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_notebook(
    path: Path, profile: str, parameters: dict, models: str = ""
) -> Outcome:
    """Run one notebook and write it with its outputs; its stamp names the models asked for.

    A cell that fails and a kernel that dies become an `Outcome`.
    """
    stamp = stamp_file(path, profile)
    stamp.unlink(missing_ok=True)
    start = time.perf_counter()
    try:
        executed = papermill.execute_notebook(
            path,
            output_path=None,
            parameters=parameters,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            # The folder to run in. papermill's own option `cwd` would move both threads.
            resources={"metadata": {"path": str(path.parent)}},
            # Hides that the kernel uses a local port, and that it was interrupted at its end.
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        return Outcome(
            path.stem, "failed", time.perf_counter() - start, explain(path, error)
        )
    except RuntimeError as error:  # a dead kernel, for example for lack of memory
        message = f"{path.name}: {error}"
        return Outcome(path.stem, "failed", time.perf_counter() - start, message)
    source = nbformat.read(path, as_version=4)
    notebook = with_outputs(source, executed)
    add_alternative_texts(notebook, path.name[:2])
    with atomic_write(profile_folder(profile, "notebooks") / path.name) as file:
        file.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", "utf-8")
    with atomic_write(stamp) as file:
        file.write_text(models, encoding="utf-8")
    return Outcome(path.stem, "ran", time.perf_counter() - start)


def stamp_file(path: Path, profile: str) -> Path:
    """The file that is written when a notebook has run; it holds the models that were asked for."""
    return ROOT / "build" / profile / "finished" / path.stem


def is_up_to_date(path: Path, profile: str, needs: list[str], models: str = "") -> bool:
    """Whether nothing that a notebook reads or wrote is newer than its last run, as in `make`.

    That is the notebook, the profiles, the code of `lib`, the shipped data, the locked versions,
    the results of the notebooks that it needs, and what it wrote itself (which a run by hand
    overwrites). A run that was asked for other models is not up to date either.
    """
    stamp = stamp_file(path, profile)
    output = profile_folder(profile, "notebooks") / path.name
    if not (stamp.is_file() and output.is_file()):
        return False
    if stamp.read_text(encoding="utf-8") != models:
        return False
    files = [path, output, path.with_name("profiles.toml"), ROOT / "requirements.lock"]
    for name in INPUTS:
        files += (file for file in (ROOT / name).rglob("*") if file.suffix != ".pyc")
    for number in [*needs, path.name[:2]]:
        for kind in ("results", "reference", "figures"):
            files += profile_folder(profile, kind).glob(f"{number}_*")
    last_run = stamp.stat().st_mtime_ns
    return all(file.stat().st_mtime_ns <= last_run for file in files if file.is_file())


def explain(path: Path, error: PapermillExecutionError) -> str:
    """Say where a notebook failed: notebook, code cell, line, error."""
    traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    arrow_lines = re.findall(r"^-+> *\d+ (.*)$", traceback, flags=re.MULTILINE)
    # Arrows into the library come first where an error was raised while handling another one.
    in_cell = [line.strip() for line in arrow_lines if line.strip() in error.source]
    line = in_cell[0] if in_cell else ""
    # Counted as in the notebook that the reader has, without the cell that papermill injects.
    sources = [cell.source for cell in code_cells(nbformat.read(path, as_version=4))]
    number = error.exec_count
    if error.source in sources:
        number = sources.index(error.source) + 1
    return f"{path.name}, code cell {number}: {line}\n    {error.ename}: {error.evalue}"


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells of a notebook, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def with_outputs(source: NotebookNode, executed: NotebookNode) -> NotebookNode:
    """The source notebook with the outputs of its executed copy, the same for any two runs.

    Sources, tags and default parameters are kept; what a profile injected is not written back.
    Run metadata, timings, standard error (progress bars and warnings about threads, which differ
    from run to run) and widgets are left out. Code cells are numbered from 1.

    >>> cell = nbformat.v4.new_code_cell("1 + 1", execution_count=7, id="c01")
    >>> notebook = nbformat.v4.new_notebook(cells=[cell])
    >>> with_outputs(notebook, notebook).cells[0].execution_count
    1
    """
    result = copy.deepcopy(source)
    result.metadata = nbformat.from_dict(METADATA)
    for cell in result.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = NotebookNode({"tags": tags} if tags else {})
    executed_cells = {cell.id: cell for cell in executed.cells}
    for count, cell in enumerate(code_cells(result), start=1):
        cell.execution_count = count
        cell.outputs = [
            output for output in executed_cells[cell.id].outputs if is_kept(output)
        ]
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            if "metadata" in output:
                output.metadata = NotebookNode()
    # The messages that one stream is cut into depend on timing.
    notebook, _ = CoalesceStreamsPreprocessor().preprocess(result, {})
    return notebook


def add_alternative_texts(notebook: NotebookNode, number: str) -> None:
    """Write the alternative text of `notebooks/captions.toml` beside each image, in place.

    A cell shows its images in the order of its calls of `Run.figure`.
    """
    texts = tomllib.loads(CAPTIONS.read_text(encoding="utf-8"))
    for cell in code_cells(notebook):
        images = [output for output in cell.outputs if is_image(output)]
        names = FIGURE_CALL.findall(cell.source)
        for image, name in zip(images, names, strict=False):
            alternative = texts.get(f"{number}_{name}", {}).get("alt", "")
            if alternative:
                image.metadata = NotebookNode({"image/png": {"alt": alternative}})


def is_image(output: NotebookNode) -> bool:
    """Whether an output is a picture."""
    return "image/png" in output.get("data", ())


def is_kept(output: NotebookNode) -> bool:
    """Whether an output is committed: neither standard error nor a widget."""
    is_widget = any("widget" in mime_type for mime_type in output.get("data", ()))
    return output.get("name") != "stderr" and not is_widget
