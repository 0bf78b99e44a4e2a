"""Dialogs in plain text: WhatsApp, IRC, subtitles, numbered lines, transcripts (`Name: text`)."""

import html
import re
from collections import Counter
from itertools import chain, groupby
from typing import NamedTuple

from lib.data.corpora import snake_case
from lib.data.dialogs import WORDS, Dialog, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat
from lib.data.log_assistants import without_marks
from lib.data.log_chats import DISCORD_NOTICE
from lib.data.log_messages import add_without_persona
from lib.data.log_parts import (
    DIALOG,
    MODEL,
    RATERS,
    SPEAKER_START,
    first_text,
    html_text,
    read_ratings,
    with_line_per_speaker,
)
from lib.data.log_tables import VERSION
from lib.data.log_times import to_time

DIALOG_WORDS = set(WORDS["fields"]["dialog_words"].split())
TRANSCRIPTS = WORDS["fields"]["transcript"].split()
LINE_OF_HTML = re.compile(r"<br ?/?>|</(p|div|li)>", re.I)
TITLE = r"(dialog(ue)?|conversation|chat|session)\W*\d+\W*"
TURN_TITLE = re.compile(
    r"[-=*_~#>\[( ]{0,9}Turn[ #]{1,2}(?P<number>\d{1,4})[-=*_~#\]):. ]{0,9}", re.I
)
MAX_WORDS_OF_ROLE = 3
# A person who is neither the user nor the bot.
STAFF = re.compile(r"(?:human|live)[ _]agent(?: [^\W_]{1,20})?", re.I)
NUMBERED_NAME = re.compile(r"(?P<name>[^\W\d_]{1,20})[ _#]?(?P<number>\d{1,3})")
FRAMED = r"(?P<frame>[-=*_~#]{2,}) ?[^\n]{1,60}? ?(?P=frame)"  # == Session 2 ==
RULE = re.compile(rf"\s*([-=*_~#]{{3,}}|#+ .*|{TITLE}|{FRAMED})\s*$", re.I)
LOG_LEVEL = re.compile(r"[A-Z_]{2,12}|[a-z.]{2,20}")  # before a colon: no name
STAMP = re.compile(r"[\[(]?(\d{4}-\d\d-\d\d[ T])?\d\d:\d\d")
EXCHANGE = re.compile(
    r"(?:(?P<number>\d+) |text:)(?P<user>[^\t]*)\t?(?:(?:eval_)?labels:)?(?P<bot>[^\t]*).*"
)


