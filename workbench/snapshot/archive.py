"""The file of a snapshot: a zip of a manifest, YAML for what a person may want to read, Parquet for tables, and the page.

Written the same way each time: times are fixed, names and keys in a fixed order, one compression. Read with suspicion:
`manifest.json` names every part with its size and sha256, and carries the digest of itself, so that every byte of a snapshot's
content is covered. The digests say that nothing changed since it was saved; they do not say who saved it, for whoever can write
a file can write digests (`Snapshot.verify` with a corpus asks the corpus). So what is read is checked against the schema too.

Nothing is ever unpacked to disk. Names are looked up in the list of parts that the schema knows, sizes are bounded before and
while unpacking, YAML is read without aliases, and every fault of a file is one `SnapshotError`.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import struct
import types
import typing
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import yaml

from workbench.errors import SnapshotError, SnapshotNewer
from workbench.records import Label
from workbench.snapshot.schema import (
    EVALUATION_TABLES,
    SCHEMA,
    SEARCH_TABLES,
    SWEEP_TABLES,
    TABLES,
    About,
    Content,
    SavedEvaluation,
    SavedSearch,
    SavedSweep,
    columns,
)

if TYPE_CHECKING:
    import polars as pl

MANIFEST, PAGE = "manifest.json", "index.html"
SEARCHES, EVALUATIONS, SWEEPS = "searches.yaml", "evaluations.yaml", "sweeps.yaml"
MOST_FILE_BYTES = 512 << 20
MOST_UNPACKED_BYTES = 1 << 29
MOST_MANIFEST_BYTES, MOST_PAGE_BYTES = 4 << 20, 32 << 20
MOST_RATIO = 1_000
MOST_YAML_BYTES, MOST_VALUES = 16 << 20, 400_000
"""Bounds of a YAML part: each of its values takes a thousand bytes while it is read."""
MOST_TABLE_BYTES, MOST_TABLES_BYTES = 512 << 20, 1 << 30
"""Bounds of a table, and of all of them, in memory: a value repeated a million times takes a few bytes in the file."""
_WIDTH = 16
"""Bytes of a value in memory, besides a text's own."""
_SMALL = 1 << 20
_KIND = "workbench snapshot"
_TIME = (1980, 1, 1, 0, 0, 0)
_AGAIN = "Ask for the file again, or make a new snapshot"
_DISTRUST = "Do not trust this file"
_ZIP_FAULTS = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError)
_FAULTS: tuple[type[Exception], ...] = (*_ZIP_FAULTS, ValueError, LookupError, OverflowError, AttributeError, TypeError)
_FORM_FAULTS = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


def part_of(table: str) -> str:
    return f"{table}.parquet"


NAMES = (SEARCHES, EVALUATIONS, SWEEPS, *map(part_of, TABLES))
"""Every data part that schema 1 knows."""
ALWAYS = (SEARCHES, *map(part_of, SEARCH_TABLES))
"""The parts that every snapshot has."""
_LISTS: Mapping[str, tuple[type, tuple[str, ...]]] = {
    SEARCHES: (SavedSearch, SEARCH_TABLES),
    EVALUATIONS: (SavedEvaluation, EVALUATION_TABLES),
    SWEEPS: (SavedSweep, SWEEP_TABLES),
}


