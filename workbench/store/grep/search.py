"""grep over a generation: passages of lines around matches, in whole documents, with RE2's semantics.

A search goes three steps. *Which lines match*, for each pattern: RE2 scans the allowed documents (`scan`). *Which passages*:
arithmetic on line numbers (`passages`). *What they show*: text is read for the best `depth` of them only. What bounds an answer
is one rule: of each pattern, the first `MOST_LINES` matched lines are taken, in document number order (path order) and line order
within the allowed documents; passages, scores and counts are over those, and `complete` is False if there were more.
Documents that the scope hides are left out before a line is counted, so they change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.errors import QueryError, UsageError
from workbench.records import Passage
from workbench.store.arrays import Columns
from workbench.store.grep.passages import PassageWriter, group, reached
from workbench.store.grep.pattern import GrepPattern, prepare
from workbench.store.grep.scan import scan
from workbench.store.grep.text import MappedText
from workbench.store.types import GrepAnswer, Scope

MOST_LINES = 50_000
"""Matched lines of one pattern that are ranked: the first ones in (path, line) order."""

MOST_PATTERNS = 100

_THREADS = 2


class MappedGrep:
    """`GrepIndex` over a generation's mapped files; read-only, safe from several threads.

    Args:
        text: The text file, or the folder that `build_text` wrote.
        columns: The arrays of records and documents.
        most_lines: Matched lines of one pattern that are ranked.

    Raises:
        CorpusDamaged: A file is missing, or its arrays do not fit each other.
        UsageError: The two are not of one generation.
    """

    def __init__(self, text: MappedText | Path | str, columns: Columns, *, most_lines: int = MOST_LINES) -> None:
        self._text = text if isinstance(text, MappedText) else MappedText(text)
        self._columns = columns
        self._most_lines = most_lines
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="grep")
        if columns.documents_total != len(self._text):
            raise UsageError(
                f"The arrays hold {columns.documents_total} documents and the text file {len(self._text)}",
                "Name folders of one generation",
            )

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def text(self, document_number: int) -> str:
        """A document's whole text, from the mapped file."""
        return self._text.text(document_number)

    def search(
        self,
        patterns: Sequence[str],
        scope: Scope,
        depth: int,
        *,
        regex: bool,
        case: str,
        word: bool,
        context: int,
        counts: str = "passages",
    ) -> GrepAnswer:
        """Passages where any pattern matches, in the documents that the scope allows.

        Args:
            patterns: Text that stands for itself, or regular expressions; any of them may match. Repeated ones count once.
            scope: What may be returned; only its `allowed` masks are used.
            depth: Most passages returned, or chunks or documents that they stand for.
            regex: Whether the patterns are regular expressions in RE2's syntax.
            case: `smart` (each pattern: sensitive only if it has a capital), `sensitive` or `ignore`.
            word: Match whole words only.
            context: Lines shown before and after a matched line.
            counts: What the depth counts: `passages`, `chunks` or `documents`. A search at a smaller depth gives the
                beginning of a deeper one.

        Returns:
            The best passages, score down, then document number up, then line up; files and lines are those found before
            the depth was applied.

        Raises:
            QueryError: There is no pattern, one is empty, there are too many, RE2 refuses one, or one takes too long.
        """
        distinct = list(dict.fromkeys(patterns))
        if not distinct:
            raise QueryError("There is no pattern to look for", "Give at least one word or pattern")
        if len(distinct) > MOST_PATTERNS:
            raise QueryError(f"There are {len(distinct)} patterns", f"Give at most {MOST_PATTERNS}")
        prepared = [prepare(pattern, regex=regex, case=case, word=word) for pattern in distinct]
        matched, complete = [], True
        for pattern in prepared:
            lines = self._matched(pattern, scope.allowed_documents)
            complete &= len(lines) <= self._most_lines
            matched.append(lines[: self._most_lines])
        groups = group(self._text, matched, context)
        writer = PassageWriter(self._text, self._columns, prepared, context, scope.allowed)
        best = groups.best()
        passages: list[Passage] = []
        numbers, taken, enough = np.zeros(0, np.int64), 0, 0
        while taken < len(best) and not enough:
            # Several passages may stand for one chunk or document: texts are read until there are enough of those.
            more, records = writer.write(groups, best[taken : max(depth, taken + taken // 4 + 16)])
            passages, numbers = passages + more, np.concatenate((numbers, records))
            taken = len(passages)
            enough = reached(counts, numbers, groups.documents[best[:taken]], depth)
        taken = enough or taken
        files = int(np.count_nonzero(np.diff(groups.documents))) + 1 if len(groups.documents) else 0
        return GrepAnswer(
            tuple(passages[:taken]), numbers[:taken], files, len(groups.lines), complete, taken == len(best)
        )

    def _matched(self, pattern: GrepPattern, allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """A pattern's matched lines in allowed documents, ascending: all, or the first `most_lines` + 1."""
        documents = None if allowed is None else np.flatnonzero(allowed)
        return scan(self._text, documents, pattern, self._most_lines + 1, self._pool)
