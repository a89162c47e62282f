"""One indexing run in a process of its own, so that its peak memory is its own: `python -m bench.indexing_run`.

It indexes a folder into a new corpus and encodes the texts of the same chunks by the encoder alone, in turn, and prints
seconds, chunks and megabytes as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from bench.corpora import peak_memory
from workbench import corpus as corpora
from workbench.encode.load import load_encoder
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE
from workbench.store.reader import open_generation


def main(files: Path, work: Path, name: str, rounds: int) -> dict[str, object]:
    """Index and encode in turn.

    Args:
        files: Folder to index.
        work: Folder for the corpora; removed.
        name: The encoder.
        rounds: How often.

    Returns:
        `indexing` and `encoding` (seconds of each round), `chunks`, `memory_mb`, `runtime`.
    """
    encoder = load_encoder(name)
    encoder.encode_query("warm")
    indexing, encoding = [], []
    chunks = 0
    for turn in range(rounds):
        corpus = work / f"corpus-{turn}"
        started = time.perf_counter()
        corpora.index([files], corpus, encoder=name)
        indexing.append(time.perf_counter() - started)
        texts = _texts(corpus)
        chunks = len(texts)
        started = time.perf_counter()
        encoder.encode(texts)
        encoding.append(time.perf_counter() - started)
        shutil.rmtree(corpus)
    return {
        "indexing": indexing,
        "encoding": encoding,
        "chunks": chunks,
        "memory_mb": peak_memory(),
        "runtime": encoder.identity.runtime,
    }


def _texts(corpus: Path) -> list[str]:
    """Distinct texts as the encoder got them."""
    with open_generation(corpus) as generation:
        connection = open_reading(generation.folder / DATABASE)
        try:
            sql = "SELECT DISTINCT CASE WHEN context = '' THEN text ELSE context || chr(10) || text END FROM records"
            return sorted(str(row[0]) for row in fetch(connection, sql))
        finally:
            connection.close()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