# --- the zip --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the file says of itself.

    Attributes:
        about: Where it comes from.
        parts: Part -> (bytes, sha256 hex).
        digest: sha256 hex of all the above in its canonical form.
        schema: The schema that it was written with.
    """

    about: About
    parts: Mapping[str, tuple[int, str]]
    digest: str
    schema: int = SCHEMA

    @property
    def id(self) -> str:
        return self.digest[:16]


def describe(about: About, parts: Mapping[str, bytes]) -> Manifest:
    named = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in sorted(parts.items())}
    return Manifest(about, named, hashlib.sha256(_canonical(about, named, SCHEMA)).hexdigest())


def to_bytes(manifest: Manifest, parts: Mapping[str, bytes]) -> bytes:
    """The file: the same manifest and parts give the same bytes."""
    file = io.BytesIO()
    body = json.loads(_canonical(manifest.about, manifest.parts, manifest.schema)) | {"digest": manifest.digest}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for name, data in ((MANIFEST, _json(body, indent=1)), *sorted(parts.items())):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            # Parquet is compressed already.
            info.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
            zipped.writestr(info, data)
    return file.getvalue()


def from_bytes(data: bytes) -> tuple[Manifest, dict[str, bytes]]:
    """Manifest and parts of a file, every digest checked. Raises SnapshotNewer, SnapshotError."""
    if len(data) > MOST_FILE_BYTES:
        raise SnapshotError(f"The file has {len(data):,} bytes, more than a snapshot may have", _AGAIN)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as zipped:
            infos = _listed(zipped)
            manifest = _manifest(_unpacked(zipped, infos, MANIFEST, MOST_MANIFEST_BYTES))
            parts = {}
            for name, (size, digest) in manifest.parts.items():
                if name not in infos:
                    raise SnapshotError(f"The snapshot lacks its part {name}", _AGAIN)
                parts[name] = _unpacked(zipped, infos, name, size)
                if len(parts[name]) != size or hashlib.sha256(parts[name]).hexdigest() != digest:
                    raise _malformed(name, "was changed after it was saved")
            extra = sorted(set(infos) - {MANIFEST} - set(manifest.parts))
            if extra:
                raise SnapshotError(f"The snapshot has the part {extra[0]}, which its manifest does not name", _AGAIN)
            return manifest, parts
    except SnapshotError:
        raise
    except _FAULTS as exc:
        raise SnapshotError("The file is not a snapshot, or is damaged: it cannot be read as a zip", _AGAIN) from exc


def _listed(zipped: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name. Raises SnapshotError for names and sizes that no snapshot has."""
    infos: dict[str, zipfile.ZipInfo] = {}
    limits = {MANIFEST: MOST_MANIFEST_BYTES, PAGE: MOST_PAGE_BYTES}
    for info in zipped.infolist():
        name, size, packed = info.orig_filename, info.file_size, info.compress_size
        most = limits.get(name, MOST_YAML_BYTES if name.endswith(".yaml") else MOST_UNPACKED_BYTES)
        if ".." in name.replace("\\", "/").split("/") or name.startswith(("/", "\\")) or name[1:2] == ":":
            raise SnapshotError("The file names a path outside itself, which no snapshot does", _DISTRUST)
        if name in infos:
            raise SnapshotError(f"The file has the part {name!a} twice", _DISTRUST)
        if info.flag_bits & 0x1:
            raise SnapshotError("The file is encrypted, which no snapshot is", _AGAIN)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise SnapshotError(f"The part {name!a} is packed in a way that no snapshot is", _AGAIN)
        if size > _SMALL and size > MOST_RATIO * max(packed, 1):
            raise SnapshotError(f"The part {name!a} unfolds from {packed:,} into {size:,} bytes", _DISTRUST)
        if size > most:
            wanted = f"{size:,} bytes, more than the {most:,} that it may have"
            raise SnapshotError(f"The part {name!a} unfolds into {wanted}", _DISTRUST)
        infos[name] = info
    total = sum(info.file_size for info in infos.values())
    if total > MOST_UNPACKED_BYTES:
        wanted = f"{total:,} bytes, more than the {MOST_UNPACKED_BYTES:,} that a snapshot may have"
        raise SnapshotError(f"The file unfolds into {wanted}", _DISTRUST)
    if MANIFEST not in infos:
        raise SnapshotError("The file is a zip, but not a snapshot: it has no manifest.json", _AGAIN)
    return infos


def _unpacked(zipped: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], name: str, most: int) -> bytes:
    if infos[name].file_size > most:
        raise _malformed(name, "was changed after it was saved: it is too long")
    try:
        with zipped.open(infos[name]) as member:
            return member.read(most + 1)
    except _FAULTS as exc:
        raise _malformed(name, "is damaged") from exc


def _malformed(name: str, why: str) -> SnapshotError:
    return SnapshotError(f"The snapshot's part {name} {why}", _AGAIN)


# --- the manifest ---------------------------------------------------------------------------------------------------------


def _json(values: Any, indent: int | None = None) -> bytes:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(values, sort_keys=True, ensure_ascii=True, indent=indent, separators=separators).encode("ascii")


def _canonical(about: About, parts: Mapping[str, tuple[int, str]], schema: int) -> bytes:
    listed = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in parts.items()}
    return _json({"kind": _KIND, "schema": schema, "about": asdict(about), "parts": listed})


def _manifest(data: bytes) -> Manifest:
    try:
        body = json.loads(data.decode("ascii"))
        schema, kind = body["schema"], body["kind"]
    except _FORM_FAULTS as exc:
        raise SnapshotError("The snapshot's manifest.json is damaged", _AGAIN) from exc
    if kind != _KIND:
        raise SnapshotError("The file is a zip, but not a snapshot of the workbench", _AGAIN)
    if isinstance(schema, int) and schema > SCHEMA:
        raise SnapshotNewer(
            f"The snapshot has schema {schema}, and this version of the workbench reads up to {SCHEMA}",
            "Open it with a newer version of the workbench; its index.html opens in any browser",
        )
    form = "The snapshot's manifest.json does not have the form of its schema"
    try:
        digest = body.pop("digest")
        if hashlib.sha256(_json(body)).hexdigest() != digest:
            raise SnapshotError("The snapshot's manifest.json was changed after it was saved", _AGAIN)
        parts = {str(n): (int(p["bytes"]), str(p["sha256"])) for n, p in body["parts"].items()}
        manifest = Manifest(_read_value(About, body["about"]), parts, str(digest), int(schema))
    except _FORM_FAULTS as exc:
        raise SnapshotError(form, _AGAIN) from exc
    unknown = sorted(set(parts) - {PAGE, *NAMES})
    lacking = [n for n in (PAGE, *ALWAYS) if n not in parts]
    if unknown or lacking:
        what = f"names the part {unknown[0]!a}, which its schema does not know" if unknown else f"lacks {lacking[0]}"
        raise SnapshotError(f"The snapshot's manifest.json {what}", _AGAIN)
    if _canonical(manifest.about, manifest.parts, manifest.schema) != _json(body):
        raise SnapshotError(form, _AGAIN)
    return manifest


