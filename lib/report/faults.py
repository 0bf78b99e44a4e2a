"""What to fix: replies that a rule finds fault with, and how far each rule can be trusted."""

import re
from functools import lru_cache
from itertools import product

import pandas as pd

from lib.meta_evaluation.figures import display_name
from lib.meta_evaluation.robustness import text_sides
from lib.metrics import METRICS, compute
from lib.metrics.baselines import tokenize_words
from lib.report.scores import recorded

#: A rule per row: what is wrong, the score that raises it, how, from where on, and the damage of
#: Zhang et al. 2024 on which it was tried. A reply is listed under the first rule that it meets.
RULES = pd.DataFrame(
    [
        ("empty", "length", "at most", 0, ""),
        ("toxic", "toxicity", "at least", 0.5, ""),
        ("contradicts the persona", "negated_fact", "at least", 0.75, ""),
        ("repeats itself", "overlap_with_itself", "at least", 0.8, ""),
        ("repeats itself", "words_said_twice", "at least", 2, "stutter"),
        ("repeats the user", "overlap_with_user", "at least", 0.6, "speaker mix-up"),
        ("cut off", "open_end", "at least", 0.8, ""),
        ("off topic", "context_similarity", "at most", 0.05, "random reply"),
        ("generic", "specificity", "at most", 1, "dull reply"),
        ("generic", "dialogs_with_it", "at least", 3, ""),
    ],
    columns=["fault", "metric", "when", "bound", "damage"],
)
TWICE = re.compile(r"\b(\w+(?: \w+){1,9}) \1\b")
NEGATIONS = {"not", "no", "never", "nothing", "nobody", "cannot"}
OPEN = re.compile(r"[\w,;:(-]\s*$")


