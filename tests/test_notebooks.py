"""The notebooks as a reader gets them, and as the runner executes them on the sample.

All of this file runs in one process (`--dist loadfile`): the runs write to the same folder.
"""

import filecmp
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from second_run import shown

from lib import ROOT, data
from lib.notebook_runs import PROFILES, runner
from lib.notebook_runs.parameters import (
    load_profiles,
    parameter_model,
    profile_parameters,
)
from lib.notebook_runs.runner import code_cells

NOTEBOOKS = runner.find_notebooks()
SOLUTIONS = sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
PUBLIC_PATHS = re.compile(
    r"(?:^|[\s'\"(=])(?:/(?:home|root|Users|tmp|work|opt|usr)/|[A-Z]:\\\\)"
)


def ids(path: Path) -> str:
    return path.stem


@pytest.fixture(scope="session")
def sample_run():
    """Every notebook, executed once on the sample (or up to date already)."""
    return {outcome.notebook: outcome for outcome in runner.run_all("sample")}


@pytest.fixture(params=[*NOTEBOOKS, *SOLUTIONS], ids=ids)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


# Notebook, cell, table, row (its label or a query), column, and how the prose writes the value.
TOLD = pd.read_csv(
    ROOT / "tests" / "golden" / "told_in_prose.csv", dtype=str
).values.tolist()


def prose(number: str, cell: str) -> str:
    """The text of a cell of the notebook with that number."""
    path = next(path for path in NOTEBOOKS if path.name.startswith(number))
    return next(
        c.source for c in nbformat.read(path, as_version=4).cells if c.id == cell
    )


def test_all_sixteen_are_found_and_profiles_name_no_other():
    numbers = [path.name[:2] for path in NOTEBOOKS]
    assert sorted(numbers) == [f"{n:02d}" for n in range(16)]
    settings = load_profiles()
    for number, needs in settings["needs"].items():
        assert all(numbers.index(n) < numbers.index(number) for n in needs), number
    named = {number for section in settings.values() for number in section}
    assert named | {n for needs in settings["needs"].values() for n in needs} <= {
        *numbers,
        "all",
    }
    for path in NOTEBOOKS:
        for profile in PROFILES:
            profile_parameters(profile, path)  # raises


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_runs_on_the_sample(path, sample_run):
    outcome = sample_run[path.stem]
    assert outcome.status in ("ran", "up to date"), outcome.message


def test_second_run_in_another_process_gives_the_same_bytes(sample_run, tmp_path):
    """Tables, figures and shown values: outputs can be committed without noise."""
    assert {outcome.status for outcome in runner.run_all("sample")} == {"up to date"}
    command = [sys.executable, ROOT / "tests" / "second_run.py", tmp_path]
    # Another seed of the hashes than any kernel draws: what hangs on the order of a set differs.
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    first, second = ROOT / "build" / "sample", tmp_path / "build" / "sample"
    for kind in ("results", "figures"):
        names = sorted(path.name for path in (second / kind).iterdir())
        same, *other = filecmp.cmpfiles(
            first / kind, second / kind, names, shallow=False
        )
        assert same == names, f"these differ, or are missing: {other}"
    again = json.loads((tmp_path / "values.json").read_text())
    for path in NOTEBOOKS:
        cells = code_cells(nbformat.read(first / "notebooks" / path.name, as_version=4))
        results = [
            o
            for cell in cells
            for o in cell.outputs
            if o.output_type == "execute_result"
        ]
        assert [shown(result.data) for result in results] == again[path.stem], path.stem


def test_solutions_run_and_show_what_is_committed(tmp_path):
    """Each on the sample, whatever the profile of the notebook that it belongs to."""
    command = [sys.executable, ROOT / "tests" / "second_run.py", tmp_path, *SOLUTIONS]
    subprocess.run(command, check=True, capture_output=True)
    again = json.loads((tmp_path / "values.json").read_text())
    for path in SOLUTIONS:
        assert path.name[:2] in {notebook.name[:2] for notebook in NOTEBOOKS}
        cells = code_cells(nbformat.read(path, as_version=4))
        results = [
            o
            for cell in cells
            for o in cell.outputs
            if o.output_type == "execute_result"
        ]
        assert [shown(result.data) for result in results] == again[path.stem], path.stem
    assert not [
        p for p in tmp_path.rglob("*") if p.is_file() and p.name != "values.json"
    ]


