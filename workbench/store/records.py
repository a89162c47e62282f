"""Documents and records of one generation: masks for a principal and filter, rows by number, counts of what is visible.

Masks come from mapped arrays: the few distinct kinds of access are judged once and spread over documents and records; only a
filter asks DuckDB. They are kept by key, because every source of a search and every step of a slider asks for the same ones.

Of a row, what is short comes from the mapped arrays and what is long from DuckDB, which takes about 50 microseconds for each
column of a look-up: 1.1 ms instead of 1.7 for a page of results. Rows are fetched by `IN (SELECT unnest(?))`, 1.2 ms for a page
of results against 23 for a literal list.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.errors import FilterError
from workbench.ingest.encoding import clean
from workbench.ingest.errors import ReadError
from workbench.ingest.rules import CorpusRules, FileRules, access_changes, narrow
from workbench.ingest.walk import ignores, relative_path
from workbench.locators import Place
from workbench.records import Chunk, ChunkKind, Document, EncoderIdentity, Granularity, Principal, principal_key
from workbench.store.access import filters
from workbench.store.access.visibility import Access, Policy, SeeAll, may_know, visible_documents
from workbench.store.arrays import KINDS, Columns
from workbench.store.database import Database, fetch, fetch_columns
from workbench.store.generations import Manifest
from workbench.store.schema import CUT_RECORDS
from workbench.store.types import ChunkRow, RecordColumns, RecordTexts, Scope, Source

_KEPT_SCOPES = 64
_RECORD = "number, section, context, text, tokens"
_DOCUMENT = "number, title, url, modified, sha256, metadata, page_starts"
_KINDS = tuple(map(ChunkKind, KINDS))
_GRANULARITIES = (Granularity.CHUNK, Granularity.DOCUMENT)

_NAMED = """
WITH asked AS (SELECT unnest(?) AS name), named AS (
    SELECT path AS name, number, 0 AS place FROM documents
    UNION ALL SELECT document_id, number, 1 FROM documents
    UNION ALL SELECT text, document_number, 2 FROM fields WHERE key = 'record_id'
    UNION ALL SELECT regexp_extract(path, '#([^#]+)$', 1), number, 3 FROM documents WHERE contains(path, '#')
    UNION ALL SELECT url, number, 4 FROM documents WHERE url <> ''
    UNION ALL SELECT path, document_number, 5 FROM former
    UNION ALL SELECT former_id, document_number, 6 FROM former)
