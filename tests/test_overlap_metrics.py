"""Overlap metrics against the formulas written out, other packages, and published figures."""

import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import chain

import numpy as np
import pandas as pd
import pytest
import sacrebleu
from scipy import stats

from lib import ROOT, data, metrics
from lib.metrics.overlap import NO_JAVA, OVERLAP, meteor_15, meteor_program

PUBLISHED = pd.read_csv(ROOT / "data/published/dialevalmetrics_overlap.csv")
LEXICAL = [name for name in OVERLAP if not name.startswith("meteor")]

needs_java = pytest.mark.skipif(not shutil.which("java"), reason=NO_JAVA)

PAIRS = [
    ("we walk home in the rain", ["we walk home in the sun"]),
    (
        "I like it very much, thank you!",
        ["i like it, thank you very much .", "Thanks a lot!"],
    ),
    ("cat cat cat cat cat cat", ["that cat is on this mat"]),
    ("yes", ["yes of course"]),
    (
        "Do you want to come with us to the lake tomorrow?",
        ["Come to the lake with us tomorrow!"],
    ),
    ("one two", ["three four"]),
    # Three and seven words beside six: the nearest length is the longer one.
    ("we two walk home so late", ["we walk home", "we two walk home so very late"]),
    ("naïve café 🍅 time", ["café time 🍅", "naïve time"]),
    (
        "An_other-thing: don't [stop], “theatre” – 5 %",
        ["the other thing don t stop theatre 5"],
    ),
]


# --- the formulas, written out -------------------------------------------------------------


def ngrams(tokens, order):
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


def bleu4(tokens, references, smoothed):
    """BLEU-4 from its definition; `smoothed(matches, total, order)` is the precision used."""
    product = 1.0
    for order in range(1, 5):
        counts = ngrams(tokens, order)
        limits = Counter()
        for reference in references:
            limits |= ngrams(reference, order)
        matches = sum(min(count, limits[gram]) for gram, count in counts.items())
        product *= smoothed(matches, sum(counts.values()), order)
    nearest = min((abs(len(r) - len(tokens)), len(r)) for r in references)[1]
    penalty = math.exp(1 - nearest / len(tokens)) if len(tokens) < nearest else 1.0
    return penalty * product**0.25


def lcs_length(first, second):
    @cache
    def length(i, j):
        if i == len(first) or j == len(second):
            return 0
        if first[i] == second[j]:
            return 1 + length(i + 1, j + 1)
        return max(length(i + 1, j), length(i, j + 1))

    return length(0, 0)


def normalized(text):
    spaced = "".join(c if c.isalnum() or not c.isascii() else " " for c in text.lower())
    return [word for word in spaced.split() if word not in ("a", "an", "the")]


def coco_rouge(response, references):
    tokens = response.split(" ")
    golds = [reference.split(" ") for reference in references]
    lengths = [lcs_length(tokens, gold) for gold in golds]
    precision = max(lengths) / len(tokens)
    recall = max(n / len(gold) for n, gold in zip(lengths, golds, strict=True))
    beta = 1.2**2
    return (
        (1 + beta) * precision * recall / (recall + beta * precision)
        if max(lengths)
        else 0.0
    )


def nltk_bleu4(response, references):
    words = normalized(response)
    golds = [normalized(reference) for reference in references]
    if set(words).isdisjoint(chain.from_iterable(golds)):
        return 0.0
    return bleu4(
        words, golds, lambda matches, total, order: (matches or 1e-12) / max(total, 1)
    )


def coco_bleu4(response, references):
    golds = [reference.split() for reference in references]
    return bleu4(
        response.split(),
        golds,
        lambda found, total, _: (found + 1e-15) / (total + 1e-9),
    )


def word_f1(words, gold):
    """Twice the words of one text that find a partner in the other, over the words of both."""
    unmatched = list(gold)
    common = 0
    for word in words:
        if word in unmatched:
            unmatched.remove(word)
            common += 1
    return 2 * common / (len(words) + len(gold))


