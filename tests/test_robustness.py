"""Pairs of a text and the same made worse: the loader, the shares, and the committed table."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from lib import data
from lib.data import storage
from lib.meta_evaluation import robustness

PERTURBATIONS = storage.registry()["tables"]["robustness_pairs"]["perturbations"]


def pairs_of(originals, perturbed, contexts=None, level="turn"):
    contexts = contexts or [[f"context {row}"] for row in range(len(originals))]
    pairs = pd.DataFrame(
        {"context": contexts, "original": originals, "perturbed": perturbed}
    )
    return pairs.assign(perturbation="p", dimension="d", level=level)


def table_of(pairs, score):
    """The shares under `score`, a function of one response."""
    sides = robustness.text_sides(pairs)
    items = sides.drop_duplicates("item").set_index("item")
    return robustness.win_shares(
        pairs, sides, items[["response"]].map(score).astype(float)
    ).iloc[0]


def test_ties_count_half_and_a_missing_side_is_counted():
    assert (
        table_of(pairs_of(["a"], ["b"]), {"a": 0.1 + 0.2, "b": 0.3}.get)["share"] == 0.5
    )
    row = table_of(pairs_of(list("9551"), list("1259")), lambda text: float(text))
    assert row[["share", "tied", "n", "missing"]].tolist() == [2.5 / 4, 1 / 4, 4, 0]
    row = table_of(
        pairs_of(list("95x5"), list("1551")), lambda t: np.nan if t == "x" else float(t)
    )
    assert row[["share", "tied", "n", "missing"]].tolist() == pytest.approx(
        [2.5 / 3, 1 / 3, 3, 1]
    )
    row = table_of(pairs_of(list("ab"), list("cd")), lambda text: np.nan)
    assert row[["n", "originals", "missing"]].tolist() == [0, 0, 2]
    assert row[["share", "low", "high"]].isna().all()


def test_interval_is_wilsons_over_originals():
    row = table_of(pairs_of(list("9999911111"), list("5555555555")), float)
    expected = binomtest(5, 10).proportion_ci(method="wilson")
    assert row[["low", "high"]].tolist() == pytest.approx([expected.low, expected.high])
    again = table_of(pairs_of(["9"] * 6, list("111115"), [["a"], ["b"]] * 3), float)
    z = 1.959963984540054
    assert (again["share"], again["originals"]) == (1, 2)
    assert again["low"] == pytest.approx(1 / (1 + z**2 / 2))


def test_all_intervals_of_a_table_hold_together():
    """Of three shares each has the level 1 - .05 / 3, so that 95 of 100 tables have no miss."""
    pairs = pairs_of(list("9999911111"), list("5555555555"))
    pairs = pd.concat([pairs.assign(perturbation=name) for name in "abc"])
    pairs = pairs.reset_index(drop=True)
    sides = robustness.text_sides(pairs)
    items = sides.drop_duplicates("item").set_index("item")
    table = robustness.win_shares(pairs, sides, items[["response"]].astype(float))
    expected = binomtest(5, 10).proportion_ci(1 - 0.05 / 3, method="wilson")
    assert len(table) == 3
    for row in table.itertuples():
        assert (row.low, row.high) == pytest.approx((expected.low, expected.high))


def test_a_dialog_scores_the_mean_of_its_turns():
    pairs = pairs_of([["0", "1", "3"]], [["9", "9", "", "-6"]], [[]], "dialog")
    row = table_of(pairs, lambda text: float(text) if text else np.nan)
    assert row["share"] == 0  # 4 / 3 below 12 / 3, the blank turn left out
    sides = robustness.text_sides(pairs)
    assert sides["context"].str.len().tolist() == [0, 1, 2, 0, 1, 2, 3]
    shuffled = pairs_of([["a", "bcd"]], [["bcd", "a"]], [[]], "dialog")
    assert table_of(shuffled, len)[["share", "tied"]].tolist() == [0.5, 1]


def test_scores_name_both_readings_and_say_why_one_is_missing():
    pairs = data.robustness_pairs(sample=True).query("perturbation == 'dull reply'")
    pairs = pairs.reset_index(drop=True)
    sides = robustness.text_sides(pairs)
    scores = robustness.score_sides(sides, encoder=False)
    assert {"emotional_entropy_paper", "rouge_l_coco_to_context"} < set(scores)
    assert not {"endex", "context_similarity"} & set(scores)
    scores.loc[0, "emotional_entropy"] = np.nan
    scores.attrs["missing"]["emotional_entropy"] = {"undefined": 1}
    table = robustness.win_shares(pairs, sides, scores).set_index("metric")
    assert table.loc["emotional_entropy", ["missing", "reason"]].tolist() == [
        1,
        "undefined",
    ]
    assert (table.drop("emotional_entropy")["reason"] == "").all()


# --- the loader ---------------------------------------------------------------------------------


def test_sample_is_read_by_the_same_loader_and_matches_both_ways():
    pairs = data.robustness_pairs(sample=True)
    report = data.import_report(pairs).set_index("unit")
    assert report.loc[
        "pairs: contradiction", ["read", "kept", "excluded"]
    ].tolist() == [6, 5, 1]
    assert len(pairs) == report["kept"].sum() == 34
    assert (pairs["original"].map(str) != pairs["perturbed"].map(str)).all()
    tabbed = pairs[pairs["perturbation"] == "contradiction"]["perturbed"]
    assert "I do not own a trumpet, and my neighbours loved to hear me play it." in set(
        tabbed
    )
    shuffled = pairs[pairs["perturbation"] == "shuffled order"]
    assert (shuffled["original"].map(sorted) == shuffled["perturbed"].map(sorted)).all()
    repeating = pairs[pairs["perturbation"] == "repeats itself"]
    for original, perturbed in zip(
        repeating["original"], repeating["perturbed"], strict=True
    ):
        for before, after in zip(original, perturbed, strict=True):
            assert after.startswith(before)


def raw(key):
    text = storage.fetch_file(key).read_bytes().decode()
    if key.endswith("json"):
        return [["", *dialog] for dialog in json.loads(text)]
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


@pytest.mark.public
def test_public_pairs_are_those_of_the_files():
    pairs = data.robustness_pairs()
    files = storage.registry()["files"]
    report = data.import_report(pairs)
    rows = [files[about["perturbed"]]["rows"] for about in PERTURBATIONS.values()]
    assert (
        report["read"].tolist() == rows and report["kept"].sum() == len(pairs) == 15137
    )
    assert report["excluded"].sum() == 45 + 45 + 59 + 60 + 2
    shuffled = pairs[pairs["perturbation"] == "shuffled order"]
    assert (shuffled["original"].map(sorted) == shuffled["perturbed"].map(sorted)).all()
    for name in (
        "two replies replaced",
        "repeats itself",
    ):  # the user's side is left as it was
        replaced = pairs[pairs["perturbation"] == name]
        assert (replaced["original"].str[::2] == replaced["perturbed"].str[::2]).all()
    longer = pairs[pairs["perturbation"] == "contradicting dialog"]
    for original, perturbed in zip(
        longer["original"], longer["perturbed"], strict=True
    ):
        assert perturbed[:-2] == original


def count_words(text):
    """Runs of letters and digits; one apostrophe within a word does not end it."""
    plain = text.replace("’", "'").replace("''", " ")
    letters = "".join(c if c.isalnum() or c in "_'" else " " for c in plain)
    return sum(bool(run.strip("'")) for run in letters.split())


def without_speaker(utterance):
    speaker, colon, text = utterance.partition(":")
    return text if colon and speaker in ("human", "model", "chatbot") else utterance


def mean_words(utterances):
    return round(np.mean([count_words(utterance) for utterance in utterances]), 9)


@pytest.mark.public
@pytest.mark.parametrize("name", PERTURBATIONS)
def test_committed_shares_of_length_follow_from_the_raw_files(name):
    entry = PERTURBATIONS[name]
    originals = raw(entry["original"])
    wins = []
    for row, (key, *perturbed) in enumerate(raw(entry["perturbed"])):
        position = row % len(originals)
        if entry.get("matched") == "id":
            position = int(key.split("_")[-1])
        original = originals[position][1:]
        if entry["level"] == "turn":
            last = len(original) - 1
            words = count_words(" ".join(original[last:]))
            perturbed_words = count_words(" ".join(perturbed[last:]))
            is_same = original == perturbed
        else:
            original = [without_speaker(utterance) for utterance in original]
            perturbed = [without_speaker(utterance) for utterance in perturbed]
            words = mean_words(original)
            perturbed_words = mean_words(perturbed)
            is_same = list(map(str.strip, original)) == list(map(str.strip, perturbed))
        if not is_same:
            wins.append((np.sign(words - perturbed_words) + 1) / 2)
    table = pd.read_csv(storage.DATA / "reference/10_robustness.csv")
    ours = table[(table["perturbation"] == name) & (table["metric"] == "length")].iloc[
        0
    ]
    assert ours["share"] == pytest.approx(np.mean(wins), abs=2e-6) and ours["n"] == len(
        wins
    )
