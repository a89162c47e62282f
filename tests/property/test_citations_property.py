"""What the tests of citations share: files cut small, and a reading of locators that is not the workbench's own.

An original is the list of its places in the order of the document, each with its keys and the words that stand there, as the
format's own library or the test that made the file gives them."""

import email
import email.policy
import html
import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import file_makers as make
import pytest
from file_makers import count_words, cut_file, found, pdf
from hypothesis import given
from hypothesis import strategies as st
from odf import opendocument
from trials import trials

from workbench import guide
from workbench.ingest.rules import FileRules
from workbench.records import Chunk, Document

Original = Sequence[tuple[dict[str, object], str]]

WORD = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzäéßжяλ"), min_size=2, max_size=9)
SENTENCE = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
PARAGRAPHS = st.lists(SENTENCE, min_size=1, max_size=12)
NAMES = st.sampled_from(["Sales", "R&D = 5%", "Übersicht", "a#b", "2024", "a..row"])
ROWS = st.lists(st.lists(st.one_of(st.none(), SENTENCE), min_size=1, max_size=4), min_size=1, max_size=12)
CHECK = trials(12)


def read(folder: Path, name: str, data: bytes) -> list[tuple[Document, tuple[Chunk, ...]]]:
    file = folder / name
    file.write_bytes(data)
    items = cut_file(found(file), FileRules(), count_words, budget=30)
    return [item for item in items if isinstance(item, tuple)]


def chunks(folder: Path, name: str, data: bytes) -> list[Chunk]:
    made = [chunk for _, own in read(folder, name, data) for chunk in own]
    assert made
    return made


def words_of(text: str) -> list[str]:
    """The words of a text, without the marks that the workbench sets."""
    return re.findall(r"\w+", text)


def words_at(locator: str, original: Original) -> list[str]:
    """The words at the place that a locator names, between the ends of its range."""
    first, _, last = re.sub(r"\.\.(?=[a-z]+=)", "\0", locator).partition("\0")
    starts, ends = _named(first, original), _named(last or first, original)
    assert starts, locator
    assert ends, locator
    return words_of("\n".join(words for _, words in original[starts[0] : ends[-1] + 1]))


def _named(place: str, original: Original) -> list[int]:
    pairs = [part.partition("=")[::2] for part in place.split("&")]
    wanted = {key: re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), value) for key, value in pairs}
    return [
        at
        for at, (keys, _) in enumerate(original)
        if all(key in keys and _is(value, str(keys[key])) for key, value in wanted.items())
    ]


def _is(value: str, own: str) -> bool:
    low, _, high = value.partition("-")
    numbers = re.fullmatch(r"[\d:]+-[\d:]+", value) and own.replace(":", "").isdigit()
    return value == own or bool(numbers and low.zfill(9) <= own.zfill(9) <= high.zfill(9))


def check(made: Sequence[Chunk], original: Original) -> None:
    assert made
    for chunk in made:
        there = words_at(chunk.locator, original)
        position = 0
        for word in words_of(chunk.text):
            assert word in there[position:], (chunk.locator, word)
            position = there.index(word, position) + 1


def flat(package: bytes) -> bytes:
    """A packaged OpenDocument file as the one XML file that its program would save it as."""
    return bytes(opendocument.load(io.BytesIO(package)).xml())


def odt(before: list[str], rows: list[list[str]], after: list[str]) -> bytes:
    return make.odt([(int(n % 3 == 0), p) for n, p in enumerate(before)], rows, [(0, p) for p in after])


TEXT_FILES: dict[str, Callable[[list[str], list[list[str]], list[str]], bytes]] = {
    "docx": lambda before, rows, after: make.docx(
        [("" if n % 4 else "Heading 1", p) for n, p in enumerate(before)], rows, after
    ),
    "odt": odt,
    "fodt": lambda *parts: flat(odt(*parts)),
}


@pytest.mark.slow
@CHECK
@given(PARAGRAPHS, st.lists(st.lists(SENTENCE, min_size=2, max_size=2), max_size=8), PARAGRAPHS)
@pytest.mark.parametrize("kind", TEXT_FILES)
def test_texts_with_a_table(tmp_path, kind, before, rows, after):
    """Paragraphs, headings too, are counted outside of tables, and rows inside them; a chunk may hold both."""
    original: Original = [
        *(({"paragraph": n}, words) for n, words in enumerate(before, 1)),
        *(({"table": 1, "row": n}, " ".join(row)) for n, row in enumerate(rows, 1)),
        *(({"paragraph": n}, words) for n, words in enumerate(after, len(before) + 1)),
    ]
    check(chunks(tmp_path, f"a.{kind}", TEXT_FILES[kind](before, rows, after)), original)


