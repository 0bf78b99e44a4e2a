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
from lib.endex.emotions import LABELS, POSITIVE, WEIGHTS, counts, probabilities, tf_idf

SEEN_IN = 3  # texts that a feature must occur in
C = 3.0  # inverse strength of the regularisation


def targets(labels) -> np.ndarray:
    """Lists of label names as a 0/1 matrix of shape (texts, 28)."""
    return np.array([np.isin(LABELS, list(names)) for names in labels], dtype=int)


def fit(texts, labels, path: Path = WEIGHTS) -> None:
    """Fit one logistic regression per label and write the weights in half precision."""
    hashed = counts(texts)
    seen = np.asarray((hashed > 0).sum(axis=0)).ravel()
    features = np.flatnonzero(seen >= SEEN_IN)
    idf = np.log((1 + hashed.shape[0]) / (1 + seen[features])) + 1
    x = tf_idf(hashed[:, features], idf)
    y = targets(labels)
    coefficients = []
    intercepts = []
    for column in tqdm(range(len(LABELS)), desc="labels", leave=False):
        regression = LogisticRegression(C=C, solver="liblinear", random_state=0)
        regression.fit(x, y[:, column])
        coefficients.append(regression.coef_[0])
        intercepts.append(regression.intercept_[0])
    weights = {
        "kept": features.astype(np.int32),
        "idf": idf.astype(np.float16),
        "coefficients": np.ascontiguousarray(np.array(coefficients).T, np.float16),
        "intercepts": np.array(intercepts, np.float16),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(weights, path)


def evaluate(texts, labels, path: Path = WEIGHTS) -> dict[str, float]:
    """micro- and macro-F1 of the 28 labels, and AUC of the positive share against any positive.

    F1 is taken at probability 0.3, the threshold of the GoEmotions paper.
    """
    y = targets(labels)
    p = probabilities(texts, path)
    positive = [LABELS.index(name) for name in POSITIVE]
    share = p[:, positive].sum(axis=1) / p.sum(axis=1)
    return {
        "micro_f1_at_0.3": float(f1_score(y, p > 0.3, average="micro")),
        "macro_f1_at_0.3": float(f1_score(y, p > 0.3, average="macro")),
        "mean_auc": float(roc_auc_score(y, p, average="macro")),
        "auc_of_positive_share": float(
            roc_auc_score(y[:, positive].max(axis=1), share)
        ),
    }


def main() -> None:
    """Fit on the train split, measure on the test split, write weights and record."""
    train = data.goemotions("train")
    test = data.goemotions("test")
    fit(train["text"], train["labels"])
    scores = evaluate(test["text"], test["labels"])
    record = {
        "model": "28 logistic regressions on tf-idf of hashed words and word pairs",
        "labels": LABELS,
        "trained_on": f"GoEmotions train split, {len(train)} comments (Apache-2.0)",
        "tested_on": f"GoEmotions test split, {len(test)} comments",
        "settings": {"C": C, "seen_in": SEEN_IN, "scikit-learn": sklearn.__version__},
        "test": {name: round(score, 4) for name, score in scores.items()},
    }
    text = json.dumps(record, indent=1) + "\n"
    WEIGHTS.with_suffix(".json").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
