"""Serves a GGUF file as an OpenAI-compatible address on the loopback interface only."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PACKAGED = "packaged"  # the language model that comes with the dependencies


def weights_of(judge: str | Path) -> Path:
    """The GGUF file of a judge: the file itself, or the checked one that a dependency brings."""
    from lib import models  # not at the top: the process that serves does not need it

    if judge == PACKAGED:
        judge = models.SMOLLM2
    return models.find_model(judge).weights[0]


@contextmanager
def served(judge: str | Path = PACKAGED) -> Iterator[str | None]:
    """Serve a model from a process of its own while the block runs; yields its address.

    Args:
        judge: a GGUF file, whose chat template is used; "packaged"; or the address of a server
            that runs already, which is passed on ("" as None: OpenAI).

    Raises:
        CheckpointError: the file is not there.
        RuntimeError: when the server does not start, with the last lines of its output.

    >>> with served() as base_url:
    ...     base_url.startswith("http://127.0.0.1:")
    True
    """
    if not judge or str(judge).startswith("http"):
        yield judge or None
        return
    command = [sys.executable, "-I", __file__, weights_of(judge)]
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    with subprocess.Popen(command, text=True, **pipes) as server:
        lines = []
        for line in server.stdout:
            lines.append(line)
            if line.startswith("http"):
                break
        else:
            raise RuntimeError(f"no judge could be started: {''.join(lines[-5:])}")
        yield line.strip()  # the end of the block closes the server's input


def main(gguf: str | Path) -> None:
    """Serve a file, print the address, and stop when the input ends or is interrupted."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.n_ctx = 4096
    params.n_parallel = 1
    params.n_ubatch = 256
    params.ui = False
    params.verbosity = -1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib = 0
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    with suppress(KeyboardInterrupt):
        sys.stdin.read()
    os._exit(0)  # the threads of the server would keep the process


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else weights_of(PACKAGED))
