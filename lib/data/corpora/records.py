"""Check the shape of parsed JSON before a loader relies on it."""

from typing import Any

from lib.data.dialogues.errors import DataError, nearest
from lib.data.dialogues.files import read_json, text_cell


def json_list(path) -> list[dict]:
    """A JSON file that must be a non-empty list of objects."""
    value = read_json(path)
    if not isinstance(value, list) or not value:
        raise DataError("is not a non-empty JSON list", file=path, fix="fetch the file again")
    for row, item in enumerate(value, start=1):
        if not isinstance(item, dict):
            raise DataError("is not a JSON object", file=path, row=row)
    return value


def get(item: Any, name: str, kind: type, *, file, row) -> Any:
    """The value of a required field, which must be of `kind`."""
    if not isinstance(item, dict):
        raise DataError(f"is {item!r:.60}, not an object with {name!r}", file=file, row=row)
    if name not in item:
        hint = nearest(name, item)
        raise DataError("this field is missing", file=file, row=row, column=name, fix=hint)
    value = item[name]
    if kind is str:
        return text_cell(value, file=file, row=row, column=name)
    wrong = isinstance(value, bool) and kind is not bool
    if wrong or not isinstance(value, kind):
        expected = getattr(kind, "__name__", str(kind))
        raise DataError(f"is {value!r:.60}, not {expected}", file=file, row=row, column=name)
    return value


def objects(item: Any, name: str, *, file, row) -> list[dict]:
    """A required field that must be a list of objects."""
    values = get(item, name, list, file=file, row=row)
    if not all(isinstance(value, dict) for value in values):
        raise DataError("is not a list of objects", file=file, row=row, column=name)
    return values


def texts(item: Any, name: str, *, file, row) -> list[str]:
    """A required field that must be a list of texts."""
    values = get(item, name, list, file=file, row=row)
    return [text_cell(value, file=file, row=row, column=name) for value in values]


def utterances(text: str) -> list[str]:
    """Utterances separated by newlines; blank lines at the end are not utterances.

    >>> utterances("hi . \\n hello . \\n\\n")
    ['hi .', 'hello .']
    """
    lines = [line.strip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def persona(fact: str) -> list[str]:
    """A fact field as a list of sentences: persona lines one by one, a passage as one.

    >>> persona("your persona: i like tea.\\nyour persona: i run.\\n")
    ['i like tea.', 'i run.']
    >>> persona("_nofact\\n")
    []
    """
    lines = [line.removeprefix("your persona:").strip() for line in fact.split("\n")]
    return [line for line in lines if line and line != "_nofact"]
