"""Tokens, emotions and function-word categories per CPU second, beside the peers, in one run.

    python tests/bench/bench_lexicons.py

Texts: every utterance of the contexts and responses of the four DSTC10 sets, then the utterances
of the dialog-level sets, 23,598 in all. Loading lexica and texts is not timed; each time is the
best of three, one thread. The second table scores a million utterances, all different, in blocks
and reports the peak memory of the process on the way.
"""

import argparse
import itertools
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import record
from sklearn.feature_extraction.text import CountVectorizer

from lib import psychology
from lib.data import corpora

UTTERANCES = 23_598
BLOCK = 20_000
TURN_SETS = (
    "dstc10_topical_usr",
    "dstc10_persona_usr",
    "dstc10_dailydialog_zhao",
    "dstc10_persona_zhao",
)
DIALOG_SETS = ("fed_dialog", "gpt4_reliable", "ji2022")
PEERS = ("dlatk", "nrclex", "liwc", "scikit-learn", "scipy", "numpy")


def utterances() -> list[str]:
    """The benchmark's texts, repeats included: contexts are rated with several responses."""
    texts: list[str] = []
    for name in TURN_SETS:
        for row in corpora.load(name).turns.itertuples():
            texts += [*row.context, row.response]
    for name in DIALOG_SETS:
        for messages in corpora.load(name).dialogs["utterances"]:
            texts += list(messages)
    return texts[:UTTERANCES]


def score(texts: list[str], lexica: list[psychology.Lexicon]) -> list[pd.DataFrame]:
    """The scores of the texts by each lexicon, from one count of their tokens."""
    counts = psychology.count_tokens(texts)
    return [lexicon.score(counts) for lexicon in lexica]


def cpu(function: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def as_dic(lexicon: psychology.Lexicon, folder: Path) -> Path:
    """Our function words as a LIWC dictionary, so that `liwc` does the same work."""
    number = {c: i for i, c in enumerate(lexicon.categories, start=1)}
    lines = ["%", *(f"{i}\t{c}" for c, i in number.items()), "%"]
    lines += [
        "\t".join([term, *(str(number[c]) for c in entry)])
        for term, entry in lexicon.weights.items()
    ]
    path = folder / "function_words.dic"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def jobs(texts: list[str], folder: Path) -> dict[str, tuple[str, Callable[[], object]]]:
    """Every job by name: the kind of work, and a function that does it once."""
    import liwc
    from dlatk.lib.happierfuntokenizing import Tokenizer
    from nrclex import NRCLex

    emotions = psychology.emotion_lexicon("nrc")
    style = psychology.function_words()
    distinct = list(dict.fromkeys(texts))
    dlatk = Tokenizer().tokenize
    tokens = [psychology.tokenize(text) for text in texts]
    parse, _ = liwc.load_token_parser(str(as_dic(style, folder)))

    def nrclex() -> None:
        for words in tokens:
            scorer = NRCLex()
            scorer.load_token_list(words)

    def vectorizer(**options) -> Callable[[], object]:
        def run():
            counter = CountVectorizer(**options)
            counts = counter.fit_transform(texts)
            names = list(counter.get_feature_names_out())
            return counts @ emotions.align(names), counts @ style.align(names)

        return run

    return {
        "ours: text to 8 + 9 categories": (
            "all",
            lambda: score(texts, [emotions, style]),
        ),
        "ours, no text repeated": (
            "all, distinct texts",
            lambda: score(distinct, [emotions, style]),
        ),
        "CountVectorizer (own regex) + product": ("all", vectorizer()),
        "CountVectorizer (dlatk tokenizer) + product": (
            "all",
            vectorizer(tokenizer=dlatk, token_pattern=None),
        ),
        "ours: tokenize": ("tokens", lambda: [psychology.tokenize(t) for t in texts]),
        "dlatk: happierfuntokenizing": ("tokens", lambda: [dlatk(t) for t in texts]),
        "ours: text to 8 emotions": (
            "text to emotions",
            lambda: score(texts, [emotions]),
        ),
        "NRCLex.load_token_list (EmoLex, tokens given)": ("tokens to emotions", nrclex),
        "liwc parser (9 categories, tokens given)": (
            "tokens to categories",
            lambda: [[list(parse(t)) for t in words] for words in tokens],
        ),
    }


def speed(texts: list[str]) -> pd.DataFrame:
    rows = []
    count = sum(len(psychology.tokenize(t)) for t in texts)
    with tempfile.TemporaryDirectory() as folder:
        for name, (work, run) in jobs(texts, Path(folder)).items():
            rows.append({"job": name, "work": work, "cpu_s": cpu(run)})
    table = pd.DataFrame(rows)
    table["tokens_per_s"] = (count / table["cpu_s"]).round(-3)
    seconds = table.set_index("job")["cpu_s"]
    base = np.where(
        table["work"] == "tokens",
        seconds["ours: tokenize"],
        seconds["ours: text to 8 + 9 categories"],
    )
    table["times_ours"] = (table["cpu_s"] / base).round(2)
    different = table["work"] == "all, distinct texts"
    table.loc[different, ["tokens_per_s", "times_ours"]] = np.nan
    return table.round({"cpu_s": 3}).assign(utterances=len(texts), tokens=count)


def memory(texts: list[str], total: int, steps: int = 5) -> pd.DataFrame:
    """Peak memory while `total` different utterances stream through both lexica."""

    def endless() -> Iterator[str]:
        for number, text in enumerate(itertools.cycle(texts)):
            yield f"{text} {number}"

    lexica = [psychology.emotion_lexicon("nrc"), psychology.function_words()]
    n_done = 0
    start = time.process_time()
    rows = []
    stream = itertools.islice(endless(), total)
    while block := list(itertools.islice(stream, BLOCK)):
        score(block, lexica)
        n_done += len(block)
        if n_done % (total // steps) == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            seconds = time.process_time() - start
            rows.append(
                {
                    "utterances": n_done,
                    "peak_mb": round(peak),
                    "cpu_s": round(seconds, 1),
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--stream", type=int, default=1_000_000, help="utterances to stream"
    )
    options = parser.parse_args()
    texts = utterances()
    # Memory first: the peak of a process never falls, and the peers would raise it.
    flat = memory(texts, options.stream)
    table = speed(texts)
    record.write(table, "bench_lexicons", packages=PEERS)
    record.write(flat, "bench_lexicons_memory", packages=PEERS)


if __name__ == "__main__":
    main()
