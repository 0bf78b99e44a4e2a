"""Train the embedded emotion classifier: `python -m scripts.train_goemotions` (30 seconds)."""

import json
from pathlib import Path

import numpy as np
import sklearn
from safetensors.numpy import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from tqdm.auto import tqdm

from lib import data
from lib.endex.emotions import LABELS, POSITIVE, WEIGHTS, counts, probabilities, weigh

SEEN_IN = 3  # texts that a feature must occur in
C = 3.0  # inverse strength of the regularisation


def targets(labels) -> np.ndarray:
    """Lists of label names as a 0/1 matrix of shape (texts, 28)."""
    return np.array([[name in given for name in LABELS] for given in labels], dtype=int)


def fit(texts, labels, path: Path = WEIGHTS) -> None:
    """Fit one logistic regression per label and write the weights in half precision."""
    hashed = counts(texts)
    seen = np.asarray((hashed > 0).sum(axis=0)).ravel()
    kept = np.flatnonzero(seen >= SEEN_IN)
    idf = np.log((1 + hashed.shape[0]) / (1 + seen[kept])) + 1
    x, y = weigh(hashed[:, kept], idf), targets(labels)
    models = [
        LogisticRegression(C=C, solver="liblinear", random_state=0).fit(x, y[:, column])
        for column in tqdm(range(len(LABELS)), desc="labels", leave=False)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    half = np.float16
    save_file(
        {
            "kept": kept.astype(np.int32),
            "idf": idf.astype(half),
            "coefficients": np.ascontiguousarray(np.vstack([m.coef_ for m in models]).T, half),
            "intercepts": np.array([m.intercept_[0] for m in models], half),
        },
        path,
    )


def evaluate(texts, labels, path: Path = WEIGHTS) -> dict[str, float]:
    """micro- and macro-F1 of the 28 labels, and AUC of the positive share against any positive.

    F1 is taken at probability 0.3, the threshold of the GoEmotions paper.
    """
    y, p = targets(labels), probabilities(texts, path)
    positive = [LABELS.index(name) for name in POSITIVE]
    share = p[:, positive].sum(axis=1) / p.sum(axis=1)
    return {
        "micro_f1_at_0.3": float(f1_score(y, p > 0.3, average="micro")),
        "macro_f1_at_0.3": float(f1_score(y, p > 0.3, average="macro")),
        "mean_auc": float(roc_auc_score(y, p, average="macro")),
        "auc_of_positive_share": float(roc_auc_score(y[:, positive].max(axis=1), share)),
    }


def main() -> None:
    """Fit on the train split, measure on the test split, write weights and record."""
    train, test = data.goemotions("train"), data.goemotions("test")
    fit(train["text"], train["labels"])
    record = {
        "model": "28 logistic regressions on tf-idf of hashed words and word pairs",
        "labels": LABELS,
        "trained_on": f"GoEmotions train split, {len(train)} comments (Apache-2.0)",
        "tested_on": f"GoEmotions test split, {len(test)} comments",
        "settings": {"C": C, "seen_in": SEEN_IN, "scikit-learn": sklearn.__version__},
        "test": {k: round(v, 4) for k, v in evaluate(test["text"], test["labels"]).items()},
    }
    text = json.dumps(record, indent=1) + "\n"
    WEIGHTS.with_suffix(".json").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
