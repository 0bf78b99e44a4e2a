"""Corpora in which several replies answer one context: pairs, rankings, and who was preferred."""

import re
from typing import Any

import pandas as pd

from lib.data.corpora import snake_case
from lib.data.dialogs import Dialog, Rating, Utterance, join_rated
from lib.data.file_contents import UnknownFormat, parse_list
from lib.data.log_messages import BOTH_SIDES, USER_TEXT, message_list, read_plain, woven
from lib.data.log_parts import (
    DIALOG,
    RATERS,
    SYNONYMS,
    as_script,
    assistant,
    dicts,
    drop_placeholders,
    first_text,
    first_value,
    to_number,
    user,
)
from lib.data.log_prompts import END_MARK, prompt_turns

TRUE = ("1", "1.0", "True", "true")
SCORES = (
    "score_chosen",
    "chosen_score",
    "chosen-rating",
)  # beside a model's preference
ARENA_VOTES = {
    "leftvote": "model_a",
    "rightvote": "model_b",
    "tievote": "tie",
    "bothbad_vote": "tie",
}
PAIRS = [  # names of two replies, of the preference, and what it is worth for the first reply
    (
        ("response1", "response2"),
        "overall_preference",
        lambda n: 0.5 if n == 0 else float(n < 0),
    ),
    (("response_0", "response_1"), "better_response_id", lambda n: float(n == 0)),
    (
        ("response_1", "response_2"),
        "preference_strength",
        lambda n: 0.5 if n == 0 else float(n < 0),
    ),
]
PROMPTS = ("question", "instruction", "query", "input", "context", "history")
HELPSTEER_TURN = re.compile(r"<extra_id_1>(?P<role>User|Assistant)\n")
HELPSTEER_RATINGS = (
    "helpfulness",
    "correctness",
    "coherence",
    "complexity",
    "verbosity",
)
SIDE = re.compile("(?:(?:model|response|reply|answer|system|option) ?)?[ab]")
CONTEXTS = {"context", *SYNONYMS["context"].split()}
REPLIES = {"response", *SYNONYMS["response"].split()}
SYSTEMS = ("system", "model")
WINNERS = ("winner", "preferred", "preference", "choice", "vote", "better")
TIES = ("tie", "both", "neither", "equal", "same", "draw")
# How the columns of the first and of the second of two replies may be called, beside _a and _b.
SIDES = (
    (("{}_1", "{}1"), ("{}_2", "{}2")),
    (("left_{}", "{}_left"), ("right_{}", "{}_right")),
)
NAMED_SIDE = re.compile(
    r"(?:(?:model|response|reply|answer|system|option)[ _]?)?(?P<side>1|2|left|right)"
)
BY_MODELS = "are preferences or ranks that models gave"


def read_arena(record: dict, source) -> list[Dialog]:
    """Chatbot Arena: two dialogs of two models, and who was preferred, as a rating of both.

    MT-bench's judges say which turn they judged; the other replies have no rating. Chatbot Arena,
    whose records have a language, counts its turns in the same field.
    """
    name = first_text(record, ["question_id", "id", "conversation_id"]) or ""
    winner = winner_of(record)
    models = (record.get("model_a"), record.get("model_b"))
    field = "conversation" if "conversation_a" in record else "messages"
    of_arena = "language" in record
    turn = 0 if of_arena else int(to_number(record.get("turn")) or 0)
    dialogs = []
    for side in "ab":
        utterances = read_plain(message_list(record[f"{field}_{side}"]))
        utterances = [*earlier_rounds(record, side, utterances), *utterances]
        dialog = Dialog(name, utterances, record.get(f"model_{side}"))
        ratings = preference(side, winner, record.get("judge"), models)
        replies = [u for u in utterances if u.role == "assistant"]
        if 0 < turn <= len(replies):
            replies[turn - 1].ratings = ratings
        else:
            dialog.ratings = ratings
        dialogs.append(dialog)
    return dialogs


def earlier_rounds(
    record: dict, side: str, utterances: list[Utterance]
) -> list[Utterance]:
    """What was said before the round that was voted on, on one side; its replies are context only.

    Where a session has several votes, a record has the whole talk beside the last round.
    """
    rounds = dicts(record.get("full_conversation"))
    n_asked = sum(utterance.role == "user" for utterance in utterances)
    messages = []
    for earlier in rounds[: max(0, len(rounds) - n_asked)]:
        messages += [earlier["user"], earlier[f"model_side_{side}"]]
    return as_script(read_plain(messages))