WHATSAPP = re.compile(  # in Vietnamese the time comes first
    r"[\u200e\u200f]?\[?\u200f?(?:(?P<early>\d{1,2}:\d{2}(?::\d{2})?), )?"
    r"(?P<date>\d{1,4}\u200f?[./-] ?\d{1,2}\u200f?[./-] ?\d{1,4})(?: BE)?"
    r"(?(early)|(?:[.,،]| г\.,| kl\.?| klo| à| às| om)? "
    r"(?P<before>[上下]午|凌晨|中午|晚上|午[前後]|오[전후])? ?"
    r"(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)"
    r"(?:\s?(?P<half>[apπμ]\.?\s?[mμ]\.?|[صم]|ق\.ظ\.?|ب\.ظ\.?))?)(?:\]| [-–]) ",
    re.I,
)
MORNING = ("上午", "凌晨", "午前", "오전")
AFTERNOON = ("p", "μ", "م", "ب")  # the first letter of a half of the day
DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
WHATSAPP_WORDS = WORDS["whatsapp"]
EDITED = re.compile(rf"\u200e?<(?:{'|'.join(WHATSAPP_WORDS['edited'])})\.?>", re.I)
FILE_NAME = r"[^\n]{1,200}\.\w{2,5}"
ATTACHED_FILE = (
    rf"{FILE_NAME} \((?:file attached|archivo adjunto|Datei angehängt|fichier joint"
    r"|arquivo anexado|ficheiro anexado|file allegato|bestand bijgevoegd|załączono plik"
    r"|soubor byl přiložen|файл добавлен|dosya ekli|file terlampir)\)"
)
ATTACHED = re.compile(  # above the words that were sent with a file
    rf"\A\u200e?(?:{ATTACHED_FILE}|<[^<>=\n]{{1,40}} [^<>=\n]{{1,40}}>)\n"
)
NO_WORDS = re.compile(  # of WhatsApp, where a message holds no words
    r"<[^<>\n]{3,80}>|null|!?\[[^\]\n]{0,80}\]\([^()\s]{1,200}\)"
    rf"|{ATTACHED_FILE}"
    rf"|(?:{'|'.join(WHATSAPP_WORDS['no_words'])})\.?"
    rf"|(?:{'|'.join(WHATSAPP_WORDS['calls'])}).*"
    r"|[^\n:]{1,40}: https://maps\.google\.com/\?q=\S+|live location shared"
    r"|[^\n]{1,200}: https://foursquare\.com/v/\S+"
    r"|(?:[^\n]{1,100}\n){1,3}https://foursquare\.com/v/\S+",
    re.I,
)
# Of Android, in any language: a question, and the choices with their votes.
POLL = re.compile(
    r"[A-ZÀ-Þ]{3,20} ?:\n[^\n]{0,300}"
    r"(?:\n[A-ZÀ-Þ]{3,20} ?: [^\n]{1,200} \(\d{1,4} [^()\n]{1,20}\))+"
)
# Behind the words that were sent with a file, as iOS marks it in every language.
SENT_WITH = re.compile(r"(?:[ \n]\u200e[^\u200e\n]{1,80}){1,3}\Z")
NAME_OF_FILE = re.compile(rf"{FILE_NAME}(?: •)?")  # where no words were sent with it
SIGNAL_ASIDES = re.compile(  # in sigexport's Markdown: what is answered, and reactions
    r"\A\s*\n\n(?:>[^\n]*\n)+|\n\(- [^\n]{1,80} -\)\s*\Z"
)
NOTICE = re.compile(r" (?:changed|added|created|removed|left|joined|pinned|turned on) ")
KAKAO = re.compile(
    r"\[(?P<name>[^\]\n]{1,40})\] \[(?:오전 |오후 )?\d\d?:\d\d(?: [AP]M)?\] (?P<text>.*)"
)
KAKAO_NOTICE = re.compile(
    r"-{5,}|.{1,60}님[이을].{0,60}(?:들어왔|나갔|초대했|내보냈)습니다"
)
NO_KAKAO_WORDS = re.compile(
    r"(?:사진|동영상|이모티콘|음성메시지|지도)(?: \d+장)?|삭제된 메시지입니다\.?|파일: .{1,200}"
    r"|Photos?|Video|Emoticons?|This message was deleted\.?|(?:보이스톡|페이스톡|그룹콜).{0,30}"
)
CHAT_LINES = [  # a time, a name and words, as clients for chats write them
    re.compile(  # IRC and games
        r"(?:\[?(?:\d{4}-\d\d-\d\d[ T]|[A-Z][a-z]{2} \d\d )?\d\d:\d\d(?::\d\d)?\]?\s+)?"
        r"(?:\[[^\]<]{1,40}\]:? )?<[@+%~& ]?(?P<name>[^\s<>]{1,30})>[ \t](?P<text>.*)"
    ),
    re.compile(  # WeeChat, LINE and recordings of Zoom, which write a colon behind the name
        r"(?:\d{4}-\d\d-\d\d |[上下]午|午[前後]|오[전후] ?)?\d\d?:\d\d(?::\d\d)?(?: ?[AP]M)?\t"
        r"[@+%~&]?(?P<name>[^\t]{1,40}?):?\t(?P<text>.*)"
    ),
    KAKAO,
    re.compile(  # Zoom
        r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\s+From\s+"
        r"(?P<name>[^\n:]{1,40}?)(?: to [^\n:]{1,60}| ):(?P<text>.*)"
    ),
]
IRC_STYLE = re.compile(  # colors, bold and the like
    "\x03(?:\\d{1,2}(?:,\\d{1,2})?)?|[\x02\x0f\x11\x16\x1d\x1e\x1f]"
)
IRC_NOTICE = re.compile(  # as irssi and ZNC write it
    r"\[?\d\d:\d\d(?::\d\d)?\]? -(?P<name>[^\s:(]{1,30}?)(?:[:(][^\s]{1,80}?)?- (?P<text>.*)"
)
ZOOM_ASIDES = re.compile(  # what is answered, and reactions
    r"\AReplying to \"[^\n]{0,200}\"\s*\n\s*"
    r"|\A(?:Reacted to \"[^\n]{0,200}\" with|Removed a) [^\n]{1,100}\Z"
)
CLIENT_LINE = re.compile(
    r"\t|(?:\[?\d\d:\d\d(?::\d\d)?\]? )?(?:-!-|---|\*{3,4}|-->|<--) "
    r"|[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [*<>-]+\t"  # HexChat
)
NO_SPEAKER = re.compile(r"[-<>=!* ]*")  # before what a client says itself
NO_CHAT_WORDS = re.compile(
    r"\[(?:Stickers?|Photos?|Videos?|Files?|Voice message|Album|Location|Contact"
    r"|スタンプ|写真|動画|ファイル|ボイスメッセージ|アルバム|位置情報|連絡先"
    r"|貼圖|照片|影片|檔案|語音訊息|스티커|사진|동영상|파일)\]"
    r"|\[(?:Notes?|Polls?|ノート|投票|イベント|記事本|投票活動|노트|투표)\S{0,6}\][^\n]{0,100}"
    r"|☎ ?[^\n]{1,40}"  # calls, in any language of LINE
    r"|(?:.{1,40}が)?メッセージの送信を取り消しました|.{0,40}已收回訊息"
    r"|(?:.{1,40} )?unsent a message\.?",
    re.I,
)
DISCORD = re.compile(
    r"\[(?P<time>\d[\d:./APM \u202f-]{9,29}|\d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d(?: [AP]M)?)\]"
    r" (?P<name>.{1,80}?)(?: \(pinned\))?"
)
DISCORD_ASIDES = ("{Attachments}", "{Embed}", "{Stickers}", "{Reactions}")
HEADING = re.compile(  # perhaps with a picture before the name
    r"(?:#{1,6} +|_?\*\*|__)(?:\*\*)?(?:[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f\u200d]{1,8} ?)?"
    r"(?P<name>[^\W\d][^:*_#\n]{0,39}?)(?::?\*\*_?|:?__)?:?\s*"
)
# A heading may have a time behind the name, which one of these marks stands before.
TIME_OF_HEADING = re.compile(r"\d{4}-\d\d-\d\d|\d\d?:\d\d")
BEFORE_TIME = re.compile(r" ?[(\[·|—–-]")
OF_SPEAKER = re.compile(r"\w+(?: (?:said|response|prompt|message))?", re.I)  # a name
TIME_OF_HEADED = re.compile(  # above what is said
    r"\A<time [^>\n]{1,200}>[^<\n]{1,40}</time>"
    r"|\A(?:message time: )?\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},? \d{1,2}:\d\d(?::\d\d)?"
    r"(?: [AP]M)?(?=\n)"
)
ASIDES_OF_HEADED = re.compile(  # reasoning, tools and files in Markdown
    r"<details>\s*<summary>(?:Thought for|Used \d|Read \*\*|🛠️) ?[^<\n]{0,200}</summary>"
    r"(?:(?!<details>).)*?</details>|^- 📎 [^\n]{1,200}$"
    r"|^> \*Response time: [^\n]{1,40}\*\n(?:> <br>\*Model: [^\n]{1,80}\*)?|^✔️ [^\n]{1,200}$"
    r"|^<a name=\"request-\d{1,4}\"></a>\n## Request \d[^\n]{0,80}$",
    re.S | re.M,
)
FOOTER = re.compile(r"\n\s*---+\s*(?:\nPowered by .*)?$")  # of Markdown
NAMED_TIME = re.compile(
    r"(?P<name>[^\W\d][^\t\n:]{0,39}?)[ \t]{1,4}[\[(]?\d{1,2}:\d\d(?::\d\d)?[\])]?\s*"
)
IMESSAGE_TIME = re.compile(
    r"(?P<time>[A-Z][a-z]{2} \d{2}, \d{4} {1,2}\d{1,2}:\d{2}:\d{2} [AP]M)"
    r"(?: \([^()\n]{1,80}\))?"  # when it was read
)
IMESSAGE_ASIDES = ("Tapbacks:", "This message responded to an earlier message.")
IMESSAGE_NO_WORDS = re.compile(  # lines of effects and files
    r"Sent with [A-Z]\w+(?: [A-Z]\w+)?|(?:~?/|[A-Z]:\\|attachments/).{1,300}\.\w{2,5}"
    r"|(?:You|.{1,40}) unsent (?:this|a) message.*"
)
IMESSAGE_EDIT = re.compile(r"Edited .{1,60} later: ")
CUE = re.compile(r"(?:\d+:)?\d\d:\d\d[.,]\d{3} --> .*")
SOUND_CUE = re.compile(r"\([^()\n]{1,60}\)")  # of subtitles, as "(laughs)"
SOUND = re.compile(r" ?\[[^\W\d][^\]\n\d]{1,30}\]| ?♪[^♪\n]{0,200}♪")  # of subtitles
CUE_STYLE = re.compile(r"</?(?:b|i|u|font|c)(?:[. ][^<>\n]{0,80})?>", re.I)
IN_BRACKETS = re.compile(r"(?:- ?|>> ?)?\[(?P<name>[^\W\d][^\]\n:]{0,30})\] (?=\S)")
VOICE = re.compile(r"<v(?:\.\S+)? (?P<name>[^>]{1,60})>")


