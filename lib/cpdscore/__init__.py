"""CPDScore: an LLM's mark for how human a response, or a dialog, is (Wakaki et al. 2024).

Seven prompt variants, replies read without guessing, samples averaged, turns averaged to dialogs
and systems, and every figure traceable to the reply behind it. The path of a request: `prompts`,
`judge` (pace and budget), `server`, `reply_store`, `reading`, `scores`, `probes`.
"""

# ruff: noqa: F401 - the public names of this room
from lib.cpdscore.judge import JudgeSettings, ask_all, asker, forecast
from lib.cpdscore.probes import (
    audit,
    length_bias,
    probe_effects,
    probe_turns,
    prompt_of,
    sample_spread,
)
from lib.cpdscore.prompts import (
    TURN_VARIANTS,
    VARIANTS,
    Template,
    load_template,
    load_templates,
    variant,
)
from lib.cpdscore.reading import parse_reply
from lib.cpdscore.reply_store import Job, ReplyStore, export_replies, import_replies
from lib.cpdscore.scores import (
    JudgeModel,
    Scores,
    aggregate,
    dialog_requests,
    intermediate,
    score_dialogs,
    score_turns,
    turn_requests,
)
from lib.cpdscore.server import Connection, JudgeStopped
