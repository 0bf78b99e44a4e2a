"""Overlap metrics against the formulas written out, other packages, and published figures."""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from functools import cache

import nltk.translate.bleu_score as nltk_bleu
import numpy as np
import pandas as pd
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from scipy import stats

from lib import ROOT
from lib.data.dialogues import DataError
from lib.metrics import overlap_metrics

PUBLISHED = pd.read_csv(ROOT / "data/published/dialevalmetrics_overlap.csv")
LEXICAL = [name for name in overlap_metrics.METRICS if not name.startswith("meteor")]

try:
    overlap_metrics.find_java()
    NO_JAVA = ""
except overlap_metrics.JavaNotFound as error:
    NO_JAVA = str(error)
needs_java = pytest.mark.skipif(bool(NO_JAVA), reason=NO_JAVA)

PAIRS = [
    ("we walk home in the rain", ["we walk home in the sun"]),
    ("I like it very much, thank you!", ["i like it, thank you very much .", "Thanks a lot!"]),
    ("cat cat cat cat cat cat", ["that cat is on this mat"]),
    ("yes", ["yes of course"]),
    ("Do you want to come with us to the lake tomorrow?", ["Come to the lake with us tomorrow!"]),
    ("one two", ["three four"]),
    # Three and seven words beside six: the nearest length is the longer one.
    ("we two walk home so late", ["we walk home", "we two walk home so very late"]),
    ("naïve café 🍅 time", ["café time 🍅", "naïve time"]),
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


def longest_common_subsequence(one, other):
    @cache
    def length(i, j):
        if i == len(one) or j == len(other):
            return 0
        if one[i] == other[j]:
            return 1 + length(i + 1, j + 1)
        return max(length(i + 1, j), length(i, j + 1))

    return length(0, 0)


def normalized(text):
    kept = "".join(c if c.isalnum() or not c.isascii() else " " for c in text.lower())
    return [word for word in kept.split() if word not in ("a", "an", "the")]


@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_bleu4_coco_is_its_formula(response, references):
    expected = bleu4(
        response.split(),
        [reference.split() for reference in references],
        lambda matches, total, order: (matches + 1e-15) / (total + 1e-9),
    )
    assert overlap_metrics.bleu4_coco(response, references) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_bleu4_nltk_normalized_is_its_formula(response, references):
    words = normalized(response)
    common = set(words) & {word for reference in references for word in normalized(reference)}
    expected = bleu4(
        words,
        [normalized(reference) for reference in references],
        lambda matches, total, order: (matches or 1e-12) / max(total, 1),
    )
    score = overlap_metrics.bleu4_nltk_normalized(response, references)
    assert score == pytest.approx(expected if common else 0.0, rel=1e-9)


def test_bleu4_by_hand():
    # 5 of 6 unigrams, 4 of 5 bigrams, 3 of 4 trigrams, 2 of 3 four-grams; equal lengths.
    expected = (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25
    pair = ("we walk home in my rain", ["we walk home in my sun"])
    assert overlap_metrics.bleu4_coco(*pair) == pytest.approx(expected, rel=1e-6)
    assert overlap_metrics.bleu4_nltk_normalized(*pair) == pytest.approx(expected, rel=1e-12)
    assert overlap_metrics.bleu4_sacrebleu(*pair) == pytest.approx(expected, rel=1e-6)
    # Two words fewer than the reference: every n-gram matches, BP = exp(1 - 8/6).
    shorter = ("we walk home in my rain", ["we walk home in my rain every day"])
    assert overlap_metrics.bleu4_coco(*shorter) == pytest.approx(math.exp(-1 / 3), rel=1e-6)


@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_rouge_l_coco_is_its_formula(response, references):
    tokens = response.split(" ")
    lengths = [longest_common_subsequence(tokens, r.split(" ")) for r in references]
    precision = max(lengths) / len(tokens)
    recall = max(n / len(r.split(" ")) for n, r in zip(lengths, references, strict=True))
    beta = 1.2**2
    expected = (
        (1 + beta) * precision * recall / (recall + beta * precision) if max(lengths) else 0.0
    )
    assert overlap_metrics.rouge_l_coco(response, references) == pytest.approx(expected)


@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_rouge_l_normalized_is_its_formula(response, references):
    words = normalized(response)
    recalls, scores = [], []
    for reference in map(normalized, references):
        common = longest_common_subsequence(words, reference)
        recalls.append(common / len(reference))
        scores.append(2 * common / (len(words) + len(reference)))
    f1 = overlap_metrics.rouge_l_f1_normalized(response, references)
    recall = overlap_metrics.rouge_l_recall_normalized(response, references)
    assert (f1, recall) == (pytest.approx(max(scores)), pytest.approx(max(recalls)))


@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_word_f1_is_its_formula(response, references):
    def f1(words, gold):
        left, common = list(gold), 0
        for word in words:
            if word in left:
                left.remove(word)
                common += 1
        if not common:
            return 0.0
        precision, recall = common / len(words), common / len(gold)
        return 2 * precision * recall / (precision + recall)

    expected = max(f1(normalized(response), normalized(reference)) for reference in references)
    assert overlap_metrics.word_f1_normalized(response, references) == pytest.approx(expected)


# --- other packages ------------------------------------------------------------------------


@pytest.mark.parametrize(("response", "references"), PAIRS)
def test_against_other_packages(response, references):
    plain = sacrebleu.sentence_bleu(response, references, use_effective_order=True).score
    assert overlap_metrics.bleu4_sacrebleu(response, references) == pytest.approx(plain / 100)
    words, gold = normalized(response), [normalized(reference) for reference in references]
    smoothing = nltk_bleu.SmoothingFunction(epsilon=1e-12).method1
    assert overlap_metrics.bleu4_nltk_normalized(response, references) == pytest.approx(
        nltk_bleu.sentence_bleu(gold, words, smoothing_function=smoothing)
    )
    if "".join([response, *references]).isascii():  # rouge-score drops other letters by itself
        peer = RougeScorer(["rougeL"]).score_multi([" ".join(g) for g in gold], " ".join(words))
        ours = overlap_metrics.rouge_l_f1_normalized(response, references)
        assert ours == pytest.approx(peer["rougeL"].fmeasure)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's hat, a RED one!", "cat s hat red one"),
        ("an_other-thing: theatre", "other thing theatre"),
        ("  \n\t a THE an ", ""),
        ("don't [stop] it's 5 %", "don t stop it s 5"),
        ("“quoted” – naïve", "“quoted” – naïve"),
    ],
)
def test_normalize_answer(text, expected):
    assert overlap_metrics.normalize_answer(text) == expected


