"""Load the corpora of the three papers as turn and dialog tables.

`load("usr_topical")` gives a `Corpus`; `available()` lists them all. Public corpora are downloaded
on first use and verified, see `lib.corpora.downloads`.
"""

from lib.corpora.catalogue import (
    available,
    dailydialog_pairs,
    goemotions,
    load,
    pushshift_sample,
    reddit_college,
    rumoureval,
)
from lib.corpora.downloads import data_folder, path
from lib.corpora.overview import accounts, overview
from lib.corpora.tables import Corpus
from lib.dialogues.errors import DataError

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
