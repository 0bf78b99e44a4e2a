"""What to fix: rules that find an issue in a reply, and how far each rule can be trusted."""

import re
from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from lib.meta_evaluation.figures import display_name
from lib.meta_evaluation.robustness import text_sides
from lib.metrics import METRICS, compute
from lib.metrics.baselines import stop_words, tokenize_words
from lib.report.validity import reference_table
from lib.report.verdict import KEY, differences

STUTTER = re.compile(r"\b(?P<words>\w+(?: \w+){1,9}) (?P=words)\b")
NEGATIONS = {"not", "no", "never", "nothing", "nobody", "cannot"}
OPEN_END = re.compile(r"[\w,;:(-]\s*$")


class Rule(NamedTuple):
    """A reply has an issue where a score is "at most" or "at least" a bound.

    `damage` is the damage of Zhang et al. 2024 on which the rule was tried; "" where there is none.
    """

    issue: str
    metric: str
    when: str
    bound: float
    damage: str

    def applies(self, scores: pd.DataFrame) -> pd.Series:
        """Which rows of scores have the issue; a missing score has none."""
        values = scores[self.metric]
        return values <= self.bound if self.when == "at most" else values >= self.bound


#: A reply is listed under each rule that applies to it.
RULES = [
    Rule("empty", "length", "at most", 0, ""),
    Rule("toxic", "toxicity", "at least", 0.5, ""),
    Rule("contradicts the persona", "negated_fact", "at least", 0.75, ""),
    Rule("repeats itself", "overlap_with_itself", "at least", 0.8, ""),
    Rule("repeats itself", "words_said_twice", "at least", 2, "stutter"),
    Rule("repeats the user", "overlap_with_user", "at least", 0.6, "speaker mix-up"),
    Rule("cut off", "open_end", "at least", 0.8, ""),
    Rule("off topic", "context_similarity", "at most", 0.05, "random reply"),
    Rule("generic", "specificity", "at most", 1, "dull reply"),
    Rule("generic", "dialogs_with_it", "at least", 3, ""),
]

#: What a rule looks for, where "score at least bound" would not be understood.
WORDINGS = {
    "length": "no words",
    "negated_fact": "at least {percent:.0f} % of the words in common with a fact, one side negated",
    "overlap_with_itself": "at least {percent:.0f} % of the words in common with an earlier reply",
    "words_said_twice": "at least {bound:g} words said twice in a row",
    "overlap_with_user": "at least {percent:.0f} % of the words in common with the user",
    "open_end": "no punctuation at the end, unlike most replies of the version",
    "specificity": "at most {bound:g} word with content",
    "dialogs_with_it": "the same reply in at least {bound:g} dialogs",
}


