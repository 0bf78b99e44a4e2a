"""Tiny random checkpoints in the layout of each model's repository: its form of weights, its files.

The layouts are those that `data/checkpoints.csv` states; the tokenizers are trained on our texts.
"""

import json
import shutil
from pathlib import Path

import sentencepiece
import tiny_models
import torch
import transformers as hf
from safetensors.torch import load_file
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

from lib import models

GOEMOTIONS = ["admiration", "amusement", "approval", "anger", "neutral"]


def pickle_weights(folder: Path) -> Path:
    """Turn safetensors into the pickled form of older repositories."""
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def keep_tokenizer(folder: Path, tokenizer_class: str, **settings) -> None:
    """Leave only a statement of the tokenizer's class beside its vocabulary."""
    for file in folder.glob("*token*.json"):
        file.unlink()
    stated = {"tokenizer_class": tokenizer_class, **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))


def train_sentencepiece(file: Path, **settings) -> sentencepiece.SentencePieceProcessor:
    file.parent.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tiny_models.TEXTS * 20),
        model_prefix=str(file.with_suffix("")),
        vocab_size=120,
        hard_vocab_limit=False,
        minloglevel=2,
        **settings,
    )
    file.with_suffix(".vocab").unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(file))


def write_vocabulary(folder: Path) -> None:
    """`vocab.txt` of the WordPiece tokenizer that `tiny_models` uses."""
    known = tiny_models.wordpiece().get_vocab()
    lines = "\n".join(sorted(known, key=known.get))
    (folder / "vocab.txt").write_text(lines, encoding="utf-8")


def unieval(folder: Path) -> Path:
    """T5, pickled, its tokenizer in `spiece.model` only."""
    pieces = train_sentencepiece(
        folder / "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1
    )
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    ends = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    config = hf.T5Config(vocab_size=len(pieces), **sizes, **ends)
    network = hf.T5ForConditionalGeneration(config)
    tiny_models.save_network(network, tiny_models.wordpiece(), folder, seed=0)
    keep_tokenizer(folder, "T5Tokenizer", extra_ids=0)
    return pickle_weights(folder)


