"""A damaged corpus gives no wrong answer and no traceback, and `doctor --repair` brings back what can be made again."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from corpus_files import write_texts
from trials import TRIALS

import workbench as wb
from workbench import index
from workbench.cli.main import main
from workbench.errors import CorpusDamaged, CorpusError
from workbench.indexing import remove
from workbench.indexing.repair import repair, rollback
from workbench.records import FileStatus
from workbench.saved.database import check_database
from workbench.store import generations, vectors
from workbench.store.arrays import COLUMNS, save_arrays
from workbench.store.generations import Layout
from workbench.store.reader import open_generation

SEARCHES = (
    ("retries back off", "grep"), ("retries back off", "keyword"), ("cats sleep", "vector"), ("wait longer", "hybrid"),
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with two collections, one of whole documents, with judgments and a snapshot."""
    base = tmp_path_factory.mktemp("whole")
    docs = write_texts(base / "docs")
    (docs / "more.html").write_text("<h1>Dogs</h1><p>Dogs bark at retries.</p>")
    corpus = base / "corpus"
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text("policy:\n  mask: ['secretword']\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "GRAPH_MS_PER_WIDTH", 0.0)  # so that there is a graph to damage
        index([docs], corpus, encoder="hashing", collection=("docs", "artifacts"))
    (base / "queries.txt").write_text("retries\ncats\n")
    made = CliRunner().invoke(
        main, ["judge", "import", str(base / "queries.txt"), "--set", "mine", "--queries", "--corpus", str(corpus)]
    )
    assert made.exit_code == 0, made.output
    with wb.open_corpus(corpus) as opened:
        opened.search("cats").snapshot().save(corpus / "snapshots.snapshot")
    return corpus


@pytest.fixture
def corpus(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "corpus"))


def answers(corpus: Path) -> list[object]:
    """Everything that a few searches of every kind say."""
    found: list[object] = []
    with wb.open_corpus(corpus) as opened:
        info = dict(opened.info())
        found.append([info["documents"], info["digest"]])
        for query, mode in SEARCHES:
            result = opened.search(query, mode=mode, plan="default vector.threshold=off", bypass_cache=True)
            found.append([(h.path, h.start_line, h.text, round(h.score, 9)) for h in result.hits])
        found.append([(p.path, p.text) for p in opened.grep("sleep", context=1)])
        found.append(opened.read_file("b.md"))
        found.append([h.path for h in opened.search("cats", mode="keyword", filters="year = 2020").hits])
    return found


def generation_of(corpus: Path) -> Path:
    """The folder of the current generation."""
    return Layout(corpus).folder(generations.current(corpus))


