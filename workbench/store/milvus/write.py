"""Writing a generation to Milvus: rows in batches that may be written twice, then the alias.

A block of records has a fixed range of numbers, and a generation's name holds the digest of what it indexes: a run that was
killed and starts again comes to the same names and numbers, and leaves out the blocks that are there. Blocks need nothing of each
other, so several processes may write them (`indexing.cluster`).

The folder keeps `whole.duckdb`, the tables with their texts, which the next run carries over; `corpus.duckdb` is the same without
texts, with what words need of statistics: `frequencies(term, access, df)`, `vocabulary(word, term)`, `lengths`. It and the
columns are also written to Milvus, as pieces of files, and `fetch_generation` makes a folder of them elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.encode.protocol import Meter
from workbench.errors import CorpusError, CorpusNotFound
from workbench.plan.fields import BY_NAME
from workbench.records import EncoderIdentity, ProgressCallback
from workbench.store import generations
from workbench.store.arrays import COLUMNS, Columns
from workbench.store.database import fetch, fetch_columns, open_reading, open_writing, stream
from workbench.store.generations import DATABASE, MANIFEST, WHOLE, Layout, Manifest
from workbench.store.lexical import tokens
from workbench.store.lexical.build import makers
from workbench.store.lexical.query import analysed
from workbench.store.milvus.remote import NO_WORDS, Remote, piece_id, store_uri
from workbench.store.schema import attach

BLOCK = 2_000
"""Records of one block."""

_LONGEST = 60_000  # bytes of a text field, of which Milvus takes 65,535
_PIECE = 14_000  # characters of a piece of a document: at most four bytes each
_BEYOND = 500  # characters of the next piece that a piece without a line's end is searched with
_BATCH_BYTES = 12_000_000
_SAMPLE = 2_000
_FILES = (f"records/{COLUMNS}", DATABASE, MANIFEST, "corpus.yaml")
_KEPT = 2

Writer = Callable[[Iterable["Block"], Remote, float], Iterator["Written"]]
"""Writes blocks in any order, perhaps elsewhere, and gives what each had to say."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Records `first` and on: their contexts and texts, codes of access and collection, and vectors by field; and whether a run
    before, which was killed, has written them."""

    first: int
    written: bool
    contexts: Sequence[str]
    texts: Sequence[str]
    access: NDArray[np.int64]
    collection: NDArray[np.int64]
    vectors: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What a block's words are: lengths of its records, in how many of them terms are by access code, and the terms of words."""

    first: int
    lengths: NDArray[np.int32]
    frequencies: Mapping[tuple[str, int], int]
    words: Mapping[str, str]


@lru_cache(1 << 18)
def dimension(term: str) -> int:
    """A term's dimension in the sparse vectors. Two terms may share one: scores are computed from the texts."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=4).digest(), "big") % NO_WORDS


def vector_field(key: str) -> str:
    """Name of an encoder's field."""
    return f"vector_{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def write_block(block: Block, remote: Remote, mean_length: float) -> Written:
    """Write a block that is not there yet, and say what its words are."""
    rows: list[dict[str, Any]] = []
    lengths = np.zeros(len(block.texts), np.int32)
    frequencies: Counter[tuple[str, int]] = Counter()
    words: dict[str, str] = {}
    for at, (context, text) in enumerate(zip(block.contexts, block.texts, strict=True)):
        counts: Counter[str] = Counter()
        for piece in (*tokens.PIECES.findall(context), *tokens.PIECES.findall(text)):
            positions, _, found = analysed(piece)
            lengths[at] += positions
            for word in found:
                counts[word.term] += 1
                words[word.word] = word.term
        access = int(block.access[at])
        frequencies.update((term, access) for term in counts)
        rows.append(
            {
                "number": block.first + at,
                "access": access,
                "collection": int(block.collection[at]),
                "text": text if len(text.encode()) <= _LONGEST else "",
                "words": _weights(counts, int(lengths[at]), mean_length),
                **{field: vectors[at] for field, vectors in block.vectors.items()},
            }
        )
    if not block.written:
        _upsert(remote, remote.name, rows, lambda row: 4096 + len(row["text"]) * 2 + 16 * len(row["words"]))
    return Written(block.first, lengths, frequencies, words)


