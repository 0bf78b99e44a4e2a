r"""Split social-media English into tokens, emoticons and hashtags kept whole.

The human-centered metrics were computed with DLATK, whose tokenizer is `happierfuntokenizing`.
Its rules are written here in our own words, one named rule per line in the order in which they
are tried; the tests compare both tokenizers on every text of four public corpora and on random
strings. Where a rule looks odd ("oooh" becomes "ooo" + "h", because "ooo" is also a face), the
oddity is kept: a lexicon is only as comparable as the tokens it was made from.
"""

import html.entities
import re

# Faces such as :-) and their mirror image (-: . Eyes, nose and mouth are single characters.
_MOUTH = r"[()\[\]{}/\\|@:dpx]"
_NOSE = r"['*o\-]?"
_FACE = rf"[<>]?[:;=8>]{_NOSE}{_MOUTH}"
_MIRRORED_FACE = rf"{_MOUTH}{_NOSE}[:;=8<][<>]?"
_HEART = r"<[/\\]?3"
# Faces seen upright, o_O and (^_^;) among them.
_UPRIGHT_FACE = r"\(*#?[*+\->o^~][,.o_|][*+\-<o^~][#;]?\)*"
_EMOTICON = rf"(?:{_FACE}|{_MIRRORED_FACE}|{_HEART}|{_UPRIGHT_FACE})"

# The top-level domains that make "name.xyz" an address. Longer ones first: "com" before "co".
_DOMAINS = "info|com|edu|gov|net|org|am|be|cc|co|fm|gd|gl|gs|im|jp|kr|ly|me|nl|pr|sg|to|us|ws"

_GAP = r"[\s.\-]*"
RULES: tuple[tuple[str, str], ...] = (
    ("phone number", rf"(?:\+?[01]{_GAP})?(?:\(?\d{{3}}[\s.)\-]*)?\d{{3}}{_GAP}\d{{4}}"),
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
_FIND_EMOTICON = re.compile(_EMOTICON, re.IGNORECASE).search
_IS_EMOTICON = re.compile(_EMOTICON, re.IGNORECASE).fullmatch

#: The token that `clean` leaves where a message breaks into lines.
NEWLINE = "<newline>"

#: DLATK keeps this many characters of a token (and slightly fewer per word of an n-gram).
TOKEN_LENGTH = 36


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case tokens by the rules of happierfuntokenizing.

    Rules are tried in the order of `RULES`, at each position the first that matches wins. A token
    that contains an emoticon keeps its case (":D" is not ":d"). HTML entities are decoded and
    escaped bytes (a backslash, "x" and hexadecimal digits) removed beforehand.

    Args:
        text: one utterance, in any language (scripts without spaces stay in one piece).

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
    if "&" in text:
        text = _decode_entities(text)
    if "\\x" in text:
        text = re.sub(r"\\x[0-9a-z]{1,4}", " ", text)
    return [t if _FIND_EMOTICON(t) else t.lower() for t in _TOKEN.findall(text)]


def clean(text: str) -> str:
    """Prepare a message as DLATK does before it tokenizes.

    A run of line breaks becomes the word "<NEWLINE>" (which then counts as a token), five or more
    dots become four, repeated white space one space, and none is left at the ends.

    >>> clean("Hi......\\n\\nyou   there")
    'Hi.... <NEWLINE> you there'
    """
    text = re.sub(r"\s*(?:\r?\n)+\s*", " <NEWLINE> ", text)
    return re.sub(r"\s{2,}", " ", re.sub(r"\.{5,}", "....", text)).strip()


def ngrams(text: str, n: int = 1) -> list[str]:
    """List the n-grams of one message as DLATK stores them: lower case, joined by spaces, and cut.

    DLATK keeps 36, 70 and 102 characters of a 1-, 2- and 3-gram. A message shorter than n tokens
    has none.

    >>> ngrams("So good :D", 2)
    ['so good', 'good :d']
    """
    tokens = tokenize(clean(text))
    length = (TOKEN_LENGTH - (n - 1)) * n
    grams = (" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
    return [gram[:length].lower() for gram in grams]


def is_word(token: str) -> bool:
    """Whether a token is a word or number rather than punctuation, a face or a line break.

    Only a whole token is a face: "too-old" holds the eyes and mouth of one and is a word.

    >>> [is_word(t) for t in ["don't", "too-old", "...", ":D", "<newline>"]]
    [True, True, False, False, False]
    """
    if token == NEWLINE or _IS_EMOTICON(token):
        return False
    return any(character.isalnum() for character in token)


def _decode_entities(text: str) -> str:
    for entity in set(re.findall(r"&#(\d+);", text)):
        if int(entity) < 0x110000:
            text = text.replace(f"&#{entity};", chr(int(entity)))
    # "&amp;" is only replaced when another named entity is present: the original does so
    # (its replacement sits inside the loop over the others), and token lists must agree.
    for name in set(re.findall(r"&(\w+);", text)) - {"amp"}:
        if name in html.entities.name2codepoint:
            text = text.replace(f"&{name};", chr(html.entities.name2codepoint[name]))
        text = text.replace("&amp;", " and ")
    return text
