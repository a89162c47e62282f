"""The mapped text file gives back every text, line and character, at any size, and refuses files that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import CorpusDamaged
from workbench.store.grep.text import BLOCK, MappedText, build_text

TEXTS = [
    "one\ntwo\nthree",
    "",
    "ends with a newline\n",
    "\n",
    "ü ß İ Σ 検索 👩‍💻 e\u0301\nnext 検索",
    "検" * (BLOCK + 7) + "\n" + "x" * 3,
    "a" * (3 * BLOCK - 1) + "ü",
    "\n\n\nlast",
]


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> MappedText:
    folder = tmp_path_factory.mktemp("text")
    assert build_text(folder, iter(TEXTS)) == len(TEXTS)
    return MappedText(folder)


def test_texts_come_back_as_they_were(mapped: MappedText) -> None:
    """Every text is returned exactly, whether or not it ends with a newline."""
    assert [mapped.text(n) for n in range(len(mapped))] == TEXTS
    assert mapped.lengths.tolist() == [len(text) for text in TEXTS]


def test_lines_are_clipped_to_the_document(mapped: MappedText) -> None:
    """Lines count from 1, both ends included; beyond the document there are none."""
    assert mapped.lines(0, 2, 3) == "two\nthree"
    assert mapped.lines(0, -5, 99) == TEXTS[0]
    assert mapped.lines(0, 4, 9) == "" == mapped.lines(1, 1, 1)
    assert [mapped.line_count(n) for n in range(8)] == [3, 0, 1, 1, 2, 2, 1, 4]
    assert mapped.lines(7, 3, 4) == "\nlast"


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_slices_are_those_of_the_text(mapped: MappedText, number: int) -> None:
    """A slice by characters is Python's slice, also across the stored blocks."""
    text = TEXTS[number]
    places = sorted(
        {0, 1, 2, 5, BLOCK - 1, BLOCK, BLOCK + 1, len(text) - 1, len(text), len(text) + 9} & set(range(99999))
    )
    for start in places:
        for end in places:
            assert mapped.slice(number, start, end) == (text[start:end] if end > start else "")


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_byte_offsets_become_character_offsets(mapped: MappedText, number: int) -> None:
    """Byte and character offsets are each other's inverse."""
    text, start = TEXTS[number], int(mapped.starts[number])
    for character in {0, len(text) // 3, len(text) // 2, max(0, len(text) - 1), len(text)}:
        offset = start + len(text[:character].encode())
        assert mapped.byte_offset(number, character) == offset
        assert mapped.character_offset(number, offset) == character


def test_an_empty_corpus_opens(tmp_path: Path) -> None:
    """No documents are no problem."""
    build_text(tmp_path, [])
    mapped = MappedText(tmp_path)
    assert (len(mapped), mapped.bytes, mapped.lines_total) == (0, 0, 0)
    with pytest.raises(IndexError):
        mapped.text(0)


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """A missing or foreign file is CorpusDamaged, with the remedy."""
    build_text(tmp_path, TEXTS)
    (tmp_path / "text.bin").write_bytes(b"short\n")
    with pytest.raises(CorpusDamaged, match="doctor --repair"):
        MappedText(tmp_path)
    (tmp_path / "text_lines.npy").unlink()
    with pytest.raises(CorpusDamaged, match="is missing"):
        MappedText(tmp_path)
