"""Pairs of a real reply or dialog and the same made worse in one known way (Zhang et al. 2024)."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lib.data.corpora import account, with_account
from lib.data.storage import DATA, path, read_json, read_lines, registry

COLUMNS = ["perturbation", "dimension", "level", "context", "original", "perturbed"]


def robustness_pairs(sample: bool = False) -> pd.DataFrame:
    """Read texts beside the same texts after a perturbation that a good metric should notice.

    The replies are DailyDialog's and PersonaChat's, the dialogs 40 of FED and 200 of DECODE. Pairs
    that the perturbation left as they were are excluded and counted. Several perturbed texts can
    have one original. The contradicting dialogs go on for two utterances where the consistent ones
    end.

    Args:
        sample: read the few pairs written for this project, which have the same form.

    Returns:
        perturbation; dimension, what it should lower, by the authors' folders; level, "turn" or
        "dialog"; context, a list of utterances, empty for a dialog; original and perturbed, a
        reply each, or a list of utterances by turns of the user and the bot. The account is in
        `attrs`.

    Reference: Zhang et al. (2024), A comprehensive analysis of the effectiveness of large language
    models as automatic dialogue evaluators, AAAI 38(17).

    >>> pairs = robustness_pairs(sample=True)
    >>> pairs.loc[0, ["original", "perturbed"]].tolist()
    ['About an hour, if we take the ridge.', 'I never liked the taste of liquorice.']
    """
    rows, lines = [], []
    for name, about in registry()["tables"]["robustness_pairs"]["perturbations"].items():
        keys = about["original"], about["perturbed"]
        files = [DATA / key.replace("comp_analysis", "sample", 1) if sample else path(key)
                 for key in keys]  # fmt: skip
        if not all(file.is_file() for file in files):  # the sample has some of them
            continue
        found = list(_pairs(about, *files))
        kept = [pair for pair in found if pair[1] != pair[2]]
        rows += [(name, about["dimension"], about["level"], *pair) for pair in kept]
        same = {"left unchanged by the perturbation": len(found) - len(kept)}
        lines.append(account(f"pairs: {name}", len(kept), same))
    return with_account(pd.DataFrame(rows, columns=COLUMNS), *lines)


def _pairs(about: dict, originals: Path, perturbed: Path) -> Iterator[tuple]:
    """Match each perturbed text with its original: by the number in its id, else row by row."""
    left = [texts for _, texts in _texts(originals, about)]
    for row, (key, worse) in enumerate(_texts(perturbed, about)):
        best = left[int(key[-2:]) if about.get("matched") == "id" else row % len(left)]
        if about["level"] == "dialog":
            yield [], best, worse
        else:  # a few perturbed replies hold a tab
            yield best[:-1], best[-1], " ".join(worse[len(best) - 1 :])


def _texts(file: Path, about: dict) -> Iterator[tuple[str, list[str]]]:
    """Read id and utterances of each line; dialogs lose the speakers before their utterances."""
    if file.suffix == ".json":
        lines = [["", *dialog] for dialog in read_json(file)]
    else:
        lines = [line.split("\t") for line in read_lines(file)]
    named = about["level"] == "dialog" and file.suffix != ".json"
    for key, *rest in lines:
        yield key, [(text.partition(":")[2] if named else text).strip() for text in rest]
