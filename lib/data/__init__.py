"""The turn table, the corpora behind it, personas, and a file of your own."""

from lib.data import grade_predeng_ji_zhang, tbd_comperdial, usr_fed_dstc
from lib.data.corpora import accounts, available, load, overview, ten_replies
from lib.data.reddit_goemotions_wassa import (
    dailydialog_pairs,
    goemotions,
    reddit_52_forums,
    reddit_cmv,
    reddit_college,
    wassa2022,
)
from lib.data.robustness import robustness_pairs
from lib.data.storage import DataError
from lib.data.turn_table import KEY, read_report
from lib.data.user_files import read_turns
