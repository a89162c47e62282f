"""Query sets: what people want to find, named and kept, so that it can be judged and measured.

A set belongs to a tenant, because what people ask may be as private as what they have written: a principal sees the sets
of the own tenant, the local owner those of a corpus without tenants. A query that was made from a document (`Source`) shows
words of it, so whoever lists the set says which documents are visible, and the others' queries are left out.

Query ids are texts, unique in their set, and keep their order. A query that somebody typed gets its id from its text, so
that typing it again means the same query.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from workbench.errors import JudgmentError
from workbench.judgments.qrels import Topic
from workbench.saved.database import Database, Group, now, time_of

SEARCH = "search"
"""The set that grades given on the Search page go to."""

LONGEST_NAME = 100
LONGEST_QUERY = 10_000
LONGEST_NEED = 4_000
GRADE_TEXTS = ("not relevant", "related", "relevant", "answers it")
"""What the grades 0 to 3 mean, where a set does not say it in its own words."""
LONGEST_GRADE_TEXT = 300

COUNTS = "l.undoes IS NULL AND NOT EXISTS (SELECT 1 FROM judging_log u WHERE u.undoes = l.number)"
"""Which rows of the log, as `l`, are judgments that nobody has taken back."""
JUDGING = Group(
    "judging",
    (
        """
        CREATE TABLE judging_sets (
            number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, note TEXT NOT NULL, made REAL NOT NULL,
            made_by TEXT NOT NULL, removed REAL) STRICT;
        CREATE UNIQUE INDEX judging_sets_name ON judging_sets (tenant, name) WHERE removed IS NULL;
        CREATE TABLE judging_queries (
            set_number INTEGER NOT NULL REFERENCES judging_sets, query_id TEXT NOT NULL, position INTEGER NOT NULL,
            text TEXT NOT NULL, keywords TEXT, source TEXT NOT NULL, PRIMARY KEY (set_number, query_id)) STRICT;
        CREATE TABLE judging_log (
            number INTEGER PRIMARY KEY AUTOINCREMENT, set_number INTEGER NOT NULL REFERENCES judging_sets,
            query_id TEXT NOT NULL, tenant TEXT NOT NULL, root TEXT NOT NULL, path TEXT NOT NULL,
            start_char INTEGER NOT NULL, end_char INTEGER NOT NULL, quote TEXT NOT NULL, access TEXT NOT NULL,
            grade INTEGER NOT NULL, judge TEXT NOT NULL, time REAL NOT NULL, note TEXT NOT NULL, undoes INTEGER) STRICT;
        CREATE INDEX judging_log_query ON judging_log (set_number, query_id);
        CREATE UNIQUE INDEX judging_log_undoes ON judging_log (undoes) WHERE undoes IS NOT NULL
        """,
        "ALTER TABLE judging_log ADD COLUMN document TEXT NOT NULL DEFAULT ''",
        """
        ALTER TABLE judging_queries ADD COLUMN need TEXT NOT NULL DEFAULT '';
        ALTER TABLE judging_sets ADD COLUMN grades TEXT NOT NULL DEFAULT ''
        """,
    ),
)


@dataclass(frozen=True, slots=True)
class Source:
    """The document that a query was made from. `root`, `tenant`, `roles`, `sensitivity`, `document_id`: Which document it
    was, and who might see it then, as an `Anchor` has them; "" for the root where it was made before these were kept.
    """

    path: str
    kind: str
    start: int = 0
    end: int = 0
    hidden: bool = False
    root: str = ""
    tenant: str | None = None
    roles: tuple[str, ...] = ()
    sensitivity: str = "normal"
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a set, with where it came from, if from a document. `need`: What counts as an answer, for who judges it."""

    query_id: str
    text: str
    keywords: str | None = None
    source: Source | None = None
    need: str = ""

    @property
    def topic(self) -> Topic:
        """As measures take it."""
        return Topic(self.query_id, self.text, self.keywords)


