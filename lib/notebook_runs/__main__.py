"""Command line: `python -m lib.notebook_runs [--profile public] [--only 03,08] [--force]`."""

from __future__ import annotations

import argparse
import logging
import sys

from lib import ROOT
from lib.notebook_runs.outputs import PROFILES, folder
from lib.notebook_runs.runner import Outcome, run_all


def main(arguments: list[str] | None = None) -> int:
    """Run notebooks and say where the tables and figures are; 0 when all went well."""
    parser = argparse.ArgumentParser(prog="python -m lib.notebook_runs", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, default="sample")
    parser.add_argument("--only", default="", help="numbers, separated by commas: 03,08")
    parser.add_argument("--force", action="store_true", help="also run what is up to date")
    chosen = parser.parse_args(arguments)
    logging.getLogger("papermill").setLevel(logging.ERROR)
    only = [number.strip() for number in chosen.only.split(",") if number.strip()]
    try:
        outcomes = run_all(chosen.profile, only or None, chosen.force)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    report(outcomes, chosen.profile)
    return 1 if any(o.status in ("failed", "not run") for o in outcomes) else 0


def report(outcomes: list[Outcome], profile: str) -> None:
    """Print one line per notebook, then the failures, then where the outputs are."""
    print()
    for outcome in outcomes:
        seconds = f"{outcome.seconds:6.1f} s" if outcome.status in ("ran", "failed") else " " * 8
        note = outcome.message if outcome.status == "not run" else ""
        print(f"{outcome.status:>10}  {seconds}  {outcome.notebook}  {note}".rstrip())
    for outcome in outcomes:
        if outcome.status == "failed":
            print(f"\nfailed: {outcome.message}")
    print()
    for kind, what in (("notebooks", "notebooks"), ("results", "tables"), ("figures", "figures")):
        path = folder(profile, kind)
        count = sum(1 for file in path.glob("[0-9][0-9]_*") if file.is_file())
        print(f"{count:4d} {what:9} in {path.relative_to(ROOT).as_posix()}/")
    if profile == "sample":
        print("These come from the synthetic sample: they show how, not what is true.")


if __name__ == "__main__":
    sys.exit(main())
