"""Promises about the repository as a whole, checked by machine."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import ModuleType

import pytest

from lib import ROOT
from lib.notebook_runs import runner

SAMPLE = ROOT / "data" / "sample"
MODULES = sorted(path for path in (ROOT / "lib").rglob("*.py"))
# In the order in which the data pass through them; a room imports only rooms before it.
ROOMS = [
    "data", "model_files", "models", "metrics", "psychology", "endex", "cpdscore", "analysis",
    "meta_evaluation", "report", "notebook_runs",
]  # fmt: skip
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".yml",
    ".ipynb",
    ".txt",
    ".sql",
    ".json",
    ".csv",
    ".lock",
    "",
}


def tracked() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [
        path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()
    ]


def pins(group: str | None = None) -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = (
        project["dependency-groups"][group]
        if group
        else project["project"]["dependencies"]
    )
    return dict(item.split("==") for item in listed)


def imported(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it, as `a.b.c`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {
                node.module,
                *(f"{node.module}.{alias.name}" for alias in node.names),
            }
    return names


def test_every_package_that_lib_imports_is_declared():
    """What comes only with another package may leave with its next release."""
    of_module = packages_distributions()
    found = {name.split(".")[0] for path in MODULES for name in imported(path)}
    packages = {
        of_module[name][0] for name in found - set(sys.stdlib_module_names) - {"lib"}
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    spark = {item.split("==")[0] for item in project["optional-dependencies"]["spark"]}
    names = {re.sub("[-_.]+", "-", name).lower() for name in packages}
    assert names - set(pins()) == spark  # imported where it is asked for only


@pytest.mark.parametrize(
    "script", sorted((ROOT / "scripts").glob("*.py")), ids=lambda p: p.stem
)
def test_scripts_call_what_lib_has(script):
    """They run seldom: a function that moved would show when somebody needs it."""
    tree, known = ast.parse(script.read_text()), {}
    imports = [
        line for line in tree.body if isinstance(line, ast.Import | ast.ImportFrom)
    ]
    exec(compile(ast.Module(imports, []), script, "exec"), known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            room = known.get(node.value.id)
            assert not isinstance(room, ModuleType) or hasattr(room, node.attr), (
                node.attr
            )


def test_rooms_import_only_rooms_above_them():
    listed = re.findall(
        r"^- `(\w+)`:", importlib.import_module("lib").__doc__, flags=re.M
    )
    assert listed == ROOMS
    for path in MODULES:
        room = path.relative_to(ROOT / "lib").parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        used = {
            name.split(".")[1] for name in imported(path) if name.startswith("lib.")
        }
        later = set(ROOMS[ROOMS.index(room) + 1 :])
        assert not used & later, f"{path.relative_to(ROOT)} imports {used & later}"


def test_no_two_files_of_lib_import_each_other():
    """Counting only imports at the top of a file and within functions alike."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES
    }
    uses = {name: imported(path) & set(names) - {name} for name, path in names.items()}
    circles = [(a, b) for a in uses for b in uses[a] if a < b and a in uses[b]]
    assert not circles


def test_the_data_are_at_hand_with_pandas_and_little_else():
    """What a download, a Parquet file or a metric needs is imported where it is used."""
    heavy = {
        "torch",
        "pooch",
        "requests",
        "tqdm",
        "pyarrow.parquet",
        "sklearn",
        "matplotlib",
    }
    program = "import sys, lib.data; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=ROOT, stdout=-1
    )
    assert not heavy & set(done.stdout.decode().split())


def test_conda_pins_equal_the_project_pins():
    lines = (ROOT / "environment.yml").read_text().splitlines()
    listed = dict(
        re.match(r"\s+- ([\w.-]+)==(\S+)", li).groups() for li in lines if "==" in li
    )
    assert listed == pins()
    assert lines[-1].strip() == "- -e ."


def test_binder_has_the_pinned_version_of_jupyterlab():
    lines = (ROOT / ".binder" / "requirements.txt").read_text().splitlines()
    assert [li for li in lines if "==" in li] == [f"jupyterlab=={pins()['jupyterlab']}"]


def test_installed_versions_are_the_pinned_ones():
    # A local build tag, as in 2.13.0+cpu, names the same release.
    assert {package: version(package).split("+")[0] for package in pins()} == pins()


@pytest.mark.parametrize(
    ("lock", "group"), [("", None), ("-dev", None), ("-site", "site")]
)
def test_lock_holds_every_pin_with_a_hash(lock, group):
    text = (ROOT / f"requirements{lock}.lock").read_text()
    for package, release in pins(group).items():
        if (
            package != "torch"
        ):  # its CPU and CUDA builds have one version and two hashes
            pin = re.escape(f"{package}=={release}")
            assert re.search(rf"^{pin} \\\n    --hash=sha256:", text, flags=re.M), (
                package
            )
    assert text.count("--hash=sha256:") > 1000


