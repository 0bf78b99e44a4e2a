"""Fuzz the loaders: whatever the bytes, the result is a valid table or a `DataError`, and every row
that was read is kept or accounted for."""

import json
import os
import random
import string
import tempfile
from pathlib import Path

import pytest
import small_corpora as small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.data import dialogues
from lib.data.corpora import catalogue, labelled_texts, reddit_comments, requested
from lib.data.dialogues import DataError

# FUZZ_EXAMPLES=2000 looks further, with other seeds on each run.
MORE = int(os.environ.get("FUZZ_EXAMPLES", "0"))
SETTINGS = settings(
    max_examples=MORE or 60,
    deadline=None,
    derandomize=not MORE,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
LOADERS = {
    name: catalogue.PUBLIC[name]
    for name in ["usr_topical", "usr_persona", "unieval_topical", "fed_turn", "fed_dialog",
                 "fed_engaging", "grade_convai2_bert_ranker", "better", "predeng600", "convai50",
                 "dstc10_persona_usr", "dstc10_persona_zhao", "dstc7", "ji2022", "zhao_persona",
                 "gpt4_fed", "gpt4_reliable", "gpt4_see"]
} | {
    "reddit_college": reddit_comments.college,
    "rumoureval": reddit_comments.rumoureval,
    "pushshift_sample": reddit_comments.pushshift,
    "goemotions": lambda fetch: labelled_texts.goemotions(fetch, "train"),
    "dailydialog_pairs": labelled_texts.dailydialog_pairs,
}  # fmt: skip
JUNK = [None, True, -1, 10**400, 1e308, float("nan"), "", "N/A (?)", "\ud800", "3", [], {}, [[]],
        [None], {"a": 1}, "User: x", "\x00", "a\tb\nc"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small.write(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def files(folder):
    """Which files each loader opens."""
    opened: dict[str, list[str]] = {}
    for name, loader in LOADERS.items():
        keys = opened.setdefault(name, [])
        loader(lambda key, keys=keys: (keys.append(key), folder / key)[1])
    return {name: sorted(set(keys)) for name, keys in opened.items()}


def outcome(name, fetch):
    """Load, and check what came back; True if a table came, False if a `DataError` did."""
    try:
        parts = LOADERS[name](fetch)
    except DataError as error:
        assert str(error)
        return False
    if not isinstance(parts, dict):
        report = dialogues.read_report(parts)
        last = report.iloc[-1]
        assert len(parts) == last["kept"]
    else:
        report = parts["report"]
        table = parts["turns"] if "turns" in parts else parts["dialogs"]
        assert (report["unit"] != "ratings").any() and len(table) > 0
        human = table.filter(like="human_").to_numpy(dtype=float)
        assert not (abs(human) == float("inf")).any()
        if "turns" in parts:
            try:
                dialogues.validate(parts["turns"])  # as `corpora.load` does
            except DataError:
                return False
    assert (report["read"] == report["kept"] + report["set_aside"]).all()
    return True


def attempt(name, files, folder, data, spoil):
    """Spoil one of a loader's files and load."""
    key = data.draw(st.sampled_from(files[name]))
    with tempfile.TemporaryDirectory() as scratch:
        broken = Path(scratch) / Path(key).name
        spoil((folder / key).read_bytes(), broken)
        return outcome(name, lambda wanted: broken if wanted == key else folder / wanted)


@pytest.mark.parametrize("name", LOADERS)
def test_any_bytes(name, files, folder):
    @SETTINGS
    @given(st.data())
    def run(data):
        def spoil(raw, path):
            kind = data.draw(st.sampled_from(["cut", "drop", "insert", "replace", "noise"]))
            start = data.draw(st.integers(0, max(len(raw) - 1, 0)))
            size = data.draw(st.integers(1, 40))
            new = data.draw(
                st.binary(max_size=12) | st.sampled_from([b'"', b"\n", b"\t", b",", b"]", b"0"])
            )
            raw = {
                "cut": raw[:start],
                "drop": raw[:start] + raw[start + size :],
                "insert": raw[:start] + new + raw[start:],
                "replace": raw[:start] + new + raw[start + len(new) :],
                "noise": new,
            }[kind]
            path.write_bytes(raw)

        attempt(name, files, folder, data, spoil)

    run()


def spots(value, path=()):
    """Every place in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from spots(value[key], (*path, key))


def put(value, path, new):
    """The value with one place replaced, or removed if `new` is ..."""
    if not path:
        return new if new is not ... else None
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


JSON_LOADERS = [name for name in LOADERS if name.startswith(("usr", "unieval", "fed", "grade"))]
JSON_LOADERS += ["dstc10_persona_usr", "dstc10_persona_zhao", "ji2022", "zhao_persona"]
JSON_LOADERS += ["gpt4_fed", "gpt4_reliable", "gpt4_see"]


@pytest.mark.parametrize("name", JSON_LOADERS)
def test_any_shape_of_json(name, files, folder):
    keys = [key for key in files[name] if key.endswith(".json")]

    @SETTINGS
    @given(st.data())
    def run(data):
        def spoil(raw, path):
            value = json.loads(raw)
            place = data.draw(st.sampled_from(list(spots(value))))
            path.write_text(json.dumps(put(value, place, data.draw(st.sampled_from([..., *JUNK])))))

        attempt(name, {name: keys}, folder, data, spoil)

    run()


# --- a user's own file and the CSV layout ---------------------------------------------------------

CELLS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["A", "d1", "Hello", "", " ", "3", "-1", "3.5", "nan", '["a"]', '["a', "a\nb", '"', "🙂"]
    ),
)
NAMES = st.sampled_from(
    ["system", "agent", "dialog", "turn", "context", "response", "reference", "fact", "human_x",
     "human x", "respones", "note", "", "SYSTEM"]
)  # fmt: skip


def same_or_error(path):
    """Read; a table must hold as many rows as the account says."""
    try:
        turns = dialogues.read_turns(path, scale=(0, 5))
    except DataError as error:
        assert str(error)
        return None
    dialogues.validate(turns)
    report = dialogues.read_report(turns).set_index("unit")
    assert report.loc["responses", "kept"] == len(turns)
    blanks = int(turns[dialogues.human_columns(turns)].isna().sum().sum())
    assert report.loc["ratings", "set_aside"] == blanks
    return turns


@settings(SETTINGS, max_examples=MORE or 300)
@given(
    st.lists(NAMES, min_size=1, max_size=6),
    st.lists(st.lists(CELLS, min_size=1, max_size=6), max_size=4),
)
def test_any_csv(names, rows):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "mine.csv"
        try:
            small.table(path, [names, *rows])
        except UnicodeEncodeError:
            return
        turns = same_or_error(path)
        if turns is not None:
            assert len(turns) == len(rows)


@settings(SETTINGS, max_examples=MORE or 300)
@given(
    st.lists(
        st.dictionaries(NAMES, CELLS | st.none() | st.integers() | st.floats() | st.lists(CELLS)),
        max_size=4,
    )
)
def test_any_jsonl_and_parquet(rows):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "mine.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        turns = same_or_error(path)
        if turns is not None:
            assert len(turns) == len(rows)


@settings(SETTINGS, max_examples=MORE or 200)
@given(st.binary(max_size=200), st.sampled_from(["csv", "tsv", "json", "jsonl", "parquet"]))
def test_any_bytes_of_a_users_file(raw, kind):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"mine.{kind}"
        path.write_bytes(raw)
        same_or_error(path)


GOOD = st.sampled_from(
    ["Hello", "a, b", 'say "hi"', "two\nlines", " ", "🙂", "N/A", string.printable, "\r", "é"]
)


@settings(SETTINGS, max_examples=MORE or 150)
@given(st.lists(st.tuples(GOOD, st.none() | st.integers(1, 5)), min_size=1, max_size=6))
def test_good_rows_come_back_as_they_were(said):
    rows = [["system", "dialog", "response", "human_x"]]
    rows += [
        ["A", f"d{n}", reply, "" if rating is None else rating]
        for n, (reply, rating) in enumerate(said)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "mine.csv"
        small.table(path, rows)
        turns = dialogues.read_turns(path, scale=(1, 5))
    assert turns["response"].tolist() == [reply for reply, _ in said]
    ratings = [None if rating != rating else int(rating) for rating in turns["human_x"]]
    assert ratings == [rating for _, rating in said]


@SETTINGS
@given(st.data())
def test_any_bytes_of_three_bots(data):
    with tempfile.TemporaryDirectory() as scratch:
        folder = small.bots(Path(scratch))
        path = folder / data.draw(
            st.sampled_from(["turns.csv", "turn_ratings.csv", "dialog_ratings.csv"])
        )
        raw = path.read_bytes()
        place = data.draw(st.integers(0, len(raw)))
        new = data.draw(st.binary(max_size=4) | st.sampled_from([b",", b'"', b"\n", b"9"]))
        path.write_bytes(raw[:place] + new + raw[place + data.draw(st.integers(0, 3)) :])
        try:
            parts = requested.three_bots(folder)
        except DataError as error:
            assert str(error)
            return
        report = parts["report"]
        assert (report["read"] == report["kept"] + report["set_aside"]).all()


@SETTINGS
@given(st.data())
def test_any_bytes_of_a_zip(data):
    with tempfile.TemporaryDirectory() as scratch:
        small.rumoureval(Path(scratch), full=True)
        path = Path(scratch) / reddit_comments.RUMOUR
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(raw[: data.draw(st.just(len(raw)) | st.integers(0, len(raw)))])
        outcome("rumoureval", lambda key: path)


def test_the_fuzz_reaches_both_outcomes(files, folder):
    """A guard on the tests above: some spoiled files still load, some do not."""
    rng, seen = random.Random(1), {True: 0, False: 0}
    for _ in range(60):
        raw = bytearray((folder / "predictive_engagement/humanAMT_engscores_utt.csv").read_bytes())
        raw[rng.randrange(len(raw))] = rng.choice(b'ab,"\n9\xff')
        with tempfile.TemporaryDirectory() as scratch:
            broken = Path(scratch) / "better.csv"
            broken.write_bytes(bytes(raw))
            seen[outcome("better", lambda key, broken=broken: broken)] += 1
    assert min(seen.values()) > 5
