"""Score your own chatbot: run notebook 11 on a file of dialogs and export it as one page.

python -m lib.report dialogs.csv [--dry] [--turns turns.parquet] [--given bot=Ada]
python -m lib.report old.jsonl new.jsonl [--format json] [--fail-if "b worse"]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import select_figure_formats
from IPython.utils.capture import capture_output

from lib import ROOT
from lib.data import DataError
from lib.data.storage import atomic_write, read_json
from lib.report.dialogs import import_details, read_dialogs
from lib.report.page import notebook_tables, to_html, to_json, to_markdown
from lib.report.verdict import COLUMNS, VERDICT, condition_holds

NOTEBOOK = ROOT / "notebooks" / "11_score_your_own_chatbot.ipynb"
FORMATS = {"html": to_html, "md": to_markdown, "json": to_json}


def executed(parameters: dict[str, Any]) -> dict[str, Any]:
    """Notebook 11 with the outputs of its cells, run in this process: a kernel would load all anew.

    Raises:
        Exception: whatever a cell raises, as it is.
    """
    shell, notebook = InteractiveShell.instance(), read_json(NOTEBOOK)
    matplotlib.use("agg")
    shell.display_formatter.active_types = ["text/plain", "image/png"]
    select_figure_formats(shell, ["png"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            with capture_output(stderr=False) as said:  # progress shows there
                shell.run_cell("".join(cell["source"])).raise_error()
            printed = [{"name": "stdout", "text": said.stdout}] if said.stdout else []
            shown = [{"data": each.data, "metadata": each.metadata} for each in said.outputs]
            cell["outputs"] = printed + shown
        if "parameters" in cell["metadata"].get("tags", []):
            shell.user_ns.update(parameters)
    return notebook


def _pair(text: str) -> tuple[str, str]:
    ours, theirs = text.split("=", 1)
    return ours, theirs


def _report(chosen: argparse.Namespace) -> int:
    given = {guess.lower(): value for guess, value in chosen.given}
    turns = read_dialogs(chosen.dialogs, dict(chosen.columns), given)
    print(import_details(turns), flush=True)
    if chosen.turns:
        with atomic_write(chosen.turns) as unfinished:
            turns.to_parquet(unfinished, index=False)
    if chosen.dry:
        return 0
    if stop := chosen.fail_if:  # one that cannot be is told before the work
        condition_holds(
            pd.DataFrame({"version": turns["system"].unique()[1:], "verdict": ""}), stop
        )
    paths = [Path(path).resolve() for path in chosen.dialogs]
    asked = {"JUDGE": chosen.judge, "JUDGED": chosen.judged, "READ": chosen.read}
    ran = executed({"DIALOGS": [turns], **asked})
    name = f"{'_'.join(path.stem for path in paths)}.{chosen.format}"
    out = Path(chosen.out or ROOT / "build" / "report" / name)
    title = f"Report on {' and '.join(path.name for path in paths)}"
    with atomic_write(out) as unfinished:
        unfinished.write_text(FORMATS[chosen.format](ran, title), encoding="utf-8")
    print(f"report: {out}")
    verdicts = pd.DataFrame(notebook_tables(ran).get(VERDICT, []), columns=COLUMNS)
    for row in verdicts.head(10).itertuples():
        print(f"{row.version} against {row.against}: {row.verdict}. {row.said}")
    return 3 if stop and condition_holds(verdicts, stop) else 0


def main(arguments: list[str] | None = None) -> int:
    """Write the page and say where it is; 0, 1 or 2 for a fault, 3 where `--fail-if` holds."""
    parser = argparse.ArgumentParser(prog="python -m lib.report", description=__doc__)
    add = parser.add_argument
    add("dialogs", nargs="+", help="files or folders: logs of dialogs, or one row per reply")
    add("--columns", nargs="*", type=_pair, default=[], help="such as response=Reply")
    add("--given", action="append", type=_pair, default=[], help="what is guessed, such as bot=Ada")
    add("--dry", action="store_true", help="say what was read, and stop")
    add("--turns", help="write what was read as Parquet, one row per reply, for the notebooks")
    add("--judge", default="", help="also CPDScore: packaged, or a model at OPENAI_BASE_URL")
    add("--judged", type=int, default=200, help="replies that the judge reads at most")
    add("--read", type=int, default=10_000, help="replies that encoder and EnDex read at most")
    add("--out", help="file to write (default: build/report/<name>.html)")
    add("--format", choices=FORMATS, default="html", help="a page (default), Markdown or JSON")
    add("--fail-if", metavar="VERDICT", help="such as 'b worse': then exit with 3")
    chosen = parser.parse_args(arguments)
    print("reading", *chosen.dialogs, file=sys.stderr, flush=True)
    try:
        return _report(chosen)
    except DataError as error:
        code, said = 2, str(error)
    except OSError as error:
        code, said = 1, f"{error}\nWhat to do: make room, or name another place: --out"
    except Exception as error:  # of a cell, whatever it met
        code, said = 1, f"{type(error).__name__}: {error}"
    print(f"error: {said}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
