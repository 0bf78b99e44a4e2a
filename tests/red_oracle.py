"""RED once more, slow and independent: json.loads and pandas, straight from the paper."""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import zstandard

from lib.endex.reddit import BOTS, stop_words

PUNCTUATION = {c: " " for c in map(chr, range(128)) if not (c.isalnum() or c == "'")}


def tokens(text: str) -> int:
    """Content words, by splitting instead of by matching."""
    letters = "".join(c if c.isascii() else " " for c in text.lower())
    words = letters.translate(str.maketrans(PUNCTUATION)).split()
    return sum(word not in stop_words() for word in words)


def read(paths: list[Path]) -> pd.DataFrame:
    """The comments of some dumps, one row each, with features; bad lines left out."""
    rows = []
    for path in paths:
        raw = path.open("rb")
        if path.suffix == ".zst":
            raw = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(
                raw, read_across_frames=True
            )
        for line in io.TextIOWrapper(raw, encoding="utf-8"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "id" in record:
                rows.append(_features(record) | {"source": path.stem})
    frame = pd.DataFrame(rows)
    return frame.astype({"score": "float64", "created": "float64"})


def _features(r: dict) -> dict:
    hidden = r["score_hidden"] is True
    return {
        "id": r["id"],
        "parent": r["parent_id"][3:] if r["parent_id"][:3] == "t1_" else None,
        "created": None if r["created_utc"] is None else int(float(r["created_utc"])),
        "score": None if hidden else r["score"],
        "controversial": r["controversiality"] == 1,
        "edited": None
        if r["edited"] is None
        else r["edited"] not in (False, "false", 0),
        "usable": r["body"] not in ("[deleted]", "[removed]")
        and r["author"] != "[deleted]"
        and r["author"] not in BOTS,
        "quote": "&gt;" in r["body"],
        "tokens": tokens(r["body"]),
        "body": r["body"],
    }


def posts(
    comments: pd.DataFrame, ee: pd.Series, alpha: str = "footnote"
) -> pd.DataFrame:
    """Eligible posts with their dimensions, by id; `ee`: positive emotion by comment id."""
    c = comments.set_index("id")
    c["ee"] = ee.reindex(c.index)
    answers = c[c["parent"].notna()]
    readable = answers[answers["usable"]]
    c["replies"] = answers.groupby("parent").size().reindex(c.index)
    edited = answers["edited"].eq(True)
    c["e"] = edited.groupby(answers["parent"]).sum().reindex(c.index)
    c["t"] = readable.groupby("parent")["tokens"].max().reindex(c.index)
    c["ee_mean"] = readable.groupby("parent")["ee"].mean().reindex(c.index)
    p = c[c["parent"].isin(c.index)].copy()
    parent = c.loc[p["parent"]].set_axis(p.index)
    p["pv"] = 2 * parent["replies"] + parent["score"]
    keep = p["usable"] & parent["usable"] & ~p["quote"] & ~parent["quote"]
    keep &= p["replies"].notna() & p["t"].notna() & p["ee_mean"].notna()
    keep &= p["score"].notna() & (p["pv"] > 0)
    keep &= p["created"] <= c["created"].max() - 86_400
    p = p[keep].copy()
    re, be = p["replies"], p["score"].clip(lower=0).where(~p["controversial"], 0)
    m_pv, m_re, m_be = p["pv"].median(), re.median(), be.median()
    p["pvre"] = re + m_pv / m_re * re / p["pv"] * re
    p["pvbe"] = be + m_pv / m_be * be / p["pv"] * be
    p["ae"] = p["t"] + 10 * p["e"]
    a = {"pvre": 1, "pvbe": 2, "ae": 18}
    if alpha == "median":
        a = {name: p[name].median() for name in a}
    f = {name: p[name] / (p[name] + a[name]) for name in a}
    p["endex"] = (3 * f["pvre"] + f["pvbe"] + 3 * f["ae"] + 2 * p["ee_mean"]) / 9
    p["z"] = (p["endex"] - p["endex"].mean()) / np.std(p["endex"])
    p["label"] = np.where(p["z"] > 1, 1.0, np.where(p["z"] < -1, 0.0, np.nan))
    return p


def sample(posts: pd.DataFrame, cap: int = 40_162, seed: int = 0) -> pd.DataFrame:
    """Ids and labels of the balanced draw."""
    labelled = posts.dropna(subset="label").reset_index()[["id", "label"]]
    labelled["draw"] = [
        hashlib.md5(f"{seed}-{i}".encode()).hexdigest() for i in labelled["id"]
    ]
    n = min(cap, labelled["label"].value_counts().min())
    return labelled.sort_values("draw").groupby("label").head(n)[["id", "label"]]


def fingerprint(sample: pd.DataFrame) -> str:
    """md5 over ids and labels in the order of the ids: equal for equal samples."""
    ordered = sample.sort_values("id")
    lines = "".join(
        f"{i},{int(v)}\n" for i, v in zip(ordered["id"], ordered["label"], strict=True)
    )
    return hashlib.md5(lines.encode()).hexdigest()
