"""Files with the same bytes are indexed once: which path stands for them, which are known, and what changes do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.judgments.qrels import Judgments, Topic
from workbench.reports import FileStatus, IndexReport
from workbench.store.reader import open_generation

NOTE = "# Pumps\n\nThe pump lost its pressure.\n\n## Repair\n\nReplace the valve of the pump.\n"
OTHER = "# Cats\n\nCats sleep all day.\n"


FILES = {"b/note.md": NOTE, "a/note.md": NOTE, "c/deep/note.md": NOTE, "z.md": OTHER}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """One note three times, and another file."""
    return write_files(tmp_path / "docs", FILES)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """The same files indexed once, for tests that only read."""
    base = tmp_path_factory.mktemp("copies")
    run(write_files(base / "docs", FILES), base / "corpus")
    with wb.open_corpus(base / "corpus") as corpus:
        yield corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Where the corpus goes."""
    return tmp_path / "my.corpus"


def run(paths: Path | list[Path], corpus: Path, **options: object) -> IndexReport:
    """Index with the hashing encoder; documents and chunks of the files are those of the generation."""
    report = wb.index(paths if isinstance(paths, list) else [paths], corpus, encoder="hashing", **options)
    return report


def indexed(corpus: Path) -> tuple[str, list[tuple[str, tuple[str, ...]]], list[str]]:
    """Digest, each document's path with its copies' paths, and the chunk ids."""
    with open_generation(corpus) as opened:
        records = opened.records
        numbers = range(records.documents_total)
        paths = records.paths_of(numbers)
        documents = [(d.path, paths.get(n, (d.path,))[1:]) for n, d in enumerate(records.headers(numbers))]
        return opened.manifest.digest, documents, [r.chunk.chunk_id for r in records.rows(range(records.records_total))]


def test_the_first_path_is_indexed_and_the_others_are_known(docs: Path, corpus: Path) -> None:
    """One document and its chunks once; the report and `info` count the copies, and the counts add up."""
    report = run(docs, corpus)
    assert (report.documents, report.found, report.copies) == (2, 4, 2)
    assert [(f.path, f.documents, f.copies, f.same_as) for f in report.files] == [
        ("a/note.md", 1, 0, ""), ("b/note.md", 0, 1, "a/note.md"), ("c/deep/note.md", 0, 1, "a/note.md"), ("z.md", 1, 0, ""),
    ]  # fmt: skip
    assert sum(f.documents for f in report.files) == report.documents
    assert sum(f.chunks for f in report.files) == report.chunks == report.embedded
    assert report.count(FileStatus.INDEXED) == 4
    assert indexed(corpus)[1] == [("a/note.md", ("b/note.md", "c/deep/note.md")), ("z.md", ())]
    with wb.open_corpus(corpus) as opened:
        assert (opened.info()["documents"], opened.info()["copies"]) == (2, 2)
        assert opened.sources()["copies"].to_list() == [2]


def test_a_second_run_finds_nothing_to_do_and_says_the_same(docs: Path, corpus: Path) -> None:
    run(docs, corpus)
    report = run(docs, corpus)
    assert (report.changed, report.copies, report.count(FileStatus.UNCHANGED)) == (False, 2, 4)
    assert sum(f.documents for f in report.files) == report.documents == 2


