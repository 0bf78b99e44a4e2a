"""Score your own chatbot: run notebook 11 on a file of dialogs, or two, and export it as one page.

python -m lib.report dialogs.csv [--dry] [--turns turns.parquet] [--given bot=Ada ...]
python -m lib.report old.csv new.csv [--format json] [--fail-if "b worse"]
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import papermill

from lib import ROOT
from lib.data import DataError, written_whole
from lib.report.dialogs import read, reading
from lib.report.page import to_html, to_json, to_markdown
from lib.report.verdict import VERDICT, fails

NOTEBOOK = ROOT / "notebooks" / "11_score_your_own_chatbot.ipynb"
FORMATS = {"html": to_html, "md": to_markdown, "json": to_json}


def write_page(
    dialogs: Sequence[Path | str],
    columns: Mapping[str, str],
    given: Mapping[str, str],
    out: Path | str | None = None,
    form: str = "html",
) -> tuple[Path, pd.DataFrame]:
    """Run notebook 11 on `dialogs` and write the page; returns where it is, and the verdicts.

    Args:
        dialogs: a file or folder, or several to compare (see `read`).
        columns: our column name -> the file's.
        given: what `read` should not guess.
        out: the page; by default `build/report/<name of the file>.html`.
        form: "html", "md" or "json".

    Raises:
        DataError: a fault in the file.
        papermill.PapermillExecutionError: a fault in the notebook.
    """
    paths = [Path(path).resolve() for path in dialogs]
    out = Path(out or ROOT / "build/report" / f"{'-'.join(path.stem for path in paths)}.{form}")
    several = [str(path) for path in paths] if len(paths) > 1 else str(paths[0])
    parameters = {"DIALOGS": several, "COLUMNS": dict(columns), "GIVEN": dict(given)}
    how = {"kernel_name": "python3", "cwd": ROOT, "stderr_file": sys.stderr}  # shows what it scores
    ran = papermill.execute_notebook(NOTEBOOK, None, parameters, **how)
    title = f"Report on {' and '.join(path.name for path in paths)}"
    with written_whole(out) as unfinished:
        unfinished.write_text(FORMATS[form](ran, title), encoding="utf-8")
    verdicts = json.loads(to_json(ran, title))["tables"].get(VERDICT, [])
    return out, pd.DataFrame(verdicts, columns=["version", "against", "verdict", "said"])


def main(arguments: list[str] | None = None) -> int:
    """Write the page and say where it is; 1 or 2 for a fault, 3 where `--fail-if` holds, else 0."""
    parser = argparse.ArgumentParser(prog="python -m lib.report", description=__doc__)
    add = parser.add_argument
    add("dialogs", nargs="+", help="file or folder: a log of dialogs, or a table of replies")
    add("--columns", nargs="*", default=[], metavar="OURS=THEIRS", help="such as response=Reply")
    add("--given", action="append", default=[], metavar="GUESS=VALUE", help="such as bot=Ada")
    add("--accept", action="store_true", help="take the column names that the error would propose")
    add("--dry", action="store_true", help="say what was read, and stop")
    add("--turns", help="write what was read as Parquet, one row per reply, for the notebooks")
    add("--out", help="file to write (default: build/report/<name>.html)")
    add("--format", choices=FORMATS, default="html", help="a page (default), Markdown or JSON")
    add("--fail-if", metavar="VERDICT", help="such as 'b worse': then exit with 3")
    chosen = parser.parse_args(arguments)
    if not all("=" in pair for pair in chosen.columns + chosen.given):
        parser.error("--columns and --given take pairs such as response=Reply")
    columns, given = (dict(p.split("=", 1) for p in ps) for ps in (chosen.columns, chosen.given))
    dialogs = chosen.dialogs if len(chosen.dialogs) > 1 else chosen.dialogs[0]
    try:
        try:
            turns = read(dialogs, columns, given)
        except DataError as error:
            columns = getattr(error, "suggested", {}) if chosen.accept else {}
            if not columns:
                raise
            turns = read(dialogs, columns, given)
        print(reading(turns), flush=True)
        if chosen.turns:
            with written_whole(chosen.turns) as unfinished:
                turns.to_parquet(unfinished, index=False)
        if chosen.dry:
            return 0
        if chosen.fail_if:  # a condition that is none is told before the work
            others = pd.DataFrame({"version": turns["system"].unique()[1:], "verdict": ""})
            fails(others, chosen.fail_if)
        page, verdicts = write_page(chosen.dialogs, columns, given, chosen.out, chosen.format)
        print(f"report: {os.path.relpath(page)}")
        for row in verdicts.head(10).itertuples():
            print(f"{row.version} against {row.against}: {row.verdict}. {row.said}")
        return 3 if chosen.fail_if and fails(verdicts, chosen.fail_if) else 0
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        if "names in the file suggest" in str(error):
            print("To take them: --accept (make report: ACCEPT=1)", file=sys.stderr)
        return 2
    except OSError as error:
        way_out = "free space there, or name another place: --out (make report: PAGE=...)"
        print(f"error: cannot write: {error}.\nWhat to do: {way_out}", file=sys.stderr)
        return 1
    except papermill.PapermillExecutionError as error:
        print(f"error: {error.ename}: {error.evalue}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