# --- edges ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(overlap_metrics.METRICS))
def test_missing_and_empty(name):
    metric = overlap_metrics.METRICS[name]  # METEOR too: none of these pairs needs the program
    assert math.isnan(metric(None, ["yes"]))
    assert math.isnan(metric(float("nan"), ["yes"]))
    assert math.isnan(metric("yes", []))
    assert math.isnan(metric("yes", ["", " \n"]))
    assert math.isnan(metric("", []))
    for blank in ("", " \n ", "\x00\x07", "\u200b\ufeff"):
        assert math.isnan(metric(blank, ["yes"]))
        assert math.isnan(metric("yes", [blank]))
    with pytest.raises(TypeError, match=r"\[reference\]"):
        metric("yes", "yes")


@pytest.mark.parametrize("name", [n for n in overlap_metrics.METRICS if n.endswith("normalized")])
def test_normalised_away_is_empty(name):
    metric = overlap_metrics.METRICS[name]
    assert metric("The ...", ["yes"]) == 0.0
    assert math.isnan(metric("yes", ["A!", "..."]))


@pytest.mark.parametrize("name", LEXICAL)
def test_equal_texts_and_one_word(name):
    metric = overlap_metrics.METRICS[name]
    text = "we will all walk home together"
    assert metric(text, [text]) == pytest.approx(1.0, abs=1e-6)
    assert metric(text, ["nothing in common here"]) == pytest.approx(0.0, abs=1e-6)
    short = metric("yes", ["yes"])
    if name in ("bleu4_coco", "bleu4_nltk_normalized"):
        assert short < 1e-4, "no 4-gram: BLEU-4 of one word is near 0 even if it is right"
    else:
        assert short == pytest.approx(1.0)


@pytest.mark.parametrize("name", LEXICAL)
def test_references_add_and_their_order_does_not_matter(name):
    metric = overlap_metrics.METRICS[name]
    response, references = "we walk home in the rain", ["we go home", "they walk in the rain"]
    both = metric(response, references)
    assert both == metric(response, references[::-1])
    assert both >= max(metric(response, [one]) for one in references) - 1e-12


texts = st.text(alphabet=st.sampled_from("ab the.|\n\t\u2028é🍅"), max_size=25)


@settings(max_examples=150, deadline=None)
@given(response=texts, references=st.lists(texts, max_size=3))
def test_every_score_is_in_range_or_nan(response, references):
    for name in LEXICAL:
        score = overlap_metrics.METRICS[name](response, references)
        assert math.isnan(score) or -1e-12 <= score <= 1 + 1e-9, (name, score)
        if name.endswith("coco"):
            undefined = not response.strip() or not any(text.strip() for text in references)
            assert math.isnan(score) == undefined


# --- the turn table ------------------------------------------------------------------------