def best(score):
    """A formula over normalised words, best of the references."""
    return lambda response, references: max(
        score(normalized(response), normalized(reference)) for reference in references
    )


FORMULAS = {
    "bleu4_coco": coco_bleu4,
    "rouge_l_coco": coco_rouge,
    "bleu4_nltk_normalized": nltk_bleu4,
    "word_f1_normalized": best(word_f1),
    "rouge_l_f1_normalized": best(
        lambda a, b: 2 * lcs_length(a, b) / (len(a) + len(b))
    ),
    "rouge_l_recall_normalized": best(lambda a, b: lcs_length(a, b) / len(b)),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_a_variant_is_its_formula(name, response, references):
    expected = FORMULAS[name](response, references)
    assert OVERLAP[name](response, references) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_sacrebleu_is_its_package_with_effective_order(response, references):
    plain = sacrebleu.sentence_bleu(
        response, references, use_effective_order=True
    ).score
    assert OVERLAP["bleu4_sacrebleu"](response, references) == pytest.approx(
        plain / 100
    )


# --- edges ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(OVERLAP))
def test_missing_and_empty(name):
    metric = OVERLAP[name]  # METEOR too: none of these pairs needs the program
    assert math.isnan(metric(None, ["yes"]))
    assert math.isnan(metric("yes", []))
    assert math.isnan(metric("yes", ["", " \n"]))
    if name.endswith("normalized"):  # what the normalisation leaves nothing of
        assert metric("The ...", ["yes"]) == 0.0
        assert math.isnan(metric("yes", ["A!", "..."]))


# --- the turn table ------------------------------------------------------------------------


@pytest.fixture
def turns():
    responses = ["we walk home", "", None, "yes", "no", None]
    golds = [
        ["we walk home", "home"],
        ["yes"],
        ["yes"],
        [],
        np.array(["no"], dtype=object),
        [],
    ]
    return pd.DataFrame(
        {"response": responses, "reference": golds}, index=[7, 3, 5, 1, 0, 9]
    )


def test_scores_keep_the_index_and_count_what_is_missing(turns):
    scores = metrics.overlap_scores(turns, LEXICAL)
    assert list(scores.columns) == LEXICAL and list(scores.index) == [7, 3, 5, 1, 0, 9]
    assert all(dtype.kind == "f" for dtype in scores.dtypes)
    assert scores["rouge_l_coco"].fillna(-1).tolist() == [1.0, -1, -1, -1, 1.0, -1]
    assert scores.attrs["missing"] == {"no response": 3, "no reference": 1}
    assert metrics.overlap_scores(turns[:0], LEXICAL).shape == (0, len(LEXICAL))
    turns.at[7, "reference"] = ["so", "we walk home"]
    first = metrics.overlap_scores(turns, ["rouge_l_coco"], references="first")
    assert first["rouge_l_coco"].fillna(-1).tolist() == [0.0, -1, -1, -1, 1.0, -1]


def test_what_cannot_be_read_is_said(turns):
    with pytest.raises(ValueError, match="unknown metric 'bleu'.*bleu4_coco"):
        metrics.overlap_scores(turns, ["bleu"])
    with pytest.raises(
        TypeError, match=r"'one text' is not a list of texts: write \[reference\]"
    ):
        metrics.overlap_scores(turns.assign(reference="one text"), LEXICAL)


# --- METEOR --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare_terminal():
    """METEOR's program as a terminal without a locale starts it: it must read UTF-8."""
    meteor_program.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "C")
        meteor_program()


