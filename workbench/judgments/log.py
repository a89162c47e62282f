"""Judgments: who said that which passage answers which query, and how well. An append-only log.

To grade from a page, use the corpus's `judging`, which knows where a hit is and who may see it::

    judging = corpus.judging                                    # bound to the corpus, its principal and generation
    judging.grade(hit, 2, query=result.query)                   # grades 0 to 3; the set is `search` unless set= says otherwise
    judging.grades(result.query, result.hits)                   # {chunk_id: Judgment} of this judge, to draw the buttons
    judging.undo()                                              # takes the last one back, and the one before after that

**What is judged** is an `Anchor`: a run of characters of a document, with the text that stood there; or a whole document
(as imported qrels mean it). Not a chunk: chunks come and go with every indexing run. A judgment is found again in the
document of today by these rules, in this order (`find_again`):

1. the quoted text is where it stood (what a policy masks for one of two judges is the same text);
2. it is somewhere else: the place nearest to the old one, the earlier of two as near;
3. its words are somewhere one after the other, with other spaces or line breaks between them: nearest again;
4. none of these: the judgment is *stale*. It is kept and listed, and counts for nothing.

**Chunks inherit** (`evaluate.run.inherits`): a chunk has a judgment when the two have at least half of the shorter one in
common. So do the parts of a passage that is cut finer now, and a longer chunk that holds it. **The same passage**
(`same_passage`) is judged again when the two have at least half of the longer one in common; then the newer judgment counts
and the older does not.

**The log** only grows. Of the judgments of one query, anchor and judge the newest counts. An undo is an entry of its own that
takes the newest back, so that the one before it counts again. One commit a grade, on the disk when `grade` returns: a
killed process loses the grade in flight at most, and several judges at once lose nothing. A query that is removed takes its
judgments back the same way; only bringing it back takes these entries out.

**Who sees a judgment**: whoever sees its document, as it is in the corpus now; of a document that is gone, whoever was
allowed to see it when it was judged.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workbench.errors import JudgmentError
from workbench.judgments.query_sets import COUNTS, GRADE_TEXTS, JUDGING, QuerySets
from workbench.records import Span
from workbench.saved.database import Database, now, time_of
from workbench.store.access.visibility import MASK

GRADES = (0, 1, 2, 3)
GRADE_NAMES = GRADE_TEXTS
MACHINE = "machine:"
"""Judges whose names begin so are models; their grades never count unless they are asked for by name."""

KNOWN_ITEM = "known-item"
"""The judge of known-item sets: what a query was made of answers it. It counts, and is no person to agree with."""

LONGEST_NOTE = 4_000
LONGEST_JUDGE = 1_000


@dataclass(frozen=True, slots=True)
class Anchor:
    """What is judged.

    Attributes:
        root: Absolute path of the indexed folder; "" where it is not known.
        quote: The text that stood there; "" for a whole document.
        document_id: The document's id; "" where it was judged before ids were kept, or is not in the corpus.
    """

    path: str
    root: str = ""
    tenant: str | None = None
    start: int = 0
    end: int = 0
    quote: str = ""
    roles: tuple[str, ...] = ()
    sensitivity: str = "normal"
    document_id: str = ""

    @property
    def whole(self) -> bool:
        """Whether the whole document is judged."""
        return self.end == 0

    @property
    def key(self) -> str:
        """The name of what is judged, in qrels: the path, with `#START-END` for a passage. It stays when the text moves."""
        return self.path if self.whole else f"{self.path}#{self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class Judgment:
    """One valid entry of the log: `grade` 0 to 3 (imported qrels may hold others), `time` in UTC."""

    number: int
    query_id: str
    anchor: Anchor
    grade: int
    judge: str
    time: datetime
    note: str = ""

    @property
    def machine(self) -> bool:
        """Whether a model gave it."""
        return self.judge.startswith(MACHINE)


class JudgmentLog:
    """The judgments of one tenant's query sets. Knows nothing of the corpus; `judging` does."""

    def __init__(self, sets: QuerySets) -> None:
        self.sets = sets
        self.database: Database = sets.database

    def grade(self, name: str, query_id: str, anchor: Anchor, grade: int, judge: str, note: str = "") -> Judgment:
        """Write one judgment; it is on the disk when this returns. `grade`: 0 to 3."""
        if grade not in GRADES:
            raise JudgmentError(
                f"{grade!r} is not a grade", "Grade 0 (not relevant), 1 (related), 2 (relevant) or 3 (answers it)"
            )
        with self.database.writing(JUDGING) as db:
            number = self.sets.number(db, name)
            known = "SELECT 1 FROM judging_queries WHERE set_number = ? AND query_id = ?"
            if db.execute(known, (number, query_id)).fetchone() is None:
                raise JudgmentError(f"The set {name!r} has no query {query_id!r}", "Add the query to the set first")
            return self.write(db, number, query_id, anchor, grade, judge, note)

    def write(
        self,
        db: sqlite3.Connection,
        number: int,
        query_id: str,
        anchor: Anchor,
        grade: int,
        judge: str,
        note: str = "",
        time: float | None = None,
    ) -> Judgment:
        """`grade` inside a transaction of the caller's, unchecked but for lengths. `time`: Seconds since 1970, UTC; None is
        now.
        """
        judge = " ".join(judge.split())
        if not judge or len(judge) > LONGEST_JUDGE or len(note) > LONGEST_NOTE:
            raise JudgmentError(
                "The judge has no name" if not judge else "The judge's name or the note is too long",
                f"Use 1 to {LONGEST_JUDGE} characters for the name and at most {LONGEST_NOTE:,} for the note",
            )
        seconds = now() if time is None else time
        access = json.dumps([list(anchor.roles), anchor.sensitivity], ensure_ascii=False)
        entry = db.execute(
            "INSERT INTO judging_log (set_number, query_id, tenant, root, path, start_char, end_char, quote, access, grade,"
            " judge, time, note, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number, query_id, json.dumps(anchor.tenant, ensure_ascii=False), anchor.root, anchor.path, anchor.start,
                anchor.end, anchor.quote.encode("utf-8", "replace").decode(), access, grade, judge, seconds, note,
                anchor.document_id,
            ),
        )  # fmt: skip
        return Judgment(int(entry.lastrowid or 0), query_id, anchor, grade, judge, time_of(seconds), note)

    def undo(self, name: str, judge: str, number: int | None = None) -> Judgment | None:
        """Take back a judge's newest judgment in a set, or the one with a number. Returns what was taken back; None where
        there is nothing left to take back.
        """
        with self.database.writing(JUDGING) as db:
            sql = (
                f"SELECT {_COLUMNS} FROM judging_log l WHERE set_number = ? AND judge = ? AND {COUNTS}"
                " AND (? IS NULL OR number = ?) ORDER BY number DESC LIMIT 1"
            )
            row = db.execute(sql, (self.sets.number(db, name), judge, number, number)).fetchone()
            if row is None:
                return None
            _take_back(db, "number = ?", (row["number"],))
            return _judgment(row)

    def remove_queries(self, name: str, query_ids: Sequence[str]) -> Callable[[], None]:
        """Take queries out of a set, with their judgments; one at least stays. Returns what brings both back.

        Raises JudgmentError: there is no such set or query, or it would have no queries.
        """
        with self.database.writing(JUDGING) as db:
            number, places = self.sets.number(db, name), ", ".join("?" * len(query_ids))
            sql = f"DELETE FROM judging_queries WHERE set_number = ? AND query_id IN ({places}) RETURNING *"
            rows = [tuple(row) for row in db.execute(sql, (number, *query_ids))]
            if len(rows) < len(set(query_ids)):
                raise JudgmentError(
                    f"The set {name!r} does not have all of these queries", "Its queries are on the Query sets page"
                )
            if not db.execute("SELECT 1 FROM judging_queries WHERE set_number = ?", (number,)).fetchone():
                raise JudgmentError(f"The query set {name!r} would have no queries", "Remove the whole set")
            undone = _take_back(db, f"set_number = ? AND query_id IN ({places}) AND {COUNTS}", (number, *query_ids))

        def back() -> None:
            with self.database.writing(JUDGING) as db:
                sql = "SELECT text, keywords FROM judging_queries WHERE set_number = ? AND query_id = ?"
                for row in rows:
                    now_there = db.execute(sql, row[:2]).fetchone()
                    if now_there is not None and tuple(now_there) != row[3:5]:
                        raise JudgmentError(
                            f"The set {name!r} has another query {row[1]!r} by now", "Remove that one first"
                        )
                places = ", ".join("?" * len(rows[0]))
                db.executemany(f"INSERT OR IGNORE INTO judging_queries VALUES ({places})", rows)
                db.executemany("DELETE FROM judging_log WHERE number = ?", [(n,) for n in undone])

        return back

    def valid(
        self, name: str, query_id: str | None = None, judges: Sequence[str] | None = None
    ) -> tuple[Judgment, ...]:
        """The judgments of a set that count: the newest of each query, anchor and judge, oldest first."""
        with self.database.reading(JUDGING) as db:
            found = self.valid_in(db, self.sets.number(db, name), query_id)
        return tuple(j for j in found if judges is None or j.judge in judges)

    def has_passages(self, name: str) -> bool:
        """Whether parts of documents were judged in a set, and not whole ones alone."""
        sql = f"SELECT 1 FROM judging_log l WHERE set_number = ? AND end_char > 0 AND {COUNTS} LIMIT 1"
        with self.database.reading(JUDGING) as db:
            return db.execute(sql, (self.sets.number(db, name),)).fetchone() is not None

    def valid_in(self, db: sqlite3.Connection, number: int, query_id: str | None = None) -> tuple[Judgment, ...]:
        """`valid` inside a transaction, by the set's number."""
        sql = (
            f"SELECT {_COLUMNS}, max(number) OVER (PARTITION BY query_id, tenant, root, path, start_char, end_char, judge)"
            f" AS newest FROM judging_log l WHERE set_number = ? AND {COUNTS} AND (? IS NULL OR query_id = ?)"
        )
        rows = db.execute(f"SELECT * FROM ({sql}) WHERE number = newest ORDER BY number", (number, query_id, query_id))
        return tuple(map(_judgment, rows.fetchall()))


