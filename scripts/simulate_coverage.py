"""Measure the prediction-powered interval on rated corpora: data/results/coverage_powered.csv.

    python -m scripts.simulate_coverage

Studies of 20, 50 and 100 rated dialogs and 1,000 that have only a score are drawn with replacement
from the dialogs of a system, where it has that many, and from those of all systems together. A row
holds one corpus, score, estimand and number of rated dialogs:

- systems: number of systems; the next columns are means over them.
- correlation: Pearson's r of score and mean rating over dialogs.
- coverage, classical_coverage: share of 1,000 intervals of 95 % that hold the mean of all dialogs.
- saving, true_saving: ratings saved, by the stated errors and by the true ones, as shares.
- used: share of studies in which the score was used.
- alarms, classical_alarms: studies of 400 that call two equal versions different. Both versions
  draw from the dialogs of the same system (that with most dialogs). 4,000 studies are drawn, so
  that the standard error of a row is 1.4; with 400 it would be 4.4.

It needs the public corpora and takes some seven minutes.
"""

import pandas as pd

from lib import ROOT, data, metrics
from lib.analysis.prediction_powered import (
    simulate_equal_systems,
    simulate_powered_mean,
)

SIZES = (20, 50, 100)
RUNS = 1000
STUDIES = 4000
FREE = ("length", "context_similarity")
#: Rating of each corpus, and the published score of a judge or a trained metric.
CORPORA = {
    "usr_topical": ("human_overall", "unieval"),
    "usr_persona": ("human_overall", None),
    "gpt4_fed": ("human_overall", "gpt4"),
    "gpt4_reliable": ("human_z_overall", "gpt4"),
    "dstc10_persona_zhao": ("human_appropriateness", None),
    "dstc10_dailydialog_zhao": ("human_appropriateness", None),
}


def scored_items(corpus: str) -> pd.DataFrame:
    """The items of a corpus with the columns rating and one per score."""
    rating, published = CORPORA[corpus]
    source = data.load("unieval_topical" if published == "unieval" else corpus)
    items = source.items
    scores = {}
    if source.level == "turn":
        scores = dict(metrics.compute(items, list(FREE)))
    else:
        words = items["utterances"].str.join(" ").str.split().str.len()
        scores["length"] = words
    if published == "unieval":
        scores["unieval"] = items["score_unieval_overall"]
    if published == "gpt4":
        scores["gpt4"] = items.filter(regex="gpt4_overall_run").mean(axis=1)
    return items.assign(rating=items[rating], **scores)[
        ["system", "dialog", "rating", *scores]
    ]


def simulate(dialogs: pd.DataFrame, score: str) -> list[dict]:
    """Rows of one corpus and score: all systems together, and the mean of one system."""
    of_systems = [group for _, group in dialogs.groupby("system")]
    rows = []
    for mean_of, groups in {"all systems": [dialogs], "one system": of_systems}.items():
        for n_rated in SIZES:
            large = [group for group in groups if len(group) >= n_rated]
            large = [group for group in large if group[score].nunique() > 1]
            if not large:
                continue
            results = []
            for group in large:
                result = simulate_powered_mean(
                    group["rating"], group[score], n_rated=n_rated, runs=RUNS
                )
                results.append(result)
            row = {"score": score, "mean_of": mean_of, "rated_dialogs": n_rated}
            row |= {"systems": dialogs["system"].nunique()}
            if mean_of == "one system":
                row["systems"] = len(large)
            row |= pd.DataFrame(results).mean().to_dict()
            largest = max(large, key=len)
            alarms = simulate_equal_systems(
                largest["rating"], largest[score], n_rated=n_rated, runs=STUDIES
            )
            row["alarms"] = 400 * alarms["powered"] / STUDIES
            row["classical_alarms"] = 400 * alarms["classical"] / STUDIES
            rows.append(row)
    return rows


def main() -> None:
    rows = []
    for corpus in CORPORA:
        items = scored_items(corpus)
        dialogs = items.groupby(["system", "dialog"]).mean().reset_index()
        for score in items.columns[3:]:
            complete = dialogs[["system", "rating", score]].dropna()
            for row in simulate(complete, score):
                rows.append({"corpus": corpus} | row)
        print(f"{corpus}: {len(rows)} rows", flush=True)
    table = pd.DataFrame(rows).round(4)
    path = ROOT / "data/results/coverage_powered.csv"
    table.to_csv(path, index=False, lineterminator="\n")
    by_size = table[table["mean_of"] == "one system"].groupby("rated_dialogs")
    print(by_size[["coverage", "classical_coverage"]].mean().round(3))


if __name__ == "__main__":
    main()
