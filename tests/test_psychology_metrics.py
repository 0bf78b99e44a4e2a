"""Entropy, matching and style against scipy and the formulas; the paper's P columns."""

import hashlib
import math
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import ROOT, metrics, psychology
from lib.analysis import regression
from lib.data import corpora
from lib.meta_evaluation import evaluation_sets
from lib.meta_evaluation.replication import papers
from lib.psychology import tokens

TOY = psychology.emotion_lexicon("toy")
METRICS = {
    "emotional_entropy": lambda turns, **k: psychology.emotional_entropy(
        turns, TOY, **k
    ),
    "emotion_matching": lambda turns, **k: psychology.emotion_matching(turns, TOY, **k),
    "language_style_matching": psychology.language_style_matching,
}


def turns(pairs: list[tuple[list[str], object]], **columns) -> pd.DataFrame:
    frame = pd.DataFrame(pairs, columns=["context", "response"])
    defaults = {"system": "s", "agent": "a", "dialog": "1", "turn": range(len(pairs))}
    return frame.assign(**(defaults | columns))


FORMULAS = {
    "sum": lambda v: stats.entropy(v) if sum(v) > 0 else np.nan,
    "group_norm": lambda v: (
        -sum(x * math.log(x) for x in v if x) if sum(v) > 0 else np.nan
    ),
    "intercept": lambda v: stats.entropy([*v, 1.0]),
}


@pytest.mark.parametrize("form", FORMULAS)
def test_readings_of_entropy_follow_their_formulas(form):
    vectors = np.round(np.random.default_rng(3).gamma(0.7, size=(300, 8)), 1)
    vectors[0] = 0
    result = psychology.entropy(vectors, form)
    np.testing.assert_allclose(result, [*map(FORMULAS[form], vectors)], atol=1e-12)


@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
def test_emotion_matching_is_scipys_rank_correlation_row_by_row():
    table = corpora.load("sample_bots").turns
    result = psychology.emotion_matching(table, TOY, details=True)
    emotions = [
        result.filter(regex=f"^{side}_").to_numpy() for side in ("response", "prompt")
    ]
    expected = [stats.spearmanr(a, b).statistic for a, b in zip(*emotions, strict=True)]
    np.testing.assert_allclose(result["emotion_matching"], expected, atol=1e-12)
    assert 20 < result["emotion_matching"].isna().sum() < len(table) - 20


def test_style_matching_equals_irelands_formula_word_by_word():
    table = corpora.load("sample_bots").turns.head(40)
    lists = psychology.function_words()
    result = psychology.language_style_matching(table)
    for i, row in table.iterrows():
        rates = []
        for utterances in ([row["response"]], row["context"]):
            n_words = 0
            counts = dict.fromkeys(psychology.FUNCTION_WORDS, 0)
            for token in chain.from_iterable(map(psychology.tokenize, utterances)):
                n_words += tokens.is_word(token)
                for category in lists.lookup(token):
                    counts[category] += 1
            rates.append([100 * count / n_words for count in counts.values()])
        similarities = [
            1 - abs(a - b) / (a + b + 0.0001) for a, b in zip(*rates, strict=True)
        ]
        assert result[i] == pytest.approx(sum(similarities) / 9, abs=1e-12)


def alike(a, b):
    """Ireland's formula, averaged with the eight categories that nobody uses."""
    return (8 + 1 - abs(a - b) / (a + b + 1e-4)) / 9


STYLE = [  # context, response, options, the score or why there is none
    ("i like it and you don't", "I like it and you don't", {}, 1.0),
    ("stone wall", "green apple", {}, 1.0),
    (
        "stone wall",
        "green apple",
        {"both_zero": "skip"},
        "no function word on either side",
    ),
    ("you win !", "you lost today", {}, alike(50, 100 / 3)),
    ("you win !", "you lost today", {"denominator": "tokens"}, 1.0),
    ("?!", "you are sad", {}, "no words in the prompt"),
    (None, "you are sad", {}, "no words in the prompt"),
]


