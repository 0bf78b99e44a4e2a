"""`MODELS="bertscore:FacebookAI/roberta-large unieval"`: read, checked, told, fetched, computed."""

import os
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import tiny_models
import tiny_repositories
from hub_server import HubServer, use_hub

from lib import ROOT, metrics, models
from lib.data import DataError
from lib.meta_evaluation import evaluation_sets
from lib.metrics import asked_models
from lib.notebook_runs import __main__ as command
from lib.report.scores import report_scores

ROBERTA = "FacebookAI/roberta-large"
TURNS = pd.DataFrame(
    {
        "context": [["do you like tea?"], ["my sister plays", "in a band?"]] * 20,
        "response": ["yes, I do! coffee keeps me awake", "that sounds like fun"] * 20,
        "reference": [["no, not really"], ["yes", "a lot of fun"]] * 20,
        "fact": [["tea is hot"], ["the trumpet"]] * 20,
    }
)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that has a RoBERTa and two of BLEURT's models, and nothing measured yet."""
    monkeypatch.setattr("lib.models.ROOT", tmp_path)
    monkeypatch.setattr(asked_models, "SPEEDS", tmp_path / "speeds")
    root = tmp_path / "root"
    for name in (ROBERTA, "lucadiliello/BLEURT-20", "lucadiliello/bleurt-base-128"):
        (root / name).mkdir(parents=True)
        tiny_repositories.REPOSITORIES[name](root / name)
    with HubServer(root) as server:
        use_hub(monkeypatch, server, tmp_path / "cache")
        yield server


def test_words_name_metrics_with_the_authors_model_or_another():
    words = f"bertscore bertscore:{ROBERTA} bleurt:lucadiliello/BLEURT-20-D3 dialogrpt"
    asked = metrics.parse_models(words)
    assert [item.metric for item in asked] == ["bertscore", "bleurt", "dialogrpt"]
    assert asked[0].options == {"encoder": ROBERTA}
    assert asked[1].label == "BLEURT-20-D3"
    heads = asked[2].options["heads"]
    assert heads == {**metrics.classifiers.HEADS}
    assert metrics.parse_models("") == []
    folder = str(ROOT / "lib")
    assert metrics.parse_models(f"fed:{folder}")[0].models == (folder,)


def test_all_names_every_model_but_the_packaged_ones_once():
    asked = metrics.parse_models("all")
    named = [model for item in asked for model in item.models]
    assert sorted(named) == sorted(set(models.CHECKPOINTS) - set(models.PACKAGED))
    assert metrics.parse_models(" ".join(map(str, asked))) == asked


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("bertscor", "did you mean 'bertscore'"),
        ("bertscore:FacebookAI/roberta-larg", "did you mean 'FacebookAI/roberta-larg"),
        ("unieval bleurt:no/where", "pass its folder"),
    ],
)
def test_a_misspelt_word_is_an_error_with_the_nearest(words, message, capsys):
    with pytest.raises(ValueError, match=message):
        metrics.parse_models(words)
    assert command.main(["--models", words]) == 2  # before anything is fetched or run
    assert message in capsys.readouterr().err


def test_columns_are_named_after_metric_and_model(hub, tmp_path):
    words = f"bertscore:{ROBERTA} bleurt bleurt:lucadiliello/bleurt-base-128 usl_h"
    asked = metrics.parse_models(words)
    options = {"folder": tmp_path / "scores", "log": print, "device": "cpu"}
    table = metrics.compute_asked(TURNS, asked, batch_tokens=256, **options)
    assert table.columns.tolist() == [
        "bertscore_precision[roberta-large]",
        "bertscore_recall[roberta-large]",
        "bertscore_f1[roberta-large]",
        "bleurt[BLEURT-20]",
        "bleurt[bleurt-base-128]",
    ]
    alone = metrics.bleurt(TURNS, checkpoint="lucadiliello/bleurt-base-128")
    assert np.allclose(table["bleurt[bleurt-base-128]"], alone, atol=1e-5)
    told = metrics.models_table(asked).set_index("model")
    assert told["here"].tolist() == ["yes", "yes", "yes", "no"]
    assert (told.loc[told["here"] == "yes", "to_download_gb"] == 0).all()
    measured = told["minutes_per_1000"]
    assert measured["google-bert/bert-base-uncased"] == "not measured"
    assert float(measured[ROBERTA]) >= 0