def _take_back(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> list[int]:
    """Write that some judgments are undone; returns the numbers of these entries."""
    rows = db.execute(
        "INSERT INTO judging_log (set_number, query_id, tenant, root, path, start_char, end_char, quote, access,"
        " grade, judge, time, note, document, undoes) SELECT set_number, query_id, tenant, root, path, start_char,"
        f" end_char, '', access, grade, judge, ?, '', document, number FROM judging_log l WHERE {where} RETURNING number",
        (now(), *values),
    )
    return [int(row["number"]) for row in rows]


_COLUMNS = (  # of judging_log
    "number, query_id, tenant, root, path, start_char, end_char, quote, access, grade, judge, time, note, document"
)


def _judgment(row: sqlite3.Row) -> Judgment:
    roles, sensitivity = json.loads(row["access"])
    anchor = Anchor(
        row["path"], row["root"], json.loads(row["tenant"]), row["start_char"], row["end_char"], row["quote"], tuple(roles),
        sensitivity, row["document"],
    )  # fmt: skip
    return Judgment(
        row["number"], row["query_id"], anchor, row["grade"], row["judge"], time_of(row["time"]), row["note"]
    )


# --- rules over text and spans ---------------------------------------------------------------------------------------------


def find_again(text: str, anchor: Anchor) -> Span | None:
    """Where an anchor's text is in its document's text of today; None where it is gone."""
    if anchor.whole:
        return Span(0, len(text))
    if _same(text[anchor.start : anchor.end], anchor.quote):
        return Span(anchor.start, anchor.end)
    exact = _nearest(_occurrences(text, anchor.quote), anchor.start)
    if exact is not None:
        return Span(exact, exact + len(anchor.quote))
    words = anchor.quote.split()
    if not words:
        return None
    # The rarest way to fail first: a text without the longest word has nothing to look for.
    if max(words, key=len) not in text:
        return None
    found = {m.start(): m.end() for m in re.finditer(r"\s+".join(map(re.escape, words)), text)}
    start = _nearest(found, anchor.start)
    return None if start is None else Span(start, found[start])


def _same(text: str, quote: str) -> bool:
    """Whether two texts are one, as far as one of them is not masked: judges may see different parts of a document."""
    if text == quote or MASK not in text + quote:
        return text == quote
    return len(text) == len(quote) and all(a == b or MASK in (a, b) for a, b in zip(text, quote, strict=True))


def _occurrences(text: str, quote: str) -> Iterable[int]:
    at = text.find(quote)
    while at >= 0:
        yield at
        at = text.find(quote, at + 1)


def _nearest(starts: Iterable[int], wanted: int) -> int | None:
    return min(starts, key=lambda s: (abs(s - wanted), s), default=None)


def same_passage(one: Span, other: Span) -> bool:
    """Whether two passages are one that was judged twice: at least half of the longer of the two is common to both."""
    common = min(one.end, other.end) - max(one.start, other.start)
    return common > 0 and 2 * common >= max(one.end - one.start, other.end - other.start)
