"""CPDScore: an LLM's score for how human a response, or a dialog, is (Wakaki et al. 2024).

Seven prompt variants, replies parsed without guessing, samples averaged, turns averaged to dialogs
and systems, and every number traceable to the reply behind it. The path of a request: `prompts`,
`judge` (pace and budget), `server`, `reply_store`, `parsing`, `scores`, `probes`.
"""

from lib.cpdscore.connection import JudgeStopped
from lib.cpdscore.judge import JudgeSettings, ask_all, asker, forecast
from lib.cpdscore.parsing import parse_reply
from lib.cpdscore.probes import (
    audit,
    probe_effects,
    probe_turns,
    sample_spread,
    steers_judge,
)
from lib.cpdscore.prompts import VARIANTS, Template, load_template
from lib.cpdscore.reply_store import Job, ReplyStore, import_replies
from lib.cpdscore.scores import (
    JudgeModel,
    aggregate,
    score_dialogs,
    score_turns,
    turn_requests,
)