SELECT DISTINCT name, number, place FROM asked JOIN named USING (name) ORDER BY name, number, place
"""


class StoredRecords:
    """The record store of one generation: its database, mapped columns and manifest. Safe from several threads.

    `policy` decides what a sensitivity means for who asks. `access` is who sees documents under the corpus's `rules` of
    today: kinds of access, and each document's code among them, int32 (d,); None: as they were indexed. `texts` has the texts
    where the database has none.
    """

    def __init__(
        self,
        connection: Database,
        columns: Columns,
        manifest: Manifest,
        policy: Policy | None = None,
        access: tuple[tuple[Access, ...], NDArray[np.int32]] | None = None,
        rules: CorpusRules | None = None,
        texts: RecordTexts | None = None,
    ) -> None:
        self.connection, self.texts = connection, texts
        self.arrays = columns
        self._manifest = manifest
        self.policy: Policy = policy or SeeAll()
        self.generation = manifest.generation
        self.documents_total = columns.documents_total
        self.records_total = columns.records_total
        self.access, self.access_codes = access or stored_access(columns)
        self._all_rules = rules or CorpusRules()
        self._rules = self._all_rules.access()
        self.access_name = json.dumps([self.policy.name, "" if rules is None else rules.access_digest()])
        """Names what decides, beside the principal, who sees what: equal names give equal masks within a generation."""
        self._scopes: LRUCache[str, Scope] = LRUCache(_KEPT_SCOPES)
        self._keys: LRUCache[str, tuple[str, ...]] = LRUCache(_KEPT_SCOPES)
        self._lock = threading.Lock()

    masks = ""
    """Name of the policy that masks parts of the texts that leave here (`access.redaction`); "" where none does."""

    def masked(self, document_numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which documents are shown with something masked: none, texts leave here as they are stored."""
        return np.zeros(len(document_numbers), bool)

    # --- masks -------------------------------------------------------------------------------------------------------

    def scope(self, principal: Principal | None, where: str | None, collections: Sequence[str]) -> Scope:
        """Masks for a principal (None: the local owner), a filter (None or blank lets everything pass) and collections by
        name (none: all; one that the corpus lacks has no records); kept by key. Raises PrincipalRequired where nobody is
        named and some document has a tenant or roles, FilterError where the filter cannot be read or names a field that no
        visible document has.
        """
        node = filters.parse(where) if where is not None and where.strip() else None
        wanted = sorted(set(collections))
        key = json.dumps([principal_key(principal), self.access_name, "" if node is None else str(node), wanted])
        with self._lock:
            made = self._scopes.get(key)
        if made is None:
            made = self._make_scope(principal, node, wanted, key)
            with self._lock:
                self._scopes[key] = made
        return made

    def _make_scope(
        self, principal: Principal | None, node: filters.Node | None, collections: Sequence[str], key: str
    ) -> Scope:
        seen_documents = visible_documents(self.access, self.access_codes, principal, self.policy)
        owner, code = self.arrays.records["document_number"], self.arrays.records["collection"]
        seen = None if seen_documents is None else frozen(seen_documents[owner])
        if node is None and not collections:
            return Scope(seen, seen, seen_documents, seen_documents, key)
        allowed = np.ones(self.records_total, bool) if seen is None else seen.copy()
        if collections:
            names = self.arrays.names["collections"]
            allowed &= np.fromiter((n in collections for n in names), bool, len(names))[code]
        passed = None
        if node is not None:
            who = json.dumps([principal_key(principal), self.access_name])
            passed = self._evaluate(node, self._known_keys(who, seen_documents))
            allowed &= passed[code if len(passed) > 1 else 0, owner]
        if passed is None or collections or (node is not None and filters.uses_collection(node)):
            allowed_documents = np.zeros(self.documents_total, bool)
            allowed_documents[owner[allowed]] = True
        else:
            allowed_documents = passed[0] if seen_documents is None else passed[0] & seen_documents
        return Scope(seen, frozen(allowed), seen_documents, frozen(allowed_documents), key)

    def _evaluate(self, node: filters.Node, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Whether documents pass a filter: bool (c, d), c the collections, or 1 where the filter does not name them."""
        import duckdb

        names = self.arrays.names["collections"] if filters.uses_collection(node) else []
        sql, values = filters.select(node, names, keys)
        try:
            columns = fetch_columns(self.connection, sql, values)
        except duckdb.Error as exc:
            raise FilterError(f"The filter {node} cannot be run: {exc}", "Look at its patterns and values") from exc
        return np.stack([np.asarray(column, bool) for column in columns.values()])

    def _known_keys(self, who: str, seen: NDArray[np.bool_] | None) -> tuple[str, ...]:
        with self._lock:
            if who in self._keys:
                return self._keys[who]
        rows = fetch_columns(self.connection, "SELECT DISTINCT key, document_number FROM fields ORDER BY key")
        keys, numbers = rows["key"], rows["document_number"]
        if seen is not None:
            keys = keys[seen[np.asarray(numbers, np.int64)]]
        known = tuple(dict.fromkeys(str(k) for k in keys))
        with self._lock:
            self._keys[who] = known
        return known

    def fields(self, scope: Scope) -> tuple[str, ...]:
        """Every field that a filter may name: columns and the front-matter keys of visible documents, sorted."""
        who = json.dumps(json.loads(scope.key)[:2])
        return tuple(sorted({*filters.COLUMNS, *self._known_keys(who, scope.visible_documents)}))

    def may_know(self, access: str, path: str, principal: Principal | None) -> bool:
        """Whether a principal may know of a file without a document, by its path in its root and the access that rules and
        flags gave to it, as the table `files` has it ("" where it is not known).
        """
        if not access:
            return self.scope(principal, None, ()).visible_documents is None
        return may_know(access, principal, self.policy, access_changes(self._rules, path))

    def may_read(self, root: str, path: str, claims: Mapping[str, Any], principal: Principal | None) -> bool:
        """Whether a principal may read a file below an indexed folder that was not indexed: what an indexing run would leave out
        nobody reads, and what it would take, those whom the rules of `corpus.yaml` and the file's own claims (its front matter)
        let see it. Where a run's flags gave access to other files of the folder, nobody can say what they would give to this one.
        """
        rules = self._all_rules
        options = fetch(self.connection, "SELECT options FROM roots WHERE root = ? AND whole", [root])
        if not options or rules.left_out(path):
            return False
        walked = json.loads(options[0][0])
        hidden = not walked.get("hidden", False) and any(part.startswith(".") for part in path.split("/"))
        if hidden or (walked.get("gitignore", True) and ignores(root, path)):
            return False
        known = dict(fetch(self.connection, "SELECT path, access FROM files WHERE root = ? AND access <> ''", [root]))
        if self.scope(principal, None, ()).visible_documents is not None and path in known:
            return False  # it was indexed, and it, or some record of it, is hidden
        flagged = self._rules or any(access != FileRules().access for access in known.values())
        if flagged and any(access != rules.for_file(name, FileRules()).access for name, access in known.items()):
            return False
        given = rules.for_file(path, FileRules())
        try:
            seen, _ = narrow(given, claims)
        except ReadError:
            return False
        return may_know(seen.access, principal, self.policy)

    def of_kind(self, kind: ChunkKind) -> NDArray[np.bool_]:
        """Which records are of this kind, bool (n,); whoever asks sees no more of them than a scope lets through."""
        return np.asarray(self.arrays.records["kind"] == KINDS.index(kind))

    def count(self, scope: Scope) -> tuple[int, int]:
        total = self.records_total
        seen = total if scope.visible is None else int(np.count_nonzero(scope.visible))
        return seen, total if scope.allowed is None else int(np.count_nonzero(scope.allowed))

    # --- rows --------------------------------------------------------------------------------------------------------

    def rows(self, numbers: Sequence[int]) -> list[ChunkRow]:
        """Records by number, in the order asked; a number may come twice."""
        if not len(numbers):
            return []
        wanted = np.asarray(numbers, np.int64)
        sql = f"SELECT {_RECORD} FROM records WHERE number IN (SELECT unnest(?))"
        stored = {row[0]: row[1:] for row in fetch(self.connection, sql, [wanted.tolist()])}
        texts = None if self.texts is None else self.texts.records(sorted(stored))
        held = {name: column[wanted].tolist() for name, column in self.arrays.records.items()}
        owners = held["document_number"]
        chunk_ids = self.arrays.chunk_ids.take(wanted)
        document_ids = self.arrays.document_ids.take(np.asarray(owners, np.int64))
        made = []
        for at, number in enumerate(wanted.tolist()):
            section, context, text, tokens = stored[number]
            text = text if texts is None else texts[number]
            start, end = held["start_char"][at], held["end_char"][at]
            chunk = Chunk(
                chunk_id=chunk_ids[at], document_id=document_ids[at], chunk_index=held["chunk_index"][at],
                collection=self.arrays.names["collections"][held["collection"][at]], start=start, end=end,
                start_line=held["start_line"][at], end_line=held["end_line"][at], page=held["page"][at] or None,
                kind=_KINDS[held["kind"][at]], granularity=_GRANULARITIES[held["whole"][at]],
                section=section, context=context, text=text, tokens=tokens,
                locator=self.arrays.locator(owners[at], start, end),
            )  # fmt: skip
            made.append(ChunkRow(number, owners[at], chunk))
        return made

    def columns(self, numbers: NDArray[np.int64]) -> RecordColumns:
        arrays = self.arrays
        numbers = np.asarray(numbers, np.int64)
        owners = arrays.records["document_number"][numbers].astype(np.int64)
        return RecordColumns(
            numbers=numbers,
            document_numbers=owners,
            chunk_ids=arrays.chunk_ids.take(numbers),
            document_ids=arrays.document_ids.take(owners),
            paths=arrays.paths.take(owners),
            start_lines=arrays.records["start_line"][numbers].astype(np.int64),
            end_lines=arrays.records["end_line"][numbers].astype(np.int64),
            start_chars=arrays.records["start_char"][numbers].astype(np.int64),
            end_chars=arrays.records["end_char"][numbers].astype(np.int64),
            whole=arrays.records["whole"][numbers].astype(bool),
            text_keys=arrays.text_keys[numbers],
        )

    def records_of(self, document_number: int) -> NDArray[np.int64]:
        return self.arrays.records_of(document_number)

    def places(self, document_number: int) -> tuple[Place, ...]:
        """Where a document's text is in its original, in order; empty for a file that is cited by its lines."""
        return self.arrays.places(document_number)

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        return self._documents(numbers, "text")

    def headers(self, numbers: Sequence[int]) -> list[Document]:
        """Documents by number, in the order asked, with "" for the text.

        DuckDB unpacks the texts of two thousand documents to give one of them: for the ten documents of a result 120 ms of a
        large corpus, against 1 ms without.
        """
        return self._documents(numbers, "'' AS text")

    def _documents(self, numbers: Sequence[int], text: str) -> list[Document]:
        if not len(numbers):
            return []
        wanted = np.asarray(numbers, np.int64)
        sql = f"SELECT {_DOCUMENT}, {text} FROM documents WHERE number IN (SELECT unnest(?))"
        stored = {row[0]: row[1:] for row in fetch(self.connection, sql, [wanted.tolist()])}
        held = {name: column[wanted].tolist() for name, column in self.arrays.documents.items()}
        ids, paths, names = self.arrays.document_ids.take(wanted), self.arrays.paths.take(wanted), self.arrays.names
        made = []
        for at, number in enumerate(wanted.tolist()):
            title, url, modified, sha256, metadata, page_starts, body = stored[number]
            body = body if self.texts is None or text != "text" else self.texts.text(number)
            seen = self.access[self.access_codes[number]]
            made.append(
                Document(
                    document_id=ids[at], path=paths[at], root=names["roots"][held["root"][at]], text=body, title=title,
                    type=names["types"][held["type"][at]], url=url, language=names["languages"][held["language"][at]],
                    tenant=seen.tenant, roles=seen.roles, sensitivity=seen.sensitivity,
                    modified=None if modified is None else modified.replace(tzinfo=UTC), size=held["size"][at], sha256=sha256,
                    metadata=json.loads(metadata), page_starts=tuple(page_starts),
                )
            )  # fmt: skip
        return made

    def find_record(self, chunk_id: str, scope: Scope) -> int | None:
        sql = "SELECT number FROM records WHERE chunk_id = ?"
        numbers = [row[0] for row in fetch(self.connection, sql, [relative_path(chunk_id)])]
        return next((int(n) for n in numbers if scope.visible is None or scope.visible[n]), None)

    def find_document(self, path: str, scope: Scope) -> int | None:
        """Number of the visible document with that path, document id or absolute path, or None.

        Several with one path (from several roots): the first in the total order.
        """
        sql = "SELECT number FROM documents WHERE path = $1 OR document_id = $1 OR (location = $1 AND $1 <> '')"
        # The system may spell a name in other bytes than those in which paths, and places on the disk, are stored.
        for name in dict.fromkeys((clean(path), relative_path(path))):
            named = sorted(int(row[0]) for row in fetch(self.connection, sql, [name]))
            for number in named:
                if scope.visible_documents is None or scope.visible_documents[number]:
                    return number
        return None

    def numbers_named(self, names: Sequence[str], scope: Scope) -> Mapping[str, tuple[int, ...]]:
        """Numbers of the visible documents that each name means, up; names that mean none are left out.

        A name is a path, a document id, a record's own id, the part after `#` of a record's path, a url, or
        a path or id under which the same content was there before; where it could be several of these, the first counts.
        """
        found: dict[str, dict[int, list[int]]] = {}
        for name, number, place in fetch(self.connection, _NAMED, [list(dict.fromkeys(names))]):
            if scope.visible_documents is None or scope.visible_documents[number]:
                found.setdefault(name, {}).setdefault(place, []).append(int(number))
        return {name: tuple(places[min(places)]) for name, places in found.items()}

    def ids(self, scope: Scope) -> frozenset[str]:
        return frozenset(
            self.arrays.document_ids.take(np.arange(self.documents_total)[_all_or(scope.visible_documents)])
        )

    def _whole_roots(self) -> set[str]:
        return {row[0] for row in fetch(self.connection, "SELECT root FROM roots WHERE whole")}

    def roots(self, scope: Scope) -> tuple[str, ...]:
        """Absolute paths of the indexed folders that hold visible documents, sorted.

        The folder of a file that was indexed alone is not one of them: indexing a file opens no folder.
        """
        held = _counted(self._seen(scope, "root"), self.arrays.names["roots"])
        return tuple(sorted(held.keys() & self._whole_roots()))

    def sources(self, scope: Scope) -> list[Source]:
        """What the visible documents came from: a row for each indexed folder, and for folders of single files, by path."""
        arrays, whole, seen = self.arrays, self._whole_roots(), scope.visible_documents
        names, codes = arrays.names["roots"], arrays.documents["root"]
        owners = np.asarray(arrays.records["document_number"][_all_or(scope.visible)], np.int64)
        documents = _counted(codes[_all_or(seen)], names)
        chunks, copies = _counted(codes[owners], names), _counted(codes[self._repeated(scope)], names)
        times = np.asarray(
            fetch_columns(self.connection, "SELECT epoch(modified) AS at FROM documents ORDER BY number")["at"],
            np.float64,
        )
        made = []
        for code, name in enumerate(names):
            if name in documents:
                own = codes == code if seen is None else seen & (codes == code)
                newest = np.nanmax(times[own]) if np.isfinite(times[own]).any() else None
                made.append(
                    Source(
                        name,
                        "folder" if name in whole else "files",
                        documents[name],
                        chunks.get(name, 0),
                        int(arrays.documents["size"][own].sum()),
                        None if newest is None else datetime.fromtimestamp(float(newest), UTC),
                        copies.get(name, 0),
                    )
                )
        return sorted(made, key=lambda source: source.path)

    def _seen(self, scope: Scope, column: str) -> Any:
        return self.arrays.documents[column][_all_or(scope.visible_documents)]

    # --- the same text several times -----------------------------------------------------------------------------------

    @cached_property
    def _repeats(self) -> dict[int, NDArray[np.int64]]:
        """First document with a text -> all documents with it, where there are several."""
        same = self.arrays.documents["same"]
        several = np.flatnonzero(np.bincount(same, minlength=len(same)) > 1)
        members = np.flatnonzero(np.isin(same, several))
        members = members[np.argsort(same[members], kind="stable")]
        cuts = np.flatnonzero(np.diff(same[members])) + 1
        return {int(same[group[0]]): group for group in np.split(members, cuts) if len(group)}

    def paths_of(self, document_numbers: Sequence[int], scope: Scope) -> Mapping[int, tuple[str, ...]]:
        """Document number -> the paths of all visible documents with the same text, its own first.

        Documents whose text no other visible document has are left out.
        """
        found = {}
        for number in document_numbers:
            group = self._repeats.get(int(self.arrays.documents["same"][number]))
            if group is not None:
                seen = group if scope.visible_documents is None else group[scope.visible_documents[group]]
                numbers = np.concatenate(([int(number)], seen[seen != number]))
                paths = tuple(dict.fromkeys(self.arrays.paths.take(numbers)))
                if len(paths) > 1:
                    found[int(number)] = paths
        return found

    def distinct(self, scope: Scope) -> Scope:
        """The scope without the documents that repeat the text of an earlier document which it allows."""
        gone = np.zeros(self.documents_total, bool)
        for group in self._repeats.values():
            gone[(group if scope.allowed_documents is None else group[scope.allowed_documents[group]])[1:]] = True
        if not gone.any():
            return scope
        kept = ~gone if scope.allowed_documents is None else scope.allowed_documents & ~gone
        records = kept[self.arrays.records["document_number"]]
        allowed = records if scope.allowed is None else scope.allowed & records
        key = json.dumps([*json.loads(scope.key or "[]"), "distinct"])
        return replace(scope, allowed=frozen(allowed), allowed_documents=frozen(kept), key=key)

    def _repeated(self, scope: Scope) -> NDArray[np.int64]:
        seen = scope.visible_documents
        groups = [g if seen is None else g[seen[g]] for g in self._repeats.values()]
        return np.concatenate([np.zeros(0, np.int64), *(group[1:] for group in groups)])

    # --- what is there -----------------------------------------------------------------------------------------------

    def digest(self, scope: Scope) -> str:
        """Hex digest of the visible documents, their records and the encoders, whatever order they were indexed in."""
        return content_digest(self.arrays.digests[_all_or(scope.visible_documents)], self._manifest.encoders)

    def info(self, scope: Scope) -> Mapping[str, Any]:
        """Counts by type, collection and language, bytes and digest, of what is visible.

        Hidden documents change nothing of it but the generation's id. `bytes` are those of the original files and records;
        `copies` counts the documents that repeat the text of an earlier one; `cut` counts the chunks that are longer than the
        corpus's own encoder reads.
        """
        names, sizes = self.arrays.names, self._seen(scope, "size")
        records = self.arrays.records["collection"][_all_or(scope.visible)]
        collections = _counted(records, names["collections"])
        granularities = zip(names["collections"], names["granularities"], strict=True)
        encoders, own = self._manifest.encoders, self._manifest.encoder
        return {
            "generation": self.generation,
            "documents": len(sizes),
            "copies": len(self._repeated(scope)),
            "records": len(records),
            "bytes": int(sizes.sum()),
            "types": _counted(self._seen(scope, "type"), names["types"]),
            "languages": _counted(self._seen(scope, "language"), names["languages"]),
            "collections": collections,
            "granularities": {name: kind for name, kind in granularities if name in collections},
            "roots": list(self.roots(scope)),
            "encoder": encoders[own].name if own else "",
            "encoders": [
                {"name": e.name, "digest": e.digest, "runtime": e.runtime, "dim": e.dim, "max_tokens": e.max_tokens}
                for _, e in sorted(encoders.items(), key=lambda item: (item[0] != own, item[0]))
            ],
            "cut": self._cut(scope),
            "digest": self.digest(scope),
        }

    def _cut(self, scope: Scope) -> int:
        own = self._manifest.encoders.get(self._manifest.encoder)
        rows = fetch(self.connection, CUT_RECORDS, [own.max_tokens]) if own is not None else []
        numbers = np.array([number for (number,) in rows], np.int64)
        return len(numbers) if scope.visible is None else int(np.count_nonzero(scope.visible[numbers]))


def stored_access(columns: Columns) -> tuple[tuple[Access, ...], NDArray[np.int32]]:
    """The kinds of access that documents were indexed with, and each document's code among them."""
    kinds = tuple(Access(tenant, tuple(roles), level) for tenant, roles, level in columns.names["access"])
    return kinds, columns.documents["access"].astype(np.int32)


def content_digest(document_digests: NDArray[np.uint8], encoders: Mapping[str, EncoderIdentity]) -> str:
    """Hex blake2b-16 over document digests (uint8 (d, 16), in number order) and encoders."""
    state = hashlib.blake2b(digest_size=16)
    for _, encoder in sorted(encoders.items()):
        state.update(json.dumps([encoder.name, encoder.digest, encoder.runtime, encoder.dim]).encode())
    state.update(np.ascontiguousarray(document_digests).tobytes())
    return state.hexdigest()


def _counted(codes: NDArray[Any], names: Sequence[str]) -> dict[str, int]:
    counts = np.bincount(np.asarray(codes, np.int64), minlength=len(names))
    return {name: int(n) for name, n in zip(names, counts, strict=True) if n}


def _all_or(mask: NDArray[np.bool_] | None) -> Any:
    """What picks by a mask, where None is everything."""
    return slice(None) if mask is None else mask


def frozen(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A mask that several readers share: from now on nobody writes to it."""
    mask.flags.writeable = False
    return mask