def test_readme_lists_every_notebook():
    readme = (ROOT / "README.md").read_text()
    for path in runner.find_notebooks():
        assert f"notebooks/{path.name}" in readme, path.name


def test_links_of_documents_lead_somewhere():
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("data", "docs", "teaching"):
        documents += (ROOT / folder).rglob("*.md")
    for document in documents:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
            if not re.match(r"https?://|mailto:", target):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_names_no_machine_no_package_registry_and_no_secret():
    key = re.compile(r"\bsk-[A-Za-z0-9_-]{20,}")
    names = ["pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.", "deb\\.deb"]
    hosts = re.compile("|".join(names))
    machine = re.compile(r"(?<![\w.~-])/(?:work|root|home|farm)/[A-Za-z]")
    for path in tracked():
        if path.suffix in TEXT and path.name not in (
            "test_repository.py",
            "test_notebooks.py",
        ):
            text = path.read_text(encoding="utf-8")
            assert not hosts.search(text), path
            assert not machine.search(text), path
            assert not key.search(text), path


def test_holds_no_pickle_and_no_large_file():
    for path in tracked():
        assert path.suffix not in {
            ".pkl",
            ".pickle",
            ".joblib",
            ".pt",
            ".pth",
            ".bin",
        }, path
        limit = 5_000_000 if "data/models" in path.as_posix() else 1_500_000
        assert path.stat().st_size < limit, path


def test_loads_no_pickle():
    """Only the restricted reader of PyTorch, which refuses everything but tensors, may open one."""
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        assert not re.search(
            r"^\s*import (?:pickle|joblib|dill|shelve)\b", source, re.M
        ), path
        assert not re.search(r"pickle\.loads?\(|allow_pickle=True", source), path
        for call in re.findall(r"torch\.load\([^)]*\)", source):
            assert "weights_only=True" in call, path


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_public_name_is_documented(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module says nothing about itself"
    for node in tree.body:
        if isinstance(
            node, ast.FunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
    assert path.stem not in {"utils", "helpers", "common", "misc"}


def test_no_two_public_functions_share_a_name():
    """Methods are not counted, nor a command's `main`."""
    places = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(
                node, ast.FunctionDef | ast.ClassDef
            ) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(
                    path.relative_to(ROOT).as_posix()
                )
    twice = {name: files for name, files in places.items() if len(files) > 1}
    assert set(twice) <= {"main"}, twice


IMPORT_EVERYTHING = """
import socket, sys

def refuse(*arguments, **options):
    raise AssertionError("an import opened a network connection")

socket.socket.connect = refuse
import {}
assert not {{"dlatk", "mauve"}} & set(sys.modules), "GPL-3: imported only when asked for"
"""


def test_importing_everything_touches_no_network_and_no_gpl_package():
    parts = [path.relative_to(ROOT).with_suffix("").parts for path in MODULES]
    names = [
        ".".join(p).removesuffix(".__init__") for p in parts if p[-1] != "__main__"
    ]
    program = IMPORT_EVERYTHING.format(", ".join(names))
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


@pytest.mark.parametrize("folder", ["bots", "personas/comperdial", "robustness_data"])
def test_sample_is_marked_synthetic_and_stays_small(folder):
    info = json.loads((SAMPLE / folder / "info.json").read_text("utf-8"))
    assert info["synthetic"] is True and info["licence"] == "MIT"
    files = [path for path in (SAMPLE / folder).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
    assert "synthetic" in (SAMPLE / "README.md").read_text("utf-8").splitlines()[0]


def test_the_model_cards_give_the_scores_of_the_shipped_networks():
    cards = " ".join((ROOT / "data/models/README.md").read_text().split())
    endex, emotions = (
        json.loads((ROOT / f"data/models/{name}.json").read_text())
        for name in ("endex_small", "goemotions")
    )

    def told(values: list[float]) -> list[str]:
        return [f"{value:.2f}".removeprefix("0") for value in values]

    names = ["BETTER", "PredEng-600", "FED-eng", "GRADE"]
    of_set = {row["dataset"].lower(): row for row in endex["agreement"]}
    rows = [of_set[name.lower()] for name in names]
    plain = told([row["spearman"] for row in rows])
    partial = told([row["partial"] for row in rows])
    pairs = ", ".join(f"{n} {v}" for n, v in zip(names, plain, strict=True))
    assert f"(Spearman, all replies): {pairs}." in cards
    by_length = f"{', '.join(partial[:3])} and {partial[3]}"
    assert f"Controlling for the number of words: {by_length}." in cards
    (auc,) = told([endex["auc_on_held_out_threads"]])
    assert f"| Held-out AUC | {auc}, on {endex['held_out']} |" in cards
    micro, macro, mean = told(
        [
            emotions["test"][k]
            for k in ("micro_f1_at_0.3", "macro_f1_at_0.3", "mean_auc")
        ]
    )
    scores = (
        f"micro-F1 {micro} and macro-F1 {macro} at a threshold of .3; mean AUC {mean}"
    )
    assert scores in cards
    assert cards.count("**Not for moderation") == 2
