"""From files to documents and chunks.

`walk` finds files, `rules` says what each is given, `read` reads one file into documents and their chunks. Nothing here
knows of stores, encoders or runs; the tokenizer is passed in.

The names below load what they need when they are first used: who opens a corpus reads its rules and no file, and the readers
of all formats are a third of what a search on the command line would import.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "INGEST_VERSION": "workbench.ingest.chunking",
    "CorpusRules": "workbench.ingest.rules",
    "FileRules": "workbench.ingest.rules",
    "FoundFile": "workbench.ingest.walk",
    "Problem": "workbench.ingest.errors",
    "ReadDocument": "workbench.ingest.read",
    "ReadError": "workbench.ingest.errors",
    "SkippedFile": "workbench.ingest.walk",
    "TokenCounter": "workbench.ingest.chunking",
    "chunk_document": "workbench.ingest.chunking",
    "load_rules": "workbench.ingest.rules",
    "read_documents": "workbench.ingest.read",
}

__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'workbench.ingest' has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)
