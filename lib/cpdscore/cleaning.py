"""What is taken out of a reply before it is read: what the judge did not mean as its mark."""

import re
import unicodedata

_PARTS = {"¼": ".25", "½": ".5", "¾": ".75"}


def clean(text: str, top: int) -> str:
    """The text without reasoning blocks, quoted lines, markdown, invisible characters, and the
    scale itself ("on a scale of 1 to 5"), whose two ends are no marks.

    >>> clean("**Humanness** (1-5): 3½", 5)
    'Humanness : 3.5'
    """
    text = re.sub(r"(?<=\d)[¼½¾]", lambda part: _PARTS[part[0]], text)
    text = re.sub("[¼-¾⅐-⅞↉]", "?", text)  # which the next line would turn into digits
    text = unicodedata.normalize("NFKC", text)
    text = re.sub(r"<think>.*?(?:</think>|$)", "", text, flags=re.DOTALL)
    text = text.rpartition("</think>")[2]  # some servers put the opening tag into the prompt
    text = re.sub(r"\\boxed\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\$(\d+(?:\.\d+)?)\$|<(\d+(?:\.\d+)?)>", r"\1\2", text)
    text = re.sub("[\ufe0e\ufe0f\u20e3]", "", text)  # what turns a digit into a picture of it
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "So"))
    text = re.sub(r"[‐‑‒–—−]", "-", text).replace("“", '"').replace("”", '"').replace("’", "'")
    text = re.sub(r"~~.*?~~", "", text)
    text = re.sub(r"[*`#]+|\b_+|_+\b|</?[^\W\d]\w*>", "", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(">")]
    return _without_scale("\n".join(lines), top).strip()


def _without_scale(text: str, top: int) -> str:
    """Both ends of the scale named together: "1-5", "1 (lowest) to 5 (highest)"."""
    ends = (
        r"(?:,\s*)?(?:\bon\s+)?(?:\b(?:a|the)\s+)?(?:\bscale\s+)?(?:\b(?:of|from)\s+)?"
        rf"(?<![\w.,/+-])1(?:\s*\([^()\n]*\)\s*to\s*{top}\s*\([^()\n]*\)|"
        rf"\s*(?:-|to)\s*{top}(?![\w/%+]|[.,]\d))(?:\s+scale\b)?"
    )
    return re.sub(rf"[(\[]\s*{ends}\s*[)\]]|{ends}", "", text, flags=re.IGNORECASE)
