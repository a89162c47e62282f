"""Reading files: what becomes of each kind, and that nothing but a ReadError comes out of a bad one."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from corpus_files import write_files
from file_makers import count_words, cut_file, documents, found, headings, problems

from workbench.ingest.encoding import MIXED, decode
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.read import ReadDocument, read_documents
from workbench.ingest.rules import FileRules
from workbench.records import FileStatus


def error(file: Path) -> ReadError:
    with pytest.raises(ReadError) as caught:
        documents(file)
    assert caught.value.remedy
    return caught.value


def test_markdown_gives_front_matter_title_and_headings(tmp_path):
    text = (
        "---\ntitle: From the front\nonline version: https://x.test/a\ndate: 2024-05-31\nwhen: 2024-05-31T12:00:00+02:00\n"
        "tags: [a, 1, 2.5, null, true]\ntype: howto\n---\n\n# One `two` [three](x) {#id}\n\n> # quoted\n\n"
        "```\n# not a heading\n```\n\nSetext *two*\n---\ntext\n"
    )
    file = write_files(tmp_path, {"a.md": text}) / "a.md"
    os.utime(file, ns=(0, 1_700_000_000_000_000_000))
    (document,) = documents(file)
    assert document.text == text
    assert (document.title, document.type, document.url) == ("From the front", "howto", "https://x.test/a")
    assert document.metadata["date"] == "2024-05-31"
    assert document.metadata["when"] == "2024-05-31T10:00:00+00:00"
    assert document.metadata["tags"] == ["a", 1, 2.5, None, True]
    assert document.modified == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert document.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert headings(file) == [(1, "One two three"), (2, "Setext two")]


def test_the_title_falls_to_the_first_heading_then_to_the_file_name(tmp_path):
    write_files(tmp_path, {"a.md": "# Heading\n", "b.md": "text", "notes.v2.txt": "text", "m.py": "def f(): pass\n"})
    titles = {name: documents(tmp_path / name)[0].title for name in ("a.md", "b.md", "notes.v2.txt", "m.py")}
    assert titles == {"a.md": "Heading", "b.md": "b", "notes.v2.txt": "notes.v2", "m.py": "m.py"}


def test_broken_front_matter_costs_the_metadata_but_not_the_text(tmp_path):
    file = write_files(tmp_path, {"a.md": "---\naliases:\n  - %\n---\n# T\nbody\n"}) / "a.md"
    assert documents(file)[0].metadata == {}
    assert headings(file) == [(1, "T")]
    (problem,) = problems(file)
    assert problem.line == 1
    assert "front matter" in problem.reason


def test_yaml_that_expands_without_end_is_a_problem(tmp_path):
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{c}: &{c} [{','.join(['*' + p] * 10)}]\n" for p, c in zip("abcdef", "bcdefg", strict=True)
    )
    file = write_files(tmp_path, {"a.md": f"---\n{bomb}---\ntext\n"}) / "a.md"
    assert "too many values" in problems(file)[0].reason


def test_toml_front_matter_and_a_thematic_break(tmp_path):
    write_files(tmp_path, {"a.md": "+++\ntitle = 'T'\n+++\nx", "b.md": "---\n\njust a line\n\n---\n\n# H\n"})
    assert documents(tmp_path / "a.md")[0].title == "T"
    assert documents(tmp_path / "b.md")[0].title == "H"
    write_files(tmp_path, {"deep.md": "+++\na = " + "[" * 20_000 + "\n+++\nwords"})
    (problem,) = problems(tmp_path / "deep.md")
    assert "inside each other" in problem.reason


def test_restructuredtext_is_known_by_its_marks_and_levels_come_from_first_use(tmp_path):
    text = (
        "=====\nTitle\n=====\n\n.. _label:\n\nPart ``one``\n============\n\n.. note::\n\n   hi\n\nSub\n~~~\n\ntext::\n\n"
        "    code\n    ----\n\nPart :doc:`two </x>`\n====================\n\n====  ====\na     b\n====  ====\n"
        "1     2\n====  ====\n"
    )
    file = write_files(tmp_path, {"a.txt": text}) / "a.txt"
    (item,) = read_documents(found(file), FileRules())
    assert isinstance(item, ReadDocument)
    assert item.document.type == "rst"
    assert headings(file) == [(1, "Title"), (2, "Part one"), (3, "Sub"), (2, "Part two")]
    label = item.outline.sections[1]
    assert item.document.text[label.start : label.body].startswith(".. _label:")
    assert [item.document.text[b.start : b.end].split("\n")[0] for b in item.outline.blocks] == ["text::", "====  ===="]


def test_plain_text_keeps_its_lines_and_may_have_underlined_headings(tmp_path):
    file = write_files(tmp_path, {"a.txt": "Notes\n=====\n\nsome words\n-\nmore\n"}) / "a.txt"
    assert documents(file)[0].type == "text"
    assert headings(file) == [(1, "Notes")]


def test_python_sections_are_functions_and_classes_with_their_comments(tmp_path):
    text = (
        '"""Doc."""\nimport os\n\n# about f\n@cache\ndef f(\n    x,\n):\n    """D."""\n    return x\n\nX = 1\n\n'
        "class A(B):\n    y = 1\n\n    async def m(self): pass\n\nprint(X)\n"
    )
    file = write_files(tmp_path, {"m.py": text}) / "m.py"
    (item,) = read_documents(found(file), FileRules())
    assert isinstance(item, ReadDocument)
    assert (item.document.type, item.document.language) == ("code", "python")
    first = item.outline.sections[0]
    assert text[first.start : first.body] == "# about f\n@cache\ndef f(\n    x,\n):\n"
    assert headings(file) == [(1, "f"), (1, "A"), (2, "m")]


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
def test_other_languages_are_cut_by_their_keywords(tmp_path, name, text, language, sections):
    file = write_files(tmp_path, {name: text}) / name
    assert documents(file)[0].language == language
    assert headings(file) == sections


def test_html_becomes_text_with_headings_lists_tables_and_code(tmp_path):
    html = (
        "<!doctype html><html lang=en-GB><head><title>The &amp; page</title><meta name=description content='About'>"
        "<link rel=canonical href='https://x.test/p'><style>p{}</style></head><body><h1>Big <i>one</i></h1>"
        "<p>Some\n   <b>bold</b>text, then<br>a line.</p><script>no()</script><ul><li><p>first</p></li><li>second"
        "<ol start=3><li>deep</li></ol></li></ul><h2> </h2><h2>Data</h2>"
        "<table><tr><th>A<th>B<tr><td>1<td><p>2</p><p>3</p></table><pre>\n  x = 1\n\n  y</pre>end</body></html>"
    )
    (document,) = documents(write_files(tmp_path, {"a.html": html}) / "a.html")
    assert document.text == (
        "# Big one\n\nSome boldtext, then\na line.\n\n- first\n- second\n  3. deep\n\n## Data\n\nA | B\n1 | 2 3\n\n"
        "  x = 1\n\n  y\n\nend"
    )
    assert (document.title, document.language, document.url) == ("The & page", "en", "https://x.test/p")
    assert document.metadata == {"description": "About"}
    assert headings(tmp_path / "a.html") == [(1, "Big one"), (2, "Data")]


def test_html_without_a_suffix_is_recognised_and_depth_does_not_overflow(tmp_path):
    write_files(tmp_path, {"page": "<!-- x --><!DOCTYPE html>" + "<div>" * 5000 + "deep"})
    (document,) = documents(tmp_path / "page")
    assert (document.type, document.text) == ("html", "deep")


def test_an_encoding_that_the_file_declares_is_believed_after_utf8(tmp_path):
    koi = "<meta charset='koi8-r'><p>Да".encode("koi8_r")
    write_files(
        tmp_path,
        {"a.html": koi, "b.html": "<meta charset='koi8-r'><p>Да", "c.py": "# coding: cp866\n# Да\n".encode("cp866")},
    )
    assert documents(tmp_path / "a.html")[0].text == documents(tmp_path / "b.html")[0].text == "Да"
    assert documents(tmp_path / "a.html")[0].metadata == {"encoding": "koi8-r"}
    assert "Да" in documents(tmp_path / "c.py")[0].text


def test_a_file_that_vanished_or_a_reader_that_breaks_is_a_read_error(tmp_path, monkeypatch):
    item = found(write_files(tmp_path, {"a.md": "x"}) / "a.md")
    (tmp_path / "a.md").unlink()
    with pytest.raises(ReadError, match="no such file"):
        list(read_documents(item, FileRules()))
    file = write_files(tmp_path, {"b.md": "x"}) / "b.md"
    monkeypatch.setattr("workbench.ingest.readers.text.markdown_outline", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in error(file).message


def test_document_ids_come_from_tenant_and_path_only(tmp_path):
    write_files(tmp_path, {"one/a.md": "x", "two/a.md": "other text"})
    one, two = found(tmp_path / "one/a.md"), found(tmp_path / "two/a.md")

    def identity(item: object, rules: FileRules, salt: str = "") -> str:
        (result,) = read_documents(item, rules, salt)
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


def test_a_path_with_line_ends_is_shown_on_one_line():
    """A list of files has one line a file, whatever they are called; nothing reaches the terminal as a command."""
    from workbench.cli.output import one_line

    assert one_line("a\nb\t\x1b[31m.md") == "a\\nb\\t\ufffd[31m.md"


def jsonl(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_a_record_keeps_what_it_says(tmp_path):
    record = {
        "id": 7, "title": "A  title", "text": "line\r\nline", "created_at": "2024-05-31T12:00:00+02:00", "url": "https://x.test",
        "path": "mail\\inbox/e\u0301.txt", "collection": "memory", "year": 2024, "metadata": {"a": [1]}, "language": "en",
    }  # fmt: skip
    (item,) = read_documents(found(write_files(tmp_path, {"m.jsonl": jsonl(record)}) / "m.jsonl"), FileRules())
    assert isinstance(item, ReadDocument)
    document = item.document
    assert (document.text, document.title, document.url) == ("line\nline", "A title", "https://x.test")
    assert (document.path, document.type, document.language) == ("mail/inbox/é.txt", "record", "en")
    assert document.modified == datetime(2024, 5, 31, 10, tzinfo=UTC)
    assert document.metadata == {"a": [1], "year": 2024, "created_at": record["created_at"], "record_id": "7"}
    assert item.collections == ("memory",)


def test_bad_lines_are_reported_by_number_and_the_good_ones_read(tmp_path):
    lines = [
        '{"id": "a", "text": "one"}', "{broken", "", "[1]",
        '{"id": "b"}', '{"id": "c", "text": 7}', '{"id": "a", "text": "again"}',
        '{"id": 1.5, "text": "x"}', '{"id": "d", "text": "x", "created_at": "soon"}',
        '{"id": "e", "text": "x", "collection": "a,b"}',
        '{"id": "f", "text": "  "}', '{"id": "z", "text": "last \\ud800"}',
    ]  # fmt: skip
    file = (
        write_files(tmp_path, {"r.jsonl": "\n".join(lines).encode() + b'\n{"id": "g", "text": "\xff"}\n'}) / "r.jsonl"
    )
    assert [d.text for d in documents(file)] == ["one", "last \ufffd"]
    assert [p.line for p in problems(file)] == [2, 4, 5, 6, 7, 8, 9, 10, 11, 13]
    assert all(p.reason and p.remedy for p in problems(file))


def test_thousands_of_bad_lines_are_summed_up(tmp_path):
    file = write_files(tmp_path, {"x.jsonl": '{"text": "good"}\n' + "bad\n" * 250}) / "x.jsonl"
    found_problems = problems(file)
    assert len(found_problems) == 101
    assert found_problems[-1].reason.startswith("150 more lines")


def test_records_without_ids_are_known_by_what_they_hold(tmp_path):
    a, b = {"text": "a"}, {"text": "b"}
    write_files(tmp_path, {"r.jsonl": jsonl(a, b)})
    before = {d.text: d.document_id for d in documents(tmp_path / "r.jsonl")}
    write_files(tmp_path, {"r.jsonl": jsonl(b, a, a)})
    assert {d.text: d.document_id for d in documents(tmp_path / "r.jsonl")} == before
    assert "earlier line" in problems(tmp_path / "r.jsonl")[0].reason


def test_equal_record_ids_in_two_files_stay_two_documents(tmp_path):
    write_files(tmp_path, {"a.jsonl": jsonl({"id": "1", "text": "x"}), "b.jsonl": jsonl({"id": "1", "text": "x"})})
    (one,), (two,) = documents(tmp_path / "a.jsonl"), documents(tmp_path / "b.jsonl")
    assert one.document_id != two.document_id
    assert (one.path, two.path) == ("a.jsonl#1", "b.jsonl#1")
    assert one.metadata["record_id"] == two.metadata["record_id"] == "1"


def test_records_that_share_a_path_have_different_chunks(tmp_path):
    records = [{"id": n, "text": "the same", "path": "p.md"} for n in "ab"]
    file = write_files(tmp_path, {"r.jsonl": jsonl(*records)}) / "r.jsonl"
    items = [i for i in cut_file(found(file), FileRules(), count_words) if not isinstance(i, Problem)]
    assert [d.path for d, _ in items] == ["p.md", "p.md"]
    assert len({c.chunk_id for _, chunks in items for c in chunks}) == 2


def test_a_beir_folder_gives_title_and_text_and_no_judgments(tmp_path):
    write_files(
        tmp_path,
        {
            "corpus.jsonl": jsonl(
                {"_id": "1", "title": "T", "text": "body"}, {"_id": "2", "title": "Only", "text": ""}, {"_id": "3", "text": "t"}
            ),
            "queries.jsonl": jsonl({"_id": "q", "text": "why"}), "queries.dev.jsonl": "{}", "qrels.tsv": "q\t1\t1\n",
            "qrels/test.tsv": "q\t1\t1\n",
        },
    )  # fmt: skip
    read = documents(tmp_path / "corpus.jsonl")
    assert [(d.metadata["record_id"], d.text) for d in read] == [("1", "T\nbody"), ("2", "Only"), ("3", "t")]
    for name in ("queries.jsonl", "queries.dev.jsonl", "qrels.tsv", "qrels/test.tsv"):
        with pytest.raises(ReadError, match="judgments") as caught:
            documents(tmp_path / name)
        assert caught.value.status is FileStatus.SKIPPED


def test_one_chunk_a_document_is_the_whole_text_without_context(tmp_path):
    text = "word " * 900
    file = write_files(tmp_path, {"corpus.jsonl": jsonl({"_id": "1", "title": "T", "text": text})}) / "corpus.jsonl"
    ((document, chunks),) = cut_file(found(file), FileRules(), count_words, one_chunk=True)
    (chunk,) = chunks
    assert (chunk.start, chunk.end, chunk.context) == (0, len(document.text), "")
    assert chunk.indexed_text == "T\n" + text
    assert chunk.tokens == 901


RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.\n"
FRENCH = "Tous les êtres humains naissent libres et égaux en dignité et en droits, doués de raison et de conscience.\n"
GERMAN = (
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft begabt, natürlich größer.\n"
)
POLISH = "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem.\n"
CZECH = "Všichni lidé se rodí svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím, žijí šťastně.\n"
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα, με λογική και συνείδηση.\n"
TURKISH = (
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler, kardeşlik şarttır.\n"
)
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם.\n"
ARABIC = "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً وعليهم أن يعامل بعضهم بعضاً.\n"
JAPANESE = (
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は理性を授けられている。\n"
)
CHINESE = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。\n"
KOREAN = (
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았다.\n"
)
NAVAL_FRENCH = (
    "Entretien de la chaîne d'ancre. Le capitaine vérifie chaque jour l'état de la coque ; où sont les matelots ?"
)
NAVAL_GERMAN = (
    "Pflege der Ankerkette. Der Kapitän prüft täglich den Anker, die Matrosen säubern das Deck und den größeren Kran."
)
SPANISH = "Mantenimiento de la cadena. El capitán revisa el ancla cada mañana; así será más fácil, según él, en otoño."
ITALIAN = "Manutenzione della catena. Il capitano controlla l'ancora perché è così; più libertà, lunedì, però là."
NAVAL_TURKISH = (
    "Çapa zincirinin bakımı. Kaptan her gün çapayı kontrol eder, tayfalar güverteyi yıkar. İğne ışık, şöyle, ağaç."
)
DANISH = "Vedligeholdelse af kæden. Kaptajnen går over dækket på broen. Den første søndag æble og øl."
LITHUANIAN = (
    "Inkaro grandinės priežiūra. Kapitonas kasdien tikrina inkarą, jūreiviai plauna denį. Žmogus, šuo, ąžuolas."
)
CROATIAN = "Održavanje sidrenog lanca. Kapetan provjerava sidro svaki dan, čovjek, kuća, žena, šuma, đak."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "koi8-r"), (RUSSIAN, "cp1251"), (RUSSIAN, "iso8859-5"), (RUSSIAN, "cp866"),
        (FRENCH, "latin-1"), (FRENCH, "cp1252"), (GERMAN, "latin-1"),
        (POLISH, "cp1250"), (POLISH, "iso8859-2"), (CZECH, "cp1250"), (CZECH, "iso8859-2"), (GREEK, "cp1253"),
        (TURKISH, "cp1254"), (HEBREW, "cp1255"), (ARABIC, "cp1256"), (JAPANESE, "shift_jis"), (JAPANESE, "euc-jp"),
        (JAPANESE, "iso2022_jp"), (CHINESE, "gb18030"), (KOREAN, "euc-kr"), ("имя;сумма\nцапля;3\nлиса;4\n", "koi8-r"),
        ("Привет\n", "koi8-r"), ("会议记录\n", "gb18030"), ("会议的报告。\n", "gb18030"), ("회의록입니다\n", "euc-kr"),
        ("素早い茶色の狐がのろまな犬を飛び越える。サギは堰のそばで魚を待つ。\n", "shift_jis"),
        (NAVAL_FRENCH, "latin-1"), (NAVAL_FRENCH, "mac-roman"), (NAVAL_FRENCH, "cp850"),
        (NAVAL_FRENCH + " Le cœur.", "iso8859-15"),
        (NAVAL_GERMAN, "latin-1"), (NAVAL_GERMAN, "mac-roman"), (NAVAL_GERMAN, "cp850"), (SPANISH, "latin-1"),
        (ITALIAN, "latin-1"), (ITALIAN, "mac-roman"), (NAVAL_TURKISH, "cp1254"), (NAVAL_TURKISH, "iso8859-9"),
        (DANISH, "cp1252"),
        (DANISH, "cp850"), (LITHUANIAN, "cp1257"), (CROATIAN, "cp1250"), (CROATIAN, "iso8859-2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("times", [1, 4])
def test_code_pages_are_told_by_their_text(text, encoding, times):
    """Also by the language: French is not Baltic, an accent no sign, and the last letters of Turkish no Icelandic."""
    whole = f"{text.strip()}\n" * times
    assert decode(whole.encode(encoding))[0] == whole


@pytest.mark.parametrize("text", [RUSSIAN, FRENCH, GREEK, HEBREW, ARABIC, JAPANESE, CHINESE, KOREAN])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_unicode_is_told_with_and_without_a_mark(text, encoding):
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [("x-sjis", "cp932", JAPANESE), ("gb2312", "gb18030", CHINESE + "镕"), ("EUC-KR", "cp949", KOREAN + "똠"),
     ("iso-8859-1", "cp1252", "“quoted” – naïve"), ("ISO-8859-9", "cp1254", TURKISH)],
)  # fmt: skip
def test_a_declared_encoding_is_taken_for_the_larger_one_that_is_meant(label, encoding, text):
    assert decode(text.encode(encoding), label)[0] == text


def test_a_file_of_two_encodings_keeps_the_words_of_both():
    data = (GERMAN * 3).encode() + "Straße\n".encode("latin-1") + GERMAN.encode()
    assert decode(data) == (GERMAN * 3 + "Straße\n" + GERMAN, MIXED)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\rc\nd", "a\nb\nc\nd"), (b"one\x00two, and so on and on", "one\ufffdtwo, and so on and on"),
        ("e\u0301 \u202b\u05d0\u202c".encode(), "e\u0301 \u202b\u05d0\u202c"), (b"x" * (2 << 20), "x" * (2 << 20)),
    ],
    ids=["line ends", "NUL", "marks and right-to-left", "one long line"],
)  # fmt: skip
def test_text_keeps_its_characters_and_only_line_ends_and_nul_change(data, text):
    assert decode(data)[0] == text


@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 8, b"\x01\x00\x02\x00" * 200, b"\x00" * 400, bytes(range(0, 256, 2)) * 9]
)
def test_binaries_are_no_text_in_any_encoding(data):
    with pytest.raises(ReadError):
        decode(data)


@pytest.mark.parametrize(("text", "encoding"), [(FRENCH, "cp1252"), (RUSSIAN, "cp1251"), (RUSSIAN, "koi8-r")])
def test_lines_of_two_encodings_are_read_each_in_its_own(text, encoding):
    other = f"and {text}"
    found, name = decode((text.encode() + other.encode(encoding)) * 3)
    assert found == (text + other) * 3
    assert name.startswith("utf-8 and ")


@pytest.mark.parametrize("encoding", ["cp500", "cp037"])
def test_text_of_mainframes_is_named_and_not_read_as_noise(encoding):
    with pytest.raises(ReadError, match="EBCDIC") as caught:
        decode("THE QUICK BROWN FOX JUMPS over the lazy dog.\n".encode(encoding) * 30)
    assert "iconv" in caught.value.remedy
