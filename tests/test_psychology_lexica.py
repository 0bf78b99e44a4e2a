"""Tokens against DLATK's, lexicon scores against plain formulas, readers against PyPI `liwc`."""

import json
import random
from pathlib import Path

import pandas as pd
import pytest

from lib import ROOT, psychology
from lib.data import DataError
from lib.psychology import tokens

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


@pytest.mark.parametrize("text", QUIRKS, ids=list(QUIRKS))
def test_tokenizer_keeps_the_known_quirks_of_dlatk(text, oracle):
    assert psychology.tokenize(text) == oracle.tokenize(text) == QUIRKS[text]


def test_tokenizer_equals_dlatk_on_random_strings(oracle):
    draw = random.Random(5)
    pieces = [
        *QUIRKS,
        *"abdopxDOX0138 .,;:'\"!?()[]{}<>/\\|@#&*+-_=~^é你\n$",
        "http://",
        ".com",
    ]
    for _ in range(20_000):
        text = "".join(draw.choices(pieces, k=draw.randint(1, 12)))
        assert psychology.tokenize(text) == oracle.tokenize(text), repr(text)


def test_cleaning_equals_dlatk_on_random_strings():
    dlatk = pytest.importorskip("dlatk.textCleaner")
    draw = random.Random(6)
    for _ in range(5_000):
        text = "".join(draw.choices("ab.. \n\n\r\t\xa0 ", k=draw.randint(0, 12)))
        assert tokens.clean_text(text) == dlatk.shrinkSpace(
            dlatk.treatNewlines(text)
        ), repr(text)


def test_nrc_of_dlatk_has_its_published_size():
    pytest.importorskip("dlatk")
    nrc = psychology.emotion_lexicon("nrc")
    assert len(nrc.weights) == 16_861 and nrc.categories == psychology.PLUTCHIK
    assert sum(len(entry) for entry in nrc.weights.values()) == 32_385


TERMS = {
    "happ*": {"joy": 1.0, "trust": 0.5},
    "happy": {"joy": 3.0},
    "happi*": {"trust": 2.0},
}
TOY = psychology.Lexicon(
    "toy", TERMS | {"ab*": {"fear": 1.0}, "nothing": {"fear": 0.0}}
)
FOUND = {
    "happy": {"joy": 3.0, "trust": 0.5},  # the larger weight of "happy" and "happ*"
    "happiness": {"joy": 1.0, "trust": 2.0},  # of "happ*" and "happi*", not their sum
    "happ": {"joy": 1.0, "trust": 0.5},  # a stem matches itself
    "abba": {},  # the stem "ab" is too short
    "ab*": {"fear": 1.0},  # and taken literally
    "hap": {},
}


@pytest.mark.parametrize(("token", "expected"), FOUND.items())
def test_wildcards_take_the_largest_weight(token, expected):
    row = pd.Series(TOY.align([token]).toarray()[0], TOY.categories)
    assert TOY.lookup(token) == row[row > 0].to_dict() == expected


def test_function_word_lists_are_complete_and_unambiguous_on_paper():
    words = psychology.function_words()
    assert set(words.categories) == set(psychology.FUNCTION_WORDS)
    stored = json.loads(
        (ROOT / "data" / "function_words.json").read_text(encoding="utf-8")
    )
    for entries in stored["categories"].values():
        for word in entries:
            # An entry that the tokenizer splits could never be matched.
            assert psychology.tokenize(word) == [word], word
    assert sorted(words.lookup("nobody's")) == [
        "auxiliary_verbs",
        "impersonal_pronouns",
    ]


def write(folder: Path, text: str) -> Path:
    path = folder / "lexicon.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("weighting", "joy"), [("relative", 3 / 5), ("lex_norm", 3.0)])
def test_weightings_differ_as_defined(weighting, joy):
    scores = TOY.score(psychology.count_tokens(["happy nothing x x x"]), weighting)
    # A term of weight 0 counts as matched: a mean of 0, not an undefined one.
    assert scores.loc[0, ["joy", "fear"]].tolist() == [
        pytest.approx(joy, abs=1e-15),
        0.0,
    ]


