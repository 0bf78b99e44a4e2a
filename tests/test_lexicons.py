"""Tokens, n-grams and lexicon scores against DLATK, plain formulas and PyPI `liwc`."""

import json
import math
import random
import sqlite3
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.data import corpora
from lib.data.dialogues import DataError
from lib.psychology import lexicons
from lib.psychology.lexicons import sources

SETS = (
    "dstc10_topical_usr",
    "dstc10_persona_usr",
    "dstc10_dailydialog_zhao",
    "dstc10_persona_zhao",
)

# What the tokenizer of the human-centered paper is known to do, ours and theirs.
QUIRKS = {
    "oooh": ["ooo", "h"],
    "xD :D": ["xd", ":D"],
    "1,299.99": ["1,299", ".", "99"],
    "n't 'm": ["n't", "'", "m"],
    "isn't well-known": ["isn't", "well-known"],
    "&amp;": ["&", "amp", ";"],
    "&lt; &amp;": ["<", "and"],
    "a\\x41b": ["a"],
    "https://google.com/ yes": ["https://google.com/ ", "yes"],
    "(215) 555-1234 call": ["(215) 555-1234", "call"],
    "[hello] [hello there]": ["[hello]", "[", "hello", "there", "]"],
    "@me #so_good #a": ["@me", "#so_good", "#", "a"],
    "<b>x</b>": ["<b>", "x<", "/b>"],
    ". . . wait ..": [". . .", "wait", ".."],
    "/page?a=b;c=d": ["/page?a=b;c=d"],
    "don’t \U0001f600": ["don", "’", "t", "\U0001f600"],
}


@pytest.fixture(scope="module")
def oracle():
    """DLATK's own tokenizer, unmodified."""
    return pytest.importorskip("dlatk.lib.happierfuntokenizing").Tokenizer()


@pytest.fixture(scope="module")
def responses(public_data) -> list[str]:
    return [r for name in SETS for r in corpora.load(name).turns["response"]]


@pytest.mark.parametrize("text", QUIRKS, ids=list(QUIRKS))
def test_tokenizer_keeps_the_known_quirks(text):
    assert lexicons.tokenize(text) == QUIRKS[text]


@pytest.mark.parametrize("text", QUIRKS, ids=list(QUIRKS))
def test_known_quirks_are_those_of_dlatk(text, oracle):
    assert oracle.tokenize(text) == QUIRKS[text]


def test_tokenizer_equals_dlatk_on_random_strings(oracle):
    draw = random.Random(5)
    pieces = [*QUIRKS, *"abdopxDOX0138 .,;:'\"!?()[]{}<>/\\|@#&*+-_=~^é你\n$", "http://", ".com"]
    for _ in range(20_000):
        text = "".join(draw.choices(pieces, k=draw.randint(1, 12)))
        assert lexicons.tokenize(text) == oracle.tokenize(text), repr(text)


def test_cleaning_equals_dlatk_on_random_strings():
    theirs = pytest.importorskip("dlatk.textCleaner")
    draw = random.Random(6)
    for _ in range(5_000):
        text = "".join(draw.choices("ab.. \n\n\r\t\xa0 ", k=draw.randint(0, 12)))
        assert lexicons.clean(text) == theirs.shrinkSpace(theirs.treatNewlines(text)), repr(text)


