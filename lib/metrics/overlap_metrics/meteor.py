"""METEOR 1.5 of one response: the Java program of its authors, which pycocoevalcap ships.

METEOR (Denkowski and Lavie 2014, https://aclanthology.org/W14-3348) aligns the words of response
and reference by exact form, stem, synonym and paraphrase. From weighted precision P and recall R,
and from the number of contiguous chunks ch among the m matched words (English parameters)::

    F = P R / (.85 P + .15 R)        METEOR = (1 - .6 (ch / m) ** .2) F

with no penalty for equal texts. The program is needed because variants differ: NLTK's is an earlier
formula, with other matches and weights. Loading its paraphrase table takes some ten CPU seconds, so
one process serves all calls.
"""

import atexit
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import pycocoevalcap.meteor.meteor as coco_meteor

from lib.metrics.overlap_metrics.texts import normalize_answer, prepare, undefined

_JAR = Path(coco_meteor.__file__).parent / coco_meteor.METEOR_JAR
# The program reads one request a line, fields parted by "|||".
_PART = re.compile(r"\|{3,}")


class JavaNotFound(RuntimeError):
    """METEOR 1.5 needs Java and there is none; the message says how to get it."""


def find_java() -> str:
    """Path of the Java program: that of `JAVA_HOME` if set, else the first on the `PATH`.

    Raises
    ------
    JavaNotFound
        When there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        raise JavaNotFound(
            f"METEOR 1.5 needs Java 8 or later, and there is no java "
            f"{f'in JAVA_HOME ({home})' if home else 'on the PATH'}. Install it with "
            "'apt install default-jre-headless', 'conda install openjdk' or 'brew install openjdk' "
            "(or point JAVA_HOME at it); all other overlap metrics work without."
        )
    return java


def one_line(text: str) -> str:
    """A text as the program can read it: separators and all white space become one blank.

    >>> one_line("two\\nlines ||| and\\u2028more ")
    'two lines and more'
    """
    return " ".join(_PART.sub(" ", text).replace("\0", " ").split())


class Meteor:
    """A running METEOR 1.5 for English; use it in a `with` statement, or close it.

    Parameters
    ----------
    timeout : float
        Seconds to wait for an answer; the first waits for the paraphrase table (about ten).

    Raises
    ------
    JavaNotFound
        When there is no Java.
    """

    def __init__(self, timeout: float = 120.0):
        self._java = find_java()
        command = [self._java, "-Xmx2G", "-jar", _JAR.name]
        command += ["-", "-", "-stdio", "-l", "en", "-norm"]
        self.timeout = timeout
        # A file, because a pipe that nobody empties would stop the program once it is full.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the program
        self._process = subprocess.Popen(
            command,
            cwd=_JAR.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )
        self._turn = threading.Lock()
        self._lines: queue.Queue[str] = queue.Queue()
        # Reading in a thread of its own, so that a program that falls silent cannot hang us.
        threading.Thread(target=self._read, daemon=True).start()

    def score(self, response: str, references: Sequence[str]) -> float:
        """METEOR of one response in [0, 1], the best of its references; all texts must hold a word.

        Raises
        ------
        RuntimeError
            When the program fails, stops or does not answer in time; it is closed then.
        """
        fields = [one_line(text) for text in [*references, response]]
        if len(fields) < 2 or not all(fields):
            raise ValueError("METEOR needs a response and references that hold a word")
        with self._turn:
            statistics = self._ask(" ||| ".join(["SCORE", *fields]))
            segment = self._ask(f"EVAL ||| {statistics}")
            self._answer()  # the same number again, as the mean over one segment
        return self._number(segment)

    def close(self) -> None:
        """End the program; it is safe to close it twice."""
        if self._process.poll() is None:
            try:
                self._process.stdin.close()
                self._process.wait(timeout=1)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
        self._process.wait()
        self._errors.close()

    @property
    def closed(self) -> bool:
        """Whether the program has ended."""
        return self._process.poll() is not None

    def __enter__(self) -> "Meteor":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _read(self) -> None:
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line.strip())
        self._lines.put("")  # an empty line marks the end: METEOR never prints one

    def _ask(self, request: str) -> str:
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            self._fail("METEOR has stopped")
        return self._answer()

    def _answer(self) -> str:
        try:
            line = self._lines.get(timeout=self.timeout)
        except queue.Empty:
            self._fail(f"METEOR gave no answer within {self.timeout:g} s")
        if not line or not line[0].isdigit():
            self._fail(f"METEOR failed: {line or 'it stopped without a word'}")
        return line

    def _number(self, line: str) -> float:
        try:
            return float(line)
        except ValueError:
            self._fail(f"METEOR answered {line!r}, not a number")

    def _fail(self, problem: str) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-2000:]
        self.close()
        raise RuntimeError(
            f"{problem}. Check that '{self._java} -version' works and that 2 GB of memory are free."
            + (f"\nJava said: {said}" if said else "")
        )


_shared: Meteor | None = None


def _session() -> Meteor:
    global _shared
    if _shared is None or _shared.closed:
        _shared = Meteor()
        atexit.register(_shared.close)
    return _shared


def meteor_15(response: str, references: Sequence[str]) -> float:
    """METEOR 1.5 for English, with its own normalisation of punctuation; best of the references.

    The first call starts the program (some ten seconds); it ends with Python. This variant gives
    the METEOR rows of DialEvalMetrics (Yeh et al. 2021, https://aclanthology.org/2021.eancs-1.3).

    Parameters
    ----------
    response : str
        One response; a missing or blank one gives NaN.
    references : sequence of str
        Its references; none, or only blank ones, gives NaN.

    Returns
    -------
    float
        In [0, 1], higher is better; equal texts score 1. Any white space and "|||" inside a text
        count as one blank.

    Raises
    ------
    JavaNotFound
        When there is no Java; the message says how to get it.
    RuntimeError
        When the program fails.
    TypeError
        When `references` is one text.

    Examples
    --------
    >>> meteor_15("", ["we walk home"])
    nan
    >>> meteor_15("we walk home", ["we walk home"])  # doctest: +SKIP
    1.0
    """
    return _meteor(response, references, one_line)


def meteor_15_normalized(response: str, references: Sequence[str]) -> float:
    """METEOR 1.5 on ParlAI-normalised text: ComperDial's METEOR, as far as it is known.

    The paper names the normalisation (appendix C.2, Table 14), not the program. Parameters, range,
    errors and missing values as in `meteor_15`.

    >>> meteor_15_normalized("The ...", ["we walk home"])
    0.0
    """
    return _meteor(response, references, normalize_answer)


def _meteor(response, references, clean) -> float:
    hypothesis, kept = prepare(response, references, clean)
    if not hypothesis or not kept:
        return undefined(hypothesis, kept)
    return _session().score(hypothesis, kept)
