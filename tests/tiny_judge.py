"""A tiny random language model behind ``transformers serve``: a real server, no download."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

WORDS = ["-", "Humanness", ":", "1", "2", "3", "4", "5", "the", "response", "is", "good"]


def write_model(folder: Path) -> dict[str, float]:
    """Write a random Llama with a small vocabulary; returns the bias that makes it answer marks."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    names = ["<unk>", "<s>", "</s>", *dict.fromkeys(WORDS)]
    vocabulary = {word: i for i, word in enumerate(names)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    config = LlamaConfig(
        vocab_size=len(names), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=4096, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.generation_config.do_sample = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    marks = {str(vocabulary[digit]): 100.0 for digit in "12345"}
    return marks | {str(vocabulary["</s>"]): 100.5}


@contextmanager
def serve(model: Path, scratch: Path, seconds: float = 600) -> Iterator[str]:
    """Run the server until the block ends; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("transformers")
    cache = scratch / "hub"
    cache.mkdir(exist_ok=True)
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}
    with open(scratch / "serve.log", "wb") as log:
        server = subprocess.Popen(
            [program, "serve", str(model), "--device", "cpu", "--host", "127.0.0.1",
             "--port", str(port)],
            stdout=log, stderr=log, env=environment,
        )  # fmt: skip
    try:
        _wait(f"http://127.0.0.1:{port}/health", server, scratch / "serve.log", seconds)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(60)


def _wait(url: str, server: subprocess.Popen, log: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urlopen(url, timeout=10) as answer:
                json.load(answer)
                return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"transformers serve did not start: {log.read_text()[-2000:]}")
