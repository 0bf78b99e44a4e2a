"""Score your own chatbot: read a file of dialogs, and write a report of it as one page.

python -m lib.report dialogs.csv [--dry] [--turns turns.parquet] [--override bot=Ada]
python -m lib.report old.jsonl new.jsonl [--format json] [--fail-if "b worse"]
"""

import argparse
import sys
from pathlib import Path

import matplotlib
import seaborn as sns

from lib import ROOT
from lib.data import DataError
from lib.data.storage import atomic_write
from lib.report.dialogs import import_details, read_versions
from lib.report.page import render_html, render_json, render_markdown
from lib.report.result import build_report
from lib.report.verdict import Verdict, condition_holds

FORMATS = {"html": render_html, "md": render_markdown, "json": render_json}


def _pair(text: str) -> tuple[str, str]:
    key, value = text.split("=", 1)
    return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lib.report", description=__doc__)
    add = parser.add_argument
    add(
        "dialogs",
        nargs="+",
        help="files or folders: logs of dialogs, or one row per reply",
    )
    add("--columns", nargs="*", type=_pair, default=[], help="such as response=Reply")
    add(
        "--override",
        action="append",
        type=_pair,
        default=[],
        help="a guess, such as bot=Ada",
    )
    add("--dry", action="store_true", help="say how the file was read, and stop")
    add(
        "--turns",
        help="write the turn table as Parquet, one row per reply, for the notebooks",
    )
    add(
        "--judge",
        default="",
        help="also CPDScore: packaged, or a model at OPENAI_BASE_URL",
    )
    add("--judged", type=int, default=200, help="replies that the judge reads at most")
    add(
        "--read",
        type=int,
        default=10_000,
        help="replies that encoder and EnDex read at most",
    )
    add("--out", help="file to write (default: build/report/<name>.html)")
    add(
        "--format",
        choices=FORMATS,
        default="html",
        help="a page (default), Markdown or JSON",
    )
    add("--fail-if", metavar="VERDICT", help="such as 'b worse': then exit with 3")
    return parser


def _write_report(args: argparse.Namespace) -> int:
    overrides = {guess.lower(): value for guess, value in args.override}
    turns = read_versions(args.dialogs, dict(args.columns), overrides)
    print(import_details(turns), flush=True)
    if args.turns:
        with atomic_write(args.turns) as unfinished:
            turns.to_parquet(unfinished, index=False)
    if args.dry:
        return 0
    if args.fail_if:  # an impossible condition is an error before the work
        compared = [Verdict(version) for version in turns["system"].unique()[1:]]
        condition_holds(compared, args.fail_if)

    report = build_report(
        turns, max_replies=args.read, judge=args.judge, max_judged=args.judged
    )
    paths = [Path(path).resolve() for path in args.dialogs]
    title = f"Report on {' and '.join(path.name for path in paths)}"
    name = f"{'_'.join(path.stem for path in paths)}.{args.format}"
    out = Path(args.out or ROOT / "build" / "report" / name)
    matplotlib.use("agg")
    sns.set_theme("notebook", "whitegrid", "colorblind", font_scale=0.9)
    text = FORMATS[args.format](report, title)
    with atomic_write(out) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    print(f"report: {out}")
    for row in report.verdicts[:10]:
        print(f"{row.version} against {row.against}: {row.verdict}. {row.explanation}")
    return 3 if args.fail_if and condition_holds(report.verdicts, args.fail_if) else 0


def main(arguments: list[str] | None = None) -> int:
    """Write the report and print where it is.

    Returns 0; 2 for an error in the user's input, 1 for any other, and 3 where `--fail-if` holds.
    """
    args = _parser().parse_args(arguments)
    print("reading", *args.dialogs, file=sys.stderr, flush=True)
    try:
        return _write_report(args)
    except DataError as error:
        code = 2
        message = str(error)
    except OSError as error:
        code = 1
        message = f"{error}\nWhat to do: make room, or choose another file: --out"
    except Exception as error:  # the command ends with a message, whatever went wrong
        code = 1
        message = f"{type(error).__name__}: {error}"
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