@pytest.mark.public
def test_tokens_equal_dlatk_on_every_text_of_four_dstc10_sets(public_data, oracle):
    compared = 0
    for path in sorted((public_data / "dstc10").glob("*_eval.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            for text in (row["response"], row["context"], *row["reference"]):
                compared += 1
                assert lexicons.tokenize(text) == oracle.tokenize(text)
                prepared = lexicons.clean(text)
                assert lexicons.tokenize(prepared) == oracle.tokenize(prepared)
    assert compared >= 3 * 2_460


@pytest.mark.public
@pytest.mark.parametrize("n", [1, 2, 3])
def test_ngram_counts_equal_a_plain_count_over_dlatk_tokens(responses, oracle, n):
    counts = lexicons.count_tokens(responses, n=n)
    width = (36 - (n - 1)) * n
    for row, text in enumerate(responses):
        tokens = oracle.tokenize(text)
        grams = [" ".join(tokens[i : i + n])[:width].lower() for i in range(len(tokens) - n + 1)]
        entries = counts.matrix[row]
        ours = {counts.features[j]: v for j, v in zip(entries.indices, entries.data, strict=True)}
        assert ours == Counter(grams)


def dlatk_table(name: str) -> dict[str, dict[str, float]]:
    """A lexicon table read straight from DLATK's database, by other code than ours."""
    database = pytest.importorskip("dlatk").__path__[0] + "/data/dlatk_lexica.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        table = {}
        for term, category, weight in connection.execute(
            f"SELECT term, category, weight FROM {name}"
        ):
            table.setdefault(term, {})[category] = weight
    return table


def plain_scores(tokens: list[str], table: dict, weighting: str) -> dict[str, float]:
    """DLATK's rule for one text written out token by token."""
    counts = Counter(token.lower()[:36] for token in tokens)
    matched = Counter()
    for token, k in counts.items():
        matched.update({category: k for category in table.get(token, {})})
    found: dict[str, float] = {}
    for token, k in counts.items():
        for category, weight in table.get(token, {}).items():
            total = len(tokens) if weighting == "relative" else matched[category]
            found[category] = found.get(category, 0.0) + weight * k / total
    return found


@pytest.mark.public
@pytest.mark.parametrize(
    ("table", "loader", "weighting"),
    [
        ("nrc_emot", "nrc_hashtag", "relative"),
        ("nrc_emot", "nrc_hashtag", "lex_norm"),
        ("fb2000_cp", "facebook_topics", "relative"),
    ],
)
def test_lexicon_scores_equal_dlatks_rule_to_1e_12(responses, oracle, table, loader, weighting):
    reference = dlatk_table(table)
    lexicon = getattr(lexicons, loader)()
    scores = lexicon.score(lexicons.count_tokens(responses), weighting).fillna(0.0)
    column = {category: j for j, category in enumerate(scores.columns)}
    values = scores.to_numpy()
    for row, text in enumerate(responses):
        expected = np.zeros(len(column))
        for category, value in plain_scores(oracle.tokenize(text), reference, weighting).items():
            expected[column[category]] = value
        np.testing.assert_allclose(values[row], expected, rtol=0, atol=1e-12)


def test_topic_weights_are_probabilities_for_every_word():
    pytest.importorskip("dlatk")
    topics = lexicons.facebook_topics()
    assert len(topics.weights) == 7_689 and len(topics.categories) == 2_000
    sums = [math.fsum(entry.values()) for entry in topics.weights.values()]
    np.testing.assert_allclose(sums, 1.0, atol=1e-11)


def test_nrc_of_dlatk_has_its_published_size():
    pytest.importorskip("dlatk")
    nrc = lexicons.nrc_hashtag()
    assert len(nrc.weights) == 16_861 and nrc.categories == lexicons.PLUTCHIK
    assert sum(len(entry) for entry in nrc.weights.values()) == 32_385


TOY = lexicons.Lexicon(
    "toy",
    {
        "happ*": {"joy": 1.0, "trust": 0.5},
        "happy": {"joy": 3.0},
        "happi*": {"trust": 2.0},
        "ab*": {"fear": 1.0},
        "so sad": {"sadness": 1.0},
        "nothing": {"fear": 0.0},
    },
)


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("happy", {"joy": 3.0, "trust": 0.5}),  # the larger weight of "happy" and "happ*"
        ("happiness", {"joy": 1.0, "trust": 2.0}),  # of "happ*" and "happi*", not their sum
        ("happ", {"joy": 1.0, "trust": 0.5}),  # a stem matches itself
        ("abba", {}),  # the stem "ab" is too short
        ("ab*", {"fear": 1.0}),  # and taken literally
        ("hap", {}),
    ],
)
def test_wildcards_take_the_largest_weight(token, expected):
    assert TOY.lookup(token) == expected
    row = TOY.align([token]).toarray()[0]
    assert dict(zip(TOY.categories, row, strict=True)) == {
        c: expected.get(c, 0.0) for c in TOY.categories
    }


