"""What retrieval asks of a store, what it answers, and the seam to whatever holds the large parts of a generation.

One generation of a corpus numbers its records (chunks and whole-document records) 0..n-1 in the total order (normalised
path, start line, chunk id) and its documents 0..d-1 by (normalised path, document id). A number means something only
inside its generation; ids are for the outside. Because numbers are in the total order, "score down, number up" is the
tie-break everywhere, and every `Scored` leaves a store in that order.

Numbers, paths, offsets, fields, access and filters are the catalogue's, the same in every store: a small DuckDB file and mapped
columns beside it (`store.records`). The large parts are texts, words and vectors: here (`text/`, the tables of `store.lexical`,
`store.vectors`), or on a Milvus server (`store.milvus`); `store.reader` takes the one that the manifest names. Words elsewhere
are a `LexicalIndex` with `search`, `score`, `counts`, `times` and `where` of its own. Whatever searches does so within a
`Scope`, before any cut to a depth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.records import Chunk, EncoderIdentity, Passage

if TYPE_CHECKING:
    from workbench.store.grep.pattern import GrepPattern
    from workbench.store.grep.text import MappedText

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """Which records one search may count and return.

    Attributes:
        visible: bool (n,) over records, or None for all: what the principal may see. Statistics (number of records,
            document frequency, mean length) are taken over these and nothing else.
        allowed: bool (n,), or None for all: visible, and passed by the filter and the plan's collections. Only these
            are returned. Always a subset of `visible`.
        visible_documents, allowed_documents: the same over documents, bool (d,) or None.
        key: Names principal, filter and collections; equal keys mean equal masks within a generation.
    """

    visible: NDArray[np.bool_] | None = None
    allowed: NDArray[np.bool_] | None = None
    visible_documents: NDArray[np.bool_] | None = None
    allowed_documents: NDArray[np.bool_] | None = None
    key: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Records with scores, score down then number up.

    Attributes:
        numbers: int64 (m,) record numbers.
        scores: float64 (m,), higher is better.
        found: How many records matched before the depth was applied (for exact vector search: all allowed ones).
        approximate: True when an approximate index answered.
        counted: False when `found` is of the candidates that were looked at, and more records may match.
    """

    numbers: NDArray[np.int64]
    scores: NDArray[np.float64]
    found: int
    approximate: bool = False
    counted: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Occurring:
    """One thing that a query asks for, and where it is.

    Attributes:
        text: As typed.
        records: int64, rising: the allowed records that hold it, as `all` and `-` read it.
        counting: The same, as `any` reads it: of a compound those with some of its parts are there too.
        words: Of a phrase of several words the records that hold each word; else empty.
        needed: Whether `all` needs it: not a word next to an identifier.
    """

    text: str
    records: NDArray[np.int64]
    counting: NDArray[np.int64]
    words: tuple[NDArray[np.int64], ...] = ()
    needed: bool = True


@dataclass(frozen=True, slots=True)
class QueryWords:
    """What a query asks for: `all` needs everything of one of the `alternatives`, `any` something, and nothing `excluded`."""

    alternatives: tuple[tuple[Occurring, ...], ...]
    excluded: tuple[Occurring, ...]


