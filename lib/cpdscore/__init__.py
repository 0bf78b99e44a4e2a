"""CPDScore: an LLM's mark for how human a response, or a dialog, is (Wakaki et al. 2024).

Seven prompt variants, replies read without guessing, samples averaged, turns averaged to dialogs
and systems, and every figure traceable to the reply behind it.
"""

from lib.cpdscore.aggregation import aggregate, intermediate
from lib.cpdscore.audit import audit, prompt_of, rule_checks, summary
from lib.cpdscore.parsing import STATUSES, USABLE, ParsedReply, parse_reply
from lib.cpdscore.scoring import (
    JudgeModel,
    Scores,
    history_text,
    score_dialogs,
    score_turns,
    turn_requests,
)
from lib.cpdscore.templates import (
    VARIANTS,
    Template,
    Variant,
    load_template,
    load_templates,
    prompts_from_paper,
    variant,
)

__all__ = [
    "STATUSES",
    "USABLE",
    "VARIANTS",
    "JudgeModel",
    "ParsedReply",
    "Scores",
    "Template",
    "Variant",
    "aggregate",
    "audit",
    "history_text",
    "intermediate",
    "load_template",
    "load_templates",
    "parse_reply",
    "prompt_of",
    "prompts_from_paper",
    "rule_checks",
    "score_dialogs",
    "score_turns",
    "summary",
    "turn_requests",
    "variant",
]
