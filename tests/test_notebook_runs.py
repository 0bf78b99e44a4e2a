"""The runner: strict parameters, clear failures, clean and repeatable outputs."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import lib.notebook_runs as outputs
from lib import ROOT
from lib.notebook_runs import __main__ as command
from lib.notebook_runs import parameters, runner
from lib.notebook_runs.parameters import ParameterChanges, check_parameters

PARAMETERS = 'PROFILE: str = "sample"  # profile\nN: int = 3  # how many'


# An error that a library raises while it handles another: the line must be the notebook's own.
CHAINED = "urllib.request.urlopen('file:///no-such-file')"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def notebook_with(*sources: str):
    cells = [new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}, id="c00")]
    cells += [
        new_code_cell(source, id=f"c{i:02d}") for i, source in enumerate(sources, 1)
    ]
    return new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project: a notebooks folder, an empty profile file, outputs under tmp_path."""
    for module in (outputs, parameters, runner, command):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "requirements.lock").write_text("")
    (tmp_path / "notebooks" / "profiles.toml").write_text(
        '[needs]\n"02" = ["01"]\n[public.all]\n'
    )
    fails = notebook_with("print(N)", f"import urllib.request\n{CHAINED}")
    nbformat.write(fails, tmp_path / "notebooks" / "01_fails.ipynb")
    nbformat.write(
        notebook_with("print(N)"), tmp_path / "notebooks" / "02_needs_01.ipynb"
    )
    nbformat.write(
        notebook_with("print(N + 1)"), tmp_path / "notebooks" / "03_alone.ipynb"
    )
    return tmp_path


def test_failure_is_explained_and_the_rest_goes_on(project, capsys):
    assert command.main([]) == 1
    printed = capsys.readouterr()
    assert printed.err == "", (
        "no progress bars in a log, nor what a kernel says at its end"
    )
    assert f"failed: 01_fails: 01_fails.ipynb, code cell 3: {CHAINED}" in printed.out
    assert "URLError" in printed.out and "not run: 02_needs_01: needs 01" in printed.out
    assert (
        " s  03_alone" in printed.out
        and "results   in build/sample/results/" in printed.out
    )
    assert command.main(["--only", "99"]) == 2
    assert "no notebook with number 99" in capsys.readouterr().err
    ran = nbformat.read(project / "build/sample/notebooks/03_alone.ipynb", as_version=4)
    assert ran.cells[1].outputs[0].text == "4\n"


def test_a_dead_kernel_is_a_failure_and_the_rest_goes_on(project):
    dies = notebook_with("import os\nos._exit(3)")
    nbformat.write(dies, project / "notebooks" / "01_fails.ipynb")
    outcomes = {outcome.notebook: outcome for outcome in runner.run_all("sample")}
    assert outcomes["01_fails"].status == "failed"
    assert outcomes["01_fails"].message.startswith("01_fails.ipynb: Kernel died")
    assert outcomes["02_needs_01"].status == "not run"
    assert outcomes["03_alone"].status == "ran"


def without_kernel(path, parameters, **options):
    """In place of papermill: the last cell prints its source and the parameters."""
    notebook = nbformat.read(path, as_version=4)
    text = f"{notebook.cells[-1].source} with {parameters}"
    notebook.cells[-1].outputs = [new_output("stream", name="stdout", text=text)]
    return notebook


def test_up_to_date_is_skipped_until_something_changes(project, monkeypatch):
    monkeypatch.setattr(runner.papermill, "execute_notebook", without_kernel)

    def run(**options):
        (only,) = runner.run_all("sample", ["03"], **options)
        return only.status

    written = project / "build/sample/notebooks/03_alone.ipynb"
    notebook, code = (
        project / "notebooks" / "03_alone.ipynb",
        project / "lib" / "new.py",
    )
    code.parent.mkdir()
    changes = [
        lambda: nbformat.write(notebook_with("print(N + 2)"), notebook),
        lambda: code.write_text("x = 1\n"),
        lambda: (project / "notebooks" / "profiles.toml").write_text(
            '[sample."03"]\nN = 10\n'
        ),
        lambda: written.unlink(),
        lambda: written.write_text(
            written.read_text().replace("10", "99")
        ),  # run by hand
    ]
    assert (run(), run(), run(force=True)) == ("ran", "up to date", "ran")
    for change in changes:
        change()
        assert (run(), run()) == ("ran", "up to date")
    assert "with {'N': 10}" in written.read_text()


def test_unknown_names_are_errors_before_anything_runs(project):
    (project / "notebooks" / "profiles.toml").write_text('[sample."03"]\nM = 1\n')
    with pytest.raises(ValueError, match="03_alone\nM\n.*not permitted"):
        runner.run_all("sample")
    with pytest.raises(
        ValueError, match="PROFILE is 'full'; it must be one of sample, public"
    ):
        runner.run_all("full")
    assert not (project / "build").exists()


HERE = {"PROFILE": "sample", "CORPUS": "sample_bots", "RATING": "overall", "SEED": 0}


