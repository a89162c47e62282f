"""Which record holds a character: mapped arrays that turn a place in a document into the record that stands for it.

grep finds lines of documents, fusion ranks records. The way from one to the other must not read a database row for
each passage, so what is needed of documents and records is written beside the text as arrays.

Files in the folder: `span_order.npy` (int32, record numbers by document, start and number); in that order `span_start.npy`,
`span_end.npy` (int64, characters in the document) and `span_whole.npy` (bool: the record is the whole document);
`span_rows.npy` (int64, where each document's records start in it, and their number at the end);
three tables of strings, `span_chunk_ids`, `span_document_ids` and `span_paths` (`.bin` UTF-8 and `.npy` int64 offsets),
and the pages, `span_pages.npy` and `span_page_rows.npy` (int64, characters, and where each document's pages start).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.store.generations import damaged
from workbench.store.grep.text import load_array
from workbench.store.place_arrays import Places
from workbench.store.string_table import StringTable, StringWriter


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """What grep needs to know of a document."""

    document_id: str
    path: str
    page_starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """What grep needs to know of a record: characters `start` (included) to `end` of a document's text.

    `whole`: the record is the whole document.
    """

    chunk_id: str
    document_number: int
    start: int
    end: int
    whole: bool = False


def build_record_spans(folder: Path | str, documents: Iterable[DocumentEntry], records: Iterable[RecordEntry]) -> None:
    """Write the arrays.

    Args:
        folder: Where to write; made if it is missing.
        documents: In document number order.
        records: In record number order.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    document_ids, paths = StringWriter(folder / "span_document_ids"), StringWriter(folder / "span_paths")
    pages, page_rows, spans = array("q"), array("q", [0]), array("q")
    for document in documents:
        document_ids.add(document.document_id)
        paths.add(document.path)
        pages.extend(document.page_starts)
        page_rows.append(len(pages))
    chunk_ids = StringWriter(folder / "span_chunk_ids")
    for record in records:
        chunk_ids.add(record.chunk_id)
        spans.extend((record.document_number, record.start, record.end, record.whole))
    columns = np.array(spans, np.int64).reshape(-1, 4)
    owner, start = columns[:, 0], columns[:, 1]
    order = np.lexsort((np.arange(len(owner)), start, owner))
    np.save(folder / "span_start.npy", start[order])
    np.save(folder / "span_end.npy", columns[order, 2])
    np.save(folder / "span_whole.npy", columns[order, 3].astype(np.bool_))
    np.save(folder / "span_order.npy", order.astype(np.int32))
    rows = np.searchsorted(owner[order], np.arange(len(page_rows)))
    np.save(folder / "span_rows.npy", rows.astype(np.int64))
    np.save(folder / "span_pages.npy", np.array(pages, np.int64))
    np.save(folder / "span_page_rows.npy", np.array(page_rows, np.int64))
    for strings in (document_ids, paths, chunk_ids):
        strings.close()


class RecordSpans:
    """The arrays of `build_record_spans`, mapped read-only; safe from several threads.

    Raises:
        CorpusDamaged: A file is missing, or the files do not fit each other.
    """

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        self._start = load_array(folder / "span_start.npy")
        self._end = load_array(folder / "span_end.npy")
        self._whole = load_array(folder / "span_whole.npy")
        self._order = load_array(folder / "span_order.npy")
        self._rows = load_array(folder / "span_rows.npy")
        self._pages = load_array(folder / "span_pages.npy")
        self._page_rows = load_array(folder / "span_page_rows.npy")
        self._chunk_ids = StringTable(folder / "span_chunk_ids")
        self._document_ids = StringTable(folder / "span_document_ids")
        self._paths = StringTable(folder / "span_paths")
        self.places = Places(folder)
        lengths = {len(a) for a in (self._start, self._end, self._whole, self._order)}
        if lengths != {len(self._chunk_ids)} or len(self._rows) != len(self._paths) + 1:
            raise damaged(folder / "span_rows.npy", "does not fit the other record spans")

    def __len__(self) -> int:
        """Number of records."""
        return len(self._chunk_ids)

    @property
    def documents_total(self) -> int:
        """Number of documents."""
        return len(self._paths)

    def chunk_ids(self, records: Sequence[int]) -> list[str]:
        """Chunk ids of records; "" for -1."""
        return self._chunk_ids.take(records)

    def document_ids(self, documents: Sequence[int]) -> list[str]:
        """Ids of documents."""
        return self._document_ids.take(documents)

    def paths(self, documents: Sequence[int]) -> list[str]:
        """Paths of documents."""
        return self._paths.take(documents)

    def page(self, document: int, character: int) -> int | None:
        """The page (from 1) that a character is on; None where the document has no pages."""
        pages = self._pages[int(self._page_rows[document]) : int(self._page_rows[document + 1])]
        return max(1, int(np.searchsorted(pages, character, side="right"))) if len(pages) else None

    def holder(
        self, document: int, match: tuple[int, int], line: tuple[int, int], allowed: NDArray[np.bool_] | None
    ) -> int:
        """The allowed record that stands for a match.

        The chunk that holds the match's first character; else the first that holds another part of it, or of its line
        (a match may lie in what no chunk covers); for a line before all chunks, which is front matter, the first of them;
        else the whole-document record. Among several, the lowest number.

        Args:
            document: Its number.
            match: Characters of the match in the document.
            line: Characters of the line that it is on.
            allowed: bool (n,) over records, or None for all.

        Returns:
            A record number, or -1 if no allowed record covers the line.
        """
        low, high = int(self._rows[document]), int(self._rows[document + 1])
        starts = self._start[low:high]
        for first, last in ((match[0], match[0] + 1), match, line):
            # Only records that start before the last character can hold any of them.
            upto = low + int(np.searchsorted(starts, max(last, first + 1), side="left"))
            holds = np.flatnonzero((self._end[low:upto] > first) & ~self._whole[low:upto])
            record = _lowest(self._order[low:upto][holds], allowed)
            if record >= 0:
                return record
        chunks = low + np.flatnonzero(~self._whole[low:high])
        if len(chunks) and line[0] < self._start[chunks[0]]:
            if allowed is not None:
                chunks = chunks[allowed[self._order[chunks]]]
            if len(chunks):
                return int(self._order[chunks[0]])
        return _lowest(self._order[low:high][self._whole[low:high]], allowed)


def _lowest(numbers: NDArray[np.int32], allowed: NDArray[np.bool_] | None) -> int:
    if allowed is not None:
        numbers = numbers[allowed[numbers]]
    return int(numbers.min()) if len(numbers) else -1
