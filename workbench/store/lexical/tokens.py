r"""What a word is for the word index: one pattern that finds the pieces, one function that turns a piece into words.

**Characters.** One fixed table is the same for the words of the index, for patterns and for RE2. A word is a longest run of
ASCII letters, digits, `_` and every character beyond ASCII that is no punctuation, symbol, space or control character by the
table below. So letters with their accents and marks, numbers of every script, and characters that Unicode adds later stay
inside words. The table is frozen here, rather than asked of a Unicode database, because an index and the program that reads it
must agree however far apart their Unicode versions are. No character of the table has an upper or lower case, so ignoring case
never moves a border between words.

**Pieces.** `piece_sql` is run by DuckDB over every record, `PIECES` by Python over queries and over texts to highlight. Both
are written from the same table of ranges above, not from `\p{L}`, because two programs with different
Unicode versions would otherwise disagree about new letters; a test compares them over every code point. A piece is

* a run of letters, marks, digits and `_`, with any further runs joined to it by a single hyphen, or by a dot before a digit:
  `state-of-the-art`, `ACME-INV-49302`, `python3.11`, `10.0.0.1`, `snake_case`, `camelCase`;
* one Han, kana, Hangul, Thai, Lao, Khmer or Myanmar character with its marks: these are written without spaces (Korean joins
  particles to nouns), and a run of them in a query is a phrase, so a word inside a longer run is found;
* `C++`, `C#` (any single letter before `#`) or `.NET`.

**Words.** `analyse` is called once for each distinct piece, which is why it can afford to be Python. Text is folded by NFKC and
full case folding (full-width letters, ligatures and superscripts become plain ones, `STRASSE` is `straße`), and accents are
dropped on Latin, Greek and Cyrillic letters only: on other scripts the marks are vowels, and dropping them makes other words.
Arabic and Hebrew are written with and without their vowel marks, so these are dropped too, and Arabic letters are folded as
Lucene's ArabicNormalizer and PersianNormalizer do. Digits of every script are those of ASCII. Soft hyphens and joiners, which
mark no border of words, are dropped.

**Compounds.** A piece of several parts yields its parts, each at a position of its own, and on top of them the whole, which
starts at the first part's position and *spans* them all. So "GitHub Actions" is found by the phrases `"github actions"` and
`"git hub actions"` alike; a token graph, in Lucene's words. A record's length counts its parts and not the wholes on top of
them (Lucene's `discountOverlaps`), so a compound is no longer than the same words written apart. Parts meet at hyphens, dots
and `_`, where a small letter meets a capital, and where letters meet digits: `IUserService` is `I User Service`, `v2.1.7` is
`v 2 1 7`, `10GB` is `10 GB`. Between part and whole lie the numbers with dots (`2.1.7`), what is between two joints, the
words of camelCase that end in digits (`OAuth2Client`: `auth2`), and a lone letter with the word after it (`oauth`, `oauth2`).
Short names of a lone letter and capitals (`mRNA`, `gRPC`, `PhD`) are words; so is what would have more than 32 parts, or more
than 6 in a row that meet without a joint or a capital (encoded data).

**Terms.** Words of plain letters a-z are stemmed (Snowball English); numbers, wholes with punctuation and other scripts are not.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

_SEPARATORS = """
80-a9 ab-ac ad ae-b1 b4 b6-b8 bb bf d7 f7 2c2-2c5 2d2-2df 2e5-2eb 2ed 2ef-2ff 37e 384-385 387 482 55a-55f 589-58a 5be
5c0 5c3 5c6 5f3-5f4 600-60f 61b-61f 66a-66d 6d4 6dd-6de 6e9 700-70f 964-965 970 df4 e3f e4f e5a-e5b f01-f14 f3a-f3d
104a-104f 10fb 1360-1368 1400 166d-166e 1680 16eb-16ed 17d4-17d6 17d8-17db 1800-180a 180e 1fbd 1fbf-1fc1 1fcd-1fcf
1fdd-1fdf 1fed-1fef 1ffd-200b 200c 200d 200e-205f 2060 2061-206f 207a-207e 208a-208e 20a0-20c0 2190-2426 2440-244a
2500-2775 2794-2bff 2e00-2e2e 2e30-3004 3008-3020 3030 3036-3037 303d-303f 309b-309c 30a0 30fb fd3e-fd3f fe10-fe19
fe30-fe6b feff-ff0f ff1a-ff20 ff3b-ff40 ff5b-ff65 ffe0-fffd 1f000-1f0ff 1f200-1faff
"""

RANGES: tuple[tuple[int, int], ...] = tuple(
    (int(first, 16), int(last or first, 16)) for first, _, last in (r.partition("-") for r in _SEPARATORS.split())
)
"""Characters beyond ASCII that separate words: (first, last), both included, in order; the `_IGNORABLE` ones by themselves."""

_STARTS = [first for first, _ in RANGES]
_ASCII_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ASCII_SEPARATORS = r"\x00-/:-@\[-\^`{-\x7f"
_BEYOND_RE2 = "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in RANGES)

RE2_SEPARATORS = f"{_ASCII_SEPARATORS}{_BEYOND_RE2}"
"""The separators as what is inside a class in RE2's syntax."""