class Line(NamedTuple):
    """A line of a transcript: who begins to speak in it, if anybody, and the words."""

    speaker: str | None
    words: str


def is_exchange_lines(text: str) -> bool:
    """Whether every line has what the user and what the bot says, in ParlAI's way."""
    lines = [line for line in text.split("\n") if line]
    return "\t" in text and all(map(EXCHANGE.match, lines))


def read_exchange_lines(text: str, source) -> list[Dialog]:
    """Lines of the user's words, a tab, and the bot's; texts after "|" are further references.

    Persona-Chat and older ParlAI number them, a new dialog at 1; ParlAI's `text:` marks the last.
    """
    exchanges = [EXCHANGE.match(line) for line in text.split("\n") if line]
    dialogs: list[Dialog] = []
    at_end = True
    for exchange in exchanges:
        if at_end or exchange["number"] == "1":
            dialogs.append(Dialog(id="", utterances=[]))
        at_end = "episode_done:True" in exchange[0]
        user = exchange["user"].replace("\\n", "\n")
        reply, *references = exchange["bot"].replace("\\n", "\n").split("|")
        if user:
            add_without_persona(dialogs[-1], Utterance("user", "user", user))
        if reply:
            utterance = Utterance("bot", "assistant", reply, references=references)
            add_without_persona(dialogs[-1], utterance)
    return dialogs


def read_transcript(text: str, source) -> list[Dialog]:
    """Lines such as `Name: text`; further lines belong to the one above."""
    lines = speaker_lines(text, source)
    turns = sum(line.speaker is not None for line in lines)
    names = {line.speaker for line in lines} - {None}
    filled = sum(bool(line.words.strip()) or line.speaker is not None for line in lines)
    with_role = any(speaker_role(name) in ("user", "assistant") for name in names)
    if len(names) < 2 or (turns < filled / 2 and not with_role):
        return []
    reason = "what separates the dialogs: rules, blank (lines) or none"
    splits = {
        "rules": split_lines(lines, is_rule),
        "blank": split_lines(lines, is_empty),
    }
    guess = "none"
    for split, blocks in reversed(splits.items()):
        starts = all(begins_with_speaker(block) for block in blocks[1:])
        if 1 < len(blocks) < turns / 2 + 1 and starts:
            guess = split
    split = source.report.decide("split", guess, reason)
    while lines and (is_rule(lines[-1]) or is_empty(lines[-1])):
        lines.pop()  # a rule at the end is no word of the last speaker
    roles = transcript_roles(names)
    return [spoken_dialog(block, roles, source) for block in splits.get(split, [lines])]


def read_transcript_cells(rows: list[dict], source) -> list[Dialog]:
    """Records with a dialog in one text, whose lines begin with the names of the speakers."""
    column = transcript_column(rows)
    with_talk = []
    cells = []
    for number, row in enumerate(rows, start=1):
        cell = row.get(column)
        if isinstance(cell, str) and cell.strip():
            with_talk.append((number, row))
            cells.append(lines_of_html(cell).strip())
    n_empty = len(rows) - len(cells)
    cells = with_line_per_speaker(cells)
    dialogs = []
    for (number, row), cell in zip(with_talk, cells, strict=True):
        lines = speaker_lines(re.sub(r"\r|<\|\w{1,30}\|>", "", cell), source)
        speakers = {line.speaker for line in lines} - {None}
        if len(speakers) < 2 or lines[0].speaker is None:
            return []
        dialog = spoken_dialog(lines, transcript_roles(speakers), source)
        about = {snake_case(n): value for n, value in row.items() if n != column}
        dialog.id = first_text(about, ["id", *DIALOG]) or str(number)
        dialog.system = first_text(about, [*VERSION, *MODEL])
        dialog.ratings = read_ratings(about, first_text(about, RATERS))
        dialogs.append(dialog)
    if dialogs:
        source.exclude("dialogs", "have no messages", n_empty)
    return dialogs


def lines_of_html(cell: str) -> str:
    """A transcript whose lines HTML parts, as those of a page, as lines; any other unchanged.

    >>> lines_of_html("<b>User:</b> Hi<br>Bot: Tea &amp; cake"), lines_of_html("User: <br>?")
    ('User: Hi\\nBot: Tea & cake', 'User: <br>?')
    """
    if "\n" in cell.strip() or not LINE_OF_HTML.search(cell):
        return cell
    words = html_text(cell) or ""
    starts = [SPEAKER_START.match(line[:120]) for line in words.split("\n")]
    return words if starts[0] and sum(map(bool, starts)) > 1 else cell


def transcript_column(rows: list[dict]) -> str | None:
    """The column with whole dialogs: by its name, else the only one whose cells are transcripts.

    Such a cell begins with "Name:", and its names are those of both sides.
    """
    columns = list(rows[0] if rows else {})
    names = {snake_case(name): name for name in columns}
    named = [names[name] for name in TRANSCRIPTS if name in names]
    if named:
        return named[0]
    found = [
        name
        for name in columns
        if are_transcripts([row.get(name) for row in rows[:50]])
    ]
    return found[0] if len(found) == 1 else None


