"""Command line: `python -m lib.report dialogs.csv [--columns response=Reply ...]`."""

import argparse
import os
import sys
from pathlib import Path

import papermill

from lib.data.dialogues import DataError
from lib.report.page import write_page
from lib.report.reading import column_names, suggest_columns


def main(arguments: list[str] | None = None) -> int:
    """Write the report page and say where it is; returns 0, or 2 for a fault in the file."""
    parser = argparse.ArgumentParser(prog="python -m lib.report", description=__doc__)
    parser.add_argument("dialogs", help="CSV, TSV, JSONL, JSON or Parquet file, one row per reply")
    parser.add_argument(
        "--columns", nargs="*", default=[], metavar="OURS=THEIRS", help="for example response=Reply"
    )
    parser.add_argument(
        "--accept", action="store_true", help="take the column names that the error would propose"
    )
    parser.add_argument("--out", help="HTML file (default: build/report/<name>.html)")
    parser.add_argument("--code", action="store_true", help="show the code on the page")
    chosen = parser.parse_args(arguments)
    if not all("=" in pair for pair in chosen.columns):
        parser.error("--columns takes pairs such as response=Reply")
    columns = dict(pair.split("=", 1) for pair in chosen.columns)
    if chosen.accept and not columns:
        columns = suggest_columns(column_names(Path(chosen.dialogs)))
    try:
        page = write_page(chosen.dialogs, columns, chosen.out, chosen.code)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        if "names in the file suggest" in str(error):
            print("To take them: --accept (make report: ACCEPT=1)", file=sys.stderr)
        return 2
    except papermill.PapermillExecutionError as error:
        print(f"error: {error.ename}: {error.evalue}", file=sys.stderr)
        return 1
    print(f"report: {os.path.relpath(page, Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
