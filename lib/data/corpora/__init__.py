"""Load the corpora of the three papers as turn and dialog tables.

`load("usr_topical")` gives a `Corpus`; `available()` lists them all. Public corpora are downloaded
on first use and verified, see `lib.data.corpora.downloads`.
"""

from lib.data.corpora.catalogue import (
    available,
    dailydialog_pairs,
    goemotions,
    load,
    pushshift_sample,
    reddit_college,
    rumoureval,
)
from lib.data.corpora.downloads import data_folder, path
from lib.data.corpora.overview import accounts, overview
from lib.data.corpora.tables import Corpus
from lib.data.dialogues.errors import DataError

__all__ = [
    "Corpus",
    "DataError",
    "accounts",
    "available",
    "dailydialog_pairs",
    "data_folder",
    "goemotions",
    "load",
    "overview",
    "path",
    "pushshift_sample",
    "reddit_college",
    "rumoureval",
]