def reply_signals(turns: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The scores and word counts of each reply that the rules read.

    Returns:
        On the index of `turns`: the metrics of `RULES` among `scores`; overlap_with_user and
        overlap_with_itself, the highest word overlap (Dice) with an earlier utterance of either
        speaker; words_said_twice, the longest run of words that stands twice in a row;
        negated_fact, the word overlap of a sentence with a fact where only one of the two is
        negated; open_end, the share of the system's replies that end with a punctuation mark, where
        this one does not; dialogs_with_it, the dialogs in which its system gives this very reply.
        An empty reply has a length and nothing else.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1"], "context": [["So you have a dog?"]],
    ...     "response": ["I do not have a dog."], "fact": [["I have a dog."]]})
    >>> reply_signals(turns, pd.DataFrame(index=turns.index))["negated_fact"].round(2).tolist()
    [0.89]
    """
    signals = scores.filter(dict.fromkeys(rule.metric for rule in RULES))
    text = turns["response"].str.strip()
    with_user = []
    with_itself = []
    for response, context in zip(text, turns["context"], strict=True):
        with_user.append(_highest_overlap(response, context[-1::-2]))
        with_itself.append(_highest_overlap(response, context[-2::-2]))
    signals["overlap_with_user"] = with_user
    signals["overlap_with_itself"] = with_itself
    signals["words_said_twice"] = text.map(_longest_stutter)
    if "fact" in turns:
        pairs = zip(text, turns["fact"], strict=True)
        signals["negated_fact"] = [
            contradiction(response, facts) for response, facts in pairs
        ]
    is_open = text.map(lambda response: bool(OPEN_END.search(response)))
    closed_share = (~is_open).groupby(turns["system"]).transform("mean")
    signals["open_end"] = closed_share.where(is_open & (text != ""))
    signals["dialogs_with_it"] = turns.groupby(["system", text])["dialog"].transform(
        "nunique"
    )
    signals.loc[text == "", signals.columns != "length"] = float("nan")
    return signals


@lru_cache(
    maxsize=1000
)  # texts of a dialog return in the contexts of its later replies
def _word_set(text: str) -> frozenset[str]:
    return frozenset(tokenize_words(text))


def _highest_overlap(response: str, utterances: list[str]) -> float:
    """Highest word overlap with an utterance; 0 for a reply of one or two words."""
    words = _word_set(response)
    if len(words) <= 2:
        return 0.0
    return max(
        (_dice(words, _word_set(utterance)) for utterance in utterances), default=0.0
    )


def words_seen(
    metric: str, response: str, context: list[str], facts: list[str]
) -> frozenset[str]:
    """The words of a reply that a rule saw, in lower case, for a reader to find them.

    Those in common with the utterance or the fact that it repeats or denies, those said twice in a
    row, the content words that were counted, the word that breaks off. None for a rule that reads
    the reply as a whole, such as its similarity to the context.

    Args:
        metric: the score that the rule reads.
        response, context, facts: as in the turn table.

    >>> sorted(words_seen("overlap_with_user", "I like tea", ["Do you like tea?"], []))
    ['like', 'tea']
    """
    words = _word_set(response)
    if metric == "words_said_twice":
        text = " ".join(tokenize_words(response))
        runs = [match["words"] for match in STUTTER.finditer(text)]
        return frozenset(" ".join(runs).split())
    if metric == "specificity":
        return words - stop_words()
    if metric == "open_end":
        return frozenset(tokenize_words(response)[-1:])
    compared = {
        "overlap_with_user": context[-1::-2],
        "overlap_with_itself": context[-2::-2],
        "negated_fact": facts,
    }
    utterances = [_word_set(text) for text in compared.get(metric, [])]
    nearest = max(
        utterances, key=lambda other: _dice(words, other), default=frozenset()
    )
    return words & nearest


def _dice(a: frozenset, b: frozenset) -> float:
    return 2 * len(a & b) / max(len(a) + len(b), 1)


def _longest_stutter(text: str) -> int:
    words = " ".join(tokenize_words(text))
    repeated = [match["words"] for match in STUTTER.finditer(words)]
    return max((len(run.split()) for run in repeated), default=0)


def contradiction(response: str, facts: list[str]) -> float:
    """Highest word overlap of a sentence with a fact where only one of the two is negated.

    Dice, 0 to 1, of the words without the negations.

    >>> round(contradiction("I have a dog. I like tea.", ["I do not like tea."]), 2)
    0.86
    """
    overlap = 0.0
    for sentence in re.split(r"[.!?]+", response):
        for fact in facts:
            sentence_words, sentence_negated = _split_negations(sentence)
            fact_words, fact_negated = _split_negations(fact)
            if sentence_negated != fact_negated:
                overlap = max(overlap, _dice(sentence_words, fact_words))
    return overlap


@lru_cache(maxsize=1000)  # the facts of a dialog are the same for each reply
def _split_negations(text: str) -> tuple[frozenset[str], bool]:
    """The words of a sentence without its negations, and whether there are any."""
    words = _word_set(text)
    negations = {word for word in words if word in NEGATIONS or word.endswith("n't")}
    return words - negations, bool(negations)


def find_issues(signals: pd.DataFrame) -> pd.DataFrame:
    """Each reply to which a rule applies, under every such rule, clearest cases first.

    Returns:
        Columns reply (its label in the index), rule (position in `RULES`), issue, metric, value.

    >>> signals = pd.DataFrame({"length": [0.0, 3.0], "specificity": [4.0, 1.0]})
    >>> find_issues(signals)["issue"].tolist()
    ['empty', 'generic']
    """
    tables = []
    for number, rule in enumerate(RULES):
        if rule.metric not in signals:
            continue
        values = signals.loc[rule.applies(signals), rule.metric]
        values = values.sort_values(ascending=rule.when == "at most", kind="stable")
        table = values.rename("value").rename_axis("reply").reset_index()
        tables.append(table.assign(rule=number, issue=rule.issue, metric=rule.metric))
    issues = pd.concat(tables, ignore_index=True)
    return issues[["reply", "rule", "issue", "metric", "value"]]


def rule_applies(signals: pd.DataFrame) -> pd.DataFrame:
    """Whether each rule applies to each reply: 1, 0, or NaN where the score is missing.

    The columns are positions in `RULES`; rules whose score was not computed are left out.

    >>> rule_applies(pd.DataFrame({"length": [0.0, 3.0]})).to_dict("list")
    {0: [1.0, 0.0]}
    """
    applies = pd.DataFrame(index=signals.index)
    for number, rule in enumerate(RULES):
        if rule.metric in signals:
            scored = signals[rule.metric].notna() | (rule.metric not in METRICS)
            applies[number] = rule.applies(signals).where(scored).astype(float)
    return applies


def rule_text(rule: Rule) -> str:
    """A rule in words.

    >>> rule_text(RULES[0]), rule_text(RULES[7])
    ('no words', 'similarity to context at most 0.05')
    """
    if rule.metric in WORDINGS:
        return WORDINGS[rule.metric].format(bound=rule.bound, percent=100 * rule.bound)
    return f"{display_name(rule.metric)} {rule.when} {rule.bound:g}"


def issue_table(
    turns: pd.DataFrame, signals: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
    """Every rule: in how many replies of each version it applies, and how far to trust it.

    Args:
        turns: turn table; each `system` is a version.
        signals: what `reply_signals` returns.

    Returns:
        The rules with the largest share in any version first. A row per rule and version, or one
        row, its version "all", for a rule that found nothing:
        issue, rule, version, replies, share (of those that have the score), change (of the share,
        from the first version's), low, high (its 95 % interval, as in `verdict.differences`),
        recall and false_positive_rate (see `rule_accuracy`), note (why a rule had nothing to read).

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": list("12"), "turn": 1,
    ...                       "context": [[], []]})
    >>> signals = pd.DataFrame({"length": [0.0, 3.0]})
    >>> issue_table(turns, signals)[["version", "replies", "note"]].values.tolist()[:2]
    [['A', 1, ''], ['all', 0, 'not looked for: no score of toxicity']]
    """
    applies = rule_applies(signals)
    unrated = turns[["system", "agent", "dialog", "turn", "context"]]
    changes = differences(unrated, applies, seed=seed)
    if len(changes):
        changes = changes.rename(columns={"score": "number", "difference": "change"})
        changes = changes[["version", "number", "change", "low", "high"]]
    by_version = applies.groupby(turns["system"], sort=False)
    replies = by_version.sum().astype(int)
    shares = by_version.mean()

    rows = []
    for number, rule in enumerate(RULES):
        name = display_name(rule.metric)
        row = {"issue": rule.issue, "metric": rule.metric, "number": number}
        row |= {"rule": rule_text(rule), "note": ""}
        if number not in applies:
            note = f"not looked for: no score of {name}"
            rows.append(row | {"version": "all", "replies": 0, "note": note})
        elif replies[number].sum() == 0:
            rows.append(row | {"version": "all", "replies": 0, "share": 0.0})
        else:
            for version in replies.index:
                found = replies.loc[version, number]
                share = shares.loc[version, number]
                rows.append(
                    row | {"version": version, "replies": found, "share": share}
                )
    table = pd.DataFrame(rows)
    largest = table.groupby("number")["share"].transform("max").fillna(-1)
    order = largest.sort_values(ascending=False, kind="stable").index
    table = table.loc[order].reset_index(drop=True)
    if len(changes):
        table = table.merge(changes, on=["version", "number"], how="left")
    columns = ["issue", "metric", "recall", "false_positive_rate"]
    accuracy = reference_table("14_rule_accuracy", columns)
    table = table.merge(accuracy, on=["issue", "metric"], how="left")
    columns = ["issue", "rule", "version", "replies", "share", "change", "low", "high"]
    return table.reindex(columns=[*columns, "recall", "false_positive_rate", "note"])


def reading_list(
    turns: pd.DataFrame, issues: pd.DataFrame, per_issue: int = 3
) -> pd.DataFrame:
    """Replies to read: of every issue the `per_issue` clearest of each version, no text twice.

    Columns issue, metric, value, system, agent, dialog, turn, before (the last utterance), reply.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1", "2"], "turn": 1,
    ...                       "context": [["Hi"], ["Tea?"]], "response": ["Ok.", "ok. "]})
    >>> issues = find_issues(pd.DataFrame({"specificity": [1.0, 1.0]}))
    >>> reading_list(turns, issues)[["issue", "dialog", "reply"]].values.tolist()
    [['generic', '1', 'Ok.']]
    """
    columns = [*KEY, "turn", "context", "response"]
    table = issues.join(turns[columns], on="reply")
    text = table["response"].str.strip().str.casefold()
    table = table[~table.assign(text=text).duplicated(["issue", "system", "text"])]
    table = table.groupby(["issue", "system"], sort=False).head(per_issue)
    table["before"] = table["context"].str[-1].fillna("")
    table["reply"] = table["response"]
    table = table.sort_values("rule", kind="stable", ignore_index=True)
    return table[["issue", "metric", "value", *KEY, "turn", "before", "reply"]]


def rule_accuracy(pairs: pd.DataFrame, per_damage: int = 400) -> pd.DataFrame:
    """Try the rules on replies that were damaged on purpose, and on the same replies undamaged.

    Args:
        pairs: `data.robustness_pairs`; the first `per_damage` of every damage that a rule names.

    Returns:
        A row per rule that has such a damage: issue, metric, damage, pairs, recall (share of the
        damaged replies in which the rule finds its issue), false_positive_rate (share of the
        undamaged replies of all these pairs in which it does).
    """
    tried = [rule for rule in RULES if rule.damage]
    pairs = pairs[pairs["perturbation"].isin([rule.damage for rule in tried])]
    pairs = pairs.groupby("perturbation").head(per_damage).reset_index(drop=True)
    sides = text_sides(pairs)
    turns = sides.assign(system=sides["side"], dialog=sides["pair"].astype(str))
    metrics = [rule.metric for rule in tried if rule.metric in METRICS]
    signals = reply_signals(turns, compute(turns, metrics, log=lambda line: None))

    original = sides["side"] == "original"
    damage = pairs["perturbation"].to_numpy()[sides["pair"]]
    rows = []
    for rule in tried:
        damaged = ~original & (damage == rule.damage)
        if not damaged.any():
            continue
        applies = rule.applies(signals)
        rows.append(
            {
                "issue": rule.issue,
                "metric": rule.metric,
                "damage": rule.damage,
                "pairs": damaged.sum(),
                "recall": applies[damaged].mean(),
                "false_positive_rate": applies[original].mean(),
            }
        )
    return pd.DataFrame(rows)
