"""The same text under several paths: every file is indexed, embedded once, and shown together at display."""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from corpus_files import write_files

import workbench as wb
from workbench.errors import CorpusError
from workbench.records import FileStatus, IndexReport

NOTE = "# Pumps\n\nThe pump lost its pressure.\n\n## Repair\n\nReplace the valve of the pump.\n"
OTHER = "# Cats\n\nCats sleep all day.\n"
FILES = {"b/note.md": NOTE, "a/note.md": NOTE, "c/deep/note.md": NOTE, "z.md": OTHER}
EVERY = {"a/note.md", "b/note.md", "c/deep/note.md"}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_files(tmp_path / "docs", FILES)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    base = tmp_path_factory.mktemp("copies")
    run(write_files(base / "docs", FILES), base / "corpus")
    with wb.open_corpus(base / "corpus") as corpus:
        yield corpus


def run(docs: Path, corpus: Path, **options: object) -> IndexReport:
    return wb.index([docs], corpus, encoder="hashing", workers=0, **options)


def test_every_file_is_indexed_and_a_text_is_embedded_once(docs, tmp_path):
    """The report names files with the bytes of another; `info` and `sources` count documents that repeat a text."""
    report = run(docs, tmp_path / "corpus")
    assert (report.documents, report.found, report.copies, report.embedded) == (4, 4, 2, 2)
    assert [(f.path, f.documents, f.same_as, f.reason) for f in report.files] == [
        ("a/note.md", 1, "", ""),
        ("b/note.md", 1, "a/note.md", "The same bytes as a/note.md"),
        ("c/deep/note.md", 1, "a/note.md", "The same bytes as a/note.md"),
        ("z.md", 1, "", ""),
    ]
    again = run(docs, tmp_path / "corpus")
    assert (again.changed, again.copies, again.count(FileStatus.UNCHANGED)) == (False, 2, 4)
    with wb.open_corpus(tmp_path / "corpus") as opened:
        assert (opened.info()["documents"], opened.info()["copies"]) == (4, 2)
        assert opened.sources()["copies"].to_list() == [2]


def test_results_name_every_path_and_judgments_of_each_count(opened, tmp_path):
    result = opened.search("pump pressure", mode="keyword")
    assert {h.path for h in result.hits} == {"a/note.md"}
    assert all({h.path, *h.copies} == EVERY for h in result.hits)
    (passage,) = opened.grep("lost its")
    assert (passage.path, passage.copies) == ("a/note.md", ("b/note.md", "c/deep/note.md"))
    for name in (*EVERY, opened.info()["roots"][0] + "/b/note.md"):
        assert opened.read_file(name) == NOTE
    assert opened.explain(result, "c/deep/note.md").dropped_by == "dedupe"
    assert opened.search("cats", mode="keyword").hits[0].copies == ()
    every = opened.search("lost pressure", mode="keyword", plan=wb.preset("default").replace({"dedupe": False}))
    assert {h.path for h in every.hits} == EVERY
    (tmp_path / "q.tsv").write_text("1\tpump pressure\n")
    (tmp_path / "qrels.txt").write_text("1 0 c/deep/note.md 2\n1 0 z.md 0\n")
    judged = wb.load_judgments(tmp_path / "qrels.txt", topics=tmp_path / "q.tsv")
    plan = wb.Plan.of("default").replace({"sources": ("keyword",)})
    assert opened.evaluate(judged, plan, ["RR"]).mean("RR") == 1
    assert opened.sweep(judged, {"keyword.b": [0.4]}, "R@10", folds=0, plan=plan).values[0, 0, 0] == 1


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("path = 'b/note.md'", "b/note.md"),
        ("path glob 'c/**'", "c/deep/note.md"),
        ("path != 'a/note.md'", "b/note.md"),
        ("path like '%deep%' and type = 'markdown'", "c/deep/note.md"),
        ("path glob 'd/**'", None),
    ],
)
def test_a_filter_on_path_chooses_the_path_that_is_shown(opened, condition, shown):
    result = opened.search("pump", mode="keyword", filters=condition)
    assert {h.path for h in result.hits} == ({shown} if shown else set())
    assert all({h.path, *h.copies} == EVERY for h in result.hits)
    assert {p.path for p in opened.grep("lost its", filters=condition)} == ({shown} if shown else set())