def ods(sheets: dict[str, list[list[str | None]]]) -> bytes:
    return make.ods({name: [[cell or "" for cell in row] for row in rows] for name, rows in sheets.items()})


WORKBOOKS = {"xlsx": make.xlsx, "xls": make.xls, "ods": ods, "fods": lambda sheets: flat(ods(sheets))}


@CHECK
@given(st.dictionaries(NAMES, ROWS, min_size=1, max_size=3))
@pytest.mark.parametrize("kind", WORKBOOKS)
def test_workbooks(tmp_path, kind, sheets):
    """Rows that are empty are counted, and no chunk holds rows of two sheets."""
    whole = {name: [["start"], *rows] for name, rows in sheets.items()}
    original: Original = [
        ({"sheet": name, "row": n}, " ".join([name if n == 1 else "", *(cell or "" for cell in row)]))
        for name, rows in whole.items()
        for n, row in enumerate(rows, 1)
    ]
    made = chunks(tmp_path, f"a.{kind}", WORKBOOKS[kind](whole))
    check(made, original)
    assert not any("..sheet=" in chunk.locator for chunk in made)


DECKS: dict[str, Callable[[list[tuple[str, str, str]]], bytes]] = {
    "pptx": make.pptx,
    "ppt": lambda slides: make.ppt(slides, before=[("gone", "away", "")]),
    "odp": make.odp,
    "fodp": lambda slides: flat(make.odp(slides)),
}


@CHECK
@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.one_of(st.just(""), SENTENCE)), min_size=1, max_size=5))
@pytest.mark.parametrize("kind", DECKS)
def test_slides(tmp_path, kind, slides):
    original: Original = []
    for n, (title, body, notes) in enumerate(slides, 1):
        original += [({"slide": n}, f"{title}\n{body}"), ({"slide": n, "part": "notes"}, notes)]
    made = chunks(tmp_path, f"a.{kind}", DECKS[kind](slides))
    check(made, original)
    assert all(re.fullmatch(r"slide=\d+(&part=notes)?", chunk.locator) for chunk in made)


@CHECK
@given(st.lists(st.lists(st.one_of(st.just(""), SENTENCE), min_size=2, max_size=4), min_size=2, max_size=14))
@pytest.mark.parametrize(("kind", "sign"), [("csv", ";"), ("tsv", "\t")])
def test_tables(tmp_path, kind, sign, rows):
    rows[0] = ["alpha", "beta"]
    data = "\r\n".join(sign.join(row) for row in rows).encode("utf-8")
    original: Original = [({"row": n}, line) for n, line in enumerate(data.decode("utf-8").split("\r\n"), 1)]
    check(chunks(tmp_path, f"a.{kind}", data), original)


@CHECK
@given(st.lists(st.tuples(st.booleans(), PARAGRAPHS, st.lists(SENTENCE, max_size=2)), min_size=1, max_size=5))
def test_notebooks(tmp_path, cells):
    data = [
        {"cell_type": "code", "source": "\n".join(p), "outputs": [{"output_type": "stream", "text": o} for o in outputs]}
        if code else {"cell_type": "markdown", "source": "\n\n".join(p)}
        for code, p, outputs in cells
    ]  # fmt: skip
    original: Original = []
    for n, (code, paragraphs, outputs) in enumerate(cells, 1):
        original.append(({"cell": n}, "\n".join(paragraphs)))
        original += [({"cell": n, "output": m}, o) for m, o in enumerate(outputs, 1)] if code else []
    check(chunks(tmp_path, "a.ipynb", json.dumps({"cells": data}).encode()), original)


@CHECK
@given(st.lists(PARAGRAPHS, min_size=1, max_size=4))
def test_books(tmp_path, chapters):
    pages = {f"{n}.xhtml": "".join(f"<p>{p}</p>" for p in paragraphs) for n, paragraphs in enumerate(chapters, 1)}
    data = make.epub(pages)
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        parts = [f"OEBPS/{name}" for name in pages]
        original: Original = [({"part": p}, re.sub("<[^>]*>", " ", book.read(p).decode())) for p in parts]
    check(chunks(tmp_path, "a.epub", data), original)


