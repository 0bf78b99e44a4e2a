"""The notebooks as a static site: `make site`, then open build/site/index.html.

Pages show the outputs that are committed; nothing is executed. Nothing is fetched either, when the
site is built or when it is read: equations become MathML, and the search runs in the page.
"""

import re
import shutil
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

project = html_title = "Judging dialogue: the notebooks"
html_show_copyright = html_show_sphinx = html_copy_source = False
root_doc = "README"

extensions = ["myst_nb"]
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

html_theme = "furo"
html_static_path = html_css_files = ["site.css"]
html_math_renderer = "mathml"

CONTENTS = """
```{{toctree}}
:hidden:
:caption: {caption}

{pages}
```
"""


def add_contents(app, docname: str, source: list[str]) -> None:
    """Add the list of all pages to the front page; it shows at the side of every page.

    They stand in the order of the front page's own table.
    """
    if docname == root_doc:
        pages = re.findall(
            r"^\| \[.*?\]\((\d.*?)\.ipynb\)", source[0], flags=re.MULTILINE
        )
        answers = [f"solutions/{page[:2]}_solutions" for page in pages]
        for caption, listed in {"Notebooks": pages, "Solutions": answers}.items():
            source[0] += CONTENTS.format(caption=caption, pages="\n".join(listed))


def show_equation(translator, node: nodes.math | nodes.math_block) -> None:
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    equation = convert(node.astext(), display=display)
    # A name such as ln stands apart from what follows it.
    translator.body.append(
        re.sub("(<mi>[a-z]{2,}</mi>)", r'\1<mspace width="0.17em"/>', equation)
    )
    raise nodes.SkipNode


def open_at_the_front(app, error: Exception | None) -> None:
    """A browser that opens the folder looks for index.html."""
    if error is None:
        shutil.copy(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app) -> None:
    app.connect("source-read", add_contents)
    app.add_html_math_renderer("mathml", (show_equation, None), (show_equation, None))
    app.connect("build-finished", open_at_the_front)