def test_hidden_copies_are_not_named(docs, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text("rules:\n  - {path: 'b/**', roles: [staff]}\n")
    run(docs, corpus)
    for roles, named in (((), EVERY - {"b/note.md"}), (("staff",), EVERY)):
        with wb.open_corpus(corpus, wb.Principal(None, roles)) as opened:
            (hit,) = opened.search("lost pressure", mode="keyword").hits
            (passage,) = opened.grep("lost its")
            assert {hit.path, *hit.copies} == {passage.path, *passage.copies} == named
            assert opened.info()["copies"] == len(named) - 1


def test_members_of_archives_have_the_text_of_files_too(tmp_path):
    docs = write_files(tmp_path / "docs", {"z/x.md": NOTE})
    with zipfile.ZipFile(docs / "pack.zip", "w") as archive:
        archive.writestr("x.md", NOTE)
    assert run(docs, tmp_path / "corpus").documents == 2
    with wb.open_corpus(tmp_path / "corpus") as opened:
        (hit,) = opened.search("lost pressure", mode="keyword").hits
        assert {hit.path, *hit.copies} == {"pack.zip!/x.md", "z/x.md"}


def test_a_judgment_follows_a_file_that_was_moved(tmp_path):
    docs, corpus = write_files(tmp_path / "docs", {"a.md": NOTE, "b.md": OTHER}), tmp_path / "corpus"
    run(docs, corpus)
    with wb.open_corpus(corpus, follow=True) as opened:
        opened.judging.grade(opened.search("lost pressure", mode="keyword").hits[0], 3, "pump")
        for gone, now in (("a.md", "c.md"), ("c.md", "d.md")):
            (docs / gone).rename(docs / now)
            run(docs, corpus)
            opened.refresh()
            (located,) = opened.judging.located("search")
            assert (located.path, located.stale) == (now, False)
        assert opened.read_file("a.md").startswith("[ERROR: NOT_FOUND]")


@pytest.mark.parametrize("first", [False, True])
def test_a_corpus_of_the_earlier_format_is_taken_over(tmp_path, first):
    """Also one of the first, which did not say who may see a file without a document."""
    corpus = tmp_path / "corpus"
    with zipfile.ZipFile(Path(__file__).parents[1] / "data" / "corpus_format_1.zip") as archive:
        archive.extractall(corpus)
    if first:
        (database,) = corpus.glob("generations/*/corpus.duckdb")
        with duckdb.connect(str(database)) as connection:
            connection.execute("ALTER TABLE files DROP COLUMN access")
        manifest = database.with_name("manifest.json")
        content = json.loads(manifest.read_text())
        content.pop("seal")
        data = database.read_bytes()
        content["parts"]["corpus.duckdb"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        manifest.write_text(json.dumps(content))
    (corpus / "writer.lock").touch()
    with pytest.raises(CorpusError, match="has format 1, and this version reads 3") as caught:
        wb.open_corpus(corpus)
    assert "not embedded again" in caught.value.remedy
    note = "# Pumps\n\nThe pump lost its pressure.\n\n## Repair\n\nReplace the valve of the pump.\n"
    docs = write_files(tmp_path / "docs", {"pump.md": note, "b/pump.md": note})
    report = run(docs, corpus)
    assert (report.embedded, report.documents) == (0, 5)  # three of a folder that is not there any more
    assert "An earlier version wrote this corpus" in report.warnings[0]
    with wb.open_corpus(corpus) as opened:
        assert opened.search("cats", mode="hybrid", filters="author = 'Ann'").hits[0].path == "cats.md"
    assert not run(docs, corpus).changed