@CHECK
@given(SENTENCE, PARAGRAPHS, PARAGRAPHS, PARAGRAPHS)
def test_mail_and_what_is_attached(tmp_path, subject, body, attached, inner):
    within = email.message_from_bytes(make.mail("Inner", "\n".join(inner)), policy=email.policy.default)
    data = make.mail(subject, "\n".join(body), {"note.txt": "\n".join(attached).encode("utf-8"), "in.eml": within})
    made = {document.path: own for document, own in read(tmp_path, "a.eml", data)}
    assert list(made) == ["a.eml", "a.eml!/note.txt", "a.eml!/in.eml"]
    message = email.message_from_bytes(data, policy=email.policy.default)
    check(made["a.eml"], _parts(message))
    (attachment,) = (part.get_content() for part in message.iter_attachments() if part.get_filename() == "in.eml")
    check(made["a.eml!/in.eml"], _parts(attachment))
    _in_lines(made["a.eml!/note.txt"], "\n".join(attached))


def _parts(message: email.message.EmailMessage) -> Original:
    head = f"{message['Subject']} From {message['From']} To {message['To']} Date {message['Date']}"
    body = message.get_body(("plain",))
    return [({"part": 0}, head), ({"part": 1}, body.get_content())]


@CHECK
@given(PARAGRAPHS)
def test_xml(tmp_path, paragraphs):
    lines = ["<r>", *(f"<p>{p}</p>" for p in paragraphs), "</r>"]
    original: Original = [({"line": n}, "p " + re.sub("<[^>]*>", " ", line)) for n, line in enumerate(lines, 1)]
    check(chunks(tmp_path, "a.xml", "\n".join(lines).encode("utf-8")), original)


@CHECK
@given(PARAGRAPHS)
def test_subtitles(tmp_path, cues):
    times = [f"00:{n:02d}:00" for n in range(len(cues))]
    data = "\n\n".join(f"{n + 1}\n{t},000 --> {t},900\n{c}" for n, (t, c) in enumerate(zip(times, cues, strict=True)))
    original: Original = [({"time": t}, c) for t, c in zip(times, cues, strict=True)]
    check(chunks(tmp_path, "a.srt", data.encode("utf-8")), original)


@CHECK
@given(PARAGRAPHS)
@pytest.mark.parametrize("kind", ["ics", "vcf"])
def test_calendars_and_cards(tmp_path, kind, paragraphs):
    """A property is cited by the line of the file on which it begins, also where it is folded."""
    name = {"ics": "VCALENDAR", "vcf": "VCARD"}[kind]
    lines = [f"BEGIN:{name}"]
    original: Original = []
    for words in paragraphs:
        original.append(({"line": len(lines) + 1}, f"NOTE {words}"))
        lines += [f"NOTE:{words[:9]}", f" {words[9:]}"]
    check(chunks(tmp_path, f"a.{kind}", "\r\n".join([*lines, f"END:{name}", ""]).encode("utf-8")), original)


@CHECK
@given(st.lists(st.tuples(SENTENCE, PARAGRAPHS), min_size=1, max_size=4))
def test_mailboxes(tmp_path, messages):
    own = [make.mail(subject, "\n".join(body)) for subject, body in messages]
    data = b"".join(b"From a@b Tue Oct  1 12:34:56 2024\n" + message + b"\n" for message in own)
    for number, ((document, made), message) in enumerate(zip(read(tmp_path, "a.mbox", data), own, strict=True), 1):
        assert document.path == f"a.mbox!/{number}.eml"
        check(made, _parts(email.message_from_bytes(message, policy=email.policy.default)))


@CHECK
@given(PARAGRAPHS)
def test_pages_saved_as_messages(tmp_path, paragraphs):
    page = "".join(f"<p>{words}</p>" for words in paragraphs)
    head = "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=B\n\n--B\nContent-Type: text/html; charset=utf-8\n\n"
    made = chunks(tmp_path, "a.mht", f"{head}{page}\n--B--\n".encode())
    check(made, [({"part": 1}, "\n".join(paragraphs))])


@CHECK
@given(st.lists(PARAGRAPHS, min_size=1, max_size=5), st.booleans())
def test_records(tmp_path, texts, array):
    rows = [{"id": str(n), "text": "\n".join(lines)} for n, lines in enumerate(texts)]
    data = json.dumps(rows) if array else "\n".join(map(json.dumps, rows))
    name = "a.json" if array else "a.jsonl"
    for (document, own), row in zip(read(tmp_path, name, data.encode()), rows, strict=True):
        assert document.path == f"{name}#{row['id']}"
        _in_lines(own, row["text"])


