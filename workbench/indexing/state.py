"""What an indexing run knows: its options, the state that it starts from, and what it has found out so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import settings
from workbench.errors import EncoderError, IndexingStopped
from workbench.ingest.rules import CorpusRules, FileRules, load_rules
from workbench.ingest.walk import FoundFile
from workbench.records import EncoderIdentity, FileReport, FileStatus, Granularity, ProgressCallback
from workbench.store import generations
from workbench.store.build import vector_key
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE, FORMAT, Pin
from workbench.store.lexical.build import made_alike
from workbench.store.milvus.remote import store_uri
from workbench.store.schema import FILES

if TYPE_CHECKING:
    import duckdb

    from workbench.indexing.cluster import Cluster
    from workbench.indexing.reading import Cutting

Abort = Callable[[], bool]
FileKey = tuple[str, str]
"""Root and path of a file."""


def check(abort: Abort) -> None:
    if abort():
        raise IndexingStopped(
            "The indexing run was stopped; the corpus is as it was before",
            "Run the same command again: what was embedded is kept",
        )


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How files are indexed.

    Attributes:
        collections: Named parts of the corpus that the documents go to; rules in `corpus.yaml` may say otherwise.
        encoder: The encoder's name, or several: each record then has a vector of each, the first is the corpus's own and
            its tokenizer cuts. None: those that the corpus has, or for a new corpus the setting `encoder`. A list is
            exactly what the corpus has from now on; one name, if it is the corpus's own, keeps the others. A new one makes
            the run read all folders again and embeds for that one; vectors of one that is left out go.
        tenant, roles, sensitivity: Who may see the documents; roles empty: everyone of the tenant.
        type: Their type; None leaves it to the readers.
        one_chunk_per_document: New collections get one chunk a document, without context.
        hidden: Take hidden files.
        gitignore: Honour `.gitignore`.
        ocr: Recognise words in scanned pages and pictures; also where the setting `ocr` says so.
        workers: Helper processes that read; None decides by the number of files, 0 reads in this process.
        move: Files that are in other collections already leave those; else they are in both from now on.
        store: Address of the Milvus server, or file of milvus-lite, that texts, words and vectors go to; "": they stay here.
            None: where they are, or the setting `store`.
        ray: Read, embed and write on Ray: `local`, or the address of a cluster; "": in this process.
    """

    collections: Sequence[str] = ("docs",)
    encoder: str | Sequence[str] | None = None
    tenant: str | None = None
    roles: Sequence[str] = ()
    sensitivity: str | None = None
    type: str | None = None
    one_chunk_per_document: bool = False
    hidden: bool = False
    gitignore: bool = True
    ocr: bool = False
    workers: int | None = None
    move: bool = False
    store: str | None = None
    ray: str = ""

    @property
    def flags(self) -> FileRules:
        return FileRules(
            tuple(self.collections), self.tenant, tuple(self.roles), self.sensitivity or "normal", self.type or ""
        )


@dataclass(frozen=True, slots=True)
class Root:
    """An indexed folder: `whole`, or only files named in it. `options` says how it was walked (JSON)."""

    root: str
    whole: bool
    salt: str
    options: str


@dataclass(frozen=True, slots=True)
class Task:
    """One file to read: what it is given and the salt of its root."""

    found: FoundFile
    rules: FileRules
    salt: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A row of the table `files`: a file as a run found it; see `FileReport` for status to chunks.

    Attributes:
        recipe: Digest of all that shaped its outcome beside its bytes.
        access: JSON of the tenant, roles and sensitivity that rules and flags gave to it.
        same_as: Path of the first file with the same bytes, or ""; no column.
    """

    root: str
    path: str
    size: int
    modified_ns: int
    sha256: str
    recipe: str
    collections: Sequence[str]
    status: FileStatus
    reason: str
    remedy: str
    documents: int
    chunks: int
    access: str
    same_as: str = ""


@dataclass(frozen=True)
class Previous:
    """The state that a run starts from; empty where there is no corpus yet."""

    pin: Pin | None = None
    files: Mapping[FileKey, StoredFile] = field(default_factory=dict)
    roots: Mapping[str, Root] = field(default_factory=dict)
    granularities: Mapping[str, Granularity] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    words_alike: bool = True

    @cached_property
    def sound(self) -> bool:
        """Whether every part of the generation is as it was written; one that is not is built again, whatever changed."""
        return self.pin is None or self.pin.sound()

    @property
    def outdated(self) -> bool:
        """Whether an earlier version wrote it in another format: its texts and vectors are taken over, its files read again."""
        return self.pin is not None and self.pin.manifest.format != FORMAT

    @property
    def encoders(self) -> Mapping[str, EncoderIdentity]:
        """Key of each vector folder to the encoder that made it, the corpus's own first."""
        if self.pin is None:
            return {}
        own, known = self.pin.manifest.encoder, self.pin.manifest.encoders
        return {key: known[key] for key in sorted(known, key=lambda key: (key != own, key))}

    @property
    def database(self) -> Path | None:
        return self.pin.folder / self.pin.database if self.pin is not None else None

    @property
    def store(self) -> str:
        """Address of the store that has its texts, words and vectors; "": they are here."""
        return self.pin.manifest.remote.get("uri", "") if self.pin is not None else ""

    def close(self) -> None:
        if self.pin is not None:
            self.pin.close()