# --- records --------------------------------------------------------------------------------------------------------------


@functools.cache
def _kinds(record: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(record)


def _read_value(kind: Any, value: Any) -> Any:
    """A plain value as a record, list, mapping or scalar of a type. TypeError, ValueError or KeyError for any other form."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if is_dataclass(kind):
        known = {f.name: f for f in fields(kind)}
        needed = {n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING}
        if not isinstance(value, dict) or not needed <= set(value) <= set(known):
            raise TypeError("not the keys of its schema")
        made: Any = kind
        return made(**{n: _read_value(_kinds(made)[n], v) for n, v in value.items()})
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"{type(value).__name__} where a list should be")
        return tuple(_read_value(arguments[0], v) for v in value)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {_read_value(arguments[0], k): _read_value(arguments[1], v) for k, v in value.items()}
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        records = [a for a in arguments if is_dataclass(a)]
        if records:
            return _read_value(records[0], value)
        if type(value) not in arguments:
            raise TypeError(f"{type(value).__name__} is of another type")
        return value
    if issubclass(kind, StrEnum):
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{type(value).__name__} where {kind.__name__} should be")
    return value


# --- data parts -----------------------------------------------------------------------------------------------------------


def write_parts(content: Content) -> dict[str, bytes]:
    """The data parts of a content, by name, in a fixed order. Raises SnapshotError for more than `read_parts` takes."""
    records = {SEARCHES: content.searches, EVALUATIONS: content.evaluations, SWEEPS: content.sweeps}
    listed = {name: [_plain(record) for record in held] for name, held in records.items() if held or name == SEARCHES}
    tables = [table for name in listed for table in _LISTS[name][1]]
    try:
        _bounded({part_of(table): _unfolded(content.table(table)) for table in tables})
        parts = {name: _to_yaml(name, values) for name, values in listed.items()}
    except SnapshotError as exc:
        raise SnapshotError(exc.message, "Save fewer searches or evaluations in one snapshot") from exc
    return parts | {part_of(table): _to_parquet(table, content.table(table)) for table in tables}


def _plain(record: Any) -> dict[str, Any]:
    """A record as YAML holds it; a search without depths as they were written before there were any."""
    values = {k: dict(v) if isinstance(v, Mapping) else v for k, v in asdict(record).items()}
    if values.get("depths") == {}:
        del values["depths"]
    return values


def read_parts(parts: Mapping[str, bytes]) -> Content:
    """The content of data parts. Raises SnapshotError where one is missing or has not the form of the schema."""
    for name in (ALWAYS[0], *(n for n in (EVALUATIONS, SWEEPS) if n in parts)):
        for wanted in (name, *map(part_of, _LISTS[name][1])):
            if wanted not in parts:
                raise SnapshotError(f"The snapshot lacks its part {wanted}", _AGAIN)
    searches, evaluations, sweeps = (_from_yaml(name, parts[name]) if name in parts else () for name in _LISTS)
    if any(not 0 <= n < len(evaluations) for s in sweeps for n in (s.before, s.after)):
        raise _malformed(SWEEPS, "names an evaluation that is not there")
    _bounded({name: _declared(name, data) for name, data in parts.items() if name.endswith(".parquet")})
    tables, sizes = {}, {}
    for table in (t for t in TABLES if part_of(t) in parts):
        tables[table] = _from_parquet(table, parts[part_of(table)])
        sizes[part_of(table)] = _unfolded(tables[table])
        _bounded(sizes)
    counts = {"search": len(searches), "evaluation": len(evaluations), "sweep": len(sweeps)}
    for table, frame in tables.items():
        if len(frame) and frame.columns[0] in counts:
            numbers = frame[frame.columns[0]].to_list()
            if min(numbers) < 0 or max(numbers) >= counts[frame.columns[0]]:
                raise _malformed(part_of(table), "names a search or an evaluation that is not there")
    return Content(searches, evaluations, sweeps, tables)


def _bounded(sizes: Mapping[str, int]) -> None:
    """Refuse tables of more bytes in memory than a snapshot may have, by part. Raises SnapshotError."""
    for name, size in sizes.items():
        if size > MOST_TABLE_BYTES:
            raise _too_long(name, size, MOST_TABLE_BYTES)
    if (total := sum(sizes.values())) > MOST_TABLES_BYTES:
        most = f"more than the {MOST_TABLES_BYTES:,} that they may have"
        raise SnapshotError(f"The snapshot's tables unfold into {total:,} bytes, {most}", _AGAIN)


def _too_long(name: str, size: int, most: int) -> SnapshotError:
    return _malformed(name, f"unfolds into {size:,} bytes, more than the {most:,} that it may have")


class _Dumper(yaml.SafeDumper):
    """Writes each value in its place, also one that is there twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Text with any character that YAML may take for a line's end is quoted, where every such character is an escape."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)


class _Loader(yaml.SafeLoader):
    """Reads plain values only, and not too many: an alias can unfold a small text into a huge one."""

    values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("it has an alias")
        self.values += 1
        if self.values > MOST_VALUES:
            raise OverflowError
        return super().compose_node(parent, index)


def _values(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(_values, value.values()))
    return 1 + sum(map(_values, value)) if isinstance(value, list | tuple) else 1


def _too_many(name: str) -> SnapshotError:
    return _malformed(name, f"holds more than the {MOST_VALUES:,} values that it may have")


def _to_yaml(name: str, values: list[dict[str, Any]]) -> bytes:
    if _values(values) > MOST_VALUES:
        raise _too_many(name)
    data = str(yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)).encode("utf-8")
    if len(data) > MOST_YAML_BYTES:
        raise _too_long(name, len(data), MOST_YAML_BYTES)
    return data