@CHECK
@given(PARAGRAPHS)
def test_rtf(tmp_path, paragraphs):
    body = "".join("".join(c if c < "\x80" else f"\\u{ord(c)}?" for c in p) + "\\par\n" for p in paragraphs)
    made = chunks(tmp_path, "a.rtf", f"{{\\rtf1\\ansi {body}}}".encode("ascii"))
    check(made, [({"paragraph": n}, p) for n, p in enumerate(paragraphs, 1)])


LATIN = st.lists(st.text("abcdefghij", min_size=2, max_size=8), min_size=1, max_size=8).map(" ".join)


@CHECK
@given(st.lists(st.lists(LATIN, max_size=6), min_size=1, max_size=5).filter(any))
def test_pdf_pages(tmp_path, pages):
    """Through what was put on the pages, empty ones too: the page that is named, by number and by locator, holds the words."""
    for chunk in chunks(tmp_path, "a.pdf", pdf(["\n".join(lines) for lines in pages])):
        assert chunk.locator == f"page={chunk.page}"
        assert chunk.page is not None
        there = words_of("\n".join(pages[chunk.page - 1]))
        assert all(word in there for word in words_of(chunk.text))


@CHECK
@given(st.dictionaries(st.sampled_from(["a.txt", "d/b.txt", "d/e/c.txt"]), PARAGRAPHS, min_size=1), st.booleans())
def test_members_of_archives(tmp_path, files, nested):
    """Through the texts that were packed: the member that the path names holds the words at the cited lines."""
    data = make.zipped({name: "\n".join(lines) for name, lines in files.items()})
    for document, own in read(tmp_path, "a.zip", make.zipped({"in.zip": data}) if nested else data):
        name = document.path.removeprefix("a.zip!/in.zip!/" if nested else "a.zip!/")
        _in_lines(own, "\n".join(files[name]))


MARKED = st.lists(
    st.tuples(st.sampled_from(["", "# ", "* ", "\\section{x} ", "def f(): ", "=="]), SENTENCE), min_size=1
)


@CHECK
@given(MARKED, WORD)
@pytest.mark.parametrize("suffix", ["tex", "org", "adoc", "md", "rst", "txt", "py", "js"])
def test_texts(tmp_path, suffix, lines, word):
    text = "\n\n".join([f"{word} begins", *(mark + words for mark, words in lines)])
    _in_lines(chunks(tmp_path, f"a.{suffix}", text.encode("utf-8")), text)


def _in_lines(made: list[Chunk] | tuple[Chunk, ...], text: str) -> None:
    lines = text.split("\n")
    for chunk in made:
        assert not chunk.locator
        assert chunk.text.strip() in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


SCRIPT = "<script>\n'no'</script>\n"
SPACES = (" ", "\n", "\n\n\t ", "&nbsp;", "<br>\n", "&amp;\n")
BETWEEN = st.sampled_from((*SPACES, " <b\nclass='a>b'>", "</b>\n", " <!-- no\n<p>word\n-->\n", SCRIPT))
# No headings: long ones leave a chunk of this test no room for a whole word.
BLOCKS = st.sampled_from(
    ["p", "pre", "li", "div", "blockquote", "noscript>never</noscript><p", "td", "tr><td", "table><tr><td"]
)
RUNS = st.lists(st.tuples(SENTENCE, BETWEEN), min_size=1, max_size=3)
PAGES = st.lists(st.tuples(BLOCKS, RUNS), min_size=1, max_size=6)


def source(blocks: list[tuple[str, list[tuple[str, str]]]]) -> str:
    body = "\n".join(f"<{tag}>" + "".join(f"{words}{after}" for words, after in runs) for tag, runs in blocks)
    return (
        f"<!doctype html>\n<html><head>\n<title>The page</title>\n<style>\np {{ }}\n</style></head>\n<body>\n{body}\n"
    )


def lines_of(page: str) -> Original:
    """The words of each line, by patterns that know nothing of elements."""
    silent = r"<!--.*?-->|<(script|style|title|noscript)>.*?</\1>|</?[a-z!](?:'[^']*'|[^'>])*>"
    plain = re.sub(silent, lambda markup: " " + "\n" * markup[0].count("\n"), page, flags=re.DOTALL)
    return [({"line": n}, html.unescape(line)) for n, line in enumerate(plain.split("\n"), 1)]