def join_judges(dialogs: list[Dialog]) -> list[Dialog]:
    """Each dialog once, with the preferences of all that judged it.

    Pairs with the same systems and words are one if judges with other names judged them. A dialog
    that is compared with several others is one if it has the same id each time.
    """
    words = [
        (dialog.system, *(u.text for u in dialog.utterances)) for dialog in dialogs
    ]
    pairs = []
    for number in range(len(dialogs)):
        first = number - number % 2
        pairs.append((number % 2, *words[first : first + 2]))
    joined = join_rated(dialogs, pairs)
    keys = [(d.id, d.system, *(u.text for u in d.utterances)) for d in joined]
    return join_rated(joined, keys)


def read_arena_table(record: dict, source) -> list[Dialog]:
    """Chatbot Arena as on Kaggle: lists of turns in cells, and the winner in three columns."""
    winner = winner_of(record)
    if str(record.get("winner_tie")) in TRUE:
        winner = "tie"
    for side in "ab":
        if str(record.get(f"winner_model_{side}")) in TRUE:
            winner = f"model_{side}"
    prompts = texts_of(first_value(record, ("prompt", *USER_TEXT)))
    name = first_text(record, ["id", *DIALOG]) or ""
    dialogs = []
    for side in "ab":
        utterances = woven(prompts, texts_of(record[f"response_{side}"]))
        system = first_text(record, [f"model_{side}", f"system_{side}"])
        dialog = Dialog(name, utterances, system or f"response_{side}")
        rater = first_value(record, RATERS)
        dialog.ratings = preference(side, winner, rater)
        dialogs.append(dialog)
    return dialogs


def winner_of(record: dict) -> Any:
    """Who was preferred, under one of its names."""
    return first_value(record, WINNERS)


def with_sides_a_and_b(table: pd.DataFrame, report) -> pd.DataFrame:
    """A table of two replies to each context with _a and _b in the names of their columns.

    They may be called response_1 and response_2, or left_response and right_response; who was
    preferred is named likewise. Other tables are unchanged.
    """
    names = {snake_case(name): name for name in table}
    asked = {"prompt", *USER_TEXT, *CONTEXTS} & set(names)
    if not asked or REPLIES & set(names):
        return table
    for sides in SIDES:
        pairs = {}
        for stem in (*REPLIES, *SYSTEMS):
            pair = [first_value(names, (p.format(stem) for p in s)) for s in sides]
            if None not in pair:
                pairs[stem] = pair
        if len(REPLIES & set(pairs)) != 1:
            continue
        (stem,) = REPLIES & set(pairs)
        if {f"{stem}_3", f"{stem}3"} & set(names):
            continue  # replies of three systems
        changed = {}
        for stem, pair in pairs.items():
            kind = "response" if stem in REPLIES else "model"
            changed |= {name: f"{kind}_{s}" for name, s in zip(pair, "ab", strict=True)}
        replies = pairs[next(s for s in pairs if s in REPLIES)]
        table = with_winner_a_or_b(table.rename(columns=changed))
        if not set(SYSTEMS) & set(pairs):
            table = table.assign(model_a=replies[0], model_b=replies[1])
        text = f"two replies: {' '.join(replies)}"
        report.guesses["columns", text, "by their names"] += 1
        return table
    return table


def with_winner_a_or_b(table: pd.DataFrame) -> pd.DataFrame:
    """A table that says "a" or "b" where it said that the first or the second reply is better.

    Raises:
        UnknownFormat: for numbers that may be of a scale, as in a column not called a choice.
    """
    for name in table:
        key = snake_case(name).removeprefix(
            "human_"
        )  # as an answer of a worker is called
        if key not in WINNERS:
            continue
        cells = table[name].map(lambda cell: str(cell or "").strip().lower())
        sides = cells.map(lambda cell: NAMED_SIDE.fullmatch(cell))
        numbers = set(cells[cells.map(to_number).notna()])
        if numbers and (key in ("preference", "vote") or not numbers <= {"1", "2"}):
            raise UnknownFormat(
                f"has two replies in a row, and numbers in {name!r}: a choice of one, or a scale",
                fix="write a, b or tie in a column 'winner'",
            )
        if sides[~cells.isin(["", *TIES])].isna().any():
            continue  # names of systems
        winners = []
        for cell, side in zip(cells, sides, strict=True):
            first = side and side["side"] in ("1", "left")
            winners.append(("a" if first else "b") if side else cell)
        table = table.drop(columns=name).assign(**{key: winners})
    return table


