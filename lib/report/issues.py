"""What to fix: rules that find an issue in a reply, and how far each rule can be trusted."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from lib.meta_evaluation.figures import display_name
from lib.meta_evaluation.robustness import text_sides
from lib.metrics import METRICS, compute
from lib.metrics.baselines import stop_words, tokenize_words
from lib.report.dialogs import leading_rating
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
    Rule("stutters", "words_said_twice", "at least", 2, "stutter"),
    Rule("repeats the user", "overlap_with_user", "at least", 0.6, "speaker mix-up"),
    Rule("cut off", "open_end", "at least", 0.8, ""),
    Rule("off topic", "context_similarity", "at most", 0.05, "random reply"),
    Rule("generic", "specificity", "at most", 1, "dull reply"),
    Rule("stock reply", "dialogs_with_it", "at least", 3, ""),
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

#: What a rule lacks where it cannot look, if that is no score.
LACKING = {"negated_fact": "persona or other fact in the file"}

#: What a rule saw in one reply.
EVIDENCE = {
    "length": "no words",
    "negated_fact": "{percent:.0f} % of the words in common with a fact, one side negated",
    "overlap_with_itself": "{percent:.0f} % of the words in common with an earlier reply",
    "words_said_twice": "{value:g} words said twice in a row",
    "overlap_with_user": "{percent:.0f} % of the words in common with the user",
    "open_end": "no punctuation at its end; {percent:.0f} % of this version's replies have it",
    "specificity": "words with content: {value:g}",
    "dialogs_with_it": "said in {value:g} dialogs",
}


def reply_signals(turns: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The scores and word counts of each reply that the rules read.

    Returns:
        On the index of `turns`: the metrics of `RULES` among `scores`; overlap_with_user and
        overlap_with_itself, the highest word overlap (Dice) with an earlier utterance of either
        speaker; words_said_twice, the longest run of words that stands twice in a row;
        negated_fact (if the file has facts), the word overlap of a sentence with a fact where only
        one of the two is negated; open_end, the share of the system's replies that end with a
        punctuation mark, where this one does not; dialogs_with_it, the dialogs in which its system
        gives this very reply. An empty reply has a length and nothing else. "toxicity" is the
        file's own score or that of the first model that was asked for, "toxicity[toxic-bert]" say.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1"], "context": [["So you have a dog?"]],
    ...     "response": ["I do not have a dog."], "fact": [["I have a dog."]]})
    >>> reply_signals(turns, pd.DataFrame(index=turns.index))["negated_fact"].round(2).tolist()
    [0.89]
    """
    signals = scores.filter(dict.fromkeys(rule.metric for rule in RULES))
    by_models = scores.filter(regex=r"^toxicity\[")
    if "toxicity" not in signals and not by_models.empty:
        signals["toxicity"] = by_models.iloc[:, 0]
    text = turns["response"].str.strip()
    with_user = []
    with_itself = []
    for response, context in zip(text, turns["context"], strict=True):
        with_user.append(_highest_overlap(response, context[-1::-2]))
        with_itself.append(_highest_overlap(response, context[-2::-2]))
    signals["overlap_with_user"] = with_user
    signals["overlap_with_itself"] = with_itself
    signals["words_said_twice"] = text.map(_longest_stutter)
    if "fact" in turns and any(len(facts) for facts in turns["fact"]):
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


def evidence(metric: str, value: float) -> str:
    """What a rule saw in one reply, in words.

    Args:
        metric: the score that the rule reads.
        value: its value for the reply.

    >>> evidence("overlap_with_user", 0.62), evidence("context_similarity", 0.0312)
    ('62 % of the words in common with the user', 'similarity to context 0.031')
    """
    if metric in EVIDENCE:
        return EVIDENCE[metric].format(value=value, percent=100 * value)
    return f"{display_name(metric)} {value:.2g}"


