"""The pages of this repository as a static site: `make site`, then open build/site/index.html.

Pages show the outputs that are committed; nothing is executed. Nothing is fetched either, when the
site is built or when it is read: equations become MathML, and the search runs in the page.
"""

import json
import re
import shutil
import tomllib
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from latex2mathml.converter import convert

# "owner/name" on GitHub; empty while there is no public address, and then the links that open a
# notebook elsewhere are left out. The first code cells of 00 and 14 repeat it.
REPOSITORY = ""

ROOT = Path(__file__).parent.parent
CAPTIONS = tomllib.loads((ROOT / "notebooks" / "captions.toml").read_text("utf-8"))

project = html_title = "Judging dialogue: the notebooks"
html_show_copyright = html_show_sphinx = html_copy_source = html_use_index = False
root_doc = "README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "data/README.md",
    "data/judge_replies/README.md",
    "data/models/README.md",
    "docs/*.md",
    "notebooks/**",
    "teaching/*.md",
]
exclude_patterns = [".*", "build", "data/cache", "notebooks/.ipynb_checkpoints"]

extensions = ["myst_nb"]
nb_execution_mode = "off"
nb_code_prompt_show = "Show the code of this figure"
nb_code_prompt_hide = "Hide the code of this figure"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

html_theme = "furo"
html_show_search_summary = False  # a browser fetches no page from a folder
html_static_path = html_css_files = ["site.css"]
html_math_renderer = "mathml"

# What the theme leaves out for readers who listen or use the keyboard; found by axe.
ACCESS = {
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    'display="block">': 'display="block" tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    'class="output text_html">': 'class="output text_html" tabindex="0">',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
    '<summary aria-label="Toggle hidden content">': "<summary>",
}

CONTENTS = """
```{{toctree}}
:hidden:
:caption: {caption}

{pages}
```
"""
PAGES = {
    "Use": [
        "docs/running",
        "docs/your_own_dialogues",
        "docs/beyond_one_machine",
        "docs/extend",
    ],
    "Teach": [
        "notebooks/README",
        "teaching/README",
        "teaching/meetings",
        "teaching/assignment",
    ],
    "Know": ["docs/results", "docs/licences", "data/README", "data/models/README"],
    "Develop": [
        "docs/layout",
        "CONTRIBUTING",
        "CHANGELOG",
        "data/judge_replies/README",
    ],
}


def add_contents(app, docname: str, source: list[str]) -> None:
    """Add the list of all pages to the front page; it shows at the side of every page.

    Notebooks stand in the order of the front page's own table.
    """
    if docname != root_doc:
        return
    notebooks = re.findall(
        r"^\| \[.*?\]\((notebooks/\d.*?)\.ipynb\)", source[0], flags=re.MULTILINE
    )
    numbers = [Path(page).name[:2] for page in notebooks]
    solutions = [f"notebooks/solutions/{number}_solutions" for number in numbers]
    contents = {"Notebooks": notebooks, **PAGES, "Solutions": solutions}
    for caption, listed in contents.items():
        source[0] += CONTENTS.format(caption=caption, pages="\n".join(listed))


def prepare_notebook(app, docname: str, source: list[str]) -> None:
    """Fold the cells of a notebook that only draw, and link to where it can be opened."""
    if not re.fullmatch(r"notebooks/\d\d_\w+", docname):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", [])
        if outputs and all("image/png" in output.get("data", {}) for output in outputs):
            cell["metadata"]["tags"] = ["hide-input"]
    if REPOSITORY:
        notebook["cells"][0]["source"].append("\n\n" + launch_links(docname, notebook))
    source[0] = json.dumps(notebook)


def launch_links(docname: str, notebook: dict) -> str:
    """Links to Binder, where a notebook can be read, and to Colab if it sets itself up there."""
    page = f"{docname}.ipynb"
    binder = f"https://mybinder.org/v2/gh/{REPOSITORY}/main?urlpath=lab/tree/{page}"
    links = [f"[Read in JupyterLab on Binder]({binder})"]
    if any(cell["id"] == "setup" for cell in notebook["cells"]):
        colab = (
            f"https://colab.research.google.com/github/{REPOSITORY}/blob/main/{page}"
        )
        links.insert(0, f"[Run on Colab]({colab})")
    return " · ".join(links)


