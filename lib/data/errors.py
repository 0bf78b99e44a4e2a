"""The one error that bad data raises: it says where the fault is and what to do about it."""

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """Data that cannot be used, with the place of the fault and the way out.

    `file`, `row` (counted from 1, without the header) and `column` are attributes as well as
    parts of the message; each may be None where it does not apply.

    >>> print(DataError("rating is 'good', not a number", file="mine.csv", row=3,
    ...                 column="human_overall", fix="use a number, or leave the cell empty"))
    mine.csv, row 3, column 'human_overall': rating is 'good', not a number.
    What to do: use a number, or leave the cell empty.
    """

    def __init__(self, problem: str, file=None, row=None, column=None, fix: str = ""):
        self.problem, self.file, self.row, self.column, self.fix = problem, file, row, column, fix
        place = [str(file)] if file is not None else []
        place += [f"row {row}"] if row is not None else []
        place += [f"column {column!r}"] if column is not None else []
        text = f"{', '.join(place)}: {problem}." if place else f"{problem}."
        super().__init__(f"{text}\nWhat to do: {fix}." if fix else text)

    def __reduce__(self):
        """Rebuild it from its parts, so that it can cross process boundaries."""
        return DataError, (self.problem, self.file, self.row, self.column, self.fix)


def nearest(name: str, known: Iterable[str]) -> str:
    """A "did you mean" for a misspelled name, or an empty string if nothing is near.

    >>> nearest("respones", ["response", "context"])
    "did you mean 'response'?"
    """
    found = difflib.get_close_matches(str(name).lower(), [str(k) for k in known], n=1, cutoff=0.6)
    return f"did you mean {found[0]!r}?" if found else ""