RE2_SEPARATOR = f"[{RE2_SEPARATORS}]"
"""The class of separators in RE2's syntax."""

_GAPS = zip((0x7F, *(last for _, last in RANGES)), (*(first for first, _ in RANGES), 0x110000), strict=True)
RE2_WORDS = "0-9A-Z_a-z" + "".join(f"\\x{{{a + 1:x}}}-\\x{{{b - 1:x}}}" for a, b in _GAPS if a + 1 < b)
"""The characters of words as what is inside a class in RE2's syntax."""

MARKS = "\u0300-\u036f\u3099\u309a"
"""Marks that make one letter with the one before them, as what is inside a class."""

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
    if character < "\x80":
        return character in _ASCII_WORD
    place = bisect_right(_STARTS, ord(character)) - 1
    return place < 0 or ord(character) > RANGES[place][1]


WORDS_VERSION = 2
"""Version of all that decides the words, terms and positions of a text: raise it where any of that changes, so that nothing is
carried over from generations that were built otherwise."""

MAX_PARTS = 32
"""Most parts of a compound; a span fits in five bits."""

MAX_RUNS = 6
"""Most runs of letters and digits that are parts of one word: a checksum has more."""

SPAN_BITS = 5
"""A position is stored as (position << 5) | (span - 1); span counts the positions that a word covers."""

CONTEXT_GAP = 1
"""Positions left empty between a record's context and its text, so that no phrase runs over the border."""

_IGNORABLE = (0xAD, 0x200C, 0x200D, 0x2060)
_NO_WORDS = ((0x1F10D, 0x1F1FF), (0xE0000, 0xE007F))  # enclosed letters and flags, tags
_NO_START = (*((0x300, 0x36F), (0x20D0, 0x20FF), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)), *((c, c) for c in _IGNORABLE))
_UNSPACED = (
    (0xE01, 0xE3A), (0xE40, 0xE4E), (0xE50, 0xE59), (0xE81, 0xEDF),  # Thai, Lao
    (0x1000, 0x1049), (0x1050, 0x109D), (0xA9E0, 0xA9FE), (0xAA60, 0xAA7F),  # Myanmar
    (0x1780, 0x17D3), (0x17DC, 0x17DD), (0x17E0, 0x17E9),  # Khmer
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303C), (0x3041, 0x3096), (0x3099, 0x309A),
    (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF),  # Han and kana
    (0x1100, 0x11FF), (0xA960, 0xA97C), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FB),  # Hangul
)  # fmt: skip
_UNSPACED_MARKS = (
    (0x300, 0x36F), (0x1160, 0x11FF), (0xD7B0, 0xD7FB),  # Hangul's vowels and finals, where it is decomposed
    (0xE31, 0xE31), (0xE34, 0xE3A), (0xE47, 0xE4E), (0xEB1, 0xEB1), (0xEB4, 0xEBC), (0xEC8, 0xECE),
    (0x102B, 0x103E), (0x1056, 0x1059), (0x105E, 0x1060), (0x1062, 0x1064), (0x1067, 0x106D), (0x1071, 0x1074),
    (0x1082, 0x108D), (0x108F, 0x108F), (0x109A, 0x109D), (0x17B4, 0x17D3), (0x17DD, 0x17DD), (0x3099, 0x309A),
    (0xFE00, 0xFE0F), (0xFF9E, 0xFF9F), (0xE0100, 0xE01EF),
)  # fmt: skip

