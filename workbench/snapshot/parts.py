"""A snapshot's parts as bytes: YAML for what a person may want to read, Parquet for tables.

The same content gives the same bytes: keys in a fixed order, no statistics, one row group, one compression. What is read is
checked against the schema, whoever wrote it: the digests say that a part is as it was saved, not that it was honestly made.
YAML is read without aliases and tables within bounds, so that a small file cannot unfold into a large one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import yaml

from workbench.errors import SnapshotError
from workbench.records import Label, Step, Unavailable
from workbench.snapshot.model import (
    EVALUATION_TABLES,
    SEARCH_TABLES,
    SWEEP_TABLES,
    TABLES,
    Content,
    SavedEvaluation,
    SavedMean,
    SavedSearch,
    SavedSweep,
    columns,
    required,
)

if TYPE_CHECKING:
    import polars as pl

SEARCHES, EVALUATIONS, SWEEPS = "searches.yaml", "evaluations.yaml", "sweeps.yaml"
MOST_YAML_BYTES, MOST_VALUES = 16 << 20, 400_000
"""Bounds of a YAML part: each of its values takes a thousand bytes while it is read."""
MOST_TABLE_BYTES, MOST_TABLES_BYTES = 512 << 20, 1 << 30
"""Bounds of a table, and of all of them, in memory: a value repeated a million times takes a few bytes in the file."""
_WIDTH = 16
"""Bytes of a value in memory, besides a text's own."""
_MEND = "Ask for the snapshot again, or make a new one"


def part_of(table: str) -> str:
    """Name of a table's part."""
    return f"{table}.parquet"


NAMES = (SEARCHES, EVALUATIONS, SWEEPS, *map(part_of, TABLES))
"""Every data part that schema 1 knows."""
ALWAYS = (SEARCHES, *map(part_of, SEARCH_TABLES))
"""The parts that every snapshot has."""


def write(content: Content) -> dict[str, bytes]:
    """The data parts of a content, by name, in a fixed order. Raises SnapshotError for more than `read` takes."""
    listed = {SEARCHES: [_search_values(s) for s in content.searches]}
    tables = [*SEARCH_TABLES]
    if content.evaluations:
        listed[EVALUATIONS] = [_plain_values(e) for e in content.evaluations]
        tables += EVALUATION_TABLES
    if content.sweeps:
        listed[SWEEPS] = [_plain_values(s) for s in content.sweeps]
        tables += SWEEP_TABLES
    try:
        _bounded({part_of(table): _unfolded(content.table(table)) for table in tables})
        parts = {name: _to_yaml(name, values) for name, values in listed.items()}
    except SnapshotError as exc:
        raise SnapshotError(exc.message, "Save fewer searches or evaluations in one snapshot") from exc
    return parts | {part_of(table): _to_parquet(table, content.table(table)) for table in tables}


def read(parts: Mapping[str, bytes]) -> Content:
    """The content of data parts.

    Raises:
        SnapshotError: A part is missing or has not the form of the schema.
    """
    wanted = [*ALWAYS]
    for listed, names in ((EVALUATIONS, EVALUATION_TABLES), (SWEEPS, SWEEP_TABLES)):
        wanted += map(part_of, names) if listed in parts else ()
    for name in wanted:
        if name not in parts:
            raise SnapshotError(f"The snapshot lacks its part {name}", _MEND)
    searches = _each(SEARCHES, parts[SEARCHES], _search)
    evaluations = _each(EVALUATIONS, parts[EVALUATIONS], _evaluation) if EVALUATIONS in parts else ()
    sweeps = _each(SWEEPS, parts[SWEEPS], _sweep) if SWEEPS in parts else ()
    if any(not 0 <= n < len(evaluations) for s in sweeps for n in (s.before, s.after)):
        raise _malformed(SWEEPS, "names an evaluation that is not there")
    _bounded({name: _declared(name, data) for name, data in parts.items() if name.endswith(".parquet")})
    tables, sizes = {}, {}
    for table in (t for t in TABLES if part_of(t) in parts):
        tables[table] = _from_parquet(table, parts[part_of(table)])
        sizes[part_of(table)] = _unfolded(tables[table])
        _bounded(sizes)
    for table, count in (
        ("candidates", len(searches)), ("sources", len(searches)), ("passages", len(searches)),
        ("measures", len(evaluations)), ("runs", len(evaluations)), ("queries", len(evaluations)),
        ("points", len(sweeps)),
    ):  # fmt: skip
        if table in tables and len(tables[table]):
            numbers = tables[table][tables[table].columns[0]]
            low, high = int(numbers.min() or 0), int(numbers.max() or 0)  # type: ignore[arg-type]
            if low < 0 or high >= count:
                raise _malformed(part_of(table), "names a search or an evaluation that is not there")
    return Content(searches, evaluations, sweeps, tables)