def test_two_folders_of_one_name_are_not_mixed(tmp_path):
    """Refused where they are read, so no notebook and no report can put them into one table."""
    folders = [tiny_models.bert(tmp_path / part / "mine") for part in "ab"]
    words = " ".join(f"context_similarity:{folder}" for folder in folders)
    with pytest.raises(ValueError, match=r"two models .* context_similarity\[mine\]"):
        metrics.parse_models(words)


def test_a_model_that_cannot_be_had_is_named_and_the_others_stay(hub):
    asked = metrics.parse_models(f"unieval bertscore:{ROBERTA}")
    had, problems = metrics.fetch_models(asked)
    assert had == asked[1:]
    message = problems["unieval:MingZhong/unieval-dialog"]
    assert "Pass the folder" in message and "hf download" in message


def test_what_else_a_metric_reads_is_fetched_before_it_runs(tmp_path, monkeypatch):
    """FED's follow-ups and UniEval's sentences: the run stopped in the middle of a notebook."""

    def out_of_reach(*given):
        raise DataError("the follow-ups cannot be downloaded")

    def no_data(language):
        raise LookupError("Resource punkt_tab not found")

    monkeypatch.setattr("lib.metrics.likelihood.follow_ups", out_of_reach)
    monkeypatch.setattr("nltk.tokenize.punkt.PunktTokenizer", no_data)
    folder = tiny_models.gpt2(tmp_path / "mine")
    names = [f"fed:{folder}", f"unieval:{folder}", f"log_likelihood:{folder}"]
    had, problems = metrics.fetch_models(metrics.parse_models(" ".join(names)))
    assert [item.metric for item in had] == ["log_likelihood"]
    assert "follow-ups" in problems[names[0]]
    assert "nltk.downloader punkt_tab" in problems[names[1]]


def test_the_profile_hub_runs_the_notebooks_with_every_model_that_can_be_had(
    hub, monkeypatch, capsys
):
    ran = []
    monkeypatch.setattr(command, "run_all", lambda *given: ran.append(given) or [])
    assert command.main(["--profile", "hub", "--only", "04"]) == 0
    had = [f"bertscore:{ROBERTA}", "bleurt:lucadiliello/BLEURT-20"]
    had += ["bleurt:lucadiliello/bleurt-base-128"]
    assert ran == [("hub", ["04"], False, " ".join(had))]
    told = capsys.readouterr()
    for name in set(models.CHECKPOINTS) - set(models.PACKAGED):
        assert name in told.out
    assert "left out: unieval:MingZhong/unieval-dialog" in told.err
    assert told.err.count("left out: ") == 15  # DialogRPT's five heads are one


def test_a_dry_run_needs_no_network_no_torch_and_little_time(tmp_path):
    """Every model's row, in less than 15 CPU seconds."""
    script = (
        "import sys; from lib.notebook_runs.__main__ import main;"
        "code = main(['--profile', 'hub', '--dry']);"
        "sys.exit(code or 'torch' in sys.modules)"
    )
    ours = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    environment = {**os.environ, **ours, "PYTHONPATH": os.pathsep.join(sys.path)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        text=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run.returncode == 0, run.stderr
    for name in set(models.CHECKPOINTS) - set(models.PACKAGED):
        assert name in run.stdout
    assert "not measured" in run.stdout and "GB at most" in run.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 15


def test_evaluation_sets_and_reports_take_the_models_that_are_asked_for(hub):
    """Columns name the model, a reference is not compared with itself, and BERTScore is its F1."""
    asked = metrics.parse_models(f"bertscore:{ROBERTA} bleurt")
    bots = evaluation_sets.load_set("sample_bots")
    scored = evaluation_sets.score_set(bots, names=["length"], asked=asked)
    by_models = scored.scores.filter(like="[")
    assert [*by_models] == ["bertscore_f1[roberta-large]", "bleurt[BLEURT-20]"]
    unasked = evaluation_sets.score_set(bots, names=["length"])
    assert unasked.scores.equals(scored.scores.drop(columns=by_models.columns))
    has_reference = bots.table["reference"].map(len) > 0
    scorable = has_reference & ~evaluation_sets.gold_rows(bots.table)
    assert by_models[scorable].notna().all(axis=None)
    assert by_models[~scorable].isna().all(axis=None)

    reported = report_scores(bots.table, max_replies=20, asked=asked)
    assert {*by_models} <= {*reported}
    packaged = report_scores(bots.table, max_replies=20)
    assert packaged["bertscore_f1"].equals(reported["bertscore_f1"])
