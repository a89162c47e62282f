"""From files to documents and chunks.

`walk` finds files, `rules` says what each is given, `read` reads one file into documents and their chunks. Nothing here
knows of stores, encoders or runs; the tokenizer is passed in.
"""

from __future__ import annotations

from workbench.ingest.chunk import chunk_document
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.ids import INGEST_VERSION
from workbench.ingest.read import ReadDocument, ReadOptions, read_documents, read_file
from workbench.ingest.rules import CorpusRules, FileRules, load_rules
from workbench.ingest.tokens import TokenCounter
from workbench.ingest.walk import FoundFile, SkippedFile, walk

__all__ = [
    "INGEST_VERSION",
    "CorpusRules",
    "FileRules",
    "FoundFile",
    "Problem",
    "ReadDocument",
    "ReadError",
    "ReadOptions",
    "SkippedFile",
    "TokenCounter",
    "chunk_document",
    "load_rules",
    "read_documents",
    "read_file",
    "walk",
]
