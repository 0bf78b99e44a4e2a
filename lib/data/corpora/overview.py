"""How large corpora are, at each level of the hierarchy, and how they were rated."""

from collections.abc import Iterable

import pandas as pd
from tqdm.auto import tqdm

from lib.data.corpora.tables import Corpus


def sizes(corpus: Corpus) -> dict[str, float | str]:
    """Counts of one corpus: systems, agents, dialogs, rated items, judgements, words.

    `judges` is the median number of judgements of an item in one dimension (missing where only
    means are published); `references` the mean number of references of a response. Words are
    whitespace tokens: `context words` of the utterance before the response (of the whole dialog at
    dialog level), `response words` of the response.
    """
    items, ratings = corpus.items, corpus.ratings
    judges = ratings.groupby(["item", "dimension"]).size()
    row = {
        "level": corpus.level,
        "systems": items["system"].nunique(),
        "agents": items[["system", "agent"]].drop_duplicates().shape[0],
        "dialogs": items["dialog"].nunique(),
        "items": len(items),
        "dimensions": ratings["dimension"].nunique(),
        "judgements": len(ratings),
        "judges": judges.median(),
    }
    if corpus.level == "dialog":
        said = items["utterances"].map(" ".join)
        return row | {
            "utterances": items["utterances"].str.len().mean(),
            "context words": _words(said),
        }
    last = items["context"].map(lambda said: said[-1] if said else None).dropna()
    return row | {
        "references": items["reference"].str.len().mean(),
        "utterances": items["context"].str.len().mean() + 1,
        "context words": _words(last),
        "response words": _words(items["response"]),
    }


def _words(texts: pd.Series) -> float:
    return texts.str.split().str.len().mean()


def overview(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """`sizes` of several corpora, one row each, indexed by name."""
    rows = {corpus.name: sizes(corpus) for corpus in tqdm(list(corpora), desc="corpora")}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("corpus")


def accounts(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """The accounts of several corpora below each other: what was read, kept and set aside."""
    tables = [corpus.report.assign(corpus=corpus.name) for corpus in corpora]
    table = pd.concat(tables, ignore_index=True)
    return table[["corpus", *table.columns.drop("corpus")]]