@pytest.fixture
def turns():
    responses = ["we walk home", "", None, "yes", "no", None]
    references = [
        ["we walk home", "home"],
        ["yes"],
        ["yes"],
        [],
        np.array(["no"], dtype=object),
        [],
    ]
    index = [7, 3, 5, 1, 0, 9]
    return pd.DataFrame({"response": responses, "reference": references}, index=index)


def test_score_keeps_index_and_counts_what_is_missing(turns):
    scores = overlap_metrics.score(turns, LEXICAL)
    assert list(scores.columns) == LEXICAL and list(scores.index) == [7, 3, 5, 1, 0, 9]
    assert all(dtype.kind == "f" for dtype in scores.dtypes)
    assert scores["rouge_l_coco"].fillna(-1).tolist() == [1.0, -1, -1, -1, 1.0, -1]
    assert scores.attrs["missing"] == {"no response": 3, "no reference": 1}


def test_score_first_reference_only():
    turns = pd.DataFrame({"response": ["we walk home"], "reference": [["so", "we walk home"]]})
    every = overlap_metrics.score(turns, ["word_f1_normalized"])
    first = overlap_metrics.score(turns, ["word_f1_normalized"], references="first")
    assert (every.iloc[0, 0], first.iloc[0, 0]) == (1.0, 0.0)


def test_score_of_no_turns():
    empty = pd.DataFrame({"response": [], "reference": []})
    assert overlap_metrics.score(empty, LEXICAL).shape == (0, len(LEXICAL))


def test_score_rejects_what_it_cannot_read(turns):
    with pytest.raises(ValueError, match="unknown metric 'bleu'.*bleu4_coco"):
        overlap_metrics.score(turns, ["bleu"])
    with pytest.raises(ValueError, match="'second'.*'all' or 'first'"):
        overlap_metrics.score(turns, LEXICAL, references="second")
    with pytest.raises(DataError, match="reference"):
        overlap_metrics.score(turns.drop(columns="reference"), LEXICAL)
    turns["reference"] = "one text"
    with pytest.raises(DataError, match=r"row 1, column 'reference'(?s:.*)\[text\]"):
        overlap_metrics.score(turns, LEXICAL)


# --- METEOR --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def meteor():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "C")  # a bare terminal: it must read UTF-8 all the same
        program = overlap_metrics.Meteor(timeout=60)
    with program:
        yield program
    assert program.closed


@needs_java
def test_meteor_tells_letters_apart_in_any_locale(meteor):
    assert meteor.score("é", ["ü"]) == 0.0
    assert meteor.score("漢字 é", ["漢字 é"]) == 1.0


@needs_java
def test_meteor_is_its_formula(meteor):
    def formula(matches, chunks, response, reference):
        precision, recall = matches / response, matches / reference
        mean = precision * recall / (0.85 * precision + 0.15 * recall)
        return (1 - 0.6 * (chunks / matches) ** 0.2) * mean

    # Content words without synonyms of one another, so that all matches are exact ones.
    assert meteor.score("dogs chase cats", ["dogs chase cats"]) == pytest.approx(1.0)
    score = meteor.score("cats chase dogs", ["dogs chase cats"])
    assert score == pytest.approx(formula(3, 3, 3, 3))
    score = meteor.score("dogs chase cats", ["dogs chase cats purple"])
    assert score == pytest.approx(formula(3, 1, 3, 4))
    score = meteor.score("dogs chase cats", ["purple", "dogs chase cats purple"])
    assert score == pytest.approx(formula(3, 1, 3, 4)), "the best of the references"


@needs_java
@pytest.mark.parametrize(
    "text",
    [
        "a ||| b",
        "|||",
        "a |||| b ||",
        "two\nlines",
        "two\r\nlines\r",
        "line\u2028separator\u2029",
        "next\x85line",
        "tab\tand\x0bvertical\x0cfeed",
        "zero\u200bwidth",
        "nul\0byte",
        "\ufeffmark",
        "🍅 naïve 漢字 עברית",
        "SCORE ||| a ||| a",
        "EVAL",
        "<unk> &lt; &amp; %s \\n {0}",
        " ".join(f"word{number}" for number in range(1000)),
        "ha " * 200,
    ],
)
def test_meteor_answers_whatever_the_text(meteor, text):
    clean = " ".join(text.replace("|||", " ").replace("\0", " ").split())
    if clean:
        assert meteor.score(text, ["a walk"]) >= 0
        assert meteor.score("a walk", [text]) >= 0
        assert meteor.score(text, [text]) == pytest.approx(1.0), "still in step, and equal"
    else:
        with pytest.raises(ValueError, match="hold a word"):
            meteor.score(text, ["a walk"])
    assert meteor.score("a walk", ["a walk"]) == pytest.approx(1.0)


