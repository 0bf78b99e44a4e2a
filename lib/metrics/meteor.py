"""METEOR 1.5: the Java program of its authors, which pycocoevalcap ships.

METEOR (Denkowski and Lavie 2014, https://aclanthology.org/W14-3348) aligns the words of response
and reference by exact form, stem, synonym and paraphrase. From weighted precision P and recall R,
and from the number of contiguous chunks ch among the m matched words (English parameters)::

    F = P R / (.85 P + .15 R)        METEOR = (1 - .6 (ch / m) ** .2) F

with no penalty for equal texts. The program is needed because variants differ: NLTK's is an earlier
formula, with other matches and weights. Loading its paraphrase table takes some ten CPU seconds, so
one process serves all calls.
"""

import atexit
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pycocoevalcap.meteor.meteor as coco_meteor

ARGUMENTS = ("-", "-", "-stdio", "-l", "en", "-norm")
_JAR = Path(coco_meteor.__file__).parent / coco_meteor.METEOR_JAR


class JavaNotFound(RuntimeError):
    """METEOR 1.5 needs Java and there is none; the message says how to get it."""


def find_java() -> str:
    """Return the path of Java: that of `JAVA_HOME` if set, else the first on the `PATH`.

    Raises:
        JavaNotFound: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if java is None:
        raise JavaNotFound(
            f"METEOR 1.5 needs Java 8 or later, and there is no java "
            f"{f'in JAVA_HOME ({home})' if home else 'on the PATH'}. Install it with "
            "'apt install default-jre-headless', 'conda install openjdk' or 'brew install openjdk' "
            "(or point JAVA_HOME at it); all other overlap metrics work without."
        )
    return java


def one_line(text: str) -> str:
    r"""Make a text readable to the program: one line, without its separator of fields.

    >>> one_line("two\nlines ||| and\u2028more ")
    'two lines and more'
    """
    return " ".join(re.sub(r"\|{3,}|\0", " ", text).split())


class Meteor:
    """A running METEOR 1.5 for English, until it is closed or Python ends.

    Raises:
        JavaNotFound: there is no Java.
    """

    def __init__(self):
        self._java = find_java()
        # A file, because a pipe that nobody empties would stop the program once it is full.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the program
        self._process = subprocess.Popen(
            [self._java, "-Xmx2G", "-jar", _JAR.name, *ARGUMENTS],
            cwd=_JAR.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )
        self._turn = threading.Lock()
        atexit.register(self.close)

    def score(self, response: str, references: Sequence[str]) -> float:
        """METEOR of one response in [0, 1], the best of its references; all texts must hold a word.

        Raises:
            RuntimeError: the program fails or stops; it is closed then.
        """
        fields = [one_line(text) for text in [*references, response]]
        if len(fields) < 2 or not all(fields):
            raise ValueError("METEOR needs a response and references that hold a word")
        with self._turn:
            statistics = self._ask(" ||| ".join(["SCORE", *fields]))
            segment = self._ask(f"EVAL ||| {statistics}")
            self._process.stdout.readline()  # the same number again, as the mean over one segment
        return float(segment)

    def close(self) -> None:
        """End the program, which has nothing to lose; it is safe to close it twice."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):  # a request that nobody reads any more
                file.close()

    def _ask(self, request: str) -> str:
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline().strip()
        except (OSError, ValueError):  # the program is gone, or was closed
            line = ""
        if not line[:1].isdigit():
            self._fail(line or "it stopped")
        return line

    def _fail(self, answer: str) -> None:
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-2000:]
        self.close()
        running.cache_clear()
        raise RuntimeError(
            f"METEOR failed ({answer}). Check that '{self._java} -version' works and that 2 GB of "
            f"memory are free. Java said: {said or 'nothing'}"
        )


@cache
def running() -> Meteor:
    """Return the program that all metrics share; the first call starts it, Python's end ends it."""
    return Meteor()