def test_one_notebook_alone_from_any_folder(tmp_path):
    """As the README says: papermill, one parameter, whatever the working directory."""
    (path,) = [path for path in NOTEBOOKS if path.name.startswith("00")]
    command = [sys.executable, "-m", "papermill", path, "out.ipynb", "-p", "CORPUS"]
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    subprocess.run(
        [*command, "sample_personas"], **options, check=True, capture_output=True
    )
    cells = code_cells(nbformat.read(tmp_path / "out.ipynb", as_version=4))
    assert 'CORPUS = "sample_personas"' in "\n".join(cell.source for cell in cells)
    printed = [o.get("text", "") for cell in cells for o in cell.outputs]
    assert "set by hand: CORPUS" in "".join(printed)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_every_image_has_a_caption_and_an_alternative_text(path):
    """The site and the runs take both from one table, in the order of a cell's figures."""
    captions = tomllib.loads((ROOT / "notebooks/captions.toml").read_text("utf-8"))
    for cell in code_cells(nbformat.read(path, as_version=4)):
        images = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        names = runner.FIGURE_CALL.findall(cell.source)
        assert len(images) == len(names), cell.id
        for image, name in zip(images, names, strict=True):
            texts = captions[f"{path.name[:2]}_{name}"]
            assert min(len(texts["caption"]), len(texts["alt"])) > 40, name
            assert image.metadata == {"image/png": {"alt": texts["alt"]}}, name


def test_captions_name_figures_that_are_there():
    captions = tomllib.loads((ROOT / "notebooks/captions.toml").read_text("utf-8"))
    assert set(captions) == {
        path.stem for path in (ROOT / "figures").glob("[0-9]*.png")
    }


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_the_outputs_begin_with_the_parameters_that_made_them(path):
    """The cell above shows those of the sample; the outputs are of the public profile."""
    declared = parameter_model(path)().model_dump()
    cells = code_cells(nbformat.read(path, as_version=4))
    (start,) = [cell for cell in cells if "notebook_runs.start(" in cell.source]
    printed = start.outputs[0].text
    for name, value in profile_parameters("public", path).items():
        if name != "PROFILE":
            assert (f"\n    {name} = " in printed) == (value != declared[name]), name
            if not isinstance(value, list | dict) and value != declared[name]:
                assert f"\n    {name} = {value!r}\n" in printed


def test_executed_in_order_without_errors(notebook):
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]