@needs_java
def test_a_failing_program_names_the_row(turns, monkeypatch):
    def fails(response, references):
        raise RuntimeError("METEOR has stopped")

    monkeypatch.setitem(overlap_metrics.METRICS, "meteor_15", fails)
    with pytest.raises(RuntimeError, match="stopped") as caught:
        overlap_metrics.score(turns, ["meteor_15"])
    assert caught.value.__notes__ == ["while computing meteor_15 of row 1 of the turn table"]


@needs_java
def test_meteor_reports_a_program_that_stops():
    program = overlap_metrics.Meteor(timeout=60)
    program._process.kill()
    with pytest.raises(RuntimeError, match="METEOR.*-version"):
        program.score("yes", ["yes"])
    assert program.closed
    program.close()


@needs_java
def test_meteor_does_not_wait_for_ever():
    with (
        overlap_metrics.Meteor(timeout=0.01) as program,
        pytest.raises(RuntimeError, match="no answer within 0.01 s"),
    ):
        program.score("yes", ["yes"])
    assert program.closed


def test_no_java_is_said_and_the_rest_runs(turns, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(overlap_metrics.JavaNotFound, match="apt install default-jre-headless"):
        overlap_metrics.Meteor()
    with pytest.warns(UserWarning, match="meteor_15 is NaN: METEOR 1.5 needs Java"):
        scores = overlap_metrics.score(turns, ["meteor_15", "word_f1_normalized"])
    assert scores["meteor_15"].isna().all() and scores["word_f1_normalized"].notna().sum() == 2
    assert scores.attrs["missing"]["no Java (METEOR only)"] == len(turns)


@needs_java
def test_python_ends_with_the_program_running():
    code = (
        "from lib import overlap_metrics as o; m = o.meteor._session(); "
        "print(m._process.pid, flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


# --- published figures ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def published_data(public_data):
    return {name: _rated(public_data, name) for name in PUBLISHED["corpus"].unique()}


def _rated(folder, name):
    """Responses, references and ratings straight from the files, without `lib.data.corpora`."""
    return _usr(folder, name) if name.startswith("usr") else _grade(folder, name)


def _usr(folder, name):
    file = {"usr_topical": "tc_usr_data.json", "usr_persona": "pc_usr_data.json"}[name]
    rows = []
    for item in json.loads((folder / "usr" / file).read_text("utf-8")):
        truth = [r for r in item["responses"] if r["model"] == "Original Ground Truth"]
        for response in item["responses"]:
            if response not in truth:
                rows.append((response["model"], response["response"], truth[0]["response"],
                             np.mean(response["Overall"])))  # fmt: skip
    return _frame(rows)


def _grade(folder, name):
    rows = []
    for model in sorted((folder / "grade/eval_data" / name.removeprefix("grade_")).iterdir()):
        scores = folder / "grade/human_score" / model.parent.name / model.name / "human_score.txt"
        columns = [model / "human_hyp.txt", model / "human_ref.txt", scores]
        lines = [path.read_text("utf-8").strip("\n").split("\n") for path in columns]
        rows += [(model.name, *cells) for cells in zip(*lines, strict=True)]
    return _frame(rows)


def _frame(rows):
    frame = pd.DataFrame(rows, columns=["system", "response", "reference", "human"])
    frame["reference"] = frame["reference"].map(lambda text: [text])
    return frame.astype({"human": float})


def _correlate(frame, score, level, coefficient):
    pair = pd.DataFrame({"score": score, "human": frame["human"]})
    if level == "system":
        pair = pair.groupby(frame["system"]).mean()
    function = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[coefficient]
    return function(pair["score"], pair["human"])[0]


def test_published_figures_are_there():
    turn = PUBLISHED[PUBLISHED["level"] == "turn"]
    assert len(PUBLISHED[PUBLISHED["corpus"].str.startswith("usr")]) == 24
    assert len(turn[turn["corpus"].str.startswith("grade")]) == 18
    assert set(PUBLISHED["variant"]) == set(overlap_metrics.DIALEVALMETRICS)


@pytest.mark.public
@pytest.mark.parametrize(
    ("corpus", "variant"),
    [
        pytest.param(*key, marks=needs_java if key[1].startswith("meteor") else [])
        for key in PUBLISHED[["corpus", "variant"]].drop_duplicates().itertuples(index=False)
    ],
)
def test_published_correlations(published_data, corpus, variant):
    frame = published_data[corpus]
    scores = overlap_metrics.score(frame, [variant])[variant]
    rows = PUBLISHED[(PUBLISHED["corpus"] == corpus) & (PUBLISHED["variant"] == variant)]
    assert (rows["n"] == len(frame)).all()
    for row in rows.itertuples():
        ours = _correlate(frame, scores, row.level, row.coefficient)
        assert ours == pytest.approx(row.value, abs=0.0005 + 1e-9), (row.level, row.coefficient)
