"""A generation's collections on a Milvus server, or in a file of milvus-lite, and how to ask them.

A generation NAME has two collections. `NAME` holds a row a record: its number (the key), access code, collection code, text, the
words as a sparse vector, and a dense vector of each encoder. `NAME_lines` holds the documents' texts in pieces that end with a
line, and the catalogue's files. The alias, the setting `store_name`, points to the generation that answers; it is
switched when everything is there, so a reader never sees half a run.

Failures of the server are `SourceUnavailable`: a search says which source could not run, and the next one asks again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import settings
from workbench.errors import SettingError, SourceUnavailable, UsageError

MOST = 16_384
"""Most rows that Milvus gives at once."""

NO_WORDS = 2**32 - 2
"""Dimension of a record without words: Milvus takes no empty sparse vector."""

_PIECES = 256


def piece_id(document: int, piece: int) -> int:
    """Key of a piece of a document in `NAME_lines`."""
    return (document << 24) + piece


_WRITING = ("create_collection", "upsert", "flush", "load_collection")
_WRITING_SECONDS = 600.0
_REST_SECONDS = 3.0
_gone: dict[str, tuple[float, str]] = {}
"""Until when a store that gave no answer is not asked, and why."""

_clients: dict[tuple[str, ...], Any] = {}
_lock = threading.Lock()


def store_uri(given: str | None = None) -> str:
    """The store that is asked for (None: the setting), a file as its absolute path; "" for none. Raises SettingError."""
    uri = str(settings.get("store")) if given is None else given
    if uri and "://" not in uri:
        if not uri.endswith(".db"):
            raise SettingError(
                f"The store {uri!r} is neither an address nor a file of milvus-lite",
                "Write for example http://host:19530, or a file name that ends in .db",
            )
        uri = str(Path(uri).expanduser().absolute())
    if "@" in uri.partition("://")[2]:
        raise SettingError("The store's address has a password in it", "Put user:password into the setting store_token")
    return uri


def _client(uri: str) -> Any:
    """The client of an address, one a process. Raises SourceUnavailable, UsageError."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else it writes of its pings to stderr
    try:
        from pymilvus import MilvusClient
    except ImportError as exc:
        raise UsageError(
            "The corpus is on Milvus, and pymilvus is not installed",
            "Run: pip install 'hybrid-retrieval-workbench[milvus]'",
        ) from exc
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # what fails is raised, and told once
    more: dict[str, Any] = {"db_name": str(settings.get("store_database")), "token": str(settings.get("store_token"))}
    if certificate := str(settings.get("store_certificate")):
        more |= {"secure": True, "server_pem_path": certificate}
    key = (uri, *map(str, more.values()))
    with _lock:
        if key not in _clients:
            _clients[key] = MilvusClient(uri, timeout=_timeout(), **more)
        return _clients[key]


def _timeout() -> float:
    return float(settings.get("store_timeout_seconds"))


def _reason(exc: Exception, seconds: float) -> str:
    """Why a call failed, for people."""
    code = getattr(exc, "code", None)
    if callable(code) and code().name == "DEADLINE_EXCEEDED":  # of gRPC, whose text is a dump of several lines
        return f"nothing came within {seconds:g} s, the setting store_timeout_seconds"
    return str(getattr(exc, "message", "") or exc).partition("\n")[0][:200] or type(exc).__name__


