"""Chat logs as people have them: ten formats go in as they are; what is hostile is refused."""

import errno
import gzip
import io
import itertools
import json
import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import zstandard

from lib import report
from lib.data import DataError, import_report, load, read_turns, storage
from lib.report.__main__ import main

ROLES = ("user", "assistant")
# The bot has the even utterances; its replies with what was said before, read off by hand.
TALK = [
    ["Hi, who's there?", "It's me: Ada; a bot.", "Café?", "Yes 🙂\nplease"],
    ["Hm", "Hm?"],
]
CONTEXTS = [
    ["Hi, who's there?"],
    ["Hi, who's there?", "It's me: Ada; a bot.", "Café?"],
    ["Hm"],
]
REPLIES = ["It's me: Ada; a bot.", "Yes 🙂\nplease", "Hm?"]


def json_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def with_speakers(texts, names):
    """The texts of a dialog, each with its speaker."""
    speakers = itertools.cycle(names)
    return list(zip(speakers, texts, strict=False))


def messages(speaker_key, text_key, names):
    """Both dialogs as lists of messages with these keys."""
    dialogs = []
    for texts in TALK:
        pairs = with_speakers(texts, names)
        dialogs.append([{speaker_key: name, text_key: text} for name, text in pairs])
    return dialogs


def exchanges(texts):
    """The texts of a dialog in pairs: what the user said, and what the bot answered."""
    return list(zip(texts[::2], texts[1::2], strict=True))


def openai_lines(folder):
    prompt = {"role": "system", "content": "Be kind."}
    tool = {"role": "tool", "content": "7"}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    rows = []
    for dialog in messages("role", "content", ROLES):
        rows.append({"model": "ada-2", "messages": [prompt, *dialog, call, tool]})
    for message in rows[0]["messages"][1:5]:
        message["content"] = [
            {"type": "text", "text": message["content"]},
            {"type": "image_url"},
        ]
    (folder / "log.jsonl").write_text(json_lines(rows), encoding="utf-8")


def sharegpt(folder):
    rows = []
    for number, dialog in enumerate(messages("from", "value", ("human", "gpt"))):
        rows.append({"id": f"s{number}", "system": "Be kind.", "conversations": dialog})
    with gzip.open(folder / "log.json.gz", "wt", encoding="utf-8") as file:
        json.dump(rows, file)


def convokit(folder):
    rows = []
    for texts in TALK:
        root = f"u{len(rows)}"
        parent = None
        for speaker, text in with_speakers(texts, ("ann", "ada")):
            row = {"id": f"u{len(rows)}", "conversation_id": root, "reply_to": parent}
            rows.append({**row, "speaker": speaker, "text": text, "meta": {}})
            parent = row["id"]
    rows.insert(
        2, {**rows[1], "id": "other", "speaker": "ann", "text": "Another branch"}
    )
    (folder / "utterances.jsonl").write_text(json_lines(rows), encoding="utf-8")
    speakers = {"ada": {"meta": {"role": "bot"}}, "ann": {"meta": {"role": "user"}}}
    (folder / "speakers.json").write_text(json.dumps(speakers))


