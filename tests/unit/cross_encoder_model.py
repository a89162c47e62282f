"""A cross-encoder on disk small enough to make in a test: random BERT weights, a vocabulary of its own. It knows nothing."""

from __future__ import annotations

import json
from pathlib import Path

SENTENCE = "retry retries backoff jitter timeout how do work cat dog the a of and in to is it on we"
WORDS = SENTENCE.split()


def make_cross_encoder(folder: Path, *, labels: int = 1, seed: int = 0, headless: bool = False) -> Path:
    """Save a BERT of two layers with `labels` scores a pair, or `headless` without a scoring head."""
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{x}" for x in letters)]
    vocabulary = list(dict.fromkeys(vocabulary))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 64})
    )
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        kind = transformers.BertModel if headless else transformers.BertForSequenceClassification
        kind(config).save_pretrained(folder)
    return folder