Ranges = Iterable[tuple[int, int]]


def _pattern(escape: str, boundary: str) -> str:
    """The pattern; `escape` formats a code point, `boundary` is an ASCII word border."""

    def ranges(values: Ranges) -> str:
        return "".join(f"{escape.format(first)}-{escape.format(last)}" for first, last in values)

    separators = [*(r for r in RANGES if r[0] not in _IGNORABLE), *_NO_WORDS]
    inside = f"[^{_ASCII_SEPARATORS}{ranges(separators)}{ranges(_UNSPACED)}]"
    start = f"[^{_ASCII_SEPARATORS}{ranges(separators)}{ranges(_UNSPACED)}{ranges(_NO_START)}]"
    hyphen = f"[\\-{ranges(((0x2010, 0x2011),))}]"
    word = f"{start}{inside}*(?:(?:{hyphen}{start}|\\.[0-9]){inside}*)*"
    unspaced = f"[{ranges(_UNSPACED)}][{ranges(_UNSPACED_MARKS)}]*"
    symbols = f"[A-Za-z]#|[Cc]\\+\\+|\\.[Nn][Ee][Tt]{boundary}"
    return f"{symbols}|{word}|{unspaced}"


PIECES = re.compile(_pattern("\\U{:08x}", r"(?a:\b)"))
"""Finds the pieces of a text, in Python."""

_UNSPACED_START = re.compile("[" + "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in _UNSPACED) + "]")
_RE2_PATTERN = _pattern("\\x{{{:x}}}", r"\b")


def piece_sql(column: str) -> str:
    """The SQL expression that turns a text column into its pieces, VARCHAR[] in order.

    Args:
        column: An SQL expression of type VARCHAR.
    """
    return f"regexp_extract_all({column}, '{_RE2_PATTERN}')"


def unspaced(piece: str) -> bool:
    """Whether a piece is one character of a script that is written without spaces."""
    return _UNSPACED_START.match(piece) is not None


def pairs(piece: str) -> bool:
    """Whether a run of such characters is read by pairs (Han, kana, Hangul) rather than triples, of which syllables are made."""
    return (
        not "\u0e00" <= piece[0] <= "\u109f"
        and not "\u1780" <= piece[0] <= "\u17ff"
        and not "\ua9e0" <= piece[0] <= "\uaa7f"
    )


def leans(part: Part, piece: str) -> bool:
    """Whether a part is a number or a lone letter that touches another part, and says nothing without it."""
    if len(part.word) > 1 and not part.word.isdigit():
        return False
    return any(0 <= at < len(piece) and piece[at].isalnum() for at in (part.start - 1, part.end))


def plain_joints(piece: str) -> str:
    """A piece with its typographic hyphens made ASCII ones."""
    return piece.replace("\u2010", "-").replace("\u2011", "-")


class Part(NamedTuple):
    """One part of a piece: the folded word, and its characters in the piece."""

    word: str
    start: int
    end: int