def signals(turns: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """What the rules read of each reply: some of its scores, and counts of its words.

    Returns:
        On the index of `turns`: the metrics of `RULES` among `scores`; overlap_with_user and
        overlap_with_itself, the highest share of words in common (Dice) with an utterance before
        of either speaker; words_said_twice, the longest run of words that is said twice in a row;
        negated_fact, the words in common with a fact that only one of both negates; open_end, the
        share of the system's replies that end with a mark, where this one does not;
        dialogs_with_it, the dialogs in which its system gives this very reply.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1"], "context": [["So you have a dog?"]],
    ...     "response": ["I do not have a dog."], "fact": [["I have a dog."]]})
    >>> signals(turns, pd.DataFrame(index=turns.index))["negated_fact"].round(2).tolist()
    [0.89]
    """
    table, text = scores.filter(RULES["metric"].unique()), turns["response"].str.strip()
    for name, start in (("overlap_with_user", -1), ("overlap_with_itself", -2)):
        pairs = zip(text, turns["context"], strict=True)
        table[name] = [_nearest(own, before[start::-2]) for own, before in pairs]
    table["words_said_twice"] = [_twice(one) for one in text]
    if "fact" in turns:
        table["negated_fact"] = list(map(_negated, text, turns["fact"]))
    ends = text.map(lambda one: not OPEN.search(one))
    table["open_end"] = ends.groupby(turns["system"]).transform("mean").where(~ends & text.ne(""))
    table["dialogs_with_it"] = turns.groupby(["system", text])["dialog"].transform("nunique")
    return table


@lru_cache(maxsize=1000)  # of a dialog, not of the file
def _bag(text: str) -> frozenset:
    return frozenset(tokenize_words(text))


def _nearest(own: str, others: list[str]) -> float:
    """Highest share of words in common; a reply of one or two words repeats nobody."""
    compared = others if len(_bag(own)) > 2 else []
    return max((_dice(_bag(own), _bag(other)) for other in compared), default=0.0)


def _dice(a: frozenset, b: frozenset) -> float:
    return 2 * len(a & b) / max(len(a) + len(b), 1)


def _twice(text: str) -> int:
    found = TWICE.finditer(" ".join(tokenize_words(text)))
    return max((len(match[1].split()) for match in found), default=0)


def _negated(text: str, facts: list[str]) -> float:
    pairs = product(map(_affirmed, re.split(r"[.!?]+", text)), map(_affirmed, facts))
    return max((_dice(own, other) * (no != denied) for (own, no), (other, denied) in pairs),
               default=0.0)  # fmt: skip


def _affirmed(text: str) -> tuple[frozenset, bool]:
    """The words of a sentence without its negations, and whether there are any."""
    found = tokenize_words(text)
    no = {word for word in found if word in NEGATIONS or word.endswith("n't")}
    return frozenset(found) - no, bool(no)


def faults(signals: pd.DataFrame) -> pd.DataFrame:
    """Each reply that a rule meets, once: under the first such rule, the clearest cases first.

    Returns:
        Columns reply (its label in the index), rule (row of `RULES`), fault, metric, value.

    >>> faults(pd.DataFrame({"length": [0.0, 3.0], "specificity": [0.0, 1.0]}))["fault"].tolist()
    ['empty', 'generic']
    """
    rows = []
    for rule in RULES[RULES["metric"].isin(signals.columns)].itertuples():
        met = signals.loc[_meets(signals, rule), rule.metric]
        met = met.sort_values(ascending=rule.when == "at most", kind="stable")
        rows.append(pd.DataFrame({"rule": rule.Index, "value": met}).rename_axis("reply"))
    found = pd.concat(rows).reset_index().drop_duplicates("reply", ignore_index=True)
    return found.join(RULES[["fault", "metric"]], on="rule")


def _meets(signals: pd.DataFrame, rule) -> pd.Series:
    value = signals[rule.metric]
    return value.le(rule.bound) if rule.when == "at most" else value.ge(rule.bound)


def fault_table(found: pd.DataFrame, signals: pd.DataFrame) -> pd.DataFrame:
    """Every rule: how many replies it finds fault with, and how far to trust it.

    Columns fault, rule, replies, share (of those that have the score), seen and false_alarm
    (`trust`: of damaged and of whole replies, the share that the rule raises), note (why a rule
    found nothing to read).

    >>> signals = pd.DataFrame({"length": [0.0, 3.0]})
    >>> fault_table(faults(signals), signals)[["replies", "note"]].values.tolist()[:2]
    [[1, ''], [0, 'not looked for: no score of toxicity']]
    """
    trusted = recorded("11_trust", ["fault", "metric", "seen", "false_alarm"])
    table = RULES.merge(trusted, on=["fault", "metric"], how="left")
    names = table["metric"].map(display_name)
    table["rule"] = names + " " + table["when"] + " " + table["bound"].map("{:g}".format)
    table["replies"] = found["rule"].value_counts().reindex(table.index, fill_value=0)
    read = signals.filter(METRICS).notna().sum().reindex(table["metric"], fill_value=len(signals))
    table["share"] = table["replies"] / read.clip(lower=1).to_numpy()
    absent = ~table["metric"].isin(signals.columns)
    table["note"] = ("not looked for: no score of " + names).where(absent, "")
    return table[["fault", "rule", "replies", "share", "seen", "false_alarm", "note"]]


def reading_list(turns: pd.DataFrame, found: pd.DataFrame, each: int = 10) -> pd.DataFrame:
    """Replies to read, by what is wrong: of every fault the `each` clearest, no reply twice.

    Columns fault, metric, value, system, dialog, turn, before (the last utterance), reply.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1", "2"], "turn": 1,
    ...                       "context": [["Hi"], ["Tea?"]], "response": ["Ok.", "ok. "]})
    >>> found = faults(pd.DataFrame({"specificity": [1.0, 1.0]}))
    >>> reading_list(turns, found)[["fault", "dialog", "reply"]].values.tolist()
    [['generic', '1', 'Ok.']]
    """
    table = found.join(turns[["system", "dialog", "turn", "context", "response"]], on="reply")
    same = table["response"].str.strip().str.casefold()
    table = table[~same.duplicated()].groupby("fault", sort=False).head(each)
    table["before"] = [context[-1] if len(context) else "" for context in table["context"]]
    table = table.drop(columns="reply").rename(columns={"response": "reply"})
    columns = ["fault", "metric", "value", "system", "dialog", "turn", "before", "reply"]
    return table.sort_values("rule", kind="stable")[columns].reset_index(drop=True)


def trust(pairs: pd.DataFrame, each: int = 400) -> pd.DataFrame:
    """Try the rules on replies that were damaged on purpose, and on the same replies unharmed.

    Args:
        pairs: `data.robustness_pairs`; the first `each` of every damage that a rule is tried on.

    Returns:
        A row per rule that has such a damage: fault, metric, damage, pairs, seen (share of the
        damaged replies that meet the rule), false_alarm (share of the unharmed replies of all
        these pairs that do).
    """
    pairs = pairs[pairs["perturbation"].isin(RULES["damage"])].groupby("perturbation").head(each)
    sides = text_sides(pairs.reset_index(drop=True))
    turns = sides.rename(columns={"side": "system"}).assign(dialog=sides["pair"].astype(str))
    tried = [name for name in RULES.loc[RULES["damage"].ne(""), "metric"] if name in METRICS]
    read = signals(turns, compute(turns, tried, log=lambda line: None))
    damage, whole = pairs["perturbation"].to_numpy()[sides["pair"]], sides["side"].eq("original")
    rows = []
    for rule in RULES[RULES["damage"].isin(damage)].itertuples():
        met, worse = _meets(read, rule), ~whole & (damage == rule.damage)
        shares = met[worse].mean(), met[whole].mean()
        rows.append((rule.fault, rule.metric, rule.damage, worse.sum(), *shares))
    return pd.DataFrame(rows, columns=["fault", "metric", "damage", "pairs", "seen", "false_alarm"])