@CHECK
@given(PAGES)
@pytest.mark.parametrize(("encoding", "end"), [("utf-8", "\n"), ("utf-16", "\r\n")])
def test_pages(tmp_path, encoding, end, blocks):
    page = source(blocks)
    made = chunks(tmp_path, "a.html", page.replace("\n", end).encode(encoding))
    check(made, lines_of(page))
    assert all(re.fullmatch(r"line=\d+(-\d+)?", chunk.locator) for chunk in made)


@CHECK
@given(PAGES, PARAGRAPHS)
def test_pages_inside_archives(tmp_path, blocks, more):
    """A member of an archive and a page that is attached have lines of their own, with front matter before them too."""
    page = "---\nauthor: Ada\n---\n" + source(blocks)
    other = source([("p", [(p, "\n")]) for p in more])
    within = make.zipped({"d/in.htm": page, "x.xhtml": '<?xml version="1.0"?>\n' + other})
    made = {document.path: own for document, own in read(tmp_path, "a.zip", make.zipped({"in.zip": within}))}
    check(made["a.zip!/in.zip!/d/in.htm"], lines_of(page.replace("---\nauthor: Ada\n---\n", "\n" * 3)))
    check(made["a.zip!/in.zip!/x.xhtml"], lines_of("\n" + other))


@CHECK
@given(PARAGRAPHS, st.lists(st.lists(SENTENCE, min_size=2, max_size=3), max_size=6))
def test_old_word_files(tmp_path, paragraphs, rows):
    """Word counts each cell, and each end of a row, as a paragraph; a row is cited by its end."""
    original: Original = [({"paragraph": n}, words) for n, words in enumerate(paragraphs, 1)]
    ends = len(paragraphs)
    for row in rows:
        ends += len(row) + 1
        original.append(({"paragraph": ends}, " ".join(row)))
    check(chunks(tmp_path, "a.doc", make.doc(paragraphs, rows)), original)


@CHECK
@given(SENTENCE, PARAGRAPHS, PARAGRAPHS, PARAGRAPHS)
def test_outlook_messages(tmp_path, subject, body, inner, attached):
    """A message that is attached, and a file attached to that, are documents with places of their own."""
    note = "\n".join(attached)
    within = make.msg_streams("Inner", "\r\n".join(inner), {"note.txt": note.encode("utf-8")}, inside=True)
    made = {d.path: own for d, own in read(tmp_path, "a.msg", make.msg(subject, "\r\n".join(body), {"Inner": within}))}
    assert list(made) == ["a.msg", "a.msg!/Inner.msg", "a.msg!/Inner.msg!/note.txt"]
    head = "From Ada ada@example.org To Bob Date 2024 01 17 21 20 00 UTC"
    check(made["a.msg"], [({"part": 0}, f"{subject} {head}"), ({"part": 1}, "\n".join(body))])
    check(made["a.msg!/Inner.msg"], [({"part": 0}, f"Inner {head}"), ({"part": 1}, "\n".join(inner))])
    for chunk in made["a.msg!/Inner.msg!/note.txt"]:
        assert chunk.text.strip() in "\n".join(note.split("\n")[chunk.start_line - 1 : chunk.end_line])


FORMATS = {
    "text, Markdown, reStructuredText, LaTeX, Org, AsciiDoc, source code": test_texts,
    "JSON": test_records,
    "PDF": test_pdf_pages,
    "DOCX, ODT, FODT": test_texts_with_a_table,
    "RTF": test_rtf,
    "PPTX, PPT, ODP, FODP": test_slides,
    "XLSX, XLS, ODS, FODS": test_workbooks,
    "CSV, TSV, delimited text": test_tables,
    "EML": test_mail_and_what_is_attached,
    "MHT": test_pages_saved_as_messages,
    "MBOX": test_mailboxes,
    "EPUB": test_books,
    "IPYNB": test_notebooks,
    "XML": test_xml,
    "ICS, VCF": test_calendars_and_cards,
    "SRT, VTT": test_subtitles,
    "ZIP, TAR, gzip, bzip2, xz": test_members_of_archives,
    "HTML": test_pages,
    "DOC": test_old_word_files,
    "MSG": test_outlook_messages,
    "JSONL, a JSON array of objects with `text`, BEIR folders": test_records,
}


def test_every_format_of_the_guide_is_tried_here():
    table = guide.text("index").partition("| --- | --- | --- |\n")[2].partition("\n\n")[0]
    named = {name for row in table.split("\n") for name in row.split(" | ")[0].strip("| ").split(", ")}
    pictures = set("PNG JPEG GIF TIFF WEBP BMP".split())  # their places are in test_ingest_checks.py
    assert named == {name for names in FORMATS for name in names.split(", ")} | pictures
