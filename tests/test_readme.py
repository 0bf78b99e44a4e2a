"""What the README shows must run."""

import json
import re
from unittest import mock

from lib import ROOT, data, metrics
from lib.data import corpora, storage
from lib.meta_evaluation import evaluation_sets

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@mock.patch.dict(metrics.METRICS)
def test_a_metric_is_added_as_the_readme_says(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before, names = set(metrics.METRICS), {}
    exec(compile(BLOCKS[0], "README.md", "exec"), names)
    (added,) = set(metrics.METRICS) - before
    assert added in names["table"] and names["table"][added].max() > 0
    assert len(names["table"]) == 151
    assert added in evaluation_sets.own_metrics()  # so notebooks 08 and 11 show it


def test_a_corpus_is_added_as_the_readme_says(tmp_path, monkeypatch):
    item = {"model": "A", "id": "d1", "history": ["Hi"], "reply": "Oh ", "marks": [4, 5, "N/A"]}
    file = tmp_path / "replies.json"
    file.write_text(json.dumps([item]))
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path))
    for kind, name, entry in [
        ("corpora", "my_corpus", {"level": "turn", "rows": 1, "files": [file.name]}),
        ("files", file.name, {"url": "https://example.org/", "sha256": storage.file_sha256(file)}),
        ("sets", "mine", dict.fromkeys(["title", "licence", "citation", "source"], "-")),
    ]:
        monkeypatch.setitem(storage.registry()[kind], name, entry | {"set": "mine"})
    monkeypatch.setitem(corpora.LOADERS, "my_corpus", None)
    exec(compile(BLOCKS[1], "README.md", "exec"), {})
    mine = data.load("my_corpus")
    assert mine.turns[["turn", "response", "human_overall"]].values.tolist() == [[1, "Oh", 4.5]]
    assert mine.report["excluded"].tolist() == [0, 1]
    assert data.available().set_index("name").loc["my_corpus", "on disk?"]


def test_targets_that_the_readme_names_exist():
    named = set(re.findall(r"^    make ([a-z-]+)", README, flags=re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert named >= {"notebooks", "test", "report"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target
