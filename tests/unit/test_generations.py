"""The corpus folder: publishing, pinning, removing, and what damage looks like."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.errors import CorpusDamaged, CorpusLocked, CorpusNotFound
from workbench.store import generations, locks
from workbench.store.generations import Layout, Manifest, clean, current, measure_parts, next_number, pin, publish


def make(corpus: Path, text: str = "x") -> str:
    """Publish a generation that holds one small part."""
    layout = Layout(corpus)
    layout.building.mkdir(parents=True)
    (layout.building / "part").write_text(text)
    name = f"{next_number(corpus):06d}-{text}"
    parts = measure_parts(layout.building)
    publish(corpus, layout.building, Manifest(name, "2026-01-01T00:00:00Z", "d", {"documents": 1}, parts))
    return name


def test_the_pointer_names_the_newest_generation_and_numbers_only_grow(tmp_path: Path):
    """Also after older ones are removed."""
    assert make(tmp_path) == "000001-x"
    assert make(tmp_path, "y") == "000002-y"
    assert current(tmp_path) == "000002-y"
    assert clean(tmp_path) == ["000001-x"]
    assert next_number(tmp_path) == 3


def test_a_reader_keeps_its_generation_until_it_lets_go(tmp_path: Path):
    """The writer removes an old generation only when nobody reads it."""
    first = make(tmp_path)
    held = pin(tmp_path)
    make(tmp_path, "y")
    assert clean(tmp_path) == []
    assert (held.folder / "part").read_text() == "x"
    also = pin(tmp_path)
    assert also.manifest.generation == "000002-y"
    held.close()
    assert clean(tmp_path) == [first]
    also.close()


def test_a_manifest_reads_back_as_it_was_written(tmp_path: Path):
    """Every field, encoders included."""
    from workbench.records import EncoderIdentity

    made = Manifest(
        "000001-x", "2026-01-01T00:00:00Z", "d", {"documents": 1}, {},
        {"k": EncoderIdentity("hashing", "ab", "hashing 1", 8, 16)}, "k", {"duckdb": "2"},
    )  # fmt: skip
    (tmp_path / "manifest.json").write_text(made.to_json())
    assert Manifest.read(tmp_path) == made


def test_no_corpus_says_how_to_make_one(tmp_path: Path):
    """An empty folder, no folder, and a file are all no corpus."""
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(CorpusNotFound, match="workbench index PATH"):
            pin(place)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "part").unlink(), "is missing"),
        (lambda folder: (folder / "part").write_text("longer"), "has 6 bytes instead of 1"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "manifest.json").unlink(), "cannot be read"),
        (lambda folder: (folder / "lock").unlink(), "is missing"),
    ],
)
def test_damage_is_named_with_its_remedy(tmp_path: Path, damage, says: str):
    """The message names the file, the remedy what to do."""
    make(tmp_path)
    damage(Layout(tmp_path).folder("000001-x"))
    with pytest.raises(CorpusDamaged, match=says) as error:
        pin(tmp_path)
    assert "index again" in error.value.remedy


def test_verify_finds_a_changed_byte(tmp_path: Path):
    """Sizes are compared at every open, digests when asked."""
    make(tmp_path)
    held = pin(tmp_path)
    generations.verify(held.folder, held.manifest)
    (held.folder / "part").write_text("z")
    with pytest.raises(CorpusDamaged, match="digest"):
        generations.verify(held.folder, held.manifest)
    held.close()


def test_a_format_of_another_version_is_refused(tmp_path: Path):
    """Rather than read wrongly."""
    make(tmp_path)
    manifest = Layout(tmp_path).folder("000001-x") / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(CorpusDamaged, match="format 99"):
        pin(tmp_path)


def test_a_pointer_that_leads_out_of_the_folder_is_refused(tmp_path: Path):
    """It names a generation and nothing else."""
    Layout(tmp_path).pointer.write_text("../../etc")
    with pytest.raises(CorpusDamaged, match="does not name a generation"):
        current(tmp_path)


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path):
    """What was being built, a pointer not yet swapped, a generation never pointed to, one half removed."""
    name = make(tmp_path)
    layout = Layout(tmp_path)
    layout.building.mkdir()
    (layout.building / "half").write_text("x")
    (tmp_path / "current.new").write_text("x")
    for left, files in (("000002-z", ("lock", "part")), ("000003-z", ("part",))):
        layout.folder(left).mkdir()
        for file in files:
            (layout.folder(left) / file).write_text("")
    assert clean(tmp_path) == ["000002-z", "000003-z"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["current", "generations"]
    assert [p.name for p in layout.generations.iterdir()] == [name]


def test_a_second_writer_is_refused_with_the_holders_process_id(tmp_path: Path):
    """Within a process as between two."""
    path = tmp_path / "writer.lock"
    with locks.writer(path, tmp_path), pytest.raises(CorpusLocked, match=f"process {os.getpid()}"):
        locks.writer(path, tmp_path)
    locks.writer(path, tmp_path).close()


def test_a_second_writer_may_wait(tmp_path: Path):
    """It goes on when the first is done; abort ends the wait."""
    path = tmp_path / "writer.lock"
    held = locks.writer(path, tmp_path)
    with pytest.raises(CorpusLocked):
        locks.writer(path, tmp_path, wait=True, abort=lambda: True)
    timer = threading.Timer(0.05, held.close)
    timer.start()
    locks.writer(path, tmp_path, wait=True).close()
    timer.join()


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path):
    """The kernel drops it: nobody has to remove a lock file by hand."""
    path = tmp_path / "writer.lock"
    script = (
        "import sys, os; from pathlib import Path; from workbench.store import locks;"
        "lock = locks.writer(Path(sys.argv[1]), Path('.')); print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(CorpusLocked, match=f"process {process.pid}"):
        locks.writer(path, tmp_path)
    process.kill()
    process.communicate()
    locks.writer(path, tmp_path).close()


def test_readers_that_open_while_generations_come_and_go_always_get_a_whole_one(tmp_path: Path):
    """A reader between pointer and lock reads the pointer again; nobody ever waits or fails."""
    make(tmp_path)
    stop = threading.Event()

    def read() -> int:
        opened = 0
        while not stop.is_set():
            held = pin(tmp_path)
            assert (held.folder / "part").read_text() == held.manifest.generation.partition("-")[2]
            held.close()
            opened += 1
        return opened

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for i in range(25):
                make(tmp_path, "abcdefgh"[i % 8])
                clean(tmp_path)
        finally:
            stop.set()
        assert min(reader.result() for reader in readers) > 0