class Remote:
    """The collections of one generation, by the store's address and the generation's name there. Safe from several threads."""

    def __init__(self, uri: str, name: str = "") -> None:
        self.uri, self.name, self.lines = uri, name, f"{name}_lines"

    def call(self, method: str, *given: Any, **more: Any) -> Any:
        """Call a method of pymilvus's client. Raises SourceUnavailable where it fails, or gives no answer in time: then all
        calls do, for some seconds, and nobody waits for each of them.
        """
        started, seconds = time.monotonic(), _timeout()
        if started < _gone.get(self.uri, (0.0, ""))[0]:
            raise self._unavailable(_gone[self.uri][1])
        try:
            here = "://" not in self.uri  # milvus-lite makes its index when it is first asked
            patience = max(seconds, _WRITING_SECONDS) if here or method in _WRITING else seconds
            return self._asked(getattr(_client(self.uri), method), given, timeout=patience, **more)
        except (SourceUnavailable, UsageError):
            raise
        except Exception as exc:
            reason = _reason(exc, seconds)
            if time.monotonic() - started >= 0.9 * seconds:
                _gone[self.uri] = time.monotonic() + _REST_SECONDS, reason
            raise self._unavailable(reason) from exc

    def _asked(self, method: Callable[..., Any], given: Sequence[Any], **more: Any) -> Any:
        try:
            return method(*given, **more)
        except Exception as exc:
            # What a file of milvus-lite, or a server that was started again, holds has to be loaded before it is asked.
            if method.__name__ not in ("query", "search") or "load" not in str(exc):
                raise
            _client(self.uri).load_collection(given[0], timeout=more["timeout"])
            return method(*given, **more)

    def _unavailable(self, reason: str) -> SourceUnavailable:
        remedy = "Start it, or correct the setting store; a search in a few seconds asks it again"
        if "://" not in self.uri:
            remedy = "Close the other process that has the file open, or correct the setting store"
        return SourceUnavailable(f"Milvus at {self.uri} does not answer: {reason}", remedy)

    def records(self, numbers: Sequence[int], *fields: str) -> dict[int, Mapping[str, Any]]:
        """Fields of records by number."""
        found: dict[int, Mapping[str, Any]] = {}
        for start in range(0, len(numbers), 4096):
            some = list(map(int, numbers[start : start + 4096]))
            for row in self.call("query", self.name, ids=some, output_fields=["number", *fields]) if some else ():
                found[int(row["number"])] = row
        return found

    def count(self) -> int:
        """Number of records, all that were written included."""
        (row,) = self.call("query", self.name, output_fields=["count(*)"], consistency_level="Strong")
        return int(row["count(*)"])

    def holding(self, expression: str) -> tuple[list[int], bool]:
        """Documents of which a piece is taken by an expression over `NAME_lines`, up; and whether these are all."""
        rows = self.call("query", self.lines, filter=expression, output_fields=["document"], limit=MOST)
        return sorted({int(row["document"]) for row in rows}), len(rows) < MOST

    def texts(self, documents: Sequence[int]) -> dict[int, str]:
        """Texts of documents; of files of the catalogue by their (negative) numbers."""
        if not documents:
            return {}
        found: dict[int, list[tuple[int, str]]] = {}
        first = 0
        while True:
            # Windows of pieces: of most documents the first one holds all.
            windows = [f"(id >= {piece_id(d, first)} and id < {piece_id(d, first + _PIECES)})" for d in documents]
            at_once = max(1, MOST // _PIECES)
            full: list[int] = []
            for start in range(0, len(windows), at_once):
                where = " or ".join(windows[start : start + at_once])
                rows = self.call(
                    "query", self.lines, filter=where, output_fields=["id", "document", "text"], limit=MOST
                )
                counts: Counter[int] = Counter()
                for row in rows:
                    counts[int(row["document"])] += 1
                    found.setdefault(int(row["document"]), []).append((int(row["id"]), str(row["text"])))
                full += [document for document, count in counts.items() if count == _PIECES]
            if not full:
                return {d: "".join(text for _, text in sorted(parts)) for d, parts in found.items()}
            documents, first = full, first + _PIECES

    def generation(self) -> str:
        """Name of the generation that the alias points to; "" where there is none."""
        alias = str(settings.get("store_name"))
        if alias not in self.call("list_aliases").get("aliases", []):
            return ""
        return str(self.call("describe_alias", alias)["collection_name"])