def test_terms_of_several_words_match_ngrams_only():
    text = ["i am so sad"]
    assert TOY.score(lexicons.count_tokens(text)).loc[0, "sadness"] == 0
    assert TOY.score(lexicons.count_tokens(text, n=2)).loc[0, "sadness"] == 1 / 3


def test_weightings_differ_as_defined():
    counts = lexicons.count_tokens(["happy nothing x x x"])
    expected = {"raw": 3.0, "relative": 3 / 5, "lex_norm": 3.0, "liwc_norm": 3 / 2}
    for weighting, value in expected.items():
        assert TOY.score(counts, weighting).loc[0, "joy"] == pytest.approx(value, abs=1e-15)
    # A term of weight 0 counts as matched: a mean of 0, not an undefined one.
    assert TOY.score(counts, "lex_norm").loc[0, "fear"] == 0.0
    with pytest.raises(ValueError, match="weighting is one of"):
        TOY.score(counts, "percent")


def test_intercept_is_added_once_per_text_with_tokens():
    age = lexicons.from_triples("age", [("_intercept", "age", 23.0), ("homework", "age", -10.0)])
    scores = age.score(lexicons.count_tokens(["homework today", "today", ""]))["age"]
    assert scores[:2].tolist() == [18.0, 23.0] and np.isnan(scores[2])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   ", 0),
        (None, 0),
        (float("nan"), 0),
        ("!?", 2),
        ("yes", 1),
        ("\U0001f600", 1),
    ],
)
def test_edge_texts_are_counted_and_scored(text, tokens):
    counts = lexicons.count_tokens([text, "happy"])
    assert counts.totals.tolist() == [tokens, 1.0]
    score = TOY.score(counts)["joy"]
    assert score[1] == 3.0 and (np.isnan(score[0]) if tokens == 0 else score[0] == 0)


@pytest.mark.parametrize("token", ["too-old", "zoo-keeper", "pro-life", "don't", "2nd"])
def test_a_word_that_holds_a_face_is_a_word(token):
    assert lexicons.is_word(token)
    assert lexicons.count_tokens([token]).word_totals.tolist() == [1.0]


@pytest.mark.parametrize("token", [":D", "o.o", "ooo", "=p", "<3", "...", "<newline>"])
def test_faces_marks_and_line_breaks_are_no_words(token):
    assert not lexicons.is_word(token)


def test_a_reply_of_30000_words_is_scored_in_full():
    counts = lexicons.count_tokens(["happy stone " * 15_000])
    assert counts.totals[0] == 30_000
    assert TOY.score(counts).loc[0, "joy"] == pytest.approx(1.5, abs=1e-12)


def test_non_english_text_has_tokens_but_no_match():
    counts = lexicons.count_tokens(["Guten Morgen , wie geht's ?", "今天天气很好", "привет , мир"])
    assert (counts.totals > 0).all()
    assert (TOY.score(counts).to_numpy() == 0).all()


def test_pooled_counts_equal_counts_of_the_joined_messages():
    texts = pd.Series(["happy so", "so", "stone happy happy"])
    pooled = lexicons.count_tokens(texts).pool(["a", "b", "a"])
    joined = lexicons.count_tokens(["happy so stone happy happy", "so"])
    assert TOY.score(pooled)["joy"].tolist() == TOY.score(joined)["joy"].tolist() == [9 / 5, 0.0]
    assert pooled.index.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="2 group labels for 3 rows"):
        lexicons.count_tokens(texts).pool(["a", "b"])


