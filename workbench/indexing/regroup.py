"""Documents into another collection, or out of one, from what the corpus holds: no file is read and nothing embedded.

A document's records are written again under the other collection's name (their ids name it), from the generation that answers
now; their vectors are found by their texts. A collection of whole documents and one of chunks hold other records: between them
only `index` with `move` can change, because it cuts the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.errors import UsageError
from workbench.indexing.compare import cutting_for, named_files
from workbench.indexing.reading import Record
from workbench.indexing.run import existing, keep_roots, locked, refuse_outdated
from workbench.indexing.state import FileKey, Run, check
from workbench.indexing.write import staging_file, write
from workbench.ingest.chunking import chunk_id
from workbench.ingest.rules import collection_names
from workbench.records import Chunk, FileReport, FileStatus, Granularity, IndexReport
from workbench.store.database import fetch
from workbench.store.reader import open_generation
from workbench.store.schema import FILES


def move(
    paths: Sequence[str | Path], corpus: str | Path, collection: str, *, source: str | None = None, **around: Any
) -> IndexReport:
    """Move documents to a collection, from `source` or (None) from all that they are in; `around` and paths as `remove` has them.

    Raises as `remove` does, and UsageError where no document below the paths is in `source`, or where one collection holds chunks
    and the other whole documents.
    """
    (to,) = collection_names((collection,), "collection")
    return locked(existing(corpus), f"move to {to}", paths, lambda run: _write(run, paths, source, to), **around)


def take_out(paths: Sequence[str | Path], corpus: str | Path, collection: str, **around: Any) -> IndexReport:
    """Take documents out of one collection; they stay in the others, and one that is in no other leaves the corpus. Raises as
    `remove` does, and UsageError where no document below the paths is in it.
    """
    kind = f"remove from {collection}"
    return locked(existing(corpus), kind, paths, lambda run: _write(run, paths, collection, ""), **around)


_BATCH = 256


def _write(run: Run, paths: Sequence[str | Path], source: str | None, to: str) -> IndexReport:
    previous = run.previous
    refuse_outdated(run, "repeat this")
    leaving = frozenset(previous.granularities if source is None else [source]) - {to}
    keys, held = named_files(previous, paths), dict[FileKey, set[str]]()
    run.old_access = True
    run.cutting = cutting_for(run, {*previous.granularities, *filter(None, [to])})
    if to not in previous.granularities and leaving <= previous.whole:
        run.cutting = replace(run.cutting, whole=run.cutting.whole | {to})
    with staging_file(run.corpus) as staging, open_generation(run.corpus) as generation:
        records = generation.records
        sql = f"""SELECT d.number, d.location, f.root, f.path, (SELECT list(DISTINCT collection) FROM records r
            WHERE r.document_number = d.number) FROM documents d JOIN {FILES} f ON f.number = d.file_number ORDER BY 1"""
        documents = [row for row in fetch(records.connection, sql) if (row[2], row[3]) in keys]
        run.dropped = {(root, path) for _, _, root, path, names in documents if leaving.intersection(names)}
        if not run.dropped:
            where = f"in the collection {source}" if source else f"in another collection than {to}"
            raise UsageError(f"No document below these paths is {where}", "`workbench info` lists the collections")
        documents = [row for row in documents if (row[2], row[3]) in run.dropped]
        for at in range(0, len(documents), _BATCH):
            check(run.abort)
            some = documents[at : at + _BATCH]
            read = records.documents([number for number, *_ in some])
            for (number, location, *key, _), document in zip(some, read, strict=True):
                chunks = [row.chunk for row in records.rows(records.records_of(number).tolist())]
                made = tuple(_renamed(run, chunks, leaving, to))
                held.setdefault((key[0], key[1]), set()).update(chunk.collection for chunk, _ in made)
                if made:
                    document = replace(document, places=records.places(number))
                    staging.add_document(document, made, file=(key[0], key[1]), location=location)
        staging.flush()
        keep_roots(run, {file for file, names in held.items() if not names})
        for file, names in sorted(held.items()):
            _report(run, file, names)
        return write(run, staging)


def _report(run: Run, key: FileKey, names: set[str]) -> None:
    """The row and the report of a file whose documents are written again, or have gone. Nobody keeps the flags that its recipe is
    made of, so the next run over its folder reads it once more.
    """
    if names:
        run.rows.append(replace(run.previous.files[key], collections=tuple(sorted(names)), recipe=""))
        run.reports[key] = FileReport(key[1], FileStatus.INDEXED, f"It is in {', '.join(sorted(names))} now")
    else:
        run.reports[key] = FileReport(key[1], FileStatus.REMOVED, "It was taken out")


def _renamed(run: Run, chunks: Sequence[Chunk], leaving: frozenset[str], to: str) -> Iterator[Record]:
    """A document's records under their new collections, each with the chunks that its vector is made of."""
    cutting, names = run.cutting, dict.fromkeys(chunk.collection for chunk in chunks)
    sources = {name: name for name in names if name not in leaving}
    if to and to not in names and not leaving.isdisjoint(names):
        ways = {name: (cutting.granularity(name), cutting.is_whole(name)) for name in {*names, to}}
        fitting = [name for name in names if name in leaving and ways[name] == ways[to]]
        if not fitting:
            raise _cut_otherwise(f"The collection {to} cuts documents in another way than {', '.join(names)}", to)
        sources[to] = fitting[0]
    whole = [n for n in names if cutting.granularity(n) is Granularity.CHUNK and not cutting.is_whole(n)]
    parts = tuple(chunk for chunk in chunks if whole and chunk.collection == min(whole))
    for new, old in sources.items():
        own = cutting.granularity(old) is Granularity.CHUNK or cutting.is_whole(old)
        if not (own or parts):
            raise _cut_otherwise(f"Only the files know the parts of what the collection {old} holds", new)
        for chunk in (chunk for chunk in chunks if chunk.collection == old):
            made = chunk
            if new != old:
                made = replace(chunk, collection=new, chunk_id=chunk_id(chunk.document_id, new, chunk.start, chunk.end))
            yield made, (made,) if own else parts


def _cut_otherwise(reason: str, to: str) -> UsageError:
    return UsageError(reason, f"Have the files read again: workbench index PATH --collection {to} --move")
