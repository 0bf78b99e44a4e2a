"""From RED to a classifier: the split, made-up negatives, and fine-tuning of an encoder.

A pair is one row with context (the parent comment), response (the post) and label (1 engaging). A
notebook calls `fine_tune`; from a shell, and on several GPUs:

    python -m lib.endex.train --pairs pairs.parquet --folder runs --seed 0
    accelerate launch -m lib.endex.train --pairs pairs.parquet --folder runs --precision bf16 \
        --encoder FacebookAI/roberta-large --batch-tokens 16384
"""

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.storage import atomic_write, file_sha256, read_json
from lib.models import DEFAULT_ENCODER, provenance_of, silence_transformers

GENERIC = [
    *("I don't know.", "Okay.", "That is nice.", "I am not sure.", "Yes."),
    *("Me too.", "Thanks.", "I see.", "Good for you.", "Maybe."),
]
KINDS = ("insertion", "deletion", "copying", "generic")
FIGURES = ("loss", "accuracy", "auc", "spread")  # of a validation
RECORD = "record.json"
VERSION = 4  # of the training: a change of the weights that come out counts it up


def split(
    pairs: pd.DataFrame, validation: float = 0.2, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Divide pairs into a training and a validation part (paper: .8 and .2).

    A thread falls wholly on one side, decided by the md5 of seed and thread, so that no comment
    is a response in training and a context in validation. The shares are therefore approximate.

    Args:
        pairs: with a column `link`, the thread (the paper does not say how it divided).
        validation: share of threads for validation.

    >>> parts = split(pd.DataFrame({"link": list("aabbccddee")}), validation=0.4)
    >>> [len(part) for part in parts]
    [6, 4]
    """
    draws = [int(hashlib.md5(f"{seed}-{i}".encode()).hexdigest()[:8], 16) for i in pairs["link"]]
    order = pd.Series(draws, pairs.index).rank(method="dense")
    held_out = order <= round(validation * order.max())
    return pairs[~held_out], pairs[held_out]


def with_negatives(pairs: pd.DataFrame, ratio: float = 0.2, seed: int = 0) -> pd.DataFrame:
    """EnDex+NS: part of the negatives replaced by rule-based ones, built from positives.

    The four kinds come in equal parts: words of another reply inserted, words deleted, the context
    copied, a generic reply. Built from the positives of the same part of the split only.

    Args:
        pairs: with context, response and label.
        ratio: share of the negatives that is replaced (the paper does not say how many).
        seed: of the draws.

    Returns:
        As many rows as before; `made` names the kind, "" for a pair of RED. Where a kind cannot be
        made of the reply drawn for it (see `negative_sample`), the negative of RED stays, and
        `attrs["not_made"]` counts it by kind.
    """
    rng = np.random.default_rng(seed)
    positives = pairs[pairs["label"] == 1]
    negatives = pairs[pairs["label"] == 0]
    n = min(round(ratio * len(negatives)), len(positives))
    sources = positives.iloc[rng.permutation(len(positives))[:n]]
    kinds = [KINDS[i % len(KINDS)] for i in range(n)]
    others = positives["response"].to_numpy()
    texts = [
        negative_sample(kind, row.context, row.response, others[rng.integers(len(others))], rng)
        for kind, row in zip(kinds, sources.itertuples(), strict=True)
    ]
    tried = sources.assign(response=texts, label=0, made=kinds)
    made = tried.dropna(subset="response")
    kept = negatives.iloc[rng.permutation(len(negatives))[: len(negatives) - len(made)]]
    mixed = pd.concat([positives.assign(made=""), kept.assign(made=""), made], ignore_index=True)
    failed = tried.loc[tried["response"].isna(), "made"].value_counts()
    mixed.attrs["not_made"] = failed.reindex(KINDS, fill_value=0).to_dict()
    return mixed


def negative_sample(
    kind: str, context: str, response: str, other: str, rng: np.random.Generator
) -> str | None:
    """A reply that nobody would give, made of one that somebody gave.

    insertion: a third of the words of `other` at random places; deletion: about half of the words
    left out, at least one, and at least one stays; copying: the context said again; generic: one of
    ten empty phrases.

    Returns:
        Never the reply itself: None where the kind cannot be made. A reply without words has no
        place to insert at, one of a single word nothing to delete, an `other` without words
        nothing to insert, and a context without words nothing to copy.

    >>> negative_sample("copying", "Where to?", "Home.", "", np.random.default_rng(0))
    'Where to?'
    >>> negative_sample("deletion", "Where to?", "Home.", "", np.random.default_rng(0)) is None
    True
    """
    words = response.split()
    if kind == "insertion":
        made = _inserted(words, other.split(), rng) if words else []
    elif kind == "deletion":
        made = _thinned(words, rng) if len(words) > 1 else []
    elif kind == "copying":
        return context if context.split() not in ([], words) else None
    elif kind == "generic":
        phrases = [phrase for phrase in GENERIC if phrase.split() != words]
        return phrases[int(rng.integers(len(phrases)))]
    else:
        raise ValueError(f"kind {kind!r}: choose one of {', '.join(KINDS)}")
    return " ".join(made) if made and made != words else None


def _inserted(words: list[str], other: list[str], rng: np.random.Generator) -> list[str]:
    """The words, with the first third of the other ones at random places."""
    words = list(words)
    for word in other[: max(1, len(other) // 3)]:
        words.insert(int(rng.integers(len(words) + 1)), word)
    return words


def _thinned(words: list[str], rng: np.random.Generator) -> list[str]:
    """About half of two or more words; the first where none was drawn, all but the last for all."""
    kept = [word for word in words if rng.random() < 0.5]
    return (kept or words[:1]) if len(kept) < len(words) else words[:-1]


def matched_in_length(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs whose classes have the same lengths: within each bin, as many of both.

    A bin holds replies, and comments before them, of about the same number of words (from a power
    of two to the next). What a network learns of these pairs it cannot have read off length.

    >>> few = pd.DataFrame({"context": "a", "response": ["b", "c d e f", "g"], "label": [1, 1, 0]})
    >>> matched_in_length(few)["response"].tolist()
    ['b', 'g']
    """
    words = (pairs[name].str.split().str.len() for name in ("context", "response"))
    bins = [np.log2(counted + 1).astype(int) for counted in words]
    place = pairs.groupby([*bins, pairs["label"]]).cumcount()
    engaging = pairs["label"].groupby(bins).transform("sum")
    others = pairs["label"].groupby(bins).transform("size") - engaging
    return pairs[place < np.minimum(engaging, others)]


def cut_to_lengths(pairs: pd.DataFrame, turns: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """The pairs with texts as long as those of a dialogue: comment and reply, each cut by itself.

    Each pair takes the numbers of words of one turn, drawn at random: a text that is longer loses
    its end, whatever its class, and a shorter one stays.

    Args:
        pairs: with context and response.
        turns: turn table of dialogues; the last utterance of its context stands for the comment.
        seed: of the draw.

    >>> turns = pd.DataFrame({"context": [["Hi", "How are you?"]], "response": ["Fine."]})
    >>> cut_to_lengths(pd.DataFrame({"context": ["a b c d"], "response": ["e f"]}), turns).iloc[0]
    context     a b c
    response        e
    Name: 0, dtype: str
    """
    drawn = turns.sample(len(pairs), replace=True, random_state=seed)
    for name, like in {"context": drawn["context"].str[-1], "response": drawn["response"]}.items():
        sizes = like.str.split().str.len().clip(lower=1)
        cut = [" ".join(text.split()[:n]) for text, n in zip(pairs[name], sizes, strict=True)]
        pairs = pairs.assign(**{name: cut})
    return pairs


@dataclass(frozen=True)
class Options:
    """How to fine-tune; the defaults suit the packaged encoder on a CPU.

    Attributes:
        encoder: folder or hub id, or "tiny". The paper: FacebookAI/roberta-large.
        epochs: passes over the pairs (paper: 2).
        rate: highest learning rate, reached after the warm-up (paper: 5e-5).
        warmup: share of the steps in which the rate rises from 0; it then falls to 0. The paper
            states none; large encoders collapse without.
        batch_tokens: tokens in a batch, padding included (the paper gives no batch size).
        max_length: tokens of a pair; longer ones are cut.
        frozen_layers: first layers, with the embeddings, that are not trained and have no dropout:
            what they make of a pair is computed once. 0 trains all.
        precision: "fp32" or "bf16" (autocast; for GPUs).
    """

    encoder: str = DEFAULT_ENCODER
    epochs: int = 2
    rate: float = 5e-5
    warmup: float = 0.06
    batch_tokens: int = 2048
    max_length: int = 128
    frozen_layers: int = 0
    precision: str = "fp32"


@dataclass(frozen=True)
class TrainedModel:
    """A finished training run.

    Attributes:
        folder: its best network and tokenizer, readable by `endex_scores(model=folder)`.
        record: options, seed, pairs, encoder, history of losses, validation by epoch, the best
            epoch, `collapsed`, SHA-256 of the weights, seconds.
    """

    folder: Path
    record: dict

    @property
    def history(self) -> pd.DataFrame:
        """Training loss by step."""
        return pd.DataFrame(self.record["history"], columns=["step", "loss"])

    @property
    def validation(self) -> pd.DataFrame:
        """Loss, accuracy and AUC on the validation pairs by epoch; epoch 0 is before training."""
        return pd.DataFrame(self.record["validation"])

    @property
    def best(self) -> dict:
        """The validation of the epoch that was kept."""
        return self.record["validation"][self.record["best"]]


def fine_tune(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    folder: str | Path,
    options: Options,
    seed: int = 0,
) -> TrainedModel:
    """Train a classifier of engaging replies and keep the epoch with the best validation AUC.

    EnDex, section 2.5 and appendix A.2, by the Trainer of transformers. An epoch in which all
    scores are alike is kept only if there is no other. On the CPU, the same pairs,
    options and seed give the same weights, also when the run was killed: it goes on from the end
    of its last whole epoch. A run that is finished in `folder` is returned at once.

    Args:
        train, validation: pairs with context, response and label (1 engaging, 0 not).
        folder: the run gets a folder in it, named by the digest of pairs, options and seed.
        options: how to fine-tune.
        seed: of head, order and dropout.

    Raises:
        ValueError: one class only, or no pair, in either part.
        CheckpointError: the encoder cannot be found.
        FloatingPointError: the loss is no number any more.
    """
    for name, part in (("training", train), ("validation", validation)):
        if part["label"].nunique() < 2:
            raise ValueError(f"the {name} pairs ({len(part)}) are of one class only: more posts")
    where = Path(folder) / _digest(train, validation, options, seed)
    if not (where / RECORD).is_file():
        _train(train, validation, where, options, seed)
    return TrainedModel(where, read_json(where / RECORD))


def collapsed(validation: dict) -> bool:
    """Whether a run predicts the same for every pair: what large encoders do at too high a rate.

    >>> collapsed({"accuracy": 0.5, "spread": 0.001}), collapsed({"accuracy": 0.7, "spread": 0.2})
    (True, False)
    """
    return validation["accuracy"] < 0.55 and validation["spread"] < 0.01


def quality(validation: dict) -> float:
    """What the best epoch has most of: AUC, and any run that did not collapse before one that did.

    The AUC reads order alone: scores that are all alike can have a high one by their last digits.
    """
    return validation["auc"] - collapsed(validation)


def _train(train, validation, folder: Path, options: Options, seed: int) -> None:
    """Train from the last whole epoch, or from the start, and write network and record."""
    from lib.endex import network as networks

    network, tokenizer = networks.build_classifier(options.encoder, seed)
    parameters = sum(weights.numel() for weights in network.parameters())
    below = networks.split_network(network, options.encoder, options.frozen_layers, seed)
    rows = [
        networks.encode_context_pairs(tokenizer, part, options.max_length)
        for part in (train, validation)
    ]
    trainer = networks.trainer(network, below, tokenizer, *rows, folder, options, seed)
    untrained = trainer.evaluate()
    with silence_transformers():
        finished = trainer.train(resume_from_checkpoint=_last_checkpoint(folder))
        if not trainer.is_world_process_zero():
            return
        # Where layers stay, these are the weights above them.
        trainer.accelerator.unwrap_model(trainer.model).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    record = {
        "seed": seed,
        "options": asdict(options),
        "encoder": None if options.encoder == networks.TINY else provenance_of(options.encoder),
        "parameters": parameters,
        "pairs": {"train": len(train), "validation": len(validation)},
        **_progress(untrained, trainer.state.log_history),
        "weights_sha256": file_sha256(folder / "model.safetensors"),
        "seconds_of_last_session": round(finished.metrics["train_runtime"], 1),
    }
    with atomic_write(folder / RECORD) as unfinished:
        unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)


def _last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint that is whole: Trainer writes the state of the trainer at the end."""
    whole = [file.parent for file in folder.glob("checkpoint-*/trainer_state.json")]
    return str(max(whole, key=lambda path: int(path.name.split("-")[1]))) if whole else None


def _progress(untrained: dict, log: list[dict]) -> dict:
    """Losses by step, figures by epoch, the best epoch, and whether it collapsed."""
    measured = [untrained, *(entry for entry in log if "eval_auc" in entry)]
    rows = [
        {"epoch": epoch} | {name: entry[f"eval_{name}"] for name in FIGURES}
        for epoch, entry in enumerate(measured)
    ]
    best = max(rows[1:], key=quality)
    return {
        "best": best["epoch"],
        "validation": rows,
        "history": [(entry["step"], entry["loss"]) for entry in log if "loss" in entry],
        "collapsed": collapsed(best),
    }


def _digest(train: pd.DataFrame, validation: pd.DataFrame, options: Options, seed: int) -> str:
    """What a run depends on, as a folder name."""
    digest = hashlib.sha256()
    for part in (train, validation):
        for row in part[["context", "response", "label"]].itertuples(index=False):
            digest.update(json.dumps([row.context, row.response, int(row.label)]).encode())
        digest.update(b"|")
    digest.update(json.dumps([VERSION, asdict(options), seed]).encode())
    return f"seed{seed}-{digest.hexdigest()[:12]}"


def main() -> None:
    """Train from a shell; the options are those of `Options`."""
    from transformers import HfArgumentParser

    parser = HfArgumentParser(Options, description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet of RED (Red.sample)")
    parser.add_argument("--folder", type=Path, required=True, help="where the run goes")
    parser.add_argument("--seed", type=int, default=0)
    options, given = parser.parse_args_into_dataclasses()
    model = fine_tune(*split(pd.read_parquet(given.pairs)), given.folder, options, given.seed)
    print(json.dumps({"folder": model.folder.name, **model.best}))


if __name__ == "__main__":
    main()
