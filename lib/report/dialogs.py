"""A user's dialogs: read one file, or two to compare, show what was read, say what to beware of."""

import string
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from lib.data import read_turns
from lib.data.chat_logs import speaker_role
from lib.psychology import function_words

FEW_DIALOGS = 20


def read_dialogs(
    paths: Path | str | Sequence[Path | str], columns: Mapping[str, str] | None = None, given=None
) -> pd.DataFrame:
    """The turn table of a file or folder (see `lib.data.read_turns`), or of several to compare.

    Of several, each is a system with the name of its file; what it called its own is the agent.
    A table that was read before comes back as it is.

    >>> import tempfile
    >>> old, new = (Path(tempfile.mkdtemp(), name) for name in ("old.txt", "new.txt"))
    >>> _ = old.write_text("User: Hi\\nBot: Hello"), new.write_text("User: Hi\\nBot: Hey")
    >>> read_dialogs([old, new])[["system", "agent", "response"]].values.tolist()
    [['old', 'Bot', 'Hello'], ['new', 'Bot', 'Hey']]
    """
    paths = [paths] if isinstance(paths, str | Path) else paths
    if isinstance(paths[0], pd.DataFrame):
        return paths[0]
    tables = [read_turns(path, columns, options=given) for path in paths]
    if len(tables) == 1:
        return tables[0]
    names = [Path(path).name.partition(".")[0] for path in paths]
    if len(set(names)) < len(names):
        names = [*string.ascii_uppercase[: len(names)]]
    of = dict(zip(names, tables, strict=True))
    turns = pd.concat([of[name].assign(system=name) for name in of], ignore_index=True)
    turns.attrs = {"files": {name: of[name].attrs for name in of}}
    return turns


def import_details(turns: pd.DataFrame) -> str:
    """What a file was taken for, with the parameter that changes each guess, and what was counted.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "log.txt")
    >>> _ = path.write_text("User: Hi\\nBot: Hello")
    >>> print(import_details(read_dialogs(path)))
    encoding: utf-8 (all of it is valid). To change it: ENCODING=...
    split: none (what parts the dialogs: rules, blank (lines) or none). To change it: SPLIT=...
    kind: transcript (transcript). To change it: KIND=...
    bot: Bot (by the name of the role; the speakers: Bot, User). To change it: BOT=...
    dialogs: 1 read, 1 kept
    ...
    """
    lines = []
    for file, attrs in turns.attrs.get("files", {"": turns.attrs}).items():
        start = f"{file}: " if file else ""
        for what, taken, why, count in attrs["guesses"]:
            files = f", {count} files" if count > 1 else ""
            way = f"To change it: {what.upper()}=..."
            lines.append(f"{start}{what}: {taken} ({why}{files}). {way}")
        for row in attrs["report"]:
            note = f" ({row['notes']})" if row["notes"] else ""
            if row["excluded"]:
                note += f", {row['excluded']} excluded: {row['reasons']}"
            lines.append(f"{start}{row['unit']}: {row['read']} read, {row['kept']} kept{note}")
    for name, table in turns.groupby("system", sort=False):
        count = table[["agent", "dialog"]].drop_duplicates().shape[0]
        lines.append(f"system {name}: {len(table)} replies in {count} dialogs")
    return "\n".join(lines)


def describe_turns(turns: pd.DataFrame) -> pd.DataFrame:
    """Per agent: dialogs, replies, and the share of replies with a context and with a reference.

    >>> from lib.data import load
    >>> int(describe_turns(load("sample_bots").turns)["dialogs"].sum())
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


def warnings(turns: pd.DataFrame, most: float = float("inf")) -> pd.DataFrame:
    """Everything about the file that limits what its scores can say.

    Checked: dialogs per agent, number of systems, whether users were taken for systems, missing
    context, references and ratings, the language (every metric here was made for English), and
    whether there are more replies than the networks read (`most`).

    Returns:
        Columns topic, found, consequence; no row means nothing to warn of.

    >>> turns = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["1"],
    ...     "context": [[]], "response": ["I do."], "reference": [[]]})
    >>> warnings(turns)["topic"].tolist()
    ['few dialogs', 'one system', 'no context', 'no references', 'no ratings']
    """
    few = describe_turns(turns)["dialogs"].loc[lambda dialogs: dialogs < FEW_DIALOGS]
    names = ", ".join(f"{' / '.join(dict.fromkeys(k))} ({n})" for k, n in few.head(5).items())
    context, reference = (turns[name].map(len).eq(0).mean() for name in ("context", "reference"))
    english = english_share(turns["response"])
    systems, source = turns["system"].unique(), turns.attrs.get("columns", {}).get("response", "")
    users = [name for name in systems if speaker_role(name) == "user"]
    users = users or (systems if len(systems) > max(10, turns["dialog"].nunique() / 2) else [])
    checks = [
        (len(users) > 0, "users among the systems?", f"{len(systems)} systems, such as {users[:1]}",
         "if they are speakers: map the columns speaker and text, and name the bot"),
        (speaker_role(source) == "user", "the user's words?", f"the replies stand in {source!r}",
         "the user's words are scored as if a bot had said them"),
        (len(few) > 0, "few dialogs",
         f"fewer than {FEW_DIALOGS} dialogs for {len(few)} agent(s): {names}",
         "intervals are wide, and should be wider still; collect more before ranking agents"),
        (turns["system"].nunique() == 1, "one system", f"only {turns['system'].iloc[0]!r}",
         "nothing to compare it with"),
        (context > 0.2, "no context", f"{context:.0%} of the turns have no context",
         "matching metrics (style, emotion, context similarity) are missing there"),
        (reference > 0, "no references", f"{reference:.0%} of the turns have no reference",
         "overlap metrics are missing there; reference-free metrics are not affected"),
        (not rated(turns), "no ratings", "no column human_<dimension>",
         "how far the metrics agree with people is taken from public corpora, not from yours"),
        (english < 0.25, "not English?",
         f"only {english:.0%} of the words are common English function words (talk: about 50%)",
         "lexica, encoder and classifiers are English: do not trust any score below"),
        (len(turns) > most, "a sample for the networks", f"of {len(turns):,} replies encoder and "
         f"EnDex read some {most:,} (READ): whole dialogs, as many replies of each system",
         "their numbers rest on these, as the intervals say; rules by them look at no others"),
    ]  # fmt: skip
    rows = [check[1:] for check in checks if check[0]]
    return pd.DataFrame(rows, columns=["topic", "found", "consequence"])