def _from_yaml(name: str, data: bytes) -> tuple[Any, ...]:
    if len(data) > MOST_YAML_BYTES:
        raise _too_long(name, len(data), MOST_YAML_BYTES)
    try:
        values = yaml.load(data.decode("utf-8"), Loader=_Loader)  # noqa: S506 - a safe loader of ours
        if not isinstance(values, list):
            raise TypeError("not a list")
        return tuple(_read_value(_LISTS[name][0], value) for value in values)
    except OverflowError as exc:
        raise _too_many(name) from exc
    except _FORM_FAULTS as exc:
        raise _malformed(name, "does not have the form of its schema") from exc


def _to_parquet(table: str, frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    ordered = frame.select(list(TABLES[table])).rechunk()
    rows = max(1, len(ordered))
    ordered.write_parquet(file, compression="zstd", compression_level=9, statistics=False, row_group_size=rows)
    return file.getvalue()


def _from_parquet(table: str, data: bytes) -> pl.DataFrame:
    """A table of a part. Raises SnapshotError for anything that has not the schema's columns and types."""
    import polars as pl

    name = part_of(table)
    try:
        frame = pl.read_parquet(io.BytesIO(data), use_statistics=False)
    except (pl.exceptions.PolarsError, OSError, ValueError, pl.exceptions.PanicException) as exc:
        raise _malformed(name, "is not a Parquet table") from exc
    if dict(frame.schema) != columns(table):
        raise _malformed(name, "does not have the columns of its schema")
    if "label" in frame.columns:
        allowed = [str(label) for label in Label if label is not Label.ADDED or table == "passages"]
        if not frame["label"].is_in(allowed).all():
            raise _malformed(name, "has an unknown label")
    for column, kind in TABLES[table].items():
        if not kind.endswith("?") and frame[column].null_count():
            raise _malformed(name, f"has empty values in its column {column}")
        if kind.startswith("F") and not frame[column].drop_nulls().is_finite().all():
            raise _malformed(name, f"has values in its column {column} that are not finite numbers")
    return frame


def _declared(name: str, data: bytes) -> int:
    """Bytes in memory that a table declares, before it is read: its pages, or its values where these take more."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        head = pq.read_metadata(io.BytesIO(data))
        groups = [head.row_group(n) for n in range(head.num_row_groups)]
        held = [(group, group.column(n)) for group in groups for n in range(group.num_columns)]
        return sum(max(_WIDTH * max(c.num_values, g.num_rows), c.total_uncompressed_size) for g, c in held)
    except (pa.ArrowException, OSError, ValueError) as exc:
        raise _malformed(name, "is not a Parquet table") from exc


def _unfolded(frame: pl.DataFrame) -> int:
    """Bytes of a table in memory with every value written out."""
    import polars as pl

    size = 0
    for column in frame.iter_columns():
        flat = column.explode() if isinstance(column.dtype, pl.List) else column
        size += _WIDTH * max(len(flat), len(column))
        size += int(flat.str.len_bytes().sum()) if flat.dtype == pl.String else 0
    return size
