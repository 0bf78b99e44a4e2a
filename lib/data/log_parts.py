"""What many readers of logs need: words of a message, times, ratings, trees, speakers."""

import html
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from html.parser import HTMLParser
from typing import Any, NamedTuple

from lib.data.corpora import snake_case
from lib.data.dialogs import (
    IN_CONTEXT,
    WORDS,
    Dialog,
    Rating,
    Utterance,
    speaker_role,
)
from lib.data.file_contents import parse_list
from lib.data.log_times import has_numeric_date, to_time

SYNONYMS = WORDS["synonyms"]  # what people call our columns
SPEAKER = WORDS["fields"]["speaker"].split()
TEXT = WORDS["fields"]["text"].split()
ROLE = WORDS["fields"]["role"].split()
MODEL = WORDS["fields"]["model"].split()
TIME = WORDS["fields"]["time"].split()
TURN = WORDS["fields"]["turn"].split()
RATERS = WORDS["fields"]["rater"].split()
DIALOG = ["dialog", *SYNONYMS["dialog"].split()]
NO_TALK = {  # fields that tell what is no talk, with their values that do
    name: set(values.split())
    for names, values in WORDS["no_talk"].items()
    for name in names.split()
}
NO_TALK_FLAGS = WORDS["no_talk_flags"]["true"].split()
TALK_FLAGS = WORDS["no_talk_flags"]["false"].split()
DELETED_AT = ("deleted_at", "deletedAt", "deleted_time")  # times, of what was deleted
PARENT = (
    "reply_to",
    "reply-to",
    "parent_id",
    "parentId",
    "parent_message_id",
    "parent",
)
SYSTEM_PROMPT = ("system", "systemmessage", "系统", "系統")  # the second of LangChain
MEDIA = ("image", "images", "video", "videos", "audio", "audios")
PLACEHOLDER = re.compile(r"<(?:image|video|audio)>")  # for one of these, in a text
TALK_BLOCKS = (
    *(None, "text", "input_text", "output_text", "markdown", "plain"),
    *("refusal", "voice_note"),
)
PART_TYPE = re.compile(  # of a part of a message, by the names of several interfaces
    r"(input_|output_)?text|reasoning|(redacted_)?thinking|step-start|(dynamic-)?tool[-_]?.*|data-.*"
    r"|(input_)?(image|audio|video)(_url)?|file|source.*|refusal|.+_call(_output)?"
)
OPINION_WORDS = set(" ".join(WORDS["ratings"].values()).split())
GOOD_OR_BAD = {*WORDS["ratings"]["good"].split(), *WORDS["ratings"]["bad"].split()}
NUMBER_WITH_UNIT = re.compile(
    r"(?P<number>\d+([.,]\d+)?) ?((/|out of|of) ?\d+|%|stars?|[★⭐])"
)
STARS = re.compile("(?=.*[★⭐])[★⭐☆✩]{1,10}")
DECIMAL_COMMA = re.compile(r"\s*(-?\d+),(\d+)\s*")
# A time or the number of a turn, a name of at most 40 characters, perhaps in brackets or with a
# time behind it, a colon; matched in the start of a line only.
SPEAKER_START = re.compile(
    r"(?:[\[(#]?\d[\d:./, TZ-]*(?:[ap]\.?m\.?)?[\])]? ?[-–]? ?)?"
    r"(?:[\[(]?(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)[\])]? ?[-:]? )?[*_>#]* ?"
    r"(?:Turn \d{1,4} ?[-–:.|)] ?)?"
    r"(?:[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f\u200d]{1,8} ?)?(?P<bracket>\[)?"
    r"(?P<name>[^\W\d][^:\t\n]{0,39}?)(?(bracket)\])"
    r"(?: [\[(](?:\d{4}-\d\d-\d\d[ T])?\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?[\])])?"
    r"[*_#]* ?:[*_]*(?:\s|$)",
    re.I,
)
# A name of one word, as stands before what somebody says within a line.
SIDE_START = re.compile(r"(?<!\S)(?P<name>[^\W\d_]\w{0,19}):(?=\s)")
TIME_NAME = re.compile(
    r"time|(^|_)date(_|$)|created|(^|_)(sent|posted)(_|$)|(^|_)(at|when)$"
)
RATING_NAME = re.compile(
    r"human_.+|(.+_)?rating|(.+_)?feedback"
    r"|(bewertung|calificación|valutazione|avaliação|ocena|оценка|التقييم)(_.{1,30})?"
    r"|(评分|評価|평점|평가)(?!コメント|理由).{0,30}"
    r"|rating_(?!(count|id|date|time|scale|comment|by|type|number|max|min|out|source|status"
    r"|reason|text|model|method|version|suggestion)(_|$)).{1,30}"
)
RATING_BY = re.compile(  # a column of one rater, such as rating_judge3 and rater_1
    r"rating_(?P<rater>(?:annotator|rater|worker|judge|coder|evaluator)_?\w{1,9})"
    r"|(?P<alone>(?:annotator|rater|worker|judge|coder|evaluator)_?(?:\d{1,2}|[a-e])"
    r"|(?:评分_?|評価_?)?(?:标注员|评分员|評価者|평가자|bewerter_?)\w{1,2})"
)


