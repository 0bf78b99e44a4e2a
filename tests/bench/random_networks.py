"""Networks in the shapes of published models with random weights, and texts to run through them.

The tokenizer is a byte-level one that knows the words of the invented texts, so a word is about one
token, as in English text and a trained tokenizer.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

WORDS = (
    "soup lake bread path game fern night stone river light that is lovely dull".split()  # noqa: SIM905
)
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "__en__"]


def invented_text(rng: np.random.Generator) -> str:
    """Words as many as Reddit's comments have: a median of 15, a long tail, at most 200."""
    n_words = int(np.clip(rng.lognormal(2.7, 0.95), 1, 200))
    return " ".join(rng.choice(WORDS[:10], n_words))


def tokenizer(single: str, pair: str, longest: int) -> hf.PreTrainedTokenizerFast:
    """A byte-level tokenizer; `single` and `pair` place the special tokens, as in "<s> $A </s>"."""
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIALS, initial_alphabet=alphabet
    )
    tokens.train_from_iterator([" ".join(WORDS)] * 20, trainer)
    ids = [(token, tokens.token_to_id(token)) for token in SPECIALS]
    tokens.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=ids
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokens,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=longest,
    )


def _seq2seq(layers: int, heads: int, width: int, inner: int) -> dict:
    sizes = {"d_model": width, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    for part in ("encoder", "decoder"):
        sizes[f"{part}_layers"] = layers
        sizes[f"{part}_attention_heads"] = heads
        sizes[f"{part}_ffn_dim"] = inner
    return sizes | {"decoder_start_token_id": 2, "max_position_embeddings": 1024}


class Shape(NamedTuple):
    """Sizes as the `config.json` of the published model states them."""

    network: Callable
    config: Callable
    sizes: dict
    single: str
    pair: str
    positions: int


BERT_TEXT = ("<s> $A </s>", "<s> $A </s> $B:1 </s>:1")
PLAIN_TEXT = ("$A", "$A $B")
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
LARGE |= {"intermediate_size": 4096}
ROBERTA_LARGE = {**LARGE, "vocab_size": 50_265, "max_position_embeddings": 514}
ROBERTA_LARGE |= {"pad_token_id": 1}
BLEURT_20 = {"vocab_size": 250_300, "hidden_size": 1152, "num_hidden_layers": 32}
BLEURT_20 |= {"num_attention_heads": 18, "intermediate_size": 4608, "num_labels": 1}
BLEURT_20 |= {"input_embedding_size": 256, "output_embedding_size": 256}
GPT2 = {"vocab_size": 50_257, "n_positions": 1024, "bos_token_id": 2, "eos_token_id": 2}
GPT2_LARGE = {**GPT2, "n_embd": 1280, "n_layer": 36, "n_head": 20}
GPT2_MEDIUM = {**GPT2, "n_embd": 1024, "n_layer": 24, "n_head": 16, "num_labels": 1}
T5_LARGE = {"vocab_size": 32_128, "d_model": 1024, "d_kv": 64, "d_ff": 4096}
T5_LARGE |= {"num_layers": 24, "num_heads": 16, "decoder_start_token_id": 1}
T5_LARGE |= {"pad_token_id": 1, "eos_token_id": 2}
SHAPES = {
    "RoBERTa-large": Shape(
        hf.RobertaModel, hf.RobertaConfig, ROBERTA_LARGE, *BERT_TEXT, 512
    ),
    "RoBERTa-large, two classes": Shape(
        hf.RobertaForSequenceClassification,
        hf.RobertaConfig,
        {**ROBERTA_LARGE, "num_labels": 2},
        *BERT_TEXT,
        512,
    ),
    "BLEURT-20": Shape(
        hf.RemBertForSequenceClassification,
        hf.RemBertConfig,
        BLEURT_20,
        *BERT_TEXT,
        512,
    ),
    "BART-large": Shape(
        hf.BartForConditionalGeneration,
        hf.BartConfig,
        {**_seq2seq(12, 16, 1024, 4096), "vocab_size": 50_264},
        *BERT_TEXT,
        1024,
    ),
    "M2M-100 418M": Shape(
        hf.M2M100ForConditionalGeneration,
        hf.M2M100Config,
        {**_seq2seq(12, 16, 1024, 4096), "vocab_size": 128_112},
        "__en__ $A </s>",
        "__en__ $A $B </s>",
        1024,
    ),
    "DialogRPT": Shape(
        hf.GPT2ForSequenceClassification,
        hf.GPT2Config,
        {**GPT2_MEDIUM, "pad_token_id": 1},
        *PLAIN_TEXT,
        1024,
    ),
    "T5-large": Shape(
        hf.T5ForConditionalGeneration,
        hf.T5Config,
        T5_LARGE,
        "$A </s>",
        "$A $B </s>",
        1024,
    ),
    "DialoGPT-large": Shape(
        hf.GPT2LMHeadModel, hf.GPT2Config, GPT2_LARGE, *PLAIN_TEXT, 1024
    ),
}


def write(name: str, folder: Path) -> Path:
    """Write a network of `SHAPES` and its tokenizer to a folder."""
    shape = SHAPES[name]
    torch.manual_seed(0)
    where = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(where):  # random weights of a billion numbers take seconds there
        network = shape.network(shape.config(**shape.sizes))
    network.cpu().eval().save_pretrained(folder)
    tokenizer(shape.single, shape.pair, shape.positions).save_pretrained(folder)
    return folder
