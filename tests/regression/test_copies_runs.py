"""Copies over the life of a corpus: killed runs, orders, workers, archives, messages, judgments."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.store.reader import open_generation

NOTE = "# Pumps\n\nThe pump lost its pressure.\n"
RUN = """
import os, sys
from pathlib import Path
from workbench.indexing import index
from workbench.store import generations
docs, corpus, at = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
generations.hooks.append(lambda name: name == at and os.kill(os.getpid(), 9))
index([docs], corpus, encoder="hashing", workers=0)
"""


def state(corpus: Path) -> tuple[object, ...]:
    """Digest, counts but for bytes on disk, and what a query finds with its copies."""
    with open_generation(corpus) as opened:
        opened.verify()
        digest, counts = opened.manifest.digest, dict(opened.manifest.counts)
    with wb.open_corpus(corpus) as opened_corpus:
        found = [(h.chunk_id, h.path, h.copies, h.score) for h in opened_corpus.search("pump pressure").hits]
    return digest, counts, found


def fresh(docs: Path, corpus: Path) -> tuple[object, ...]:
    """The state of a corpus made at once."""
    wb.index([docs], corpus, encoder="hashing")
    return state(corpus)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["read", "embedded", "tables", "database", "manifest", "swapped"])
def test_a_run_that_is_killed_while_a_copy_takes_over(tmp_path: Path, at: str) -> None:
    """The next run makes of it what an undisturbed one would have made."""
    files = {f"{n}.md": f"# Note {n}\n\nThe pump {n}.\n" for n in range(4)} | {
        "a/x.md": NOTE,
        "b/x.md": NOTE,
        "c/y.md": NOTE,
    }
    docs, corpus = write_files(tmp_path / "docs", files), tmp_path / "c.corpus"
    wb.index([docs], corpus, encoder="hashing")
    (docs / "a" / "x.md").unlink()
    write_files(docs, {"0.md": NOTE, "new.md": "# New\n\nNever seen.\n", "c/y.md": "# Other\n\nWords.\n"})
    killed = subprocess.run([sys.executable, "-c", RUN, str(docs), str(corpus), at], check=False)
    assert killed.returncode == -9
    wb.index([docs], corpus, encoder="hashing")
    assert state(corpus) == fresh(docs, tmp_path / "fresh.corpus")
    assert wb.index([docs], corpus, encoder="hashing").changed is False


@pytest.mark.slow
def test_workers_and_order_change_nothing(tmp_path: Path) -> None:
    """Copies in an archive, in folders and beside each other: read here, by helpers, and file by file from the last."""
    docs = write_files(tmp_path / "docs", {f"{name}/x.md": NOTE for name in "dbca"} | {"e.txt": "The pump.\n"})
    with zipfile.ZipFile(docs / "b.zip", "w") as archive:
        archive.writestr("inner/x.md", NOTE)
        archive.writestr("own.txt", "The pump.\n")
    expected = fresh(docs, tmp_path / "fresh.corpus")
    for workers in (0, 2):
        wb.index([docs], tmp_path / f"{workers}.corpus", encoder="hashing", workers=workers)
        assert state(tmp_path / f"{workers}.corpus") == expected
    backwards = tmp_path / "backwards.corpus"
    wb.index([docs / "d"], backwards, encoder="hashing")
    for path in sorted(docs.iterdir(), reverse=True):
        wb.index([path], backwards, encoder="hashing")
    wb.index([docs], backwards, encoder="hashing")
    assert state(backwards) == expected


def test_members_of_archives_and_messages_are_copies_too(tmp_path: Path) -> None:
    """A report says how many of an archive's documents are, and what of; the archive's own stay its own."""
    docs, corpus = write_files(tmp_path / "docs", {"z/x.md": NOTE}), tmp_path / "c.corpus"
    with zipfile.ZipFile(docs / "pack.zip", "w") as archive:
        archive.writestr("x.md", NOTE)
        archive.writestr("other.md", "# Cats\n\nCats sleep.\n")
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", "Files"
    message.set_content("See the note.")
    message.add_attachment(NOTE.encode(), maintype="text", subtype="markdown", filename="note.md")
    (docs / "mail.eml").write_bytes(bytes(message))
    report = wb.index([docs], corpus, encoder="hashing")
    found = {f.path: (f.documents, f.copies, f.reason) for f in report.files}
    assert found["mail.eml"] == (2, 0, "")
    assert found["z/x.md"][:2] == (0, 1)
    assert found["pack.zip"][:2] == (1, 1)
    (first,) = (f.same_as for f in report.files if f.path == "z/x.md")
    assert found["z/x.md"][2] == f"It is a copy of {first}"
    assert found["pack.zip"][2] == f"1 of its documents is a copy, the first of {first}"
    assert sum(f.documents for f in report.files) == report.documents == 3
    with wb.open_corpus(corpus) as opened:
        (hit,) = opened.search("pump pressure", mode="keyword").hits
        assert {hit.path, *hit.copies} == {first, "pack.zip!/x.md", "z/x.md"}
    (docs / "mail.eml").unlink()
    assert wb.index([docs], corpus, encoder="hashing").embedded == 0
    assert state(corpus) == fresh(docs, tmp_path / "fresh.corpus")


def test_a_judgment_on_a_path_that_went_is_found_under_the_copy(tmp_path: Path) -> None:
    """And one on a copy under its primary; a file that was moved keeps its judgments as well."""
    docs = write_files(tmp_path / "docs", {"a.md": NOTE, "b.md": NOTE, "c.md": NOTE})
    corpus = tmp_path / "c.corpus"
    wb.index([docs], corpus, encoder="hashing")
    with wb.open_corpus(corpus, follow=True) as opened:

        def stands_in() -> str:
            (located,) = opened.judging.located("search")
            assert not located.stale
            return located.path

        hit = opened.search("pump", mode="keyword", filters="path = 'b.md'").hits[0]
        assert hit.path == "b.md"
        opened.judging.grade(hit, 3, "pump")
        assert stands_in() == "a.md"
        for gone, now in (("b.md", "a.md"), ("a.md", "c.md")):
            (docs / gone).unlink()
            wb.index([docs], corpus, encoder="hashing")
            opened.refresh()
            assert stands_in() == now
        (docs / "c.md").rename(docs / "moved.md")
        wb.index([docs], corpus, encoder="hashing")
        opened.refresh()
        assert stands_in() == "moved.md"
        (again,) = opened.search("pump", mode="keyword").hits
        assert opened.judging.grades("pump", [again])[again.chunk_id].grade == 3
        assert opened.read_file("a.md").startswith("[ERROR: NOT_FOUND]")


def test_known_items_take_a_content_once(tmp_path: Path) -> None:
    """However often it is there."""
    docs = write_files(tmp_path / "docs", {f"{n}/x.md": NOTE for n in range(5)})
    wb.index([docs], tmp_path / "c.corpus", encoder="hashing")
    with wb.open_corpus(tmp_path / "c.corpus") as opened:
        assert opened.engine.records.documents_total == 1
        assert len(opened.search("pump", limit=10).hits) == 1