def _weights(counts: Mapping[str, int], length: int, mean_length: float) -> dict[int, float]:
    """Each dimension's share of BM25 with the default k1 and b, without the idf."""
    k1, b = (float(BY_NAME[f"keyword.{name}"].default) for name in ("k1", "b"))
    norm = k1 * (1.0 - b + b * length / (mean_length or 1.0))
    made: dict[int, float] = {}
    for term, tf in counts.items():
        made[dimension(term)] = made.get(dimension(term), 0.0) + tf * (k1 + 1.0) / (tf + norm)
    return made or {NO_WORDS: 1.0}


def _upsert(remote: Remote, name: str, rows: Iterable[dict[str, Any]], size: Callable[[dict[str, Any]], int]) -> None:
    batch: list[dict[str, Any]] = []
    held = 0
    for row in rows:
        batch.append(row)
        held += size(row)
        if held > _BATCH_BYTES:
            remote.call("upsert", name, batch)
            batch, held = [], 0
    if batch:
        remote.call("upsert", name, batch)


# --- the whole generation ---------------------------------------------------------------------------------------------


def build_remote(
    folder: Path,
    remote: Remote,
    encoders: Mapping[str, EncoderIdentity],
    vectors_of: Callable[[str, int, int], NDArray[np.float32]],
    tell: ProgressCallback,
    writer: Writer | None = None,
) -> None:
    """Write what a folder's tables and columns hold to a generation's collections, and take the texts out of the folder's
    `corpus.duckdb`. `vectors_of` gives an encoder's vectors of the records from one number to before another.
    """
    os.replace(folder / DATABASE, folder / WHOLE)
    _create(remote, encoders)
    columns = Columns(folder / "records")
    with closing(open_reading(folder / WHOLE)) as connection:
        sample = _sampled(connection, columns.records_total)
        blocks = _blocks(connection, columns, remote, encoders, vectors_of)
        meter = Meter(tell, "vectors", columns.records_total)
        lengths = np.zeros(columns.records_total, np.int32)
        with closing(open_writing(folder / DATABASE)) as made:
            _copy_tables(made, folder / WHOLE)
            made.execute("CREATE TEMP TABLE counted (term VARCHAR, access INTEGER, df INTEGER)")
            made.execute("CREATE TEMP TABLE met (word VARCHAR, term VARCHAR)")
            done = writer(blocks, remote, sample) if writer else (write_block(b, remote, sample) for b in blocks)
            for written in done:
                lengths[written.first : written.first + len(written.lengths)] = written.lengths
                _insert(made, "counted", [(*key, df) for key, df in written.frequencies.items()])
                _insert(made, "met", list(written.words.items()))
                meter.advance(len(written.lengths))
            made.execute(
                "CREATE TABLE frequencies AS SELECT term, access, sum(df)::INTEGER AS df FROM counted GROUP BY ALL ORDER BY ALL;"
                "CREATE TABLE vocabulary AS SELECT DISTINCT word, term FROM met ORDER BY ALL;"
                "CREATE TABLE lengths (number INTEGER NOT NULL, length INTEGER NOT NULL);"
                "CREATE TABLE words_made_with (name VARCHAR NOT NULL, value VARCHAR NOT NULL)"
            )
            made.executemany("INSERT INTO words_made_with VALUES (?, ?)", list(makers().items()))
            _insert(made, "lengths", list(enumerate(lengths.tolist())))
            made.execute("CHECKPOINT")
        texts = stream(connection, "SELECT number, text, access FROM documents ORDER BY number", 200)
        _upsert(remote, remote.lines, _pieces(texts), lambda row: 3 * len(row["text"]) + 200)
    for name in (remote.name, remote.lines):
        remote.call("flush", name)
        remote.call("load_collection", name)