def with_row_per_reply(table: pd.DataFrame, report) -> pd.DataFrame:
    """A table with two replies to a context in each row as one with a row for each reply.

    Who was preferred becomes a rating of both, as in `preference`. Other tables are unchanged.
    """
    names = {snake_case(name): name for name in table}
    stems = [
        name.removesuffix("_a")
        for name in names
        if name.endswith("_a") and name.removesuffix("_a") in REPLIES
    ]
    if len(stems) != 1 or f"{stems[0]}_b" not in names or REPLIES & set(names):
        return table
    replies = [names[f"{stems[0]}_{side}"] for side in "ab"]
    systems = [first_value(names, (f"system_{s}", f"model_{s}")) for s in "ab"]
    if {"prompt", *USER_TEXT} & set(names) or not CONTEXTS & set(names):
        # `read_arena_table` reads a prompt and two replies, under these names.
        changed = dict(zip(replies, ("response_a", "response_b"), strict=True))
        changed |= dict(zip(systems, ("model_a", "model_b"), strict=True))
        return table.rename(columns=changed)
    sides = [*replies, *filter(None, systems)]
    shared = [name for name in table if name not in sides]
    rows = []
    for row in table.to_dict("records"):
        record = {snake_case(name): cell for name, cell in row.items()}
        models = tuple(row.get(name) for name in systems)
        for side, reply, system in zip("ab", replies, systems, strict=True):
            rating = preference(side, winner_of(record), models=models)
            rows.append(
                {name: row[name] for name in shared}
                | {"response": row[reply], "system": row.get(system, reply)}
                | {f"human_{rated.dimension}": rated.value for rated in rating}
            )
    report.guesses["columns", " ".join(replies), "two replies to each context"] += 1
    turns = pd.DataFrame(rows, dtype=object)
    if not {"dialog", *DIALOG} & set(names):
        context = next(name for name in table if snake_case(name) in CONTEXTS)
        contexts = turns[context].map(repr)  # as it may be a list
        turns["dialog"] = (contexts.factorize()[0] + 1).astype(str)
    return turns


def read_arena_votes(rows: list[dict], source) -> list[Dialog]:
    """FastChat's server: two dialogs of two models, and the vote as the type of the row."""
    dialogs = []
    for row in rows:
        winner = ARENA_VOTES.get(row["type"])
        if winner is None:
            source.exclude("dialogs", "are of pairs without a vote")
            continue
        for side, state in zip("ab", row["states"], strict=True):
            dialog = Dialog(str(state.get("conv_id") or ""), [], state["model_name"])
            for speaker, text in state["messages"]:
                role = "user" if speaker == state["roles"][0] else "assistant"
                dialog.utterances.append(Utterance(speaker, role, text))
            dialog.ratings = preference(side, winner)
            dialogs.append(dialog)
    return dialogs


def texts_of(cell: Any) -> list:
    """The texts in a cell that holds a list of them, or one text."""
    value = parse_list(cell) if isinstance(cell, str) and cell[:1] == "[" else cell
    return value if isinstance(value, list) else [value]


def preference(
    side: str, winner: Any, judge: Any = None, models: tuple = ()
) -> list[Rating]:
    """1 for the side that was preferred, 0 for the other, a half for a tie.

    A word that says none of these stays, to be counted as no number.
    """
    winner = str(winner or "").strip()
    rater = None if judge is None else str(judge)
    value: float | str = winner
    word = winner.lower().replace("_", " ")
    if word.startswith(("tie", "both", "draw", "equal", "neither", "same")):
        value = 0.5
    elif SIDE.fullmatch(word):
        value = float(word[-1] == side)
    elif winner in models and models[0] != models[1]:
        value = float(models["ab".index(side)] == winner)
    return [Rating(rater, "preference", value)] if winner else []


