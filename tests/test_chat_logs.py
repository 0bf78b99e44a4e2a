"""Chat logs as people have them: ten formats go in as they are; what is hostile is refused."""

import errno
import gzip
import io
import json
import re
import zipfile
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import zstandard

from lib import report
from lib.data import DataError, file_contents, import_report, load, read_turns, storage
from lib.report.__main__ import main

USER, FUN = ("user", "assistant"), (4, 2.5, 1)
# The bot has the even utterances; its replies with what was said before, read off by hand.
TALK = [["Hi, who's there?", "It's me: Ada; a bot.", "Café?", "Yes 🙂\nplease"], ["Hm", "Hm?"]]
CONTEXTS = [["Hi, who's there?"], ["Hi, who's there?", "It's me: Ada; a bot.", "Café?"], ["Hm"]]
REPLIES = ["It's me: Ada; a bot.", "Yes 🙂\nplease", "Hm?"]


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def messages(who, said, names):
    return [[{who: names[place % 2], said: text} for place, text in enumerate(t)] for t in TALK]


def openai_lines(folder):
    prompt, tool = {"role": "system", "content": "Be kind."}, {"role": "tool", "content": "7"}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    talk = [[prompt, *said, call, tool] for said in messages("role", "content", USER)]
    for said in talk[0][1:5]:
        said["content"] = [{"type": "text", "text": said["content"]}, {"type": "image_url"}]
    rows = [{"model": "ada-2", "messages": said} for said in talk]
    (folder / "log.jsonl").write_text(lines(rows), encoding="utf-8")


def sharegpt(folder):
    talk = messages("from", "value", ("human", "gpt"))
    rows = [{"id": f"s{n}", "system": "Be kind.", "conversations": t} for n, t in enumerate(talk)]
    with gzip.open(folder / "log.json.gz", "wt", encoding="utf-8") as file:
        json.dump(rows, file)


def convokit(folder):
    rows, names = [], ("ann", "ada")
    for talk in TALK:
        root = f"u{len(rows)}"
        for place, text in enumerate(talk):
            above = f"u{len(rows) - 1}" if place else None
            rows.append({"id": f"u{len(rows)}", "conversation_id": root, "reply_to": above,
                         "speaker": names[place % 2], "text": text, "meta": {}})  # fmt: skip
    rows.insert(2, {**rows[1], "id": "other", "speaker": "ann", "text": "Another branch"})
    (folder / "utterances.jsonl").write_text(lines(rows), encoding="utf-8")
    about = {"ada": {"meta": {"role": "bot"}}, "ann": {"meta": {"role": "user"}}}
    (folder / "speakers.json").write_text(json.dumps(about))


def parlai_text(folder):
    acts = []
    for talk in TALK:
        for place in range(0, len(talk), 2):
            said, label = (text.replace("\n", "\\n") for text in talk[place : place + 2])
            done = "\tepisode_done:True" if place + 2 == len(talk) else ""
            acts.append(f"text:{said}\tlabels:{label}{done}\n")
    (folder / "log.txt").write_text("".join(acts), encoding="utf-8")


def parlai_json(folder):
    talk = messages("id", "text", ("human", "TransformerBot"))
    rows = [{"dialog": [t[k : k + 2] for k in range(0, len(t), 2)], "context": []} for t in talk]
    packed = zstandard.compress(lines(rows).encode())
    (folder / "log.jsonl.zst").write_bytes(packed)


def multiwoz(folder):
    logs = {
        f"SNG{n}.json": {"goal": {}, "log": [
            {"text": text, "metadata": {"taxi": {}} if place % 2 else {}}
            for place, text in enumerate(talk)]}
        for n, talk in enumerate(TALK)
    }  # fmt: skip
    (folder / "data.json").write_text(json.dumps(logs))


def persona_chat(folder):
    said = ["1 your persona: i drink tea.\n"]
    for talk in TALK:
        talk = [text.replace("\n", " ") for text in talk]
        start = 2 if said[-1].startswith("1 your") else 1
        for place in range(0, len(talk), 2):
            said.append(f"{start + place // 2} {talk[place]}\t{talk[place + 1]}\t\tno|never\n")
    (folder / "train_self_original.txt").write_text("".join(said), encoding="utf-8")