@dataclass(frozen=True, slots=True)
class QuerySet:
    """A set, without its queries: `queries` and `judgments` are how many it has of them (undone ones not counted)."""

    name: str
    note: str
    made: datetime
    made_by: str
    queries: int
    judgments: int


def query_id_of(text: str) -> str:
    """The id of a query that came without one, from its text: `q` and 10 hex digits."""
    return "q" + hashlib.blake2b(_clean(text).encode("utf-8", "replace"), digest_size=5).hexdigest()


class QuerySets:
    """The query sets of one tenant. `tenant`: Whose they are; None is the tenant of documents that have none."""

    def __init__(self, database: Database, tenant: str | None = None) -> None:
        self.database = database
        self.tenant = tenant_key(tenant)

    def overview(self) -> tuple[QuerySet, ...]:
        """All sets, the newest first."""
        sql = (
            "SELECT name, note, made, made_by,"
            " (SELECT count(*) FROM judging_queries q WHERE q.set_number = s.number) AS queries,"
            f" (SELECT count(*) FROM judging_log l WHERE l.set_number = s.number AND {COUNTS}) AS judgments"
            " FROM judging_sets s WHERE tenant = ? AND removed IS NULL ORDER BY number DESC"
        )
        return tuple(
            QuerySet(r["name"], r["note"], time_of(r["made"]), r["made_by"], r["queries"], r["judgments"])
            for r in self.database.rows(JUDGING, sql, (self.tenant,))
        )

    def stamp(self) -> tuple[object, ...]:
        """Something else after every change of any set, query or judgment."""
        sql = (
            "SELECT (SELECT max(number) FROM judging_log), (SELECT count(*) FROM judging_log),"
            " (SELECT group_concat(set_number || '/' || queries || '/' || letters, '|') FROM"
            "  (SELECT set_number, count(*) AS queries, sum(length(text) + length(need)) AS letters"
            "   FROM judging_queries GROUP BY set_number)),"
            " (SELECT group_concat(name || '/' || ifnull(removed, '') || grades, '|') FROM judging_sets)"
        )
        return tuple(self.database.rows(JUDGING, sql)[0])

    def names(self) -> tuple[str, ...]:
        """Names of the sets, the newest first."""
        sql = "SELECT name FROM judging_sets WHERE tenant = ? AND removed IS NULL ORDER BY number DESC"
        return tuple(str(r["name"]) for r in self.database.rows(JUDGING, sql, (self.tenant,)))

    def queries(self, name: str) -> tuple[Query, ...]:
        """The queries of a set, in their order. Raises JudgmentError: there is no such set."""
        sql = (
            "SELECT query_id, text, keywords, source, need FROM judging_queries WHERE set_number = ? ORDER BY position"
        )
        with self.database.reading(JUDGING) as db:
            return tuple(_query(r) for r in db.execute(sql, (self.number(db, name),)))

    def create(self, name: str, queries: Iterable[Query | str], note: str = "", by: str = "") -> str:
        """Make a set of one query at least; `add` puts more into it. Returns its name as kept."""
        with self.database.writing(JUDGING) as db:
            number = self.make(db, name, note, by)
            if not add_queries(db, number, name, queries):
                raise _empty(name)
        return _clean(name)

    def make(self, db: sqlite3.Connection, name: str, note: str = "", by: str = "") -> int:
        """Insert a set inside a transaction, whose other statements give it queries; its number. Raises as `create` does."""
        name = _named(name)
        with _unique(name):
            made = db.execute(
                "INSERT INTO judging_sets (tenant, name, note, made, made_by) VALUES (?, ?, ?, ?, ?)",
                (self.tenant, name, note, now(), by),
            )
        return int(made.lastrowid or 0)

    def found_or_made(self, db: sqlite3.Connection, name: str, note: str = "", by: str = "") -> int:
        """The number of the set of that name inside a transaction, which is made where it is not there."""
        try:
            return self.number(db, name)
        except JudgmentError:
            return self.make(db, name, note, by)

    def add(
        self, name: str, queries: Iterable[Query | str], *, make: bool = False, note: str = "", by: str = ""
    ) -> int:
        """Add queries to a set; the same query again changes nothing. Returns how many were new."""
        with self.database.writing(JUDGING) as db:
            number = self.found_or_made(db, name, note, by) if make else self.number(db, name)
            new = add_queries(db, number, name, queries)
            if make and not db.execute("SELECT 1 FROM judging_queries WHERE set_number = ?", (number,)).fetchone():
                raise _empty(name)
        return new

    def rename(self, name: str, new: str) -> str:
        """Give a set another name. Returns the name as kept."""
        new = _named(new)
        with self.database.writing(JUDGING) as db, _unique(new):
            db.execute("UPDATE judging_sets SET name = ? WHERE number = ?", (new, self.number(db, name)))
        return new

    def remove(self, name: str) -> int:
        """Take a set out of the lists, with its judgments; they stay in the file. Returns what `restore` brings it back by.
        Raises JudgmentError: there is none.
        """
        with self.database.writing(JUDGING) as db:
            number = self.number(db, name)
            db.execute("UPDATE judging_sets SET removed = ? WHERE number = ?", (now(), number))
        return number

    def restore(self, number: int) -> None:
        """Bring back a set that was removed. Raises JudgmentError where another one has its name now."""
        with self.database.writing(JUDGING) as db, _unique("of that name"):
            sql = "UPDATE judging_sets SET removed = NULL WHERE number = ? AND tenant = ?"
            db.execute(sql, (number, self.tenant))

    def describe(self, name: str, query_id: str, need: str) -> None:
        """Say what counts as an answer to a query; "" takes it away. Raises JudgmentError: there is no such set or query."""
        need = need.strip()
        if len(need) > LONGEST_NEED:
            raise JudgmentError(f"The text has {len(need):,} characters", f"Use at most {LONGEST_NEED:,}")
        sql = "UPDATE judging_queries SET need = ? WHERE set_number = ? AND query_id = ?"
        with self.database.writing(JUDGING) as db:
            if not db.execute(sql, (need, self.number(db, name), _spaced(query_id))).rowcount:
                raise JudgmentError(
                    f"The set {name!r} has no query {query_id!r}", "Its queries are on the Query sets page"
                )

    def grade_texts(self, name: str) -> tuple[str, ...]:
        """What each grade from 0 on means in a set: a few words, and if wanted a colon and more."""
        with self.database.reading(JUDGING) as db:
            row = db.execute("SELECT grades FROM judging_sets WHERE number = ?", (self.number(db, name),)).fetchone()
        own = json.loads(row["grades"]) if row["grades"] else []
        return tuple(given or plain for given, plain in zip([*own, "", "", "", ""], GRADE_TEXTS, strict=False))

    def set_grade_texts(self, name: str, texts: Sequence[str]) -> None:
        """Say what the grades mean in a set, from 0 on; "" is the usual text. Raises JudgmentError."""
        kept = [_clean(text) for text in texts]
        if len(kept) > len(GRADE_TEXTS) or any(len(text) > LONGEST_GRADE_TEXT for text in kept):
            raise JudgmentError(
                f"These are {len(kept)} texts of up to {max(map(len, kept))} characters",
                f"Give one for each grade from 0 to {len(GRADE_TEXTS) - 1}, of at most {LONGEST_GRADE_TEXT} characters",
            )
        with self.database.writing(JUDGING) as db:
            sql = "UPDATE judging_sets SET grades = ? WHERE number = ?"
            db.execute(sql, (json.dumps(kept, ensure_ascii=False) if any(kept) else "", self.number(db, name)))

    def number(self, db: sqlite3.Connection, name: str) -> int:
        """A set's number. Raises JudgmentError: there is no such set; the remedy names those that are there."""
        sql = "SELECT number FROM judging_sets WHERE tenant = ? AND name = ? AND removed IS NULL"
        row = db.execute(sql, (self.tenant, _clean(name))).fetchone()
        if row is None:
            sql = "SELECT name FROM judging_sets WHERE tenant = ? AND removed IS NULL ORDER BY number DESC LIMIT 10"
            known = ", ".join(r["name"] for r in db.execute(sql, (self.tenant,)))
            raise JudgmentError(
                f"There is no query set {name!r}",
                f"The sets are: {known}" if known else "Make one on the Query sets page, or with workbench judge make",
            )
        return int(row["number"])