def read_preference(record: dict, source) -> list[Dialog]:
    """TRL: one context, two replies, and which was preferred; earlier replies are context only.

    A preference with a score beside it, as in UltraFeedback, is a model's.

    Raises:
        UnknownFormat: where nothing holds the context.
    """
    name = first_text(record, ["id", "prompt_id"]) or ""
    asked = first_value(record, ("prompt", *PROMPTS, "conversations", "messages"))
    about = record.get("input")
    if asked == record.get("instruction") and about and isinstance(about, str):
        asked = f"{asked}\n{about}"  # as LLaMA-Factory joins them
    prompt = conversation(asked or [])
    history = record.get("history")
    if history != asked and is_pairs(history):
        prompt = [*woven(*zip(*history, strict=True)), *prompt]
    if (
        not prompt
        and isinstance(record["chosen"], str)
        and not prompt_turns(record["chosen"])
    ):
        raise UnknownFormat(
            "has two replies to choose from, and nothing that was said before them",
            fix='name its column "prompt"',
        )
    scored = first_value(record, SCORES) is not None
    dialogs = []
    for side in ("chosen", "rejected"):
        said = conversation(record[side], "assistant")
        utterances = said if repeats(prompt, said) else [*prompt, *said]
        system = first_text(record, [f"{side}_model", f"{side}-model"]) or side
        dialog = Dialog(name, [*as_script(utterances[:-1]), utterances[-1]], system)
        if scored:
            source.exclude("ratings", BY_MODELS)
        else:
            dialog.ratings = [Rating(None, "preference", float(side == "chosen"))]
        drop_placeholders(dialog, record)
        dialogs.append(dialog)
    return dialogs


def repeats(prompt: list[Utterance], said: list[Utterance]) -> bool:
    """Whether what was said begins with the prompt, as in UltraFeedback, or has it further on.

    A prompt of one text may be what the user said first, below a system prompt, or last.
    """
    asked = [(u.role, u.text) for u in prompt if u.role in BOTH_SIDES]
    talk = [(u.role, u.text) for u in said if u.role in BOTH_SIDES]
    if not asked or len(talk) <= len(asked) or talk[0][0] != "user":
        return False
    return asked[0] in talk if len(asked) == 1 else talk[: len(asked)] == asked


def is_pairs(history: Any) -> bool:
    """Whether a history is a list of what the user and the bot said, two by two."""
    pairs = history if isinstance(history, list) else []
    return bool(pairs) and all(isinstance(p, list) and len(p) == 2 for p in pairs)


def read_openai_preference(record: dict, source) -> list[Dialog]:
    """OpenAI's preference fine-tuning: the same below other names."""
    pair = {
        "prompt": record["input"]["messages"],
        "chosen": record["preferred_output"],
        "rejected": record["non_preferred_output"],
    }
    return read_preference(pair, source)


def read_reply_pair(record: dict, source) -> list[Dialog]:
    """HelpSteer2 and 3, SafeRLHF: a context, two replies, and a number for which was preferred.

    It goes from -3 (the first) to 3 (the second), or is the place of the better reply.

    Raises:
        UnknownFormat: for SHP, whose replies are people's.
    """
    if "human_ref_A" in record:
        raise UnknownFormat(
            "has two comments of people in each record (SHP), and no reply of a bot",
            fix="to compare them as two systems, write them as response_0 and response_1, and the "
            "place of the better one (0 or 1) as better_response_id",
        )
    context = as_script(conversation(first_value(record, ("prompt", *PROMPTS))))
    for names, preferred, value_of in PAIRS:
        if not set(names) <= set(record):
            continue
        number = to_number(record.get(preferred))
        dialogs = []
        for place, name in enumerate(names):
            dialog = Dialog("", [*context, assistant(record[name])], name)
            if number is not None:
                value = value_of(number)
                rater = first_text(record, RATERS)
                dialog.ratings = [Rating(rater, "preference", abs(place - value))]
            dialogs.append(dialog)
    return dialogs


def read_instruction_pair(record: dict, source) -> list[Dialog]:
    """AlpacaEval's annotations: two outputs for an instruction; a model says which is better."""
    dialogs = []
    for side in "12":
        utterances = [user(record["instruction"]), assistant(record[f"output_{side}"])]
        model = first_text(record, [f"generator_{side}"]) or f"output_{side}"
        dialogs.append(Dialog("", utterances, model))
    if record.get("preference") is not None:
        source.exclude("ratings", BY_MODELS)
    return dialogs


def read_prodigy_choices(record: dict, source) -> list[Dialog]:
    """Prodigy: options to choose from, which may be replies to a text, or labels of it.

    Raises:
        UnknownFormat: always.
    """
    raise UnknownFormat(
        "has choices of Prodigy: the options may be replies of several systems, or labels",
        fix="for replies write a row for each two: prompt, model_a, response_a, model_b, "
        "response_b, winner (model_a, model_b or tie), rater",
    )


