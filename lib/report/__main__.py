"""Score your own chatbot: run notebook 11 on a file of dialogs and export it as one page.

python -m lib.report dialogs.csv [--format json] [--fail-if "b worse"]
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import papermill

from lib import ROOT
from lib.data import DataError, written_whole
from lib.report.dialogs import column_names, read, suggest_columns
from lib.report.page import to_html, to_json, to_markdown
from lib.report.verdict import VERDICT, fails

NOTEBOOK = ROOT / "notebooks" / "11_score_your_own_chatbot.ipynb"
FORMATS = {"html": to_html, "md": to_markdown, "json": to_json}


def write_page(
    dialogs: Path | str,
    columns: Mapping[str, str] | None = None,
    out: Path | str | None = None,
    form: str = "html",
) -> tuple[Path, pd.DataFrame]:
    """Run notebook 11 on `dialogs` and write the page; returns where it is, and the verdicts.

    The file is read once before anything else, so that a fault in it is reported at once.

    Args:
        dialogs: CSV, TSV, JSONL, JSON or Parquet file (see `read`).
        columns: our column name -> the file's.
        out: the page; by default `build/report/<name of the file>.html`.
        form: "html", "md" or "json".

    Raises:
        DataError: a fault in the file.
        papermill.PapermillExecutionError: a fault in the notebook.
    """
    dialogs = Path(dialogs).resolve()
    read(dialogs, columns)
    out = Path(out or ROOT / "build" / "report" / f"{dialogs.stem}.{form}")
    parameters = {"DIALOGS": str(dialogs), "COLUMNS": dict(columns or {})}
    how = {"kernel_name": "python3", "cwd": ROOT, "stderr_file": sys.stderr}  # shows what it scores
    ran = papermill.execute_notebook(NOTEBOOK, None, parameters, **how)
    with written_whole(out) as unfinished:
        page = FORMATS[form](ran, f"Report on {dialogs.name}")
        unfinished.write_text(page, encoding="utf-8")
    calls = json.loads(to_json(ran, ""))["tables"].get(VERDICT, [])
    return out, pd.DataFrame(calls, columns=["version", "against", "verdict", "said"])


def main(arguments: list[str] | None = None) -> int:
    """Write the page and say where it is; 0, 1 or 2 for a fault, 3 where `--fail-if` holds."""
    parser = argparse.ArgumentParser(prog="python -m lib.report", description=__doc__)
    add = parser.add_argument
    add("dialogs", help="CSV, TSV, JSONL, JSON or Parquet file, one row per reply")
    add("--columns", nargs="*", default=[], metavar="OURS=THEIRS", help="such as response=Reply")
    add("--accept", action="store_true", help="take the column names that the error would propose")
    add("--out", help="file to write (default: build/report/<name>.html)")
    add("--format", choices=FORMATS, default="html", help="a page (default), Markdown or JSON")
    add("--fail-if", metavar="VERDICT", help="such as 'b worse': then exit with 3")
    chosen = parser.parse_args(arguments)
    if not all("=" in pair for pair in chosen.columns):
        parser.error("--columns takes pairs such as response=Reply")
    columns = dict(pair.split("=", 1) for pair in chosen.columns)
    if chosen.accept and not columns:
        columns = suggest_columns(column_names(Path(chosen.dialogs)))
    try:
        page, verdicts = write_page(chosen.dialogs, columns, chosen.out, chosen.format)
        print(f"report: {os.path.relpath(page)}")
        for row in verdicts.head(10).itertuples():
            print(f"{row.version} against {row.against}: {row.verdict}. {row.said}")
        return 3 if chosen.fail_if and fails(verdicts, chosen.fail_if) else 0
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        if "names in the file suggest" in str(error):
            print("To take them: --accept (make report: ACCEPT=1)", file=sys.stderr)
        return 2
    except papermill.PapermillExecutionError as error:
        print(f"error: {error.ename}: {error.evalue}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