def _malformed(name: str, why: str) -> SnapshotError:
    return SnapshotError(f"The snapshot's part {name} {why}", _MEND)


def _bounded(sizes: Mapping[str, int]) -> None:
    """Refuse tables of more bytes in memory than a snapshot may have, by part. Raises SnapshotError."""
    for name, size in sizes.items():
        if size > MOST_TABLE_BYTES:
            raise _malformed(name, f"unfolds into {size:,} bytes, more than the {MOST_TABLE_BYTES:,} that it may have")
    if (total := sum(sizes.values())) > MOST_TABLES_BYTES:
        raise SnapshotError(
            f"The snapshot's tables unfold into {total:,} bytes, more than the {MOST_TABLES_BYTES:,} that they may have",
            _MEND,
        )


# --- YAML ------------------------------------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Writes each value where it stands, also one that stands twice."""

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
    """How many values, keys too, there are in a value."""
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(_values, value.values()))
    return 1 + sum(map(_values, value)) if isinstance(value, list | tuple) else 1


def _to_yaml(name: str, values: list[dict[str, Any]]) -> bytes:
    if _values(values) > MOST_VALUES:
        raise _too_many(name)
    data = str(yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)).encode("utf-8")
    if len(data) > MOST_YAML_BYTES:
        raise _too_long(name, len(data))
    return data


def _too_many(name: str) -> SnapshotError:
    return _malformed(name, f"holds more than the {MOST_VALUES:,} values that it may have")


def _too_long(name: str, size: int) -> SnapshotError:
    return _malformed(name, f"unfolds into {size:,} bytes, more than the {MOST_YAML_BYTES:,} that it may have")