def test_bigrams_do_not_cross_messages_when_pooled():
    pooled = lexicons.count_tokens(["so", "sad"], n=2).pool(["a", "a"])
    assert pooled.totals.tolist() == [0.0]


def test_pooled_lists_equal_the_text_joined_by_line_breaks():
    history = [["hi there", "how are you ?"], ["yes"], []]
    pooled = lexicons.count_pooled(history, newline_tokens=True)
    joined = lexicons.count_tokens(["\n".join(row) for row in history])
    for row in range(3):
        ours = dict(zip(pooled.features, pooled.matrix[row].toarray()[0], strict=True))
        theirs = dict(zip(joined.features, joined.matrix[row].toarray()[0], strict=True))
        assert {t: k for t, k in ours.items() if k} == {t: k for t, k in theirs.items() if k}


def test_a_stream_gives_the_scores_of_the_whole_and_flat_memory():
    texts = [f"happy stone {i % 997} word{i % 1013}" for i in range(12_000)]
    whole = TOY.score(lexicons.count_tokens(texts))
    parts = pd.concat(lexicons.score_stream(iter(texts), [TOY], chunk=1_000))
    pd.testing.assert_frame_equal(parts["toy"], whole)
    peaks = []
    for size in (3_000, 12_000):
        tracemalloc.start()
        for _ in lexicons.score_stream(iter(texts[:size]), [TOY], chunk=1_000):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_function_word_lists_are_complete_and_unambiguous_on_paper():
    words = lexicons.function_words()
    assert set(words.categories) == set(lexicons.FUNCTION_WORDS)
    stored = json.loads((ROOT / "data" / "function_words.json").read_text(encoding="utf-8"))
    for category, entries in stored["categories"].items():
        assert entries == sorted(set(entries)), category
        for word in entries:
            # An entry that the tokenizer splits could never be matched.
            assert lexicons.tokenize(word) == [word], word
    assert sorted(words.lookup("nobody's")) == ["auxiliary_verbs", "impersonal_pronouns"]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "joy\tsunny\t1.5\nfear\tnan\t0.25\njoy\t*grin*\t0.5\n",
        "Notes on the lexicon\n\nSee: joy\tis\ta word\njoy\tsunny\t1.5\nfear\tnan\t0.25\n"
        "joy\t*grin*\t0.5\n",
        "sunny\tjoy\t1.5\nnan\tfear\t0.25\n*grin*\tjoy\t0.5\n",
        "\ufeffjoy\tsunny\t1.5\r\nfear\tnan\t0.25\r\njoy\t*grin*\t0.5\r\n",
    ],
    ids=["plain", "with notes", "term first", "windows"],
)
def test_nrc_text_forms_give_one_lexicon(tmp_path, text):
    lexicon = lexicons.nrc_hashtag(write(tmp_path, "nrc.txt", text))
    assert lexicon.weights == {
        "sunny": {"joy": 1.5},
        "nan": {"fear": 0.25},
        "*grin*": {"joy": 0.5},
    }


def test_nrc_file_faults_name_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"nrc\.txt: line 2 is not"):
        lexicons.read_nrc(write(tmp_path, "nrc.txt", "joy\tsunny\t1.5\njoy\tsunny\n"))
    with pytest.raises(DataError, match="no line reads"):
        lexicons.read_nrc(write(tmp_path, "nrc.txt", "PK\x03\x04\n"))


