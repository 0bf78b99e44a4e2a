"""CPU seconds and memory that hostile files take until they are read or refused.

    python tests/bench/bench_log_attacks.py

Each file is read in a process of its own; the bounds are 10 CPU seconds and 1 GB.
"""

import gzip
import json
import resource
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

READ = """
import resource, sys
from lib.data import DataError, read_turns
try:
    outcome = f"{len(read_turns(sys.argv[1]))} replies"
except DataError as error:
    outcome = str(error.problem)[:60]
usage = resource.getrusage(resource.RUSAGE_SELF)
print(f"{usage.ru_utime + usage.ru_stime:.1f}\\t{usage.ru_maxrss // 1024}\\t{outcome}")
"""


def repeated_text(file):
    """One text of a megabyte, ten thousand times, as a dictionary has it once."""
    indices = pa.array([0] * 10_000, pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 2**20]))
    parquet.write_table(pa.table({"response": column}), file, compression="zstd")


def nested_text(file):
    """The same within the messages of a single dialog."""
    indices = pa.array([0] * 10_000, pa.int32())
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 2**20]))
    lists = pa.ListArray.from_arrays(pa.array([0, 10_000], pa.int32()), texts)
    parquet.write_table(pa.table({"messages": lists}), file, compression="zstd")


def many_objects(file):
    """A small gzip of a long list of empty objects."""
    with gzip.open(file, "wb") as stream:
        stream.write(b"[")
        for _ in range(1300):
            stream.write(b"{}," * 100_000)
        stream.write(b"{}]")


def many_cells(file):
    """A small gzip of a table with many empty cells."""
    with gzip.open(file, "wb") as stream:
        stream.write(b"a,b,c\n")
        for _ in range(400):
            stream.write(b",,\n" * 300_000)


def listlike_cell(file):
    """A cell of 400 KB that looks like a list again and again."""
    row = {
        "system": "A",
        "dialog": "1",
        "response": "x",
        "context": "[" + ", ' nan" * 80_000,
    }
    file.write_text(
        json.dumps(row) + "\n" + json.dumps({**row, "context": "[" + "a," * 200_000})
    )


def long_lines(file):
    """Lines on which patterns could go back and forth."""
    lines = [
        "1" * 200_000,
        "[" + "1:" * 100_000,
        "a" * 200_000 + ":",
        "*" * 200_000 + " a: b",
    ]
    lines += ["User: " + "\u200e<" * 100_000, "Bot: " + " " * 200_000 + "<"]
    file.write_text("\n".join(lines * 5))


def long_whatsapp(file):
    """A chat of WhatsApp with a message that marks of edits could be sought in for long."""
    start = "[05/03/2025, 10:14:33] "
    lines = [
        f"{start}Mira: " + " " * 300_000 + "<",
        f"{start}Ada: " + "<attached: " * 50_000,
    ]
    file.write_text("\n".join(lines))


def workbook(file, sheet, strings):
    """A workbook of one sheet, as small as its reader allows."""
    uri = "http://schemas.openxmlformats.org"
    main_uri = f'xmlns="{uri}/spreadsheetml/2006/main"'
    rel = f"{uri}/officeDocument/2006/relationships"
    links = f'xmlns="{uri}/package/2006/relationships"><Relationship Id="r" Type="{rel}'
    text = (
        f'<Relationship Id="s" Type="{rel}/sharedStrings" Target="sharedStrings.xml"/>'
    )
    parts = {
        "_rels/.rels": f'<Relationships {links}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook {main_uri} xmlns:r="{rel}"><sheets><sheet name="a" '
        'sheetId="1" r:id="r"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships {links}/worksheet" '
        f'Target="worksheets/sheet1.xml"/>{text}</Relationships>',
        "xl/sharedStrings.xml": f"<sst {main_uri}>{strings}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {main_uri}><sheetData>{sheet}</sheetData>"
        "</worksheet>",
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def shared_text(file):
    """A text of a megabyte that ten thousand cells share."""
    rows = "".join(
        f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, 10_001)
    )
    workbook(file, rows, f"<si><t>{'x' * 2**20}</t></si>")


def far_cell(file):
    """Two cells, of which one stands in the last column of the last row."""
    near = '<row r="1"><c r="A1"><v>1</v></c></row>'
    workbook(file, near + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>', "")


def deep_json(file):
    """Lists within lists."""
    file.write_text("[" * 5_000_000)


def one_field_many_lists(file):
    """A record with many fields, each a list of messages."""
    messages = [{"role": "user", "content": "Hi"}]
    record = {f"f{number}": messages for number in range(20_000)}
    file.write_text(json.dumps([record] * 5))


def tree_with_many_branches(file):
    """A conversation of 20,000 utterances that answer the one before."""
    rows = []
    for number in range(20_000):
        parent = None if number == 0 else f"u{number - 1}"
        row = {
            "id": f"u{number}",
            "conversation_id": "c",
            "reply-to": parent,
            "timestamp": number,
        }
        speaker = ("user", "bot")[number % 2]
        rows.append(json.dumps({**row, "speaker": speaker, "text": f"text {number}"}))
    file.write_text("\n".join(rows))


def star_tree(file):
    """A conversation whose first utterance has 20,000 answers."""
    rows = []
    for number in range(20_000):
        parent = None if number == 0 else "u0"
        row = {
            "id": f"u{number}",
            "conversation_id": "c",
            "reply-to": parent,
            "timestamp": number,
        }
        speaker = "bot" if number else "user"
        rows.append(json.dumps({**row, "speaker": speaker, "text": f"text {number}"}))
    file.write_text("\n".join(rows))


def long_thread(file):
    """A log of requests of one thread, each with the whole history."""
    rows = []
    history = []
    for number in range(600):
        history.append({"role": "user", "content": f"question {number}"})
        rows.append({"messages": list(history), "response": f"answer {number}"})
        history.append({"role": "assistant", "content": f"answer {number}"})
    file.write_text("\n".join(map(json.dumps, rows)))


ATTACKS = {
    "repeated.parquet": repeated_text,
    "nested.parquet": nested_text,
    "objects.json.gz": many_objects,
    "cells.csv.gz": many_cells,
    "listlike.jsonl": listlike_cell,
    "lines.txt": long_lines,
    "whatsapp.txt": long_whatsapp,
    "shared.xlsx": shared_text,
    "far.xlsx": far_cell,
    "deep.json": deep_json,
    "fields.json": one_field_many_lists,
    "chain.jsonl": tree_with_many_branches,
    "star.jsonl": star_tree,
    "thread.jsonl": long_thread,
}


def limit_memory() -> None:
    """Keep an attack that comes through from taking the whole machine."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


def main() -> None:
    """Print a line per attack: the size of the file, CPU seconds, MB, what came of it."""
    print("file\tKB\tCPU seconds\tMB\toutcome")
    with tempfile.TemporaryDirectory() as folder:
        for name, write in ATTACKS.items():
            file = Path(folder, name)
            write(file)
            command = [sys.executable, "-c", READ, str(file)]
            run = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=120,
                preexec_fn=limit_memory,
            )
            line = run.stdout.strip() or run.stderr.strip().split("\n")[-1]
            print(f"{name}\t{file.stat().st_size // 1024}\t{line}", flush=True)


if __name__ == "__main__":
    main()