def load_previous(corpus: Path) -> Previous:
    """Pin the current generation and read what it says of files. Raises CorpusDamaged where its database is."""
    if not generations.exists(corpus):
        return Previous()
    with ExitStack() as stack:
        pin = generations.pin(corpus, whole=False, earlier=True)
        stack.callback(pin.close)
        pin.check(DATABASE)
        with closing(open_reading(pin.folder / DATABASE)) as connection:
            files = stored_files(connection)
            roots = {row[0]: Root(*row) for row in fetch(connection, "SELECT root, whole, salt, options FROM roots")}
            named = fetch(connection, "SELECT name, granularity, chunking FROM collections")
            alike = pin.manifest.format == FORMAT and made_alike(connection)
        stack.pop_all()
    whole = frozenset(name for name, _, chunking in named if chunking == "whole")
    return Previous(pin, files, roots, {name: Granularity(kind) for name, kind, _ in named}, whole, alike)


def stored_files(connection: duckdb.DuckDBPyConnection) -> dict[FileKey, StoredFile]:
    """Every file that a generation knows; of those with the same bytes all but the first by path name that one."""
    columns = ", ".join(column.name for column in fields(StoredFile) if column.name != "same_as")
    sql = f"""SELECT {columns}, CASE WHEN first = path THEN '' ELSE first END FROM (
        SELECT *, first_value(path) OVER (PARTITION BY CASE WHEN sha256 <> '' AND size > 0 AND documents > 0 THEN sha256
        ELSE root || chr(0) || path END ORDER BY path, root) AS first FROM {FILES}) ORDER BY path, root"""
    found = (StoredFile(*row) for row in fetch(connection, sql))
    return {
        (file.root, file.path): replace(file, collections=tuple(file.collections), status=FileStatus(file.status))
        for file in found
    }


def choose_encoders(options: IndexOptions, previous: Previous) -> tuple[tuple[str, EncoderIdentity], ...]:
    """Name and identity of the run's encoders, none of them loaded.

    A list is exactly what the corpus is to have. One name alone may be the corpus's own: then it keeps the others.
    """
    held = [identity.name for identity in previous.encoders.values()]
    asked = [options.encoder] if isinstance(options.encoder, str) else list(options.encoder or ())
    chosen = _known(asked or held or [str(settings.get("encoder"))])
    if held and [name for name, _ in chosen] == held[:1] and (not options.encoder or isinstance(options.encoder, str)):
        chosen = _known(held)
    return chosen


def _known(names: Sequence[str]) -> tuple[tuple[str, EncoderIdentity], ...]:
    """Encoders by the names that they have themselves, so that one which is named in two ways is there once."""
    identities = (_identity(name) for name in dict.fromkeys(names))
    return tuple({vector_key(identity): (identity.name, identity) for identity in identities}.values())


def _identity(name: str) -> EncoderIdentity:
    """Who an encoder is; it is loaded only where its files do not say (the first time on a machine)."""
    from workbench.encode.load import identity_of, load_encoder

    with suppress(EncoderError):  # one that is not on this machine yet is fetched
        identity = identity_of(name)
        if identity.runtime and identity.dim and identity.max_tokens:
            return identity
    return load_encoder(name).identity


@dataclass(slots=True)
class Run:
    """The state of one run: filled step by step, read by the report.

    Attributes:
        encoders: Name and identity; the first is the corpus's own, and its tokenizer cuts.
        read_again: Every file is read again, because an encoder is new.
        fewer: The corpus loses an encoder.
        old_access: Some documents are written again with the access that they had.
        roots: All roots of the corpus from now on.
        dropped: Files of the generation before whose documents are not carried over.
        reports: What became of each file.
        kept: Files that this run met unchanged.
        rows: Files that were read or left out.
        read: Number of files that gave documents.
        cluster: Where it reads, embeds and writes; None: in this process.
    """

    corpus: Path
    options: IndexOptions
    tell: ProgressCallback
    abort: Abort
    previous: Previous
    rules: CorpusRules
    encoders: tuple[tuple[str, EncoderIdentity], ...]
    store: str
    started: float = field(default_factory=time.monotonic)
    read_again: bool = False
    fewer: bool = False
    old_access: bool = False
    cutting: Cutting = field(init=False)
    roots: dict[str, Root] = field(default_factory=dict)
    reports: dict[FileKey, FileReport] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    dropped: set[FileKey] = field(default_factory=set)
    kept: set[FileKey] = field(default_factory=set)
    rows: list[StoredFile] = field(default_factory=list)
    read: int = 0
    embedding_seconds: float = 0.0
    cluster: Cluster | None = None

    @classmethod
    def begin(
        cls, corpus: Path, options: IndexOptions | None, previous: Previous, tell: ProgressCallback, abort: Abort
    ) -> Run:
        """A run that has found out nothing yet; without options it reads nothing, and the corpus keeps its encoders."""
        own = tuple((identity.name, identity) for identity in previous.encoders.values())
        encoders = own if options is None else choose_encoders(options, previous)
        asked = None if options is None else options.store
        stays = asked is None and previous.pin is not None and not settings.get("store")
        store = previous.store if stays else store_uri(asked)
        return cls(corpus, options or IndexOptions(), tell, abort, previous, load_rules(corpus), encoders, store)