def _each(name: str, data: bytes, make: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The records of a YAML part. Raises SnapshotError for anything that has not their form."""
    if len(data) > MOST_YAML_BYTES:
        raise _too_long(name, len(data))
    try:
        values = yaml.load(data.decode("utf-8"), Loader=_Loader)  # nosec B506 - a safe loader of ours
        if not isinstance(values, list):
            raise TypeError("it is no list")
        return tuple(make(value) for value in values)
    except OverflowError as exc:
        raise _too_many(name) from exc
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise _malformed(name, "does not have the form of its schema") from exc


def _search_values(search: SavedSearch) -> dict[str, Any]:
    values = asdict(search)
    values["settings"] = {k: list(v) if isinstance(v, tuple) else v for k, v in search.settings.items()}
    values["timings_ms"] = dict(search.timings_ms)
    if not search.depths:
        del values["depths"]  # as what was saved before there were any
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _plain_values(record: SavedEvaluation | SavedSweep) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(record).items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text should be")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{type(values).__name__} where a list should be")
    return tuple(_text(v) for v in values)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{type(value).__name__} where a number should be")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} where a whole number should be")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{type(value).__name__} where yes or no should be")
    return value


def _setting(value: Any) -> Any:
    if value is not None and not isinstance(value, (str, int, float, bool)):
        raise TypeError("a setting is one plain value")
    return value


def _search(v: Any) -> SavedSearch:
    return SavedSearch(
        query=_text(v.pop("query")), keywords=_text(v.pop("keywords")), context=_text(v.pop("context")),
        mode=_text(v.pop("mode")), filters=_text(v.pop("filters")), plan=_text(v.pop("plan")),
        settings={_text(k): _setting(x) for k, x in v.pop("settings").items()},
        score_kind=_text(v.pop("score_kind")), sources=_texts(v.pop("sources")), approximate=_texts(v.pop("approximate")),
        unavailable=tuple(Unavailable(_text(u["source"]), _text(u["reason"]), _text(u["remedy"])) for u in v.pop("unavailable")),
        timings_ms={_text(k): _number(x) for k, x in v.pop("timings_ms").items()},
        funnel=tuple(
            Step(_text(s["step"]), _text(s["source"]), _whole(s["entered"]), _whole(s["left"]), _text(s["reason"]))
            for s in v.pop("funnel")
        ),
        messages=_texts(v.pop("messages")), warnings=_texts(v.pop("warnings")),
        context_left_out=_flag(v.pop("context_left_out")),
        depths={_text(k): _whole(x) for k, x in v.pop("depths", {}).items()}, **_nothing_more(v),
    )  # fmt: skip


def _evaluation(v: Any) -> SavedEvaluation:
    means = tuple(
        SavedMean(_text(m["measure"]), _number(m["mean"]), _maybe(m["low"]), _maybe(m["high"]), _whole(m["queries"]))
        for m in v.pop("means")
    )
    return SavedEvaluation(
        name=_text(v.pop("name")), means=means, judgments=_whole(v.pop("judgments")),
        judgments_name=_text(v.pop("judgments_name")), judgments_digest=_text(v.pop("judgments_digest")),
        coverage={_text(k): _maybe(x) for k, x in v.pop("coverage").items()},
        warnings=_texts(v.pop("warnings")), seed=_whole(v.pop("seed")), **_nothing_more(v),
    )  # fmt: skip


def _sweep(v: Any) -> SavedSweep:
    return SavedSweep(
        measure=_text(v.pop("measure")), fields=_texts(v.pop("fields")), baseline=_text(v.pop("baseline")),
        best=_text(v.pop("best")), before=_whole(v.pop("before")), after=_whole(v.pop("after")),
        verdict=_text(v.pop("verdict")), agreement=_text(v.pop("agreement")), difference=_number(v.pop("difference")),
        low=_maybe(v.pop("low")), high=_maybe(v.pop("high")), p=_number(v.pop("p")), oracle=_number(v.pop("oracle")),
        search=_text(v.pop("search")), combinations=_whole(v.pop("combinations")), complete=_flag(v.pop("complete")),
        warnings=_texts(v.pop("warnings")), **_nothing_more(v),
    )  # fmt: skip


def _maybe(value: Any) -> Any:
    """None, or a number as it is: a count stays whole."""
    if value is not None:
        _number(value)
    return value


def _nothing_more(values: dict[str, Any]) -> dict[str, Any]:
    if values:
        raise TypeError("it has keys that the schema does not know")
    return {}


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _to_parquet(table: str, frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    ordered = frame.select(list(TABLES[table])).rechunk()
    ordered.write_parquet(
        file, compression="zstd", compression_level=9, statistics=False, row_group_size=max(1, len(ordered))
    )
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
            raise _malformed(name, "has a label that is none")
    for column in required(table):
        if frame[column].null_count():
            raise _malformed(name, f"has empty values in its column {column}")
    for column in frame.columns:
        if frame[column].dtype == pl.Float64 and not frame[column].drop_nulls().is_finite().all():
            raise _malformed(name, f"has values in its column {column} that are no numbers")
    return frame


def _declared(name: str, data: bytes) -> int:
    """Bytes in memory that a table declares, before it is read: its pages, or its values where these take more."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        head = pq.read_metadata(io.BytesIO(data))
        groups = [head.row_group(n) for n in range(head.num_row_groups)]
        columns = [(group, group.column(n)) for group in groups for n in range(group.num_columns)]
        return sum(max(_WIDTH * max(c.num_values, g.num_rows), c.total_uncompressed_size) for g, c in columns)
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
