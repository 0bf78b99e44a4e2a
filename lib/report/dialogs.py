"""A user's dialogs: read the file, propose names for its columns, say what to beware of."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
import pyarrow.parquet

from lib.data import DataError, read_turns
from lib.psychology import function_words

FEW_DIALOGS = 20
ENGLISH_SHARE = 0.25
#: What people call our columns, normalised: lower case, words joined by "_".
SYNONYMS = {
    "response": "reply answer output bot_reply bot_response assistant text model_response "
    "system_output bot_message generated utterance",
    "context": "history prompt user user_message input question query previous source "
    "dialog_history conversation_history",
    "dialog": "dialogue conversation chat session thread dialog_id dialogue_id conversation_id "
    "chat_id session_id conv_id",
    "system": "model bot chatbot system_name model_name bot_name",
    "agent": "agent_id bot_id instance",
    "turn": "turn_id turn_no turn_number position step",
    "reference": "gold ground_truth target expected references",
    "fact": "persona knowledge facts",
}


def read(path: Path | str, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """A turn table from a user's CSV, TSV, JSONL, JSON or Parquet file.

    `lib.data.read_turns` with one addition: when a column is missing, the error proposes the
    mapping that the file's own names suggest, ready to paste. Nothing is renamed without consent.

    Args:
        path: the file; its ending names the format.
        columns: our name -> the name in the file, for example {"response": "Bot reply"}.

    Raises:
        DataError: a fault in the file, with its place and the way out.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("Bot,Chat ID,Reply\\nA,1,Hello\\n")
    >>> read(file)
    Traceback (most recent call last):
    ...
    lib.data...DataError: ...
    The names in the file suggest: columns={'response': 'Reply', 'dialog': 'Chat ID', ...
    """
    path = Path(path)
    try:
        return read_turns(path, columns=columns)
    except DataError as error:
        found = {} if columns or error.row is not None else suggest_columns(column_names(path))
        if not found:
            raise
        hint = f"{error}\nThe names in the file suggest: columns={found!r}"
        if lacking := [name for name in ("system", "dialog", "response") if name not in found]:
            hint += f"\nNothing in the file looks like {' or '.join(lacking)}: add a column "
            hint += "(system: the chatbot's name; dialog: which conversation; response: its reply)"
        raise DataError(hint) from error


def column_names(path: Path) -> list[str]:
    """The column names of a table file, or [] if they cannot be told.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.jsonl"
    >>> _ = file.write_text('{"Bot": "A", "Reply": "Hi"}\\n')
    >>> column_names(file)
    ['Bot', 'Reply']
    """
    kind = path.suffix.lower()
    try:
        if kind == ".parquet":
            return pyarrow.parquet.read_schema(path).names
        if kind in (".csv", ".tsv"):
            return list(pd.read_csv(path, sep="\t" if kind == ".tsv" else ",", nrows=0))
        return list(pd.read_json(path, lines=kind == ".jsonl"))
    except (OSError, ValueError):
        return []


def suggest_columns(names: Iterable[str]) -> dict[str, str]:
    """Our column name -> the file's, for names that mean one of ours; ratings included.

    >>> suggest_columns(["Conversation ID", "reply", "human overall", "notes"])
    {'response': 'reply', 'dialog': 'Conversation ID', 'human_overall': 'human overall'}
    """
    plain = {"_".join(_words(name)): name for name in names}
    found: dict[str, str] = {}
    for ours, synonyms in SYNONYMS.items():
        theirs = [plain[name] for name in (ours, *synonyms.split()) if name in plain]
        if theirs := [name for name in theirs if name not in found.values()]:
            found[ours] = theirs[0]
    ratings = {name: theirs for name, theirs in plain.items() if name.startswith("human_")}
    return found | {name: theirs for name, theirs in ratings.items() if name != theirs}


def _words(name: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in str(name).lower()).split()


def describe(turns: pd.DataFrame) -> pd.DataFrame:
    """Per agent: dialogs, replies, and the share of replies with a context and with a reference.

    >>> from lib.data import load
    >>> int(describe(load("sample_bots").turns)["dialogs"].sum())
    30
    """
    filled = {f"with_{name}": turns[name].map(len).gt(0) for name in ("context", "reference")}
    grouped = turns.assign(**filled).groupby(["system", "agent"])
    counts = grouped.agg(dialogs=("dialog", "nunique"), replies=("response", "size"))
    return counts.join(grouped[list(filled)].mean())


def english_share(texts: pd.Series) -> float:
    """Share of tokens that are English function words: about .5 in talk, near 0 elsewhere.

    NaN when there is no token at all.

    >>> english_share(pd.Series(["I think that you are right"])) > 0.5
    True
    >>> english_share(pd.Series(["Das weiss ich leider nicht"]))
    0.0
    """
    tokens = [t.strip(".,!?;:\"'()") for text in texts for t in str(text).lower().split()]
    tokens = pd.Series([t for t in tokens if any(c.isalpha() for c in t)], dtype=object)
    return float(tokens.isin(list(function_words().weights)).mean())


def rated(turns: pd.DataFrame) -> list[str]:
    """The ratings that some turn has.

    >>> rated(pd.DataFrame({"human_fun": [1.0], "human_overall": [None]}))
    ['human_fun']
    """
    return [name for name in turns if name.startswith("human_") and turns[name].notna().any()]


def warnings(turns: pd.DataFrame) -> pd.DataFrame:
    """Everything about the file that limits what its scores can say.

    Checked: dialogs per agent, number of systems, empty and repeated responses, missing context,
    references and ratings, and the language (every metric here was made for English).

    Returns:
        Columns topic, found, consequence; no row means nothing to warn of.

    >>> turns = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["1"],
    ...     "context": [[]], "response": [""], "reference": [[]]})
    >>> warnings(turns)["topic"].tolist()
    ['few dialogs', 'one system', 'empty replies', 'no context', 'no references', 'no ratings']
    """
    keys = ["system", "agent"]
    dialogs = turns.drop_duplicates([*keys, "dialog"]).groupby(keys).size()
    few = dialogs[dialogs < FEW_DIALOGS]
    names = ", ".join(f"{' / '.join(dict.fromkeys(k))} ({n})" for k, n in few.head(5).items())
    empty = turns["response"].str.strip().eq("")
    repeat = turns.loc[~empty, "response"].duplicated(keep=False).mean()
    context, reference = (turns[name].map(len).eq(0).mean() for name in ("context", "reference"))
    english = english_share(turns["response"])
    checks = [
        (len(few) > 0, "few dialogs",
         f"fewer than {FEW_DIALOGS} dialogs for {len(few)} agent(s): {names}",
         "intervals are wide and too narrow at once; collect more before ranking agents"),
        (turns["system"].nunique() == 1, "one system", f"only {turns['system'].iloc[0]!r}",
         "nothing to compare it with"),
        (empty.any(), "empty replies", f"{empty.sum()} of {len(turns)} replies are empty",
         "they are scored where a metric is defined for them, and NaN elsewhere"),
        (repeat > 0.2, "repeated replies", f"{repeat:.0%} of the replies occur more than once",
         "a bot that repeats itself can still score well turn by turn"),
        (context > 0.2, "no context", f"{context:.0%} of the turns have no context",
         "matching metrics (style, emotion, context similarity) are missing there"),
        (reference > 0, "no references", f"{reference:.0%} of the turns have no reference",
         "overlap metrics are missing there; reference-free metrics are not affected"),
        (not rated(turns), "no ratings", "no column human_<dimension>",
         "how far the metrics agree with people is taken from public corpora, not from yours"),
        (english < ENGLISH_SHARE, "not English?",
         f"only {english:.0%} of the words are common English function words (talk: about 50%)",
         "lexica, encoder and classifiers are English: do not trust any score below"),
    ]  # fmt: skip
    rows = [check[1:] for check in checks if check[0]]
    return pd.DataFrame(rows, columns=["topic", "found", "consequence"])