class Whole(NamedTuple):
    """A word on top of parts `first` to `first + span - 1`, with its characters in the piece."""

    word: str
    first: int
    span: int
    start: int
    end: int


class Analysis(NamedTuple):
    """The words of one piece: `parts` take one position each (at least one part), `wholes` lie on top of them.

    `symbol` is True for C++, C# and .NET: as a query they mean the whole alone.
    """

    parts: tuple[Part, ...]
    wholes: tuple[Whole, ...] = ()
    symbol: bool = False

    @property
    def outermost(self) -> tuple[Whole, ...]:
        """The wholes over all parts, and of those under them the longest: what a query of the piece asks for."""
        n = len(self.parts)
        inner: list[Whole] = []
        for whole in sorted(self.wholes, key=lambda w: (-w.span, w.first)):
            if whole.span < n and not any(
                o.first < whole.first + whole.span and whole.first < o.first + o.span for o in inner
            ):
                inner.append(whole)
        return (*inner, *(w for w in self.wholes if w.span == n))


_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_SPLITTABLE = re.compile(r"[-_.\u2010\u2011]|[a-z0-9A-Z][A-Z]|[0-9][a-z]|[A-Za-z][0-9]|[^\x00-\x7f]")
_JOINTS = re.compile(r"[-.\u2010\u2011]")
_RUNS = re.compile(r"\d[\d\W]*|\D+")


def analyse(piece: str) -> Analysis:
    """The words of a piece that `PIECES` or `piece_sql` found."""
    if not _SPLITTABLE.search(piece) and piece[-1] not in "#+":
        return Analysis((Part(piece.lower(), 0, len(piece)),))
    if piece[-1] in "#+" or piece[0] == ".":
        if piece[0] != ".":
            return Analysis((Part(piece.lower(), 0, len(piece)),), symbol=True)
        return Analysis((Part("net", 1, 4),), (Whole(".net", 0, 1, 0, 4),), symbol=True)
    parts: list[Part] = []
    over: list[_Over] = []
    start = 0
    joints = [*_JOINTS.finditer(piece)]
    for end in (*(j.start() for j in joints), len(piece)):
        _split(piece[start:end], start, parts, over)
        start = end + 1
    if joints and len(parts) <= MAX_PARTS:
        over += [*_numbers(piece, parts), (0, len(parts), 0, len(piece))]
    wholes: dict[Whole, None] = {}
    for first, after, start, end in over:
        word = fold(plain_joints(piece[start:end]))
        if after - first > 1 or word != parts[first].word:
            wholes[Whole(word, first, after - first, start, end)] = None
    return Analysis(tuple(parts), tuple(wholes))


_Over = tuple[int, int, int, int]
"""What a word on top lies on: its first part, the one after its last, its characters in the piece."""


def _split(word: str, offset: int, parts: list[Part], over: list[_Over]) -> None:
    """Add the parts of what is between two joints, and the words on top of them, itself included."""
    own: list[Part] = []
    inner: list[_Over] = []
    at, base = offset, len(parts)
    for run in word.split("_"):
        lone = 0
        for segment in _camel(run) if run else ():
            first, start = base + len(own), at
            for piece in _runs(segment):
                own.append(Part(fold(piece), at, at + len(piece)))
                at += len(piece)
            if lone:
                inner += [
                    (first - 1, first + 1, start - 1, own[first - base].end),
                    (first - 1, base + len(own), start - 1, at),
                ]
            inner.append((first, base + len(own), start, at))
            lone = len(segment) == 1
        at += 1
    if not own or len(own) > MAX_PARTS:
        parts.append(Part(fold(word), offset, offset + len(word)))
        return
    parts += own
    over += [*inner, (base, len(parts), offset, offset + len(word))]


def _runs(segment: str) -> list[str]:
    runs = _RUNS.findall(segment)
    return runs if len(runs) <= MAX_RUNS else [segment]