RATING_VALUES = ("rating", "score", "value", "stars")  # in a mapping of one rating
RATING_DIMENSIONS = ("dimension", "criterion", "aspect", "question")


def first_value(
    fields: Mapping[str, Any], names: Iterable[str], types: Any = object
) -> Any:
    """The first of these fields that is there, of these types and not empty."""
    for name in names:
        if name in fields:
            value = fields[name]
            if isinstance(value, types) and value is not None and value != "":
                return value
    return None


def to_number(value: Any) -> float | None:
    """A number, or None."""
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def first_text(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of these fields that is a text or a whole number, as text."""
    value = first_value(fields, names, str | int)
    return None if value is None else str(value)


class Step(NamedTuple):
    """A step of a path: a name, whether its items are entered, and which of them."""

    name: str
    entered: str
    key: str
    wanted: tuple[str, ...]


@cache
def path_steps(path: str) -> list[Step]:
    """The steps of a path."""
    steps = []
    for part in re.split(r"(?<!\\)\.(?![^\[]*\])", path):
        match = re.fullmatch(
            r"(?P<name>[^\[{]*)(?P<entered>\[(?P<filter>.*)\]|\{\})?", part
        )
        key, _, wanted = (match["filter"] or "").partition("=")
        name = match["name"].replace("\\.", ".")
        entered = (match["entered"] or "")[:1]
        steps.append(Step(name, entered, key, tuple(wanted.lower().split(","))))
    return steps


def values_at(value: Any, path: str) -> list[Any]:
    """What stands at a path in a record and is not empty.

    "a.b" is a field of a field, "a.b,c" the first of two fields, "a[]" the items of a list, "a{}"
    those of a mapping, "a[b=c,d]" the items whose field b is c or d (in any case; "" is none);
    "a|b" is the first that is there. A text that holds JSON is entered as what it holds.

    >>> messages = [{"by": "A", "text": "Hi"}, {"by": "B", "text": "Ho"}]
    >>> values_at({"chat": messages}, "chat[by=b].text")
    ['Ho']
    """
    if not path:
        return [value]
    for alternative in path.split("|"):
        values = walk(value, alternative)
        values = [item for item in values if item not in ("", [], {})]
        if values:
            return values
    return []


def walk(value: Any, path: str, most: int | None = None) -> list[Any]:
    """What stands at one path, also empty texts and lists, of the first items of each list."""
    values = [value]
    for step in path_steps(path):
        values = step_into(values, step, most)
    return [item for item in values if item is not None]


def field_of(value: Any, name: str) -> Any:
    """A field of a mapping; of "a,b" the first of both that is not empty."""
    if not isinstance(value, dict):
        return None
    if "," not in name:
        return value.get(name)
    return first_value(value, name.split(","))


def step_into(values: list[Any], step: Step, most: int | None) -> list[Any]:
    """The values one step further."""
    further = []
    for value in values:
        if isinstance(value, str) and value[:1] in ("{", "["):
            value = parse_list(value)
        if step.name:
            value = field_of(value, step.name)
        if not step.entered:
            further.append(value)
            continue
        if isinstance(value, str) and value[:1] == "[":
            value = parse_list(value)
        if step.entered == "{" and isinstance(value, dict):
            value = list(value.values())
        items = value[:most] if isinstance(value, list) else []
        if step.key:
            items = [
                item for item in items if lower_text(item, step.key) in step.wanted
            ]
        further += items
    return further


def lower_text(item: Any, key: str) -> str:
    """A field of a mapping as a text in lower case; "" where there is none."""
    value = item.get(key) if isinstance(item, dict) else None
    return "" if value is None else str(value).lower()


def value_at(value: Any, path: str) -> Any:
    """The first value at a path; None without one."""
    if not path:
        return None
    return next(iter(values_at(value, path)), None)


def with_replies(messages: list[dict], path: str) -> list[dict]:
    """The messages and, after each, those that answer it, of all generations."""
    found = []
    to_visit = messages[::-1]
    while to_visit:
        message = to_visit.pop()
        found.append(message)
        to_visit += [
            item for item in values_at(message, f"{path}[]") if isinstance(item, dict)
        ][::-1]
    return found


def text_at(value: Any, path: str) -> str | None:
    """The first text or whole number at a path, as text; None for an empty path or no such value.

    Numbers with a fraction are skipped; a truth value is "True" or "False".

    >>> text_at({"id": 7}, "id"), text_at({"id": 7.5}, "id"), text_at({"id": 7}, "")
    ('7', None, None)
    """
    if not path:
        return None
    for item in values_at(value, path):
        if isinstance(item, str | int):
            return str(item)
    return None


def first_words(value: Any, path: str) -> str | None:
    """The words at a path: a text, blocks of a message, or several of them; None without any."""
    texts = [text_of(item) for item in values_at(value, path)]
    texts = [text for text in texts if text is not None]
    texts = [
        html_text(t) or "" if t.startswith("<speak>") else t for t in texts
    ]  # SSML
    return "\n".join(texts) if texts else None


@cache
def split_condition(condition: str) -> tuple[str, str | None]:
    """A path and what it is to be, which stands behind the first "=" that is in no brackets."""
    match = re.fullmatch(
        r"(?P<path>(?:\[[^]]*\]|[^=[])*)(?:=(?P<wanted>.*))?", condition
    )
    return match["path"], match["wanted"]


@cache
def first_name(condition: str) -> str:
    """The field of a record that a condition begins with."""
    return path_steps(split_condition(condition)[0])[0].name


def has_path(value: Any, condition: str) -> bool:
    """Whether a record has something at a path; "path=a,b" is one of these, "path=str" texts only.

    "path=a*" is what begins with "a".

    >>> has_path({"chat": [{}, {"author": "a"}]}, "chat[].author")
    True
    >>> has_path({"by": "A"}, "by=a,b"), has_path({"by": 1}, "by=str")
    (True, False)
    """
    path, wanted = split_condition(condition)
    found = walk(value, path, most=50)
    if wanted is None:
        return bool(found)
    if wanted == "str":
        return bool(found) and all(isinstance(item, str) for item in found)
    names = tuple(wanted.lower().split(","))
    beginnings = tuple(name[:-1] for name in names if name.endswith("*"))
    texts = [str(item).lower() for item in found]
    return any(text in names or text.startswith(beginnings) for text in texts)


def holds_any(value: Any, conditions: str) -> bool:
    """Whether a record fulfils one of the conditions "a=b|c"; none of no conditions."""
    return any(
        has_path(value, condition) for condition in conditions.split("|") if condition
    )


def dicts(value: Any) -> list[dict]:
    """The mappings in a list, or in a list written as JSON; empty for anything else."""
    if isinstance(value, str) and value[:1] == "[":
        value = parse_list(value)
    return (
        [item for item in value if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def from_json(value: Any) -> Any:
    """A value that a column may hold as JSON in a text; the text where it is none."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return parse_list(value)
    return value


def text_of(content: Any) -> str | None:
    """The words of a message: a text, or the text blocks among its parts; None where it has none.

    Reasoning, calls of tools, their results, pictures and files are no words. A table may hold
    the parts as JSON.

    >>> text_of([{"type": "text", "text": "Hi"}, {"type": "image_url"}])
    'Hi'
    >>> text_of('[{"type": "text", "text": "Hi"}]'), text_of('[{"type": "pear"}]')
    ('Hi', '[{"type": "pear"}]')
    """
    if isinstance(content, str):
        blocks = dicts(content) if content.startswith("[{") else []
        if not blocks or not all(
            PART_TYPE.fullmatch(str(b.get("type"))) for b in blocks
        ):
            return content
        content = blocks
    texts: list[str] = []
    before: Any = None
    has_others = False
    for block in content if isinstance(content, list) else [content]:
        text = block if isinstance(block, str) else None
        if isinstance(block, dict) and is_talk_block(block):
            text = _block_text(block)
        has_others |= text is None
        if text is not None and texts and go_on(before, block):
            texts[-1] += text
        elif text is not None:
            texts.append(text)
        before = block
    if has_others and not any(texts):
        return None  # an empty text beside the call of a tool, or a picture
    return "\n".join(texts) if texts else None


def go_on(before: Any, block: Any) -> bool:
    """Whether two blocks are of one sentence, which is divided where sources are named.

    Anthropic names them in each block, Mistral in one of its own.
    """
    if not (isinstance(before, dict) and isinstance(block, dict)):
        return False
    if before.get("type") in ("reference", "tool_reference"):
        return block.get("type") == "text"
    cited = before.get("citations") or block.get("citations")
    return bool(cited) and before.get("type") == block.get("type") == "text"


def is_talk_block(block: Mapping[str, Any]) -> bool:
    """Whether a block of a message holds words that are meant for the other side."""
    kind = block.get("type") or block.get("block_type")  # the second of LlamaIndex
    return kind in TALK_BLOCKS and not block.get("thought")


def words_of(message: Mapping[str, Any], text_key: str = "content") -> str | None:
    """The words of a message; None for an empty one that calls a tool.

    Where its text is empty, its blocks may stand beside it, as Mistral exports them.
    """
    text = text_of(message.get(text_key))
    blocks = first_value(message, ("contentChunks", "content_chunks"))
    if blocks and not text:
        text = text_of(blocks)
    if not text and isinstance(message.get("refusal"), str):
        return message["refusal"]  # which OpenAI puts beside an empty text
    return None if not text and calls_a_tool(message) else text


def calls_a_tool(message: Mapping[str, Any]) -> bool:
    """Whether a message calls a tool, or is the result of one."""
    names = ("tool_calls", "function_call", "tool_call_id")
    return any(message.get(name) for name in names)


def _block_text(block: dict) -> str | None:
    """The text of a block; OpenAI's Assistants put it one level deeper."""
    names = ("text", "content", "value", "body", "refusal")
    text = first_value(block, names)
    if text is None and any(block.get(name) == "" for name in names):
        return ""
    if isinstance(text, dict):
        value = text.get("value")
        text = value if isinstance(value, str) else None
    return text if isinstance(text, str) else None


HTML = re.compile(
    r"\s*<(?P<tag>p|div|span|html|body|ul|ol|table)\b[^<>]*>.*</(?P=tag)>\s*",
    re.S | re.I,
)


def without_html(text: str | None) -> str | None:
    """The words of a text that is HTML from its first to its last character; any other unchanged.

    >>> without_html("<p>Hi<br>there</p>"), without_html("Use <p> here")
    ('Hi\\nthere', 'Use <p> here')
    """
    if text and text.lstrip().startswith("<") and HTML.fullmatch(text):
        return html_text(text)
    return text


BLOCK_TAGS = {  # which stand on lines of their own
    *("p", "div", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("table", "tr", "blockquote", "pre", "hr"),
}


class _HtmlText(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pieces: list[str] = []
        self.in_button = False

    def handle_data(self, data: str) -> None:
        if not self.in_button:  # such as "Copy code"
            self.pieces.append(data)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.in_button = tag == "button"
        if tag == "br" or tag in BLOCK_TAGS:
            self.pieces.append("\n")
        elif tag in ("td", "th"):
            self.pieces.append(" ")
        elif tag == "emoji":  # of Teams
            self.pieces.append(dict(attrs).get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        self.in_button = False
        if tag in BLOCK_TAGS:
            self.pieces.append("\n")


def html_text(source: str | None) -> str | None:
    """The words of a piece of HTML; None where it has none.

    >>> html_text("<p>Tea &amp; cake</p><p>at <b>four</b></p>")
    'Tea & cake\\nat four'
    """
    parser = _HtmlText()
    parser.feed(source or "")
    parser.close()
    lines = [line.strip() for line in html.unescape("".join(parser.pieces)).split("\n")]
    return "\n".join(line for line in lines if line) or None


def with_line_per_speaker(texts: list[str]) -> list[str]:
    """Texts of one line with a line for each that speaks in them; any others unchanged.

    Two names of one word speak in turn in all of them: one of the user's side, one of the bot's.

    >>> with_line_per_speaker(["User: Hi Bot: Ho | User: Tea?", "User: Why?"])
    ['User: Hi\\nBot: Ho\\nUser: Tea?', 'User: Why?']
    >>> with_line_per_speaker(["User: Is it Bot: or User: here?", "Where Bot: is"])
    ['User: Is it Bot: or User: here?', 'Where Bot: is']
    """
    names = set()
    n_starts = 0
    for text in texts:
        starts = [s for s in SIDE_START.finditer(text) if speaker_role(s["name"])]
        said = [start["name"] for start in starts]
        in_turn = all(a != b for a, b in zip(said, said[1:], strict=False))
        if "\n" in text or not starts or starts[0].start() or not in_turn:
            return texts
        names |= set(said)
        n_starts += len(said)
    roles = sorted(str(speaker_role(name)) for name in names)
    if roles != ["assistant", "user"] or n_starts == len(texts):
        return texts
    before_name = re.compile(
        rf"(?:\s?\|{{1,3}}|\s//?)?\s(?=(?:{'|'.join(map(re.escape, names))}):\s)"
    )
    return [before_name.sub("\n", text) for text in texts]


@cache
def names_a_time(name: str) -> bool:
    """Whether a field is called as one that holds a time.

    >>> names_a_time("originalarrivaltime"), names_a_time("update")
    (True, False)
    """
    return TIME_NAME.search(snake_case(name)) is not None


class Meanings(NamedTuple):
    """The fields of a message by what they mean, of each the first ones first."""

    time: tuple[str, ...]
    time_like: tuple[str, ...]
    written: tuple[str, ...]
    id: tuple[str, ...]
    parent: tuple[str, ...]
    role: tuple[str, ...]
    no_talk_flags: tuple[str, ...]
    talk_flags: tuple[str, ...]
    no_talk_values: tuple[str, ...]
    deleted_at: tuple[str, ...]
    may_be_no_talk: bool
    is_bot: tuple[str, ...]
    is_user: tuple[str, ...]
    turn: tuple[str, ...]
    model: tuple[str, ...]
    rating: dict[str, str]
    rating_by: dict[str, str]
    holds_ratings: bool


@lru_cache(maxsize=1000)
def meanings(names: tuple[str, ...]) -> Meanings:
    """What fields of these names mean."""

    def known(wanted: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in wanted if name in names)

    dimensions = {name: snake_case(name) for name in names}
    rating = {
        name: dimension
        for name, dimension in dimensions.items()
        if RATING_NAME.fullmatch(dimension) and not RATING_BY.fullmatch(dimension)
    }
    rating_by = {n: d for n, d in dimensions.items() if RATING_BY.fullmatch(d)}
    return Meanings(
        time=known(TIME),
        time_like=tuple(name for name in names if names_a_time(name)),
        written=tuple(n for n in names if dimensions[n] in TIME or names_a_time(n)),
        id=known(("id", "message_id", "utterance_id")),
        parent=known(PARENT),
        role=known(reversed(ROLE)),
        no_talk_flags=known(NO_TALK_FLAGS),
        talk_flags=known(TALK_FLAGS),
        no_talk_values=known(NO_TALK),
        deleted_at=known(DELETED_AT),
        may_be_no_talk=bool(
            known((*NO_TALK_FLAGS, *TALK_FLAGS, *NO_TALK, *DELETED_AT))
        ),
        is_bot=known(("is_bot", "isBot", "from_bot")),
        is_user=known(("is_user", "isUser", "isCreatedByUser", "is_human", "isHuman")),
        turn=known(TURN),
        model=known(MODEL),
        rating=rating,
        rating_by=rating_by,
        holds_ratings=bool(rating or rating_by or known(("ratings", "annotations"))),
    )


def time_of(fields: Mapping[str, Any]) -> datetime | None:
    """The time of a message: of a field that is called so, else of one that holds one."""
    named = meanings(tuple(fields))
    value = first_value(fields, named.time)
    if value is not None:
        return to_time(value)
    for name in named.time_like:
        time = to_time(fields[name])
        if time:
            return time
    return None


def written_time(fields: Mapping[str, Any]) -> str | None:
    """The time of a message as it stands there, where `to_time` does not read it."""
    for name in meanings(tuple(fields)).written:
        value = fields[name]
        is_time = is_time_name(name) or has_numeric_date(value)
        if isinstance(value, bool) or not isinstance(value, str | float | int):
            continue
        if is_time and str(value).strip():
            return None if to_time(value) else str(value)
    return None


@cache
def is_time_name(name: str) -> bool:
    """Whether a field is called as a time is."""
    return snake_case(name) in TIME


def role_of(
    speaker: str, fields: Mapping[str, Any], speaker_key: str = ""
) -> str | None:
    """The role of a speaker: what a field of a message says of it, else what its name tells."""
    named = meanings(tuple(fields))
    if named.may_be_no_talk and is_no_talk(fields, named):
        return "tool"
    role = speaker_role(speaker)
    for name in named.role:
        if isinstance(fields[name], str):
            role = speaker_role(fields[name]) or role
    is_bot = first_value(fields, named.is_bot, bool)
    is_user = first_value(fields, named.is_user, bool)
    if is_bot or is_user is False:
        role = "assistant"
    elif is_user or is_bot is False:
        role = "user"
    is_system = speaker.lower() in SYSTEM_PROMPT
    if speaker_key in ("role", "from", "type", "角色") and is_system:
        role = "system"
    return role


def is_no_talk(fields: Mapping[str, Any], named: Meanings) -> bool:
    """Whether a message is deleted, hidden from the other side, or none, such as a notice."""
    if any(is_true(fields[name]) for name in named.no_talk_flags):
        return True
    if any(str(fields[name]).lower() in ("false", "f") for name in named.talk_flags):
        return True
    if first_value(fields, named.deleted_at) is not None:
        return True
    return any(
        str(fields[name]).lower() in NO_TALK[name] for name in named.no_talk_values
    )


def is_true(flag: Any) -> bool:
    """Whether a flag is set, also in a table of texts.

    >>> is_true(True), is_true("TRUE"), is_true("1"), is_true("false"), is_true(None)
    (True, True, True, False, False)
    """
    return str(flag).strip().lower() in ("true", "t", "1", "1.0", "yes", "y")


def named_ratings(
    fields: Mapping[str, Any],
    names: Iterable[str] = ("ratings", "annotations", "scores"),
) -> dict[str, Any]:
    """Rating by dimension, for what stands below these names."""
    ratings = {}
    for name in names:
        if isinstance(fields.get(name), dict):
            ratings |= {snake_case(key): value for key, value in fields[name].items()}
    return ratings


def read_ratings(fields: Mapping[str, Any], rater: str | None = None) -> list[Rating]:
    """The ratings of a dialog or an utterance that are people's by their names.

    These are `rating`, `feedback` (no comment), `human_<name>` and what stands in `ratings` or
    `annotations`; a `score` is not, since models and metrics write one too.
    """
    ratings = []
    meaning = meanings(tuple(fields))
    if not meaning.holds_ratings:
        return ratings
    for name, text in meaning.rating_by.items():
        match = RATING_BY.fullmatch(text)
        if match["alone"] and to_number(fields[name]) is None:
            continue  # who rated, and not how
        rater_of_column = match["rater"] or match["alone"]
        ratings += ratings_in(fields[name], "rating", rater_of_column)
    values = {dimension: fields[name] for name, dimension in meaning.rating.items()}
    for name in ("ratings", "annotations"):
        if isinstance(fields.get(name), list):
            values.setdefault("rating", fields[name])
    values |= named_ratings(fields, ("ratings", "annotations"))
    for dimension, value in values.items():
        ratings += ratings_in(value, dimension.removeprefix("human_"), rater)
    return ratings


def ratings_in(value: Any, dimension: str, rater: str | None) -> list[Rating]:
    """The ratings that a value holds: one, a list of them, or a mapping that says who rated what.

    >>> ratings = ratings_in([{"annotator": "ann", "score": 4}, 2], "rating", rater=None)
    >>> [(rating.rater, rating.value) for rating in ratings]
    [('ann', 4), (None, 2)]
    """
    if value in (None, "") or (dimension.endswith("feedback") and is_comment(value)):
        return []
    if isinstance(value, dict):
        opinion = first_value(value, RATING_VALUES, str | int | float)
        if opinion is None:
            return []
        dimension = first_text(value, RATING_DIMENSIONS) or dimension
        return ratings_in(opinion, dimension, first_text(value, RATERS) or rater)
    if not isinstance(value, list):
        return [Rating(rater, dimension, value)]
    ratings = []
    for item in value:
        ratings += ratings_in(item, dimension, rater)
    return ratings


def is_comment(value: Any) -> bool:
    """Whether feedback is in words, and is no thumb, no stars and no number.

    "Good" is a comment: among others it stands for no scale.

    >>> is_comment("Good"), is_comment("Up"), is_comment("4/5"), is_comment("-1")
    (True, False, False, False)
    """
    if not isinstance(value, str):
        return False
    if without_tone(value) in GOOD_OR_BAD:
        return True
    is_number = re.fullmatch(r"[+-]?[\d.,/ ]+", value.strip()) is not None
    return not is_number and opinion_number(value) is None


def opinion_number(value: Any) -> float | None:
    """An opinion that is written as no number, as one: true and false, "4/5", stars, thumbs.

    >>> [opinion_number(value) for value in (True, "4/5", "80 %", "★★★☆☆", "thumbs_down")]
    [1.0, 4.0, 80.0, 3.0, 0.0]
    >>> opinion_number("3"), opinion_number("nice")
    (None, None)
    """
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    text = with_point(without_tone(value[:40]))
    if STARS.fullmatch(text):
        return float(len(re.findall("[★⭐]", text)))
    with_unit = NUMBER_WITH_UNIT.fullmatch(text)
    if with_unit:
        return float(with_unit["number"].replace(",", "."))
    for value_of_word, names in ((1.0, ("up", "good")), (0.0, ("down", "bad"))):
        if any(text in WORDS["ratings"][name].split() for name in names):
            return value_of_word
    return None


def with_point(text: str) -> str:
    """A number with a decimal point where it has a decimal comma; any other text unchanged.

    >>> with_point("4,5"), with_point("4, 5")
    ('4.5', '4, 5')
    """
    match = DECIMAL_COMMA.fullmatch(text)
    return f"{match[1]}.{match[2]}" if match else text


def is_word_of_opinion(value: Any) -> bool:
    """Whether an opinion is a word or a thumb that is one of two, such as "good" and "bad"."""
    return isinstance(value, str) and without_tone(value) in OPINION_WORDS


def without_tone(text: str) -> str:
    """A word or an emoji in lower case, without the color of a skin."""
    return re.sub("[\U0001f3fb-\U0001f3ff\ufe0f]", "", text).strip().lower()


def user(text: str | None, **fields: Any) -> Utterance:
    """What a user says."""
    return Utterance(speaker="user", role="user", text=text, **fields)


def assistant(text: str | None, speaker: str = "assistant", **fields: Any) -> Utterance:
    """What a bot says."""
    return Utterance(speaker=speaker, role="assistant", text=text, **fields)


def drop_placeholders(dialog: Dialog, record: Mapping[str, Any]) -> None:
    """Take away "<image>" and the like, which stand for files that a record names."""
    if not any(record.get(name) for name in MEDIA):
        return
    for utterance in dialog.utterances:
        utterance.text = PLACEHOLDER.sub("", utterance.text or "").strip()


def as_script(utterances: Iterable[Utterance]) -> list[Utterance]:
    """The same utterances as context only: a bot's reply among them is none to score."""
    scripted = []
    for utterance in utterances:
        if utterance.role in ("assistant", None):
            utterance = Utterance(
                speaker=f"{utterance.speaker}{IN_CONTEXT}",
                role=None,
                text=utterance.text,
                id=utterance.id,
                reply_to=utterance.reply_to,
            )
        scripted.append(utterance)
    return scripted


def never_earlier(utterances: list[Utterance]) -> list[Utterance]:
    """The utterances of a path, each at the time of the one before if a clock says it was earlier.

    What the user writes has the time of a device, what the bot answers that of a server.
    """
    latest = None
    for utterance in utterances:
        if utterance.time and latest and utterance.time < latest:
            utterance.time = latest
        latest = utterance.time or latest
    return utterances


def path_to_root(node: Any, parent_of: Mapping[Any, Any]) -> list[Any]:
    """A node of a tree and all above it, the root first; a circle ends it."""
    path = []
    while node is not None and node not in path[-1:] and len(path) <= len(parent_of):
        path.append(node)
        node = parent_of.get(node)
    return path[::-1]


def is_talk(utterance: Utterance) -> bool:
    """Whether an utterance has words and is of a person or a bot."""
    has_words = bool(utterance.text and utterance.text.strip())
    return has_words and utterance.role not in ("tool", "system")
