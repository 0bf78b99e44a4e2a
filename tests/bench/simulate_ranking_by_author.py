"""How often `rank_metrics` finds a difference where there is none, by who wrote the replies.

Run by hand (minutes, seeded; needs the public corpora):

    python tests/bench/simulate_ranking_by_author.py

The ratings, dialogs and authors are those of the rated corpora. The metrics are drawn: each is the
rating, plus a bonus for replies by people, plus an error of the dialog, plus an error of the reply,
all by the same law, so no metric is better than another. A correct procedure finds a second rank
in at most 5 % of the runs: over all replies, where people and machines are pooled, and over the
replies of machines alone.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import record
from scipy import stats

from lib.analysis import significance
from lib.meta_evaluation import evaluation_sets

RUNS = 400
RESAMPLES = 199
METRICS = 5
BONUS = 1.0  # standard deviations that a metric adds to a reply by a person


def draw_metrics(items, rng: np.random.Generator) -> pd.DataFrame:
    """Equally good metrics on the replies of a corpus: one column each."""
    rating = stats.zscore(items.human.to_numpy(), nan_policy="omit")
    by_person = (items.table["written_by"] == "person").to_numpy()
    dialog = pd.factorize(items.clusters)[0]
    columns = {}
    for number in range(METRICS):
        of_dialog = rng.normal(size=dialog.max() + 1)
        of_reply = rng.normal(scale=1.5, size=len(rating))
        columns[f"metric {number + 1}"] = (
            0.5 * rating + BONUS * by_person + of_dialog[dialog] + of_reply
        )
    return pd.DataFrame(columns, index=items.table.index)


def false_positives(items, method: str, rng: np.random.Generator) -> int:
    """In how many runs `rank_metrics` gives some metric another rank than the first."""
    found = 0
    for run in range(RUNS):
        ranks = significance.rank_metrics(
            draw_metrics(items, rng),
            items.human,
            items.clusters,
            method=method,
            resamples=RESAMPLES,
            seed=run,
        )
        found += int(ranks["rank"].max() > 1)
    return found


def main() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for name in evaluation_sets.PUBLIC:
        items = evaluation_sets.load_set(name)
        if items.level != "turn":
            continue
        kinds = {"all": items, "machines only": evaluation_sets.machine_replies(items)}
        mixed = (items.table["written_by"] == "person").any()
        for replies, chosen in kinds.items():
            if chosen is None or (replies == "all" and not mixed):
                continue
            found = false_positives(chosen, "spearman", rng)
            low, high = stats.binomtest(found, RUNS).proportion_ci(method="wilson")
            rows.append(
                {
                    "corpus": name,
                    "replies": replies,
                    "n": int(chosen.human.notna().sum()),
                    "clusters": int(pd.Series(chosen.clusters).nunique()),
                    "metrics": METRICS,
                    "runs": RUNS,
                    "found": found,
                    "rate": found / RUNS,
                    "low": low,
                    "high": high,
                }
            )
            print(rows[-1], flush=True)
    record.write(pd.DataFrame(rows), "ranking_by_author_simulation", packages=["numpy"])


if __name__ == "__main__":
    main()
