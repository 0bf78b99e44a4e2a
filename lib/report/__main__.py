"""Score your own chatbot: read a file of dialogs, and write a report of it as one page.

As `make` runs it:

  make report DIALOGS=chats.jsonl              one page: scores, what to fix, warnings
  make report A=old.jsonl B=new.jsonl          two versions, and which is better
  make report DIALOGS=chats.jsonl DRY=1        how the file is read, and stop
  make report DIALOGS=log.csv COLUMNS="speaker=from text=body" BOT=Ada
  make report DIALOGS=chats.jsonl RATE=40      a sheet for people to rate, drawn at random
  make report DIALOGS=chats.jsonl RATINGS=chats_rate40.xlsx
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
FORMATS = ("html", "md", "json")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lib.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "dialogs",
        nargs="+",
        help="files or folders: logs of dialogs, or one row per reply (DIALOGS=, or A= and B=)",
    )
    add(
        "--columns",
        nargs="*",
        type=_pair,
        default=[],
        metavar="OURS=YOURS",
        help='which column of the file is what: COLUMNS="speaker=from text=body dialog=ticket"; '
        "also response, context, system, time, id, reply_to, rating, rater; "
        "with a space in a name: COLUMNS=\"text='message body'\"",
    )
    add(
        "--override",
        action="append",
        type=_pair,
        default=[],
        metavar="NAME=VALUE",
        help="what not to guess; each is said in the dry run: BOT=Ada KIND=transcript "
        'ENCODING=cp1252 DELIMITER=";" DECIMAL=, SHEET=Chats SPLIT=gap:6h SPEAKERS=Ann,Bob '
        "MAX_MB=2000 (here: --override BOT=Ada)",
    )
    add(
        "--dry", action="store_true", help="say how the file was read, and stop (DRY=1)"
    )
    add(
        "--turns",
        help="write the turn table as Parquet, one row per reply, for the notebooks (OUT=)",
    )
    add(
        "--judge",
        default="",
        help="also CPDScore: packaged, or a model at OPENAI_BASE_URL (JUDGE=)",
    )
    add(
        "--judged",
        type=int,
        default=200,
        help="replies that the judge reads at most (JUDGED=)",
    )
    add(
        "--read",
        type=int,
        default=10_000,
        help="replies that encoder and EnDex read at most (READ=)",
    )
    add(
        "--rate",
        type=int,
        metavar="N",
        help="draw N dialogs of each version at random, write a sheet for up to three raters "
        "as .csv and .xlsx, and stop (RATE=40); with RATINGS= what is rated is filled in",
    )
    add("--scale", default="1-5", help="of the ratings, with RATE (SCALE=1-5)")
    add(
        "--predictor",
        default="",
        metavar="SCORE",
        help="with RATE: the score that may narrow the intervals; by default the first "
        "that agrees with people on public corpora (PREDICTOR=)",
    )
    add(
        "--ratings",
        help="the sheet with ratings, .csv, .xlsx or .ods; or one of each rater, "
        "RATINGS=ann.xlsx,ben.xlsx",
    )
    add("--key", help="the key of the sheet, where it is not beside the dialogs (KEY=)")
    add(
        "--drawn",
        choices=["random"],
        help="the answer where the report asks how rated dialogs were chosen (DRAWN=random)",
    )
    add(
        "--metrics",
        metavar="FILE",
        help="a Python file, or an installed module, that registers metrics of your own; they "
        "stand beside the others and decide nothing (METRICS=my_metrics.py)",
    )
    add(
        "--models",
        default="",
        metavar="WORDS",
        help='models to score with, MODELS="bertscore:FacebookAI/roberta-large unieval"; '
        "downloaded where they are not here; they decide nothing",
    )
    add(
        "--without-texts",
        action="store_true",
        help="leave all replies and utterances out, so that the page may be shared (TEXTS=0)",
    )
    add(
        "--yes",
        action="store_true",
        help="send texts to a judge on another machine without asking (YES=1)",
    )
    add(
        "--history",
        metavar="FOLDER",
        help="keep this report's JSON in a folder, and draw the releases in it (HISTORY=folder)",
    )
    add(
        "--label",
        default="",
        help="the release's name there; by default its versions and the day of the newest dialog "
        "(LABEL=v1.2)",
    )
    add("--out", help="file to write (PAGE=; default: build/report/<name>.html)")
    add(
        "--format",
        choices=FORMATS,
        default="html",
        help="a page (default), Markdown or JSON (FORMAT=)",
    )
    add(
        "--fail-if",
        metavar="VERDICT",
        help='exit with 3 where this holds, such as FAIL_IF="b worse" (shown by the data), or '
        'FAIL_IF="b worse by .2" (unless the interval of every rating rules such a loss out)',
    )
    return parser


def _write_report(args: argparse.Namespace) -> int:
    # Imported here, so that --help needs nothing.
    import matplotlib
    import seaborn as sns

    from lib import ROOT
    from lib.data.storage import atomic_write
    from lib.report import history, page
    from lib.report.dialogs import import_details, read_versions
    from lib.report.rating_study import ratings_of_file
    from lib.report.result import build_report
    from lib.report.scores import import_metrics
    from lib.report.verdict import condition_holds, read_condition

    overrides = {guess.lower(): value for guess, value in args.override}
    turns = read_versions(args.dialogs, dict(args.columns), overrides)
    print(import_details(turns), flush=True)
    if args.turns:
        with atomic_write(args.turns) as unfinished:
            turns.to_parquet(unfinished, index=False)
    if args.dry:
        return 0
    rated = _read_ratings(args, turns) if args.ratings else ratings_of_file(turns)
    if rated is not None and args.drawn == "random":
        rated = replace(rated, drawn_at_random=True)
    if args.rate is not None:
        return _write_sheets(args, turns, rated)
    if args.fail_if:  # an impossible condition is an error before the work
        read_condition(args.fail_if, turns["system"].unique()[1:].tolist())

    folder = Path(args.history) if args.history else None
    if folder:  # so are a report without a name, and one that cannot be read
        release = history.name_release(turns, args.label)
        history.read_history(folder)

    if args.metrics:
        import_metrics(args.metrics)
    asked_models = _provide_models(args.models)
    _ask_before_sending(args, n_replies=min(len(turns), args.judged))
    report = build_report(
        turns,
        max_replies=args.read,
        judge=args.judge,
        max_judged=args.judged,
        rated=rated,
        asked=asked_models,
    )
    paths = [Path(path).resolve() for path in args.dialogs]
    names = [path.name for path in paths]
    # Versions of files with one name are called A and B: say which file each is.
    if len(set(names)) < len(names):
        names = [
            f"{version} ({path.parent.name}/{path.name})"
            for version, path in zip(turns["system"].unique(), paths, strict=True)
        ]
    title = f"Report on {' and '.join(names)}"
    name = f"{'_'.join(path.stem for path in paths)}.{args.format}"
    out = Path(args.out or ROOT / "build" / "report" / name)
    matplotlib.use("agg")
    sns.set_theme("notebook", "whitegrid", "colorblind", font_scale=0.9)
    render = {
        "html": page.render_html,
        "md": page.render_markdown,
        "json": page.render_json,
    }
    texts = not args.without_texts
    if folder:
        written = page.render_json(report, title, texts)
        print(f"kept: {history.keep_report(folder, written, release)}")
        report = replace(report, history=history.read_history(folder))
    text = render[args.format](report, title, texts=texts)
    with atomic_write(out) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    print(f"report: {out}")
    unanswered = report.warnings[report.warnings["topic"] == "drawn at random?"]
    for finding in unanswered["finding"]:
        print(f"question: {finding}.")
    for row in report.verdicts[:10]:
        print(f"{row.version} against {row.against}: {row.verdict}. {row.explanation}")
        if row.error_rate:
            print(row.error_rate)
    if not args.fail_if:
        return 0
    stops = condition_holds(report.verdicts, args.fail_if, report.differences)
    outcome = "holds: exit code 3" if stops else "does not hold"
    print(f"FAIL_IF {args.fail_if!r} {outcome}")
    return 3 if stops else 0


def _provide_models(words: str) -> list:
    """The models that are asked for and available.

    `provide_models` prints to stderr why another one is left out.

    Raises:
        DataError: an unknown metric or model.
    """
    if not words:
        return []
    from lib.data import DataError
    from lib.metrics import provide_models

    try:
        return provide_models(words)
    except ValueError as error:
        raise DataError(str(error), fix="see --help for the form of MODELS") from error


def _ask_before_sending(args: argparse.Namespace, n_replies: int) -> None:
    """Say how many texts go to which host, and ask, where the judge is on another machine."""
    from lib.data import DataError

    if args.judge in ("", "packaged"):
        return
    url = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com"
    host = urlsplit(url).hostname
    if host in LOCAL_HOSTS:
        return
    print(
        f"judge: up to {n_replies} replies with their contexts go to {host}.",
        flush=True,
    )
    if args.yes:
        return
    if sys.stdin.isatty() and input("Send them? y/N ").strip().lower() in ("y", "yes"):
        return
    raise DataError("nothing was sent to the judge", fix="answer y, or say YES=1")


def _sheet_base(args: argparse.Namespace) -> Path:
    """Where the sheets and keys of these dialogs are: beside them, with their names."""
    paths = [Path(path).resolve() for path in args.dialogs]
    name = "_".join(path.name.partition(".")[0] for path in paths)
    return paths[0].parent / name


def _read_ratings(args: argparse.Namespace, turns):
    """The ratings of the sheet that came back (`rating_study.DialogRatings`)."""
    from lib.report import rating_sheets, rating_study

    sheets = [Path(args.ratings)]
    if not sheets[0].is_file():
        sheets = [Path(name.strip()) for name in args.ratings.split(",")]
    path = Path(args.key or rating_sheets.find_sheet_key(sheets[0], _sheet_base(args)))
    key = rating_sheets.read_sheet_key(path, turns)
    ratings = rating_sheets.read_rating_sheets(sheets, key, turns)
    order = rating_sheets.draw_order(turns)
    rated = rating_study.ratings_of_sheet(ratings, key, order)
    print(
        f"ratings read: {len(ratings)}, of {len(rated.means)} dialogs by "
        f"{ratings['rater'].nunique()} rater(s); {len(key.dialogs)} were drawn; key: {path}"
    )
    return rated


def _write_sheets(args: argparse.Namespace, turns, rated) -> int:
    """Write the sheets to rate and their key, and say what to do with them."""
    from lib.report import rating_sheets

    if args.predictor:
        rating_sheets.check_predictor(args.predictor, turns)
    base = Path(f"{_sheet_base(args)}_rate{args.rate}")
    if args.out:
        base = Path(args.out).with_suffix("")
    summary = rating_sheets.write_rating_sheets(
        turns,
        base,
        per_version=args.rate,
        file=", ".join(Path(path).name for path in args.dialogs),
        scale=rating_sheets.parse_scale(args.scale),
        predictor=args.predictor,
        ratings=rated.ratings if args.ratings else None,
    )
    for row in summary.to_dict("records"):
        how = ", in pairs with the same opening" if row["paired"] else ""
        print(
            f"drawn at random{how}: {row['drawn']} of {row['dialogs']} dialogs "
            f"of {row['system']}"
        )
        if row["left_out"]:
            print(
                f"  {row['left_out']} more have an opening that is not in every version"
            )
    print(f"to rate: {base}.xlsx, or the same as {base}.csv")
    print(f"key: {base}_key.json. Keep it, and do not give it to the raters")
    names = " ".join(args.dialogs)
    dialog_options = f"DIALOGS={names}"
    if len(args.dialogs) == 2:
        dialog_options = f"A={args.dialogs[0]} B={args.dialogs[1]}"
    print(f"when the sheet is back: make report {dialog_options} RATINGS={base}.xlsx")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Write the report and print where it is.

    Returns 0; 2 for an error in the user's input, 1 for any other, and 3 where `--fail-if` holds.
    """
    args = _parser().parse_args(arguments)
    print("reading", *args.dialogs, file=sys.stderr, flush=True)
    from lib.data import DataError

    try:
        return _write_report(args)
    except DataError as error:
        code = 2
        message = str(error)
    except OSError as error:
        code = 1
        message = f"{error}\nWhat to do: make room, or choose another file: PAGE=path"
    except Exception as error:  # the command ends with a message, whatever went wrong
        code = 1
        message = f"{type(error).__name__}: {error}"
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
