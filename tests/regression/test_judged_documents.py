"""Judgments know documents: what was kept of one is never shown to who sees another one of the same path."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.errors import JudgmentError
from workbench.judgments.exchange import export_judgments, import_judgments
from workbench.judgments.known_items import make_known_item_set
from workbench.saved.searches import Searches

BOARD, STAFF = wb.Principal("acme", ("board",)), wb.Principal("acme", ("staff",))
TEXTS = {
    "board": "# Takeover of Zebrafish Holdings in May\n\nWe offer forty million and two boats, paid by the board itself.\n",
    "public": "# How to use the printer\n\nPut paper in, then press the green button and wait a while.\n",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with a file of one name; one is the board's, who made a set of it and graded it."""
    path = tmp_path_factory.mktemp("built")
    for name, roles in (("board", ["board"]), ("public", [])):
        source = write_files(path / name, {"README.md": TEXTS[name]})
        wb.index([source], corpus=path / "corpus", tenant="acme", roles=roles, encoder="hashing")
    with wb.open_corpus(path / "corpus", BOARD) as corpus:
        make_known_item_set(corpus.judging, corpus.engine, "known")
        hit = corpus.search("Zebrafish", mode="keyword").hits[0]
        corpus.judging.grade(hit, 3, "price of the takeover", judge="chair", note="do not tell staff")
    return path


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy of its corpus."""
    return Path(shutil.copytree(built / "corpus", tmp_path / "corpus"))


@pytest.fixture(params=["there", "removed", "replaced", "moved"])
def changed(request: pytest.FixtureRequest, folder: Path, built: Path) -> Path:
    """The board's folder is there, was taken out, replaced by a public folder of another name, or moved beside a namesake."""
    if request.param != "there":
        wb.remove([built / "board"], corpus=folder)
    if request.param == "replaced":
        other = write_files(folder.parent / "third", {"README.md": "# A third one\n\nnothing of that\n"})
        wb.index([other], corpus=folder, tenant="acme", encoder="hashing")
    if request.param == "moved":
        shutil.copytree(built / "board", folder.parent / "moved")
        wb.index([folder.parent / "moved"], corpus=folder, tenant="acme", roles=["board"], encoder="hashing")
    return folder


def test_who_sees_the_namesake_only_sees_nothing_of_the_document(changed: Path, tmp_path: Path) -> None:
    """Neither queries made of it nor judgments, notes, quotes or counts, and no export has them."""
    with wb.open_corpus(changed, STAFF) as staff:
        judging = staff.judging
        assert [q.text for q in judging.queries("known")] == ["How to use the printer"]
        assert judging.queries("search") == ()
        assert judging.located("search") == ()
        assert {s.name: (s.queries, s.judgments) for s in judging.overview()} == {"search": (0, 0), "known": (1, 1)}
        assert judging.undo("search", "chair") is None
        for form in ("jsonl", "csv", "trec", "beir"):
            with pytest.raises(JudgmentError):
                export_judgments(judging, "search", tmp_path / "out", form)
        export_judgments(judging, "known", tmp_path / "out.jsonl", "jsonl")
        assert "akeover" not in (tmp_path / "out.jsonl").read_text()
    with wb.open_corpus(changed, BOARD) as board:
        judging = board.judging
        (mine,) = judging.located("search")
        assert mine.stale == (mine.judgment.anchor.root not in board.info()["roots"])
        assert [q.text for q in judging.queries("search")] == ["price of the takeover"]
        assert len(judging.queries("known")) == 2
        assert judging.undo("search", "chair") == mine.judgment


def test_a_judgment_follows_its_document_not_its_path(folder: Path, built: Path) -> None:
    """Of two documents with one path each has its own, for who sees both; an import is found by the name as before."""
    both = wb.Principal("acme", ("board", "staff"))
    with wb.open_corpus(folder, both) as corpus:
        paper = corpus.search("paper", mode="keyword").hits[0]
        corpus.judging.grade(paper, 1, "price of the takeover", judge="chair")
        located = corpus.judging.located("search")
        assert len({one.document_id for one in located}) == len(located) == 2
        file = folder.parent / "more.jsonl"
        file.write_text('{"query_id": "q", "query": "printer", "document": "README.md", "grade": 2}\n')
        import_judgments(corpus.judging, file, "more")
    wb.remove([built / "board"], corpus=folder)
    with wb.open_corpus(folder, both) as corpus:
        stale = [one for one in corpus.judging.located("search") if one.stale]
        assert [one.judgment.anchor.quote[:10] for one in stale] == ["# Takeover"]


def test_a_note_is_on_its_document(tmp_path: Path) -> None:
    """Two documents of one path and text have two notes; one from before ids were kept is on either, until it is written."""
    kept = Searches(tmp_path, "me")
    kept.write_note("a.md", 0, 5, "quote", "old")
    (old,) = kept.notes()
    assert old.is_on("a.md", "quote", "1")
    assert kept.write_note("a.md", 0, 5, "quote", "first", "1") == "old"
    assert kept.write_note("a.md", 0, 5, "quote", "second", "2") == ""
    first, second = kept.notes()
    assert (first.text, second.text) == ("first", "second")
    assert first.is_on("a.md", "a quote", "1")
    assert not first.is_on("a.md", "a quote", "2")