def persona_json(folder):
    rows = [{"personality": ["i drink tea."], "utterances": [
        {"history": talk[:k], "candidates": ["no", talk[k]]} for k in range(1, len(talk), 2)]}
        for talk in TALK]  # fmt: skip
    (folder / "log.json").write_text(json.dumps({"train": rows[:1], "valid": rows[1:]}))


def transcript(folder):
    talk = ["\n".join(f"{who}: {text}" for who, text in zip(["You", "Ada"] * 2, t, strict=False))
            for t in TALK]  # fmt: skip
    (folder / "log.txt").write_text("\n\n".join(talk), encoding="utf-16")


def excel_csv(folder):
    rows = ["system;dialog;context;response;human_fun"]
    for name, said, reply, mark in zip("aab", CONTEXTS, REPLIES, FUN, strict=True):
        cells = [json.dumps(said, ensure_ascii=False), reply.replace("🙂", ":)")]
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
        rows.append(";".join(["Ada", name, *quoted, str(mark).replace(".", ",")]))
    (folder / "log.csv").write_bytes("\r\n".join(rows).encode("cp1252"))


def excel_csv_that_says_so(folder):
    excel_csv(folder)
    file = folder / "log.csv"
    file.write_bytes(b"sep=;\r\n" + file.read_bytes())


def excel(folder):
    rows = [("Chat ID", "Speaker", "Text")]
    rows += [(n, who, text) for n, talk in enumerate(TALK, start=1)
             for who, text in zip(["Customer", "Agent"] * 2, talk, strict=False)]  # fmt: skip
    (folder / "log.xlsx").write_bytes(book(rows))


def book(rows, **more):
    """A workbook with one sheet, as small as its reader allows."""
    cell = '<c t="inlineStr"><is><t xml:space="preserve">{}</t></is></c>'
    body = "".join(f"<row>{''.join(cell.format(one) for one in row)}</row>" for row in rows)
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
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in (parts | more).items():
            packed.writestr(name, text)
    return made.getvalue()


