"""Overlap metrics on 10,000 DSTC7 responses: ours beside a plain loop over the package itself.

    python tests/bench/bench_overlap.py

Two settings: the first reference of every response, and all references (35 on average) of the
responses to 100 contexts. The peers are what a reader of the papers would write: normalise where
the paper does, then call nltk, rouge-score, sacrebleu or pycocoevalcap once per response. Scores
are compared as well, so that no time is won by computing something else. METEOR is timed with its
Java program, start included.
"""

import os
import re
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import record
import sacrebleu
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from rouge_score.rouge_scorer import RougeScorer

from lib.data import corpora
from lib.metrics import normalize_answer, overlap_scores
from lib.metrics.overlap import meteor_program

PUNCTUATION = re.compile(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]")
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized(text: str) -> str:
    return " ".join(ARTICLES.sub(" ", PUNCTUATION.sub(" ", text.lower())).split())


def coco_bleu(responses, references) -> list[float]:
    texts = {row: [response] for row, response in enumerate(responses)}
    return Bleu(4).compute_score(dict(enumerate(references)), texts, verbose=0)[1][3]


def coco_rouge(responses, references) -> list[float]:
    scorer = Rouge()
    return [
        scorer.calc_score([h], r) for h, r in zip(responses, references, strict=True)
    ]


def coco_meteor(responses, references) -> list[float]:
    texts = {row: [response] for row, response in enumerate(responses)}
    return Meteor().compute_score(dict(enumerate(references)), texts)[1]


def nltk_bleu(responses, references) -> list[float]:
    smoothing = SmoothingFunction(epsilon=1e-12).method1
    scores = []
    for response, texts in zip(responses, references, strict=True):
        gold = [normalized(text).split() for text in texts]
        words = normalized(response).split()
        scores.append(sentence_bleu(gold, words, smoothing_function=smoothing))
    return scores


def rouge_score(responses, references) -> list[float]:
    scorer = RougeScorer(["rougeL"])
    scores = []
    for response, texts in zip(responses, references, strict=True):
        gold = [normalized(text) for text in texts]
        scores.append(scorer.score_multi(gold, normalized(response))["rougeL"].fmeasure)
    return scores


def sacre(responses, references) -> list[float]:
    return [
        sacrebleu.sentence_bleu(response, texts).score / 100
        for response, texts in zip(responses, references, strict=True)
    ]


PEERS: dict[str, tuple[str, Callable]] = {
    "bleu4_coco": ("pycocoevalcap", coco_bleu),
    "rouge_l_coco": ("pycocoevalcap", coco_rouge),
    "meteor_15": ("pycocoevalcap", coco_meteor),
    "bleu4_nltk_normalized": ("nltk", nltk_bleu),
    "rouge_l_f1_normalized": ("rouge-score", rouge_score),
    "bleu4_sacrebleu": ("sacrebleu", sacre),
}


def cpu() -> float:
    """CPU seconds of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def timed(function: Callable, *arguments) -> tuple[float, np.ndarray]:
    start = cpu()
    values = np.asarray(function(*arguments), dtype=float)
    return cpu() - start, values


def ours(name: str, turns: pd.DataFrame) -> np.ndarray:
    meteor_program.cache_clear()  # so that its start and its CPU time are counted
    normalize_answer.cache_clear()
    scores = overlap_scores(turns, [name])[name]
    meteor_program.cache_clear()
    return scores


def measure(setting: str, turns: pd.DataFrame, names: list[str]) -> list[dict]:
    rows = []
    for name in names:
        package, peer = PEERS[name]
        peer_seconds, expected = timed(
            peer, list(turns["response"]), list(turns["reference"])
        )
        seconds, values = timed(ours, name, turns)
        rows.append(
            {
                "setting": setting,
                "metric": name,
                "peer": package,
                "responses": len(turns),
                "ours_cpu_s": seconds,
                "peer_cpu_s": peer_seconds,
                "ratio": peer_seconds / seconds,
                "scores_equal_share": np.isclose(values, expected, atol=1e-9).mean(),
            }
        )
    return rows


def main() -> None:
    turns = corpora.load("dstc7").turns[["dialog", "response", "reference"]]
    turns = turns[(turns["reference"].map(len) > 0) & (turns["response"] != "")]
    of_100_contexts = turns[
        turns["dialog"].isin(sorted(turns["dialog"].unique())[:100])
    ]
    first = turns.assign(reference=turns["reference"].str[:1])
    rows = measure("first reference", first, list(PEERS))
    rows += measure(
        "all references",
        of_100_contexts,
        [name for name in PEERS if name != "meteor_15"],
    )
    table = pd.DataFrame(rows)
    packages = ["nltk", "rouge-score", "sacrebleu", "pycocoevalcap"]
    record.write(table, "bench_overlap", packages=packages)


if __name__ == "__main__":
    main()
