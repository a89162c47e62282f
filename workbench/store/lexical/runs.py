"""Sorting the occurrences of words in bounded memory: runs by term on disk, merged a range of terms at a time.

An occurrence is three whole numbers: a word, a record, and a place ((position << 5) | (span - 1)). They arise in the order
(record, place), so every sort here need only be stable and by one number; sorting `key << 32 | index` as unsigned
integers does that several times faster than a stable argsort.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorpusError
from workbench.store.lexical import tokens

_POSITIONS = 1 << (31 - tokens.SPAN_BITS)

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Every word and term, and what each distinct piece of text consists of.

    Attributes:
        words, terms: In byte order (UTF-8), which is code-point order.
        word_term: int32, term number of each word.
        alone: bool, the word's term has no other word.
        advance: int32 a piece, how many positions it fills.
        starts: int64 a piece and one more, where its occurrences start in the next three.
        word, offset, span: int32 an occurrence in a piece: word number, position within the piece, positions covered.
        given: int32, word numbers of the words that were given beside the pieces.
    """

    words: list[str]
    terms: list[str]
    word_term: Int32s
    alone: NDArray[np.bool_]
    advance: Int32s
    starts: Int64s
    word: Int32s
    offset: Int32s
    span: Int32s
    given: Int32s

    @classmethod
    def of(cls, pieces: Sequence[str], given: Sequence[str] = ()) -> Vocabulary:
        """Analyse distinct pieces and stem their distinct words, and those of texts that need no analysing (`given`)."""
        numbers = {word: number for number, word in enumerate(given)}
        advance, counts, word, offset, span = [], [], [], [], []
        for piece in pieces:
            parts, wholes, _ = tokens.analyse(piece)
            advance.append(len(parts))
            if not wholes and len(parts) == 1:
                word.append(numbers.setdefault(parts[0].word, len(numbers)))
                offset.append(0)
                span.append(1)
                counts.append(1)
                continue
            found = [(i, 1, part.word) for i, part in enumerate(parts)]
            found = sorted([*found, *((whole.first, whole.span, whole.word) for whole in wholes)])
            counts.append(len(found))
            for first, covered, text in found:
                word.append(numbers.setdefault(text, len(numbers)))
                offset.append(first)
                span.append(covered)
        words = sorted(numbers)
        place = np.zeros(len(words), np.int32)
        place[[numbers[w] for w in words]] = np.arange(len(words), dtype=np.int32)
        stems = tokens.stems(words)
        terms = sorted(set(stems))
        term_number = {term: i for i, term in enumerate(terms)}
        word_term = np.array([term_number[s] for s in stems], np.int32)
        alone = (np.bincount(word_term, minlength=len(terms)) == 1)[word_term] if len(terms) else np.zeros(0, bool)
        return cls(
            words,
            terms,
            word_term,
            alone,
            np.array(advance, np.int32),
            np.concatenate(([0], np.cumsum(np.array(counts, np.int64)))).astype(np.int64),
            place[np.array(word, np.int64)],
            np.array(offset, np.int32),
            np.array(span, np.int32),
            place[: len(given)],
        )

    def words_table(self) -> Any:
        """The table `words`."""
        import pyarrow as pa

        numbers = pa.array(np.arange(len(self.words), dtype=np.int32))
        texts = pa.array(self.words, pa.string())
        columns = [numbers, texts, pa.array(self.word_term), pa.array(self.alone)]
        return pa.table(columns, names=["word_number", "word", "term_number", "alone"])

    def terms_table(self, df: Int64s) -> Any:
        """The table `terms`, with the document frequency of each."""
        import pyarrow as pa

        numbers = pa.array(np.arange(len(self.terms), dtype=np.int32))
        columns = [numbers, pa.array(self.terms, pa.string()), pa.array(df.astype(np.int32))]
        return pa.table(columns, names=["term_number", "term", "df"])


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """Occurrences sorted by (term, record, place); int32 arrays of one length."""

    terms: Int32s
    words: Int32s
    records: Int32s
    places: Int32s

    def take(self, order: Any) -> Occurrences:
        """Some of them, by index, mask or slice."""
        return Occurrences(self.terms[order], self.words[order], self.records[order], self.places[order])


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Postings of a range of terms: `terms`, `records`, `tfs` int32 (m,); `places` int32 of all, one after the other.

    `words` is the table `word_postings` of the same range, or None where every word is alone.
    """

    terms: Int32s
    records: Int32s
    tfs: Int32s
    places: Int32s
    words: Any

    def table(self) -> Any:
        """The table `postings`."""
        import pyarrow as pa

        offsets = np.concatenate(([0], np.cumsum(self.tfs))).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(self.places))
        columns = [pa.array(self.terms), pa.array(self.records), pa.array(self.tfs), lists]
        return pa.table(columns, names=["term_number", "number", "tf", "positions"])


def stable_order(keys: NDArray[Any]) -> Int64s:
    """The stable sorting order of keys from 0 to 2^32 - 1."""
    packed = keys.astype(np.uint64) << np.uint64(32) | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def write_run(
    path: Path,
    vocabulary: Vocabulary,
    codes: Int32s,
    in_context: Int64s,
    in_text: Int64s,
    numbers: Int64s,
    lengths: Int64s,
) -> Occurrences:
    """Expand the pieces of a block of records into occurrences, sort them by term, write them, and map them.

    Args:
        path: File to write.
        vocabulary: What pieces consist of.
        codes: Pieces in order: each record's context, then its text.
        in_context, in_text: How many pieces each record has there.
        numbers: The records' numbers, up.
        lengths: Of all records: filled with the number of positions of each of these.
    """
    per_record = in_context + in_text
    record = np.repeat(np.arange(len(per_record)), per_record)
    advance = vocabulary.advance[codes].astype(np.int64)
    before = np.concatenate(([0], np.cumsum(advance)))
    starts = np.cumsum(per_record) - per_record
    positions = before[starts + per_record] - before[starts]
    lengths[numbers] = positions
    if len(positions) and int(positions.max()) + tokens.CONTEXT_GAP >= _POSITIONS:
        raise CorpusError(f"A document has more than {_POSITIONS:,} words", "Split it, or leave it out of the index")
    in_text_part = np.arange(len(codes)) - starts[record] >= in_context[record]
    gap = tokens.CONTEXT_GAP * (in_text_part & (in_context[record] > 0))
    position = before[:-1] - before[starts][record] + gap

    first, count = vocabulary.starts[codes], np.diff(vocabulary.starts)[codes]
    piece = np.repeat(np.arange(len(codes)), count)
    within = np.arange(len(piece)) - (np.cumsum(count) - count)[piece]
    entry = first[piece] + within
    places = (position[piece] + vocabulary.offset[entry]) << tokens.SPAN_BITS | (vocabulary.span[entry] - 1)
    words = vocabulary.word[entry]
    terms = vocabulary.word_term[words]
    order = stable_order(terms)
    rows = np.empty((4, len(order)), np.int32)
    for row, values in enumerate((terms, words, numbers[record[piece]], places)):
        rows[row] = values[order]
    if not rows.size:
        return Occurrences(*rows)
    rows.tofile(path)
    return Occurrences(*np.memmap(path, np.int32, "r", shape=rows.shape).view(np.ndarray))


def merged_blocks(
    runs: Sequence[Occurrences], vocabulary: Vocabulary, most: int, *, mixed: bool = False
) -> Iterator[Postings]:
    """Postings in order of terms, a range of terms at a time.

    Args:
        runs: They hold ascending ranges of records, unless they are `mixed`.
        vocabulary: Of all of them.
        most: Occurrences in a range.
        mixed: The records of one run may lie between those of another.
    """
    order = _mixed_order if mixed else lambda found: stable_order(found.terms)
    counts = np.zeros(len(vocabulary.terms), np.int64)
    for run in runs:
        counts += np.bincount(run.terms, minlength=len(counts))
    bounds = [0]
    group = (np.cumsum(counts) - counts) // max(1, most)
    bounds += (np.flatnonzero(np.diff(group)) + 1).tolist()
    for low, high in zip(bounds, [*bounds[1:], len(counts)], strict=True):
        parts = [run.take(slice(*np.searchsorted(run.terms, (low, high)).tolist())) for run in runs]
        columns = zip(*((p.terms, p.words, p.records, p.places) for p in parts), strict=True)
        together = Occurrences(*(np.concatenate(column) for column in columns)) if parts else None
        if together is not None and len(together.terms):
            yield _postings(together.take(order(together)), vocabulary)


def _mixed_order(found: Occurrences) -> Int64s:
    """The stable order by term and record: of a few sorted runs, which sorting by merging is quick at."""
    return np.argsort(found.terms.astype(np.int64) << 32 | found.records, kind="stable")


def _postings(found: Occurrences, vocabulary: Vocabulary) -> Postings:
    changes = (np.diff(found.terms) != 0) | (np.diff(found.records) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    tfs = np.diff(np.concatenate((starts, [len(found.terms)]))).astype(np.int32)
    words = _word_postings(found.take(np.flatnonzero(~vocabulary.alone[found.words])))
    return Postings(found.terms[starts], found.records[starts], tfs, found.places, words)


def _word_postings(found: Occurrences) -> Any:
    """Rows of `word_postings`, for occurrences of words that are not alone."""
    import pyarrow as pa

    if not len(found.words):
        return None
    found = found.take(stable_order(found.words))
    changes = (np.diff(found.words) != 0) | (np.diff(found.records) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    tfs = np.diff(np.concatenate((starts, [len(found.words)]))).astype(np.int32)
    columns = [pa.array(found.words[starts]), pa.array(found.records[starts]), pa.array(tfs)]
    return pa.table(columns, names=["word_number", "number", "tf"])
