"""Logs of many tools, each written from dialogs by a template and read back."""

import random

import pytest
from log_example_files import DIALOGS, examples, expected, options, written

from lib.data import DataError, read_turns

FORMATS = {example.name: example for example in examples("formats.txt")}
SCHEMAS = {example.name: example for example in examples("schemas.txt")}
REFUSED = [name for name, example in SCHEMAS.items() if "ask" in example.flags]


def read_back(example, folder, dialogs=DIALOGS):
    """The replies and contexts that are read from the file of a template."""
    file = folder / example.name
    file.write_text(written(example, dialogs), encoding="utf-8")
    turns = read_turns(file, options=options(example))
    contexts = [tuple(context) for context in turns["context"]]
    return sorted(zip(contexts, turns["response"], strict=True))


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_is_read(name, tmp_path):
    example = FORMATS[name]
    assert read_back(example, tmp_path) == expected(example, DIALOGS)


@pytest.mark.parametrize("name", SCHEMAS.keys() - set(REFUSED))
def test_a_file_after_a_public_schema_is_read(name, tmp_path):
    example = SCHEMAS[name]
    assert read_back(example, tmp_path) == expected(example, DIALOGS)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_nothing_is_sure_of_is_refused(name, tmp_path):
    with pytest.raises(DataError):
        read_back(SCHEMAS[name], tmp_path)


ASKED = [name for name, example in FORMATS.items() if "bot" in options(example)]


@pytest.mark.parametrize("name", ASKED)
def test_where_nothing_tells_the_bot_it_is_asked_for(name, tmp_path):
    file = tmp_path / name
    file.write_text(written(FORMATS[name], DIALOGS), encoding="utf-8")
    with pytest.raises(DataError, match="BOT="):
        read_turns(file)
