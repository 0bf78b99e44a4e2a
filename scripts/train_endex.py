"""Train the packaged EnDex: `python -m scripts.train_endex` (three minutes on a CPU).

RED of all public comments, as in notebooks 05 and 06, which chose these settings on held-out
threads. Only what was trained is written, in half precision: it is read on top of the encoder.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from lib import ROOT, endex
from lib.endex.reddit import SOURCES
from lib.endex.scoring import WEIGHTS
from lib.meta_evaluation.replication.endex_table2 import endex_correlations, endex_sets

OPTIONS = endex.TrainingOptions(
    epochs=2, learning_rate=5e-4, batch_tokens=1024, max_length=64, frozen_layers=5
)
SEED = 0


def pairs():
    """RED as notebook 06 draws it, divided into training and held-out threads."""
    folder, _ = endex.comments(list(SOURCES))
    emotions = endex.score_replies(folder, folder.parent / f"{folder.name}_emotions")
    return endex.split(
        endex.build_red(folder, endex.RedSettings(edge_days=0), emotions).sample
    )


def halve(run: Path) -> None:
    """Write the weights of a run in half precision."""
    weights = {
        name: part.half() for name, part in load_file(run / "model.safetensors").items()
    }
    save_file(weights, WEIGHTS)


def main() -> None:
    """Train, write weights and card, and say how far half precision moves a score."""
    torch.set_num_threads(1)
    train, held_out = pairs()
    # The cache of notebook 06: a run that it finished is not repeated.
    model = endex.fine_tune(
        train, held_out, ROOT / "data" / "cache" / "endex", OPTIONS, SEED
    )
    halve(model.folder)
    sets = endex_sets()
    packaged = {}
    change = 0.0
    for name, (turns, _) in sets.items():
        scores = endex.endex_scores(turns)
        full_precision = endex.endex_scores(turns, model.folder)
        change = max(change, (scores - full_precision).abs().max())
        packaged[name] = scores.to_frame(("packaged", SEED))
    agreement = (
        endex_correlations(packaged, sets).drop(columns=["method", "seed"]).round(4)
    )
    card = {
        "model": "the last layer, pooler and head of a classifier on all-MiniLM-L6-v2",
        "trained_on": f"RED of {', '.join(SOURCES)}: {len(train)} pairs",
        "held_out": f"{len(held_out)} pairs of other threads",
        "options": model.record["options"],
        "seed": SEED,
        "auc_on_held_out_threads": round(model.best["auc"], 4),
        "agreement": agreement.to_dict("records"),
        "largest_change_by_half_precision": round(change, 5),
        "limits": "English, public forums of 2013-2023; the labels follow the length of comments. "
        "It orders replies within a corpus; its size is no probability for dialogue. GRADE rates "
        "coherence, not engagement.",
    }
    text = json.dumps(card, indent=1) + "\n"
    WEIGHTS.with_suffix(".json").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