@needs_java
def test_meteor_is_its_formula(bare_terminal):
    def formula(matches, chunks, response, reference):
        precision, recall = matches / response, matches / reference
        mean = precision * recall / (0.85 * precision + 0.15 * recall)
        return (1 - 0.6 * (chunks / matches) ** 0.2) * mean

    # Content words without synonyms of one another, so that all matches are exact ones.
    for response, references, expected in (
        ("dogs chase cats", ["dogs chase cats"], 1.0),
        ("cats chase dogs", ["dogs chase cats"], formula(3, 3, 3, 3)),
        ("dogs chase cats", ["purple", "dogs chase cats purple"], formula(3, 1, 3, 4)),
        ("é", ["ü"], 0.0),
    ):
        assert meteor_15(response, references) == pytest.approx(expected)


TEXTS = [
    "a ||| b",
    "two\nlines",
    "line\u2028separator\u2029",
    "nul\0byte",
    "\ufeffmark",
]
TEXTS += ["🍅 naïve 漢字 עברית", " ".join(f"word{number}" for number in range(1000))]


@needs_java
@pytest.mark.parametrize("text", TEXTS)
def test_meteor_answers_whatever_the_text(bare_terminal, text):
    assert meteor_15(text, ["a walk"]) >= 0 <= meteor_15("a walk", [text])
    assert meteor_15(text, [text]) == pytest.approx(1.0), "still in step, and equal"


@needs_java
def test_a_program_that_stops_is_an_error_and_the_next_call_starts_another():
    meteor_program().meteor_p.kill()
    with pytest.raises(RuntimeError, match="METEOR failed.*-version"):
        meteor_15("yes", ["yes"])
    assert meteor_15("dogs chase cats", ["dogs chase cats"]) == pytest.approx(1.0)


@needs_java
def test_without_java_meteor_is_nan_the_rest_runs_and_nothing_false_is_kept(
    turns, tmp_path, monkeypatch
):
    names = ["meteor_15", "word_f1_normalized"]
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with pytest.warns(
            UserWarning, match="needs Java.*apt install default-jre-headless"
        ):
            scores = metrics.overlap_scores(turns, names)
        metrics.compute(turns, names, folder=tmp_path, log=lambda line: None)
    assert (
        scores["meteor_15"].isna().all()
        and scores["word_f1_normalized"].notna().sum() == 2
    )
    assert scores.attrs["missing"]["undefined by the metric"] == 2
    with_java = metrics.compute(turns, names, folder=tmp_path, log=lambda line: None)
    assert with_java["meteor_15"].notna().sum() == 2


@needs_java
def test_python_ends_with_the_program_running():
    code = (
        "from lib.metrics.overlap import meteor_program as m; print(m().meteor_p.pid)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    assert not done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


# --- published figures ---------------------------------------------------------------------


@cache
def rated(corpus):
    """Responses with a reference, of all systems of a corpus, and their mean rating as `human`."""
    names = [name for name in data.available()["name"] if name.startswith(corpus)]
    turns = pd.concat([data.load(name).turns for name in names], ignore_index=True)
    turns = turns[turns["reference"].map(len) > 0]
    rating = "human_overall" if corpus.startswith("usr") else "human_coherence"
    return turns.assign(human=turns[rating])


KEYS = PUBLISHED[["corpus", "variant"]].drop_duplicates().to_numpy()
KEYS = [
    pytest.param(*key, marks=[needs_java] * key[1].startswith("meteor")) for key in KEYS
]


@pytest.mark.public
@pytest.mark.parametrize(("corpus", "variant"), KEYS)
def test_published_correlations(corpus, variant):
    table = rated(corpus)
    pairs = table[["human"]].assign(
        score=metrics.overlap_scores(table, [variant])[variant]
    )
    levels = {"turn": pairs, "system": pairs.groupby(table["system"]).mean()}
    rows = PUBLISHED[
        (PUBLISHED["corpus"] == corpus) & (PUBLISHED["variant"] == variant)
    ]
    assert (rows["n"] == len(table)).all()
    for row in rows.itertuples():
        correlate = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[
            row.coefficient
        ]
        ours = correlate(levels[row.level]["score"], levels[row.level]["human"])[0]
        assert ours == pytest.approx(row.value, abs=0.0005 + 1e-9), (
            row.level,
            row.coefficient,
        )
