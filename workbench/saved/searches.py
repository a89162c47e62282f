"""What a person keeps of their searching: history, saved searches, saved plans, notes on passages.

Everything belongs to one owner and is seen by nobody else. A search is kept as the address of its page (query, columns,
plan, filter), so that opening it restores exactly that page, also in a later version: what was kept under an older edition of
the presets is read as the plan that it was. A note is keyed like a judgment: by path, character span and quoted text, so that
it is found again after indexing and cutting again.

Deleting gives back what was deleted; `restore` puts it back under its old number.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import UsageError
from workbench.plan.plan import recorded_text
from workbench.plan.presets import EDITION
from workbench.saved.database import Database, Group, now

MOST_HISTORY = 1_000
LONGEST_NAME = 200
LONGEST_NOTE = 10_000

SEARCHES = Group(
    "searches",
    (
        """
        CREATE TABLE searches_kept (
            number INTEGER PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
            at REAL NOT NULL, UNIQUE (owner, kind, name)
        ) STRICT;
        CREATE INDEX searches_kept_time ON searches_kept (owner, kind, at DESC);
        CREATE TABLE searches_notes (
            number INTEGER PRIMARY KEY, owner TEXT NOT NULL, path TEXT NOT NULL, start INTEGER NOT NULL,
            "end" INTEGER NOT NULL, quote TEXT NOT NULL, text TEXT NOT NULL, at REAL NOT NULL,
            UNIQUE (owner, path, start, "end", quote)
        ) STRICT
        """,
        "ALTER TABLE searches_kept ADD COLUMN edition INTEGER NOT NULL DEFAULT 1",
        """
        ALTER TABLE searches_notes RENAME TO searches_notes_before;
        CREATE TABLE searches_notes (
            number INTEGER PRIMARY KEY, owner TEXT NOT NULL, path TEXT NOT NULL, start INTEGER NOT NULL,
            "end" INTEGER NOT NULL, quote TEXT NOT NULL, text TEXT NOT NULL, at REAL NOT NULL,
            document TEXT NOT NULL DEFAULT '', UNIQUE (owner, path, start, "end", quote, document)
        ) STRICT;
        INSERT INTO searches_notes (number, owner, path, start, "end", quote, text, at) SELECT * FROM searches_notes_before;
        DROP TABLE searches_notes_before
        """,
    ),
)

HISTORY, SEARCH, PLAN = "history", "search", "plan"
_ASKED = ("q", "keywords", "filters", "context")
"""The parameters of an address that say what was asked; the others say how it is answered."""
_KEPT_COLUMNS = "number, kind, name, value, at, edition"
_COLUMN, _DIGITS = "column", "0123456789"
"""How the parameters of an address begin that hold a column's own plan: `column1`."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Something kept under a name. `at`: Seconds since 1970, UTC, when it was kept or asked last."""

    number: int
    kind: str
    name: str
    value: str
    at: float

    @property
    def params(self) -> dict[str, str]:
        """The address parameters of a search, by name; empty for a plan."""
        if self.kind == PLAN:
            return {}
        return {str(k): str(v) for k, v in json.loads(self.value).items()}


@dataclass(frozen=True, slots=True)
class Note:
    """A note on a passage: `quote` is the text that stood at characters `start` to `end` (excluded) of `path`.

    `document` is the document's id, since several may have one path; "" for a note of before ids were kept.
    """

    number: int
    path: str
    start: int
    end: int
    quote: str
    text: str
    at: float
    document: str = ""

    def is_on(self, path: str, text: str, document: str = "") -> bool:
        """Whether a passage of that path, text and document (its id) shows what the note was written on."""
        same = path == self.path and (not self.document or document in ("", self.document))
        return same and (self.quote in text or (bool(text) and text in self.quote))