def test_results_name_every_path(opened: wb.Corpus) -> None:
    """Hits, their table, grep passages and reading know the copies; one content takes one place in each ranking."""
    result = opened.search("pump pressure", mode="keyword")
    assert {h.path for h in result.hits} == {"a/note.md"}
    assert all(h.copies == ("b/note.md", "c/deep/note.md") for h in result.hits)
    assert set(result.frame()["path"]) == {"a/note.md"}
    (passage,) = opened.grep("lost its")
    assert (passage.path, passage.copies) == ("a/note.md", ("b/note.md", "c/deep/note.md"))
    for name in ("a/note.md", "c/deep/note.md", opened.info()["roots"][0] + "/b/note.md"):
        assert opened.read_file(name) == NOTE
    assert opened.explain(result, "c/deep/note.md").path == "a/note.md"
    assert opened.search("cats", mode="keyword").hits[0].copies == ()


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("path = 'b/note.md'", "b/note.md"),
        ("path glob 'c/**'", "c/deep/note.md"),
        ("path = 'a/'", "a/note.md"),
        ("path != 'a/note.md'", "b/note.md"),
        ("not path glob '[bc]/**'", "a/note.md"),
        ("path like '%deep%' and type = 'markdown'", "c/deep/note.md"),
        ("path = 'b/note.md' and collection = 'docs'", "b/note.md"),
        ("path = 'b/note.md' and collection = 'other'", None),
        ("path glob 'd/**'", None),
    ],
)
def test_a_filter_on_path_holds_for_any_of_the_paths(opened: wb.Corpus, condition: str, shown: str | None) -> None:
    """A document is found, under the path that was asked for, where the whole filter holds for one of its paths."""
    result = opened.search("pump", mode="keyword", filters=condition)
    assert {h.path for h in result.hits} == ({shown} if shown else set())
    assert set(result.frame()["path"]) == ({shown} if shown else set())
    every = {"a/note.md", "b/note.md", "c/deep/note.md"}
    assert all({h.path, *h.copies} == every for h in result.hits)
    assert {p.path for p in opened.grep("lost its", filters=condition)} == ({shown} if shown else set())


def test_who_may_see_them_keeps_files_apart(docs: Path, corpus: Path) -> None:
    """The same bytes for another tenant, role or sensitivity, or of another type, are documents of their own."""
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text(
        "rules:\n  - {path: 'b/**', roles: [staff]}\n  - {path: 'c/**', sensitivity: confidential}\n"
    )
    write_files(docs, {"a/again.md": NOTE, "a/note.txt": NOTE})
    report = run(docs, corpus)
    assert (report.documents, report.copies) == (5, 1)
    seen = wb.Principal(None, ())
    with wb.open_corpus(corpus, seen) as opened:
        hits = opened.search("pump pressure", mode="keyword").hits
        named = {p for h in hits for p in (h.path, *h.copies)}
        assert named == {"a/again.md", "a/note.md", "a/note.txt", "c/deep/note.md"}
        assert opened.read_file("b/note.md").startswith("[ERROR: NOT_FOUND]")


@pytest.mark.slow
def test_a_copy_takes_the_place_of_a_file_that_went(docs: Path, corpus: Path, tmp_path: Path) -> None:
    """Nothing is embedded, and the corpus is what it would be without the file's ever having been there."""
    run(docs, corpus)
    (docs / "a" / "note.md").unlink()
    report = run(docs, corpus)
    assert (report.embedded, report.count(FileStatus.REMOVED), report.documents) == (0, 1, 2)
    assert [(f.path, f.documents, f.copies) for f in report.files] == [
        ("a/note.md", 0, 0), ("b/note.md", 1, 0), ("c/deep/note.md", 0, 1), ("z.md", 1, 0),
    ]  # fmt: skip
    assert sum(f.chunks for f in report.files) == report.chunks
    run(docs, tmp_path / "fresh.corpus")
    assert indexed(corpus) == indexed(tmp_path / "fresh.corpus")
    assert run(docs, corpus).changed is False
    with wb.open_corpus(corpus) as opened:
        assert opened.read_file("a/note.md").startswith("[ERROR: NOT_FOUND]")
        assert opened.search("pump", mode="vector", filters="path = 'b/'").hits[0].copies == ("c/deep/note.md",)


@pytest.mark.slow
def test_taking_a_primary_out_needs_no_file(docs: Path, corpus: Path, tmp_path: Path) -> None:
    """`remove` promotes the copy from what the corpus holds, even where the originals are gone."""
    run(docs, corpus)
    (docs / "a" / "note.md").unlink()
    fresh = tmp_path / "fresh.corpus"
    run(docs, fresh)
    docs.rename(tmp_path / "elsewhere")
    report = wb.remove(["a/note.md"], corpus)
    assert report.embedded == 0
    assert indexed(corpus) == indexed(fresh)
    wb.remove(["c/deep/note.md"], corpus)
    assert indexed(corpus)[1] == [("b/note.md", ()), ("z.md", ())]


