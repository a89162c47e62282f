"""What was kept of a document, a refused file or a run is known to those only who may see the document or the files."""

import os
import shutil
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.errors import JudgmentError, UsageError
from workbench.judgments.exchange import export_judgments, import_judgments
from workbench.judgments.known_items import make_known_item_set
from workbench.saved.jobs import recording
from workbench.saved.searches import Searches
from workbench.snapshot.snapshot import Library
from workbench.store.catalogue import Catalogue
from workbench.store.generations import private

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


STAFF, ADMIN, OTHER = (wb.Principal(t, (r,)) for t, r in (("acme", "staff"), ("acme", "admin"), ("birch", "admin")))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A visible document, broken files in a folder of the admins' by rule and in one by flag, and runs over all of it."""
    path = tmp_path_factory.mktemp("files")
    source = write_files(path / "d", {"open.md": "# Open\n\nplain\n", "admin/wages.md": "# W\n\nsecret\n"})
    (source / "admin" / "zebra.pdf").write_bytes(b"%PDF-1.4 broken")
    (source / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    flagged = write_files(path / "flagged", {"board.md": "# Board\n\nsecret\n"})
    (flagged / "takeover.pdf").write_bytes(b"%PDF-1.4 broken")
    corpus = path / "corpus"
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text("rules:\n- path: 'admin/**'\n  roles: [admin]\n")
    wb.index([source], corpus=corpus, tenant="acme", encoder="hashing")
    wb.index([flagged], corpus=corpus, tenant="acme", roles=["admin"], encoder="hashing")
    wb.remove([source / "admin" / "wages.md", flagged / "board.md"], corpus=corpus)
    with pytest.raises(UsageError):
        wb.remove([source / "admin" / "wages.md"], corpus=corpus)
    return corpus


def refused(tree: Path, who: wb.Principal) -> set[str]:
    with wb.open_corpus(tree, who) as corpus:
        catalogue = Catalogue(corpus.engine.opened)
        counts, listed = catalogue.refused(who)
        assert sum(counts.values()) == len(listed)
        names = {file.path for file in listed}
        for name in ("admin/zebra.pdf", "broken.pdf", "takeover.pdf"):
            assert bool(catalogue.refused_named(name, who)) == (name in names)
        return names


def runs(tree: Path, who: wb.Principal) -> list[tuple[str, list[str], bool]]:
    """Kind, last parts of the paths, and whether its counts are told; the first run is the last row."""
    with wb.open_corpus(tree, who) as corpus:
        rows = corpus.jobs().select("kind", "paths", "found", "reason").rows()
        return [(kind, [Path(p).name for p in paths], found is not None) for kind, paths, found, _ in rows]


def test_files_that_failed_and_runs_are_known_to_who_could_see_them(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(tree, STAFF) == {"broken.pdf"}
    assert refused(tree, ADMIN) == {"broken.pdf", "admin/zebra.pdf", "takeover.pdf"}
    assert refused(tree, OTHER) == set()
    rules = tree / "corpus.yaml"
    before = rules.read_text()
    rules.write_text(before + "- path: broken.pdf\n  roles: [admin]\n")
    try:
        assert refused(tree, STAFF) == set()
    finally:
        rules.write_text(before)
    assert runs(tree, STAFF) == [("index", ["d"], False)]
    assert runs(tree, OTHER) == []
    assert runs(tree, ADMIN) == [
        ("remove", ["wages.md", "board.md"], True),
        ("index", ["flagged"], True),
        ("index", ["d"], True),
    ]
    path = str(tree.parent / "d" / "admin")
    with recording(tree, "index", [path], ["docs"], {path: {'["acme", ["admin"], "normal"]'}}):
        assert ("index", ["admin"], False) in runs(tree, ADMIN)
        assert len(runs(tree, STAFF)) == 1
    with wb.open_corpus(tree, ADMIN) as corpus:
        Library(tree).keep(corpus.search("plain").snapshot("kept"))
    kept = (tree, tree / "current", tree / "desk.sqlite", *tree.glob("generations/**/*"), *tree.glob("snapshots/**"))
    assert [path for path in kept if path.stat().st_mode & 0o077] == []
    monkeypatch.setenv("WORKBENCH_CORPUS_PRIVATE", "no")
    monkeypatch.setattr(os, "chmod", lambda *_: pytest.fail("changed"))
    private(tree)
