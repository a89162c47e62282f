"""Which characters belong to words: one fixed table, the same for the words of the index, for patterns and for RE2.

A word is a longest run of ASCII letters, digits, `_` and every character beyond ASCII that is no punctuation, symbol,
space or control character by the table below. So letters with their accents and marks, numbers of every script, and
characters that Unicode adds later stay inside words. The table is frozen here, rather than asked of a Unicode
database, because an index and the program that reads it must agree however far apart their Unicode versions are.
No character of the table has an upper or lower case, so ignoring case never moves a border between words.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

_SEPARATORS = """
80-a9 ab-b1 b4 b6-b8 bb bf d7 f7 2c2-2c5 2d2-2df 2e5-2eb 2ed 2ef-2ff 37e 384-385 387 482 55a-55f 589-58a 5be 5c0 5c3 5c6
5f3-5f4 600-60f 61b-61f 66a-66d 6d4 6dd-6de 6e9 700-70f 964-965 970 df4 e3f e4f e5a-e5b f01-f14 f3a-f3d 104a-104f 10fb
1360-1368 1400 166d-166e 1680 16eb-16ed 17d4-17d6 17d8-17db 1800-180a 180e 1fbd 1fbf-1fc1 1fcd-1fcf 1fdd-1fdf 1fed-1fef
1ffd-206f 207a-207e 208a-208e 20a0-20c0 2190-2426 2440-244a 2500-2775 2794-2bff 2e00-2e2e 2e30-3004 3008-3020 3030
3036-3037 303d-303f 309b-309c 30a0 30fb fd3e-fd3f fe10-fe19 fe30-fe6b feff-ff0f ff1a-ff20 ff3b-ff40 ff5b-ff65 ffe0-fffd
1f000-1f0ff 1f200-1faff
"""

RANGES: tuple[tuple[int, int], ...] = tuple(
    (int(first, 16), int(last or first, 16)) for first, _, last in (r.partition("-") for r in _SEPARATORS.split())
)
"""Characters beyond ASCII that separate words: (first, last), both included, in order."""

_STARTS = [first for first, _ in RANGES]
_ASCII_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ASCII_SEPARATORS = r"\x00-/:-@\[-\^`{-\x7f"
_BEYOND_RE = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in RANGES)
_BEYOND_RE2 = "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in RANGES)

WORDS = re.compile(f"[^{_ASCII_SEPARATORS}{_BEYOND_RE}]+")
"""Finds each word."""

RE2_SEPARATORS = f"{_ASCII_SEPARATORS}{_BEYOND_RE2}"
"""The separators as what stands inside a class in RE2's syntax."""

RE2_SEPARATOR = f"[{RE2_SEPARATORS}]"
"""The class of separators in RE2's syntax."""

_GAPS = zip((0x7F, *(last for _, last in RANGES)), (*(first for first, _ in RANGES), 0x110000), strict=True)
RE2_WORDS = "0-9A-Z_a-z" + "".join(f"\\x{{{a + 1:x}}}-\\x{{{b - 1:x}}}" for a, b in _GAPS if a + 1 < b)
"""The characters of words as what stands inside a class in RE2's syntax."""

MARKS = "\u0300-\u036f\u3099\u309a"
"""Marks that make one letter with the one before them, as what stands inside a class."""

RE2_MARKS = f"[{MARKS}]"
"""The class of marks that make one letter with the one before them, in RE2's syntax."""


@lru_cache(maxsize=1)
def _variants() -> dict[str, tuple[str, ...]]:
    """NFC form -> the characters that no normal form keeps: the Angstrom sign, letters composed of others, and the like."""
    found: dict[str, list[str]] = {}
    for first, last in ((0x80, 0x3000), (0xF900, 0xFB50), (0x1D100, 0x1D200), (0x2F800, 0x2FA20)):
        for character in map(chr, range(first, last)):
            composed = unicodedata.normalize("NFC", character)
            if composed != character and composed >= "\x80":
                found.setdefault(composed, []).append(character)
    return {composed: tuple(characters) for composed, characters in found.items()}


def letters(text: str) -> Iterator[tuple[str, ...]]:
    """The letters of a text with their marks, each as all the ways to write it that are canonically the same, NFC first."""
    if text.isascii():
        yield from ((character,) for character in text)
        return
    text = unicodedata.normalize("NFC", text)
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or not unicodedata.combining(text[end]):
            yield ways(text[start:end])
            start = end


@lru_cache(maxsize=1 << 10)
def ways(letter: str) -> tuple[str, ...]:
    """All the ways to write a letter with its marks: composed as far as can be, not at all, and what lies between."""
    if letter.isascii():
        return (letter,)
    apart = unicodedata.normalize("NFD", letter)
    between = [unicodedata.normalize("NFC", apart[:n]) + apart[n:] for n in range(len(apart), 0, -1)]
    return tuple(dict.fromkeys((*between, *_variants().get(between[0], ()))))


def is_word_character(character: str) -> bool:
    """Whether one character belongs to words."""
    if character < "\x80":
        return character in _ASCII_WORD
    place = bisect_right(_STARTS, ord(character)) - 1
    return place < 0 or ord(character) > RANGES[place][1]
