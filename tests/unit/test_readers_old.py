"""Old Office files and Outlook messages: what is read of them, and what is said where it cannot be."""

from __future__ import annotations

import contextlib
import io
import shutil
import struct
import subprocess
from typing import Any

import file_makers as make
import openpyxl
import pytest
import xlrd
from file_makers import docx, mail, pptx, read, saved, xlsx, zipped
from openpyxl.comments import Comment

from workbench.ingest.errors import ReadError


def test_slides_are_those_of_the_last_save(tmp_path):
    data = make.ppt(
        [("Now", "the heron\rthe weir", "said"), ("Second", "Ωmega", "")], before=[("Old", "the newt", "unsaid")]
    )
    (document,), told = read(saved(tmp_path, "a.ppt", data))
    assert document.text == "# Now\n\nthe heron\nthe weir\n\nsaid\n\n# Second\n\nΩmega\n"
    assert (document.type, told) == ("slides", [])
    assert [p.locator for p in document.places] == ["slide=1", "slide=1&part=notes", "slide=2"]


@pytest.mark.parametrize("at", range(0, 4000, 97))
def test_a_damaged_presentation_ends_in_words_or_a_sentence(tmp_path, at):
    data = bytearray(make.ppt([("One", "two", "three"), ("Four", "five", "")], before=[("x", "y", "")]))
    data[512 + at % (len(data) - 512)] ^= 0xFF
    with contextlib.suppress(ReadError):
        documents, _ = read(saved(tmp_path, "a.ppt", bytes(data)))
        assert all(document.text.strip() for document in documents)


def test_a_slide_that_is_listed_without_end_is_broken(tmp_path):
    """A thousand slides of a small file may be one and the same, whose words would be read a thousand times."""
    data = make.ppt([("a", "long " * 2000, ""), *(("b", "", "") for _ in range(1000))])
    for number in range(3, 1003):  # the list's entries name the objects of the slides
        entry = struct.pack("<4I", number, 0, 1, 254 + number)
        assert data.count(entry) == 1
        data = data.replace(entry, struct.pack("<4I", 2, 0, 1, 254 + number))
    with pytest.raises(ReadError, match="broken"):
        read(saved(tmp_path, "a.ppt", data))


def test_messages_inside_a_message_count_for_what_may_be_unpacked(tmp_path, monkeypatch):
    inner = make.msg_streams("Re", "inner " * 200_000, inside=True)
    monkeypatch.setenv("WORKBENCH_MAX_UNPACKED_MB", "1")
    with pytest.raises(ReadError, match="max_unpacked_mb"):
        read(saved(tmp_path, "m.msg", make.msg("Outer", "outer", {"Re": inner})))


def test_what_a_message_holds_is_counted_and_named_apart(tmp_path):
    inner = make.msg_streams("Re: a/b", "inner", {"n.txt": b"deep"}, inside=True)
    data = make.msg("Outer", "outer", {"Re: a/b": inner, "a.txt": b"one", "a.txt ": b"two", "thing": {"x": b"1"}})
    documents, problems = read(saved(tmp_path, "m.msg", data))
    assert {d.path: d.text.rpartition("\n\n")[2].strip() for d in documents} == {
        "m.msg": "outer", "m.msg!/Re: a_b.msg": "inner", "m.msg!/Re: a_b.msg!/n.txt": "deep", "m.msg!/a.txt": "one",
        "m.msg!/2-a.txt": "two",
    }  # fmt: skip
    assert len({d.document_id for d in documents}) == 5
    assert [p.reason for p in problems] == [
        "The attachment 'thing' is an object of another program, or a link to a file"
    ]


def test_messages_may_not_lie_too_deep(tmp_path):
    streams = make.msg_streams("last", "bottom", inside=True)
    for number in range(8):
        streams = make.msg_streams(f"m{number}", f"body {number}", {f"m{number}": streams}, inside=number < 7)
    documents, problems = read(saved(tmp_path, "m.msg", make.ole(streams)))
    assert len(documents) < 9
    assert any("max_nesting" in p.reason for p in problems)


def test_an_outlook_message_in_a_mail_in_an_archive(tmp_path):
    held = mail("Forwarded", "see below", {"old.msg": make.msg("Old", "the words")})
    documents, _ = read(saved(tmp_path, "a.zip", zipped({"box/m.eml": held})))
    assert [d.path for d in documents] == ["a.zip!/box/m.eml", "a.zip!/box/m.eml!/old.msg"]


def test_comments_of_an_old_workbook_are_read_after_their_sheet(tmp_path, monkeypatch):
    opened = xlrd.open_workbook

    def with_notes(**how: Any) -> Any:
        book = opened(**how)
        for (row, column), words in {(1, 1): "Who says so?", (0, 27): "Far  off"}.items():
            note = xlrd.sheet.Note()
            note.text = words
            book.sheet_by_index(0).cell_note_map[row, column] = note
        return book

    monkeypatch.setattr(xlrd, "open_workbook", with_notes)
    (book,), _ = read(
        saved(tmp_path, "a.xls", make.xls({"Sales": [["Region", "Sum"], ["Nord", 3.0]], "Two": [["x", "y"]]}))
    )
    assert book.text == "# Sales\n\nRegion | Sum\nNord | 3\n\nFar off\n\nWho says so?\n\n# Two\n\nx | y\n"
    assert [p.locator for p in book.places if "comment" in p.locator] == [
        "sheet=Sales&comment=AB1", "sheet=Sales&comment=B2",
    ]  # fmt: skip


def with_comment(workbook: bytes) -> bytes:
    book, stream = openpyxl.load_workbook(io.BytesIO(workbook)), io.BytesIO()
    book.worksheets[0]["B2"].comment = Comment("Who says so?", "Ann")
    book.save(stream)
    return stream.getvalue()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice writes these files, and is not installed")
@pytest.mark.parametrize("kind", ["ppt", "doc", "xls"])
def test_what_another_program_saved_in_the_old_format_reads_like_the_new_one(tmp_path, kind):
    made = {
        "ppt": pptx([("One", "the heron", "said of it"), ("Zwei", "ein Wehr über 5 €", ""), ("Three", "more", "")]),
        "doc": docx([("Heading 1", "Plan"), ("", "A heron über dem Wehr.")], [["Item", "Price"], ["Rope", "12"]]),
        "xls": with_comment(
            xlsx({"Sales": [["Region", "Sum"], ["Nörd", 3], [None], ["South", 4.5]], "Two": [["x", "y"]]})
        ),
    }[kind]
    saved(tmp_path, f"a.{kind}x", made)
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    command = [
        "soffice",
        "--headless",
        profile,
        "--convert-to",
        kind,
        "--outdir",
        str(tmp_path),
        str(tmp_path / f"a.{kind}x"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (new,), (old,) = read(tmp_path / f"a.{kind}x")[0], read(tmp_path / f"a.{kind}")[0]
    assert old.text.replace("# ", "").split() == new.text.replace("# ", "").split()
    if kind != "doc":  # whose tables Word counts in paragraphs
        assert old.places == new.places