WRONG = [
    (
        {"In": ["", "# Parameters\nCORPSU = 'x'\n"], "CORPSU": "x"},
        "CORPSU\n.* not permitted",
    ),
    ({"SEED": "1"}, "SEED\n.*valid integer .*input_value='1'"),
    ({"SEED": True}, "SEED\n.*valid integer"),
    ({"SEED": -1}, "SEED\n.*greater than or equal to 0"),
    ({"CORPUS": ["usr_topical"]}, "CORPUS\n.*valid string"),
]


@pytest.mark.parametrize("kernel, message", WRONG)
def test_a_wrong_parameter_is_an_error_in_the_kernel(kernel, message):
    """Whatever started the notebook; papermill itself would go on with the default."""
    with pytest.raises(ValueError, match=f"for 00_start_here\n{message}"):
        check_parameters("00", "sample", HERE | kernel)


def test_other_parameters_write_beside_the_profile(project, monkeypatch):
    monkeypatch.setattr(parameters, "ROOT", ROOT)  # the notebooks are the real ones
    mine = HERE | {"In": ["limit = 3"], "limit": 3}
    assert check_parameters("00", "sample", mine) == ParameterChanges({}, [])
    changes = check_parameters("00", "public", mine)
    assert changes == ParameterChanges({}, ["PROFILE", "CORPUS"])
    public = HERE | {"PROFILE": "public", "CORPUS": "usr_topical"}
    changes = check_parameters("00", "public", public)
    assert changes == ParameterChanges({"CORPUS": "usr_topical"}, [])
    changes = ParameterChanges({}, ["CORPUS"])
    monkeypatch.setattr(outputs, "check_parameters", lambda *_: changes)
    outputs.start("06", "public").table(pd.DataFrame({"x": [1]}), "beside")
    assert [p.name for p in project.rglob("*.csv")] == ["06_beside.csv"]
    assert (project / "build/own/results/06_beside.csv").is_file()


@pytest.mark.parametrize("profile", ["sample", "public"])
def test_a_file_of_the_users_writes_beside_the_profile(project, monkeypatch, profile):
    """Also where its path was saved in the parameter cell, which then differs from nothing."""
    monkeypatch.setattr(
        outputs, "check_parameters", lambda *_: ParameterChanges({}, [])
    )
    run = outputs.start("14", profile, own=True)
    run.table(pd.DataFrame({"x": [1]}), "scores")
    run.reference(pd.DataFrame({"x": [1]}), "rules")
    written = {path.relative_to(project).as_posix() for path in project.rglob("*.csv")}
    assert written == {
        "build/own/results/14_scores.csv",
        "build/own/reference/14_rules.csv",
    }


