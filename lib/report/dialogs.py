"""A user's dialogs: read one file, or several to compare, and say what limits their scores."""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from lib.data import read_turns
from lib.data.chat_logs import speaker_role
from lib.psychology import function_words

MIN_DIALOGS_OF_BOT = 5  # a speaker of fewer may be a user
COMPRESSED = (".gz", ".zst", ".xz", ".bz2", ".zip")
MIN_DIALOGS = 20  # of an agent; with fewer, its intervals are too narrow


def read_versions(
    paths: Path | str | Sequence[Path | str],
    columns: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """The turn table of a file or folder (see `lib.data.read_turns`), or of several to compare.

    Of several, each is a system with the name of its file; its own system names become the agents.

    >>> import tempfile
    >>> old, new = (Path(tempfile.mkdtemp(), name) for name in ("old.txt", "new.txt"))
    >>> _ = old.write_text("User: Hi\\nBot: Hello"), new.write_text("User: Hi\\nBot: Hey")
    >>> read_versions([old, new])[["system", "agent", "response"]].values.tolist()
    [['old', 'Bot', 'Hello'], ['new', 'Bot', 'Hey']]
    """
    paths = [paths] if isinstance(paths, str | Path) else paths
    tables = [read_turns(path, columns, options=overrides) for path in paths]
    if len(tables) == 1:
        return tables[0]
    names = [file_stem(path) for path in paths]
    if len(set(names)) < len(names):
        names = list(string.ascii_uppercase[: len(names)])
    by_name = dict(zip(names, tables, strict=True))
    versions = [table.assign(system=name) for name, table in by_name.items()]
    turns = pd.concat(versions, ignore_index=True)
    turns.attrs = {"files": {name: table.attrs for name, table in by_name.items()}}
    return turns


def file_stem(path: Path | str) -> str:
    """A file's name without its ending, also that of its compression: "bot_1.4.csv.gz" is bot_1.4.

    >>> file_stem("logs/bot_1.4.csv.gz"), file_stem("logs/bot_1.4.jsonl")
    ('bot_1.4', 'bot_1.4')
    """
    name = Path(path).name
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return Path(name).stem


def import_details(turns: pd.DataFrame) -> str:
    """How a file was read, with the parameter that changes each guess, and what was counted.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "log.txt")
    >>> _ = path.write_text("User: Hi\\nBot: Hello")
    >>> print(import_details(read_versions(path)))
    encoding: utf-8 (all of it is valid). To change it: ENCODING=...
    split: none (...). To change it: SPLIT=...
    kind: transcript (transcript). To change it: KIND=...
    bot: Bot (by the name of the role; the speakers: Bot, User). To change it: BOT=...
    dialogs: 1 read, 1 kept
    ...
    """
    lines = []
    files = turns.attrs.get("files", {"": turns.attrs})
    for file, attrs in files.items():
        prefix = f"{file}: " if file else ""
        for guess, value, reason, n_files in attrs.get("guesses", []):
            count = f", {n_files} files" if n_files > 1 else ""
            hint = f"To change it: {option_hint(guess, value)}"
            lines.append(f"{prefix}{guess}: {value} ({reason}{count}). {hint}")
        for row in attrs.get("report", []):
            note = f" ({row['notes']})" if row["notes"] else ""
            if row["excluded"]:
                note += f", {row['excluded']} excluded: {row['reasons']}"
            lines.append(
                f"{prefix}{row['unit']}: {row['read']} read, {row['kept']} kept{note}"
            )
    for system, replies in turns.groupby("system", sort=False):
        n_dialogs = len(replies[["agent", "dialog"]].drop_duplicates())
        lines.append(f"system {system}: {len(replies)} replies in {n_dialogs} dialogs")
    return "\n".join(lines)


def left_out(turns: pd.DataFrame, unit: str = "dialogs") -> dict[str, int]:
    """How many dialogs (or ratings, utterances) of the files were left out, by the reason.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "log.csv")
    >>> _ = path.write_text("dialog,speaker,text\\n1,user,Hi\\n1,bot,Hello\\n2,user,Hi\\n")
    >>> left_out(read_versions(path, overrides={"bot": "bot"}))
    {'have no reply of the bot': 1}
    """
    counts: Counter[str] = Counter()
    for attrs in turns.attrs.get("files", {"": turns.attrs}).values():
        report = pd.DataFrame(attrs.get("report", []))
        if report.empty:
            continue
        for reasons in report.loc[report["unit"] == unit, "reasons"]:
            for text in filter(None, reasons.split("; ")):
                count, _, reason = text.partition(" ")
                counts[reason] += int(count)
    return dict(counts)


def option_hint(option: str, value: str) -> str:
    """An option in the form that the command takes, with the names of columns it may say.

    >>> option_hint("bot", "Ada"), option_hint("columns", "speaker='who' text='body'")
    ('BOT=...', 'COLUMNS="speaker=... text=..."')
    """
    if option != "columns":
        return f"{option.upper()}=..."
    names = re.findall(r"(\w+)(?==|: )", value) or ["response"]
    return f'COLUMNS="{" ".join(f"{name}=..." for name in names)}"'


def describe_turns(turns: pd.DataFrame) -> pd.DataFrame:
    """Per agent: dialogs, replies, and the share of replies with a context and with a reference.

    >>> from lib.data import load
    >>> int(describe_turns(load("sample_bots").turns)["dialogs"].sum())
    30
    """
    turns = turns.assign(
        with_context=turns["context"].map(len) > 0,
        with_reference=turns["reference"].map(len) > 0,
    )
    return turns.groupby(["system", "agent"]).agg(
        dialogs=("dialog", "nunique"),
        replies=("response", "size"),
        with_context=("with_context", "mean"),
        with_reference=("with_reference", "mean"),
    )


def english_share(texts: pd.Series) -> float:
    """Share of tokens that are English function words: about .5 in dialogs, near 0 elsewhere.

    NaN when there is no token at all.

    >>> english_share(pd.Series(["I think that you are right"])) > 0.5
    True
    >>> english_share(pd.Series(["Das weiss ich leider nicht"]))
    0.0
    """
    tokens = texts.astype(str).str.lower().str.split()
    tokens = tokens.explode().dropna().str.strip(".,!?;:\"'()")
    has_letter = tokens.map(lambda token: any(map(str.isalpha, token)))
    is_function_word = tokens[has_letter].isin(list(function_words().weights))
    return float(is_function_word.mean())


def rating_columns(turns: pd.DataFrame) -> list[str]:
    """The ratings that some turn has.

    >>> rating_columns(pd.DataFrame({"human_fun": [1.0], "human_overall": [None]}))
    ['human_fun']
    """
    columns = turns.filter(regex="^human_")
    return list(columns.dropna(axis=1, how="all"))


def leading_rating(turns: pd.DataFrame) -> str:
    """The rating that stands for the file: human_overall, else the first of some turn, else "".

    >>> leading_rating(pd.DataFrame({"human_fun": [1.0], "human_overall": [2.0]}))
    'human_overall'
    """
    ratings = rating_columns(turns)
    if "human_overall" in ratings:
        return "human_overall"
    return next(iter(ratings), "")


def warnings(turns: pd.DataFrame, max_replies: float = float("inf")) -> pd.DataFrame:
    """Everything about the file that limits what its scores can say.

    Checked: dialogs per agent, number of systems, whether users were read as systems, missing
    context, references and ratings, the language (every metric here was made for English), and
    whether there are more replies than the networks read (`max_replies`).

    Returns:
        Columns topic, finding, consequence; no row means that there is nothing to warn of.

    >>> turns = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["1"],
    ...     "context": [[]], "response": ["I do."], "reference": [[]]})
    >>> warnings(turns)["topic"].tolist()
    ['few dialogs', 'one system', 'no context', 'no references', 'no ratings']
    """
    rows = []

    def warn(topic: str, finding: str, consequence: str) -> None:
        rows.append({"topic": topic, "finding": finding, "consequence": consequence})

    systems = turns["system"].unique()
    users = [name for name in systems if speaker_role(name) == "user"]
    typical = turns.groupby("system")["dialog"].nunique().median()
    many_systems = len(systems) > max(10, turns["dialog"].nunique() / 2)
    if not users and many_systems and typical < MIN_DIALOGS_OF_BOT:
        users = list(systems)
    if users:
        warn(
            "users among the systems?",
            f"{len(systems)} systems, such as {users[0]}",
            'if they are speakers: COLUMNS="speaker=... text=..." BOT=...',
        )
    column = turns.attrs.get("columns", {}).get("response", "")
    if speaker_role(column) == "user":
        warn(
            "the user's words?",
            f"the replies stand in {column!r}",
            "the user's words are scored as if a bot had written them; "
            'if so: make report DIALOGS=... COLUMNS="response=..."',
        )
    dialogs = describe_turns(turns)["dialogs"]
    small = dialogs[dialogs < MIN_DIALOGS]
    if len(small):
        agents_of_system = dialogs.groupby("system").size()
        names = []
        for (system, agent), count in small.head(5).items():
            has_several = agents_of_system[system] > 1
            name = f"{system} / {agent}" if has_several else system
            names.append(f"{name} ({count})")
        if len(small) > 5:
            names.append(f"and {len(small) - 5} more")
        those = "1 agent has" if len(small) == 1 else f"{len(small)} agents each have"
        warn(
            "few dialogs",
            f"{those} fewer than {MIN_DIALOGS} dialogs: {', '.join(names)}",
            "intervals are wide, and should be wider still; collect more before ranking agents",
        )
    if len(systems) == 1:
        warn("one system", f"only {systems[0]!r}", "nothing to compare it with")
    no_context = turns["context"].map(len).eq(0).mean()
    if no_context > 0.2:
        warn(
            "no context",
            f"{no_context:.0%} of the turns have no context",
            "matching metrics (style, emotion, context similarity) are missing there; "
            'COLUMNS="context=..." says which column holds it',
        )
    no_reference = turns["reference"].map(len).eq(0).mean()
    if no_reference > 0:
        warn(
            "no references",
            f"{no_reference:.0%} of the turns have no reference",
            "overlap metrics are missing there; reference-free metrics are not affected",
        )
    if not rating_columns(turns):
        warn(
            "no ratings",
            "no column human_<dimension>",
            "how well the metrics agree with people is taken from public corpora, not from yours; "
            "make report DIALOGS=... RATE=40 writes a sheet for people to rate",
        )
    english = english_share(turns["response"])
    if english < 0.25:
        warn(
            "not English?",
            f"only {english:.0%} of the words are common English function words (usual: about 50%)",
            "lexica, encoder and classifiers are English: do not trust any score below",
        )
    if len(turns) > max_replies:
        warn(
            "a sample for the networks",
            f"of {len(turns):,} replies encoder and EnDex read some {max_replies:,} (READ=...): "
            "whole dialogs, as many replies of each system",
            "their numbers rest on these, as the intervals show; their rules read no others",
        )
    return pd.DataFrame(rows, columns=["topic", "finding", "consequence"])
