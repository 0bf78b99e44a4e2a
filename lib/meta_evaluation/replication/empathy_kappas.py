"""Agreement of raters on empathic communication, beside the kappas that its authors publish."""

import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score

from lib.data.empathic_communication import EXPERTS, published_kappas

NO_SINGLE_RATINGS = (
    "the published kappa rests on single ratings of the crowd, and its file holds means"
)


def kappas_beside_published(ratings: pd.DataFrame) -> pd.DataFrame:
    """Recompute Cohen's kappa with quadratic weights for each pair of raters and dimension.

    "experts" is the median of the three experts, "llm" Gemini 2.5 Pro; both are rounded down to a
    step of the scale. Rounding and median are not stated by the authors: they are the ones that
    give the published figures.

    Args:
        ratings: result of `empathic_communication`.

    Returns:
        The rows of `published_kappas` with `corpus`, `dimension`, `rater_a`, `rater_b`, `kappa`
        (ours, in [-1, 1]; higher is more agreement), `published` and `reason` (why ours is NaN:
        pairs with the crowd).

    Reference: Kumar et al. (2025), arXiv 2506.10150; Cohen (1968), weighted kappa.
    """
    index = ["corpus", "dimension", "conversation"]
    wide = ratings.pivot(index=index, columns="rater", values="rating")
    raters = pd.DataFrame(
        {f"expert{number}": wide[name] for number, name in enumerate(EXPERTS, 1)}
    )
    raters["experts"] = wide[list(EXPERTS)].median(axis=1)
    raters["llm"] = wide["Gemini 2.5 Pro"]
    steps = np.floor(raters).astype(int)
    published = published_kappas().rename(columns={"kappa": "published"})
    rows = []
    for row in published.to_dict("records"):
        if "crowd" in (row["rater_a"], row["rater_b"]):
            rows.append({**row, "kappa": np.nan, "reason": NO_SINGLE_RATINGS})
            continue
        items = steps.loc[(row["corpus"], row["dimension"])]
        kappa = cohen_kappa_score(
            items[row["rater_a"]], items[row["rater_b"]], weights="quadratic"
        )
        rows.append({**row, "kappa": kappa, "reason": ""})
    columns = ["corpus", "dimension", "rater_a", "rater_b"]
    return pd.DataFrame(rows)[[*columns, "kappa", "published", "reason"]]
