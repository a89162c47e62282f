"""A citation opens where the words are: each chunk's words are found at its place in the original, re-opened by other means.

For every format a file is made from random words, read and cut by the workbench, and opened again through the format's own
library (or none at all), which knows nothing of the workbench; the place that a chunk cites must hold the chunk's words.
"""

from __future__ import annotations

import email
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

import reader_files as make
from ingest_cases import count_words, found, pdf

from workbench.ingest import FileRules, ReadOptions, read_file
from workbench.records import Chunk

WORD = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzäéßжяλ"), min_size=2, max_size=9)
SENTENCE = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
PARAGRAPHS = st.lists(SENTENCE, min_size=1, max_size=12)
NAMES = st.sampled_from(["Sales", "R&D = 5%", "Übersicht", "a#b"])
CHECK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def chunks(folder: Path, name: str, data: bytes) -> list[Chunk]:
    """The chunks of a file, cut small."""
    file = folder / name
    file.write_bytes(data)
    items = read_file(found(file), FileRules(), ReadOptions(budget_tokens=30), count_words)
    made = [chunk for item in items if isinstance(item, tuple) for chunk in item[1]]
    assert made
    return made


def words_of(text: str) -> list[str]:
    """The words of a text, without the marks that the workbench sets."""
    return re.findall(r"\w+", text)


def keys_of(locator: str) -> dict[str, str]:
    """The pairs of a locator, unescaped."""
    pairs = (part.partition("=") for part in locator.split("&"))
    return {key: re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), value) for key, _, value in pairs}


def span(value: str) -> range:
    """The numbers that a range names."""
    low, _, high = value.partition("-")
    return range(int(low), int(high or low) + 1)


def check(made: list[Chunk], at: Callable[[dict[str, str]], str]) -> None:
    """Each chunk's words stand, in order, at its place."""
    for chunk in made:
        there = words_of(at(keys_of(chunk.locator)))
        own = words_of(chunk.text)
        position = 0
        for word in own:
            assert word in there[position:], (chunk.locator, word)
            position = there.index(word, position) + 1


@CHECK
@given(PARAGRAPHS, st.lists(st.lists(SENTENCE, min_size=2, max_size=2), max_size=8))
def test_word(tmp_path: Path, paragraphs: list[str], rows: list[list[str]]) -> None:
    """Through python-docx: its paragraphs are counted as ours."""
    import docx

    data = make.docx([("Heading 1" if n % 4 == 0 else "", p) for n, p in enumerate(paragraphs)], rows)
    original = docx.Document(io.BytesIO(data))

    def at(keys: dict[str, str]) -> str:
        if "table" in keys:
            table = original.tables[int(keys["table"]) - 1]
            return " ".join(
                cell.text for n in span(keys.get("row", f"1-{len(table.rows)}")) for cell in table.rows[n - 1].cells
            )
        said = [original.paragraphs[n - 1].text for n in span(keys["paragraph"])]
        if rows and "-" not in keys["paragraph"]:
            # A chunk may run from a paragraph into the table: then the place where it begins is cited.
            said = [p.text for p in original.paragraphs[int(keys["paragraph"]) - 1 :]] + [" ".join(row) for row in rows]
        return " ".join(said)

    check(chunks(tmp_path, "a.docx", data), at)


@CHECK
@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.one_of(st.just(""), SENTENCE)), min_size=1, max_size=5))
def test_slides(tmp_path: Path, slides: list[tuple[str, str, str]]) -> None:
    """Through python-pptx; a place of a slide holds its notes too."""
    import pptx

    data = make.pptx(slides)
    deck = pptx.Presentation(io.BytesIO(data))

    def at(keys: dict[str, str]) -> str:
        slide = deck.slides[int(keys["slide"]) - 1]
        said = "\n".join(shape.text_frame.text for shape in slide.shapes if shape.has_text_frame)
        notes = slide.notes_slide.notes_text_frame.text if slide.has_notes_slide else ""
        return notes if keys.get("part") == "notes" else f"{said}\n{notes}"

    check(chunks(tmp_path, "a.pptx", data), at)


ROWS = st.lists(st.lists(st.one_of(st.none(), SENTENCE), min_size=1, max_size=4), min_size=1, max_size=12)


