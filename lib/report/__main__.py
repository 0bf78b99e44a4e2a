"""Score your own chatbot: run notebook 11 on a file of dialogs and export it as one page.

python -m lib.report dialogs.csv [--dry] [--turns turns.parquet] [--given bot=Ada]
python -m lib.report old.jsonl new.jsonl [--format json] [--fail-if "b worse"]
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
from lib.data import DataError
from lib.data.storage import written_whole
from lib.report.dialogs import read, reading
from lib.report.page import to_html, to_json, to_markdown
from lib.report.verdict import VERDICT, fails

NOTEBOOK = ROOT / "notebooks" / "11_score_your_own_chatbot.ipynb"
FORMATS = {"html": to_html, "md": to_markdown, "json": to_json}


def write_page(
    dialogs: Sequence[str],
    columns: Mapping[str, str] | None = None,
    out: Path | str | None = None,
    given: Mapping[str, str] | None = None,
    form: str = "html",
) -> tuple[Path, pd.DataFrame]:
    """Run notebook 11 on `dialogs` and write the page; returns where it is, and the verdicts.

    Args:
        dialogs: a file or folder, or two to compare (see `read`).
        columns: our column name -> the file's.
        given: what `read` should not guess.
        out: the page; by default `build/report/<name of the file>.html`.
        form: "html", "md" or "json".

    Raises:
        DataError: a fault in the file.
        papermill.PapermillExecutionError: a fault in the notebook.
    """
    paths = [Path(path).resolve() for path in dialogs]
    name = "_".join(path.stem for path in paths)
    out = Path(out or ROOT / "build" / "report" / f"{name}.{form}")
    parameters = {"DIALOGS": list(map(str, paths)), "COLUMNS": dict(columns or {}),
                  "GIVEN": dict(given or {})}  # fmt: skip
    how = {"kernel_name": "python3", "cwd": ROOT, "stderr_file": sys.stderr}  # shows what it scores
    ran = papermill.execute_notebook(NOTEBOOK, None, parameters, **how)
    with written_whole(out) as unfinished:
        page = FORMATS[form](ran, f"Report on {' and '.join(path.name for path in paths)}")
        unfinished.write_text(page, encoding="utf-8")
    calls = json.loads(to_json(ran, ""))["tables"].get(VERDICT, [])
    return out, pd.DataFrame(calls, columns=["version", "against", "verdict", "said"])


def main(arguments: list[str] | None = None) -> int:
    """Write the page and say where it is; 0, 1 or 2 for a fault, 3 where `--fail-if` holds."""
    parser = argparse.ArgumentParser(prog="python -m lib.report", description=__doc__)
    add = parser.add_argument
    add("dialogs", nargs="+", help="files or folders: logs of dialogs, or one row per reply")
    add("--columns", nargs="*", default=[], metavar="OURS=THEIRS", help="such as response=Reply")
    add("--given", action="append", default=[], metavar="GUESS=VALUE", help="such as bot=Ada")
    add("--dry", action="store_true", help="say what was read, and stop")
    add("--turns", help="write what was read as Parquet, one row per reply, for the notebooks")
    add("--out", help="file to write (default: build/report/<name>.html)")
    add("--format", choices=FORMATS, default="html", help="a page (default), Markdown or JSON")
    add("--fail-if", metavar="VERDICT", help="such as 'b worse': then exit with 3")
    chosen = parser.parse_args(arguments)
    if not all("=" in pair for pair in chosen.columns + chosen.given):
        parser.error("--columns and --given take pairs such as response=Reply")
    columns, given = (dict(p.split("=", 1) for p in ps) for ps in (chosen.columns, chosen.given))
    given = {guess.lower(): value for guess, value in given.items()}
    print("reading", *chosen.dialogs, file=sys.stderr, flush=True)
    try:
        turns = read(chosen.dialogs, columns, given)
        print(reading(turns), flush=True)
        if chosen.turns:
            with written_whole(chosen.turns) as unfinished:
                turns.to_parquet(unfinished, index=False)
        if chosen.dry:
            return 0
        if chosen.fail_if:  # one that cannot be is told before the work
            fails(
                pd.DataFrame({"version": turns["system"].unique()[1:], "verdict": ""}),
                chosen.fail_if,
            )
        page, verdicts = write_page(chosen.dialogs, columns, chosen.out, given, chosen.format)
        print(f"report: {os.path.relpath(page)}")
        for row in verdicts.head(10).itertuples():
            print(f"{row.version} against {row.against}: {row.verdict}. {row.said}")
        return 3 if chosen.fail_if and fails(verdicts, chosen.fail_if) else 0
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"error: {error}\nWhat to do: make room, or name another place: --out", file=sys.stderr
        )
        return 1
    except papermill.PapermillExecutionError as error:
        print(f"error: {error.ename}: {error.evalue}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
