"""Command line: `python -m lib.notebook_runs [--profile hub] [--only 03,09] [--models bleurt]`."""

import argparse
import logging
import os
import sys

from lib import ROOT
from lib.notebook_runs import PROFILES, profile_folder
from lib.notebook_runs.runner import run_all


def main(arguments: list[str] | None = None) -> int:
    """Run notebooks and say where the tables and figures are; 0 when all went well."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.notebook_runs", description=__doc__
    )
    parser.add_argument("--profile", choices=PROFILES, default="sample")
    parser.add_argument(
        "--only", default="", help="numbers, separated by commas: 03,09"
    )
    parser.add_argument(
        "--force", action="store_true", help="also run what is up to date"
    )
    parser.add_argument(
        "--models",
        default="",
        help='"all", or metrics with models: bertscore:FacebookAI/roberta-large unieval',
    )
    parser.add_argument(
        "--dry",
        action="store_true",
        help="show the models that are asked for, and stop",
    )
    options = parser.parse_args(arguments)
    if options.models and options.profile == "public":
        # What the public profile writes is committed, and made with the packaged models.
        print("With MODELS the public corpora are those of the profile hub.")
        options.profile = "hub"
    if options.profile == "hub" and not options.models:
        options.models = "all"
    logging.getLogger("papermill").setLevel(logging.ERROR)
    only = [number.strip() for number in options.only.split(",") if number.strip()]
    try:
        models = ""
        if options.models or options.dry:
            from lib.metrics import provide_models  # takes seconds to import

            had = provide_models(options.models, dry=options.dry)
            models = " ".join(map(str, had))
        if options.dry:
            return 0
        outcomes = run_all(options.profile, only, options.force, models)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        # Without waiting for the threads; the kernels end with their parent.
        os._exit(130)
    for outcome in outcomes:
        if outcome.message:
            print(f"\n{outcome.status}: {outcome.notebook}: {outcome.message}")
    for kind in ("notebooks", "results", "figures"):
        print(
            f"{kind:9} in {profile_folder(options.profile, kind).relative_to(ROOT).as_posix()}/"
        )
    if options.profile == "sample":
        print("These come from the synthetic sample: they show how, not what is true.")
    return int(any(outcome.message for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