def test_holds_nothing_of_the_machine_it_ran_on(notebook):
    text = json.dumps([cell.get("outputs", []) for cell in code_cells(notebook)])
    text = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not PUBLIC_PATHS.search(text)
    assert not re.search(r"\bat 0x[0-9a-f]{6,}", text), (
        "a memory address changes from run to run"
    )
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("path", [*NOTEBOOKS, *SOLUTIONS], ids=ids)
def test_defines_only_what_it_teaches_and_installs_nothing(path):
    """A method from scratch may be a function, if it is then compared with the library's."""
    sources = [cell.source for cell in code_cells(nbformat.read(path, as_version=4))]
    for number, source in enumerate(sources):
        assert "pip install" not in source
        assert not re.search(r"^\s*class ", source, flags=re.M)
        for name in re.findall(r"^\s*def (\w+)", source, flags=re.M):
            after = "\n".join(sources[number : number + 4])
            compared = re.search(
                rf"assert [^\n]*\b{name}\(|{name}\([\s\S]*assert ", after
            )
            assert compared or path in SOLUTIONS, name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_says_what_it_is_about(path):
    cells = nbformat.read(path, as_version=4).cells
    top = "\n".join(cell.source for cell in cells[:2])
    assert top.startswith(f"# {path.name[:2]} ")
    for word in ("You will learn", "Reads", "Writes", "Time", "Paper"):
        assert word in top, f"{path.name}: the first cells do not say '{word}'"
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert re.search(r"^## .*Limits", text, flags=re.MULTILINE)
    assert len({cell.id for cell in cells}) == len(cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_parameters_are_typed_and_commented(path):
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert cell.source.startswith('PROFILE: str = "sample"')
    for line in cell.source.splitlines():
        assert re.match(r"[A-Z_]+: [a-z\[\], |]+ = .+  # ", line), (
            f"{path.name}: {line}"
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_committed_outputs_come_from_the_public_corpora(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    texts = [output.get("text", "") for cell in cells for output in cell.outputs]
    assert any("profile public" in text for text in texts)


@pytest.mark.parametrize("number, cell, table, row, column, told", TOLD)
def test_a_number_in_the_prose_stands_in_its_table(
    number, cell, table, row, column, told
):
    found = pd.read_csv(ROOT / "data" / "results" / f"{table}.csv")
    chosen = (
        found.query(row) if "==" in row else found[found.iloc[:, 0].astype(str) == row]
    )
    (value,) = re.findall(r"(?:(?<=[ (])-)?\d*\.\d+", told)
    assert told in prose(number, cell)
    assert round(chosen[column].item(), len(value.partition(".")[2])) == float(value)


def test_tables_of_the_ten_replies_fit_together():
    """Notebook 13 puts them side by side: the same ten rows, and no column twice."""
    tables = [
        pd.read_csv(p, index_col="reply") for p in ROOT.glob("data/results/??_ten.csv")
    ]
    assert all(sorted(table.index) == list(range(1, 11)) for table in tables)
    columns = [column for table in tables for column in table]
    assert "people" in columns and len(columns) == len(set(columns))
    gaps = pd.read_csv(ROOT / "data/results/13_gaps.csv", index_col="reply")
    assert (gaps.mean(axis=1).idxmin(), gaps.mean(axis=1).idxmax()) == (5, 10)
    fooled = ["similarity to context", "USL-H, sensible", "UniEval"]
    assert gaps.loc[8, fooled].tolist() == [8, 7, 7]


@pytest.mark.public
def test_the_replies_that_are_quoted_may_be_quoted():
    chosen = pd.read_csv(ROOT / "data/sample/ten_replies.csv").query(
        "profile == 'public'"
    )
    assert {data.load(name).info["licence"] for name in chosen["corpus"]} == {"MIT"}
    assert data.ten_replies("public")["response"].str.len().gt(0).all()


READ = {
    "judges": "scale-read", "real_judges calls judges_by_author": "real-read",
    "beside_metrics beside_by_author metric_less_judge": "beside-read",
    "real_judges halves": "prompts-read", "dialogs": "dialogs-read", "bias": "bias-read",
    "self_agreement": "self-read", "probes": "probes-read", "ten worst": "worst-read",
    "real_judges table_16": "paper-read", "replace": "replace-read",
    "strong_judges strong_judges_mean strong_leniency strong_metrics": "strong-read",
    "calibration": "calibration-read",
}  # fmt: skip


@pytest.mark.parametrize("tables, cell", READ.items())
def test_every_number_that_07_tells_stands_in_its_tables(tables, cell):
    """Of two decimals or three, rounded; a sign may be left to the words around it."""
    told = re.findall(r"(?<!\d)\d?\.\d{2,3}(?!\d)", prose("08", cell))
    found = [
        pd.read_csv(ROOT / f"data/results/08_{name}.csv") for name in tables.split()
    ]
    values = [
        abs(v)
        for table in found
        for v in table.select_dtypes("number").to_numpy().ravel()
    ]
    assert told
    for number in told:
        digits = len(number.partition(".")[2])
        assert any(round(value, digits) == float(number) for value in values), number