def _numbers(piece: str, parts: Sequence[Part]) -> Iterable[_Over]:
    first = 0
    for at in range(1, len(parts) + 1):
        numbers = at < len(parts) and parts[at - 1].word.isdigit() and parts[at].word.isdigit()
        if numbers and piece[parts[at - 1].end : parts[at].start] == ".":
            continue
        if at - first > 1:
            yield first, at, parts[first].start, parts[at - 1].end
        first = at


def _camel(word: str) -> list[str]:
    """A word cut where a small letter meets a capital; one segment where it is a short name, or encoded data."""
    if word.islower() or word.isdigit():
        segments = [word]
    elif word.isascii():
        segments = _CAMEL.split(word)
    else:
        cuts = [i for i in range(1, len(word)) if word[i].isupper() and word[i - 1].islower()]
        segments = [word[a:b] for a, b in zip((0, *cuts), (*cuts, len(word)), strict=True)]
    if len(segments) == 2:
        first, last = segments
        if (len(first) == 1 and last.isupper()) or (len(last) == 1 and len(first) <= 2):
            return [word]
    return segments


_PLAIN = str.maketrans({
    "ı": "i", "ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ŋ": "n", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d",
    **{chr(c): None for c in _IGNORABLE}, **{chr(c): None for c in range(0xFE00, 0xFE10)},
    **{chr(c): None for c in range(0x20DD, 0x20E5)},
    "\u0640": None, "\u0629": "\u0647", "\u0649": "\u064a", "\u0671": "\u0627",  # tatweel, teh marbuta, alef maksura and wasla
    "\u06cc": "\u064a", "\u06d2": "\u064a", "\u06a9": "\u0643", "\u06c1": "\u0647", "\u06be": "\u0647",  # Persian and Urdu
})  # fmt: skip


_WITHOUT_MARKS = (
    (0, 0x24F), (0x370, 0x52F), (0x5D0, 0x5F2), (0x620, 0x6D3), (0x1C80, 0x1C8F), (0x1E00, 0x1FFF), (0x2C60, 0x2C7F),
    (0xA640, 0xA69F), (0xA720, 0xA7FF), (0xAB30, 0xAB6F),
)  # fmt: skip
"""Latin, Greek, Cyrillic, Hebrew and Arabic letters, and digits: a mark after one of these may be left out."""


def fold(text: str) -> str:
    """A word as it is compared: NFKC, full case folding, marks after `_WITHOUT_MARKS` dropped, digits as ASCII; never empty."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept: list[str] = []
    dropping = False
    for character in unicodedata.normalize("NFD", folded):
        if unicodedata.combining(character):
            if dropping:
                continue
        else:
            dropping = any(first <= ord(character) <= last for first, last in _WITHOUT_MARKS)
        kept.append(str(unicodedata.digit(character)) if character.isdecimal() else character)
    return unicodedata.normalize("NFKC", "".join(kept).translate(_PLAIN)).casefold() or text


_STEMMABLE = re.compile(r"[a-z]+")
_stemmer_lock = threading.Lock()


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def stems(words: Sequence[str]) -> list[str]:
    """The term of each folded word, in the same order: its Snowball stem for words of a-z, else the word itself."""
    with _stemmer_lock:
        stemmer = _stemmer()
        return [stemmer.stemWord(w) if _STEMMABLE.fullmatch(w) else w for w in words]


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    return stems((word,))[0]


_STOP_WORDS = """
    a about above after again against all am an and any are as at be because been before being below between both but by
    can cannot could d did do does doing don down during each few for from further had has have having he her here hers
    herself him himself his how i if in into is it its itself just ll m me more most my myself no nor not now of off on
    once only or other ought our ours ourselves out over own re s same she should so some such t than that the their
    theirs them themselves then there these they this those through to too under until up ve very was we were what when
    where which while who whom why will with would you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that say nothing about a subject (Lucene's list and Snowball's). They are indexed, so phrases have them, but
a query's own do not count unless they are all it has."""