# What must be said of each: the kind, its form, the bot, and the systems of the table.
FORMATS = {
    openai_lines: ("messages", "OpenAI", "assistant", "ada-2"),
    sharegpt: ("messages", "ShareGPT", "gpt", "gpt"),
    convokit: ("utterances", "ConvoKit", "ada", "ada"),
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


def same(text):
    return text.replace("\n", " ").replace("🙂", ":)")


def test_a_packed_file_is_known_by_its_first_bytes(tmp_path):
    row = b'{"dialog": "a", "response": "we swam"}\n'
    for pack in (gzip.compress, zstandard.compress):
        (tmp_path / "log.jsonl").write_bytes(pack(row) + pack(row.replace(b"swam", b"ran")))
        assert read_turns(tmp_path / "log.jsonl")["response"].tolist() == ["we swam", "we ran"]


@pytest.mark.parametrize("write", FORMATS)
def test_ten_formats_go_in_as_they_are(write, tmp_path):
    write(tmp_path)
    turns = read_turns(tmp_path)
    kind, form, bot, system = FORMATS[write]
    assert [same(text) for text in turns["response"]] == [same(text) for text in REPLIES]
    assert [list(map(same, c)) for c in turns["context"]] == [list(map(same, c)) for c in CONTEXTS]
    assert turns["system"].unique().tolist() == [system] and turns["dialog"].nunique() == 2
    assert turns["dialog"].tolist()[0] == turns["dialog"].tolist()[1]
    assert (turns["fact"].iloc[0] == ["i drink tea."]) == (write in (persona_chat, persona_json))
    said = {what: (taken, why) for what, taken, why, _ in turns.attrs["guesses"]}
    assert said["kind"][0] == kind and form in said["kind"][1]
    assert said.get("bot", [None])[0] == bot
    shown = report.import_details(turns)
    assert "To change it: KIND=..." in shown and "3 replies in 2 dialogs" in shown
    assert all(f"{what.upper()}=" in shown for what in said)


def parquet(rows):
    made = io.BytesIO()
    pd.DataFrame(rows).to_parquet(made)
    return made.getvalue()


ZEROS = bytes(3 << 20)
HOSTILE = {
    "bomb.jsonl.gz": (gzip.compress(ZEROS), "unpacks to more than 2 MB"),
    "bomb.csv.zst": (zstandard.compress(ZEROS), "unpacks to more than 2 MB"),
    "bomb.parquet": (parquet({"response": ["0" * 60_000] * 60}), "unpacks to more than 2 MB"),
    "bomb.xlsx": (book([], bomb=ZEROS), "unpacks to more than 2 MB"),
    "cut.jsonl.gz": (gzip.compress(b"{}" * 99)[:-9], "not a readable file"),
    "digits.jsonl": (b'{"messages": ' + b"1" * 5000 + b"}", "not a readable file"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\0\0\0", "neither text nor a table"),
    "blanks.txt": (b"1" + b" " * 200_000 + b"\n" + b"*" * 200_000, "no chat log"),
    "a\\q<b>.txt": (b"Once upon a time\n", "User: Hi\nBot: Hello"),
    "prose.json": (b'{"conversations": [{"from": "x"}]}', '"from": "human", "value": "Hi"'),
    "names.txt": (b"Ann: Hi\nBob: Ho\n", "which speaker is the bot.*BOT=.*Ann, Bob"),
    "bots.txt": (b"Bot 1: Hi\nBot 2: Ho\n", "which speaker is the bot"),
    "users.json": (b'[[{"role": "user", "content": "Hi"}]]', "which speaker is the bot"),
    "score.csv": (b"system,dialog,response,score_x\nA,1,x,\nA,2,y,z\n", "row 2, column 'score_x'"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read_ends_with_a_message(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(file_contents, "LIMIT", 2 << 20)
    raw, expected = HOSTILE[name]
    (tmp_path / name).write_bytes(raw)
    assert main([str(tmp_path / name), "--dry"]) == 2
    said = capsys.readouterr().err
    assert re.search(expected, said, flags=re.S) and "Traceback" not in said
    assert "suggest: columns={'response': 'response'" not in said


def test_what_is_said_goes_before_what_is_guessed(tmp_path):
    file = tmp_path / "log.txt"
    file.write_bytes("Ann: Grüße\n\nBob: Hé\n---\nAnn: Zu\nBob: Ho\n".encode("cp1250"))
    ann = read_turns(file, given={"bot": "ann", "encoding": "cp1250", "split": "none"})
    assert ann["system"].tolist() == ["Ann", "Ann"] and ann["dialog"].nunique() == 1
    assert ann["response"].tolist() == ["Grüße", "Zu"]
    with pytest.raises(DataError, match="line 1: 'utf-8'"):
        read_turns(file, given={"encoding": "utf-8"})
    with pytest.raises(DataError, match="did you mean 'ann'"):
        read_turns(file, given={"bot": "anne"})
    with pytest.raises(DataError, match="'boot' is not guessed"):
        read_turns(file, given={"boot": "Ann"})


def test_all_is_counted_and_written_out(tmp_path, capsys):
    logs = tmp_path / "logs"
    logs.mkdir()
    openai_lines(logs)
    (logs / "more.jsonl").write_text(lines([
        {"messages": [{"role": "user", "content": "Hi"}], "rating": 2},
        {"messages": None},
        {"messages": [{"role": "assistant", "content": "", "rating": 3},
                      {"role": "assistant", "content": "Oh", "rating": "fine"}], "score": 5},
    ]))  # fmt: skip
    (logs / "README").write_text("About these files\n")
    out = tmp_path / "turns.parquet"
    assert main([str(logs), "--dry", "--turns", str(out)]) == 0
    turns = read_turns(out)
    assert turns["response"].tolist() == [*REPLIES, "", "Oh"]
    assert turns["context"].tolist() == [*CONTEXTS, [], [""]]
    assert turns["human_rating"].tolist()[3] == 3 and turns["human_rating"].isna().sum() == 4
    assert turns["human_score"].tolist()[3:] == [5, 5]  # of the dialog, at each of its replies
    said = import_report(read_turns(logs)).set_index("unit")
    assert said.loc["files", ["kept", "reasons"]].tolist() == [2, "1 hold no dialogs (README)"]


def test_markdown_within_a_reply_parts_no_dialog(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text("User: Hi\nBot: See\n# Title\n---\nText\n\nmore\nUser: Oh\nBot: Yes\n")
    turns = read_turns(file)
    assert turns["dialog"].tolist() == ["1", "1"]
    assert turns["response"].tolist() == ["See\n# Title\n---\nText\n\nmore", "Yes"]


# Real files of others, as they are: replies, systems, dialogs, ratings.
REAL = {
    "dstc10/persona-usr_eval.json": (300, 5, 300, 1800),
    "grade/human_score/human_judgement.json": (1200, 4, 560, 1200),
    "usr/tc_usr_data.json": (360, 6, 60, 0),
    "dialogue_eval_ji2022/pass_icebreaker.json": (12907, 11, 1224, 0),
    "comp_analysis/dialog_level_texts/fed_human_annotations.json": (795, 3, 125, 8741),
    "predictive_engagement/Eng_Scores_queries_gen_gtruth_replies.csv": (1800, 1, 1800, 1800),
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
    known = load("unieval_topical").turns.set_index("response")
    for row in turns.drop_duplicates("response").head(20).itertuples():
        there = known.loc[[row.response.strip()]].iloc[0]
        assert list(row.context) == there["context"]
        assert " ".join(row.fact).split() == " ".join(there["fact"] or ["_nofact"]).split()


def test_names_that_no_column_gives_come_from_the_file_and_the_contexts(tmp_path):
    given = zip("xyx", "abc", ([1, "N/A (unsure)", 4], [], [3]), strict=True)
    rows = [{"prompt": said, "output": text, "scores": {"fun": fun}} for said, text, fun in given]
    (tmp_path / "mine.v2.json").write_text(json.dumps(rows))
    turns = read_turns(tmp_path / "mine.v2.json")
    assert turns[["system", "dialog"]].values.tolist() == [["mine", d] for d in ("1", "2", "1 (2)")]
    assert turns["human_fun"].tolist() == pytest.approx([2.5, float("nan"), 3], nan_ok=True)
    assert "response='output' context='prompt'" in report.import_details(turns)


def test_two_files_are_two_systems(tmp_path):
    files = [tmp_path / name for name in ("old.txt", "new.txt")]
    for file in files:
        file.write_text("User: Hi\nBot: Hello")
    turns = report.read_dialogs(files)
    assert turns[["system", "agent"]].values.tolist() == [["old", "Bot"], ["new", "Bot"]]


def test_a_column_of_the_users_words_is_warned_of(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("system,dialog,User message,Bot says\nA,1,Hi,Ho\n")
    warned = [report.warnings(read_turns(file, {"response": name}))["topic"].tolist()
              for name in ("User message", "Bot says")]  # fmt: skip
    assert ["the user's words?" in topics for topics in warned] == [True, False]


def test_a_full_disk_leaves_the_old_page_whole(tmp_path, monkeypatch, capsys):
    transcript(tmp_path)
    page = tmp_path / "page.html"
    page.write_text("old")

    def full(self, *text, **options):
        self.write_bytes(b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    ran = nbformat.v4.new_notebook()
    monkeypatch.setattr("lib.report.__main__.executed", lambda parameters: ran)
    monkeypatch.setattr(Path, "write_text", full)
    assert main([str(tmp_path / "log.txt"), "--out", str(page)]) == 1
    said = capsys.readouterr().err
    assert "No space left" in said and "Traceback" not in said
    assert page.read_bytes() == b"old" and not [*tmp_path.glob("*unfinished")]
