"""Tiny random models of every architecture that a metric uses, written to a folder as real ones.

Random weights are enough: a test compares a metric with the same formula written out in plain
torch on the same model. The sentences that the tokenizers are trained on are our own.
"""

from pathlib import Path

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXTS = [
    "the kettle sings when the water is hot",
    "do you like tea? yes, I do!",
    "No, not really. Coffee keeps me awake",
    "my sister plays the trumpet in a band",
    "that sounds like a lot of fun :)",
    "question: Is this a good response? response: fact: dialogue history:",
    "Yes No yes no",
]


def byte_level(specials: list[str], template: str | None = None) -> Tokenizer:
    """A byte-level BPE trained on TEXTS; `template` places the special tokens, as in "<s> $A"."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=specials, initial_alphabet=alphabet
        ),
    )
    if template:
        ids = [(token, tokenizer.token_to_id(token)) for token in specials]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=ids
        )
    return tokenizer


def wordpiece() -> hf.PreTrainedTokenizerFast:
    from lib.models import find_model, load_tokenizer

    return load_tokenizer(find_model("sentence-transformers/all-MiniLM-L6-v2").folder)


def save_network(network: torch.nn.Module, tokenizer, folder: Path, seed: int) -> Path:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            # Large enough for scores to differ clearly between texts.
            parameter.normal_(0, 0.3, generator=generator)
    network.eval().save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return folder


BERT = {"vocab_size": 30522, "hidden_size": 16, "intermediate_size": 24}
BERT |= {
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 512,
}


def bert(folder: Path, seed: int = 0) -> Path:
    return save_network(hf.BertModel(hf.BertConfig(**BERT)), wordpiece(), folder, seed)


def masked_bert(folder: Path, seed: int = 0) -> Path:
    return save_network(
        hf.BertForMaskedLM(hf.BertConfig(**BERT)), wordpiece(), folder, seed
    )


def bert_classifier(folder: Path, labels: list[str], seed: int = 0) -> Path:
    ids = {label: number for number, label in enumerate(labels)}
    names = dict(enumerate(labels))
    config = hf.BertConfig(**BERT, num_labels=len(labels), id2label=names, label2id=ids)
    return save_network(
        hf.BertForSequenceClassification(config), wordpiece(), folder, seed
    )


def roberta(folder: Path, seed: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]).model.save(str(folder))
    vocabulary = str(folder / "vocab.json")
    merges = str(folder / "merges.txt")
    tokenizer = hf.RobertaTokenizer(vocabulary, merges, model_max_length=128)
    sizes = {
        "vocab_size": len(tokenizer),
        "num_hidden_layers": 3,
        "max_position_embeddings": 130,
    }
    config = hf.RobertaConfig(**{**BERT, **sizes}, pad_token_id=1)
    return save_network(hf.RobertaModel(config), tokenizer, folder, seed)


def _gpt2(kind: type, folder: Path, seed: int, **options) -> Path:
    end = "<|endoftext|>"
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=byte_level([end]), eos_token=end, bos_token=end, unk_token=end
    )
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 128}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    config = hf.GPT2Config(vocab_size=len(tokenizer), **sizes, **ends, **options)
    return save_network(kind(config), tokenizer, folder, seed)


def gpt2(folder: Path, seed: int = 0) -> Path:
    return _gpt2(hf.GPT2LMHeadModel, folder, seed)


def gpt2_classifier(folder: Path, seed: int = 0) -> Path:
    return _gpt2(
        hf.GPT2ForSequenceClassification, folder, seed, num_labels=1, pad_token_id=0
    )


MARKS = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
PARTS = (
    "encoder_layers",
    "decoder_layers",
    "encoder_attention_heads",
    "decoder_attention_heads",
)
SEQ2SEQ = dict.fromkeys(PARTS, 2)
SEQ2SEQ |= {
    "d_model": 16,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "bos_token_id": 0,
}
SEQ2SEQ |= {"max_position_embeddings": 128, "pad_token_id": 1, "eos_token_id": 2}
SEQ2SEQ |= {"decoder_start_token_id": 2}


def bart(folder: Path, seed: int = 0) -> Path:
    tokens = byte_level(["<s>", "<pad>", "</s>", "<unk>"], "<s> $A </s>")
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=tokens, bos_token="<s>", **MARKS
    )
    config = hf.BartConfig(vocab_size=len(tokenizer), **SEQ2SEQ)
    return save_network(
        hf.BartForConditionalGeneration(config), tokenizer, folder, seed
    )


def m2m100(folder: Path, seed: int = 0) -> Path:
    languages = ["__en__", "__de__"]
    tokens = byte_level(["<s>", "<pad>", "</s>", "<unk>", *languages], "__en__ $A </s>")
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=tokens,
        bos_token="<s>",
        extra_special_tokens=languages,
        **MARKS,
    )
    config = hf.M2M100Config(vocab_size=len(tokenizer), **SEQ2SEQ)
    return save_network(
        hf.M2M100ForConditionalGeneration(config), tokenizer, folder, seed
    )


def t5(folder: Path, seed: int = 0) -> Path:
    tokens = byte_level(["<pad>", "</s>", "<unk>"], "$A </s>")
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=tokens, **MARKS)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    sizes["n_positions"] = tokenizer.model_max_length = (
        512  # as T5's files state, no bound of it
    )
    ends = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    config = hf.T5Config(vocab_size=len(tokenizer), **sizes, **ends)
    return save_network(hf.T5ForConditionalGeneration(config), tokenizer, folder, seed)