@pytest.mark.slow
def test_a_copy_that_changes_becomes_a_document_of_its_own(docs: Path, corpus: Path, tmp_path: Path) -> None:
    """And one that becomes equal to another file becomes its copy."""
    run(docs, corpus)
    (docs / "b" / "note.md").write_text(NOTE.replace("pressure", "temper"))
    (docs / "z.md").write_text(NOTE)
    report = run(docs, corpus)
    assert (report.documents, report.copies) == (2, 2)
    assert indexed(corpus)[1] == [("a/note.md", ("c/deep/note.md", "z.md")), ("b/note.md", ())]
    run(docs, tmp_path / "fresh.corpus")
    assert indexed(corpus) == indexed(tmp_path / "fresh.corpus")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["0/note.md", "y/note.md"])
def test_a_copy_that_is_added_embeds_nothing(docs: Path, corpus: Path, tmp_path: Path, name: str) -> None:
    """Whether it comes before the primary, and takes its place, or after it."""
    run(docs, corpus)
    write_files(docs, {name: NOTE})
    report = run(docs, corpus)
    assert (report.embedded, report.copies, report.changed) == (0, 3, True)
    run(docs, tmp_path / "fresh.corpus")
    assert indexed(corpus) == indexed(tmp_path / "fresh.corpus")


@pytest.mark.slow
def test_a_title_from_the_file_name_is_that_of_the_path(tmp_path: Path, corpus: Path) -> None:
    """Where the copy that takes over has another name, its text is embedded under it, so that history leaves no trace."""
    text = "The pump lost its pressure.\n"
    docs = write_files(tmp_path / "docs", {"first.txt": text, "second.txt": text, "third.txt": text})
    run(docs, corpus)
    with wb.open_corpus(corpus) as opened:
        assert opened.search("pump", mode="keyword").hits[0].title == "first"
    (docs / "first.txt").unlink()
    assert run(docs, corpus).embedded == 1
    run(docs, tmp_path / "fresh.corpus")
    assert indexed(corpus) == indexed(tmp_path / "fresh.corpus")
    report = wb.remove(["second.txt"], corpus)
    assert (report.embedded, indexed(corpus)[1]) == (0, [("third.txt", ())])
    (docs / "second.txt").unlink()
    assert run(docs, corpus).embedded == 1
    run(docs, tmp_path / "fresh2.corpus")
    assert indexed(corpus) == indexed(tmp_path / "fresh2.corpus")


@pytest.mark.slow
def test_a_touched_file_stays_what_it_is(docs: Path, corpus: Path) -> None:
    run(docs, corpus)
    before = indexed(corpus)
    os.utime(docs / "a" / "note.md", (1, 1))
    os.utime(docs / "c" / "deep" / "note.md", (1, 1))
    assert run(docs, corpus).embedded == 0
    assert indexed(corpus) == before


@pytest.mark.slow
def test_copies_are_found_over_folders(tmp_path: Path, corpus: Path) -> None:
    """In whatever order these are indexed; a folder that holds only copies is still one that the corpus reads."""
    one = write_files(tmp_path / "one", {"x.md": NOTE})
    two = write_files(tmp_path / "two", {"copy/x.md": NOTE})
    run(one, corpus)
    assert run(two, corpus).embedded == 0
    other = tmp_path / "other.corpus"
    run(two, other)
    run(one, other)
    assert indexed(corpus) == indexed(other)
    with wb.open_corpus(corpus) as opened:
        frame = opened.sources()
        assert frame["documents"].to_list() == [0, 1]
        assert frame["copies"].to_list() == [1, 0]
        assert set(opened.info()["roots"]) == {str(one), str(two)}
        (hit,) = opened.search("pressure", mode="keyword", filters="source = 'one'").hits[:1]
        assert hit.path == "x.md"