def harms(size: int, name: str) -> list[tuple[str, Callable[[Path], object]]]:
    """Ways to damage a file of that size: bytes changed at some places, cut short, deleted."""
    places = sorted(random.Random(name).sample(range(size), min(TRIALS, size)))

    def flip(at: int) -> Callable[[Path], object]:
        def change(path: Path) -> None:
            data = bytearray(path.read_bytes())
            data[at] ^= 1 << (at % 8)
            path.write_bytes(bytes(data))

        return change

    made: list[tuple[str, Callable[[Path], object]]] = [(f"byte {at}", flip(at)) for at in places]
    if size:
        made.append(("cut", lambda path: path.write_bytes(path.read_bytes()[: size // 2])))
    return [*made, ("deleted", lambda path: path.unlink())]


def test_damage_anywhere_is_no_wrong_answer(corpus, whole):
    """Each file of a generation and the pointer: the right answers, or an error that says what to run, and nothing else."""
    right, folder = answers(corpus), generation_of(corpus)
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()] + [Layout(corpus).pointer]
    told = 0
    for file in files:
        saved = file.read_bytes()
        for what, harm in harms(len(saved), file.name):
            harm(file)
            try:
                said: object = answers(corpus)
            except CorpusDamaged as exc:
                said, told = exc.remedy, told + 1
            assert said == right or "doctor --repair" in str(said), f"{file.name}, {what}: {said}"
            file.write_bytes(saved)
    assert told > len(files)
    assert answers(corpus) == right


@pytest.mark.parametrize("part", ["records/columns.arrays", "text/text.bin", "vectors"])
def test_what_is_derived_is_made_again(corpus, part):
    right = answers(corpus)
    file = generation_of(corpus) / part
    file = next(file.glob("*/vectors.npy")) if file.is_dir() else file
    before = generations.current(corpus)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x80
    file.write_bytes(bytes(data))
    kept = {p.name: p.read_bytes() for p in (corpus / "corpus.yaml", corpus / "snapshots.snapshot")}
    done, left = repair(corpus)
    assert len(done) == 1
    assert before in done[0]
    assert left == ()
    assert (Layout(corpus).damaged / before / "manifest.json").is_file()
    assert answers(corpus) == right
    with open_generation(corpus) as opened:
        opened.verify()
    assert {name: (corpus / name).read_bytes() for name in kept} == kept
    with wb.open_corpus(corpus) as opened:
        assert opened.judging.overview()
    assert repair(corpus) == ((), ())


def test_the_next_run_takes_no_damaged_vector_over(whole, tmp_path):
    docs = write_texts(tmp_path / "docs")
    damaged, clean = tmp_path / "damaged", tmp_path / "clean"
    index([docs], damaged, encoder="hashing")
    file = next(generation_of(damaged).glob("vectors/*/vectors.npy"))
    data = bytearray(file.read_bytes())
    data[131::4] = bytes(byte ^ 0x80 for byte in data[131::4])
    file.write_bytes(bytes(data))
    (docs / "new.md").write_text("A new file about boats.\n")
    report = index([docs], damaged, encoder="hashing")
    assert any("were damaged" in warning for warning in report.warnings)
    index([docs], clean, encoder="hashing")
    with open_generation(damaged) as one, open_generation(clean) as other:
        one.verify()
        numbers = np.arange(one.records.records_total)
        np.testing.assert_array_equal(one.vectors().vectors(numbers), other.vectors().vectors(numbers))


def test_a_damaged_database_is_set_aside_with_what_to_index_again(corpus, whole):
    """The record itself cannot be made again: a kept state answers, else the folders are named; judgments stay."""
    right = answers(corpus)
    generations.keep_state(corpus, "good")
    (whole.parent / "docs" / "later.md").write_text("# Later\n")
    index([whole.parent / "docs"], corpus, encoder="hashing", collection=("docs", "artifacts"))
    (whole.parent / "docs" / "later.md").unlink()
    for expected in ("an older state", "No generation is intact"):
        database = generation_of(corpus) / "corpus.duckdb"
        data = bytearray(database.read_bytes())
        data[len(data) // 2] ^= 1
        database.write_bytes(bytes(data))
        with pytest.raises(CorpusDamaged, match="doctor --repair"):
            answers(corpus)
        with pytest.raises(CorpusDamaged, match="doctor --repair"):
            index([whole.parent / "docs"], corpus, encoder="hashing")
        done, left = repair(corpus)
        assert expected in "".join((*done, *left))
        if not left:
            assert answers(corpus) == right
    assert str(whole.parent / "docs") in left[0]
    assert len(list(Layout(corpus).damaged.iterdir())) == 2
    index([whole.parent / "docs"], corpus, encoder="hashing", collection=("docs", "artifacts"))
    assert answers(corpus) == right
    with wb.open_corpus(corpus) as opened:
        assert opened.judging.overview()


def test_doctor_repairs_saves_rows_and_says_what_it_did(corpus):
    (generation_of(corpus) / "text" / "lines.arrays").unlink()
    run = CliRunner()
    arguments = ["doctor", "--no-model", "--corpus", str(corpus), "--json"]
    broken = run.invoke(main, arguments)
    assert broken.exit_code == 1
    assert "doctor --repair" in broken.output
    mended = run.invoke(main, [*arguments, "--repair"])
    assert [f["said"] for f in json.loads(mended.output) if f["state"] == "done"]
    assert mended.exit_code == 0
    assert run.invoke(main, [*arguments, "--verify"]).exit_code == 0
    database = corpus / "desk.sqlite"
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode=DELETE")
        rows = db.execute("SELECT count(*) FROM jobs").fetchone()[0]
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE type = 'index'").fetchone()[0]
    db.close()
    data = bytearray(database.read_bytes())
    data[(page - 1) * 4096 : (page - 1) * 4096 + 64] = bytes(64)
    database.write_bytes(bytes(data))
    assert check_database(corpus)
    found = CliRunner().invoke(main, ["doctor", "--repair", "--no-model", "--corpus", str(corpus)])
    assert found.exit_code == 0, found.output
    assert check_database(corpus) == ""
    assert (corpus / "damaged" / "desk.sqlite").is_file()
    with sqlite3.connect(database) as db:
        assert db.execute("SELECT count(*) FROM jobs").fetchone()[0] >= rows
    db.close()


def test_a_generation_that_does_not_answer_is_not_published(tmp_path, monkeypatch):
    docs, corpus = write_texts(tmp_path / "docs"), tmp_path / "corpus"
    before = index([docs], corpus, encoder="hashing").generation
    (docs / "new.md").write_text("# New\n")

    def harm(name: str) -> None:
        if name == "manifest":
            save_arrays(Layout(corpus).building / "generation" / "records" / COLUMNS, {})

    monkeypatch.setattr(generations, "hooks", [harm])
    with pytest.raises(CorpusError, match="was not published"):
        index([docs], corpus, encoder="hashing")
    monkeypatch.setattr(generations, "hooks", [])
    assert generations.current(corpus) == before
    assert index([docs], corpus, encoder="hashing").documents == 4


def test_a_lost_pointer_drops_no_root(tmp_path):
    one, two, corpus = write_texts(tmp_path / "one"), tmp_path / "two", tmp_path / "corpus"
    two.mkdir()
    (two / "z.md").write_text("# Zebras\n")
    index([one], corpus, encoder="hashing")
    index([two], corpus, encoder="hashing")
    Layout(corpus).pointer.unlink()
    assert index([two], corpus, encoder="hashing").documents == 4
    Layout(corpus).pointer.unlink(missing_ok=True)
    (two / "z.md").write_text("# Zebras and lions\n")
    assert index([two], corpus, encoder="hashing").documents == 4
    assert Layout(corpus).pointer.is_file()


def test_a_state_is_kept_and_answers_again(tmp_path):
    """As a generation of its own, whatever was indexed or removed since."""
    docs, corpus = write_texts(tmp_path / "docs"), tmp_path / "corpus"
    index([docs], corpus, encoder="hashing")
    run = CliRunner()
    assert run.invoke(main, ["rollback", "--corpus", str(corpus)]).exit_code == 1
    assert run.invoke(main, ["rollback", "--keep", "full", "--corpus", str(corpus)]).exit_code == 0
    right = answers(corpus)
    remove(["sub"], corpus)
    assert answers(corpus) != right
    with wb.open_corpus(corpus, follow=True) as following:
        back = run.invoke(main, ["rollback", "full", "--corpus", str(corpus)])
        assert back.exit_code == 0, back.output
        assert following.info()["documents"] == 3
    assert answers(corpus) == right
    assert "full" in run.invoke(main, ["rollback", "--corpus", str(corpus)]).output
    next(iter((Layout(corpus).folder(generations.state(corpus, "full")) / "text").iterdir())).write_bytes(b"x")
    with pytest.raises(CorpusDamaged):
        rollback(corpus, "full")
    assert run.invoke(main, ["rollback", "--forget", "full", "--corpus", str(corpus)]).exit_code == 0


UNREADABLE = """
import os, sys
from pathlib import Path
from workbench import index
docs, corpus, other = map(Path, sys.argv[1:])
index([docs], other, encoder="hashing", workers=0)  # everything is imported while it may be read
if os.geteuid() == 0:
    os.setuid(65534)
index([docs], corpus, encoder="hashing", workers=0)
for closed in (docs / "sub", docs / "a.md"):
    closed.chmod(0)
    if closed.name == "a.md":
        (docs / "b.md").write_text("Another text.")
    report = index([docs], corpus, encoder="hashing", workers=0)
    print(report.documents, report.embedded, [(f.path, f.status.value, f.reason) for f in report.files if "cannot" in f.reason])
    closed.chmod(0o755)
"""


def test_what_cannot_be_read_has_not_gone():
    # Not below tmp_path, whose parents only root may enter.
    with tempfile.TemporaryDirectory() as name:
        docs = write_texts(Path(name) / "docs")
        (Path(name) / "corpus").mkdir()
        if os.geteuid() == 0:
            for path in (Path(name), *Path(name).rglob("*")):
                os.chown(path, 65534, 65534)
        own = {"WORKBENCH_SETTINGS": f"{name}/none.yaml", "WORKBENCH_CACHE_DIR": f"{name}/cache"}
        command = [sys.executable, "-c", UNREADABLE, str(docs), f"{name}/corpus", f"{name}/other"]
        ran = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    folder, file = ran.stdout.splitlines()
    assert folder.startswith("3 0 "), ran.stderr
    assert "sub/c.md" in folder
    assert "what was indexed of it before stays" in folder
    assert file.startswith("3 1 ")
    assert f"('a.md', '{FileStatus.FAILED.value}'" in file


def test_too_few_descriptors_are_said_as_what_they_are(whole):
    """A process that may open 6 files."""
    script = (
        "import resource, sys, workbench as wb\n"
        "import workbench.corpus, duckdb, workbench.store.lexical.search, workbench.store.grep.search\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))\n"
        "try:\n"
        "    held = []\n"
        "    for _ in range(9):\n"
        "        held.append(wb.open_corpus(sys.argv[1])); held[-1].search('cats', mode='keyword')\n"
        "except wb.WorkbenchError as exc:\n"
        "    print(exc)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(whole)], capture_output=True, text=True, check=False)
    assert "too many open files" in ran.stdout.lower(), ran.stderr
    assert "damaged" not in ran.stdout