def finish_outputs(app, doctree: nodes.document, docname: str) -> None:
    """Let images open at full size, caption the figures of a notebook, align its numbers."""
    number = Path(docname).name[:2]
    images = "../" * docname.count("/") + "_images/"
    for image in list(doctree.findall(nodes.image)):
        if not isinstance(
            image.parent, nodes.container
        ):  # those of cells get a caption below
            link = nodes.reference("", "", refuri=images + Path(image["uri"]).name)
            image.replace_self(link)
            link += image
    for cell in doctree.findall(is_code_cell):
        names = re.findall(r'run\.figure\([^"]*?, "(\w+)"', cell.astext())
        shown = list(cell.findall(nodes.image))
        for image, name in zip(shown, names, strict=False):
            texts = CAPTIONS[f"{number}_{name}"]
            image["alt"] = texts["alt"]
            link = nodes.reference("", "", refuri=images + Path(image["uri"]).name)
            caption = nodes.caption("", texts["caption"])
            anchor = f"{number}-{name}".replace("_", "-")
            figure = nodes.figure("", link, caption, ids=[anchor])
            image.replace_self(figure)
            link += image
        for table in cell.findall(nodes.raw):
            if "<table" in table.astext():
                aligned = align_numbers(table.astext())
                table.replace_self(nodes.raw("", aligned, format="html"))


def is_code_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def align_numbers(html: str) -> str:
    """The same table, the cells and the head of each column of numbers in the class "number".

    Columns of long texts are of the class "words" and long names of rows of the class "label", so
    that they are not squeezed. A head without a word becomes a plain cell, since it names nothing.
    """
    page = BeautifulSoup(html, "html.parser")
    for table in page.find_all("table"):
        del table["border"]
        rows = [row.find_all("td") for row in table.select("tbody tr")]
        width = max(map(len, rows), default=0)
        # From the right, since the labels of rows stand at the left.
        for place in range(1, width + 1):
            column = [row[-place] for row in rows if len(row) == width]
            texts = [cell.get_text() for cell in column]
            if max(map(len, texts)) > 30:
                for cell in column:
                    cell["class"] = "words"
            if not all(map(is_number, texts)):
                continue
            heads = []
            for row in table.select("thead tr"):
                if not row.select("[colspan]"):
                    heads += row.find_all("th")[-place:][:1]
            for cell in [*column, *heads]:
                cell["class"] = "number"
        for label in table.select("tbody th"):
            if len(label.get_text()) > 12:
                label["class"] = "label"
        for head in table.find_all("th"):
            if not head.get_text(strip=True):
                head.name = "td"
    return str(page)


def is_number(text: str) -> bool:
    """Whether a cell of a table holds a number, with or without its interval, or nothing.

    >>> [is_number(text) for text in ("-.25", "1,200", "12 %", "3e-05", "NaN", "", "ten")]
    [True, True, True, True, True, True, False]
    >>> is_number(".30 (.18 to .40)")
    True
    """
    number = r"[-+−]?[\d,]*\.?\d*(e[-+]?\d+)?\s?%?"
    interval = rf"{number} \({number} to {number}\)"
    missing = "NaN|<NA>|NaT|None|inf"
    return re.fullmatch(f"{number}|{interval}|{missing}", text.strip()) is not None


def show_equation(translator, node: nodes.math | nodes.math_block) -> None:
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    source = node.astext().replace(
        r"\arg", r"\operatorname{arg}"
    )  # unknown to the converter
    equation = convert(source, display=display)
    # A name such as ln stands apart from what follows it.
    translator.body.append(
        re.sub("(<mi>[a-z]{2,}</mi>)", r'\1<mspace width="0.17em"/>', equation)
    )
    raise nodes.SkipNode


def finish_pages(app, error: Exception | None) -> None:
    """Add what the theme leaves out; a browser that opens the folder looks for index.html."""
    if error is None:
        for path in Path(app.outdir).rglob("*.html"):
            page = path.read_text(encoding="utf-8")
            for left_out, added in ACCESS.items():
                page = page.replace(left_out, added)
            path.write_text(page, encoding="utf-8")
        shutil.copy(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app) -> None:
    app.connect("source-read", add_contents)
    app.connect("source-read", prepare_notebook)
    app.connect("doctree-resolved", finish_outputs)
    app.add_html_math_renderer("mathml", (show_equation, None), (show_equation, None))
    app.connect("build-finished", finish_pages)