def test_missing_lexica_say_where_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "_dlatk_database", lambda: None)
    for variable in ("NRC_HASHTAG_LEXICON", "FACEBOOK_TOPICS", "LIWC_DICTIONARY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(lexicons.LexiconMissing, match="saifmohammad.com.*NRC_HASHTAG_LEXICON"):
        lexicons.nrc_hashtag()
    with pytest.raises(lexicons.LexiconMissing, match="dlatk==1.3.15.*FACEBOOK_TOPICS"):
        lexicons.facebook_topics()
    with pytest.raises(lexicons.LexiconMissing, match="liwc.app.*function_words"):
        lexicons.liwc()
    with pytest.raises(lexicons.LexiconMissing, match="no lexicon file"):
        lexicons.nrc_hashtag(tmp_path / "absent.txt")


DIC = (
    "%\n1\tppron\n2\tipron\n3\tarticle\n4\tconj\n5\tpreps\n6\tauxverb\n7\tadverb\n8\tnegate\n"
    "9\tquant\n10\tfamily\n%\n"
    "we\t1\nthis\t2\nthe\t3\nbut\t4\ninside\t5\ndidn't*\t6\t8\nquick*\t7\n"
    "plenty\t9\nsister*\t10\nkind\t(of)9/7\t10\n"
)


def test_liwc_dictionary_is_read_as_the_liwc_package_reads_it(tmp_path):
    path = write(tmp_path, "toy.dic", DIC.replace("kind\t(of)9/7\t10\n", ""))
    parse, names = pytest.importorskip("liwc").load_token_parser(str(path))
    ours = lexicons.read_liwc(path)
    assert set(ours.categories) == set(names)
    for token in ("we", "this", "didn't", "quickly", "quick", "sisters", "plenty", "stone"):
        assert set(ours.lookup(token)) == set(parse(token)), token


def test_liwc_style_categories_and_conditions(tmp_path):
    path = write(tmp_path, "toy.dic", DIC)
    assert lexicons.read_liwc(path).lookup("kind") == {"family": 1.0}
    style = lexicons.liwc(path)
    assert set(style.categories) == set(lexicons.FUNCTION_WORDS)
    assert style.lookup("sisters") == {}
    with pytest.raises(DataError, match="(?s)quantifiers.*LIWC2007"):
        lexicons.liwc(write(tmp_path, "old.dic", DIC.replace("quant", "other")))
    with pytest.raises(DataError, match="'plenty' names category 99"):
        lexicons.read_liwc(write(tmp_path, "bad.dic", DIC.replace("plenty\t9", "plenty\t99")))
    with pytest.raises(DataError, match="two lines of '%'"):
        lexicons.read_liwc(write(tmp_path, "bad.dic", "we\t1\n"))


def test_csv_lexicon_faults_name_the_place(tmp_path):
    with pytest.raises(DataError, match="'many' of term 'b'.*") as fault:
        lexicons.read_csv(write(tmp_path, "x.csv", "term,category,weight\na,c,1\nb,c,many\n"))
    assert fault.value.row == 2 and fault.value.column == "weight"
    with pytest.raises(DataError, match="name the columns term, category"):
        lexicons.read_csv(write(tmp_path, "x.csv", "word,group\na,c\n"))
    tabs = lexicons.read_csv(write(tmp_path, "x.csv", "term\tcategory\nNull\tc\n"))
    assert tabs.weights == {"null": {"c": 1.0}}


def test_a_database_without_the_table_lists_what_it_has(tmp_path):
    path = tmp_path / "lexica.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (id INTEGER, term TEXT, category TEXT, weight REAL)")
        database.execute("INSERT INTO mine VALUES (1, 'Sun', 'joy', 2.0)")
    assert lexicons.read_database(path, "mine").weights == {"sun": {"joy": 2.0}}
    with pytest.raises(DataError, match=r"choose one of \['mine'\]"):
        lexicons.read_database(path, "yours")


def test_restrict_keeps_what_was_asked_for():
    kept = TOY.restrict(["joy"])
    assert kept.categories == ("joy",) and set(kept.weights) == {"happ*", "happy"}
    with pytest.raises(KeyError, match="no category"):
        TOY.restrict(["envy"])
