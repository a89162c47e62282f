"""What was kept of a document or a run is known to those only who may see it; a changed rule counts at once."""

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from corpus_files import write_files
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

import workbench as wb
from workbench.errors import JudgmentError, PrincipalRequired, SettingError, UsageError
from workbench.judgments.exchange import export_judgments, import_judgments
from workbench.judgments.known_items import make_known_item_set
from workbench.records import principal_key
from workbench.saved.jobs import recording
from workbench.saved.searches import Searches
from workbench.snapshot.snapshot import Library
from workbench.store.access.redaction import MaskPatterns
from workbench.store.catalogue import Catalogue
from workbench.store.generations import private
from workbench.store.reader import open_generation
from workbench.ui import resources

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


FILES = {
    "hr/wages.md": "# Wages\n\nzebrafish wages 1234-5678\n",
    "open.md": "# Open\n\nzebrafish plain\n",
    "secret.md": "---\nsensitivity: restricted\n---\n# Secret\n\nzebrafish secret\n",
    "hr/copy.md": "# Same\n\nzebrafish same bytes\n",
    "pub/copy.md": "# Same\n\nzebrafish same bytes\n",
}
STAFF, BOSS = wb.Principal("acme", ("staff",)), wb.Principal("acme", ("boss",))
ALL = {"hr/wages.md", "open.md", "secret.md", "hr/copy.md"}


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one tenant without rules."""
    path = tmp_path_factory.mktemp("now")
    wb.index([write_files(path / "files", FILES)], corpus=path / "corpus", tenant="acme", encoder="hashing")
    return path / "corpus"


@pytest.fixture(autouse=True)
def _no_rules(ruled: Path) -> Iterator[None]:
    """Every test begins without a policy, without rules and without open corpora of the app."""
    st.cache_resource.clear()
    yield
    (ruled / "corpus.yaml").unlink(missing_ok=True)


def found(corpus: wb.Corpus) -> set[str]:
    return {h.path for h in corpus.search("zebrafish", mode="keyword").hits}


@pytest.mark.parametrize("follow", [False, True])
def test_a_policy_counts_from_the_next_answer_on(ruled: Path, follow: bool) -> None:
    rules = ruled / "corpus.yaml"
    with wb.open_corpus(ruled, STAFF, follow=follow) as corpus:
        before = corpus.search("zebrafish", mode="keyword")
        assert {h.path for h in before.hits} == ALL
        rules.write_text("policy:\n  hide: [restricted]\n  mask: ['\\d{4}-\\d{4}']\n  cleared: [boss]\n")
        assert found(corpus) == ALL - {"secret.md"}
        assert "1234" not in corpus.read_file("hr/wages.md")
        assert corpus.read_file("secret.md").startswith("[ERROR: NOT_FOUND]")
        assert not corpus.explain(before, "secret.md").found
        assert corpus.info()["documents"] == 4
        rules.write_text("policy:\n  hide: [no-such-level]\n")
        with pytest.raises(SettingError, match="not a level"):
            corpus.search("zebrafish", mode="keyword")
        rules.write_text("policy:\n  hide: [restricted]\n  cleared: [staff]\n")
        assert found(corpus) == ALL
        assert "1234" in corpus.read_file("hr/wages.md")


def test_a_rule_that_takes_away_counts_before_the_next_run(ruled: Path) -> None:
    """Roles are those of both, a copy elsewhere has its own, and what went to another tenant is nobody's until it is read."""
    rules = ruled / "corpus.yaml"
    with wb.open_corpus(ruled, STAFF) as staff, wb.open_corpus(ruled, BOSS) as boss:
        assert found(staff) == found(boss) == ALL
        rules.write_text("rules:\n- path: 'hr/**'\n  roles: [boss]\n")
        assert found(staff) == {"open.md", "secret.md", "pub/copy.md"}
        assert found(boss) == ALL
        assert staff.read_file("hr/wages.md") == staff.read_file("hr/none.md").replace("none", "wages")
        assert staff.search("same bytes", mode="keyword").hits[0].copies == ()
        rules.write_text("rules:\n- path: 'hr/**'\n  roles: [boss]\n- path: hr/wages.md\n  roles: [staff]\n")
        assert found(staff) == {"open.md", "secret.md", "hr/wages.md", "pub/copy.md"}
        rules.write_text("rules:\n- path: open.md\n  tenant: birch\n- path: 'hr/**'\n  sensitivity: restricted\n")
        assert found(staff) == ALL - {"open.md"}
        rules.write_text(rules.read_text() + "policy:\n  hide: [restricted]\n")
        assert found(staff) == found(boss) == {"pub/copy.md"}
        rules.unlink()
        assert found(staff) == ALL