@pytest.mark.parametrize(("context", "response", "options", "expected"), STYLE)
def test_style_matching_of_short_texts(context, response, options, expected):
    table = turns([([context], response)])
    result = psychology.language_style_matching(table, **options, details=True).loc[0]
    if isinstance(expected, str):
        assert result["reason"] == expected and np.isnan(
            result["language_style_matching"]
        )
    else:
        assert (
            result["language_style_matching"] == pytest.approx(expected)
            and not result["reason"]
        )


EDGES = {
    "empty reply": ("", [True, True, True]),
    "not a number": (float("nan"), [True, True, True]),
    "punctuation": ("?!", [True, True, True]),
    "one word": ("happy", [False, False, False]),
    "emoji": ("\U0001f600", [True, True, True]),
    "no listed word": ("stone", [True, True, False]),
    "thirty thousand words": ("happy stone " * 15_000, [False, False, False]),
}


@pytest.mark.parametrize("name", EDGES, ids=list(EDGES))
def test_edge_replies_are_nan_with_a_reason_or_a_number(name):
    reply, undefined = EDGES[name]
    table = turns([(["i am so happy today"], reply), (["i am sad"], "you are sad")])
    for (metric, compute), expected in zip(METRICS.items(), undefined, strict=True):
        result = compute(table, details=True)
        assert np.isnan(result[metric][0]) == expected, metric
        assert (result["reason"][0] != "") == expected, metric
        assert not np.isnan(result[metric][1]) and result["reason"][1] == ""
        assert result.index.equals(table.index)


def test_equal_emotions_are_named_as_the_reason():
    even = psychology.Lexicon("even", {"all": dict.fromkeys(psychology.PLUTCHIK, 1.0)})
    result = psychology.emotion_matching(turns([(["all"], "all")]), even, details=True)
    assert result["reason"][0] == "all emotions are equal"


def test_context_chooses_what_is_the_prompt():
    table = turns([(["i am sad", "why ?", "i am happy"], "wonderful , i am glad")])
    scores = {
        c: METRICS["emotion_matching"](table, context=c)[0]
        for c in ("all", "last", 2, 3)
    }
    assert scores["last"] == scores[2] and scores["all"] == scores[3] != scores["last"]


def test_coarser_levels_pool_words_and_do_not_average_scores():
    rows = [(["hi"], "happy happy"), (["hi", "x", "yes"], "sad"), (["hi"], "glad")]
    table = turns(rows, dialog=["1", "1", "2"])
    by_dialog = METRICS["emotional_entropy"](table, level="dialog")
    pooled = METRICS["emotional_entropy"](
        turns([([""], "happy happy sad"), ([""], "glad")])
    )
    assert by_dialog.tolist() == pooled.tolist()
    assert by_dialog.index.tolist() == [("s", "a", "1"), ("s", "a", "2")]
    assert by_dialog.index.names == ["system", "agent", "dialog"]
    assert METRICS["emotional_entropy"](table, level="system").index.tolist() == ["s"]


def test_a_dialog_table_gives_the_scores_of_its_turns_pooled():
    corpus = corpora.load("sample_bots")
    by_turns = psychology.emotional_entropy(corpus.turns, TOY, level="dialog")
    by_dialogs = psychology.emotional_entropy(corpus.dialogs, TOY, level="dialog")
    keys = pd.MultiIndex.from_frame(corpus.dialogs[["system", "agent", "dialog"]])
    np.testing.assert_allclose(by_turns.reindex(keys), by_dialogs, atol=1e-12)
    assert by_dialogs.index.equals(corpus.dialogs.index)
    with pytest.raises(ValueError, match="level is one of .* not 'turn'"):
        psychology.emotional_entropy(corpus.dialogs, TOY)
    with pytest.raises(ValueError, match="context of a dialog table"):
        psychology.emotion_matching(corpus.dialogs, TOY, level="agent", context="last")


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="0 or more"):
        psychology.entropy(np.array([[0.2, -0.1]]))
    with pytest.raises(ValueError, match="form is one of"):
        psychology.entropy(np.array([[0.2, 0.1]]), "shannon")
    with pytest.raises(ValueError, match="context is 'all'"):
        psychology.prompt_counts(turns([([], "a")]), context=0)


