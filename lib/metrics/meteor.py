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
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from subprocess import PIPE
from typing import IO

import pycocoevalcap.meteor.meteor as coco_meteor

ARGUMENTS = ("-Xmx2G", "-jar", coco_meteor.METEOR_JAR, "-", "-", "-stdio", "-l", "en", "-norm")
NO_JAVA = (
    "METEOR 1.5 needs Java 8 or later, and there is none (in JAVA_HOME if it is set, else on the "
    "PATH). Install it with 'apt install default-jre-headless', 'conda install openjdk' or 'brew "
    "install openjdk'; all other overlap metrics work without."
)


class JavaNotFound(RuntimeError):
    """METEOR 1.5 needs Java and there is none; the message says how to get it."""


def find_java() -> str | None:
    """Return the path of Java: that of `JAVA_HOME` if set, else the first on the `PATH`."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin")) if home else None)


def one_line(text: str) -> str:
    r"""Make a text readable to the program: one line, without its separator of fields.

    >>> one_line("two\nlines ||| and\u2028more ")
    'two lines and more'
    """
    return " ".join(re.sub(r"\|{3,}|\0", " ", text).split())


@cache
def running() -> tuple[subprocess.Popen, IO]:
    """Start the program for English, and the file of its errors; it serves until `stop`.

    Raises:
        JavaNotFound: there is no Java.
    """
    if not (java := find_java()):
        raise JavaNotFound(NO_JAVA)
    # A file, because a pipe that nobody empties would stop the program once it is full.
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the program
    pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": errors, "encoding": "utf-8"}
    folder = Path(coco_meteor.__file__).parent
    return subprocess.Popen([java, *ARGUMENTS], cwd=folder, **pipes), errors


@atexit.register
def stop() -> None:
    """End the program if it runs; it has nothing to lose."""
    if running.cache_info().currsize:
        process, _ = running()
        running.cache_clear()
        process.kill()
        process.communicate()


def meteor(response: str, references: Sequence[str]) -> float:
    """METEOR of one response in [0, 1], the best of its references; all texts must hold a word.

    Raises:
        JavaNotFound: there is no Java.
        RuntimeError: the program fails or stops; the next call starts another.
    """
    fields = [one_line(text) for text in [*references, response]]
    if len(fields) < 2 or not all(fields):
        raise ValueError("METEOR needs a response and references that hold a word")
    statistics = _ask(" ||| ".join(["SCORE", *fields]))
    segment = _ask(f"EVAL ||| {statistics}")
    _ask("")  # the same number again, as the mean over one segment
    return float(segment)


def _ask(request: str) -> str:
    process, errors = running()
    with contextlib.suppress(OSError):  # the program is gone: then it has no answer
        process.stdin.write(request and request + "\n")
        process.stdin.flush()
    line = process.stdout.readline().strip()
    if not line[:1].isdigit():
        stop()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()[-2000:]
        raise RuntimeError(
            f"METEOR failed ({line or 'it stopped'}). Check that 'java -version' works and that "
            f"2 GB of memory are free. Java said: {said or 'nothing'}"
        )
    return line
