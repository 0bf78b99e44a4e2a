r"""Split social-media English into tokens, emoticons and hashtags kept whole, and count them.

The human-centered metrics were computed with DLATK, whose tokenizer is `happierfuntokenizing`.
Its rules are rewritten here, one named rule per line in the order in which they are tried; the
tests compare both tokenizers on every text of four public corpora and on random strings. Odd
results are not corrected ("oooh" becomes "ooo" + "h", because "ooo" is also a face): scores are
comparable only if the tokens are those that the lexicon was made from.
"""

import html.entities
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, compress

import numpy as np
import pandas as pd
from scipy import sparse

from lib.data import KEY
from lib.data.turn_texts import earlier_utterances

# Faces such as :-) and their mirror image (-: . Eyes, nose and mouth are single characters.
_MOUTH = r"[()\[\]{}/\\|@:dpx]"
_NOSE = r"['*o\-]?"
_FACE = rf"[<>]?[:;=8>]{_NOSE}{_MOUTH}"
_MIRRORED_FACE = rf"{_MOUTH}{_NOSE}[:;=8<][<>]?"
# Faces seen upright, o_O and (^_^;) among them.
_UPRIGHT_FACE = r"\(*#?[*+\->o^~][,.o_|][*+\-<o^~][#;]?\)*"
# The third is a heart.
_EMOTICON = rf"(?:{_FACE}|{_MIRRORED_FACE}|<[/\\]?3|{_UPRIGHT_FACE})"

# The top-level domains that make "name.xyz" an address. Longer ones first: "com" before "co".
_DOMAINS = (
    "info|com|edu|gov|net|org|am|be|cc|co|fm|gd|gl|gs|im|jp|kr|ly|me|nl|pr|sg|to|us|ws"
)

_GAP = r"[\s.\-]*"
RULES: tuple[tuple[str, str], ...] = (
    (
        "phone number",
        rf"(?:\+?[01]{_GAP})?(?:\(?\d{{3}}[\s.)\-]*)?\d{{3}}{_GAP}\d{{4}}",
    ),
    ("emoticon", _EMOTICON),
    ("address", rf"(?:https?://)?[\w\-]+(?:\.[\w\-]+)*\.(?:{_DOMAINS})(?:/[\s$])?"),
    ("scheme", r"https?://"),
    ("bracketed word", r"\[\w+\]"),
    ("query string", r"/\w+\?(?:;?\w+=\w+)+"),
    ("tag with attributes", r"<[^>]+=[^>]+>"),
    ("self-closing tag", r"<[^>]+\s/>"),
    ("tag, perhaps left open", r"<[^>\s]+>?"),
    ("end of a tag", r"<?[^<\s]+>"),
    ("user name", r"@\w+"),
    ("hashtag", r"#+\w+[\w'\-]*\w+"),
    ("bracketed label", r"\[[^\]]\w+:?\w+[^\]]\]"),
    ("word with inner mark", r"\w[\w'\-]+\w"),
    ("number", r"[+\-]?\d+[,./:\-]\d+[+\-]?"),
    ("word", r"\w+"),
    ("ellipsis", r"\.(?:\s*\.)+"),
    ("any other character", r"\S"),
)

_TOKEN = re.compile("|".join(pattern for _, pattern in RULES), re.IGNORECASE)
_FACES = re.compile(_EMOTICON, re.IGNORECASE)

