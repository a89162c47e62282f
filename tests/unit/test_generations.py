"""The corpus folder: publishing, pinning, removing, and what damage looks like."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench.errors import CorpusDamaged, CorpusError, CorpusLocked, CorpusNotFound
from workbench.indexing.run import disk_errors
from workbench.records import EncoderIdentity
from workbench.store import generations, locks
from workbench.store.generations import Layout, Manifest, clean, current, measure_parts, next_number, pin, publish
from workbench.store.journal import Journal, forget, journal_name


def make(corpus: Path, text: str = "x") -> str:
    layout = Layout(corpus)
    layout.building.mkdir(parents=True)
    (layout.building / "part").write_text(text)
    name = f"{next_number(corpus):06d}-{text}"
    made = Manifest(name, "2026-01-01T00:00:00Z", "d", {"documents": 1}, measure_parts(layout.building))
    generations.complete(layout.building, made)
    publish(corpus, layout.building, made)
    return name


def test_the_pointer_names_the_newest_generation_and_numbers_only_grow(tmp_path):
    assert make(tmp_path) == "000001-x"
    assert make(tmp_path, "y") == "000002-y"
    assert current(tmp_path) == "000002-y"
    assert clean(tmp_path) == ["000001-x"]
    assert next_number(tmp_path) == 3


def test_the_newest_generation_answers_until_its_readers_let_go(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(CorpusNotFound, match="workbench index PATH"):
            pin(place)
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


def harm_manifest(folder: Path, change: Callable[[str], str]) -> None:
    (folder / "manifest.json").write_text(change((folder / "manifest.json").read_text()))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "part").unlink(), "is missing"),
        (lambda folder: (folder / "part").write_text("longer"), "has 6 bytes instead of 1"),
        (lambda folder: harm_manifest(folder, lambda text: "{"), "is not as it was written"),
        (lambda folder: harm_manifest(folder, lambda text: text.replace("2026", "2027")), "does not have the digest"),
        (lambda folder: (folder / "lock").unlink(), "is missing"),
    ],
)
def test_damage_is_named_with_its_remedy(tmp_path, damage, says):
    make(tmp_path)
    damage(Layout(tmp_path).folder("000001-x"))
    with pytest.raises(CorpusDamaged, match=says) as error:
        pin(tmp_path)
    assert f"workbench doctor --repair --corpus {tmp_path}" in error.value.remedy


def test_a_part_is_compared_with_its_digest_once_and_again_when_somebody_wrote_to_it(tmp_path):
    make(tmp_path)
    with closing(pin(tmp_path)) as held:
        held.check()
        part = held.folder / "part"
        times = part.stat()
        part.write_text("z")
        os.utime(part, ns=(times.st_atime_ns, times.st_mtime_ns))
        held.check()  # this reader compared it before
        with pytest.raises(CorpusDamaged, match="digest"):
            held.check(again=True)
        with pytest.raises(CorpusDamaged, match="digest"):
            pin(tmp_path)
        part.write_text("x")
        held.check()
    folder = Layout(tmp_path).folder("000001-x")
    newer = replace(Manifest.read(folder), format=99).to_json()
    harm_manifest(folder, lambda text: newer)
    with pytest.raises(CorpusError, match="format 99") as error:
        pin(tmp_path)
    assert not isinstance(error.value, CorpusDamaged)


def test_a_missing_pointer_is_the_newest_generation(tmp_path):
    make(tmp_path)
    held = pin(tmp_path)
    make(tmp_path, "y")
    Layout(tmp_path).pointer.unlink()
    assert generations.exists(tmp_path)
    assert current(tmp_path) == "000002-y"
    held.close()
    assert clean(tmp_path) == ["000001-x"]
    assert make(tmp_path, "z") == "000003-z"


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    name = make(tmp_path)
    layout = Layout(tmp_path)
    layout.building.mkdir()
    (layout.building / "half").write_text("x")
    (tmp_path / ".current-1-2").write_text("x")
    for left, files in (("000002-z", ("lock", "part")), ("000003-z", ("part",))):
        layout.folder(left).mkdir()
        for file in files:
            (layout.folder(left) / file).write_text("")
    assert clean(tmp_path) == ["000002-z", "000003-z"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["current", "generations"]
    assert [p.name for p in layout.generations.iterdir()] == [name]


def test_the_lock_of_a_killed_writer_is_free(tmp_path):
    path = tmp_path / "writer.lock"
    script = (
        "import sys, os; from pathlib import Path; from workbench.store import locks;"
        "lock = locks.writer(Path(sys.argv[1]), Path('.')); print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    with pytest.raises(CorpusLocked, match=f"process {process.pid}"):
        locks.writer(path, tmp_path)
    process.kill()
    process.communicate()
    locks.writer(path, tmp_path).close()


IDENTITY = EncoderIdentity("m", "ab" * 32, "hashing 1", 4, 16)
HASHES = [f"{i:032x}" for i in range(3)]
VECTORS = np.arange(12, dtype=np.float32).reshape(3, 4)


def written(folder: Path) -> Path:
    journal = Journal(folder, IDENTITY)
    journal.append(HASHES[:1], VECTORS[:1])
    journal.append(HASHES[1:], VECTORS[1:])
    journal.sync()
    journal.close()
    return folder / journal_name(IDENTITY) / "vectors.journal"


@pytest.mark.slow
@pytest.mark.parametrize("lost", range(1, 37, 5))
def test_a_torn_tail_is_cut_off_and_written_over(tmp_path, lost):
    """A row is 16 + 16 + 4 bytes here; a kill in the middle of the last loses that row only."""
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-lost])
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[:2]
    journal.append(HASHES[2:], VECTORS[2:])
    assert np.array_equal(journal.vectors(), VECTORS)
    journal.close()


def test_a_damaged_row_ends_the_journal(tmp_path):
    path = written(tmp_path)
    data = bytearray(path.read_bytes())
    data[36 + 20] ^= 1
    path.write_bytes(bytes(data))
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[:1]
    journal.close()


@pytest.mark.parametrize(
    "other",
    [
        EncoderIdentity("m", "cd" * 32, "hashing 1", 4, 16),
        EncoderIdentity("m", "ab" * 32, "torch", 4, 16),
        EncoderIdentity("m", "ab" * 32, "hashing 1", 8, 16),
    ],
)
def test_vectors_of_other_weights_or_another_runtime_are_kept_apart(tmp_path, other):
    written(tmp_path)
    journal = Journal(tmp_path, other)
    assert journal.hashes() == []
    journal.close()


def test_rows_that_a_generation_holds_are_dropped_and_the_newest_others_kept(tmp_path):
    written(tmp_path)
    forget(Journal(tmp_path, IDENTITY), {HASHES[0]}, 10)
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[1:]
    assert np.array_equal(journal.vectors(), VECTORS[1:])
    forget(journal, (), 1)
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[2:]
    journal.close()


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_folder_that_may_not_be_written_is_not_said_to_be_full(code):
    with pytest.raises(CorpusError) as caught, disk_errors():
        raise OSError(code, os.strerror(code), "my.corpus/writer.lock")
    assert caught.value.message == f"The corpus cannot be written: {os.strerror(code).lower()} at my.corpus/writer.lock"
    assert "right to write" in caught.value.remedy
    assert "disk space" not in caught.value.remedy
