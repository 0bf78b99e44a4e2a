"""Ratings of empathic communication by experts, a crowd and three strong language models."""

import re

import pandas as pd

from lib.data.corpora import attach_report, report_row
from lib.data.storage import fetch_file

FOLDER = "empathic_communication/annotations"
TEXT_FOLDER = "empathic_communication/original_data"
#: The four sets of conversations, with the column that names a conversation.
CONVERSATION_COLUMNS = {
    "empatheticdialogues": "conv_id",
    "epitome": "sp_id",
    "lend_an_ear": "conversation_id",
    "perceived_empathy": "id",
}
#: The raters, with the names of their files.
RATERS = {
    "expert 1": "expert1",
    "expert 2": "expert2",
    "expert 3": "expert3",
    "crowd": "crowd",
    "GPT-4o": "gpt",
    "Claude 3.7 Sonnet": "claude",
    "Gemini 2.5 Pro": "gemini",
}
EXPERTS = ("expert 1", "expert 2", "expert 3")
JUDGES = ("Claude 3.7 Sonnet", "Gemini 2.5 Pro", "GPT-4o")
#: The dimensions (of Lend an Ear) that name a fault: who rates them higher is more severe. The
#: authors' notebook reverses the same three before it compares levels.
FAULTS = ("advice_giving", "self_oriented", "dismissing_emotions")
RATING_COLUMNS = ["corpus", "conversation", "dimension", "rater", "rating"]
#: The files with texts, of the three sets that come with them.
CONVERSATION_FILES = {
    "empatheticdialogues": "sample_empatheticdialogues.csv",
    "epitome": "sample_epitome.csv",
    "lend_an_ear": "sample_lend_an_ear_conversations.csv",
}
NO_DIMENSION = {"rp_id", "full_conversation"}


def empathic_communication() -> pd.DataFrame:
    """Read the ratings of 200 conversations on 21 dimensions by seven raters.

    Four sets of 50 conversations in which one person has a trouble and the other answers. Texts are
    not read: they have licences of their own, and one set has none. A conversation is numbered
    within its set, because the ids of one set are those of crowd workers. The crowd's rating is
    the mean of several people.

    Returns:
        One row per rating: `corpus`, `conversation` (such as "epitome 07"), `dimension`, `rater`
        and `rating`. Scales differ: 1-5 (EmpatheticDialogues, Lend an Ear), 0-2 (EPITOME), 1-7
        (Perceived Empathy). Higher is more of what the dimension names, which on `FAULTS` is worse
        and on every other dimension better.

    Raises:
        DataError: a file is damaged, or cannot be downloaded.

    Reference: Kumar et al. (2025), arXiv 2506.10150.
    """
    tables = []
    for corpus, id_column in CONVERSATION_COLUMNS.items():
        for rater, file_name in RATERS.items():
            file = fetch_file(f"{FOLDER}/{corpus}/{file_name}_ratings.csv")
            table = pd.read_csv(file, dtype={id_column: "str"})
            unnamed = {name for name in table if name.startswith("Unnamed")}
            dimensions = [
                name
                for name in table
                if name not in NO_DIMENSION | unnamed | {id_column}
            ]
            # Every rater has the same conversations, in an order of his own.
            numbers = table[id_column].rank().astype(int)
            table["conversation"] = [f"{corpus} {number:02d}" for number in numbers]
            ratings = table.melt(
                id_vars="conversation",
                value_vars=dimensions,
                var_name="dimension",
                value_name="rating",
            )
            tables.append(ratings.assign(corpus=corpus, rater=rater))
    ratings = pd.concat(tables, ignore_index=True)
    ratings["dimension"] = (
        ratings["dimension"].str.removeprefix("m_").str.removeprefix("level_")
    )
    ratings["rating"] = ratings["rating"].astype(float)
    return attach_report(ratings[RATING_COLUMNS], report_row("ratings", len(ratings)))


def empathic_conversations() -> pd.DataFrame:
    """Read the texts of 150 of the conversations: what the person who listens says.

    The texts have licences of their own, so no notebook shows them. The fourth set (Perceived
    Empathy) is given out on request only.

    Returns:
        A turn table: one row per message of the listener with `corpus`, `dialog` (the
        `conversation` of `empathic_communication`), `turn`, `context` (all messages before) and
        `response`. `system` and `agent` are the corpus: who listens is not known.

    Raises:
        DataError: a file is damaged, or cannot be downloaded.

    Reference: Rashkin et al. (2019), EmpatheticDialogues; Sharma et al. (2020), EPITOME.
    """
    rows = []
    for corpus, file_name in CONVERSATION_FILES.items():
        id_column = CONVERSATION_COLUMNS[corpus]
        file = fetch_file(f"{TEXT_FOLDER}/{file_name}")
        table = pd.read_csv(file, dtype={id_column: "str"})
        numbers = table[id_column].rank(method="dense").astype(int)
        table["dialog"] = [f"{corpus} {number:02d}" for number in numbers]
        for dialog, lines in table.groupby("dialog"):
            context = []
            for is_listener, text in _messages(corpus, lines):
                if is_listener:
                    rows.append(
                        {
                            "system": corpus,
                            "agent": corpus,
                            "corpus": corpus,
                            "dialog": dialog,
                            "turn": len(context),
                            "context": list(context),
                            "response": text,
                        }
                    )
                context.append(text)
    return attach_report(pd.DataFrame(rows), report_row("messages", len(rows)))


def _messages(corpus: str, lines: pd.DataFrame) -> list[tuple[bool, str]]:
    """The messages of one conversation in order, each after whether the listener wrote it.

    EmpatheticDialogues has a row per message, and the listener writes those with an even number.
    EPITOME has a row with two posts; Lend an Ear has a row with the whole conversation.
    """
    if corpus == "empatheticdialogues":
        ordered = lines.sort_values("utterance_idx")
        by_listener = ordered["utterance_idx"] % 2 == 0
        texts = ordered["utterance"].str.replace("_comma_", ",")
        return list(zip(by_listener, texts, strict=True))
    (line,) = lines.itertuples()
    if corpus == "epitome":
        return [(False, line.seeker_post), (True, line.response_post)]
    parts = re.split(r"(?m)^(Seeker|Supporter):", line.full_conversation)
    speakers = parts[1::2]
    texts = [text.strip() for text in parts[2::2]]
    by_listener = [speaker == "Supporter" for speaker in speakers]
    return list(zip(by_listener, texts, strict=True))


def published_kappas() -> pd.DataFrame:
    """Read the authors' quadratically weighted kappas of each pair of raters and dimension.

    Returns:
        `corpus` and `dimension` as in `empathic_communication`, `rater_a`, `rater_b`, `kappa` (two
        decimals). "llm" is Gemini 2.5 Pro, "experts" the three together.
    """
    table = pd.read_csv(fetch_file(f"{FOLDER}/table_kappa.csv"))
    pairs = table["Annotator Pair"].str.findall(r"'(.*?)'")
    corpora = table["Dataset"].str.lower().str.replace(" ", "_")
    return pd.DataFrame(
        {
            "corpus": corpora.replace("empathetic_dialogues", "empatheticdialogues"),
            "dimension": table["Dimension"]
            .str.removeprefix("m_")
            .str.removeprefix("level_"),
            "rater_a": pairs.str[0],
            "rater_b": pairs.str[1],
            "kappa": table["Weighted Cohen's Kappa"],
        }
    )
