"""From any cell of a table down to the prompt, the raw reply and the request id behind it."""

import numpy as np
import pandas as pd

from lib.cpdscore.parsing import USABLE
from lib.cpdscore.reply_store import ReplyStore
from lib.cpdscore.scoring import Scores

TOO_LONG = 20  # words; the limit that appendix B.3 leaves to the judge


def audit(scores: Scores, store: ReplyStore, **place: object) -> pd.DataFrame:
    """Every reply behind the scores of one place, one row each.

    ``place`` narrows by column: ``system=``, ``dialog=``, ``turn=``. Columns: the place, sample,
    status, score, the reply's text, the reasons of the transport, and request id, HTTP status
    and milliseconds of the call that brought it (NaN for replies read from a file).
    Raises ``ValueError`` when nothing stands at that place.
    """
    units = scores.units
    for name, value in place.items():
        if name not in units:
            raise ValueError(f"no column {name!r}: narrow by {', '.join(scores.units)}")
        units = units[units[name] == value]
    if units.empty:
        raise ValueError(f"no score at {place}; systems are {sorted(set(scores.units['system']))}")
    rows = scores.replies[scores.replies["item"].isin(units.index)]
    calls = pd.DataFrame(_call(scores, store, row.item, row.sample) for row in rows.itertuples())
    return units.join(rows.set_index("item"), how="inner").reset_index(drop=True).join(calls)


def _call(scores: Scores, store: ReplyStore, item: object, sample: int) -> dict[str, object]:
    key = scores.items.loc[item, "key"]
    reply = store.get(key, sample)
    calls = store.attempts(key)
    call = calls[calls["id"] == reply.attempt]
    first = call.iloc[0] if len(call) else pd.Series(dtype=object)
    return {
        "text": reply.text, "finish_reason": reply.finish_reason, "refusal": reply.refusal,
        "attempts": len(calls), "request_id": first.get("request_id"), "http": first.get("http"),
        "ms": first.get("ms"), "key": key,
    }  # fmt: skip


def prompt_of(scores: Scores, store: ReplyStore, item: object) -> str:
    """The prompt, to the letter, that item's score was asked with."""
    key = scores.items.loc[item, "key"]
    if key is None or pd.isna(key):
        raise ValueError(f"item {item} was not asked: {scores.items.loc[item, 'status']}")
    return "\n".join(message["content"] for message in store.request(key)["body"]["messages"])


def summary(scores: Scores) -> pd.Series:
    """One line that belongs beside every figure made from these scores."""
    replies = scores.replies["status"]
    return pd.Series(
        {
            "variant": scores.template.variant.label,
            "judge": scores.judge.model,
            "samples": scores.judge.samples,
            "wording": scores.template.wording,
            "source of wording": scores.template.source,
            "items": len(scores.items),
            "scored": int(scores.items["score"].notna().sum()),
            "coverage": scores.coverage,
            "replies": len(replies),
            "replies not read": int((~replies.isin(USABLE)).sum()),
            "synthetic": bool(scores.synthetic),
        }
    )


def rule_checks(scores: Scores, turns: pd.DataFrame, turn_scores: pd.Series) -> pd.DataFrame:
    """How far replies to CPDScore-Dialogue keep to the rules of appendix B.3.

    Per reply: the mean of the turn scores beside the Overall Dialogue Turn Score, whether a
    dialog above 4 kept that score as its final one (``None`` below 4; at exactly 4 the paper's
    rules say nothing), whether the final score lies between the two marks, and how many
    responses are longer than 20 words. Nothing is repaired; where a mark could not be read, a rule
    is neither kept nor broken (``None``).
    """
    keys = ["system", "agent", "dialog"]
    long = turns["response"].str.split().str.len() > TOO_LONG
    facts = turns[keys].assign(mean_turn_score=turn_scores, long_responses=long)
    facts = facts.groupby(keys, sort=False).agg(
        mean_turn_score=("mean_turn_score", "mean"), long_responses=("long_responses", "sum")
    )
    frame = scores.units.join(scores.replies.set_index("item"), how="inner")
    frame = frame.merge(facts.reset_index(), on=keys, how="left")
    overall, interaction = frame["overall dialogue turn score"], frame["dialogue interaction score"]
    low, high = np.minimum(overall, interaction), np.maximum(overall, interaction)
    frame["off_turn_mean"] = overall - frame["mean_turn_score"]
    read = frame["score"].notna() & overall.notna()
    between = frame["score"].between(low - 1e-9, high + 1e-9).astype(object)
    frame["between"] = between.where(read & interaction.notna(), None)
    kept = ((frame["score"] - overall).abs() < 1e-9).astype(object)
    frame["kept_above_4"] = kept.where(read & (overall > 4), None)
    return frame
