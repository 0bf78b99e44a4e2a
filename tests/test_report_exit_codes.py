"""What the command of a report returns: 0, 1, 2 or 3, case by case."""

import json

import numpy as np
import pytest

from lib.report import result
from lib.report.__main__ import main
from lib.report.result import build_report

BUILT = {}  # the reports, by the second version: conditions differ, dialogs do not


def write_version(path, level: float) -> None:
    """Thirty dialogs of one bot, rated around a level with a deviation of about a half."""
    rng = np.random.default_rng(0 if level == 3 else 1)
    lines = []
    for number in range(30):
        said = [
            {"role": "user", "content": f"What happened on day {number}?"},
            {
                "role": "assistant",
                "content": f"On day {number} it rained for many hours.",
                "rating": round(float(level + rng.normal(scale=0.5)), 2),
            },
        ]
        lines.append(json.dumps({"id": str(number), "messages": said}))
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """A folder with versions a (rated 3), same (3.05), worse (2) and better (4)."""
    folder = tmp_path_factory.mktemp("versions")
    for name, level in (("a", 3), ("same", 3.05), ("worse", 2), ("better", 4)):
        write_version(folder / f"{name}.jsonl", level)
    (folder / "broken.jsonl").write_text("{", encoding="utf-8")
    return folder


CODES = [
    # the second version, further arguments, exit code, what is said
    ("worse", [], 0, "worse against a: worse"),
    ("worse", ["--fail-if", "b worse"], 3, "holds: exit code 3"),
    ("worse", ["--fail-if", "worse worse"], 3, "holds: exit code 3"),
    ("worse", ["--fail-if", "b not better"], 3, "holds: exit code 3"),
    ("worse", ["--fail-if", "b better"], 0, "does not hold"),
    ("worse", ["--fail-if", "b mixed"], 0, "does not hold"),
    ("worse", ["--fail-if", "b leaning worse"], 3, "holds: exit code 3"),
    ("worse", ["--fail-if", "b worse by .2"], 3, "holds: exit code 3"),
    ("worse", ["--fail-if", "b worse by 2"], 0, "does not hold"),
    ("better", ["--fail-if", "b worse"], 0, "does not hold"),
    ("better", ["--fail-if", "b not better"], 0, "does not hold"),
    ("better", ["--fail-if", "all better"], 3, "holds: exit code 3"),
    ("better", ["--fail-if", "b worse by .2"], 0, "does not hold"),
    ("same", ["--fail-if", "b worse"], 0, "does not hold"),
    ("same", ["--fail-if", "b not better"], 3, "holds: exit code 3"),
    ("same", ["--fail-if", "b worse by .05"], 3, "holds: exit code 3"),
    ("same", ["--fail-if", "b worse by 1"], 0, "does not hold"),
    ("same", ["--fail-if", "b better by .2"], 2, "only goes with 'worse'"),
    ("same", ["--fail-if", "b not worse by .2"], 2, "only goes with 'worse'"),
    ("same", ["--fail-if", "c worse"], 2, "names no version"),
    ("same", ["--fail-if", "b worse by"], 2, "names no version"),
    ("same", ["--fail-if", "b worse by -.2"], 2, "names no version"),
    ("broken", [], 2, "broken.jsonl"),
    ("nowhere", [], 2, "nowhere.jsonl"),
    ("same", ["--history", "releases"], 2, "LABEL="),
    ("same", ["--models", "nonsense"], 2, "MODELS"),
    ("same", ["--out", "/proc/none/page.html"], 1, "PAGE="),
]


@pytest.mark.parametrize("second, further, code, said", CODES)
def test_the_exit_code_tells_a_fault_from_a_release_that_should_stop(
    versions, tmp_path, capsys, monkeypatch, second, further, code, said
):
    def build_once(turns, **options):
        if second not in BUILT:
            BUILT[second] = build_report(turns, embeddings=False, **options)
        return BUILT[second]

    monkeypatch.setattr(result, "build_report", build_once)
    monkeypatch.chdir(tmp_path)
    files = [str(versions / "a.jsonl"), str(versions / f"{second}.jsonl")]
    out = ["--out", str(tmp_path / "page.md"), "--format", "md"]
    assert main([*files, *out, *further]) == code
    told = capsys.readouterr()
    assert said in told.out + told.err


def test_an_unknown_option_is_a_fault_of_the_command():
    with pytest.raises(SystemExit) as stopped:
        main(["chats.jsonl", "--nonsense"])
    assert stopped.value.code == 2
