"""The occurrences of words in records that a new generation has from the one before, read off its arrays.

Splitting and sorting every text again is most of the work of building the words, and after an edit nearly all texts are those
of the generation before. Its arrays hold all that matters of them: which terms, in which records, at which places. They are
given the new numbers of the records and join the occurrences of the new texts as one more sorted run, so that what is written
is made by the same steps from the same occurrences as in a build of everything, and is the same to the byte.

Arrays know the word of an occurrence only where its term has no other word; else they know how often each word occurs in a
record. That is enough: words serve to count just that, so the places of a term in a record are dealt out to its words in turn.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.store.lexical import tokens
from workbench.store.lexical.arrays import Arrays
from workbench.store.lexical.runs import Occurrences, Vocabulary

MADE_WITH = "made_with.json"
_COLUMNS = ("terms", "words", "records", "places")

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


def makers() -> dict[str, str]:
    """What decides which words a text has: its rules here, and the versions of what they rest on."""
    import duckdb
    import Stemmer

    return {
        "words": str(tokens.WORDS_VERSION),
        "unicode": unicodedata.unidata_version,
        "stemmer": str(Stemmer.version()),
        "duckdb": str(duckdb.__version__),
    }


def write_makers(folder: Path) -> None:
    """Note beside the arrays what they were made with."""
    (folder / MADE_WITH).write_text(json.dumps(makers(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def made_alike(folder: Path) -> bool:
    """Whether the arrays of a folder were made as they would be now; False where nothing says so."""
    try:
        said: Any = json.loads((folder / MADE_WITH).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(said == makers())


class Carried:
    """What a new generation has of an old one's words.

    Args:
        folder: The old generation's arrays.
        numbers: int32 (n,), the new number of each old record, -1 where it has gone.
        most: Occurrences that are held at once.

    Attributes:
        words: The words that still occur, in byte order.

    Raises:
        CorpusDamaged: The arrays cannot be read.
    """

    def __init__(self, folder: Path, numbers: Int32s, most: int) -> None:
        self._old, self._numbers, self._most = Arrays(folder), numbers, most
        old = self._old
        self._terms = len(old.term_starts) - 1
        in_terms = self._kept(old.term_starts, old.records)
        in_words = self._kept(old.word_starts, old.word_records)
        lone = np.diff(old.word_starts) == 0
        self._numbered = np.flatnonzero(np.where(lone, in_terms[old.word_terms], in_words))
        self.words = [str(old.words[number], "utf-8") for number in self._numbered.tolist()]

    def lengths(self, into: Int64s) -> None:
        """Fill in the lengths of the records that are there, by their new numbers."""
        there = np.flatnonzero(self._numbers >= 0)
        into[self._numbers[there]] = self._old.lengths[there]

    def write_run(self, path: Path, vocabulary: Vocabulary) -> Occurrences:
        """Write the occurrences as a run sorted by term, and map it.

        Args:
            path: The files' name; each column's is added.
            vocabulary: The new one; its `given` are the numbers of `words`.
        """
        old = self._old
        new_word = np.full(len(old.word_terms), -1, np.int32)
        new_word[self._numbered] = vocabulary.given
        new_term = np.full(self._terms, -1, np.int32)
        new_term[old.word_terms[self._numbered]] = vocabulary.word_term[vocabulary.given]
        by_term = np.argsort(old.word_terms, kind="stable")
        firsts = np.searchsorted(old.word_terms[by_term], np.arange(self._terms + 1))
        paths = [path.with_name(f"{path.name}-{column}") for column in _COLUMNS]
        files = [each.open("wb") for each in paths]
        try:
            for low, high in _ranges_of(old.place_starts, self._most):
                postings = slice(int(old.term_starts[low]), int(old.term_starts[high]))
                records, tfs = self._numbers[old.records[postings]], old.tfs[postings].astype(np.int64)
                owners = np.repeat(np.arange(low, high), np.diff(old.term_starts[low : high + 1]))
                words = self._words(by_term[firsts[low] : firsts[high]], owners, old.records[postings], tfs)
                there = np.repeat(records >= 0, tfs)
                places = old.places[int(old.place_starts[low]) : int(old.place_starts[high])]
                columns = (np.repeat(new_term[owners], tfs), new_word[words], np.repeat(records, tfs), places)
                for file, column in zip(files, columns, strict=True):
                    column[there].astype(np.int32, copy=False).tofile(file)
        finally:
            for file in files:
                file.close()
        return Occurrences(*(_mapped(each) for each in paths))

    def _kept(self, starts: Int64s, records: Int32s) -> Int64s:
        """How many postings of each key are of records that are there."""
        found = np.zeros(len(starts) - 1, np.int64)
        for low, high in _ranges_of(starts, self._most):
            there = self._numbers[records[int(starts[low]) : int(starts[high])]] >= 0
            before = np.concatenate(([0], np.cumsum(there)))
            ends = starts[low : high + 1] - starts[low]
            found[low:high] = np.diff(before[ends])
        return found

    def _words(self, words: Int64s, owners: Int64s, records: Int32s, tfs: Int64s) -> Int64s:
        """The old word of each occurrence in a range of terms.

        Args:
            words: The words of these terms, by term.
            owners, records, tfs: The terms' postings.
        """
        old = self._old
        counts = np.diff(old.word_starts)[words]
        first_word = np.zeros(int(owners[-1]) + 1 if len(owners) else 0, np.int64)
        lone = words[counts == 0]
        first_word[old.word_terms[lone]] = lone
        result = np.repeat(first_word[owners], tfs)
        shared = words[counts > 0]
        counts = counts[counts > 0]
        rows = np.repeat(old.word_starts[shared] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        word = np.repeat(shared, counts)
        key = old.word_terms[word].astype(np.int64) << 32 | old.word_records[rows]
        order = np.argsort(key, kind="stable")
        several = np.zeros(len(first_word), bool)
        several[old.word_terms[shared]] = True
        result[np.repeat(several[owners], tfs)] = np.repeat(word[order], old.word_tfs[rows[order]])
        return result


def _ranges_of(starts: Int64s, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of keys with about `most` items between them, each at least one key."""
    low = 0
    while low < len(starts) - 1:
        high = max(low + 1, int(np.searchsorted(starts, starts[low] + most, "right")) - 1)
        yield low, high
        low = high


def _mapped(path: Path) -> Int32s:
    if not path.stat().st_size:
        return np.zeros(0, np.int32)
    return np.memmap(path, np.int32, "r").view(np.ndarray)
