"""The static site: every page is there, no link is broken, and nothing is loaded from elsewhere."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup

from lib import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
PYTHON = ROOT / ".venv-site" / "bin" / "python"
BROWSER = (
    shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
)

# As `make site` does it, without a network.
BUILD = """
import socket, sys
from sphinx.cmd.build import main

socket.socket.connect = None
sys.exit(main(["-q", "-W", "--keep-going", "-c", "docs", ".", sys.argv[1]]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the site in it."""
    if not PYTHON.exists():
        pytest.skip("the packages of the site are missing: run make site once")
    folder = tmp_path_factory.mktemp("build") / "site"
    done = subprocess.run(
        [PYTHON, "-c", BUILD, folder], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(folder) -> dict[Path, BeautifulSoup]:
    return {
        p: BeautifulSoup(p.read_text(), "html.parser") for p in folder.rglob("*.html")
    }


def only_pictures(outputs: list[dict]) -> bool:
    return all("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_page_shows_the_committed_outputs_of_its_notebook(folder, pages, path):
    page = pages[folder / path.relative_to(ROOT).with_suffix(".html")]
    cells = json.loads(path.read_text())["cells"]
    kinds = []
    for cell in cells:
        for output in cell.get("outputs", []):
            kinds += output.get("data", {})
    images = page.select(".cell_output figure > a > img")
    assert len(images) == kinds.count("image/png")
    for image in images:
        assert len(image["alt"]) > 40 and image.find_parent("figure").figcaption
        assert (folder / path.parent.name / image.parent["href"]).is_file()
    assert len(page.select(".cell_output table.dataframe")) >= kinds.count("text/html")
    folded = page.select("details.hide")
    drawing = [c for c in cells if c.get("outputs") and only_pictures(c["outputs"])]
    assert len(folded) == len(drawing) or path.parent.name == "solutions"
    equations = "".join(str(c["source"]) for c in cells if c["cell_type"] == "markdown")
    assert len(page.select("math[display=block]")) == equations.count("$$") // 2


@pytest.mark.slow
def test_no_link_is_broken_and_nothing_is_loaded_from_elsewhere(folder, pages):
    ids = {}
    for path, page in pages.items():
        ids[path] = {tag["id"] for tag in page.select("[id]")}
    n_links = 0
    for path, page in pages.items():
        for tag in page.select("[href], [src]"):
            address = urlsplit(tag.get("href") or tag.get("src"))
            if address.scheme or address.netloc:
                assert tag.name == "a", f"{path.name} loads {tag}"
                continue
            target = (
                (path.parent / unquote(address.path)).resolve()
                if address.path
                else path
            )
            assert target.exists(), f"{path.name}: {tag}"
            if address.fragment:
                assert unquote(address.fragment) in ids[target], f"{path.name}: {tag}"
            n_links += tag.name == "a" and target != path
    assert n_links > 400
    for style in folder.rglob("*.css"):
        assert not re.search(
            r"@import|url\(\s*['\"]?(https?:)?//", style.read_text()
        ), style


def in_browser(page: Path, query: str = "", width: int = 1280) -> BeautifulSoup:
    """The page after its scripts have run."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [
        f"--user-data-dir={page.parent / '.profile'}",
        f"--window-size={width},900",
    ]
    command += ["--virtual-time-budget=5000", page.as_uri() + query]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    return BeautifulSoup(done.stdout, "html.parser")


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium or chrome to look with")
def test_search_works_in_a_browser_without_a_server(folder):
    links = in_browser(folder / "search.html", "?q=entropy").select(
        "#search-results li a"
    )
    assert "notebooks/02_psychological_metrics.html" in {
        link["href"].split("?")[0] for link in links
    }


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium or chrome to look with")
@pytest.mark.parametrize("width", [1280, 400])
def test_no_page_is_wider_than_the_window(folder, width):
    look = "<script>document.title = document.body.scrollWidth - window.innerWidth</script>"
    for path in [*folder.glob("index.html"), *folder.glob("notebooks/0[28]_*.html")]:
        page = path.with_name("look.html")
        page.write_text(path.read_text().replace("</body>", look + "</body>"))
        assert int(in_browser(page, width=width).title.string) <= 0, path.name


def set_up_cells() -> dict[str, str]:
    """The cell of each notebook that sets itself up, by the name of the notebook."""
    cells = {}
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.id == "setup":
                cells[path.name] = cell.source
    return cells


def test_two_notebooks_set_themselves_up_and_name_the_address_of_the_site():
    conf = (ROOT / "docs" / "conf.py").read_text()
    cells = set_up_cells()
    assert sorted(name[:2] for name in cells) == ["00", "14"]
    assert len(set(cells.values())) == 1
    address = re.search('^REPOSITORY = ".*?"', conf, flags=re.M).group()
    assert all(f"\n{address}  # " in source for source in cells.values())


def run_bare(source: str, folder: Path, **environment) -> subprocess.CompletedProcess:
    """Run a cell in an empty folder with a Python that has no packages, as on a new machine."""
    command = [sys.executable, "-I", "-S", "-c", source]
    options = {"cwd": folder, "capture_output": True, "text": True}
    return subprocess.run(command, env=os.environ | environment, **options)


def test_without_a_public_address_the_set_up_cell_says_what_to_do(tmp_path):
    source = set_up_cells()["00_start_here.ipynb"]
    source = re.sub('^REPOSITORY = ".*?"', 'REPOSITORY = ""', source, flags=re.M)
    done = run_bare(source, tmp_path)
    assert done.returncode == 1 and "run make lab" in done.stderr
    assert not list(tmp_path.iterdir())


def test_with_an_address_the_set_up_cell_clones_and_installs(tmp_path):
    """From a repository on this machine, whose script only says that it was called."""
    origin = tmp_path / "owner" / "name.git"
    (origin / "scripts").mkdir(parents=True)
    (origin / "scripts/set_up_colab.py").write_text('open("installed", "w").close()')
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "Start"]):
        subprocess.run(["git", *command], cwd=origin, check=True)
    instead = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{tmp_path.as_uri()}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }
    source = set_up_cells()["00_start_here.ipynb"]
    source = re.sub(
        '^REPOSITORY = ".*?"', 'REPOSITORY = "owner/name"', source, flags=re.M
    )
    here = tmp_path / "content"
    here.mkdir()
    done = run_bare(source, here, **instead)
    assert done.returncode == 1 and "Restart the session" in done.stderr, done.stderr
    assert (here / "installed").exists() and (here / "repository" / ".git").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("address", ["", "owner/name"])