def bleurt_20(folder: Path) -> Path:
    """RemBERT under BLEURT's names, pickled, its tokenizer in `spm.model`."""
    specials = ["[CLS]", "[SEP]", "[MASK]"]
    ends = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    pieces = train_sentencepiece(folder / "spm.model", control_symbols=specials, **ends)
    sizes = {"input_embedding_size": 8, "output_embedding_size": 8}
    of_bert = {**tiny_models.BERT, "vocab_size": len(pieces)}
    config = hf.RemBertConfig(**of_bert, **sizes, num_labels=1)
    network = hf.RemBertForSequenceClassification(config)
    tiny_models.save_network(network, tiny_models.wordpiece(), folder, seed=1)
    keep_tokenizer(folder, "BleurtSPTokenizer")
    stored = {**of_bert, "embedding_size": 8, "model_type": "bleurt"}
    (folder / "config.json").write_text(json.dumps(stored))
    weights = load_file(folder / "model.safetensors")
    renamed = {}
    for key, value in weights.items():
        key = key.replace("rembert.", "bleurt.", 1)
        renamed[key.replace("embedding_hidden_mapping_in", "embedding_projection")] = (
            value
        )
    torch.save(renamed, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def bleurt_base(folder: Path) -> Path:
    """BERT under BLEURT's names, `vocab.txt` and a class that transformers does not know."""
    network = hf.BertForSequenceClassification(
        hf.BertConfig(**tiny_models.BERT, num_labels=1)
    )
    tiny_models.save_network(network, tiny_models.wordpiece(), folder, seed=2)
    keep_tokenizer(folder, "BleurtTokenizer")
    write_vocabulary(folder)
    stored = {**tiny_models.BERT, "model_type": "bleurt"}
    (folder / "config.json").write_text(json.dumps(stored))
    weights = load_file(folder / "model.safetensors")
    renamed = {key.replace("bert.", "bleurt.", 1): weights[key] for key in weights}
    torch.save(renamed, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def m2m100(folder: Path, tokenizer_class: str = "M2M100Tokenizer") -> Path:
    """M2M-100, pickled, `vocab.json` and `sentencepiece.bpe.model`."""
    pieces = train_sentencepiece(folder / "sentencepiece.bpe.model")
    known = ["<s>", "<pad>", "</s>", "<unk>"]
    known += [pieces.id_to_piece(number) for number in range(3, len(pieces))]
    languages = len(FAIRSEQ_LANGUAGE_CODES["m2m100"])
    config = hf.M2M100Config(
        vocab_size=len(known) + languages + 8, **tiny_models.SEQ2SEQ
    )
    network = hf.M2M100ForConditionalGeneration(config)
    tiny_models.save_network(network, tiny_models.wordpiece(), folder, seed=3)
    keep_tokenizer(folder, tokenizer_class)
    ids = {piece: number for number, piece in enumerate(known)}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    return pickle_weights(folder)


def small100(folder: Path) -> Path:
    return m2m100(folder, "SMALL100Tokenizer")


def vocabulary_and_merges(folder: Path) -> Path:
    """Replace `tokenizer.json` by the two older files of a byte-level tokenizer."""
    stored = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    (folder / "vocab.json").write_text(json.dumps(stored["model"]["vocab"]))
    merges = [" ".join(pair) for pair in stored["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")
    for file in folder.glob("*token*.json"):
        file.unlink()
    return folder


def dialogpt(folder: Path) -> Path:
    return pickle_weights(vocabulary_and_merges(tiny_models.gpt2(folder)))


def dialogrpt(folder: Path, seed: int) -> Path:
    return pickle_weights(
        vocabulary_and_merges(tiny_models.gpt2_classifier(folder, seed))
    )


def roberta(folder: Path) -> Path:
    """Both forms of weights, as the repositories of the large companies have; 17 layers and one."""
    tiny_models.roberta(folder)
    tokenizer = models.load_tokenizer(folder)
    config = hf.RobertaConfig.from_pretrained(folder, num_hidden_layers=18)
    tiny_models.save_network(hf.RobertaModel(config), tokenizer, folder, seed=5)
    shutil.copy(folder / "config.json", folder / "generation_config.json")
    torch.save({}, folder / "pytorch_model.bin")
    return folder


def bert(folder: Path, make=tiny_models.bert) -> Path:
    """`vocab.txt` and `tokenizer.json`; at least 9 layers, as BERTScore keeps that many."""
    make(folder)
    write_vocabulary(folder)
    return folder


def multilingual_bert(folder: Path) -> Path:
    config = hf.BertConfig(**{**tiny_models.BERT, "num_hidden_layers": 10})
    network = hf.BertModel(config)
    tiny_models.save_network(network, tiny_models.wordpiece(), folder, seed=6)
    write_vocabulary(folder)
    return folder


def toxic_bert(folder: Path) -> Path:
    labels = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
    tiny_models.bert_classifier(folder, labels)
    write_vocabulary(folder)
    return folder


def goemotions(folder: Path) -> Path:
    from lib.endex.emotions import LABELS

    tiny_models.bert_classifier(folder, list(LABELS))
    keep_tokenizer(folder, "BertTokenizer")
    write_vocabulary(folder)
    return pickle_weights(folder)


HEADS = ("updown", "depth", "width", "human-vs-rand", "human-vs-machine")
REPOSITORIES = {
    "FacebookAI/roberta-large": roberta,
    "google-bert/bert-base-multilingual-cased": multilingual_bert,
    "google-bert/bert-base-uncased": lambda folder: bert(
        folder, tiny_models.masked_bert
    ),
    "facebook/bart-large-cnn": tiny_models.bart,
    "facebook/m2m100_418M": m2m100,
    "alirezamsh/small100": small100,
    "microsoft/DialoGPT-large": dialogpt,
    "openai-community/gpt2-large": tiny_models.gpt2,
    "MingZhong/unieval-dialog": unieval,
    "unitary/toxic-bert": toxic_bert,
    "monologg/bert-base-cased-goemotions-original": goemotions,
    "lucadiliello/bleurt-base-128": bleurt_base,
    "lucadiliello/bleurt-large-512": bleurt_base,
}
for size in ("", "-D12", "-D6", "-D3"):
    REPOSITORIES[f"lucadiliello/BLEURT-20{size}"] = bleurt_20
for seed, head in enumerate(HEADS):
    REPOSITORIES[f"microsoft/DialogRPT-{head}"] = lambda folder, seed=seed: dialogrpt(
        folder, seed
    )


def make_all(root: Path) -> Path:
    """Write every repository below a folder, as `HubServer` serves them."""
    for name, make in REPOSITORIES.items():
        (root / name).mkdir(parents=True)
        make(root / name)
    return root