def parlai_text(folder):
    lines = []
    for texts in TALK:
        escaped = [text.replace("\n", "\\n") for text in texts]
        for user, bot in exchanges(escaped):
            lines.append(f"text:{user}\tlabels:{bot}")
        lines[-1] += "\tepisode_done:True"
    (folder / "log.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def parlai_json(folder):
    rows = []
    for dialog in messages("id", "text", ("human", "TransformerBot")):
        rows.append({"dialog": exchanges(dialog), "context": []})
    (folder / "log.jsonl.zst").write_bytes(
        zstandard.compress(json_lines(rows).encode())
    )


def multiwoz(folder):
    logs = {}
    for number, texts in enumerate(TALK):
        log = []
        for metadata, text in with_speakers(texts, ({}, {"taxi": {}})):
            log.append({"text": text, "metadata": metadata})
        logs[f"SNG{number}.json"] = {"goal": {}, "log": log}
    (folder / "data.json").write_text(json.dumps(logs))


def persona_chat(folder):
    lines = ["1 your persona: i drink tea."]
    number = 2
    for texts in TALK:
        for user, bot in exchanges(texts):
            reply = bot.replace("\n", " ")
            lines.append(f"{number} {user}\t{reply}\t\tno|never")
            number += 1
        number = 1
    text = "".join(f"{line}\n" for line in lines)
    (folder / "train_self_original.txt").write_text(text, encoding="utf-8")


def persona_json(folder):
    rows = []
    for texts in TALK:
        row = {"personality": ["i drink tea."], "utterances": []}
        for position in range(1, len(texts), 2):
            candidates = ["no", texts[position]]
            row["utterances"].append(
                {"history": texts[:position], "candidates": candidates}
            )
        rows.append(row)
    (folder / "log.json").write_text(json.dumps({"train": rows[:1], "valid": rows[1:]}))


def transcript(folder):
    dialogs = []
    for texts in TALK:
        lines = [
            f"{name}: {text}" for name, text in with_speakers(texts, ("You", "Ada"))
        ]
        dialogs.append("\n".join(lines))
    (folder / "log.txt").write_text("\n\n".join(dialogs), encoding="utf-16")


def excel_csv(folder):
    lines = ["system;dialog;context;response;human_fun"]
    ratings = ("4", "2,5", "1")
    for name, context, reply, rating in zip(
        "aab", CONTEXTS, REPLIES, ratings, strict=True
    ):
        cells = [json.dumps(context, ensure_ascii=False), reply.replace("🙂", ":)")]
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
        lines.append(";".join(["Ada", name, *quoted, rating]))
    (folder / "log.csv").write_bytes("\r\n".join(lines).encode("cp1252"))


def excel_csv_that_says_so(folder):
    excel_csv(folder)
    file = folder / "log.csv"
    file.write_bytes(b"sep=;\r\n" + file.read_bytes())


def excel(folder):
    rows = [("Chat ID", "Speaker", "Text")]
    for number, texts in enumerate(TALK, start=1):
        for name, text in with_speakers(texts, ("Customer", "Agent")):
            rows.append((number, name, text))
    (folder / "log.xlsx").write_bytes(workbook(rows))


def workbook(rows, **more):
    """A workbook with one sheet, as small as its reader allows."""
    body = ""
    for row in rows:
        cells = [
            f'<c t="inlineStr"><is><t xml:space="preserve">{cell}</t></is></c>'
            for cell in row
        ]
        body += f"<row>{''.join(cells)}</row>"
    uri = "http://schemas.openxmlformats.org"
    main = f'xmlns="{uri}/spreadsheetml/2006/main"'
    rel = f"{uri}/officeDocument/2006/relationships"
    links = f'xmlns="{uri}/package/2006/relationships"><Relationship Id="r" Type="{rel}'
    parts = {
        "_rels/.rels": f'<Relationships {links}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{rel}"><sheets><sheet name="Chats" '
        'sheetId="1" r:id="r"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships {links}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{body}</sheetData></worksheet>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (parts | more).items():
            archive.writestr(name, text)
    return buffer.getvalue()


# What must be said of each: the kind, its form, the bot, and the systems of the table.
FORMATS = {
    openai_lines: ("messages", "OpenAI", "assistant", "ada-2"),
    sharegpt: ("messages", "ShareGPT", "gpt", "gpt"),
    convokit: ("convokit", "ConvoKit", "ada", "ada"),
    parlai_text: ("lines", "text", "bot", "bot"),
    parlai_json: ("messages", "JSON", "TransformerBot", "TransformerBot"),
    multiwoz: ("messages", "2.1", "bot", "bot"),
    persona_chat: ("lines", "numbered", "bot", "bot"),
    persona_json: ("messages", "Persona-Chat", "bot", "bot"),
    transcript: ("transcript", "transcript", "Ada", "Ada"),
    excel_csv: ("table", "one row per reply", None, "Ada"),
    excel_csv_that_says_so: ("table", "one row per reply", None, "Ada"),
    excel: ("utterances", "Speaker, Text", "Agent", "Agent"),
}


def plain(texts):
    """Texts without what some formats cannot hold: line breaks and emoji."""
    return [text.replace("\n", " ").replace("🙂", ":)") for text in texts]


def test_a_packed_file_is_known_by_its_first_bytes(tmp_path):
    row = b'{"dialog": "a", "response": "we swam"}\n'
    for pack in (gzip.compress, zstandard.compress):
        (tmp_path / "log.jsonl").write_bytes(
            pack(row) + pack(row.replace(b"swam", b"ran"))
        )
        assert read_turns(tmp_path / "log.jsonl")["response"].tolist() == [
            "we swam",
            "we ran",
        ]


@pytest.mark.parametrize("write", FORMATS)
def test_ten_formats_go_in_as_they_are(write, tmp_path):
    write(tmp_path)
    turns = read_turns(tmp_path)
    kind, form, bot, system = FORMATS[write]
    assert plain(turns["response"]) == plain(REPLIES)
    assert list(map(plain, turns["context"])) == list(map(plain, CONTEXTS))
    assert (
        turns["system"].unique().tolist() == [system] and turns["dialog"].nunique() == 2
    )
    assert turns["dialog"].iloc[0] == turns["dialog"].iloc[1]
    has_persona = write in (persona_chat, persona_json)
    assert (turns["fact"].iloc[0] == ["i drink tea."]) == has_persona
    guesses = {
        option: (value, reason) for option, value, reason, _ in turns.attrs["guesses"]
    }
    assert guesses["kind"][0] == kind and form in guesses["kind"][1]
    assert guesses.get("bot", [None])[0] == bot
    details = report.import_details(turns)
    assert "To change it: KIND=..." in details and "3 replies in 2 dialogs" in details
    assert all(f"{option.upper()}=" in details for option in guesses)


def parquet(rows):
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer)
    return buffer.getvalue()


ZEROS = bytes(3 << 20)
HOSTILE = {
    "bomb.jsonl.gz": (gzip.compress(ZEROS), "unpacks to more than 2 MB"),
    "bomb.csv.zst": (zstandard.compress(ZEROS), "unpacks to more than 2 MB"),
    "bomb.parquet": (
        parquet({"response": ["0" * 60_000] * 60}),
        "unpacks to more than 2 MB",
    ),
    "bomb.xlsx": (workbook([], bomb=ZEROS), "unpacks to more than 2 MB"),
    "cut.jsonl.gz": (gzip.compress(b"{}" * 99)[:-9], "not a readable file"),
    "digits.jsonl": (b'{"messages": ' + b"1" * 5000 + b"}", "not a readable file"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\0\0\0", "neither text nor a table"),
    "blanks.txt": (b"1" + b" " * 200_000 + b"\n" + b"*" * 200_000, "no chat log"),
    "a\\q<b>.txt": (b"Once upon a time\n", "User: Hi\nBot: Hello"),
    "prose.json": (
        b'{"conversations": [{"from": "x"}]}',
        '"from": "human", "value": "Hi"',
    ),
    "names.txt": (b"Ann: Hi\nBob: Ho\n", "which speaker is the bot.*BOT=.*Ann, Bob"),
    "bots.txt": (b"Bot 1: Hi\nBot 2: Ho\n", "which speaker is the bot"),
    "users.json": (
        b'[[{"role": "user", "content": "Hi"}]]',
        "which speaker is the bot",
    ),
    "score.csv": (
        b"system,dialog,response,score_x\nA,1,x,\nA,2,y,z\n",
        "row 2, column 'score_x'",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read_ends_with_a_message(name, tmp_path, capsys):
    raw, expected = HOSTILE[name]
    (tmp_path / name).write_bytes(raw)
    assert main([str(tmp_path / name), "--dry", "--override", "max_mb=2"]) == 2
    message = capsys.readouterr().err
    assert re.search(expected, message, flags=re.S) and "Traceback" not in message
    assert "suggest: columns={'response': 'response'" not in message


def test_what_is_said_goes_before_what_is_guessed(tmp_path):
    file = tmp_path / "log.txt"
    file.write_bytes("Ann: Grüße\n\nBob: Hé\n---\nAnn: Zu\nBob: Ho\n".encode("cp1250"))
    ann = read_turns(
        file, options={"bot": "ann", "encoding": "cp1250", "split": "none"}
    )
    assert ann["system"].tolist() == ["Ann", "Ann"] and ann["dialog"].nunique() == 1
    assert ann["response"].tolist() == ["Grüße", "Zu"]
    with pytest.raises(DataError, match="line 1: 'utf-8'"):
        read_turns(file, options={"encoding": "utf-8"})
    with pytest.raises(DataError, match="did you mean 'ann'"):
        read_turns(file, options={"bot": "anne"})
    with pytest.raises(DataError, match="'boot' is not guessed"):
        read_turns(file, options={"boot": "Ann"})


def test_all_is_counted_and_written_out(tmp_path, capsys):
    logs = tmp_path / "logs"
    logs.mkdir()
    openai_lines(logs)
    rated = [
        {"role": "assistant", "content": "", "rating": 3},
        {"role": "assistant", "content": "Oh", "rating": "fine"},
    ]
    without_reply = {"messages": [{"role": "user", "content": "Hi"}], "rating": 2}
    rows = [without_reply, {"messages": None}, {"messages": rated, "score": 5}]
    (logs / "more.jsonl").write_text(json_lines(rows))
    (logs / "README").write_text("About these files\n")
    out = tmp_path / "turns.parquet"
    assert main([str(logs), "--dry", "--turns", str(out)]) == 0
    turns = read_turns(out)
    assert turns["response"].tolist() == [*REPLIES, "", "Oh"]
    assert turns["context"].tolist() == [*CONTEXTS, [], []]
    assert (
        turns["human_rating"].tolist()[3] == 3
        and turns["human_rating"].isna().sum() == 4
    )
    assert "human_score" not in turns  # a score may be a metric's
    counts = import_report(read_turns(logs)).set_index("unit")
    assert counts.loc["files", ["kept", "reasons"]].tolist() == [
        2,
        "1 hold no dialogs (README)",
    ]


def test_markdown_within_a_reply_parts_no_dialog(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text(
        "User: Hi\nBot: See\n# Title\n---\nText\n\nmore\nUser: Oh\nBot: Yes\n"
    )
    turns = read_turns(file)
    assert turns["dialog"].tolist() == ["1", "1"]
    assert turns["response"].tolist() == ["See\n# Title\n---\nText\n\nmore", "Yes"]


# Real files of others, as they are: replies, systems, dialogs, ratings.
REAL = {
    "dstc10/persona-usr_eval.json": (300, 5, 300, 1800),
    "grade/human_score/human_judgement.json": (1200, 4, 560, 1200),
    "usr/tc_usr_data.json": (360, 6, 60, 2160),
    "dialogue_eval_ji2022/pass_icebreaker.json": (12907, 11, 1224, 0),
    "comp_analysis/dialog_level_texts/fed_human_annotations.json": (795, 3, 125, 8741),
    "predictive_engagement/Eng_Scores_queries_gen_gtruth_replies.csv": (
        1800,
        1,
        1800,
        1800,
    ),
}


@pytest.mark.public
@pytest.mark.parametrize("name", REAL)
def test_real_files_go_in_unchanged(name):
    turns = read_turns(storage.data_folder() / name)
    ratings = int(turns.filter(like="human_").notna().sum().sum())
    assert (len(turns), *turns[["system", "dialog"]].nunique(), ratings) == REAL[name]


@pytest.mark.public
def test_unieval_calls_the_talk_source_and_the_knowledge_context():
    turns = read_turns(storage.data_folder() / "unieval" / "topical_chat.json")
    corpus = load("unieval_topical").turns.set_index("response")
    for row in turns.drop_duplicates("response").head(20).itertuples():
        expected = corpus.loc[[row.response.strip()]].iloc[0]
        assert list(row.context) == expected["context"]
        assert (
            " ".join(row.fact).split()
            == " ".join(expected["fact"] or ["_nofact"]).split()
        )


def test_names_that_no_column_gives_come_from_the_file_and_the_contexts(tmp_path):
    rows = [
        {"prompt": "x", "output": "a", "scores": {"fun": [1, "N/A (unsure)", 4]}},
        {"prompt": "y", "output": "b", "scores": {"fun": []}},
        {"prompt": "x", "output": "c", "scores": {"fun": [3]}},
    ]
    (tmp_path / "mine.v2.json").write_text(json.dumps(rows))
    turns = read_turns(tmp_path / "mine.v2.json")
    assert turns[["system", "dialog"]].values.tolist() == [
        ["mine", d] for d in ("1", "2", "1 (2)")
    ]
    assert turns["human_fun"].tolist() == pytest.approx(
        [2.5, float("nan"), 3], nan_ok=True
    )
    assert "response='output' context='prompt'" in report.import_details(turns)


def test_two_files_are_two_systems(tmp_path):
    files = [tmp_path / name for name in ("old.txt", "new.txt")]
    for file in files:
        file.write_text("User: Hi\nBot: Hello")
    turns = report.read_versions(files)
    assert turns[["system", "agent"]].values.tolist() == [
        ["old", "Bot"],
        ["new", "Bot"],
    ]


def test_a_column_of_the_users_words_is_warned_of(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("system,dialog,User message,Bot says\nA,1,Hi,Ho\n")
    for name, warned in (("User message", True), ("Bot says", False)):
        topics = report.warnings(read_turns(file, {"response": name}))["topic"].tolist()
        assert ("the user's words?" in topics) == warned


def test_a_full_disk_leaves_the_old_page_whole(tmp_path, monkeypatch, capsys):
    transcript(tmp_path)
    page = tmp_path / "page.html"
    page.write_text("old")

    def full(self, *text, **options):
        self.write_bytes(b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert main([str(tmp_path / "log.txt"), "--out", str(page)]) == 1
    message = capsys.readouterr().err
    assert "No space left" in message and "Traceback" not in message
    assert page.read_bytes() == b"old" and not [*tmp_path.glob("*unfinished")]


def test_a_dialog_without_an_id_is_no_part_of_one_that_is_called_by_its_number(
    tmp_path,
):
    messages = [{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}]
    records = [{"id": "2", "messages": messages}, {"messages": messages}]
    file = tmp_path / "log.json"
    file.write_text(json.dumps(records))
    assert read_turns(file)["dialog"].tolist() == ["2", "record 2"]
