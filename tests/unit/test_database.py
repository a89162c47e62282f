"""The database beside the generations: shared by threads and processes, whole after a kill, readable errors."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

from workbench.errors import CorpusDamaged, CorpusError, CorpusLocked, CorpusNotFound, UsageError
from workbench.saved import searches as kept
from workbench.saved.database import FILE, Database, Group, repair_database
from workbench.saved.searches import HISTORY, PLAN, SEARCH, SEARCHES, Searches, owner_of

FIRST = "CREATE TABLE marks (number INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"
MARKS = Group("marks", (FIRST,))
WRITE = """
import sys
from workbench.saved.database import Database, Group
marks = Group("marks", (sys.argv[2],))
database = Database(sys.argv[1])
for number in range(int(sys.argv[4])):
    with database.writing(marks) as db:
        db.execute("INSERT INTO marks (text) VALUES (?)", (f"{sys.argv[3]} {number}",))
    print(number, flush=True)
"""


def add(database: Database, text: str) -> None:
    with database.writing(MARKS) as db:
        db.execute("INSERT INTO marks (text) VALUES (?)", (text,))


def texts(database: Database) -> list[str]:
    return [row["text"] for row in database.rows(MARKS, "SELECT text FROM marks ORDER BY number")]


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITE, str(folder), FIRST, name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_an_error_undoes_the_whole_block_and_a_busy_database_is_said(tmp_path):
    database = Database(tmp_path)

    def half() -> None:
        with database.writing(MARKS) as db:
            db.execute("INSERT INTO marks (text) VALUES ('lost')")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert texts(database) == []
    add(Database(tmp_path), "before")
    with Database(tmp_path).writing(MARKS) as db:
        db.execute("INSERT INTO marks (text) VALUES ('other')")
        waiting = Database(tmp_path, busy_seconds=0.05)
        assert texts(waiting) == ["before"]
        with pytest.raises(CorpusLocked, match="Try again"):
            add(waiting, "x")
    with pytest.raises(CorpusNotFound):
        add(Database(tmp_path / "nowhere"), "x")
    assert not (tmp_path / "nowhere").exists()


def test_processes_lose_nothing(tmp_path):
    running = [writer(tmp_path, name, 40) for name in "abc"]
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert sorted(texts(Database(tmp_path))) == sorted(f"{name} {n}" for name in "abc" for n in range(40))


def test_who_writes_first_waits_for_those_who_make_the_file_at_the_same_moment(tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE other (number INTEGER)")
        other.execute("BEGIN IMMEDIATE")  # holds the file before it is in WAL mode
        with pytest.raises(CorpusLocked):
            add(Database(tmp_path, busy_seconds=0.05), "too early")
        done = Timer(0.2, lambda: other.execute("COMMIT"))
        done.start()
        add(Database(tmp_path), "after")
        done.join()
    assert texts(Database(tmp_path)) == ["after"]


def test_a_kill_loses_at_most_what_was_in_flight(tmp_path):
    process = writer(tmp_path, "x", 100_000)
    for _ in range(50):
        said = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()  # with what `readline` has buffered already
    process.wait(timeout=10)
    process.stdout.close()
    last = int(rest[-1] if rest else said)
    found = texts(Database(tmp_path))
    assert found[: last + 1] == [f"x {n}" for n in range(last + 1)]
    assert len(found) <= last + 2
    with sqlite3.connect(tmp_path / FILE) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_migrations_keep_the_rows(tmp_path):
    add(Database(tmp_path), "kept")
    newer = Group("marks", (FIRST, "ALTER TABLE marks ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'"))
    other = Group("notes", ("CREATE TABLE notes (text TEXT) STRICT; CREATE INDEX notes_text ON notes (text)",))
    database = Database(tmp_path)
    with database.reading(newer, other) as db:
        assert [tuple(r) for r in db.execute("SELECT text, colour FROM marks")] == [("kept", "red")]
        assert db.execute("SELECT * FROM notes").fetchall() == []
    with pytest.raises(CorpusError, match=r"newer workbench.*Update"):
        texts(Database(tmp_path))


@pytest.mark.parametrize("content", [b"this is no database" * 400, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_file_is_said(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(CorpusDamaged, match="doctor --repair"):
        texts(Database(tmp_path))
    with pytest.raises(CorpusDamaged, match="doctor --repair"):
        add(Database(tmp_path), "x")
    (said,) = repair_database(tmp_path)
    assert "nothing could be read" in said
    assert (tmp_path / "damaged" / FILE).read_bytes() == content
    add(Database(tmp_path), "x")


REPAIR = """
import os, sys
from pathlib import Path
from workbench.saved.database import repair_database
from workbench.store import generations
generations.hooks.append(lambda name: os.kill(os.getpid(), 9))
repair_database(Path(sys.argv[1]))
"""


def test_a_repair_that_is_killed_loses_nothing(tmp_path):
    indexed = Group("marks", (FIRST + "; CREATE INDEX marks_text ON marks (text)",))
    path = tmp_path / FILE
    with Database(tmp_path).writing(indexed) as db:
        db.executemany("INSERT INTO marks (text) VALUES (?)", [(f"text {n}",) for n in range(300)])
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND name = 'marks_text'").fetchone()[
            0
        ]
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : (page - 1) * 4096 + 64] = bytes(64)
    path.write_bytes(data)
    assert subprocess.run([sys.executable, "-c", REPAIR, str(tmp_path)], check=False).returncode == -signal.SIGKILL
    (said,) = repair_database(tmp_path)
    assert "300 marks" in said
    assert "set aside" in said
    assert texts(Database(tmp_path)) == [f"text {n}" for n in range(300)]
    assert repair_database(tmp_path) == ()
    assert not list(tmp_path.glob(f"{FILE}.new*"))
    assert [p.name for p in (tmp_path / "damaged").iterdir() if p.suffix == ".sqlite"] == [FILE]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody with fewer rights")
def test_a_folder_that_cannot_be_written_is_read(monkeypatch):
    monkeypatch.setenv("WORKBENCH_CORPUS_PRIVATE", "no")
    script = (
        "import os, sys\n"
        "from workbench.saved.database import Database, Group\n"
        "os.setuid(65534)\n"
        "database, marks = Database(sys.argv[1]), Group('marks', (sys.argv[2],))\n"
        "print(len(database.rows(marks, 'SELECT * FROM marks')))\n"
        "try:\n    database.writing(marks).__enter__()\nexcept Exception as exc:\n    print(exc)\n"
    )
    # Not below tmp_path, whose parents only root may enter.
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        for rows in (0, 1):
            if rows:
                add(Database(name), "x")
            out = subprocess.run(
                [sys.executable, "-c", script, name, FIRST], capture_output=True, text=True, check=False
            )
            first, second = out.stdout.splitlines()
            assert first == str(rows), out.stderr
            assert "cannot be written. Ask for write access" in second


@pytest.fixture
def mine(tmp_path: Path) -> Searches:
    return Searches(tmp_path, owner_of("ada", None))


def test_history_is_newest_first_and_forgets_the_oldest(mine, monkeypatch):
    mine.asked({"q": "one"})
    mine.asked({"q": "two", "plan": "tmm"})
    mine.asked({"q": "one"})
    assert [entry.params for entry in mine.kept(HISTORY)] == [{"q": "one"}, {"q": "two", "plan": "tmm"}]
    mine.asked({"q": "two", "plan": "rrf"})
    mine.asked({"q": "two", "filters": "type = 'text'"})
    asked_last = [{"q": "two", "filters": "type = 'text'"}, {"q": "two", "plan": "rrf"}, {"q": "one"}]
    assert [entry.params for entry in mine.kept(HISTORY)] == asked_last
    monkeypatch.setattr(kept, "MOST_HISTORY", 3)
    mine.save_search("keep", {"q": "0"})
    for n in range(6):
        mine.asked({"q": str(n)})
    assert [e.params["q"] for e in mine.kept(HISTORY)] == ["5", "4", "3"]
    assert [e.name for e in mine.kept(SEARCH)] == ["keep"]


def test_what_an_older_version_kept_is_the_plan_that_it_was(tmp_path, mine):
    first = Group("searches", SEARCHES.migrations[:1])
    columns = {"q": "c", "columns": "hybrid,plan", "column2": "default limit=3", "plan": "passages"}
    rows = [
        (PLAN, "mine", "default fusion.k=5"),
        (PLAN, "mixed", "tmm limit=3"),
        (SEARCH, "plain", json.dumps({"q": "a"})),
        (SEARCH, "set", json.dumps(columns)),
    ]
    with Database(tmp_path).writing(first) as db:
        db.executemany(
            "INSERT INTO searches_kept (owner, kind, name, value, at) VALUES (?, ?, ?, ?, 1)",
            [(mine.owner, *row) for row in rows],
        )
    saved = Searches(tmp_path, mine.owner)
    assert [e.value for e in saved.kept(PLAN)] == ["rrf fusion.k=5", "tmm limit=3 grep.when=never"]
    assert [e.params for e in saved.kept(SEARCH)] == [{"q": "a", "plan": "rrf"}, {**columns, "column2": "rrf limit=3"}]
    saved.restore([gone] if (gone := saved.delete(saved.kept(PLAN)[1].number)) else [])
    saved.save_plan("new", "default")
    saved.save_search("plain", {"q": "b"})
    assert [e.value for e in saved.kept(PLAN)] == ["rrf fusion.k=5", "tmm limit=3 grep.when=never", "default"]
    assert saved.kept(SEARCH)[0].params == {"q": "b"}


def test_a_name_is_one_entry_of_its_kind(mine):
    assert mine.save_search("  best   of ", {"q": "a"}) is None
    assert mine.save_plan("best of", "tmm") is None
    old = mine.save_search("best of", {"q": "b"})
    assert old.params == {"q": "a"}
    assert [(e.name, e.params) for e in mine.kept(SEARCH)] == [("best of", {"q": "b"})]
    assert [(e.name, e.value, e.params) for e in mine.kept(PLAN)] == [("best of", "tmm", {})]


def test_what_is_deleted_can_be_put_back(mine):
    mine.save_plan("p", "tmm")
    (before,) = mine.kept(PLAN)
    gone = mine.delete(before.number)
    assert gone == before
    assert mine.kept(PLAN) == []
    assert mine.delete(before.number) is None
    mine.restore([before])
    (after,) = mine.kept(PLAN)
    assert (after.name, after.value, after.at) == (before.name, before.value, before.at)


def test_nobody_sees_anothers_things(tmp_path):
    one = Searches(tmp_path, owner_of("ada", "acme"))
    others = [Searches(tmp_path, owner_of("ada", None)), Searches(tmp_path, owner_of("bob", "acme"))]
    one.asked({"q": "secret"})
    one.write_note("a.md", 0, 5, "hello", "mine")
    (entry,) = one.kept(HISTORY)
    for other in others:
        assert other.kept(HISTORY) == []
        assert other.notes() == []
        assert other.delete(entry.number) is None
    assert one.kept(HISTORY) == [entry]


def test_a_note_is_written_over_and_found_by_its_quote(mine):
    assert mine.write_note("a.md", 3, 8, "quote", " first ") == ""
    assert mine.write_note("a.md", 3, 8, "quote", "second") == "first"
    (note,) = mine.notes()
    assert (note.path, note.start, note.end, note.quote, note.text) == ("a.md", 3, 8, "quote", "second")
    assert mine.write_note("a.md", 3, 8, "quote", "  ") == "second"
    assert mine.notes() == []
    mine.write_note("a.md", 10, 20, "the middle words", "seen")
    (note,) = mine.notes()
    assert note.is_on("a.md", "before the middle words and after")
    assert note.is_on("a.md", "middle")
    assert not note.is_on("a.md", "other words")
    assert not note.is_on("a.md", "")
    assert not note.is_on("b.md", "the middle words")


@pytest.mark.parametrize("name", ["", "  \n ", "x" * 201])
def test_a_bad_name_is_refused(mine, name):
    with pytest.raises(UsageError):
        mine.save_search(name, {"q": "a"})
    assert mine.kept(SEARCH) == []
