"""Names of files that were not indexed, and what runs were about, are as visible as documents at their paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.errors import UsageError
from workbench.saved.jobs import recording
from workbench.snapshot.snapshot import Library
from workbench.store.catalogue import Catalogue
from workbench.store.generations import private

STAFF, ADMIN, OTHER = (wb.Principal(t, (r,)) for t, r in (("acme", "staff"), ("acme", "admin"), ("birch", "admin")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def refused(folder: Path, who: wb.Principal) -> set[str]:
    with wb.open_corpus(folder, who) as corpus:
        catalogue = Catalogue(corpus.engine.opened)
        counts, listed = catalogue.refused(who)
        assert sum(counts.values()) == len(listed)
        names = {file.path for file in listed}
        for name in ("admin/zebra.pdf", "broken.pdf", "takeover.pdf"):
            assert bool(catalogue.refused_named(name, who)) == (name in names)
        return names


def runs(folder: Path, who: wb.Principal) -> list[tuple[str, list[str], bool]]:
    """Kind, last parts of the paths, and whether its counts are told; the first run is the last row."""
    with wb.open_corpus(folder, who) as corpus:
        rows = corpus.jobs().select("kind", "paths", "found", "reason").rows()
        return [(kind, [Path(p).name for p in paths], found is not None) for kind, paths, found, _ in rows]


def test_a_file_that_failed_is_known_to_who_would_see_its_document(folder: Path) -> None:
    """By the rule of its path or the flags of its run, today's rules included; counts are of these files only."""
    assert refused(folder, STAFF) == {"broken.pdf"}
    assert refused(folder, ADMIN) == {"broken.pdf", "admin/zebra.pdf", "takeover.pdf"}
    assert refused(folder, OTHER) == set()
    rules = folder / "corpus.yaml"
    before = rules.read_text()
    rules.write_text(before + "- path: broken.pdf\n  roles: [admin]\n")
    try:
        assert refused(folder, STAFF) == set()
    finally:
        rules.write_text(before)


def test_a_run_is_known_to_who_could_see_what_it_was_about(folder: Path) -> None:
    """Though they see every document of now: a run over files of others is not there, one over some of them has no counts."""
    assert runs(folder, STAFF) == [("index", ["d"], False)]
    assert runs(folder, OTHER) == []
    assert runs(folder, ADMIN) == [
        ("remove", ["wages.md", "board.md"], True),
        ("index", ["flagged"], True),
        ("index", ["d"], True),
    ]


def test_a_run_that_has_not_begun_is_known_by_its_flags_and_rules(folder: Path) -> None:
    """Until the writer's lock is had nothing is known of its files."""
    path = str(folder.parent / "d" / "admin")
    with recording(folder, "index", [path], ["docs"], {path: {'["acme", ["admin"], "normal"]'}}):
        assert ("index", ["admin"], False) in runs(folder, ADMIN)
        assert len(runs(folder, STAFF)) == 1


def test_files_of_a_corpus_are_their_owners_only(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder, and in it generations, desk, snapshots and pointer; the setting leaves them to the umask."""
    with wb.open_corpus(folder, ADMIN) as corpus:
        Library(folder).keep(corpus.search("plain").snapshot("kept"))
    kept = (
        folder,
        folder / "current",
        folder / "desk.sqlite",
        *folder.glob("generations/**/*"),
        *folder.glob("snapshots/**"),
    )
    assert [path for path in kept if path.stat().st_mode & 0o077] == []
    monkeypatch.setenv("WORKBENCH_CORPUS_PRIVATE", "no")
    monkeypatch.setattr(os, "chmod", lambda *_: pytest.fail("changed"))
    private(folder)
