"""Every pretrained model that a metric may use, named once."""

from dataclasses import asdict, dataclass

import pandas as pd


@dataclass(frozen=True)
class Checkpoint:
    """One pretrained model.

    `revision` is the hub commit that a download asks for; "main" where no commit could be
    confirmed, and then the commit that was found is what the provenance of a score records.
    `weights_sha256` is checked at loading where it is known.
    """

    hub_id: str
    revision: str
    architecture: str  # encoder, masked, causal, seq2seq or classifier
    used_by: str
    parameters: float  # millions
    licence: str
    weights_sha256: str | None = None


DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"

_ROWS = [
    Checkpoint(
        DEFAULT_ENCODER,
        "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        "encoder",
        "packaged default: BERTScore, embedding similarity, USL-H heads, MAUVE features",
        22.7,
        "Apache-2.0",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    Checkpoint(
        "FacebookAI/roberta-large",
        "722cf37b1afa9454edce342e7895e588b6ff1d59",
        "encoder",
        "BERTScore, the default of its authors (layer 17)",
        355,
        "MIT",
    ),
    Checkpoint(
        "google-bert/bert-base-multilingual-cased",
        "3f076fdb1ab68d5b2880cb87a0886f315b8146f8",
        "encoder",
        "BERTScore of the ComperDial paper (layer 9)",
        178,
        "Apache-2.0",
    ),
    Checkpoint(
        "google-bert/bert-base-uncased",
        "86b5e0934494bd15c9632b12f734a8a67f723594",
        "masked",
        "USL-H",
        110,
        "Apache-2.0",
    ),
    Checkpoint(
        "facebook/bart-large-cnn",
        "37f520fa929c961707657b28798b30c003dd100b",
        "seq2seq",
        "BARTScore",
        406,
        "MIT",
    ),
    Checkpoint("facebook/m2m100_418M", "main", "seq2seq", "Prism-style", 484, "MIT"),
    Checkpoint("alirezamsh/small100", "main", "seq2seq", "Prism-style", 333, "MIT"),
    Checkpoint("microsoft/DialoGPT-large", "main", "causal", "FED", 774, "MIT"),
    Checkpoint(
        "openai-community/gpt2-large",
        "32b71b12589c2f8d625668d2335a01cac3249519",
        "causal",
        "MAUVE features",
        774,
        "MIT",
    ),
    *(
        Checkpoint(f"microsoft/DialogRPT-{head}", "main", "classifier", "DialogRPT", 355, "MIT")
        for head in ("updown", "depth", "width", "human-vs-rand", "human-vs-machine")
    ),
    Checkpoint("MingZhong/unieval-dialog", "main", "seq2seq", "UniEval-dialog", 783, "MIT"),
    *(
        Checkpoint(f"lucadiliello/{name}", "main", "classifier", "BLEURT", size, "Apache-2.0")
        for name, size in (
            ("BLEURT-20", 579),
            ("BLEURT-20-D12", 167),
            ("BLEURT-20-D6", 45),
            ("BLEURT-20-D3", 30),
            ("bleurt-base-128", 110),
            ("bleurt-large-512", 335),
        )
    ),
    Checkpoint(
        "unitary/toxic-bert",
        "4d6c22e74ba2fdd26bc4f7238f50766b045a0d94",
        "classifier",
        "toxicity (Detoxify 'original')",
        110,
        "Apache-2.0",
    ),
    Checkpoint(
        "monologg/bert-base-cased-goemotions-original",
        "main",
        "classifier",
        "emotional engagement of EnDex",
        110,
        "not stated",
    ),
]
CHECKPOINTS = {row.hub_id: row for row in _ROWS}


def table() -> pd.DataFrame:
    """Return the models that metrics may use, one row each.

    A revision that could not be confirmed reads "main (not pinned)": a download takes the newest
    commit, which may differ from today's.

    >>> print(table().query("architecture == 'encoder'").parameters.min())
    22.7
    """
    models = pd.DataFrame([asdict(row) for row in _ROWS])
    return models.replace({"revision": {"main": "main (not pinned)"}})
