"""An open corpus: pinned, following, closed, read by path, seen by several; and its names as a script outside uses them."""

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from corpus_files import write_files
from shown_ranks import printed, wrong_ranks

import workbench as wb
from workbench import guide
from workbench.demo import sample_folder
from workbench.errors import CorpusError, QueryError, UsageError
from workbench.mcp.answers import search_answer, search_text

Make = Callable[..., wb.Corpus]


@pytest.mark.slow
def test_a_corpus_is_pinned_until_refreshed(tmp_path):
    source = write_files(tmp_path / "files", {"a.md": "# Apples\n\nAbout apples.\n"})
    path = tmp_path / "corpus"
    wb.index([source], corpus=path, encoder="hashing")
    pinned, following = wb.open_corpus(path), wb.open_corpus(path, follow=True)
    before = pinned.search("apples")
    write_files(source, {"b.md": "# Pears\n\nAbout pears.\n"})
    wb.index([source], corpus=path)
    assert not pinned.search("pears", mode="keyword").hits
    assert following.search("pears", mode="keyword").hits
    assert pinned.refresh()
    assert not pinned.refresh()
    assert pinned.search("pears", mode="keyword").hits[0].path == "b.md"
    assert before.hits[0].path == "a.md"
    pinned.close()
    following.close()


def test_a_side_may_fail_and_a_closed_corpus_says_so(make_corpus, monkeypatch):
    corpus = make_corpus({"a.md": "apples and pears", "b.md": "apples"})
    vector = [h.chunk_id for h in corpus.search("apples", mode="vector").hits]
    lexical = type(corpus.engine.lexical)

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(lexical, "search", fails)
    result = corpus.search("apples")
    assert [h.chunk_id for h in result.hits] == vector
    assert "keyword could not run: OSError: the disk is gone" in result.warnings[0]
    corpus = make_corpus({"a.txt": "one apple a day"})
    result = corpus.search("apple")
    corpus.close()
    assert result.hits[0].text.strip() == "one apple a day"
    with pytest.raises(CorpusError, match="closed"):
        corpus.search("apple")


def test_read_file_stays_inside(make_corpus, tmp_path, monkeypatch):
    """Outside is denied with the allowed folders, whether or not it exists, by a link too; what is allowed by name opens."""
    corpus = make_corpus({"docs/a.md": "# A\n\ntext of a\n"})
    assert corpus.read_file("docs/a.md") == "# A\n\ntext of a\n"
    assert corpus.read_file("docs/b.md").startswith("[ERROR: NOT_FOUND]")
    outside = ("../secret.txt", "/etc/passwd", "docs/../../secret.txt", "/no/such/file", "", "\x00")
    before = [corpus.read_file(path) for path in outside]
    (tmp_path / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "secret.txt", tmp_path / "files0" / "docs" / "link.md")
    assert before == [corpus.read_file(path) for path in outside]
    for said in (*before, corpus.read_file("docs/link.md")):
        assert said.startswith("[ERROR: ACCESS_DENIED]")
        assert str(tmp_path / "files0") in said
    folder = write_files(tmp_path / "allowed", {"b.txt": "text of b"})
    assert corpus.read_file(str(folder / "b.txt")).startswith("[ERROR: ACCESS_DENIED]")
    monkeypatch.setenv("WORKBENCH_ALLOWED_ROOTS", str(folder))
    assert corpus.read_file(str(folder / "b.txt")) == corpus.read_file("b.txt") == "text of b"