def issue_table(
    turns: pd.DataFrame, signals: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
    """Every rule: in how many replies of each version it applies, and how far to trust it.

    The ratings are those of single replies (`dialogs.leading_rating`).

    Args:
        turns: turn table; each `system` is a version.
        signals: what `reply_signals` returns.

    Returns:
        The rules that cost most first (`_what_to_fix_first`). A row per rule and version, or one
        row for a rule that found nothing, its version "all", or "not looked for":
        issue, rule, recall and false_positive_rate (see `rule_accuracy`), version, replies, of
        (replies that have the score), share, change (of the share, from the first version's), low,
        high (its 95 % interval, as in `verdict.differences`), rating_gap (mean rating of these
        replies minus that of the version's others), rated (these replies with a rating),
        rating_effect (rating_gap times change; of a single version, times share), note (why a rule
        had nothing to read).

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": list("12"), "turn": 1,
    ...                       "context": [[], []]})
    >>> signals = pd.DataFrame({"length": [0.0, 3.0]})
    >>> issue_table(turns, signals)[["version", "replies", "note"]].values.tolist()[:2]
    [['A', 1, ''], ['not looked for', 0, 'not looked for: no score of toxicity']]
    """
    applies = rule_applies(signals)
    unrated = turns[["system", "agent", "dialog", "turn", "context"]]
    changes = differences(unrated, applies, seed=seed)
    if len(changes):
        changes = changes.rename(columns={"score": "number", "difference": "change"})
        changes = changes[["version", "number", "change", "low", "high"]]
    by_version = applies.groupby(turns["system"], sort=False)
    replies = by_version.sum().astype(int)
    read = by_version.count()
    shares = by_version.mean()
    leading = leading_rating(turns)
    ratings = turns[leading] if leading else pd.Series(float("nan"), turns.index)

    rows = []
    for number, rule in enumerate(RULES):
        name = display_name(rule.metric)
        row = {"issue": rule.issue, "metric": rule.metric, "number": number}
        row |= {"rule": rule_text(rule), "note": ""}
        if number not in applies:
            lacking = LACKING.get(rule.metric, f"score of {name}")
            note = f"not looked for: no {lacking}"
            missing = {"version": "not looked for", "replies": 0, "note": note}
            rows.append(row | missing)
        elif replies[number].sum() == 0:
            rows.append(row | {"version": "all", "replies": 0, "share": 0.0})
        else:
            for version in replies.index:
                n_replies = replies.loc[version, number]
                share = shares.loc[version, number]
                n_total = read.loc[version, number]
                counts = {"replies": n_replies, "of": n_total}
                counts |= {"version": version, "share": share}
                of_version = turns["system"] == version
                gap = _rating_gap(ratings[of_version], applies[number][of_version])
                rows.append(row | counts | gap)
    table = pd.DataFrame(rows)
    if len(changes):
        table = table.merge(changes, on=["version", "number"], how="left")
    columns = ["metric", "recall", "false_positive_rate"]
    accuracy = reference_table("14_rule_accuracy", columns)
    table = table.merge(accuracy, on="metric", how="left")
    columns = ["issue", "rule", "recall", "false_positive_rate", "version", "replies"]
    columns += ["of", "share", "change", "low", "high", "rating_gap", "rated"]
    table = table.reindex(columns=[*columns, "rating_effect", "number", "note"])
    weight = table["change"] if len(changes) else table["share"]
    table["rating_effect"] = weight * table["rating_gap"]
    return (
        table.loc[_what_to_fix_first(table)]
        .drop(columns="number")
        .reset_index(drop=True)
    )


def replies_without_score(
    turns: pd.DataFrame, signals: pd.DataFrame, *, sampled: bool = False
) -> pd.DataFrame:
    """The replies of each version that have no rating, or no score that a rule reads, and why.

    Args:
        turns: turn table; each `system` is a version.
        signals: what `reply_signals` returns.
        sampled: whether the networks read a sample of the replies.

    Returns:
        missing ("rating", or the issue that a rule looks for), version, replies, reason. No rows
        where nothing is missing, for rules without any score, and without ratings.

    >>> turns = pd.DataFrame({"system": "A", "response": ["", "Yes.", "Tea."],
    ...                       "context": [["Tea?"], [], ["Tea?"]]})
    >>> signals = pd.DataFrame({"context_similarity": [None, None, 0.5]})
    >>> replies_without_score(turns, signals)[["missing", "replies", "reason"]].values.tolist()
    [['off topic', 1, 'empty reply'], ['off topic', 1, 'the message before it is missing or empty']]
    """
    empty = turns["response"].str.strip() == ""
    said_before = turns["context"].map(lambda texts: bool(texts and texts[-1].strip()))
    other = "the metric has no value"
    if sampled:
        other = "not in the sample that the networks read"
    reason = pd.Series(other, turns.index)
    reason = reason.where(said_before, "the message before it is missing or empty")
    reason = reason.mask(empty, "empty reply")
    tables = []
    leading = leading_rating(turns)
    if leading:
        unrated = turns[turns[leading].isna()]
        counts = unrated.groupby("system", sort=False).size()
        table = counts.rename("replies").rename_axis("version").reset_index()
        tables.append(table.assign(missing="rating", reason="no rating in the file"))
    applies = rule_applies(signals)
    for number in applies:
        missing = applies[number].isna()
        if missing.all():
            continue
        counts = reason[missing].groupby([turns["system"], reason], sort=False).size()
        table = counts.rename("replies").rename_axis(["version", "reason"])
        tables.append(table.reset_index().assign(missing=RULES[number].issue))
    columns = ["missing", "version", "replies", "reason"]
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)[columns]


