"""A small grep index over given texts, and a plain oracle that searches line by line with Python's `re`."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.store.arrays import DOCUMENT_COLUMNS, RECORD_COLUMNS, Columns, save_columns
from workbench.store.grep.search import MappedGrep
from workbench.store.grep.text import build_text
from workbench.store.types import GrepAnswer, Scope

CHUNK = 40


@dataclass(frozen=True)
class RecordEntry:
    """A record: characters `start` (included) to `end` of a document's text."""

    chunk_id: str
    document_number: int
    start: int
    end: int
    whole: bool = False


def make_columns(
    folder: Path, names: Sequence[str], records: Sequence[RecordEntry], pages: Sequence[Sequence[int]] = ()
) -> Columns:
    pages = pages or [()] * len(names)
    given = {
        "document_number": [r.document_number for r in records],
        "start_char": [r.start for r in records],
        "end_char": [r.end for r in records],
        "whole": [r.whole for r in records],
        "text_key": [0] * len(records),
    }
    zero = [0] * len(names)
    save_columns(
        folder,
        {},
        {name: [0] * len(records) for name in RECORD_COLUMNS} | given,
        dict.fromkeys(DOCUMENT_COLUMNS, zero) | {"pages": [len(own) for own in pages]},
        chunk_ids=[r.chunk_id for r in records],
        document_ids=[f"id-{name}" for name in names],
        paths=names,
        digests=[bytes(16)] * len(names),
        pages=[page for own in pages for page in own],
    )
    return Columns(folder)


def make_grep(
    folder: Path,
    texts: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    records: Sequence[RecordEntry] | None = None,
    most_lines: int = 50_000,
) -> MappedGrep:
    """An index over texts; records are chunks of `CHUNK` characters unless they are given."""
    folder = Path(tempfile.mkdtemp(dir=folder)) if folder.exists() else folder
    build_text(folder, texts)
    names = names or [f"d{n:04d}.txt" for n in range(len(texts))]
    if records is None:
        records = [
            RecordEntry(f"{names[number]}@{start}", number, start, min(start + CHUNK, len(text)))
            for number, text in enumerate(texts)
            for start in range(0, len(text), CHUNK)
        ]
    return MappedGrep(folder, make_columns(folder / "records", names, records), most_lines=most_lines)


def run(
    grep: MappedGrep,
    *patterns: str,
    regex: bool = False,
    case: str = "smart",
    word: bool = False,
    context: int = 1,
    depth: int = 1000,
    documents: Sequence[int] | None = None,
) -> GrepAnswer:
    scope = Scope()
    if documents is not None:
        mask = np.zeros(grep._columns.documents_total, np.bool_)
        mask[list(documents)] = True
        scope = Scope(allowed_documents=mask)
    return grep.search(patterns, scope, depth, regex=regex, case=case, word=word, context=context)


@dataclass(frozen=True)
class Expected:
    """What a passage should be."""

    path: str
    start_line: int
    end_line: int
    matched_lines: tuple[int, ...]
    score: float
    text: str


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def expected(texts: Sequence[str], patterns: Sequence[re.Pattern[str]], context: int) -> list[Expected]:
    found: list[Expected] = []
    for number, text in enumerate(texts):
        lines = lines_of(text)
        hits = {n: {p for p in patterns if p.search(line)} for n, line in enumerate(lines, 1)}
        matched = [n for n in hits if hits[n]]
        groups: list[list[int]] = []
        for n in matched:
            if groups and n - groups[-1][-1] <= 2 * context:
                groups[-1].append(n)
            else:
                groups.append([n])
        for group in groups:
            first, last = max(1, group[0] - context), min(len(lines), group[-1] + context)
            distinct = len(set().union(*(hits[n] for n in group)))
            score = distinct + len(group) / (len(group) + 1)
            shown = "\n".join(lines[first - 1 : last])
            found.append(Expected(f"d{number:04d}.txt", first, last, tuple(group), score, shown))
    return sorted(found, key=lambda e: (-e.score, e.path, e.start_line))


def as_expected(answer: GrepAnswer) -> list[Expected]:
    return [Expected(p.path, p.start_line, p.end_line, p.matched_lines, p.score, p.text) for p in answer.passages]