def test_links_to_colab_and_binder_need_an_address(address):
    if not PYTHON.exists():
        pytest.skip("the packages of the site are missing: run make site once")
    links = """
import sys
sys.path.insert(0, "docs")
import conf
conf.REPOSITORY = sys.argv[1]
for name in ("00_start_here", "05_reddit_engagement_dataset"):
    source = [open(f"notebooks/{name}.ipynb", encoding="utf-8").read()]
    conf.prepare_notebook(None, f"notebooks/{name}", source)
    print(source[0].count("colab.research"), source[0].count("mybinder.org/v2/gh/owner/name"))
"""
    command = [PYTHON, "-c", links, address]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    assert printed.split() == (["1", "1", "0", "1"] if address else ["0"] * 4)


@pytest.fixture(scope="module")
def slides():
    """The script of `make slides`."""
    path = ROOT / "scripts" / "make_slides.py"
    spec = importlib.util.spec_from_file_location("make_slides", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", ["00", "10"])
def test_a_deck_shows_every_figure_and_needs_no_network(slides, number):
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    captions = tomllib.loads((ROOT / "notebooks/captions.toml").read_text("utf-8"))
    page = BeautifulSoup(slides.page_of(path, captions), "html.parser")
    figures = [name for name in captions if name.startswith(number)]
    shown = page.select("section img")
    assert len(shown) == len(figures)
    assert {image["alt"] for image in shown} == {
        captions[name]["alt"] for name in figures
    }
    assert all(image["src"].startswith("data:image/png") for image in shown)
    assert page.select_one("section h1").get_text().startswith(number)
    for tag in page.select("script[src], link[href]"):
        assert re.match(r"reveal\.js/", tag.get("src") or tag.get("href")), tag
    themes = [tag["href"] for tag in page.select("link[href*=theme]")]
    assert themes == ["reveal.js/dist/theme/white.css"]  # whose fonts lie beside it
    assert "https://cdn" not in str(page)