def test_pooled_counts_are_those_of_the_messages_and_no_bigram_crosses_them():
    messages = ["happy so", "so", "stone happy happy"]
    pooled = psychology.count_tokens(messages, groups=["b", "a", "b"])
    assert pooled.index.tolist() == ["b", "a"]
    joined = psychology.count_tokens(["happy so stone happy happy", "so"])
    assert (
        TOY.score(pooled)["joy"].tolist()
        == TOY.score(joined)["joy"].tolist()
        == [9 / 5, 0.0]
    )
    assert psychology.count_tokens(["so", "sad"], ["a", "a"], n=2).totals.tolist() == [
        0.0
    ]


def test_prompts_with_line_breaks_equal_the_text_joined_by_them():
    history = [["hi there", "how are you ?"], ["yes"], []]
    table = pd.DataFrame({"context": history, "response": "x"})
    pooled = psychology.prompt_counts(table, newline_tokens=True)
    joined = psychology.count_tokens(["\n".join(row) for row in history])
    frames = [
        pd.DataFrame(c.matrix.toarray(), columns=c.features) for c in (pooled, joined)
    ]
    pd.testing.assert_frame_equal(*frames)


def test_a_missing_lexicon_says_where_to_get_it(monkeypatch):
    pytest.importorskip("dlatk")
    with pytest.raises(DataError, match="choose one of .*'nrc_emot'"):
        psychology.dlatk_lexicon("mine")
    psychology.dlatk_lexicon.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="dlatk==1.3.15"):
        psychology.emotion_lexicon("nrc")


DIC = (
    "%\n1\tppron\n2\tipron\n3\tarticle\n4\tconj\n5\tpreps\n6\tauxverb\n7\tadverb\n8\tnegate\n"
    "9\tquant\n10\tfamily\n%\n"
    "we\t1\nthis\t2\nthe\t3\nbut\t4\ninside\t5\ndidn't*\t6\t8\nquick*\t7\n"
    "plenty\t9\nsister*\t10\n"
)


def test_liwc_dictionary_is_read_as_the_liwc_package_reads_it(tmp_path):
    path = write(tmp_path, DIC)
    parse, names = pytest.importorskip("liwc").load_token_parser(str(path))
    lexicon = psychology.read_liwc(path)
    short = psychology.FUNCTION_WORDS | {"prepositions": "preps"}
    assert {short.get(category, category) for category in lexicon.categories} == set(
        names
    )
    for token in (
        "we",
        "this",
        "didn't",
        "quickly",
        "quick",
        "sisters",
        "plenty",
        "stone",
    ):
        categories = {
            short.get(category, category) for category in lexicon.lookup(token)
        }
        assert categories == set(parse(token)), token
    conditional = psychology.read_liwc(write(tmp_path, DIC + "kind\t(of)9/7\t10\n"))
    assert conditional.lookup("kind") == {"family": 1.0}


HEAD = "term,category,weight\n"
FAULTS = [
    (psychology.read_liwc, DIC.replace("quant", "other"), "(?s)quantifiers.*LIWC2007"),
    (psychology.read_liwc, "we\t1\n", "two lines of '%'"),
    (psychology.read_lexicon, "term,category\na,c\n", "no column .'weight'"),
    (
        psychology.read_lexicon,
        f"{HEAD}a,c,1\nb,c,many\n",
        "row 2, column 'weight': is 'many'",
    ),
]


@pytest.mark.parametrize(("read", "text", "message"), FAULTS)
def test_faults_of_a_lexicon_file_name_the_place(tmp_path, read, text, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, text))


def test_a_lexicon_with_tabs_may_hold_the_word_null(tmp_path):
    tabs = psychology.read_lexicon(
        write(tmp_path, "term\tcategory\tweight\nNull\tc\t1\n")
    )
    assert tabs.weights == {"null": {"c": 1.0}}