def are_transcripts(cells: list) -> bool:
    """Whether each text in these cells is of lines that a user and a bot begin to speak."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    for text in texts:
        starts = [SPEAKER_START.match(line[:120]) for line in text.strip().split("\n")]
        roles = {speaker_role(start["name"]) for start in starts if start}
        if not starts[0] or not {"user", "assistant"} <= roles:
            return False
    return bool(texts)


def transcript_roles(names: set[str]) -> dict[str, str | None]:
    """The role of each name; "System" is a prompt where another name is a bot's."""
    return with_prompts({name: speaker_role(name) for name in names})


def with_prompts(roles: dict[str, str | None]) -> dict[str, str | None]:
    """Roles in which "System" is a prompt, where another name is a bot's."""
    if list(roles.values()).count("assistant") < 2:
        return roles
    return roles | {name: "system" for name in roles if name.lower() == "system"}


def speaker_lines(text: str, source) -> list[Line]:
    """The lines of a transcript, with who begins to speak in them.

    Speakers are those of the option `speakers`, else those that `find_speakers` is sure of.
    """
    lines = text.strip().split("\n")
    if lines[0].startswith("```") and lines[-1].strip() == "```":
        lines = lines[1:-1]  # the whole talk is in a block of code
    lines = without_turn_titles(lines, name_in)
    in_code = within_code(lines, name_in)
    found = [
        None if inside else name_in(line)
        for line, inside in zip(lines, in_code, strict=True)
    ]
    names = [name for name in found if name]
    if are_numbered(names):
        found = [name and NUMBERED_NAME.fullmatch(name)["name"] for name in found]
        names = [name for name in found if name]
    matches = [SPEAKER_START.match(line[:120]) for line in lines]
    speakers = named_speakers(source) or find_speakers(names)
    tell_words_within(set(names) - speakers, speakers, source)
    parsed = []
    stamped = []
    with_time = []  # names that may be speakers too
    for line, match, name in zip(lines, matches, found, strict=True):
        has_time = STAMP.match(line) is not None
        if name in speakers:
            parsed.append(Line(name, line[match.end() :]))
            stamped.append(has_time)
        else:
            parsed.append(Line(None, line))
            if name and has_time and not LOG_LEVEL.fullmatch(name):
                with_time.append(name)
    if not stamped or not all(stamped):
        return with_rules(parsed, found)
    if with_time and not source.report.options.speakers:
        listed = ", ".join(sorted({*speakers, *with_time})[:8])
        problem = (
            f"has lines with a time and a name that may not be a speaker: {listed}"
        )
        raise UnknownFormat(problem, fix="name those that speak: SPEAKERS=Ann,Bob")
    # Where each speaker's line begins with a time, another line with one is of nobody.
    kept = [line for line in parsed if line.speaker or not STAMP.match(line.words)]
    source.exclude("utterances", "are log lines of no speaker", len(parsed) - len(kept))
    return kept


def named_speakers(source) -> set[str]:
    """The names that the option `speakers` gives; none without it."""
    named = source.report.options.speakers
    return {name.strip() for name in named.split(",")} if named else set()


def tell_words_within(words: set[str], speakers: set[str], source) -> None:
    """Say which words before a colon were taken for words within what the speakers say."""
    if words and speakers:
        listed = ", ".join(sorted(words)[:5])
        reason = f"words with a colon within what they say: {listed}"
        source.report.decide("speakers", ",".join(sorted(speakers)[:8]), reason)


def name_in(line: str) -> str | None:
    """The name before a colon in the beginning of a line, which is no title of a dialog."""
    start = SPEAKER_START.match(line[:120])
    is_title = re.fullmatch(TITLE, line[:120], re.I)
    return start["name"] if start and not is_title else None


def without_turn_titles(lines: list[str], name_of) -> list[str]:
    """The lines without those that count the turns, such as "Turn 2", above who speaks.

    Where they count from the beginning again, a rule parts the dialogs.
    """
    kept: list[str] = []
    before = (0, None)  # the number, and who speaks below it
    for line, below in zip(lines, filled_below(lines), strict=True):
        title = TURN_TITLE.fullmatch(line[:60].rstrip())
        if not title or not name_of(below):
            kept.append(line)
            continue
        while kept and not kept[-1].strip():
            kept.pop()
        turn = (int(title["number"]), name_of(below))
        if turn[0] < before[0] or turn == before:
            kept.append("---")
        before = turn
    return kept


def filled_below(lines: list[str]) -> list[str]:
    """For each line the first one below it that is not empty; "" where none is."""
    found = []
    below = ""
    for line in reversed(lines):
        found.append(below)
        below = line if line.strip() else below
    return found[::-1]


def with_rules(lines: list[Line], names: list[str | None]) -> list[Line]:
    """The lines with a rule for the head of each dialog, such as "Session: tea" above who speaks.

    A head has the same names before colons as that of the first dialog, which names the dialog.
    """
    first = next((n for n, line in enumerate(lines) if line.speaker), 0)
    head = [name for name in names[:first] if name]
    if not head or DIALOG_WORDS.isdisjoint(snake_case(head[0]).split("_")):
        return lines
    kept = lines[:first]
    below: list[Line] = []  # a head, perhaps
    for line, name in zip(lines[first:], names[first:], strict=True):
        goes_on = below and (name in head or is_empty(line))
        if line.speaker is None and (name == head[0] or goes_on):
            below.append(line)
            continue
        if below and line.speaker:
            below = [Line(None, "---")]
        kept += [*below, line]
        below = []
    return [*kept, *below]


def within_code(lines: list[str], name_of) -> list[bool]:
    """Whether each line is in a block of code within what somebody says.

    None is where a block has no end: then no one can tell what is in it.
    """
    flags = []
    inside = spoken = False
    for line in lines:
        flags.append(inside)
        spoken = spoken or name_of(line) is not None
        if spoken and line.count("```") % 2:
            if inside and line.strip() != "```":
                return [False] * len(lines)
            inside = not inside
    return [False] * len(lines) if inside else flags


