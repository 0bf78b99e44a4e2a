"""The papers' printed figures, set beside ours."""

import pandas as pd

from lib import ROOT


def published(name: str) -> pd.DataFrame:
    """Read one table of `data/published`, for example "endex_table2".

    Raises FileNotFoundError naming the tables there are.

    >>> published("endex_table2").columns.tolist()
    ['method', 'dataset', 'pearson', 'spearman']
    """
    folder = ROOT / "data" / "published"
    path = folder / f"{name}.csv"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.csv")))
        raise FileNotFoundError(f"no published table {name!r}; there are: {known}")
    return pd.read_csv(path)


def beside(paper: pd.DataFrame, ours: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """Join published and own values on key columns; every published row is kept.

    Both frames hold `value`; the result has the columns of `on`, then paper, ours (NaN where we
    have none) and difference (ours - paper). Raises ValueError when a key of `ours` repeats.

    >>> paper = pd.DataFrame({"metric": ["bleu", "usr"], "value": [0.2, 0.4]})
    >>> ours = pd.DataFrame({"metric": ["bleu"], "value": [0.21]})
    >>> beside(paper, ours, ["metric"]).round(3).values.tolist()
    [['bleu', 0.2, 0.21, 0.01], ['usr', 0.4, nan, nan]]
    """
    if ours.duplicated(on).any():
        raise ValueError(f"own values repeat a key of {', '.join(on)}: keep one row per key")
    paper = paper[[*on, "value"]].rename(columns={"value": "paper"})
    table = paper.merge(ours[[*on, "value"]].rename(columns={"value": "ours"}), on=on, how="left")
    return table.assign(difference=table["ours"] - table["paper"])