def test_pooled_prompts_count_each_partner_utterance_once():
    table = turns([(["u1 u1"], "r"), (["u1 u1", "r", "u2"], "r")])
    assert psychology.prompt_counts(table, "dialog").totals.tolist() == [3.0]
    assert psychology.prompt_counts(table, "dialog", context="all").totals.tolist() == [
        6.0
    ]


DIC = """%
1\tppron
2\tipron
3\tarticle
4\tconj
5\tpreps
6\tauxverb
7\tadverb
8\tnegate
9\tquant
%
you\t1
this\t2
the\t3
a\t3
but\t4
like\t5
do\t6
quickly\t7
not\t8
plenty\t9
"""
EMOTIONS = """term,category,weight
happy,joy,2
wonderful,joy,2
wonderful,trust,1
"""


@pytest.mark.parametrize("name", [*METRICS, "emotional_entropy_paper"])
def test_editing_a_word_list_makes_kept_scores_stale(tmp_path, name):
    """Defect S3: scores were kept under the name of the list, whatever stood in it."""
    table = turns([(["do you like the happy park ?"], "we saw a wonderful park")])
    if name == "language_style_matching":
        path = tmp_path / "words.dic"
        path.write_text(DIC)
        old = "the\t3"
        new = "thee\t3"
    else:
        path = tmp_path / "emotions.csv"
        path.write_text(EMOTIONS)
        old = "trust,1"
        new = "trust,5"

    def score() -> tuple[float, str]:
        log = []
        options = {name: {"lexicon": str(path)}}
        scores = metrics.compute(
            table, [name], options=options, folder=tmp_path, log=log.append
        )
        return scores[name].iloc[0], log[0].split()[1]

    first, first_state = score()
    second, second_state = score()
    path.write_text(path.read_text().replace(old, new))
    third, third_state = score()
    assert (first_state, second_state, third_state) == (
        "computed",
        "reused",
        "computed",
    )
    assert first == second
    assert third != first or name == "emotion_matching"


def test_scores_of_our_word_lists_rest_on_the_checksum_of_their_file():
    path = ROOT / "data" / "function_words.json"
    facts = metrics.get_metric("language_style_matching").provenance()
    assert facts["lexicon_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_both_readings_of_emotional_entropy_are_scored_under_names_of_their_own():
    """Defect N5: notebooks scored the formula of the text, which misses the printed tables."""
    assert {"emotional_entropy", "emotional_entropy_paper"} <= set(
        evaluation_sets.QUICK
    )
    table = corpora.load("sample_bots").turns
    result = psychology.emotional_entropy_paper(table, TOY)
    vectors = psychology.emotional_entropy(
        table, TOY, weighting="lex_norm", details=True
    )
    rows = vectors[list(psychology.PLUTCHIK)].to_numpy()
    np.testing.assert_allclose(result, [*map(FORMULAS["group_norm"], rows)], atol=1e-12)


LIMITS = {
    "emotional_entropy_paper": 0.005,
    "emotion_matching": 0.003,
    "language_style_matching": 0.005,
}


@pytest.mark.public
def test_paper_reading_reprints_the_p_columns_of_tables_15_to_18():
    """Mean absolute error over four data sets within the limits set for each metric."""
    pytest.importorskip("dlatk")
    printed = papers.giorgi_alone()
    printed["emotional_entropy_paper"] = printed["emotional_entropy"]
    errors = {}
    for name in ("TP", "UP", "ZD", "ZP"):
        corpus, rating = papers.PAPER_SETS[name]
        table = corpora.load(corpus).turns
        for metric in (*LIMITS, "emotional_entropy"):
            options = {} if "entropy" in metric else psychology.PAPER_READING[metric]
            scores = getattr(psychology, metric)(table, **options).fillna(0.0)
            result = regression.adjusted_r2(
                table.assign(score=scores), rating, ["score"]
            )
            errors[name, metric] = abs(result - printed.loc[name, metric])
    means = pd.Series(errors).groupby(level=1).mean()
    assert (means[list(LIMITS)] <= pd.Series(LIMITS)).all(), means
    assert errors["TP", "emotional_entropy"] > 0.03, (
        "the formula of the text misses the print"
    )
