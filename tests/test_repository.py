"""Promises about the repository as a whole, checked by machine."""

import ast
import importlib
import json
import re
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from lib import ROOT
from lib.notebook_runs import profiles

MODULES = sorted(path for path in (ROOT / "lib").rglob("*.py"))
TEXT = {".py", ".md", ".toml", ".yml", ".ipynb", ".txt", ".sql", ".json", ".csv", ".lock", ""}


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def pins() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(item.split("==") for item in project["dependencies"])


def test_conda_pins_equal_the_project_pins():
    lines = (ROOT / "environment.yml").read_text().splitlines()
    listed = dict(re.match(r"\s+- ([\w.-]+)==(\S+)", li).groups() for li in lines if "==" in li)
    assert listed == pins()
    assert lines[-1].strip() == "- -e ."


@pytest.mark.parametrize("package", sorted(pins()))
def test_installed_version_is_the_pinned_one(package):
    # A local build tag, as in 2.13.0+cpu, names the same release.
    assert version(package).split("+")[0] == pins()[package]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_lock_holds_every_pin_with_a_hash(lock):
    text = (ROOT / lock).read_text()
    for package, release in pins().items():
        if package != "torch":  # its CPU and CUDA builds have one version and two hashes
            assert f"\n{package}=={release}" in f"\n{text}", package
    assert text.count("--hash=sha256:") > 1000


def test_readme_lists_every_notebook():
    readme = (ROOT / "README.md").read_text()
    for path in profiles.find():
        assert f"notebooks/{path.name}" in readme, path.name


def test_readme_links_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "data").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
            if not re.match(r"https?://|mailto:", target):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_names_no_machine_and_no_package_registry():
    hosts = re.compile(
        "|".join(["pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.", "deb\\.deb"])
    )
    machine = re.compile(r"(?<![\w.~-])/(?:work|root|home|farm)/[A-Za-z]")
    for path in tracked():
        if path.suffix in TEXT and path.name not in ("test_repository.py", "test_notebooks.py"):
            text = path.read_text(encoding="utf-8")
            assert not hosts.search(text), path
            assert not machine.search(text), path


def test_holds_no_secret():
    key = re.compile(r"\bsk-[A-Za-z0-9_-]{20,}")
    for path in tracked():
        if path.suffix in TEXT:
            assert not key.search(path.read_text(encoding="utf-8")), path


def test_holds_no_pickle_and_no_large_file():
    for path in tracked():
        assert path.suffix not in {".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin"}, path
        limit = 5_000_000 if "data/models" in path.as_posix() else 1_500_000
        assert path.stat().st_size < limit, path


def test_loads_no_pickle():
    """Only the restricted reader of PyTorch, which refuses everything but tensors, may open one."""
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*import (?:pickle|joblib|dill|shelve)\b", source, re.M), path
        assert not re.search(r"pickle\.loads?\(|allow_pickle=True", source), path
        for call in re.findall(r"torch\.load\([^)]*\)", source):
            assert "weights_only=True" in call, path


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_public_name_is_documented(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module says nothing about itself"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
    assert path.stem not in {"utils", "helpers", "common", "misc"}
    assert len(path.read_text().splitlines()) <= 450, "a file this long holds two ideas"


def test_importing_everything_touches_no_network(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("an import opened a network connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for path in MODULES:
        if path.stem != "__main__":
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            importlib.import_module(name)


def test_optional_gpl_packages_are_not_imported_at_start():
    """dlatk and mauve-text are GPL-3: used when asked for, never needed by an import."""
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in MODULES]
    imports = "\n".join(
        f"import {n.removesuffix('.__init__')}" for n in names if "__main__" not in n
    )
    program = f"{imports}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not {"dlatk", "mauve"} & {n.split(".")[0] for n in json.loads(loaded.stdout)}


def test_published_tables_are_complete():
    rows = {
        "comperdial.csv": 390,
        "endex_table2.csv": 45,
        "human_centered_metrics.csv": 1098,
    }
    for name, expected in rows.items():
        text = (ROOT / "data" / "published" / name).read_text()
        assert len(text.splitlines()) - 1 == expected