def _rating_gap(ratings: pd.Series, applies: pd.Series) -> dict[str, float]:
    """Mean rating of the replies to which a rule applies, minus that of the others."""
    with_it = ratings[applies == 1]
    gap = with_it.mean() - ratings[applies == 0].mean()
    if pd.isna(gap):
        return {}
    return {"rating_gap": gap, "rated": with_it.count()}


def _what_to_fix_first(table: pd.DataFrame) -> list:
    """The rows of an issue table in the order in which a reader should look at them.

    Rules that became more frequent come first, then those that became less frequent, those whose
    interval of the change holds 0, and the others. Within these, the largest loss (or gain) of
    rating comes first (`rating_effect`); rules without one follow by change. A single version has
    no change, and its shares stand for it. The rows of a rule stay together, where its first one
    would stand.
    """
    change = table["change"]
    if change.isna().all():
        change = table["share"]
    change = change.fillna(0)
    uncertain = (table["low"] <= 0) & (table["high"] >= 0)
    group = pd.Series(3, table.index)
    group[change > 0] = 0
    group[change < 0] = 1
    group[uncertain & (change != 0)] = 2
    keys = pd.DataFrame(
        {
            "group": group,
            "effect": table["rating_effect"].where(group != 1, -table["rating_effect"]),
            "change": -change.abs(),
            "share": -table["share"].fillna(-1),
        }
    )
    ordered = table.loc[keys.sort_values(list(keys), kind="stable").index, "number"]
    place = {number: n for n, number in enumerate(ordered.drop_duplicates())}
    return table["number"].map(place).sort_values(kind="stable").index.tolist()


def reading_list(
    turns: pd.DataFrame,
    issues: pd.DataFrame,
    per_issue: int = 3,
    rules: Sequence[str] = (),
) -> pd.DataFrame:
    """Replies to read: of every issue the `per_issue` clearest of each version, no text twice.

    They stand in the order of `rules`, texts of `rule_text`, and then in that of `RULES`. Those of
    the newest version, the last one of the file, come first under each rule.

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
    place = {text: number - len(rules) for number, text in enumerate(rules)}
    places = {n: place.get(rule_text(rule), n) for n, rule in enumerate(RULES)}
    table["rule"] = table["rule"].map(places)
    age = {version: -n for n, version in enumerate(turns["system"].unique())}
    table["age"] = table["system"].map(age)
    table = table.sort_values(["rule", "age"], kind="stable", ignore_index=True)
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
