"""The file of a snapshot: every fault is one readable sentence, and nothing is unfolded that should not be."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from snapshot_cases import members, shrunk, small, zipped

import workbench as wb
from workbench.errors import SnapshotError, SnapshotNewer
from workbench.snapshot import archive


@pytest.fixture(scope="module")
def snapshot(sample: wb.Corpus) -> wb.Snapshot:
    return shrunk(sample.search("how do retries work", keywords="retry").snapshot("for its faults"))


@pytest.fixture(scope="module")
def files(snapshot: wb.Snapshot) -> dict[str, bytes]:
    return members(snapshot.to_bytes())


def refused(data: bytes) -> SnapshotError:
    """The error of a file; its message is one sentence with a remedy."""
    with pytest.raises(SnapshotError) as caught:
        wb.Snapshot.load(data)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_changed_byte_of_any_part_is_named(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        at = len(data) // 2
        changed = {**files, name: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]}
        assert name in refused(zipped(changed)).message


def test_a_missing_part_is_named(files: dict[str, bytes]) -> None:
    for name in files:
        assert name in refused(zipped({n: d for n, d in files.items() if n != name})).message


def test_a_part_too_many_is_refused(files: dict[str, bytes]) -> None:
    assert "extra.txt" in refused(zipped({**files, "extra.txt": b"hello"})).message


def test_a_newer_schema_is_said_as_such(files: dict[str, bytes]) -> None:
    body = json.loads(files[archive.MANIFEST])
    newer = zipped({**files, archive.MANIFEST: json.dumps({**body, "schema": 9}).encode(), "new.part": b"x"})
    error = refused(newer)
    assert isinstance(error, SnapshotNewer)
    assert "schema 9" in error.message
    assert "index.html" in error.remedy


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/passwd", "..\\evil", "C:\\evil", "\\\\host\\x"])
def test_a_path_outside_the_file_is_refused(files: dict[str, bytes], name: str) -> None:
    assert "outside itself" in refused(zipped({**files, name: b"x"})).message


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_unfolds(files: dict[str, bytes]) -> None:
    bomb = zipped({**files, "searches.yaml": bytes(300 << 20)})
    assert len(bomb) < 1 << 20
    assert "unfolds" in refused(bomb).message


def test_a_table_of_one_value_is_refused_before_it_unfolds(snapshot: wb.Snapshot, monkeypatch: Any) -> None:
    """A value repeated a million times takes a few bytes in the file; each table is bounded, and all of them."""
    row = snapshot.content.table("sources").head(1)
    monkeypatch.setattr(archive, "MOST_TABLE_BYTES", 5 << 20)
    for many, size in (
        (row.sample(50_000, with_replacement=True), 50_000 * 7 * 16),
        (row.with_columns(source=pl.lit("x" * 1000)).sample(6_000, with_replacement=True), 6_000 * (7 * 16 + 1000)),
    ):
        data = _table(many)
        assert len(data) < 100_000
        forged = small(snapshot.about, snapshot.content, sources_parquet=data).to_bytes()
        assert f"sources.parquet unfolds into {size:,} bytes, more than" in refused(forged).message
    monkeypatch.setattr(archive, "MOST_TABLES_BYTES", 1_000)
    assert "tables unfold into" in refused(snapshot.to_bytes()).message


def test_a_text_of_too_many_values_is_refused_read_or_written(snapshot: wb.Snapshot, monkeypatch: Any) -> None:
    """Each takes a thousand bytes while it is read; what is written is bounded as what is read."""
    forged = small(snapshot.about, snapshot.content, searches_yaml=b"[" + b"1," * 3_000 + b"1]")
    monkeypatch.setattr(archive, "MOST_VALUES", 2_000)
    assert "searches.yaml holds more than the 2,000 values" in refused(forged.to_bytes()).message
    monkeypatch.setattr(archive, "MOST_VALUES", 100)
    with pytest.raises(SnapshotError, match=r"Save fewer searches"):
        archive.write_parts(snapshot.content)
    monkeypatch.setattr(archive, "MOST_YAML_BYTES", 10_000)
    long = zipped({**members(forged.to_bytes()), "searches.yaml": b"#" * 20_000})
    assert "unfolds into 20,000 bytes, more than the 10,000" in refused(long).message


def test_a_part_that_lies_about_its_size_is_refused(files: dict[str, bytes]) -> None:
    data = bytearray(zipped({**files, "searches.yaml": bytes(1 << 20)}))
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = data.find(signature)
        while at >= 0:
            if b"searches.yaml" in data[at : at + 70]:
                data[at + offset : at + offset + 4] = len(files["searches.yaml"]).to_bytes(4, "little")
            at = data.find(signature, at + 1)
    assert "searches.yaml" in refused(bytes(data)).message


def test_the_same_part_twice_is_refused(files: dict[str, bytes]) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name, data in files.items():
            out.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate name"):
            out.writestr("searches.yaml", b"[]")
    assert "twice" in refused(file.getvalue()).message


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_another_packing_is_refused(files: dict[str, bytes], method: int) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, data in files.items():
            out.writestr(name, data)
    assert "packed in a way" in refused(file.getvalue()).message


@pytest.mark.parametrize("data", [b"", b"PK", b"hello", b"PK\x05\x06" + bytes(18), b"<!doctype html>" * 100])
def test_what_is_no_zip_is_no_snapshot(data: bytes) -> None:
    assert "not a snapshot" in refused(data).message


def test_another_zip_is_no_snapshot() -> None:
    assert "no manifest.json" in refused(zipped({"word/document.xml": b"<w/>"})).message
    assert (
        "not a snapshot of the workbench" in refused(zipped({"manifest.json": b'{"schema":1,"kind":"other"}'})).message
    )


def _resigned(files: dict[str, bytes], change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file whose manifest was changed by somebody who can compute its digest."""
    body = json.loads(files[archive.MANIFEST])
    del body["digest"]
    change(body)
    text = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    body["digest"] = hashlib.sha256(text).hexdigest()
    return zipped({**files, archive.MANIFEST: json.dumps(body).encode()})


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b["about"].update(note=5),
        lambda b: b["about"].update(passages="all"),
        lambda b: b["about"].update(more="x"),
        lambda b: b["about"]["origin"].pop("digest"),
        lambda b: b["about"].update(principal={"tenant": 1, "roles": []}),
        lambda b: b["parts"].update({"other.yaml": {"bytes": 0, "sha256": ""}}),
        lambda b: b["parts"].pop("documents.parquet"),
        lambda b: b.update(schema="1"),
        lambda b: b.update(parts=[]),
    ],
)
def test_a_manifest_of_another_form_is_refused_whatever_its_digest(
    files: dict[str, bytes], change: Callable[[dict[str, Any]], None]
) -> None:
    assert "manifest.json" in refused(_resigned(files, change)).message


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        b"- &a [x, x]\n- *a\n",
        b"a: &a [1]\nb: *a\n",
        b"- !!python/object/apply:os.system [id]\n",
        b"{}",
        b"- {query: 1}",
        b"[" * 5000,
        b"\xff\xfe",
        b"- query: [",
    ],
)
def test_yaml_of_another_form_is_refused(snapshot: wb.Snapshot, text: bytes) -> None:
    forged = small(snapshot.about, snapshot.content, searches_yaml=text)
    assert "searches.yaml" in refused(forged.to_bytes()).message


def _table(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def test_a_table_of_another_form_is_refused(snapshot: wb.Snapshot) -> None:
    """Other columns or types, empty values, numbers that are none, rows of a search that is not there, no table at all."""
    good = snapshot.content.table("candidates")
    for frame in (
        good.drop("score"),
        good.with_columns(pl.col("score").cast(pl.Float32)),
        good.with_columns(score=pl.lit(float("nan"))),
        good.with_columns(chunk_id=pl.lit(None, pl.String)),
        good.with_columns(label=pl.lit("Best")),
        good.with_columns(search=pl.lit(7, pl.Int64)),
        good.with_columns(search=pl.lit(-1, pl.Int64)),
    ):
        forged = small(snapshot.about, snapshot.content, candidates_parquet=_table(frame))
        assert "candidates.parquet" in refused(forged.to_bytes()).message
    forged = small(snapshot.about, snapshot.content, candidates_parquet=b"PAR1" + bytes(40) + b"PAR1")
    assert "not a Parquet table" in refused(forged.to_bytes()).message