@pytest.mark.slow
def test_records_of_a_copied_file_are_its_copies(tmp_path: Path, make_corpus: Callable[..., wb.Corpus]) -> None:
    """A record is one of another file's only with the same id and content; equal lines of one file stay two."""
    line = '{"id": "%s", "text": "The pump lost its pressure."}\n'
    with make_corpus({"a.jsonl": line % 1 + line % 2, "b.jsonl": line % 1 + line % 2}) as opened:
        assert (opened.info()["documents"], opened.info()["copies"]) == (2, 2)
        (hit,) = [
            h
            for h in opened.search("pump", plan=wb.preset("default").replace({"dedupe": False})).hits
            if "#1" in h.path
        ]
        assert (hit.path, hit.copies) == ("a.jsonl#1", ("b.jsonl#1",))


@pytest.mark.parametrize("filters", [None, "path glob 'b/**'", "path = 'z.md'"])
def test_judgments_by_the_path_of_a_copy_count(opened: wb.Corpus, tmp_path: Path, filters: str | None) -> None:
    """In `evaluate` and in a sweep alike; where two copies are judged, the document has the higher grade."""
    (tmp_path / "q.tsv").write_text("1\tpump pressure\n")
    (tmp_path / "qrels.txt").write_text("1 0 c/deep/note.md 2\n1 0 b/note.md 1\n1 0 z.md 0\n")
    judged = wb.load_judgments(tmp_path / "qrels.txt", topics=tmp_path / "q.tsv")
    plan = wb.Plan.of("default").replace({"sources": ("keyword",)})
    found = filters != "path = 'z.md'"
    evaluation = opened.evaluate(judged, plan, ["RR", "R@10", "nDCG@10"], filters=filters)
    assert [evaluation.mean(m) for m in ("RR", "R@10", "nDCG@10")] == [float(found)] * 3
    sweep = opened.sweep(judged, {"keyword.b": [0.4]}, "R@10", folds=0, plan=plan, filters=filters)
    assert sweep.values[0, 0, 0] == found


def test_where_two_folders_hold_one_path(tmp_path: Path, corpus: Path) -> None:
    """The document that has the path itself comes before one that has it by a copy."""
    one = write_files(tmp_path / "one", {"a.md": NOTE, "x.md": OTHER})
    two = write_files(tmp_path / "two", {"x.md": NOTE})
    run([one, two], corpus)
    with wb.open_corpus(corpus) as opened:
        assert opened.read_file("x.md") == OTHER
        assert opened.read_file(str(two / "x.md")) == NOTE
        assert {h.path for h in opened.search("pump cats", mode="keyword", filters="path = 'x.md'").hits} == {"x.md"}


@pytest.mark.slow
def test_a_hidden_document_at_the_path_of_a_copy_changes_no_judgment(tmp_path: Path, corpus: Path) -> None:
    """Whose path a judgment means is decided by what the principal sees; who sees both has it mean the document's own."""
    mine, theirs = write_files(tmp_path / "mine", {"a.md": NOTE, "x.md": NOTE}), tmp_path / "theirs"
    run(mine, corpus, tenant="acme")
    run(write_files(theirs, {"x.md": OTHER}), corpus, tenant="beta")
    with wb.open_corpus(corpus, principal=wb.Principal("acme")) as opened:
        records = opened.engine.records
        assert records.indexed_as(records.scope(opened.principal, None, ())) == {"x.md": "a.md"}
        judged = Judgments({"1": Topic("1", "pump")}, {"1": {"x.md": 1}}, "judged")
        assert opened.evaluate(judged, measures=["R@10"], mode="keyword").mean("R@10") == 1
        everything = records.scope(opened.principal, None, ())
        assert records.indexed_as(replace(everything, visible_documents=None)) == {}


def test_a_result_is_explained_under_the_path_that_it_shows(opened: wb.Corpus) -> None:
    """Under a filter that asks for the path of a copy, the explanation cites that copy as the hit does."""
    result = opened.search("pump", mode="keyword", filters="path glob 'b/**'")
    explained = opened.explain(result, "b/note.md")
    assert (explained.path, explained.citation) == ("b/note.md", result.hits[0].citation)