@CHECK
@given(st.dictionaries(NAMES, ROWS, min_size=1, max_size=3))
def test_sheets(tmp_path: Path, sheets: dict[str, list[list[str | None]]]) -> None:
    """Through openpyxl; rows that are empty are counted."""
    import openpyxl

    data = make.xlsx({name: [["start"], *rows] for name, rows in sheets.items()})
    book = openpyxl.load_workbook(io.BytesIO(data))

    def at(keys: dict[str, str]) -> str:
        sheet = book[keys["sheet"]]
        rows = span(keys["row"]) if "row" in keys else range(1, sheet.max_row + 1)
        return " ".join([sheet.title, *(str(c.value) for n in rows for c in sheet[n] if c.value is not None)])

    check(chunks(tmp_path, "a.xlsx", data), at)


@CHECK
@given(st.lists(SENTENCE, min_size=1, max_size=10))
def test_opendocument(tmp_path: Path, paragraphs: list[str]) -> None:
    """Through odfpy."""
    from odf import teletype
    from odf.opendocument import load

    data = make.odt([(1 if n % 3 == 0 else 0, p) for n, p in enumerate(paragraphs)])
    blocks = load(io.BytesIO(data)).text.childNodes
    check(
        chunks(tmp_path, "a.odt", data),
        lambda keys: " ".join(teletype.extractText(blocks[n - 1]) for n in span(keys["paragraph"])),
    )


@CHECK
@given(st.lists(st.lists(st.one_of(st.just(""), SENTENCE), min_size=2, max_size=4), min_size=2, max_size=14))
def test_tables(tmp_path: Path, rows: list[list[str]]) -> None:
    """Through nothing but the lines of the file, which has no quotes."""
    rows[0] = ["alpha", "beta"]
    data = "\r\n".join(";".join(row) for row in rows).encode("utf-8")
    lines = data.decode("utf-8").split("\r\n")
    check(chunks(tmp_path, "a.csv", data), lambda keys: " ".join(lines[n - 1] for n in span(keys["row"])))


@CHECK
@given(st.lists(st.tuples(st.booleans(), PARAGRAPHS, st.lists(SENTENCE, max_size=2)), min_size=1, max_size=5))
def test_notebooks(tmp_path: Path, cells: list[tuple[bool, list[str], list[str]]]) -> None:
    """Through the notebook's JSON."""
    data = [
        {"cell_type": "code", "source": "\n".join(p), "outputs": [{"output_type": "stream", "text": o} for o in outputs]}
        if code else {"cell_type": "markdown", "source": "\n\n".join(p)}
        for code, p, outputs in cells
    ]  # fmt: skip

    def at(keys: dict[str, str]) -> str:
        picked = [data[n - 1] for n in span(keys["cell"])]
        if "output" in keys:
            return " ".join(str(picked[0]["outputs"][n - 1]["text"]) for n in span(keys["output"]))  # type: ignore[index]
        return " ".join(str(cell["source"]) for cell in picked)

    check(chunks(tmp_path, "a.ipynb", json.dumps({"cells": data}).encode()), at)


@CHECK
@given(st.lists(PARAGRAPHS, min_size=1, max_size=4))
def test_books(tmp_path: Path, chapters: list[list[str]]) -> None:
    """Through zipfile: the part that is named holds the words."""
    pages = {f"c{n}.xhtml": "".join(f"<p>{p}</p>" for p in paragraphs) for n, paragraphs in enumerate(chapters)}
    data = make.epub(pages)
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        check(chunks(tmp_path, "a.epub", data), lambda keys: re.sub("<[^>]*>", " ", book.read(keys["part"]).decode()))


@CHECK
@given(SENTENCE, PARAGRAPHS, PARAGRAPHS)
def test_mail_and_its_attachments(tmp_path: Path, subject: str, body: list[str], attached: list[str]) -> None:
    """Through email: the numbered part holds the words, the attachment's own lines its own."""
    data = make.mail(subject, "\n".join(body), {"note.txt": "\n".join(attached).encode("utf-8")})
    message = email.message_from_bytes(data, policy=email.policy.default)
    parts = [part for part in message.walk() if not part.is_multipart()]

    def at(keys: dict[str, str]) -> str:
        head = f"{message['Subject']} From {message['From']} To {message['To']} Date {message['Date']}"
        return " ".join(str(parts[n - 1].get_content()) if n else head for n in span(keys["part"]))

    made = chunks(tmp_path, "a.eml", data)
    check([c for c in made if c.locator], at)
    lines = "\n".join(attached).split("\n")
    for chunk in (c for c in made if not c.locator):
        assert chunk.text.strip() == "\n".join(
            lines[chunk.start_line - 1 : chunk.end_line]
        ).strip() or chunk.text in "\n".join(lines)


