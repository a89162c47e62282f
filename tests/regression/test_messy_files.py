"""Real files that people and programs made: each gives its words, or a sentence that says why not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from ingest_cases import count_words, cut_file, documents, found

from workbench.ingest import FileRules, ReadError
from workbench.ingest.readers.rtf import rtf_text

pytestmark = [pytest.mark.measure, pytest.mark.slow]


def files(measure_data: Path) -> list[Path]:
    """All of the folder, in order."""
    return sorted(f for f in (measure_data / "folders" / "messy").rglob("*") if f.is_file())


def test_every_file_gives_documents_or_a_reason(measure_data: Path) -> None:
    """No error but ReadError, each with a remedy; most files are read."""
    given, errors = 0, []
    for file in files(measure_data):
        try:
            items = list(cut_file(found(file), FileRules(), count_words))
        except ReadError as exc:
            errors.append(exc)
            continue
        made = [item for item in items if isinstance(item, tuple)]
        given += bool(made)
        assert all(document.text.strip() and chunks for document, chunks in made), file
    told = len(errors)
    assert all(error.message and error.remedy for error in errors)
    # What a library said in its own words would say nothing to a person.
    assert [error.message for error in errors if "cannot be read (" in error.message] == []
    assert given + told == len(files(measure_data))
    assert told <= 26


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "Word files/old/testWORD_various.doc",
            ["This is a footnote.", "Row 1 Col 1 | Row 1 Col 2", "ゾルゲと尾崎", "𐌲𐌿𐍄𐌹𐍃𐌺"],
        ),
        ("Word files/old/testWORD.doc", ["This is the header for our document", "More of our nested table"]),
        ("exports/test.xls", ["Alpha | Beta | Gamma | Delta", "affc7dad-52dc-4b98-9b5d-51e65d8a8ad0"]),
        ("mail/msg_simple.msg", ["From: Alice Example <alice@example.com>", "This is a simple email body."]),
        ("Word files/old/testRTF-ms932.rtf", ["こんにちは", "テスト"]),
        ("Word files/old/testRTFWindowsCodepage1250.rtf", ["zażółć gęślą jaźń"]),
        ("Slides/powerpoint_sample.pptx", ["Final notes on the third slide.", "R1 | True | False"]),
        ("books/winter-sports.epub", ["ST. MORITZ BOB-RUN"]),
        ("Reports/multi-column.pdf", ["dual-encoder", "Lucene-BM25"]),
    ],
)
def test_the_words_of_real_files_are_there(measure_data: Path, name: str, words: list[str]) -> None:
    text = documents(measure_data / "folders" / "messy" / name)[0].text
    assert [w for w in words if w not in text] == []


def test_a_real_message_has_its_attachments(measure_data: Path) -> None:
    made = documents(measure_data / "folders" / "messy" / "mail" / "msg_with_attachment.msg")
    assert [d.path for d in made] == ["msg_with_attachment.msg", "msg_with_attachment.msg!/test.txt"]


def test_text_that_is_no_rtf_is_refused() -> None:
    with pytest.raises(ReadError):
        rtf_text(b"plain")