def test_a_wrong_parameter_is_an_error_with_a_file_of_the_users(monkeypatch):
    (path,) = (ROOT / "notebooks").glob("14_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    (start,) = [cell.source for cell in cells if "runs.start(" in cell.source]
    values = {"PROFILE": "sample", "SEED": 0, "DIALOGS": ["chats.csv"], "SHOW": -1}
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(**values))
    with pytest.raises(ValueError, match="SHOW\n.*greater than or equal to 1"):
        exec(start, {"notebook_runs": outputs} | values)


def test_models_reach_the_notebooks_that_take_them(project, monkeypatch):
    """And a run that was asked for other models is not up to date."""
    monkeypatch.setattr(runner.papermill, "execute_notebook", without_kernel)
    takes = notebook_with("print(MODELS)")
    takes.cells[0].source += '\nMODELS: str = ""  # models of the hub'
    nbformat.write(takes, project / "notebooks" / "05_takes.ipynb")
    asked = ["03", "05"]

    def said(profile, **options):
        outcomes = runner.run_all(profile, asked, **options)
        folder = project / "build" / profile / "notebooks"
        texts = []
        for path in sorted(folder.glob("*.ipynb")):
            cells = nbformat.read(path, as_version=4).cells
            texts.append(cells[-1].outputs[0].text)
        return [outcome.status for outcome in outcomes], texts

    statuses, texts = said("sample", models="bleurt unieval")
    assert statuses == ["ran", "ran"]
    assert "MODELS" not in texts[0] and "'MODELS': 'bleurt unieval'" in texts[1]
    assert said("sample", models="bleurt unieval")[0] == ["up to date"] * 2
    assert said("sample")[0] == ["ran", "ran"]
    profiles = '[public.all]\nN = 8\n[hub.all]\nPROFILE = "hub"\n'
    (project / "notebooks" / "profiles.toml").write_text(profiles)
    _, texts = said("hub", models="bleurt")
    assert "'N': 8" in texts[1] and "'PROFILE': 'hub'" in texts[1]


def test_a_run_killed_at_its_end_leaves_no_stamp_without_its_models(
    project, monkeypatch
):
    """The stamp is whole from the start: an empty one would mean that no model was asked for."""
    run_notebook = runner.run_notebook

    def killed(*arguments, **options):
        run_notebook(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.papermill, "execute_notebook", without_kernel)
    monkeypatch.setattr(runner, "run_notebook", killed)
    with pytest.raises(KeyboardInterrupt):
        runner.run_all("sample", ["03"], models="bleurt")
    path = project / "notebooks" / "03_alone.ipynb"
    assert not runner.is_up_to_date(path, "sample", needs=[])
    assert runner.is_up_to_date(path, "sample", needs=[], models="bleurt")


def test_public_run_puts_outputs_back_but_not_parameters(project):
    profiles = '[public.all]\nPROFILE = "public"\nN = 8\n'
    (project / "notebooks" / "profiles.toml").write_text(profiles)
    runner.run_all("public", ["03"])
    notebook = nbformat.read(project / "notebooks" / "03_alone.ipynb", as_version=4)
    assert [cell.source for cell in notebook.cells] == [PARAMETERS, "print(N + 1)"]
    assert notebook.cells[1].outputs[0].text == "9\n"
    assert [cell.execution_count for cell in notebook.cells] == [1, 2]


def test_cleaning_removes_what_differs_between_runs():
    streams = [
        new_output("stream", name="stdout", text="a"),
        new_output("stream", name="stderr", text="42%"),
        new_output("stream", name="stdout", text="b\n"),
        new_output(
            "display_data", {"application/vnd.jupyter.widget-view+json": {"id": "x1"}}
        ),
        new_output("execute_result", {"text/plain": "1"}, execution_count=3),
    ]
    source = notebook_with("f()")
    source.cells[1].metadata["collapsed"] = True
    source.metadata |= {
        "papermill": {"duration": 3.2},
        "kernelspec": KERNEL | {"name": "venv311"},
    }
    executed = notebook_with("f()")
    executed.cells.insert(
        1, new_code_cell("N = 9", metadata={"tags": ["injected-parameters"]})
    )
    executed.cells[2].outputs = streams
    cleaned = runner.with_outputs(source, executed)
    assert [cell.source for cell in cleaned.cells] == [PARAMETERS, "f()"]
    stream, result = cleaned.cells[1].outputs
    assert stream.text == "ab\n" and result.execution_count == 2
    assert cleaned.cells[1].execution_count == 2 and cleaned.cells[1].metadata == {}
    assert set(cleaned.metadata) == {"kernelspec", "language_info"}
    assert cleaned.metadata["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
@pytest.mark.parametrize("size", [(7, 4), (6, 1.2)])
def test_the_stamp_covers_no_label(size, layout):
    figure, axes = plt.subplots(figsize=size, layout=layout)
    axes.set(xlabel="a long label of the axis " * 4, xlim=(0, 1), xticks=[0, 0.5, 1])
    outputs.stamp_synthetic(figure)
    figure.draw_without_rendering()
    place = figure.texts[0].get_window_extent()
    labels = [axes.xaxis.label, *axes.get_xticklabels()]
    assert not any(place.overlaps(label.get_window_extent()) for label in labels)
    assert (
        figure.get_tightbbox().y0 * figure.dpi <= place.y0 + 1
    )  # and it is not cut off


def test_run_writes_and_reads_tables_and_figures(project):
    run = outputs.start("06", "sample", seed=3)
    frame = pd.DataFrame({"x": [1 / 3, np.nan]}, index=pd.Index(["a", "b"], name="key"))
    assert run.table(frame, "thirds") is frame
    assert (
        project / "build/sample/results/06_thirds.csv"
    ).read_text() == "key,x\na,0.333333\nb,\n"
    assert run.read("06_thirds")["x"].isna().tolist() == [False, True]
    with pytest.raises(
        FileNotFoundError, match="make notebooks PROFILE=sample ONLY=05"
    ):
        run.read("05_funnel")
    figure, axes = plt.subplots()
    run.figure(figure, "empty")
    assert outputs.SAMPLE_STAMP in [text.get_text() for text in figure.texts]
    assert (project / "build/sample/figures/06_empty.png").is_file()
    figure, axes = plt.subplots()
    outputs.Run("06", "public").figure(figure, "empty")
    assert figure.texts == []


def test_an_image_gets_the_alternative_text_of_its_figure(tmp_path, monkeypatch):
    texts = tmp_path / "captions.toml"
    texts.write_text('[07_bars]\ncaption = "c"\nalt = "Three bars."\n')
    monkeypatch.setattr(runner, "CAPTIONS", texts)
    cell = nbformat.v4.new_code_cell(
        'run.figure(plt.gcf(), "bars")\nrun.figure(figure, "dots")'
    )
    image = {
        "output_type": "display_data",
        "data": {"image/png": "iVBO"},
        "metadata": {},
    }
    cell.outputs = [nbformat.from_dict(image) for _ in range(2)]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    runner.add_alternative_texts(notebook, "07")
    assert [output.metadata for output in cell.outputs] == [
        {"image/png": {"alt": "Three bars."}},
        {},
    ]