def read_answers(record: dict, source) -> list[Dialog]:
    """Nectar, UltraFeedback: replies of several models, whose ranks and marks are a model's."""
    prompt = conversation(first_value(record, ("prompt", "instruction")))
    context = as_script(utterance for utterance in prompt if utterance.text)
    name = first_text(record, ["id", "prompt_id"]) or ""
    dialogs = []
    for answer in dicts(first_value(record, ("answers", "completions"))):
        reply = assistant(first_value(answer, ("answer", "response")))
        dialogs.append(Dialog(name, [*context, reply], answer.get("model")))
        source.exclude("ratings", BY_MODELS)
    return dialogs


def read_prism(record: dict, source) -> list[Dialog]:
    """PRISM: replies of several models in each turn; the chosen one goes on."""
    return chosen_path(str(record["conversation_id"]), record["conversation_history"])


def read_prism_rows(rows: list[dict], source) -> list[Dialog]:
    """PRISM's long form: a row per reply."""
    conversations: dict[str, list[dict]] = {}
    for row in rows:
        messages = conversations.setdefault(str(row["conversation_id"]), [])
        asked = {"turn": row["turn"], "role": "user", "content": row["user_prompt"]}
        if asked not in messages:
            messages.append(asked)
        messages.append({**row, "role": "model", "content": row["model_response"]})
    dialogs = []
    for name, messages in conversations.items():
        dialogs += chosen_path(name, messages)
    return dialogs


def chosen_path(name: str, messages: list[dict]) -> list[Dialog]:
    """A dialog of the replies that were chosen, and one for each other, with its own context."""
    messages = sorted(messages, key=lambda m: (int(m["turn"]), m["role"] != "user"))
    path: list[Utterance] = []
    asked: list[Utterance] = []
    others = []
    for message in messages:
        if message["role"] == "user":
            path.append(user(message["content"]))
            asked = path.copy()
            continue
        words = re.sub(r"\AEMPTY STRING\Z", "", message["content"] or "")
        reply = assistant(words, system=message.get("model_name"))
        if message.get("score") is not None:
            reply.ratings = [Rating(None, "feedback", message["score"])]
        if str(message.get("if_chosen")) in TRUE and path[-1].role == "user":
            path.append(reply)
        else:
            others.append(Dialog(name, [*as_script(asked), reply]))
    return [Dialog(name, path), *others]


def conversation(value: Any, role: str = "user") -> list[Utterance]:
    """Messages, or a text, perhaps with the marks of a template, as HH writes "Human:".

    A table has the messages as JSON, or as NumPy prints them.
    """
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, str) and value.startswith("[{"):
        value = message_list(value) or value
    if isinstance(value, list):
        return read_plain(value)
    turns = prompt_turns(value)
    if role == "assistant":
        value = END_MARK.sub("", value)
    return turns or [Utterance(role, role, value)]


def read_completion(record: dict, source) -> list[Dialog]:
    """TRL's prompt and completion; earlier replies are context only."""
    utterances = conversation(record["prompt"]) + conversation(
        record["completion"], "assistant"
    )
    model = first_text(record, ["model"])
    return [Dialog("", [*as_script(utterances[:-1]), utterances[-1]], model)]


def read_helpsteer(record: dict, source) -> list[Dialog]:
    """HelpSteer: a reply with the means of people's ratings; marks divide the prompt into turns."""
    first, *rest = HELPSTEER_TURN.split(record["prompt"])
    utterances = []
    if first.strip():
        utterances.append(user(first.strip()))
    sides = {"User": user, "Assistant": assistant}
    for role, text in zip(rest[::2], rest[1::2], strict=True):
        utterances.append(sides[role](text.strip()))
    reply = assistant(record["response"])
    for name in HELPSTEER_RATINGS:
        reply.ratings.append(Rating(None, name, record.get(name)))
    return [Dialog("", [*as_script(utterances), reply])]


def read_edited_reply(record: dict, source) -> list[Dialog]:
    """HelpSteer3's edits: a model's reply, and what people made of it, which is a reference."""
    context = as_script(conversation(record["context"]))
    reply = assistant(record["original_response"])
    edited = first_value(record, ("edited_response", "good_edited_response"), str)
    reply.references = [edited] if edited else []
    return [Dialog("", [*context, reply])]


def read_red_team(record: dict, source) -> list[Dialog]:
    """HH's attacks by a red team: a transcript; how well an attack went is no merit of replies."""
    return [Dialog("", prompt_turns(record["transcript"]))]


def read_kto(record: dict, source) -> list[Dialog]:
    """TRL's unpaired preference: a completion that was liked or not."""
    [dialog] = read_completion(record, source)
    dialog.ratings = [Rating(None, "preference", record["label"])]
    return [dialog]