def test_who_may_not_see_a_document_reads_an_absent_one(sample_path, monkeypatch):
    with wb.open_corpus(sample_path, wb.Principal("acme")) as guest:
        root = Path(guest.info()["roots"][0])
        for real, none in (
            ("admin/salaries.md", "admin/salariez.md"),
            (str(root / "admin/salaries.md"), str(root / "admin/salariez.md")),
        ):
            hidden, absent = guest.read_file(real), guest.read_file(none)
            assert hidden.startswith("[ERROR: NOT_FOUND]")
            assert hidden.replace("salaries", "salariez") == absent
    with wb.open_corpus(sample_path, wb.Principal("acme", ("support",))) as guest:
        (root,) = guest.info()["roots"]
        monkeypatch.setenv("WORKBENCH_ALLOWED_ROOTS", root)
        for hidden in ("admin/salaries.md", "birch/refunds.md", "history.jsonl"):
            assert (Path(root) / hidden).is_file()
            assert guest.read_file(hidden).startswith("[ERROR: NOT_FOUND]")
            assert guest.read_file(str(Path(root) / hidden)).startswith("[ERROR: NOT_FOUND]")
        assert "warranty" in guest.read_file("kb/warranty.md").lower()


def test_the_tables_answer_sql_for_who_may_see_everything(make_corpus, sample):
    corpus = make_corpus({"a.md": "apples", "b.md": "pears"})
    assert corpus.sql("SELECT path FROM documents WHERE path > ? ORDER BY path", ["a.md"])["path"].to_list() == ["b.md"]
    with pytest.raises(QueryError, match="read-only"):
        corpus.sql("DELETE FROM documents")
    with pytest.raises(QueryError, match="no_such_table"):
        corpus.sql("SELECT * FROM no_such_table")
    with pytest.raises(UsageError, match="hidden"):
        sample.sql("SELECT * FROM documents")
    corpus = make_corpus({"a.md": "---\ntags: [draft]\n---\n\napples"})
    statements = re.findall(r'corpus\.sql\(\s*"(SELECT.*)"\s*\)', guide.text("sql"))
    assert len(statements) == 4
    for statement in statements:
        assert corpus.sql(statement).height


QUERIES = (("how do retries work", "backoff"), ("ACME-INV-49302", None), ('"the kettle is never the cause"', None))


PRESETS = ("default", "rrf", "tmm", "passages", "collections", "pages", "contract", "scoped")


@pytest.mark.parametrize("mode", ["hybrid", "grep", "keyword", "vector", "semantic"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_result_says_the_same_in_hits_table_candidates_funnel_and_messages(preset, mode, sample):
    """Under every preset and mode: scores are sums, `wb.fuse` gives them again to the bit, and the counts are one count."""
    for query, keywords in QUERIES:
        result = sample.search(query, keywords=keywords, mode=mode, plan=preset)
        results = [h for h in result.hits if not h.added]
        frame, funnel = result.frame(), result.funnel()
        assert sorted(h.rank for h in results) == list(range(1, len(results) + 1))
        assert all(h.score == math.fsum(h.contributions.values()) for h in results)
        assert all(not h.rank and not h.contributions for h in result.hits if h.added)
        assert frame.columns[:6] == ["rank", "path", "start_line", "end_line", "label", "score"]
        for source in result.rankings:
            assert {f"{source}_rank", f"{source}_score", f"{source}_contribution"} <= set(frame.columns)
        if result.score_kind == "fused":
            fused = wb.fuse(result.candidates, result.plan.fusion)
            assert fused.scores.tolist() == frame["score"].to_list()
            assert fused.rows.tolist() == result.fused.rows.tolist()
        assert funnel.select((pl.col("entered") - pl.col("left") == pl.col("dropped")).all()).item()
        assert funnel.filter(step="limit")["left"].to_list() == [len(results)]
        assert f"{sum(len(h.text) for h in result.hits):,} characters" in result.messages[0]
        assert result.with_plan(result.plan).to_dict() == result.to_dict()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"query": 5}, "The query is 5, not text"),
        ({"query": "x", "mode": None}, "There is no mode called None"),
        ({"query": "x", "mode": 3}, "The mode is 3, not text"),
        ({"query": "x", "keywords": ["a"]}, "not text"),
        ({"query": "x", "limit": 0}, "limit is 0"),
        ({"query": "x", "limit": 2.5}, "limit is 2.5"),
        ({"query": "x", "filters": "colour = 'red'"}, "unknown field colour"),
        # Fewer than no lines around a match would cite a passage that ends before it begins.
        *(({"pattern": "the", "context": n}, "The context is .*whole number from") for n in (-1, 1001, "3")),
        *(({"pattern": "the", "limit": n}, "The limit is .*whole number from") for n in (0, -1)),
        # Blank patterns would match every line.
        *(({"pattern": p}, "nothing to look for") for p in ("", "  ", [], ["", " "], [None])),
    ],
)
def test_a_search_that_cannot_be_is_told_in_a_sentence(wrong, said, sample):
    with pytest.raises(wb.WorkbenchError, match=said):
        (sample.grep if "pattern" in wrong else sample.search)(**wrong)