def are_numbered(names: list[str]) -> bool:
    """Whether two speakers have the number of the turn in their names, as "User 1" and "Bot 1".

    >>> are_numbered(["User 1", "Bot 1", "User 2", "Bot 2"]), are_numbered(["User 1", "Bot 1"])
    (True, False)
    """
    matches = [NUMBERED_NAME.fullmatch(name) for name in names]
    if None in matches or len(names) < 4:
        return False
    numbers = [int(match["number"]) for match in matches]
    speakers = [match["name"] for match in matches]
    in_turn = speakers[::2] == speakers[:1] * len(speakers[::2])
    in_turn = in_turn and speakers[1::2] == speakers[1:2] * len(speakers[1::2])
    in_turn = in_turn and speakers[0] != speakers[1]
    return in_turn and numbers == [number // 2 + 1 for number in range(len(names))]


def is_role(name: str) -> bool:
    """Whether a name tells a side, and is no sentence with such a word.

    >>> is_role("Support bot"), is_role("My guest today is not a person")
    (True, False)
    """
    return len(name.split()) <= MAX_WORDS_OF_ROLE and speaker_role(name) is not None


def find_speakers(names: list[str]) -> set[str]:
    """The speakers among the names that begin lines.

    Sure are those of roles, two names, and several that all talk with the same one. A name that
    stands once is a word within what somebody says, where others stand more often.

    Raises:
        UnknownFormat: for three or more of which some may be words, such as "Address:".
    """
    with_role = {name for name in names if is_role(name)}
    if {"user", "assistant"} <= {speaker_role(name) for name in with_role}:
        return with_role | {name for name in names if STAFF.fullmatch(name)}
    counts = Counter(names)
    speakers = {name for name in counts if counts[name] > 1 or name in with_role}
    if len(speakers) < 2:
        speakers = set(counts)
    if len(speakers) < 3:
        return speakers
    turns = [name for name in names if name in speakers]
    partner = Counter(turns).most_common(1)[0][0]
    for name, following in zip(turns, turns[1:], strict=False):
        if partner not in (name, following):
            raise doubtful(speakers)
    return speakers


def doubtful(names: set[str]) -> UnknownFormat:
    """What to say of names of which some may be words with a colon."""
    listed = ", ".join(sorted(names)[:8])
    problem = f"has names of which some may stand within what others say: {listed}"
    return UnknownFormat(problem, fix="name those that speak: SPEAKERS=Ann,Bob")


def is_rule(line: Line) -> bool:
    """Whether a line is a rule, a heading or the title of a dialog."""
    return line.speaker is None and RULE.match(line.words[:120]) is not None


def is_empty(line: Line) -> bool:
    """Whether nothing stands in a line."""
    return line.speaker is None and not line.words.strip()


def split_lines(lines: list[Line], is_separator) -> list[list[Line]]:
    """The lines between the separators."""
    groups = groupby(lines, is_separator)
    return [list(block) for separator, block in groups if not separator]


def begins_with_speaker(block: list[Line]) -> bool:
    """Whether somebody speaks first in a block: else it stands within what somebody says."""
    for line in block:
        if not is_rule(line) and not is_empty(line):
            return line.speaker is not None
    return True


def spoken_dialog(block: list[Line], roles: dict[str, str | None], source) -> Dialog:
    """The utterances of a block of lines."""
    dialog = Dialog(id="", utterances=[])
    for line in block:
        if line.speaker:
            dialog.utterances.append(
                Utterance(line.speaker, roles[line.speaker], line.words)
            )
        elif dialog.utterances:
            dialog.utterances[-1].text += f"\n{line.words}"
        elif line.words.strip():
            source.exclude("utterances", "are lines before the first speaker")
    for utterance in dialog.utterances:
        utterance.text = utterance.text.strip()
    return dialog


def is_whatsapp(text: str) -> bool:
    """Whether a text begins as an export of WhatsApp does, perhaps below its title."""
    title, _, rest = text.lstrip()[:200].partition("\n")
    start = rest if "WhatsApp" in title and not WHATSAPP.match(title[:60]) else title
    return WHATSAPP.match(start.lstrip()[:60]) is not None


def read_whatsapp(text: str, source) -> list[Dialog]:
    """WhatsApp: one chat; notices, media, deleted messages and marks of edits are no talk."""
    entries = []
    for line in text.split("\n"):
        start = WHATSAPP.match(line[:60])
        if start:
            entries.append([start, line[start.end() :]])
        elif entries:
            entries[-1][1] += f"\n{line}"
    dialog = Dialog("", [])
    for start, words in entries:
        name, colon, words = words.partition(": ")
        if not colon or len(name) > 60 or NOTICE.search(name) or is_cut(name):
            source.exclude("utterances", "are notices")
            continue
        name = DIRECTION_MARKS.sub("", name).lstrip("~ \u00a0\u202f")
        written = written_by_whatsapp(start)
        dialog.utterances.append(
            Utterance(name, speaker_role(name), words, written=written)
        )
        clean_whatsapp(dialog.utterances[-1], source)
    return [dialog] if len({u.speaker for u in dialog.utterances}) > 1 else []


def is_cut(name: str) -> bool:
    """Whether this is no name, but a notice up to a colon: with a quotation without its end.

    >>> is_cut("Mira renamed the group “Tea"), is_cut("Mira “Mi” Lind")
    (True, False)
    """
    in_quotes = any(name.rfind(mark) > name.rfind("”") for mark in "“„")
    return in_quotes or "\n" in name


def written_by_whatsapp(start: re.Match) -> str:
    """The time that a line of WhatsApp begins with, its half of the day in English."""
    half = ""
    if start["half"]:
        half = " pm" if start["half"].lower().startswith(AFTERNOON) else " am"
    if start["before"]:
        half = " am" if start["before"] in MORNING else " pm"
    date = re.sub("[ \u200f]", "", start["date"])
    return f"{date} {start['early'] or start['time']}{half}"


def clean_whatsapp(utterance: Utterance, source) -> None:
    """Take away marks of direction and edits; a message of media or a notice has no words."""
    words = utterance.text
    if EDITED.search(words):
        source.count_note("were edited")
        words = EDITED.sub("", words).strip(" ")
    words, n_files = ATTACHED.subn("", words, count=1)
    # As iOS marks what it writes itself, in languages from right to left with another mark.
    is_notice = words.startswith(("\u200e", "\u200f"))
    words, n_sent = SENT_WITH.subn("", words.rstrip())
    words = DIRECTION_MARKS.sub("", words)
    words = SIGNAL_ASIDES.sub("", words).strip()
    utterance.text = words
    if (n_files or n_sent) and NAME_OF_FILE.fullmatch(words):
        is_notice = True
    if is_notice or NO_WORDS.fullmatch(words) or POLL.fullmatch(words):
        utterance.text = None


def is_discord(text: str) -> bool:
    """Whether a text begins as DiscordChatExporter's does."""
    return re.match(r"={20,}\nGuild: .*\nChannel: ", text[:500]) is not None


def read_discord_text(text: str, source) -> list[Dialog]:
    """DiscordChatExporter as text: time and name above what was said; files and reactions below."""
    dialog = Dialog(source.stem, [])
    is_aside = True  # the header
    for line in text.split("\n"):
        match = DISCORD.fullmatch(line[:120])
        if match:
            name = match["name"]
            written = match["time"]
            utterance = Utterance(name, speaker_role(name), "", to_time(written))
            utterance.written = None if utterance.time else written
            dialog.utterances.append(utterance)
            is_aside = False
        elif line.startswith(("=" * 20, *DISCORD_ASIDES)):
            is_aside = True
        elif not is_aside:
            dialog.utterances[-1].text += f"\n{line}"
    for utterance in dialog.utterances:
        words = utterance.text.strip()
        utterance.text = words if not DISCORD_NOTICE.fullmatch(words) else None
        utterance.text = utterance.text or None
    return [dialog]


def has_named_times(text: str) -> bool:
    """Whether lines with a name and a time stand above what is said, the first of them first."""
    lines = [line for line in text.split("\n") if line.strip()]
    headings = [bool(NAMED_TIME.fullmatch(line[:80])) for line in lines[:200]]
    return (
        any(headings[:3]) and sum(headings) > 1 and sum(headings) >= len(headings) / 6
    )


def read_named_times(text: str, source) -> list[Dialog]:
    """A name and a time in a line, and what was said below it, as programs that listen write it."""
    dialog = Dialog("", [])
    for line in text.split("\n"):
        match = NAMED_TIME.fullmatch(line[:80])
        if match:
            name = match["name"].strip()
            dialog.utterances.append(Utterance(name, speaker_role(name), ""))
        elif line.startswith("Transcribed by "):
            source.exclude("utterances", "are notices")
        elif dialog.utterances:
            dialog.utterances[-1].text += f"\n{line}"
        elif line.strip():
            source.exclude("utterances", "are lines before the first speaker")
    for utterance in dialog.utterances:
        utterance.text = utterance.text.strip()
    return [dialog]


def is_imessage(text: str) -> bool:
    """Whether a text begins as an export of iMessage does: a time in its first line."""
    return IMESSAGE_TIME.match(text[:120]) is not None


def read_imessage(text: str, source) -> list[Dialog]:
    """imessage-exporter: a time, below it who wrote, below that the words; then an empty line.

    Below the words may stand edits, of which the last counts, effects and reactions. A time with
    words beside it is a notice. A reply stands below what it answers, too, indented: it is left
    out there.
    """
    dialog = Dialog(source.stem, [])
    lines = text.split("\n")
    starts = [n for n, line in enumerate(lines) if IMESSAGE_TIME.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        stamp = IMESSAGE_TIME.fullmatch(lines[start].rstrip())
        if stamp is None:
            source.exclude("utterances", "are notices")
            continue
        words = []
        for line in lines[start + 2 : end]:
            if line in IMESSAGE_ASIDES or IMESSAGE_TIME.match(line.strip()):
                break
            edit = IMESSAGE_EDIT.match(line)
            if edit:
                source.count_note("were edited")
                words = []
                line = line[edit.end() :]
            if not IMESSAGE_NO_WORDS.fullmatch(line):
                words.append(line)
        name = lines[start + 1].strip()
        words = "\n".join(words).strip() or None
        time = to_time(stamp["time"])
        dialog.utterances.append(Utterance(name, speaker_role(name), words, time=time))
    return [dialog]


def chat_line(line: str) -> re.Match | None:
    """The name and the words in a line of a chat."""
    return next(filter(None, (pattern.match(line) for pattern in CHAT_LINES)), None)


def is_irc(text: str) -> bool:
    """Whether most of the first lines are those of an IRC client or the like.

    Not counted are what a client says itself, and what goes on from the line above, after a tab.
    """
    lines = [line for line in text.split("\n", 50)[:50] if line.strip()]
    lines = [line for line in lines if not CLIENT_LINE.match(line)]
    return len(lines) > 1 and sum(map(bool, map(chat_line, lines))) > len(lines) / 2


def read_irc(text: str, source) -> list[Dialog]:
    """IRC: `<nick> text`, or other clients; joins, parts and actions are no talk."""
    dialog = Dialog("", [])
    in_quotes = False  # LINE writes words of several lines in quotation marks
    in_kakao = False  # which marks no lines that go on from the one above
    text = IRC_STYLE.sub("", text)
    names = speakers_in_brackets(text)
    for line in text.split("\n"):
        match = chat_line(line) or notice_of(line, names)
        in_kakao = match.re is KAKAO if match else in_kakao
        if match and not NO_SPEAKER.fullmatch(match["name"]):
            name = match["name"].strip()
            words = match["text"].strip()
            in_quotes = words.startswith('"') and words.count('"') % 2 == 1
            no_words = in_kakao and NO_KAKAO_WORDS.fullmatch(words)
            if no_words or NO_CHAT_WORDS.fullmatch(words):
                words = None
            dialog.utterances.append(Utterance(name, speaker_role(name), words))
        elif in_quotes and not match:
            words = f"{dialog.utterances[-1].text}\n{line.rstrip()}"
            in_quotes = words.count('"') % 2 == 1
            if not in_quotes:
                words = words[1:-1].replace('""', '"')
            dialog.utterances[-1].text = words
        elif goes_on(line, in_kakao) and dialog.utterances and not match:
            before = dialog.utterances[-1].text
            dialog.utterances[-1].text = f"{before or ''}\n{line.strip()}".strip()
        elif line.strip():
            source.exclude("utterances", "are notices")
    for utterance in dialog.utterances:
        utterance.text = ZOOM_ASIDES.sub("", utterance.text or "") or None
    return [dialog]


def speakers_in_brackets(text: str) -> set[str]:
    """Who speaks in lines such as "<ada> Hi" of an IRC client."""
    matches = map(CHAT_LINES[0].match, text.split("\n"))
    return {match["name"] for match in matches if match}


def notice_of(line: str, names: set[str]) -> re.Match | None:
    """A notice on IRC of one who also speaks, as bots answer; not of a server or a service."""
    match = IRC_NOTICE.match(line)
    return match if match and match["name"] in names else None


def goes_on(line: str, in_kakao: bool) -> bool:
    """Whether a line without a speaker goes on from the one above, and is no notice."""
    if not in_kakao:
        return line.startswith("\t")
    return bool(line.strip()) and KAKAO_NOTICE.match(line) is None


def heading_names(text: str) -> set[str]:
    """The speakers among the headings of a text in Markdown; none where they are no speakers.

    Speakers are those of roles if both sides are, else two that recur, one of them a user.
    """
    lines = ASIDES_OF_HEADED.sub("", text).split("\n")
    in_code = within_code(lines, heading_name)
    lines = [line for line, inside in zip(lines, in_code, strict=True) if not inside]
    names = Counter(filter(None, map(heading_name, lines)))
    roles = {name: heading_role(name) for name in names}
    both = {name for name, role in roles.items() if role in ("user", "assistant")}
    certain = {name for name in both if OF_SPEAKER.fullmatch(name)}
    if {"user", "assistant"} <= {roles[name] for name in certain}:
        # Others that occur once, such as "User interface", are headings within what is said.
        often = min(names[name] for name in certain) / 2
        both = {name for name in both if name in certain or names[name] > max(1, often)}
    if {"user", "assistant"} <= set(roles.values()):
        return both | {
            name for name in names if re.match("(plugin|tool)\\b", name, re.I)
        }
    recurring = {name for name, count in names.items() if count > 1}
    if len(recurring) == 2 and recurring & both:
        return recurring
    return set()


def heading_name(line: str) -> str | None:
    """The name in a heading of a text in Markdown; None for any other line.

    >>> heading_name("## 🤖 Bot (10:05)"), heading_name("A bot")
    ('Bot', None)
    """
    if line[:1] not in ("#", "*", "_"):
        return None
    match = HEADING.fullmatch(line[:120])
    time = TIME_OF_HEADING.search(line) if len(line) <= 120 else None
    mark = BEFORE_TIME.search(line, 0, time.start()) if time else None
    if mark and not match:
        match = HEADING.fullmatch(line[: mark.start()])
    return match["name"].strip() if match else None


def heading_role(name: str) -> str | None:
    """The role of who speaks below a heading, which may also say "Prompt", as of an exporter."""
    asks = name.lower() in ("prompt", "participant")
    return "user" if asks else speaker_role(name)


def is_headed(text: str) -> bool:
    """Whether headings such as "## User" or "**User**" say who speaks."""
    return bool(heading_names(text))


def read_headed(text: str, source) -> list[Dialog]:
    """A dialog in Markdown: the speaker in a heading, the words below it."""
    names = heading_names(text)
    roles = with_prompts({name: heading_role(name) for name in names})
    dialogs = [Dialog("", [])]

    def speaker_of(line: str) -> str | None:
        name = heading_name(line)
        return name if name in names else None

    lines = ASIDES_OF_HEADED.sub("", text).split("\n")
    lines = without_turn_titles(lines, speaker_of)
    in_code = within_code(lines, speaker_of)
    title = next(filter(str.strip, lines), "")
    for line, inside in zip(lines, in_code, strict=True):
        utterances = dialogs[-1].utterances
        name = None if inside else speaker_of(line)
        if name:
            if utterances and ends_with_title(utterances[-1].text, title, line):
                above, _, _ = utterances[-1].text.rstrip().rpartition("\n")
                utterances[-1].text = above
                dialogs.append(Dialog("", []))
            dialogs[-1].utterances.append(Utterance(name, roles[name], ""))
        elif utterances:
            utterances[-1].text += f"\n{line}"
        elif line.strip():
            source.exclude("utterances", "are lines before the first speaker")
    for utterance in chain.from_iterable(dialog.utterances for dialog in dialogs):
        words = FOOTER.sub("", utterance.text.rstrip()).strip()
        words = TIME_OF_HEADED.sub("", without_marks(words))
        utterance.text = words.strip() or None
    return dialogs


def ends_with_title(words: str, title: str, heading: str) -> bool:
    """Whether words end with the title of a further dialog, of the rank of the first one's.

    Nothing stands below it but the heading of who speaks, which has a lower rank.
    """
    last = words.rstrip().rpartition("\n")[2]
    rank = re.match("#{1,2} ", title)
    return (
        bool(rank)
        and last.startswith(rank[0])
        and heading.startswith(f"#{rank[0].strip()}")
    )


def is_subtitles(text: str) -> bool:
    """Whether a text is WebVTT or SubRip."""
    start = text.lstrip()[:200]
    return (
        start.startswith("WEBVTT")
        or re.match(r"\d+\n" + CUE.pattern, start) is not None
    )


def read_subtitles(text: str, source) -> list[Dialog]:
    """SubRip and WebVTT: cues with a speaker; what one says in several cues is one utterance.

    Raises:
        UnknownFormat: where no cue names its speaker, or a name may be a word of what is said.
    """
    dialog = Dialog("", [])
    cues = with_colons(lines_of_cues(text))
    speakers = speakers_of_cues(cues, source)
    for words in chain.from_iterable(parts_of_cue(lines, speakers) for lines in cues):
        voice = VOICE.match(words)
        start = voice or start_of(words, speakers)
        speaker = start["name"].strip() if start else None
        words = words[start.end() :] if start else words
        words = re.sub(r"</?\w[^>]{0,60}>", "", words)
        words = SOUND.sub("", html.unescape(words)).strip()
        if not words or SOUND_CUE.fullmatch(words):
            continue
        previous = dialog.utterances[-1] if dialog.utterances else None
        if previous and speaker in (None, previous.speaker):
            previous.text += f" {words}"
        elif speaker:
            dialog.utterances.append(Utterance(speaker, speaker_role(speaker), words))
    if len({utterance.speaker for utterance in dialog.utterances}) < 2:
        raise UnknownFormat(
            "holds subtitles without speakers", fix='write "Name: " before them'
        )
    return [dialog]


def lines_of_cues(text: str) -> list[list[str]]:
    """The lines of each cue, below its times."""
    cues = []
    for block in re.split(r"\n[ \t]*\n", text):
        block = CUE_STYLE.sub("", block)
        lines = [line.strip() for line in block.strip().split("\n")]
        at = next((n for n, line in enumerate(lines) if CUE.match(line)), None)
        if at is not None:
            cues.append(lines[at + 1 :])
    return cues


def with_colons(cues: list[list[str]]) -> list[list[str]]:
    """Cues with a colon behind the speakers, where these stand in brackets ("[ANN] Hi").

    These are two or more that recur, and most cues begin with one of them: else sounds stand there.
    """
    starts = [IN_BRACKETS.match(lines[0]) for lines in cues if lines]
    counts = Counter(start["name"] for start in starts if start)
    speakers = {name for name, count in counts.items() if count > 1}
    n_of_speakers = sum(counts[name] for name in speakers)
    if len(speakers) < 2 or n_of_speakers < len(starts) / 2:
        return cues

    def with_colon(line: str) -> str:
        start = IN_BRACKETS.match(line)
        if not start or start["name"] not in speakers:
            return line
        return f"{start['name']}: {line[start.end() :]}"

    return [[with_colon(line) for line in lines] for lines in cues]


def parts_of_cue(lines: list[str], speakers: set[str]) -> list[str]:
    """The words of a cue in one line; of each speaker where it has several."""
    if len(lines) > 1 and all(re.match("- ?[^\\W\\d]", line) for line in lines):
        return [line.lstrip("- ") for line in lines]
    parts: list[str] = []
    for line in lines:
        if parts and not start_of(line, speakers):
            parts[-1] += f" {line}"
        else:
            parts.append(line)
    return list(chain.from_iterable(re.split(" (?=<v[. ])", part) for part in parts))


def start_of(line: str, speakers: set[str]) -> re.Match | None:
    """The name of one of these speakers at the beginning of a line, or None."""
    start = SPEAKER_START.match(line[:120])
    return start if start and start["name"] in speakers else None


def speakers_of_cues(cues: list[list[str]], source) -> set[str]:
    """The names before a colon that speak, in subtitles.

    These are the names that stand more than once, and those in capitals where all of these are in
    capitals; all names, where fewer than two stand more than once.

    Raises:
        UnknownFormat: where a cue begins with another word that may be a name.
    """
    if named_speakers(source):
        return named_speakers(source)
    lines = [line.lstrip("- ") for line in chain.from_iterable(cues)]
    matches = [SPEAKER_START.match(line[:120]) for line in lines]
    counts = Counter(match["name"] for match in matches if match)
    speakers = {name for name in counts if counts[name] > 1 or is_role(name)}
    if len(speakers) < 2:
        if len(counts) > 2 and not all(map(str.isupper, counts)):
            raise doubtful(set(counts))
        return set(counts)
    in_capitals = all(map(str.isupper, speakers))
    if in_capitals:
        speakers |= {name for name in counts if name.isupper()}
    firsts = [SPEAKER_START.match(lines[0][:120]) for lines in cues if lines]
    others = {match["name"] for match in firsts if match} - speakers
    others = {
        name for name in others if all(word[0].isupper() for word in name.split())
    }
    if others and not in_capitals:
        raise doubtful({*speakers, *others})
    tell_words_within(set(counts) - speakers, speakers, source)
    return speakers


# What a user of Aider types that the model does not read; "/ask why?" is talk.
AIDER_COMMAND = re.compile(r"#### /(?:(?!(?:ask|code|architect|context) +\S)[a-z-]+\b)")
AIDER_ENDING = re.compile("^#### .*  $", re.M)
AIDER_MODEL = re.compile(r"> (?:Main model|Model|Models): (?P<name>\S+)")


def is_aider(text: str) -> bool:
    """Whether this is a history of Aider."""
    return re.search(r"^# aider chat started at", text, flags=re.M) is not None


def read_aider(text: str, source) -> list[Dialog]:
    """Aider's history in Markdown: the user's words behind "####", the tool's behind ">".

    Both end with two blanks, by which they differ from headings and quotations of the model,
    unless an editor took them away.
    """
    dialogs: list[Dialog] = []
    ending = "  " if AIDER_ENDING.search(text) else ""
    for filled, run in groupby(text.split("\n"), key=lambda line: bool(line.strip())):
        lines = list(run)
        if not filled:
            if dialogs and dialogs[-1].utterances:
                dialogs[-1].utterances[-1].text += "\n" * len(lines)
            continue
        tool_may_write = lines[-1].endswith(ending)
        by_tool = False  # which has its mark in the first line of what it says
        for line in lines:
            if line.startswith("# aider chat started at") or not dialogs:
                dialogs.append(Dialog(str(len(dialogs) + 1), []))
                continue
            by_user = f"{line} ".startswith("#### ") and line.endswith(ending)
            by_tool = tool_may_write and (by_tool or f"{line} ".startswith("> "))
            if not any(u.role == "user" for u in dialogs[-1].utterances):
                by_tool = True  # nobody asked yet
            if by_user and AIDER_COMMAND.match(line):
                source.exclude("utterances", "are commands to the tool")
            elif by_user:
                words = line.removeprefix("####").removeprefix(" ").rstrip()
                add_line(dialogs[-1], "user", words)
            elif not by_tool:
                add_line(dialogs[-1], "assistant", line)
            else:
                model = AIDER_MODEL.match(line)
                dialogs[-1].system = model["name"] if model else dialogs[-1].system
                add_line(dialogs[-1], "tool", line)
    for dialog in dialogs:
        for utterance in dialog.utterances:
            utterance.text = utterance.text.strip()
    return dialogs


def add_line(dialog: Dialog, role: str, line: str) -> None:
    """Add a line to the last utterance of a dialog, or begin one where another side spoke."""
    if dialog.utterances and dialog.utterances[-1].role == role:
        dialog.utterances[-1].text += f"\n{line}"
    else:
        dialog.utterances.append(Utterance(role, role, line))


def is_dailydialog(text: str) -> bool:
    """Whether utterances end with __eou__."""
    return "__eou__" in text.partition("\n")[0]


def read_dailydialog(text: str, source) -> list[Dialog]:
    """DailyDialog: a dialog per line, two people in turn; the second is taken for the bot."""
    dialogs = []
    for line in text.split("\n"):
        texts = [words.strip() for words in line.split("__eou__")]
        utterances = []
        for number, words in enumerate(text for text in texts if text):
            speaker = ("first", "second")[number % 2]
            utterances.append(
                Utterance(speaker, ("user", "assistant")[number % 2], words)
            )
        if utterances:
            dialogs.append(Dialog("", utterances))
    return dialogs