@dataclass(frozen=True, slots=True)
class WordScore:
    """What one thing that a query counts adds to the BM25 of one record: `weight x idf x tf (k1 + 1) / (tf + norm)`.

    Attributes:
        text: As typed.
        term: As indexed: a stem, the stems of a phrase in quotes, a prefix with a star; spellings of a compound joined by `/`.
        tf: How often the record has it.
        df, records: How many visible records have it, of how many.
        idf: `ln(1 + (records - df + 0.5) / (df + 0.5))`; 0 where none has it.
        weight: How much of a word it counts: less than 1 for a part of a compound.
        length, mean_length: Words of the record, and of the mean visible record.
        norm: `k1 (1 - b + b length / mean_length)`.
        score: What it adds, 0 where tf is 0. In the order given these add up, in float64, to the very score.
        share: Of the whole score, from 0 to 1.
    """

    text: str
    term: str
    tf: int
    df: int
    records: int
    idf: float
    weight: float
    length: int
    mean_length: float
    norm: float
    score: float
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class GrepAnswer:
    """Passages in grep's order (score down, path, line), each with the record that stands for it.

    Attributes:
        passages: Those that the depth takes.
        numbers: int64 (m,), the record that holds each passage's first matched line; -1 where no allowed record does.
        documents: int64 (m,), the document of each.
        files: Unique files among all matches found, whatever the depth.
        lines: Matched lines found, whatever the depth.
        complete: False when there are more matched lines than are ranked.
        exhausted: True when a greater depth would give nothing more.
    """

    passages: tuple[Passage, ...]
    numbers: NDArray[np.int64]
    documents: NDArray[np.int64]
    files: int
    lines: int
    complete: bool
    exhausted: bool


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One record as stored, with its document's number and without the text of other records."""

    number: int
    document_number: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Source:
    """What documents came from: an indexed `folder`, or the folder of `files` that were indexed one by one.

    Attributes:
        path: Absolute.
        kind: `folder` or `files`.
        documents, chunks: Visible ones.
        bytes: Of the original files and records.
        modified: When its newest document was changed, UTC; None where none says.
        copies: Documents in it that repeat the text of an earlier document.
    """

    path: str
    kind: str
    documents: int
    chunks: int
    bytes: int
    modified: datetime | None
    copies: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """What a result's table needs of m records, from mapped arrays: no SQL.

    Attributes:
        numbers, document_numbers: int64 (m,).
        chunk_ids, document_ids, paths: Text, in the same order.
        start_lines, end_lines: int64 (m,), from 1.
        start_chars, end_chars: int64 (m,), offsets in the document's text.
        whole: bool (m,), the record is a whole document.
        text_keys: uint64 (m,), equal where the records' texts (without context) are equal: first 8 bytes of blake2b.
    """

    numbers: NDArray[np.int64]
    document_numbers: NDArray[np.int64]
    chunk_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    paths: tuple[str, ...]
    start_lines: NDArray[np.int64]
    end_lines: NDArray[np.int64]
    start_chars: NDArray[np.int64]
    end_chars: NDArray[np.int64]
    whole: NDArray[np.bool_]
    text_keys: NDArray[np.uint64]


# --- the seam ----------------------------------------------------------------------------------------------------------


class Texts(Protocol):
    """Texts of documents, by number."""

    def __len__(self) -> int:
        """Number of documents."""

    def text(self, document: int, /) -> str:
        """A document's whole text."""

    def holding(self, patterns: Sequence[GrepPattern], documents: Ints | None, /) -> MappedText:
        """A text to look for matches in, with at least what may hold one of some documents (ascending; None: all)."""


class RecordTexts(Texts, Protocol):
    """Texts of records too, where the catalogue has none."""

    def records(self, numbers: Sequence[int], /) -> Mapping[int, str]:
        """Texts of records by number, without their contexts."""

    def containing(self, part: str, /) -> Ints:
        """Numbers of the records whose text holds a part, any case, ascending: for looking through a corpus."""


class Vectors(Protocol):
    """The vectors of one encoder."""

    identity: EncoderIdentity
    without_graph: str
    """Why exact search answers where an approximate one is asked for, or ""."""

    def __len__(self) -> int:
        """Number of records."""

    def search(self, vector: Floats32, scope: Scope, depth: int, *, exact: str = "auto") -> Scored:
        """The `depth` nearest allowed records by cosine, score down then number up; `exact` is `auto`, `yes` or `no`."""

    def score(self, vector: Floats32, numbers: Ints) -> Floats:
        """Cosine of given records, in the same order; that of `search` for what it returned."""

    def cosines(self, vector: Floats32, scope: Scope) -> Floats32:
        """Cosine of the allowed records, in number order: for histograms."""

    def vectors(self, numbers: Ints) -> Floats32:
        """Copies of stored vectors, float32 (m, dim), in the order asked."""

    def approximates(self, scope: Scope, depth: int, exact: str) -> bool:
        """Whether `search` may miss records that are near enough."""