def _insert(connection: Any, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    import pyarrow as pa

    if rows:
        connection.register(
            "block", pa.table({f"c{n}": list(column) for n, column in enumerate(zip(*rows, strict=True))})
        )
        connection.execute(f"INSERT INTO {table} SELECT * FROM block")
        connection.unregister("block")


def _copy_tables(connection: Any, whole: Path) -> None:
    """The tables without their texts."""
    connection.execute(attach("whole", whole))
    for (name,) in fetch(connection, "SELECT table_name FROM duckdb_tables() WHERE database_name = 'whole'"):
        without = " REPLACE ('' AS text)" if name in ("documents", "records") else ""
        connection.execute(f"CREATE TABLE {name} AS SELECT *{without} FROM whole.{name} ORDER BY rowid")
    connection.execute("DETACH whole")


def _sampled(connection: Any, total: int) -> float:
    """The mean length of records, in words, by some that are spread evenly: what the stored weights are relative to."""
    rows = fetch(
        connection, "SELECT context || ' ' || text FROM records WHERE number % ? = 0", [max(1, total // _SAMPLE)]
    )
    lengths = [sum(analysed(piece)[0] for piece in tokens.PIECES.findall(text)) for (text,) in rows]
    return sum(lengths) / len(lengths) if lengths else 1.0


def _blocks(
    connection: Any,
    columns: Columns,
    remote: Remote,
    encoders: Mapping[str, EncoderIdentity],
    vectors_of: Callable[[str, int, int], NDArray[np.float32]],
) -> Iterator[Block]:
    owner = columns.records["document_number"]
    ranges = [(n, min(n + BLOCK, columns.records_total)) for n in range(0, columns.records_total, BLOCK)]
    there = remote.records([last - 1 for _, last in ranges])  # rows are written in order: then all of the block are
    for first, last in ranges:
        rows = fetch_columns(
            connection,
            "SELECT context, text FROM records WHERE number >= ? AND number < ? ORDER BY number",
            [first, last],
        )
        yield Block(
            first,
            last - 1 in there,
            list(rows["context"]),
            list(rows["text"]),
            columns.documents["access"][owner[first:last]],
            columns.records["collection"][first:last].astype(np.int64),
            {vector_field(key): vectors_of(key, first, last) for key in encoders},
        )


def _pieces(documents: Iterable[tuple[int, str, int]]) -> Iterator[dict[str, Any]]:
    """Rows of `NAME_lines`: each text in pieces that end with a line where they can."""
    for number, text, access in documents:
        at = piece = 0
        while at < len(text):
            end = min(len(text), at + _PIECE)
            end = text.rfind("\n", at, end) + 1 or end if end < len(text) else end
            part = text[at:end]
            beyond = "" if part.endswith("\n") else text[end : end + _BEYOND].partition("\n")[0]
            yield _piece(number, piece, access, part, part + beyond)
            at, piece = end, piece + 1


def _piece(document: int, piece: int, access: int, text: str, searched: str) -> dict[str, Any]:
    lower = searched.encode().lower().decode()  # as grep's copy in small letters: those of ASCII only
    return {
        "id": piece_id(document, piece), "document": document, "access": access, "text": text, "lower": lower,
        "none": [0.0, 1.0],
    }  # fmt: skip


def _create(remote: Remote, encoders: Mapping[str, EncoderIdentity]) -> None:
    """Make the collections where they are not there yet."""
    from pymilvus import DataType, MilvusClient

    kind = str(settings.get("store_index"))
    built = {"HNSW": {"M": 16, "efConstruction": 128}, "IVF_FLAT": {"nlist": 1024}}.get(kind, {})
    dense = {vector_field(key): identity.dim for key, identity in encoders.items()}
    fields: dict[str, list[tuple[str, Any, dict[str, int]]]] = {
        remote.name: [
            ("number", DataType.INT64, {}),
            ("access", DataType.INT64, {}),
            ("collection", DataType.INT64, {}),
            ("text", DataType.VARCHAR, {"max_length": 65_535}),
            ("words", DataType.SPARSE_FLOAT_VECTOR, {}),
            *((name, DataType.FLOAT_VECTOR, {"dim": dim}) for name, dim in dense.items()),
        ],
        remote.lines: [
            ("id", DataType.INT64, {}),
            ("document", DataType.INT64, {}),
            ("access", DataType.INT64, {}),
            ("text", DataType.VARCHAR, {"max_length": 65_535}),
            ("lower", DataType.VARCHAR, {"max_length": 65_535}),
            ("none", DataType.FLOAT_VECTOR, {"dim": 2}),  # Milvus wants a vector in every collection
        ],
    }
    for name, columns in fields.items():
        if remote.call("has_collection", name):
            continue
        schema, indexes = MilvusClient.create_schema(auto_id=False), MilvusClient.prepare_index_params()
        for n, (field, type_, more) in enumerate(columns):
            schema.add_field(field, type_, is_primary=n == 0, **more)
        for field in dense if name == remote.name else ("none",):
            how = (kind, built) if field in dense else ("FLAT", {})
            indexes.add_index(field, index_type=how[0], metric_type="IP", params=how[1])
        if name == remote.name:
            indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        remote.call("create_collection", name, schema=schema, index_params=indexes)


# --- publishing, and making a folder of it elsewhere --------------------------------------------------------------------


def publish_remote(corpus: Path, folder: Path, manifest: Manifest, remote: Remote) -> None:
    """Write the catalogue's files of a complete folder, and let the alias point to the generation."""
    if (there := remote.count()) != manifest.counts["records"]:
        raise CorpusError(
            f"Milvus has {there:,} of the {manifest.counts['records']:,} rows that were written",
            "Run the same command again",
        )
    kept = {name: part for name, part in manifest.parts.items() if name != WHOLE}
    files = {name: (folder / name).read_bytes() for name in _FILES[:2]}
    files[MANIFEST] = replace(manifest, parts=kept).to_json().encode()
    rules = corpus / "corpus.yaml"
    files["corpus.yaml"] = rules.read_bytes() if rules.exists() else b""
    for n, name in enumerate(_FILES, start=1):
        text = base64.b85encode(files[name]).decode()
        parts = [text[at : at + _LONGEST] for at in range(0, len(text), _LONGEST)] or [""]
        _upsert(
            remote, remote.lines, (_piece(-n, at, -1, part, "") for at, part in enumerate(parts)), lambda _: _LONGEST
        )
    remote.call("flush", remote.lines)
    alias, now = str(settings.get("store_name")), remote.generation()
    if now != remote.name:
        remote.call("alter_alias" if now else "create_alias", remote.name, alias)


def remote_name(generation: str) -> str:
    return f"{settings.get('store_name')}_{generation.replace('-', '_')}"


def _name_of(corpus: Path, generation: str) -> str:
    """Name on the store of a generation that is here: a state that was brought back has that of then."""
    return Manifest.read(Layout(corpus).folder(generation)).remote.get("name", "")


def drop_older(corpus: Path, remote: Remote) -> None:
    """Drop the collections of generations but the newest `_KEPT` and those that states name."""
    ours = re.compile(f"({re.escape(remote_name(''))}[0-9]+_[0-9a-f]+)(_lines)?")  # not those of a corpus NAME_MORE
    there = {name: found[1] for name in remote.call("list_collections") if (found := ours.fullmatch(name))}
    keep = {*sorted(set(there.values()))[-_KEPT:], remote.name}
    keep.update(_name_of(corpus, generation) for generation in generations.states(corpus).values())
    for name, generation in there.items():
        if generation not in keep:
            remote.call("drop_collection", name)


def fetch_generation(corpus: Path, given: str | None = None) -> bool:
    """Bring the folder of the generation that the alias points to, where it is not here, and point to it; whether it was not
    the current one. Raises SourceUnavailable, CorpusNotFound.
    """
    remote = Remote(store_uri(given))
    name = remote.generation()
    if not name:
        raise CorpusNotFound(
            f"There is no corpus called {settings.get('store_name')} at {remote.uri}",
            "Make one with: workbench index PATH --store URI",
        )
    layout = Layout(corpus)
    if layout.building.exists():  # this folder writes it
        return False
    if generations.exists(corpus) and _name_of(corpus, generations.current(corpus)) == name:
        return False
    texts = Remote(remote.uri, name).texts([-n for n in range(1, len(_FILES) + 1)])
    files = {file: base64.b85decode(texts.get(-n, "")) for n, file in enumerate(_FILES, start=1)}
    corpus.mkdir(parents=True, exist_ok=True)
    generations.private(corpus)
    generation = str(json.loads(files[MANIFEST])["generation"])
    target = layout.folder(generation)
    if not target.exists():
        fresh = layout.generations / f".{generation}-{os.getpid()}"
        shutil.rmtree(fresh, ignore_errors=True)
        (fresh / "records").mkdir(parents=True)
        for file in _FILES[:2]:
            (fresh / file).write_bytes(files[file])
        (fresh / MANIFEST).write_bytes(files[MANIFEST])
        generations.complete(fresh, Manifest.read(fresh))
        os.rename(fresh, target)
    if files["corpus.yaml"] and not (corpus / "corpus.yaml").exists():
        generations.write_whole(corpus / "corpus.yaml", files["corpus.yaml"].decode())
    generations.point(corpus, generation)
    return True


def refuse_fetched(corpus: Path, manifest: Manifest, folder: Path) -> None:
    """Raise CorpusError where a folder was fetched from Milvus: it has no texts to carry over."""
    if manifest.remote and not (folder / WHOLE).exists():
        raise CorpusError(
            f"The corpus at {corpus} was fetched from {manifest.remote['uri']}, and has no texts to carry over",
            "Index with the folder that wrote it, or into another --corpus",
        )
