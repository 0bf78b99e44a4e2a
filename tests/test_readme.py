"""What the README shows must run."""

import re

import pytest

from lib import ROOT
from lib import metrics as scores

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


@pytest.fixture
def registry_restored():
    before = dict(scores.METRICS)
    yield
    scores.METRICS.clear()
    scores.METRICS.update(before)


def test_a_metric_is_added_as_the_readme_says(registry_restored):
    (block,) = BLOCKS
    names: dict = {}
    exec(compile(block, "README.md", "exec"), names)
    table = names["table"]
    assert list(table.columns) == ["exclamations", "word_f1_normalized"]
    assert table["exclamations"].max() > 0
    assert len(table) == 151


def test_targets_that_the_readme_names_exist():
    named = set(re.findall(r"^    make ([a-z-]+)", (ROOT / "README.md").read_text(), flags=re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert named >= {"notebooks", "test", "report"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target
