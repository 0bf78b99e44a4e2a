"""Prompt variants of CPDScore (ComperDial paper, section 4 and appendix B) and their wording."""

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

INPUTS = ("history", "reference", "fact", "response", "turns", "turn_scores", "responses")
_PLACE = re.compile(r"\{(" + "|".join(INPUTS) + r")\}")


@dataclass(frozen=True)
class Variant:
    """One prompt of appendix B: what goes in, what form comes out, and which mark is the score."""

    name: str
    label: str  # as the paper's tables call it
    section: str  # where its prompt stands in the paper
    level: str  # "turn" or "dialog"
    fields: tuple[str, ...]  # the labels of the answer form, in order
    score_field: str
    high: int  # the scale runs from 1 to here
    reply_tokens: int  # length of a usual reply, for forecasts


_SIMPLE = ("humanness", "fluency", "coherency", "consistency", "engagingness", "overall")
_ORIGINAL = ("relevance", "specificity", "interestingness", "understandability", "overall")
_DIALOGUE = ("overall dialogue turn score", "dialogue interaction score", "final score")

VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("original_simple", "Original simple", "B.1.1", "turn", _ORIGINAL, "overall", 5, 32),
        Variant(
            "simple_with_reference", "CPDS-S w/ ref", "B.1.2", "turn", _SIMPLE, "overall", 5, 36
        ),
        Variant(
            "simple_without_reference", "CPDS-S w/o ref", "B.1.3", "turn", _SIMPLE, "overall", 5, 36
        ),
        Variant(
            "original_detail",
            "Original detail",
            "B.2.1",
            "turn",
            ("engagingness",),
            "engagingness",
            3,
            8,
        ),
        Variant(
            "detail_with_reference",
            "CPDS-D w/ ref",
            "B.2.2",
            "turn",
            ("humanness",),
            "humanness",
            5,
            8,
        ),
        Variant(
            "detail_without_reference",
            "CPDS-D w/o ref",
            "B.2.3",
            "turn",
            ("humanness",),
            "humanness",
            5,
            8,
        ),
        Variant("dialogue", "CPDS-Dial", "B.3", "dialog", _DIALOGUE, "final score", 5, 24),
    )
}


@dataclass(frozen=True)
class Template:
    """The text of one variant, with a ``{place}`` for each input."""

    variant: Variant
    text: str
    source: str = "project"  # "project": our wording; "paper": sliced from the paper

    @property
    def wording(self) -> str:
        """Hash of the text: two scores are comparable only where it is the same."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs this text asks for, in order of first use."""
        return tuple(dict.fromkeys(_PLACE.findall(self.text)))

    def fill(self, **values: str) -> str:
        """Put the inputs into the text, in one pass.

        What stands in an input stays text, whatever it looks like: braces, headings, even
        ``{response}``. Raises ``ValueError`` naming an input that is missing or not used.

        >>> template = load_template("original_simple")
        >>> filled = template.fill(history="A: Hi {response}", response="Hello")
        >>> "A: Hi {response}" in filled
        True
        """
        missing, unused = set(self.inputs) - set(values), set(values) - set(self.inputs)
        if missing or unused:
            raise ValueError(
                f"prompt {self.variant.name}: needs {', '.join(self.inputs)}; "
                f"missing {sorted(missing)}, not used {sorted(unused)}"
            )
        return _PLACE.sub(lambda place: values[place[1]], self.text)


def variant(name: str) -> Variant:
    """The variant called ``name``; ``ValueError`` lists the names there are."""
    if name not in VARIANTS:
        raise ValueError(f"no prompt variant {name!r}; there are: {', '.join(VARIANTS)}")
    return VARIANTS[name]


def load_template(name: str) -> Template:
    """The shipped prompt of a variant, in this project's own wording.

    >>> load_template("detail_without_reference").inputs
    ('history', 'fact', 'response')
    """
    chosen = variant(name)
    text = (
        resources.files("lib.cpdscore.prompts").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    )
    return Template(chosen, text.rstrip("\n"))


def load_templates() -> dict[str, Template]:
    """All shipped prompts by variant name."""
    return {name: load_template(name) for name in VARIANTS}


_HEADING = r"^[#\s]*{}\b[^\n]*\n"
_FOUND = (
    (r"\[\s*Here is history information\s*\]", "{history}"),
    (r"\[\s*Here is reference response information\s*\]", "{reference}"),
    (r"\[\s*Here is fact information\s*\]", "{fact}"),
    (r"\[\s*Here is response information\s*\]", "{response}"),
    (r"Turn\S*\s+Score\s+-\s+\[\s*score(?s:.*)\[\s*score[^\]]*\]", "{turn_scores}"),
    (r"Turn\S*\s*:\s*\[\s*turn(?s:.*)\[\s*turn[^\]]*\]", "{responses}"),
)


def prompts_from_paper(path: str | Path) -> dict[str, Template]:
    """The seven prompts in the paper's exact wording, sliced from your copy of its text.

    ``path`` is a plain-text or Markdown conversion of "ComperDial" (Wakaki et al., 2024) with
    appendix B in it. Words are the paper's; line breaks are not, since no conversion keeps them.
    Raises ``ValueError`` naming the section or placeholder that was not found.
    """
    paper = Path(path).read_text(encoding="utf-8")
    return {
        one.name: Template(one, _slice(paper, one, path), source="paper")
        for one in VARIANTS.values()
    }


def _slice(paper: str, chosen: Variant, path: str | Path) -> str:
    """The body of one section of appendix B, cleaned, with our places for its inputs."""
    start = re.search(_HEADING.format(re.escape(chosen.section)), paper, re.MULTILINE)
    if not start:
        raise ValueError(f"{path}: no heading {chosen.section}; is appendix B in this text?")
    rest = paper[start.end() :]
    end = re.search(r"^[#\s]*(?:B\.\d(?:\.\d)?|C)\s+[A-Z]", rest, re.MULTILINE)
    text = _tidy(rest[: end.start()] if end else rest)
    for pattern, place in _FOUND:
        text = re.sub(pattern, place, text)
    expected = set(load_template(chosen.name).inputs) - {"turns"}
    if found := expected ^ set(_PLACE.findall(text)):
        raise ValueError(
            f"{path}: section {chosen.section}: placeholder of {sorted(found)} differs"
        )
    return text


def _tidy(text: str) -> str:
    """Drop what text conversion added: fences, page notes, doubled heading marks, spare lines."""
    text = re.sub(r"\*?\(Continue next page\)\*?", "", text)
    lines = [re.sub(r"^#+\s+###|^#+(?=\s)", "###", line.strip()) for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith("```")]
    return "\n".join(("\n" if line.startswith("###") and i else "") + line
                     for i, line in enumerate(kept))  # fmt: skip
