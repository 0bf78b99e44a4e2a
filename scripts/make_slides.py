"""One deck of slides for each notebook, from its headings, figures and exercises: `make slides`.

reveal.js comes from npm and lies beside the decks, so these open without a network.
Paragraphs with equations are left out: the notebook itself shows them.
"""

import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import nbformat
from nbconvert import SlidesExporter
from nbformat import NotebookNode

from lib import ROOT
from lib.notebook_runs.runner import CAPTIONS, FIGURE_CALL, find_notebooks, is_image

PACKAGE = "reveal.js@4.6.1"
FOLDER = ROOT / "build" / "slides"
SYMBOL = re.compile(r"\$([A-Za-z])\$")
LINKS = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]+\)")
SOLUTIONS = re.compile(r" ?\(\[Solutions\]\([^)]*\)[^)]*\)")

# What starts a deck; the template's own start wants more scripts. A high figure is made to fit, and
# a long text scrolls.
START = """
<style>
.reveal section img { max-height: 500px; width: auto; margin: 0; }
.reveal .slides > section > section { max-height: 690px; overflow-y: auto; }
.reveal h1, .reveal h2, .reveal h3 { text-transform: none; }
</style>
<script src="reveal.js/dist/reveal.js"></script>
<script>Reveal.initialize({history: true, width: 960, height: 700});</script>
"""


def slides_of(
    notebook: NotebookNode, number: str, captions: dict
) -> list[NotebookNode]:
    """Cells of a deck: the opening, then headings, exercises and figures as they come."""
    slides = [slide(opening(notebook.cells[0].source))]
    for cell in notebook.cells[1:]:
        if cell.cell_type == "markdown":
            slides += [slide(text) for text in key_texts(cell.source)]
            continue
        images = [output for output in cell.outputs if is_image(output)]
        for image, name in zip(images, FIGURE_CALL.findall(cell.source), strict=False):
            texts = captions[f"{number}_{name}"]
            figure = slide(
                f"![{texts['alt']}](attachment:{name}.png)\n\n{texts['caption']}"
            )
            figure.attachments = {f"{name}.png": {"image/png": image.data["image/png"]}}
            slides.append(figure)
    return slides


def slide(text: str) -> NotebookNode:
    """A markdown cell that is a slide; links show their words only."""
    cell = nbformat.v4.new_markdown_cell(LINKS.sub(r"\1", text))
    cell.metadata["slideshow"] = {"slide_type": "slide"}
    return cell


def opening(source: str) -> str:
    """Title, question and what is learned, without what the notebook reads and writes."""
    return source.partition("*Reads*")[0]


def key_texts(source: str) -> list[str]:
    """Each heading with its first paragraph, or its list, and each exercise.

    >>> key_texts("Words.\\n\\n## 2 Method\\n\\nA mean.\\n\\n**Exercise 1.** Why? ([Solutions](x))")
    ['## 2 Method\\n\\nA mean.', '**Exercise 1.** Why?']
    """
    texts = []
    source = SYMBOL.sub(r"*\1*", SOLUTIONS.sub("", source))
    paragraphs = source.split("\n\n")
    for place, paragraph in enumerate(paragraphs):
        if paragraph.startswith("## "):
            following = "\n\n".join(paragraphs[place + 1 : place + 2])
            if following.startswith("### "):
                following = "\n\n".join(paragraphs[place + 1 : place + 3])
            if "$" in following or following.startswith("**Exercise"):
                following = ""
            texts.append(f"{paragraph}\n\n{following}".strip())
        elif paragraph.startswith("**Exercise") and "$" not in paragraph:
            texts.append(paragraph)
    return texts


def fetch() -> None:
    """Unpack reveal.js from npm beside the decks, once; its licence comes with it."""
    if (FOLDER / "reveal.js").is_dir():
        return
    if shutil.which("npm") is None:
        raise SystemExit("npm is missing: install Node.js, then run make slides again")
    command = ["npm", "pack", "--silent", PACKAGE]
    done = subprocess.run(
        command, cwd=FOLDER, check=True, capture_output=True, text=True
    )
    archive = FOLDER / done.stdout.strip()
    with tarfile.open(archive) as packed:
        packed.extractall(FOLDER, filter="data")
    archive.unlink()
    (FOLDER / "package").rename(FOLDER / "reveal.js")


def page_of(path: Path, captions: dict) -> str:
    """The deck of one notebook as a page."""
    notebook = nbformat.read(path, as_version=4)
    cells = slides_of(notebook, path.name[:2], captions)
    deck = nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)
    exporter = SlidesExporter(
        reveal_url_prefix="reveal.js",
        reveal_theme="white",  # whose fonts lie beside it; others fetch theirs
    )
    page, _ = exporter.from_notebook_node(deck, {"metadata": {"name": path.stem}})
    return without_network(page)


def without_network(page: str) -> str:
    """The page without what its template loads from elsewhere: diagrams, fonts and equations."""
    page = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)
    page = re.sub(r'<link[^>]*href="https?:[^>]*>', "", page)
    return page.replace("</body>", START + "</body>")


def main() -> None:
    """Write `build/slides/NN_*.html`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    fetch()
    captions = tomllib.loads(CAPTIONS.read_text(encoding="utf-8"))
    for path in sorted(find_notebooks()):
        page = page_of(path, captions)
        Path(FOLDER, f"{path.stem}.html").write_text(page, encoding="utf-8")
    print(f"Open a deck of {FOLDER.relative_to(ROOT)} in a browser.")


if __name__ == "__main__":
    main()
