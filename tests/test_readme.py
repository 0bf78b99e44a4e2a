"""What the README shows must run."""

import re

import pytest

from lib import ROOT, metrics

README = (ROOT / "README.md").read_text()


@pytest.fixture
def registry():
    """The names of the metrics before the README adds its own; they are put back at the end."""
    before = dict(metrics.METRICS)
    yield before
    metrics.METRICS.clear()
    metrics.METRICS.update(before)


def test_the_python_blocks_run_in_order(registry, monkeypatch, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    (added,) = set(metrics.METRICS) - set(registry)
    assert added in names["table"] and names["table"][added].max() > 0
    assert len(names["table"]) == 151


def test_what_the_readme_registers_is_gone_again():
    assert "exclamations" not in metrics.METRICS


def test_targets_that_the_readme_names_exist():
    named = set(re.findall(r"^    make ([a-z-]+)", README, flags=re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert named >= {"notebooks", "test", "report"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target
