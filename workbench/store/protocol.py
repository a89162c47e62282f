"""The seam between the search and whatever holds the large parts of a generation: fourteen methods.

Numbers, paths, offsets, fields, access and filters are the catalogue's, the same in every store: a small DuckDB file and mapped
columns beside it (`store.records`). The large parts are texts, words and vectors: here (`text/`, the tables of `store.lexical`,
`store.vectors`), or on a Milvus server (`store.milvus`). `store.reader` takes the one that the manifest names. Whatever searches
does so within a `Scope`, before any cut to a depth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.records import EncoderIdentity
from workbench.store.types import Scope, Scored

if TYPE_CHECKING:
    from workbench.store.grep.pattern import GrepPattern
    from workbench.store.grep.text import MappedText
    from workbench.store.lexical.query import Matcher

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]


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


class Words(Protocol):
    """BM25 over the words of records; `LexicalIndex` makes the rest of it."""

    def search(self, query: str, scope: Scope, depth: int, *, k1: float, b: float, operator: str) -> Scored:
        """The best `depth` allowed records for a query, score down then number up."""

    def score(self, query: str, scope: Scope, numbers: Ints, *, k1: float, b: float, operator: str) -> Floats:
        """BM25 of given records, in the same order; 0 where the query does not find it."""

    def counts(self, matchers: Collection[Matcher], scope: Scope) -> dict[Matcher, int]:
        """In how many visible records each occurs."""

    def times(self, matchers: Collection[Matcher], number: int) -> dict[Matcher, int]:
        """How often each occurs in a record."""

    def where(self, matchers: Collection[Matcher], scope: Scope) -> dict[Matcher, Ints]:
        """The allowed records in which each occurs, ascending."""


class Vectors(Protocol):
    """The vectors of one encoder."""

    identity: EncoderIdentity
    warnings: tuple[str, ...]

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