#: The token that `clean_text` leaves where a message breaks into lines.
NEWLINE = "<newline>"


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case tokens by the rules of happierfuntokenizing.

    Rules are tried in the order of `RULES`, at each position the first that matches wins. A token
    that contains an emoticon keeps its case (":D" is not ":d"). HTML entities are decoded and
    escaped bytes (a backslash, "x" and hexadecimal digits) removed beforehand.

    Args:
        text: one utterance, in any language (scripts without spaces are not split).

    Returns:
        Tokens in order of appearance; none for a text without visible characters.

    Reference: Schwartz et al. (2017), DLATK: Differential Language Analysis ToolKit, EMNLP demos.

    >>> tokenize("It isn't well-known :D #sogood")
    ['it', "isn't", 'well-known', ':D', '#sogood']
    >>> tokenize("oooh, 1,299.99 ... I do n't!")
    ['ooo', 'h', ',', '1,299', '.', '99', '...', 'i', 'do', "n't", '!']
    >>> tokenize("  ")
    []
    """
    text = re.sub(r"\\x[0-9a-z]{1,4}", " ", _decode_entities(text))
    tokens = []
    for token in _TOKEN.findall(text):
        tokens.append(token if _FACES.search(token) else token.lower())
    return tokens


def clean_text(text: str) -> str:
    """Prepare a message as DLATK does before it tokenizes.

    A run of line breaks becomes the word "<NEWLINE>" (which then counts as a token), five or more
    dots become four, repeated white space one space, and none is left at the ends.

    >>> clean_text("Hi......\\n\\nyou   there")
    'Hi.... <NEWLINE> you there'
    """
    text = re.sub(r"\s*(?:\r?\n)+\s*", " <NEWLINE> ", text)
    text = re.sub(r"\.{5,}", "....", text)
    return re.sub(r"\s{2,}", " ", text).strip()


@lru_cache(maxsize=30_000)  # four metrics count the words of one text
def ngrams(text: str, n: int = 1) -> tuple[str, ...]:
    """List the n-grams of one message as DLATK stores them: lower case, joined by spaces, cut.

    DLATK stores 36, 70 and 102 characters of a 1-, 2- and 3-gram. A message shorter than n tokens
    has none.

    >>> ngrams("So good :D", 2)
    ('so good', 'good :d')
    """
    tokens = tokenize(clean_text(text))
    max_length = (37 - n) * n
    grams = []
    for start in range(len(tokens) - n + 1):
        gram = " ".join(tokens[start : start + n])
        grams.append(gram[:max_length].lower())
    return tuple(grams)


def is_word(token: str) -> bool:
    """Whether a token is a word or number rather than punctuation, a face or a line break.

    Only a whole token is a face: "too-old" holds the eyes and mouth of one and is a word.

    >>> [is_word(t) for t in ["don't", "too-old", "...", ":D", "<newline>"]]
    [True, True, False, False, False]
    """
    return (
        token != NEWLINE
        and not _FACES.fullmatch(token)
        and any(map(str.isalnum, token))
    )


def _decode_entities(text: str) -> str:
    for entity in set(re.findall(r"&#(\d+);", text)):
        if int(entity) < 0x110000:
            text = text.replace(f"&#{entity};", chr(int(entity)))
    names = set(re.findall(r"&(\w+);", text)) - {"amp"}
    for name in names & html.entities.entitydefs.keys():
        text = text.replace(f"&{name};", html.entities.entitydefs[name])
    # "&amp;" is only replaced when another name is present: the original does so (its replacement
    # sits inside the loop over the others), and token lists must agree.
    return text.replace("&amp;", " and ") if names else text


@dataclass(frozen=True)
class TokenCounts:
    """How often each feature (token or n-gram) occurs in each text or group of texts.

    Attributes:
        matrix: counts, sparse, shape (rows, features).
        features: the tokens or n-grams, one a column.
        index: labels of the rows.
    """

    matrix: sparse.csr_matrix
    features: Sequence[str]
    index: pd.Index

    @property
    def totals(self) -> np.ndarray:
        """Number of tokens (or n-grams) per row, repeats counted."""
        return np.asarray(self.matrix.sum(axis=1)).ravel()

    @property
    def word_totals(self) -> np.ndarray:
        """Number of words and numbers per row, without punctuation, faces and line breaks."""
        return self.matrix @ np.array(list(map(is_word, self.features)), float)


def count_tokens(
    texts: Sequence[str], groups: Sequence[Hashable] | None = None, n: int = 1
) -> TokenCounts:
    """Count the tokens (n = 1) or n-grams of texts, or of groups of texts.

    A lexical score of a dialog is computed from its pooled counts. The mean of the scores of its
    turns would give a one-word turn the weight of a long one. No n-gram crosses from one text to
    the next.

    Args:
        texts: messages. A missing text (None or NaN) has no tokens.
        groups: the group of each text; by default each is its own.
        n: order of the n-grams.

    Returns:
        One row per text, or per group in order of first appearance. Without tokens it is a row of
        zeros (its scores will be NaN).

    >>> counts = count_tokens(["no , no !", "yes"])
    >>> counts.totals.tolist(), counts.word_totals.tolist()
    ([4.0, 1.0], [2.0, 1.0])
    >>> count_tokens(["no , no !", "yes"], groups=["a", "a"]).totals.tolist()
    [5.0]
    """
    if groups is None:
        groups = pd.RangeIndex(len(texts))
    rows, index = pd.Index(groups).factorize(use_na_sentinel=False)
    return _count(texts, rows=rows, index=index, n=n)


def response_counts(
    table: pd.DataFrame, level: str = "turn", n: int = 1
) -> TokenCounts:
    """Count the agent's tokens (or n-grams) per turn, or pooled over dialogs, agents, systems.

    A turn table gives the column `response`, a dialog table the utterances of the speaker
    "system". A missing response adds nothing to its pool.

    >>> turns = pd.DataFrame({"system": ["s", "s"], "agent": ["a", "a"], "dialog": ["1", "2"],
    ...                       "context": [["hi"], ["hi", "yes ?"]], "response": ["so", "no no"]})
    >>> response_counts(turns).totals.tolist()
    [1.0, 2.0]
    >>> response_counts(turns, "agent").totals.tolist()
    [3.0]
    """
    if "utterances" in table:
        messages = _utterances_of(table, "system")
    else:
        messages = [[response] for response in table["response"]]
    return _pooled(messages, table, level=level, n=n)


def prompt_counts(
    table: pd.DataFrame,
    level="turn",
    context: str | int | None = None,
    newline_tokens=False,
) -> TokenCounts:
    """Count the tokens that the agent answers, per turn or pooled.

    Args:
        table: turn table (column `context`, oldest first) or dialog table (speaker "user").
        level: "turn", "dialog", "agent" or "system".
        context: "all" (the whole history), "last" (its last utterance) or the last k utterances.
            None means "all" at turn level, as the published figures imply (notebook 12), and
            "last" when pooling: the history of a later turn repeats the earlier ones, which must
            not count twice.
        newline_tokens: count one "<newline>" between two utterances, as DLATK does when the
            context is stored as one text with line breaks (which the paper's figures show).

    Raises:
        ValueError: an unknown level or context, or a context for a dialog table, which has no
            history per turn: there the partner's utterances are counted once.

    >>> turns = pd.DataFrame({"system": ["s"], "agent": ["a"], "dialog": ["1"],
    ...                       "context": [["hi there", "yes ?"]], "response": ["so"]})
    >>> prompt_counts(turns).totals.tolist(), prompt_counts(turns, context="last").totals.tolist()
    ([4.0], [2.0])
    """
    if "utterances" in table:
        check_choice(
            "context of a dialog table, which has no history per turn,", context, [None]
        )
        messages = _utterances_of(table, "user")
    else:
        if context is None:
            context = "all" if level == "turn" else "last"
        last = {"all": None, "last": 1}.get(context, context)
        if last is not None and (not isinstance(last, int) or last < 1):
            raise ValueError(
                f"context is 'all', 'last' or a number of utterances, not {context!r}"
            )
        messages = earlier_utterances(table, last)
    if newline_tokens:
        messages = [_with_newlines(utterances) for utterances in messages]
    return _pooled(messages, table, level=level)


def _with_newlines(utterances: Sequence[str]) -> list[str]:
    messages = []
    for utterance in utterances:
        messages += [NEWLINE, utterance]
    return messages[1:]


def check_choice(option: str, value: object, choices: Collection) -> None:
    """Refuse a value of an option that is not one of the choices.

    >>> check_choice("level", "speaker", ["turn", "dialog"])
    Traceback (most recent call last):
    ...
    ValueError: level is one of ('turn', 'dialog'), not 'speaker'
    """
    if value not in choices:
        raise ValueError(f"{option} is one of {tuple(choices)}, not {value!r}")


def with_missing_reasons(values: pd.Series, reasons: Mapping, *columns) -> pd.DataFrame:
    """Add to each value the first reason that holds in its row ("" for none), and more columns.

    >>> reasons = {"no words": [True, False], "no match": [True, True]}
    >>> with_missing_reasons(pd.Series([np.nan, 1.0], name="x"), reasons)["reason"].tolist()
    ['no words', 'no match']
    """
    reason = np.select(list(reasons.values()), list(reasons), "")
    return pd.concat(
        [values, pd.Series(reason, values.index, name="reason"), *columns], axis=1
    )


def _count(
    texts: Sequence[str], rows: np.ndarray, index: pd.Index, n: int
) -> TokenCounts:
    """Count texts that belong to `rows` of a table with `index`."""
    from sklearn.feature_extraction.text import CountVectorizer  # a second to import

    texts = [text if isinstance(text, str) else "" for text in texts]
    # Two thirds of the utterances of dialogue corpora are repeats (every context is rated with
    # several responses): each distinct one is tokenized once.
    text_ids, distinct = pd.factorize(np.array(texts, dtype=object))
    vectorizer = CountVectorizer(analyzer=partial(ngrams, n=n), dtype=float)
    # The vectorizer refuses texts without any feature, so one that has a feature comes last.
    matrix = vectorizer.fit_transform([*distinct, " ".join([NEWLINE] * n)])[:-1]
    ones = np.ones(len(text_ids))
    membership = sparse.csr_matrix(
        (ones, (rows, text_ids)), shape=(len(index), len(distinct))
    )
    features = list(vectorizer.get_feature_names_out())
    return TokenCounts((membership @ matrix).tocsr(), features, index)


def _pooled(
    messages: list[list], table: pd.DataFrame, level: str, n: int = 1
) -> TokenCounts:
    """Count the messages of each row of a table, pooled to `level`."""
    levels = KEY[:-1] if "utterances" in table else KEY
    check_choice("level", level, levels)
    rows = np.arange(len(table))
    index = table.index
    if level != levels[-1]:
        groups = table.set_index(KEY[: KEY.index(level) + 1]).index
        rows, _ = groups.factorize(use_na_sentinel=False)
        index = groups.unique()
    rows = np.repeat(rows, list(map(len, messages)))
    return _count(list(chain.from_iterable(messages)), rows=rows, index=index, n=n)


def _utterances_of(dialogs: pd.DataFrame, speaker: str) -> list[list[str]]:
    messages = []
    for utterances, speakers in zip(
        dialogs["utterances"], dialogs["speakers"], strict=True
    ):
        by_speaker = [name == speaker for name in speakers]
        messages.append(list(compress(utterances, by_speaker)))
    return messages
