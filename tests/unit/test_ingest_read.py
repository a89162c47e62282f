"""Reading files: what becomes of each kind, and that nothing but a ReadError comes out of a bad one."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ingest_cases import documents, found, problems, write

from workbench.ingest import FileRules, ReadDocument, ReadError, read_documents
from workbench.ingest.encoding import decode
from workbench.reports import FileStatus


def outline_of(file: Path) -> list[tuple[int, str]]:
    (item,) = read_documents(found(file), FileRules())
    assert isinstance(item, ReadDocument)
    return [(s.level, s.title) for s in item.outline.sections if s.title]


def error(file: Path) -> ReadError:
    with pytest.raises(ReadError) as caught:
        documents(file)
    assert caught.value.remedy
    return caught.value


def test_markdown_gives_front_matter_title_and_headings(tmp_path: Path) -> None:
    text = (
        "---\ntitle: From the front\nonline version: https://x.test/a\ndate: 2024-05-31\nwhen: 2024-05-31T12:00:00+02:00\n"
        "tags: [a, 1, 2.5, null, true]\ntype: howto\n---\n\n# One `two` [three](x) {#id}\n\n> # quoted\n\n"
        "```\n# not a heading\n```\n\nSetext *two*\n---\ntext\n"
    )
    file = write(tmp_path, {"a.md": text}) / "a.md"
    os.utime(file, ns=(0, 1_700_000_000_000_000_000))
    (document,) = documents(file)
    assert document.text == text
    assert (document.title, document.type, document.url) == ("From the front", "howto", "https://x.test/a")
    assert document.metadata["date"] == "2024-05-31"
    assert document.metadata["when"] == "2024-05-31T10:00:00+00:00"
    assert document.metadata["tags"] == ["a", 1, 2.5, None, True]
    assert document.modified == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert document.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert outline_of(file) == [(1, "One two three"), (2, "Setext two")]


def test_the_title_falls_to_the_first_heading_then_to_the_file_name(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# Heading\n", "b.md": "text", "notes.v2.txt": "text", "m.py": "def f(): pass\n"})
    titles = {name: documents(tmp_path / name)[0].title for name in ("a.md", "b.md", "notes.v2.txt", "m.py")}
    assert titles == {"a.md": "Heading", "b.md": "b", "notes.v2.txt": "notes.v2", "m.py": "m.py"}


def test_broken_front_matter_costs_the_metadata_but_not_the_text(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.md": "---\naliases:\n  - %\n---\n# T\nbody\n"}) / "a.md"
    assert documents(file)[0].metadata == {}
    assert outline_of_with_problem(file) == [(1, "T")]
    (problem,) = problems(file)
    assert problem.line == 1
    assert "front matter" in problem.reason


def outline_of_with_problem(file: Path) -> list[tuple[int, str]]:
    items = [i for i in read_documents(found(file), FileRules()) if isinstance(i, ReadDocument)]
    return [(s.level, s.title) for s in items[0].outline.sections]


def test_yaml_that_expands_without_end_is_a_problem(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{c}: &{c} [{','.join(['*' + p] * 10)}]\n" for p, c in zip("abcdef", "bcdefg", strict=True)
    )
    file = write(tmp_path, {"a.md": f"---\n{bomb}---\ntext\n"}) / "a.md"
    assert "too many values" in problems(file)[0].reason


def test_toml_front_matter_and_a_thematic_break(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "+++\ntitle = 'T'\n+++\nx", "b.md": "---\n\njust a line\n\n---\n\n# H\n"})
    assert documents(tmp_path / "a.md")[0].title == "T"
    assert documents(tmp_path / "b.md")[0].title == "H"
    write(tmp_path, {"deep.md": "+++\na = " + "[" * 20_000 + "\n+++\nwords"})
    (problem,) = problems(tmp_path / "deep.md")
    assert "inside each other" in problem.reason


def test_restructuredtext_is_known_by_its_marks_and_levels_come_from_first_use(tmp_path: Path) -> None:
    text = (
        "=====\nTitle\n=====\n\n.. _label:\n\nPart ``one``\n============\n\n.. note::\n\n   hi\n\nSub\n~~~\n\ntext::\n\n"
        "    code\n    ----\n\nPart :doc:`two </x>`\n====================\n\n====  ====\na     b\n====  ====\n"
        "1     2\n====  ====\n"
    )
    file = write(tmp_path, {"a.txt": text}) / "a.txt"
    (item,) = read_documents(found(file), FileRules())
    assert isinstance(item, ReadDocument)
    assert item.document.type == "rst"
    assert outline_of(file) == [(1, "Title"), (2, "Part one"), (3, "Sub"), (2, "Part two")]
    label = item.outline.sections[1]
    assert item.document.text[label.start : label.body].startswith(".. _label:")
    assert [item.document.text[b.start : b.end].split("\n")[0] for b in item.outline.blocks] == ["text::", "====  ===="]


def test_plain_text_keeps_its_lines_and_may_have_underlined_headings(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.txt": "Notes\n=====\n\nsome words\n-\nmore\n"}) / "a.txt"
    assert documents(file)[0].type == "text"
    assert outline_of(file) == [(1, "Notes")]


def test_python_sections_are_functions_and_classes_with_their_comments(tmp_path: Path) -> None:
    text = (
        '"""Doc."""\nimport os\n\n# about f\n@cache\ndef f(\n    x,\n):\n    """D."""\n    return x\n\nX = 1\n\n'
        "class A(B):\n    y = 1\n\n    async def m(self): pass\n\nprint(X)\n"
    )
    file = write(tmp_path, {"m.py": text}) / "m.py"
    (item,) = read_documents(found(file), FileRules())
    assert isinstance(item, ReadDocument)
    assert (item.document.type, item.document.language) == ("code", "python")
    first = item.outline.sections[0]
    assert text[first.start : first.body] == "# about f\n@cache\ndef f(\n    x,\n):\n"
    assert outline_of(file) == [(1, "f"), (1, "A"), (2, "m")]


@pytest.mark.parametrize(
    ("name", "text", "language", "sections"),
    [
        ("a.js", "// c\nexport async function go() {\n}\nclass K {\n}\n", "javascript", [(1, "go"), (1, "K")]),
        ("a.go", "func (s *S) Run(x int) error {\n}\ntype T struct {}\n", "go", [(1, "Run")]),
        ("a.rs", "impl Foo {\n    pub fn new() -> Self {\n    }\n}\n", "rust", [(1, "Foo"), (2, "new")]),
        ("a.c", "static int add(int a, int b)\n{\n  return f(a);\n}\nint x;\n", "c", [(1, "add")]),
        ("a.ps1", "function Get-Thing {\n}\n", "powershell", [(1, "Get-Thing")]),
        ("bad.py", "def f(:\n  pass\ndef g():\n  pass\n", "python", [(1, "f"), (1, "g")]),
        ("tool", "#!/usr/bin/env bash\nfunction go {\n}\n", "shell", [(1, "go")]),
        ("a.yaml", "def: x\n---\nclass: y\n", "yaml", []),
    ],
)
def test_other_languages_are_cut_by_their_keywords(
    tmp_path: Path, name: str, text: str, language: str, sections: list[tuple[int, str]]
) -> None:
    file = write(tmp_path, {name: text}) / name
    assert documents(file)[0].language == language
    assert outline_of(file) == sections


def test_html_becomes_text_with_headings_lists_tables_and_code(tmp_path: Path) -> None:
    html = (
        "<!doctype html><html lang=en-GB><head><title>The &amp; page</title><meta name=description content='About'>"
        "<link rel=canonical href='https://x.test/p'><style>p{}</style></head><body><h1>Big <i>one</i></h1>"
        "<p>Some\n   <b>bold</b>text, then<br>a line.</p><script>no()</script><ul><li><p>first</p></li><li>second"
        "<ol start=3><li>deep</li></ol></li></ul><h2> </h2><h2>Data</h2>"
        "<table><tr><th>A<th>B<tr><td>1<td><p>2</p><p>3</p></table><pre>\n  x = 1\n\n  y</pre>end</body></html>"
    )
    (document,) = documents(write(tmp_path, {"a.html": html}) / "a.html")
    assert document.text == (
        "# Big one\n\nSome boldtext, then\na line.\n\n- first\n- second\n  3. deep\n\n## Data\n\nA | B\n1 | 2 3\n\n"
        "  x = 1\n\n  y\n\nend"
    )
    assert (document.title, document.language, document.url) == ("The & page", "en", "https://x.test/p")
    assert document.metadata == {"description": "About"}
    assert outline_of(tmp_path / "a.html") == [(1, "Big one"), (2, "Data")]


def test_html_without_a_suffix_is_recognised_and_depth_does_not_overflow(tmp_path: Path) -> None:
    write(tmp_path, {"page": "<!-- x --><!DOCTYPE html>" + "<div>" * 5000 + "deep"})
    (document,) = documents(tmp_path / "page")
    assert (document.type, document.text) == ("html", "deep")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfna\xc3\xafve\r\nb\rc\x00d", "naïve\nb\nc\ufffdd"),
        ("\ufeffwide é\r\n".encode("utf-16-le"), "wide é\n"),
        ("\ufeffwide é".encode("utf-16-be"), "wide é"),
        ("\ufeffwide é".encode("utf-32-le"), "wide é"),
        ("no mark here, only text".encode("utf-16-le"), "no mark here, only text"),
        ("no mark here, only text".encode("utf-32-be"), "no mark here, only text"),
        ("Le café est déjà fermé, à bientôt.".encode("latin-1"), "Le café est déjà fermé, à bientôt."),
        ("“smart” quotes – and a dash".encode("cp1252"), "“smart” quotes – and a dash"),
        ("Zażółć gęślą jaźń, dziękuję bardzo".encode("iso-8859-2"), "Zażółć gęślą jaźń, dziękuję bardzo"),
        ("Привет, как дела? Это документ.".encode("cp1251"), "Привет, как дела? Это документ."),
        ("日本語のテキストです。検索の実験。".encode("shift_jis"), "日本語のテキストです。検索の実験。"),
    ],
)
def test_encodings_by_mark_then_utf8_then_detection(data: bytes, text: str) -> None:
    assert decode(data)[0] == text


def test_an_encoding_that_the_file_declares_is_believed_after_utf8(tmp_path: Path) -> None:
    koi = "<meta charset='koi8-r'><p>Да".encode("koi8_r")
    write(
        tmp_path,
        {"a.html": koi, "b.html": "<meta charset='koi8-r'><p>Да", "c.py": "# coding: cp866\n# Да\n".encode("cp866")},
    )
    assert documents(tmp_path / "a.html")[0].text == documents(tmp_path / "b.html")[0].text == "Да"
    assert documents(tmp_path / "a.html")[0].metadata == {"encoding": "koi8-r"}
    assert "Да" in documents(tmp_path / "c.py")[0].text


@pytest.mark.parametrize(
    ("name", "data", "status", "words"),
    [
        ("a.txt", b"", FileStatus.SKIPPED, "empty"),
        ("a.txt", "\u200b\u200d\ufeff \u00ad\n".encode(), FileStatus.SKIPPED, "no text"),
        ("a.txt", b" \n\t\n", FileStatus.SKIPPED, "no text"),
        ("a.md", b"PK\x03\x04rest", FileStatus.FAILED, "broken"),
        ("a.bin", bytes(range(256)) * 8, FileStatus.SKIPPED, "binary"),
        ("a.docx", b"PK\x03\x04", FileStatus.FAILED, "broken"),
        ("a.mp3", b"ID3\x03 words", FileStatus.SKIPPED, "no reader for .mp3 yet"),
        ("a.pdf", bytes(range(256)), FileStatus.FAILED, "not a PDF"),
        ("a.pdf", b"%PDF-1.4 rubbish", FileStatus.FAILED, "broken"),
    ],
)
def test_a_file_that_gives_nothing_says_why_and_what_to_do(
    tmp_path: Path, name: str, data: bytes, status: FileStatus, words: str
) -> None:
    caught = error(write(tmp_path, {name: data}) / name)
    assert caught.status is status
    assert words in caught.message


def test_a_file_that_vanished_or_a_reader_that_breaks_is_a_read_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = found(write(tmp_path, {"a.md": "x"}) / "a.md")
    (tmp_path / "a.md").unlink()
    with pytest.raises(ReadError, match="no such file"):
        list(read_documents(item, FileRules()))
    file = write(tmp_path, {"b.md": "x"}) / "b.md"
    monkeypatch.setattr("workbench.ingest.readers.text.markdown_outline", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in error(file).message


def test_document_ids_come_from_tenant_and_path_only(tmp_path: Path) -> None:
    write(tmp_path, {"one/a.md": "x", "two/a.md": "other text"})
    one, two = found(tmp_path / "one/a.md"), found(tmp_path / "two/a.md")

    def identity(item: object, rules: FileRules, salt: str = "") -> str:
        (result,) = read_documents(item, rules, salt)  # type: ignore[arg-type]
        assert isinstance(result, ReadDocument)
        return result.document.document_id

    plain = identity(one, FileRules())
    assert plain == identity(two, FileRules()) == "13e4d930ea34c20d"
    assert (
        len(
            {
                plain,
                identity(one, FileRules(tenant="")),
                identity(one, FileRules(tenant="a")),
                identity(one, FileRules(), "two"),
            }
        )
        == 4
    )


def test_a_path_with_line_ends_is_shown_on_one_line() -> None:
    """A list of files has one line a file, whatever they are called; nothing reaches the terminal as a command."""
    from workbench.cli.output import one_line

    assert one_line("a\nb\t\x1b[31m.md") == "a\\nb\\t\ufffd[31m.md"