def test_one_plan_is_compared_as_one_plan_and_a_file_is_no_corpus(sample, make_corpus):
    assert sample.compare("retries", "rrf limit=3").names == ("rrf limit=3",)
    with pytest.raises(wb.WorkbenchError, match="no plan to compare"):
        sample.compare("retries", [])
    file = make_corpus({"a.txt": "one apple"}).path / "current"
    assert file.is_file()
    with pytest.raises(wb.WorkbenchError, match=r"There is no corpus at .*, which is a file"):
        wb.open_corpus(file)


@pytest.mark.slow
def test_one_path_is_a_path_and_home_is_home(tmp_path, monkeypatch):
    """As the README has it: no shell reads `~` for Python or for a settings file, and a lone path needs no list."""
    monkeypatch.setenv("HOME", str(tmp_path))
    write_files(tmp_path / "notes", {"a.txt": "one apple a day", "b.txt": "two pears"})
    assert wb.index("~/notes", corpus="~/my.corpus", encoder="hashing").found == 2
    assert wb.preview("~/notes", corpus="~/my.corpus").files
    assert wb.remove("~/notes/b.txt", corpus="~/my.corpus").documents == 1
    monkeypatch.setenv("WORKBENCH_CORPUS", "~/my.corpus")
    with wb.open_corpus() as by_setting, wb.open_corpus("~/my.corpus") as corpus:
        assert by_setting.path == corpus.path == tmp_path / "my.corpus"
        saved = corpus.search("apple").snapshot().save("~/kept.snapshot")
    assert saved == tmp_path / "kept.snapshot"
    assert wb.Snapshot.load("~/kept.snapshot").hits()
    (tmp_path / "judged").symlink_to(sample_folder())
    assert wb.load_judgments("~/judged").query_ids


RANKED = ("how do retries work", '"storm damage" report')


@pytest.mark.parametrize("name", PRESETS)
def test_every_output_shows_the_rank_that_counted(sample, name, capsys):
    """For rrf the contribution is weight / (k + rank - 1 + base) of the rank beside it."""
    for query in RANKED:
        for changes in ({}, {"fusion.unit": "document", "fusion.method": "rrf", "fusion.renumber": True}):
            result = sample.search(query, plan=wb.preset(name).replace(changes))
            assert not wrong_ranks(result, printed(result, capsys)), (query, changes)


@pytest.mark.slow
def test_the_chunk_that_counted_is_named(make_corpus, capsys):
    lines = "\n".join("grove " * 9 for _ in range(30))
    texts = {f"d{n}.md": f"# One\n\namber {'ember ' * n}\n{lines}\n\n# Two\n\ncedar\n{lines}\n" for n in range(1, 9)}
    corpus = make_corpus(texts)
    result = corpus.search("amber cedar", plan="contract")
    named = [(h, s, e) for h in result.hits for s, e in h.counted.items()]
    assert named, "no document has ranks of two chunks"
    frame = {row["document_id"]: row for row in result.frame().to_dicts()}
    for hit, source, entry in named:
        assert entry.chunk_id != hit.chunk_id
        assert (entry.document_id, entry.rank, entry.score) == (hit.document_id, hit.ranks[source], hit.scores[source])
        assert frame[hit.document_id][f"{source}_chunk_id"] == entry.chunk_id
    words = f"by its chunk at line {named[0][2].start_line}"
    assert words in search_text(search_answer(result))
    assert words in " ".join(printed(result, capsys).split())
