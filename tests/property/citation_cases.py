"""What the tests of citations share: files cut small, and a reading of locators that is not the workbench's own.

An original is the list of its places in the order of the document, each with its keys and the words that stand there, as the
format's own library or the test that made the file gives them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from ingest_cases import count_words, cut_file, found

from workbench.ingest import FileRules
from workbench.records import Chunk, Document

Original = Sequence[tuple[dict[str, object], str]]

WORD = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzäéßжяλ"), min_size=2, max_size=9)
SENTENCE = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
PARAGRAPHS = st.lists(SENTENCE, min_size=1, max_size=12)
NAMES = st.sampled_from(["Sales", "R&D = 5%", "Übersicht", "a#b", "2024", "a..row"])
ROWS = st.lists(st.lists(st.one_of(st.none(), SENTENCE), min_size=1, max_size=4), min_size=1, max_size=12)
CHECK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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
