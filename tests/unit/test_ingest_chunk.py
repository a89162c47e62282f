"""Chunks follow the structure of a document, fit the budget, and are the same on every run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from corpus_files import write_files
from file_makers import check_chunks, count_words, cut_file, found

from workbench.ingest.chunking import chunk_document
from workbench.ingest.errors import Problem
from workbench.ingest.outline import Outline
from workbench.ingest.readers.text import markdown_outline
from workbench.ingest.rules import FileRules
from workbench.records import Chunk, ChunkKind, Document, Granularity


def document(text: str, title: str = "", path: str = "a.md") -> Document:
    return Document("0123456789abcdef", path, "/root", text, title)


def cut(text: str, budget: int = 40, title: str = "") -> tuple[Chunk, ...]:
    item = document(text, title)
    chunks = chunk_document(item, markdown_outline(text), "docs", Granularity.CHUNK, budget, count_words)
    check_chunks(item, chunks)
    assert all(c.tokens == count_words([c.indexed_text])[0] <= budget for c in chunks)
    return chunks


def words(count: int, start: int = 0) -> str:
    """That many words, in lines of eight, each line ending a sentence."""
    lines = [" ".join(f"w{start + n}" for n in range(a, min(a + 8, count))) for a in range(0, count, 8)]
    return ".\n".join(lines)


def test_sections_have_their_path_and_context_leaves_out_what_the_text_says():
    text = f"# Page\n\n{words(20)}\n\n## Part\n\n{words(20)}\n\n### Detail\n\n{words(60)}\n"
    chunks = cut(text, title="Page")
    assert [c.section for c in chunks][:2] == ["Page", "Page > Part"]
    assert {c.section for c in chunks[2:]} == {"Page > Part > Detail"}
    assert [c.context for c in chunks[:4]] == ["", "Page", "Page > Part", "Page > Part > Detail"]
    assert all(c.kind is ChunkKind.BODY for c in chunks)


def test_a_title_that_no_heading_repeats_is_in_the_context():
    assert [c.context for c in cut("## A\n\ntext", title="Guide")] == ["Guide"]
    assert [c.context for c in cut("Guide\n\ntext", title="Guide")] == [""]
    assert [c.context for c in cut("# 12. Guide\n\n" + words(60), title="Guide")][-1] == "12. Guide"


@pytest.mark.parametrize("name", ["Summary", "OVERVIEW", "2.1 Overview", "summary:"])
def test_summary_sections_are_page_summaries(name):
    chunks = cut(f"# T\n\nIntro.\n\n## {name}\n\nShort.\n\n## Rest\n\nMore.\n")
    assert [(c.kind, c.text.split("\n")[-1]) for c in chunks] == [
        (ChunkKind.BODY, "Intro."), (ChunkKind.SUMMARY, "Short."), (ChunkKind.BODY, "More."),
    ]  # fmt: skip


def test_front_matter_is_no_content():
    """It is in no chunk and no whole-document record; spans and lines stay those of the text. A body that is blank leaves it."""
    front = "---\ntitle: T\ntags: [a, b]\n---\n"
    text = f"{front}\nIntro.\n\n## Part\n\nMore.\n"
    for granularity, whole in ((Granularity.CHUNK, False), (Granularity.DOCUMENT, False), (Granularity.CHUNK, True)):
        outline = markdown_outline(text, len(front))
        chunks = chunk_document(document(text, "T"), outline, "c", granularity, 60, count_words, one_chunk=whole)
        assert not any("tags" in c.text for c in chunks)
        assert all(text[c.start : c.end] == c.text for c in chunks)
        assert text.splitlines()[chunks[-1].end_line - 1] == "More."
        lone = chunk_document(
            document(front, "T"),
            markdown_outline(front, len(front)),
            "c",
            granularity,
            60,
            count_words,
            one_chunk=whole,
        )
        assert [c.text.strip() for c in lone] == [front.strip()]


def test_a_summary_under_a_bare_title_stands_apart_from_front_matter():
    text = "---\ntitle: T\n---\n# T\n\n## Summary\n\nShort.\n\n## Rest\n\nMore.\n"
    outline = markdown_outline(text, text.index("# T"))
    chunks = chunk_document(document(text, "T"), outline, "docs", Granularity.CHUNK, 60, count_words)
    assert [(c.kind, c.text.split("\n")[-1]) for c in chunks] == [
        (ChunkKind.SUMMARY, "Short."), (ChunkKind.BODY, "More."),
    ]  # fmt: skip


def test_everything_below_an_examples_heading_is_examples():
    chunks = cut(f"# T\n\n## Examples\n\n### One\n\n{words(24)}\n\n### Two\n\n{words(24)}\n\n## End\n\n{words(9)}\n")
    assert [(c.section, c.kind) for c in chunks] == [
        ("T > Examples > One", ChunkKind.EXAMPLES), ("T > Examples > Two", ChunkKind.EXAMPLES), ("T > End", ChunkKind.BODY),
    ]  # fmt: skip
    assert chunks[0].text.startswith("# T\n\n## Examples\n\n### One")
    assert [c.context for c in chunks] == ["", "T > Examples", "T"]


def test_a_page_called_overview_is_not_a_summary_as_a_whole():
    chunks = cut(f"# Overview\n\n{words(30)}\n\n## Install\n\n{words(30)}\n")
    assert [c.kind for c in chunks] == [ChunkKind.SUMMARY, ChunkKind.BODY]
    assert [c.kind for c in cut("# Overview\n\n## Install\n\ntext\n")] == [ChunkKind.BODY]


def test_a_function_called_summary_is_no_summary(tmp_path):
    file = write_files(tmp_path, {"m.py": "def summary():\n    return 1\n"}) / "m.py"
    ((_, chunks),) = cut_file(found(file), FileRules(), count_words)
    assert [(c.section, c.kind) for c in chunks] == [("summary", ChunkKind.BODY)]


def test_a_heading_is_never_left_without_the_start_of_its_text():
    """Whatever the lengths: no chunk ends with a heading that has text below it (A has none)."""
    for length in range(1, 80, 3):
        text = f"# T\n\n{words(length)}\n\n## A\n\n## B\n\n### C\n\n{words(length + 30, 100)}\n\n## D\n\n{words(5)}\n"
        for chunk in cut(text):
            assert chunk.text.split("\n")[-1] == "## A" or not chunk.text.split("\n")[-1].startswith("#")


def test_tiny_sections_go_with_the_next_one_under_the_same_parent_only():
    text = f"# T\n\n{words(20)}\n\n## A\n\none\n\n## B\n\n{words(20)}\n\n## C\n\ntwo\n\n# U\n\n{words(30)}\n"
    assert [c.text.split("\n")[0] for c in cut(text)] == ["# T", "## A", "## C", "# U"]


def test_code_blocks_and_tables_stay_whole_where_they_fit():
    code = "```py\n" + "\n".join(f"x{n} = {n}" for n in range(8)) + "\n```"
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n} |" for n in range(3))
    text = f"# T\n\n{words(30)}\n\nAs here:\n\n{code}\n\n{words(30)}\n\n{table}\n\n{words(20)}\n"
    chunks = cut(text, budget=60)
    assert sum(code in c.text for c in chunks) == 1
    assert sum(table in c.text for c in chunks) == 1


def test_a_very_long_line_is_cut_at_sentences_then_words_then_characters():
    sentences = " ".join(f"This is sentence number {n} of them." for n in range(40))
    assert all(c.text.endswith(".") for c in cut(sentences))
    assert all(c.text == c.text.strip() and not c.text.startswith("or") for c in cut("word " * 400))
    run = "x" * 3000
    assert "".join(c.text for c in cut(run)) == run


def test_a_hard_cut_never_parts_a_letter_from_its_marks():
    run = "e\u0301\u0302" * 600
    for chunk in cut(run):
        assert not chunk.text.startswith(("\u0301", "\u0302"))


def test_ids_do_not_depend_on_root_or_order_and_differ_by_tenant_path_collection_and_span(tmp_path):
    files = {"a.md": "# A\n\n" + words(90), "b.md": "# A\n\n" + words(90)}
    write_files(tmp_path / "one", files)
    write_files(tmp_path / "two", files)

    def ids(root: str, names: Sequence[str], rules: FileRules) -> dict[str, list[str]]:
        result = {}
        for name in names:
            items = cut_file(found(tmp_path / root / name), rules, count_words, budget=40)
            result[name] = [c.chunk_id for item in items if not isinstance(item, Problem) for c in item[1]]
        return result

    plain = ids("one", ["a.md", "b.md"], FileRules())
    assert plain == ids("two", ["b.md", "a.md"], FileRules())
    others = [ids("one", ["a.md", "b.md"], r) for r in (FileRules(tenant="t"), FileRules(("x",)))]
    every = [i for result in (plain, *others) for part in result.values() for i in part]
    assert len(every) == len(set(every))
    assert all(len(i) == 16 and int(i, 16) >= 0 for i in every)


def test_a_tokenizer_that_counts_wholes_longer_than_their_parts_still_fits():
    def superadditive(texts: Sequence[str]) -> list[int]:
        return [n + n * n // 40 for n in count_words(texts)]

    item = document(words(400) + "\n\n" + "long" * 300)
    chunks = chunk_document(item, Outline(), "d", Granularity.CHUNK, 40, superadditive)
    check_chunks(item, chunks)
    assert max(c.tokens for c in chunks) <= 40