def test_a_run_under_the_rules_says_the_same_as_the_rules_before_it(ruled: Path, tmp_path: Path) -> None:
    source, corpus = write_files(tmp_path / "files", FILES), tmp_path / "corpus"
    wb.index([source], corpus=corpus, tenant="acme", encoder="hashing")
    (corpus / "corpus.yaml").write_text(
        "rules:\n- path: 'hr/**'\n  roles: [boss]\n- path: open.md\n  sensitivity: internal\n"
    )
    with wb.open_corpus(corpus, STAFF) as staff:
        before = found(staff)
    assert wb.index([source], corpus=corpus, tenant="acme", encoder="hashing").embedded == 0
    with wb.open_corpus(corpus, STAFF) as staff, open_generation(corpus) as generation:
        assert found(staff) == before == {"open.md", "secret.md", "pub/copy.md"}
        assert generation.manifest.rules
    wb.index([source / "open.md"], corpus=corpus, tenant="acme", encoder="hashing", roles=["boss"])
    with wb.open_corpus(corpus, STAFF) as staff:
        assert "open.md" not in found(staff)


def test_the_local_owner_names_somebody_once_a_rule_has_roles(make_corpus: object) -> None:
    corpus = make_corpus({"a.md": "# A\n\nzebrafish\n"})  # type: ignore[operator]
    (corpus.path / "corpus.yaml").write_text("rules:\n- path: a.md\n  roles: [boss]\n")
    with pytest.raises(PrincipalRequired):
        corpus.search("zebrafish", mode="keyword")


def test_the_app_and_the_result_cache_obey_too(ruled: Path) -> None:
    corpus = resources.opened(STAFF, ruled)
    assert (found(corpus), resources.info(corpus)["documents"]) == (ALL, 5)
    assert "sensitivity" in resources.filter_fields(corpus)
    (ruled / "corpus.yaml").write_text("policy:\n  hide: [restricted]\n")
    again = resources.opened(STAFF, ruled)
    assert again is corpus
    assert (found(corpus), resources.info(corpus)["documents"]) == (ALL - {"secret.md"}, 4)
    assert "Secret" not in resources.example_queries(corpus, 9)


NAMES = some.text(some.sampled_from('ab":,[]\\\x00 str\ud800'), max_size=6)
WHO = some.builds(wb.Principal, some.none() | NAMES, some.lists(NAMES, max_size=3).map(tuple)) | some.none()


@given(WHO, WHO)
@example(wb.Principal("acme", ("admin", "support")), wb.Principal("acme", ("adminstr:support",)))
@example(wb.Principal(None), wb.Principal(""))
@example(wb.Principal("a", ("b,c",)), wb.Principal("a", ("b", "c")))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_two_principals_share_a_key(one: wb.Principal | None, other: wb.Principal | None) -> None:
    assert (principal_key(one) == principal_key(other)) == (one == other)
    names = [(() if p is None else (p.tenant or "", *p.roles)) for p in (one, other)]
    policies = [MaskPatterns(hidden=("restricted",), cleared=roles).name for roles in names]
    assert (policies[0] == policies[1]) == (sorted(names[0]) == sorted(names[1]))


@given(some.lists(WHO.filter(lambda who: who is not None), min_size=2, max_size=4, unique=True))
@example([wb.Principal("acme", ("boss", "staff")), wb.Principal("acme", ("bossstr:staff",))])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_app_never_gives_one_person_the_corpus_of_another(ruled: Path, people: list[wb.Principal]) -> None:
    logging.disable(logging.CRITICAL)
    try:
        for who in people:
            assert resources.opened(who, ruled).principal == who
    finally:
        logging.disable(logging.NOTSET)
