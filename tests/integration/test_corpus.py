"""An open corpus: pinned, following, closed, read by path, seen by several."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpus_files import write_files

import workbench as wb
from workbench import guide
from workbench.errors import CorpusError, PrincipalRequired, QueryError, UsageError

Make = Callable[..., wb.Corpus]


@pytest.mark.slow
def test_a_corpus_is_pinned_until_refreshed(tmp_path: Path) -> None:
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


def test_tenants_need_a_principal(tmp_path: Path) -> None:
    source = write_files(tmp_path / "files", {"a.md": "secret apples"})
    wb.index([source], corpus=tmp_path / "corpus", encoder="hashing", tenant="acme", roles=("admin",))
    with pytest.raises(PrincipalRequired, match="principal"):
        wb.open_corpus(tmp_path / "corpus")
    with wb.open_corpus(tmp_path / "corpus", wb.Principal("acme", ("support",))) as support:
        for mode in ("grep", "keyword", "vector", "hybrid"):
            assert not support.search("apples", mode=mode).hits
        assert support.info()["documents"] == 0
    with wb.open_corpus(tmp_path / "corpus", wb.Principal("acme", ("admin",))) as admin:
        assert admin.search("apples").hits


def test_a_side_may_fail_and_a_closed_corpus_says_so(make_corpus: Make, monkeypatch: pytest.MonkeyPatch) -> None:
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


# --- read_file ---------------------------------------------------------------------------------------------------------


def test_read_file_stays_inside(make_corpus: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_who_may_not_see_a_document_reads_an_absent_one(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_tables_answer_sql_for_who_may_see_everything(make_corpus: Make, sample: wb.Corpus) -> None:
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
