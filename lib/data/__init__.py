"""The turn table, the corpora behind it, personas, and a file of your own."""

from lib.data import corpora_on_request, rated_corpora
from lib.data.corpora import (
    available,
    corpus_overview,
    import_reports,
    load,
    ten_replies,
)
from lib.data.empathic_communication import empathic_communication
from lib.data.storage import DataError
from lib.data.turn_table import KEY, import_report
from lib.data.unrated_texts import (
    dailydialog_pairs,
    goemotions,
    reddit_52_forums,
    reddit_cmv,
    reddit_college,
    robustness_pairs,
    wassa2022,
)
from lib.data.user_files import read_turns