class Searches:
    """What one owner keeps of their searches of one corpus. Safe from several threads and processes.

    Every method raises CorpusError and its kinds as `Database` does.
    """

    def __init__(self, corpus: str | Path, owner: str) -> None:
        self._database = Database(corpus)
        self.owner = owner

    # --- searches and plans --------------------------------------------------------------------------------------------

    def asked(self, params: Mapping[str, str]) -> None:
        """Put a search into the history, on top, in the place of an earlier one that asked the same; only the newest
        `MOST_HISTORY` stay.
        """
        name = _json({name: params[name] for name in _ASKED if name in params})
        with self._database.writing(SEARCHES) as db:
            _put(db, self.owner, HISTORY, name, _json(params))
            db.execute(
                "DELETE FROM searches_kept WHERE owner = ?1 AND kind = ?2 AND number NOT IN (SELECT number FROM "
                "searches_kept WHERE owner = ?1 AND kind = ?2 ORDER BY at DESC, number DESC LIMIT ?3)",
                (self.owner, HISTORY, MOST_HISTORY),
            )

    def save_search(self, name: str, params: Mapping[str, str]) -> Kept | None:
        """Keep a search under a name; what had that name is replaced and given back. Raises UsageError for no name."""
        return self._save(SEARCH, name, _json(params))

    def save_plan(self, name: str, text: str) -> Kept | None:
        """Keep a plan's text form under a name; what had that name is replaced and given back. Raises UsageError."""
        return self._save(PLAN, name, text)

    def _save(self, kind: str, name: str, value: str) -> Kept | None:
        name = " ".join(name.split())
        if not name:
            raise UsageError("It needs a name to be kept under", "Type a name")
        if len(name) > LONGEST_NAME:
            raise UsageError(f"The name has {len(name)} characters", f"Use at most {LONGEST_NAME}")
        with self._database.writing(SEARCHES) as db:
            sql = f"SELECT {_KEPT_COLUMNS} FROM searches_kept WHERE owner = ? AND kind = ? AND name = ?"
            old = db.execute(sql, (self.owner, kind, name)).fetchone()
            _put(db, self.owner, kind, name, value)
        return None if old is None else _kept(old)

    def kept(self, kind: str, most: int = MOST_HISTORY) -> list[Kept]:
        """What is kept: history newest first, the rest by name."""
        order = "at DESC, number DESC" if kind == HISTORY else "name, number"
        rows = self._database.rows(
            SEARCHES,
            f"SELECT {_KEPT_COLUMNS} FROM searches_kept WHERE owner = ? AND kind = ? ORDER BY {order} LIMIT ?",
            (self.owner, kind, most),
        )
        return [_kept(row) for row in rows]

    def delete(self, number: int) -> Kept | None:
        """Delete one entry of any kind and give it back; None where it is gone already."""
        with self._database.writing(SEARCHES) as db:
            row = db.execute(
                f"DELETE FROM searches_kept WHERE owner = ? AND number = ? RETURNING {_KEPT_COLUMNS}",
                (self.owner, number),
            ).fetchone()
        return None if row is None else _kept(row)

    def clear_history(self) -> list[Kept]:
        """Delete the whole history and give it back."""
        with self._database.writing(SEARCHES) as db:
            rows = db.execute(
                f"DELETE FROM searches_kept WHERE owner = ? AND kind = ? RETURNING {_KEPT_COLUMNS}",
                (self.owner, HISTORY),
            ).fetchall()
        return [_kept(row) for row in rows]

    def restore(self, entries: Sequence[Kept]) -> None:
        """Put entries back as they were, over what has their names now."""
        with self._database.writing(SEARCHES) as db:
            for entry in entries:
                _put(db, self.owner, entry.kind, entry.name, entry.value, entry.at)

    # --- notes -----------------------------------------------------------------------------------------------------------

    def notes(self, paths: Sequence[str] | None = None) -> list[Note]:
        """Notes in order of path and span. `paths`: Only those on these documents; None: all."""
        where, values = "", [self.owner]
        if paths is not None:
            where, values = " AND path IN (SELECT value FROM json_each(?))", [self.owner, json.dumps(list(paths))]
        rows = self._database.rows(
            SEARCHES,
            'SELECT number, path, start, "end", quote, text, at, document FROM searches_notes WHERE owner = ?'
            f'{where} ORDER BY path, start, "end", number',
            values,
        )
        return [Note(*row) for row in rows]

    def write_note(self, path: str, start: int, end: int, quote: str, text: str, document: str = "") -> str:
        """Write a note on a passage of a document (its id), over the one that is there; blank text deletes it. Returns the
        note's text before, "" where there was none.
        """
        text = text.strip()
        if len(text) > LONGEST_NOTE:
            raise UsageError(f"The note has {len(text):,} characters", f"Use at most {LONGEST_NOTE:,}")
        key = (self.owner, path, start, end, quote, document)
        match = 'owner = ? AND path = ? AND start = ? AND "end" = ? AND quote = ? AND document = ?'
        with self._database.writing(SEARCHES) as db:
            old = db.execute(f"SELECT text FROM searches_notes WHERE {match}", key).fetchone()
            if old is None and document:  # one of before ids were kept is this one
                where = match.replace("document = ?", "document = ''")
                db.execute(f"UPDATE searches_notes SET document = ? WHERE {where}", (document, *key[:-1]))
                old = db.execute(f"SELECT text FROM searches_notes WHERE {match}", key).fetchone()
            if text:
                db.execute(
                    'INSERT INTO searches_notes (owner, path, start, "end", quote, document, text, at) '
                    'VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, path, start, "end", quote, document) '
                    "DO UPDATE SET text = excluded.text, at = excluded.at",
                    (*key, text, now()),
                )
            else:
                db.execute(f"DELETE FROM searches_notes WHERE {match}", key)
        return "" if old is None else str(old[0])


def owner_of(user: str, tenant: str | None) -> str:
    """The owner of what is kept: a person in a tenant (None: in none); another tenant's person of that name is another."""
    return json.dumps([user, tenant], ensure_ascii=False)


def _json(params: Mapping[str, str]) -> str:
    return json.dumps(dict(sorted(params.items())), ensure_ascii=False)


def _put(db: sqlite3.Connection, owner: str, kind: str, name: str, value: str, at: float | None = None) -> None:
    db.execute(
        "INSERT INTO searches_kept (owner, kind, name, value, at, edition) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (owner, kind, name) DO UPDATE SET value = excluded.value, at = excluded.at, edition = excluded.edition",
        (owner, kind, name, value, now() if at is None else at, EDITION),
    )


def _kept(row: Any) -> Kept:
    number, kind, name, value, at, edition = row
    return Kept(number, kind, name, value if edition == EDITION else _now(kind, value, edition), at)


def _now(kind: str, value: str, edition: int) -> str:
    """What was kept under an older edition, in the words of now; an address that names no plan had the default one."""
    if kind == PLAN:
        return recorded_text(value, edition)
    params = {"plan": "default", **json.loads(value)}
    named = {
        n: recorded_text(str(v), edition) for n, v in params.items() if n == "plan" or n.rstrip(_DIGITS) == _COLUMN
    }
    return _json({**params, **named})