@CHECK
@given(PARAGRAPHS)
def test_xml(tmp_path: Path, paragraphs: list[str]) -> None:
    """Through the lines of the file."""
    lines = ["<r>", *(f"<p>{p}</p>" for p in paragraphs), "</r>"]
    made = chunks(tmp_path, "a.xml", "\n".join(lines).encode("utf-8"))
    check(made, lambda keys: " ".join("p " + re.sub("<[^>]*>", " ", lines[n - 1]) for n in span(keys["line"])))


@CHECK
@given(PARAGRAPHS)
def test_subtitles(tmp_path: Path, cues: list[str]) -> None:
    """Through the times of the file."""
    times = [f"00:{n:02d}:00" for n in range(len(cues))]
    data = "\n\n".join(f"{n + 1}\n{t},000 --> {t},900\n{c}" for n, (t, c) in enumerate(zip(times, cues, strict=True)))

    def at(keys: dict[str, str]) -> str:
        low, _, high = keys["time"].partition("-")
        return " ".join(cues[times.index(low) : times.index(high or low) + 1])

    check(chunks(tmp_path, "a.srt", data.encode("utf-8")), at)


LATIN = st.lists(st.text("abcdefghij", min_size=2, max_size=8), min_size=1, max_size=8).map(" ".join)


@CHECK
@given(st.lists(st.lists(LATIN, min_size=1, max_size=6), min_size=1, max_size=5))
def test_pdf_pages(tmp_path: Path, pages: list[list[str]]) -> None:
    """Through what was put on the pages: the page that is named holds the words."""
    for chunk in chunks(tmp_path, "a.pdf", pdf(["\n".join(lines) for lines in pages])):
        assert chunk.page is not None
        there = words_of("\n".join(pages[chunk.page - 1]))
        assert all(word in there for word in words_of(chunk.text))


@CHECK
@given(st.dictionaries(st.sampled_from(["a.txt", "d/b.txt", "d/e/c.txt"]), PARAGRAPHS, min_size=1), st.booleans())
def test_members_of_archives(tmp_path: Path, files: dict[str, list[str]], nested: bool) -> None:
    """Through zipfile: the member that the path names holds the words at the cited lines."""
    data = make.zipped({name: "\n".join(lines) for name, lines in files.items()})
    file = tmp_path / "a.zip"
    file.write_bytes(make.zipped({"in.zip": data}) if nested else data)
    for item in read_file(found(file), FileRules(), ReadOptions(30), count_words):
        assert isinstance(item, tuple)
        name = item[0].path.removeprefix("a.zip!/in.zip!/" if nested else "a.zip!/")
        for chunk in item[1]:
            there = "\n".join(files[name][chunk.start_line - 1 : chunk.end_line])
            assert chunk.text.strip() in there


def test_every_reader_with_places_is_tried_here() -> None:
    """A new kind of place needs a test of its own here."""
    folder = Path(__file__).parents[2] / "workbench" / "ingest" / "readers"
    keys = {
        key for file in folder.glob("*.py") for key in re.findall(r"locator\((\w+)=", file.read_text(encoding="utf-8"))
    }
    assert keys == {"paragraph", "table", "slide", "sheet", "cell", "part", "row", "line", "time"}


@CHECK
@given(PARAGRAPHS)
def test_rtf(tmp_path: Path, paragraphs: list[str]) -> None:
    """Through the paragraphs of the file."""
    body = "".join("".join(c if c < "\x80" else f"\\u{ord(c)}?" for c in p) + "\\par\n" for p in paragraphs)
    made = chunks(tmp_path, "a.rtf", f"{{\\rtf1\\ansi {body}}}".encode("ascii"))
    check(made, lambda keys: " ".join(paragraphs[n - 1] for n in span(keys["paragraph"])))
