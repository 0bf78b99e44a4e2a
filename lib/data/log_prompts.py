"""Prompts as models get them: all that was said in one text, with the marks of a template."""

import re

from lib.data.corpora import snake_case
from lib.data.dialogs import Dialog, Utterance
from lib.data.file_contents import UnknownFormat
from lib.data.log_messages import REPLY_FIELDS, RESPONSE, reply_text
from lib.data.log_parts import DIALOG, MODEL, first_text, first_value

VICUNA = re.compile(  # and Glaive
    r"(?:\A|\s|</s>)(?P<role>USER|ASSISTANT|FUNCTION RESPONSE):(?P<text>.*?)"
    r"(?=</s>|<\|endoftext\|>|\s(?:USER|ASSISTANT|FUNCTION RESPONSE):|\Z)",
    re.S,
)
TEMPLATES = [  # each with the names of who speaks
    re.compile(  # Anthropic's completions, and HH
        r"(?:\n\n|\A\s*)(?P<role>Human|Assistant):(?P<text>.*?)(?=\n\n(?:Human|Assistant):|\Z)",
        re.S,
    ),
    re.compile(  # ChatML
        r"<\|im_start\|>(?P<role>\w+)\n(?P<text>.*?)(?=<\|im_end\|>|<\|im_start\|>|\Z)",
        re.S,
    ),
    re.compile(  # Llama 3
        r"<\|start_header_id\|>(?P<role>\w+)<\|end_header_id\|>"
        r"(?P<text>.*?)(?=<\|eot_id\|>|<\|start_header_id\|>|\Z)",
        re.S,
    ),
    re.compile(  # Zephyr, Phi
        r"<\|(?P<role>system|user|assistant)\|>"
        r"(?P<text>.*?)(?=</s>|<\|end\|>|<\|(?:system|user|assistant)\|>|\Z)",
        re.S,
    ),
    re.compile(  # Gemma
        r"<start_of_turn>(?P<role>\w+)\n(?P<text>.*?)(?=<end_of_turn>|<start_of_turn>|\Z)",
        re.S,
    ),
    re.compile(  # Llama 2, Mistral
        r"(?P<role>\[/?INST\])(?P<text>.*?)(?=\[/?INST\]|</?s>|\Z)", re.S
    ),
    re.compile(  # Nemotron, HelpSteer2
        r"<extra_id_[01]>(?P<role>\w+)\n(?P<text>.*?)(?=<extra_id_[01]>|\Z)", re.S
    ),
    re.compile(  # Guanaco
        r"### (?P<role>Human|Assistant):(?P<text>.*?)(?=### (?:Human|Assistant):|\Z)",
        re.S,
    ),
    re.compile(  # Baize
        r"\[\|(?P<role>Human|AI)\|\](?P<text>.*?)(?=\[\|(?:Human|AI)\|\]|\Z)", re.S
    ),
    VICUNA,
]
ROLES = {
    "human": "user",
    "user": "user",
    "[inst]": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "[/inst]": "assistant",
}
END_MARK = re.compile(r"(<\|\w{1,30}\|>|</s>)\s*$")  # of a template, after a reply
CALL = "<functioncall>"  # of a tool, in Glaive
SYSTEM_PROMPT = re.compile(r"<<SYS>>.*?<</SYS>>", re.S)  # in Llama 2's first turn


def prompt_turns(prompt: str) -> list[Utterance]:
    """What was said in a prompt with the marks of a template; empty without these.

    Words before a first mark that is the assistant's are the user's, as HelpSteer2 has them.

    >>> [turn.text for turn in prompt_turns("\\n\\nHuman: Hi\\n\\nAssistant: Ho\\n\\nHuman: So?")]
    ['Hi', 'Ho', 'So?']
    """
    for template in TEMPLATES:
        if template is VICUNA and "ASSISTANT:" not in prompt:
            continue  # "USER:" alone may be a word of anybody
        utterances = []
        for match in template.finditer(prompt):
            text = SYSTEM_PROMPT.sub("", match["text"]).strip()
            role = ROLES.get(match["role"].lower(), "system")
            if not utterances and role == "assistant":
                before = prompt[: match.start()].strip()
                utterances += [Utterance("user", "user", before)] if before else []
            if text and not text.startswith(CALL):
                utterances.append(Utterance(role, role, text))
        if any(utterance.role == "user" for utterance in utterances):
            return utterances
    return []


def prompt_column(rows: list[dict]) -> str | None:
    """The column whose cells are prompts with the marks of a template."""
    for name, cell in (rows[0] if rows else {}).items():
        if isinstance(cell, str) and prompt_turns(cell):
            return name
    return None


def read_prompt_rows(rows: list[dict], source) -> list[Dialog]:
    """A prompt a row, and the reply beside it, or at its end.

    Raises:
        UnknownFormat: where there is none.
    """
    column = prompt_column(rows)
    dialogs = []
    for row in rows:
        about = {snake_case(name): cell for name, cell in row.items() if name != column}
        utterances = prompt_turns(str(row.get(column) or ""))
        reply = reply_text(first_value(about, [*sorted(RESPONSE), *REPLY_FIELDS]))
        if reply:
            reply = END_MARK.sub("", reply).strip()
            utterances.append(Utterance("assistant", "assistant", reply))
        elif utterances and utterances[-1].role == "user":
            raise UnknownFormat(
                f"has prompts in {column!r}, and no column that surely has the replies",
                fix='name both: COLUMNS="context=... response=..."',
            )
        name = first_text(about, ["id", *DIALOG]) or str(len(dialogs) + 1)
        dialogs.append(Dialog(name, utterances, first_value(about, MODEL, str)))
    return dialogs