def tenant_key(tenant: str | None) -> str:
    """A tenant as a key that tells "none" from every name: JSON."""
    return json.dumps(tenant, ensure_ascii=False)


def _empty(name: str) -> JudgmentError:
    return JudgmentError(f"The query set {_clean(name)!r} would have no queries", "Give it at least one query")


def _named(name: str) -> str:
    """A name as it is kept. Raises JudgmentError where it is blank or too long."""
    name = _clean(name)
    if not name or len(name) > LONGEST_NAME:
        raise JudgmentError(
            "A query set needs a name" if not name else f"The name has {len(name)} characters",
            f"Give it one of 1 to {LONGEST_NAME} characters",
        )
    return name


@contextmanager
def _unique(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as exc:
        raise JudgmentError(f"There is a query set {name!r} already", "Choose another name, or add to it") from exc


def _query(row: sqlite3.Row) -> Query:
    source = json.loads(row["source"]) if row["source"] else None
    made_from = None if source is None else Source(**{**source, "roles": tuple(source.get("roles", ()))})
    return Query(row["query_id"], row["text"], row["keywords"], made_from, row["need"])


def add_queries(db: sqlite3.Connection, number: int, name: str, queries: Iterable[Query | str]) -> int:
    """`QuerySets.add` inside a transaction of the caller's."""
    sql = "SELECT query_id, text, keywords, source, need FROM judging_queries WHERE set_number = ?"
    known = {r["query_id"]: _query(r) for r in db.execute(sql, (number,))}
    last = db.execute("SELECT max(position) FROM judging_queries WHERE set_number = ?", (number,)).fetchone()[0]
    position, new = (-1 if last is None else last) + 1, 0
    for given in queries:
        query = checked(given)
        before = known.get(query.query_id)
        if before is None:
            source = "" if query.source is None else json.dumps(asdict(query.source), ensure_ascii=False)
            db.execute(
                "INSERT INTO judging_queries (set_number, query_id, position, text, keywords, source, need)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, query.query_id, position, query.text, query.keywords, source, query.need),
            )
            known[query.query_id] = query
            position, new = position + 1, new + 1
        elif (before.text, before.keywords) != (query.text, query.keywords):
            raise JudgmentError(
                f"Query {query.query_id!r} of the set {name!r} has another text or other keywords",
                "Give the query another id, or import into a new set",
            )
        elif query.need and not before.need:
            sql = "UPDATE judging_queries SET need = ? WHERE set_number = ? AND query_id = ?"
            db.execute(sql, (query.need, number, query.query_id))
    return new


def checked(given: Query | str) -> Query:
    """A query with one space where it has several, its text in NFC, with an id. Raises JudgmentError where it is blank."""
    query = Query("", given) if isinstance(given, str) else given
    text = _clean(query.text)
    if not text or len(text) > LONGEST_QUERY:
        what = "has no text" if not text else f"has {len(text):,} characters"
        raise JudgmentError(f"The query {query.query_id or text[:40]!r} {what}", f"Give it 1 to {LONGEST_QUERY:,}")
    keywords = _clean(query.keywords or "") or None
    if len(query.need) > LONGEST_NEED:
        raise JudgmentError(
            f"What answers {text[:40]!r} has {len(query.need):,} characters", f"Use {LONGEST_NEED:,} at most"
        )
    query_id = _spaced(query.query_id) or query_id_of(text)
    return replace(query, query_id=query_id, text=text, keywords=keywords, need=query.need.strip())


def _clean(text: str) -> str:
    """In NFC, and as `_spaced` makes it."""
    return _spaced(unicodedata.normalize("NFC", text))


def _spaced(text: str) -> str:
    """With one space where there are several, and without control characters and halves of characters."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(c for c in whole if c.isspace() or unicodedata.category(c) != "Cc").split())
