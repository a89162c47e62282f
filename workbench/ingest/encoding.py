"""From bytes to text: byte order mark, then strict UTF-8, then what the file declares, then UTF-8 with strays, then a detector.

The detector (charset-normalizer) is asked about the code pages in wide use first, because on short texts it finds rare
ones just as likely; between the Western and the Central European code pages it cannot decide without a language (all of
them decode everything), so `_western_or_central` decides by the language found and by the bytes that only one of them uses.

Text is normalised once, here: line ends become `\\n`, NUL and lone surrogates become U+FFFD (they cannot be stored), and
nothing else changes, so that offsets and lines are those of the file.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

from workbench.ingest.errors import ReadError, skip
from workbench.ingest.latin import CODE_PAGES, latin_code_page

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    (b"PK\x03\x04", "a zip archive or Office file"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a compressed file"),
    (b"7z\xbc\xaf", "an archive"),
    (b"Rar!", "an archive"),
    (b"SQLite format 3\x00", "a database"),
    (b"PAR1", "a Parquet file"),
)
_COMMON = [
    "cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257",
    "cp874", "cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949", "mac_roman", "cp850",
]  # fmt: skip
_CENTRAL = frozenset({"Czech", "Slovak", "Polish", "Hungarian", "Croatian", "Slovene", "Romanian"})
_CONTROLS = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 26, 27})
_SAMPLE = 1 << 16
# What files call their encoding, and the larger one that they mean by it (https://encoding.spec.whatwg.org/#names-and-labels).
_MEANT = {
    "x-sjis": "cp932", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "windows-31j": "cp932",
    "x-euc-jp": "euc_jp", "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949", "ksc5601": "cp949", "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252",
    "ascii": "cp1252", "iso-8859-9": "cp1254", "tis-620": "cp874", "iso-8859-11": "cp874", "x-mac-cyrillic": "mac_cyrillic",
    "x-mac-roman": "mac_roman", "macintosh": "mac_roman", "big5": "big5hkscs", "x-x-big5": "big5hkscs",
}  # fmt: skip
MIXED = "utf-8 and cp1252"
_EASTERN = re.compile("[\t\n\r -~\u00b7\u2010-\u203b\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]*")
_IDEOGRAPHS = re.compile("[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_EASTERN_STOPS = re.compile("[\u3001\u3002\uff0c\uff01\uff1f\uff1a]|[\uac00-\ud7a3][ .]")
_BETWEEN_WORDS = frozenset(" \n\u3000\u3001\u3002\uff0c")
_STRAYS = "surrogateescape"
_STRAY = re.compile("[\udc80-\udcff]+")
_CENTRAL_INSIDE = re.compile(
    "[A-Za-z][\u00a3\u00b1\u00b3\u00b5\u00b6\u00b9\u00bb\u00bc\u00be\u00bf][a-z]|[a-z]{3}\u00b9(?!\\w)"
)
_SEVEN_BITS = (
    ("iso2022_jp", "iso2022_jp_2", re.compile(rb"\x1b\$[@B(]|\x1b\(J")),
    ("iso2022_kr", "iso2022_kr", re.compile(rb"\x1b\$\)C")),
    ("hz", "hz", re.compile(rb"~\{(?:[!-w][!-~])+~\}")),
)
"""Encodings that look like ASCII: name, the codec, and the marks that set them apart."""
_TWO_BYTES = frozenset({"big5", "cp932", "gb18030", "cp949", "euc_jp"})
_PAIRS = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_LATIN_LETTERS = re.compile(rb"[A-Za-z]")
_CYRILLIC = ("cp1251", "koi8_r", "iso8859_5", "cp866", "mac_cyrillic", "koi8_u")
_RUSSIAN = dict(zip(
    "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъёіїєґў",
    (11.0, 8.5, 8.0, 7.4, 6.7, 6.3, 5.5, 4.7, 4.5, 4.4, 3.5, 3.2, 3.0, 2.8, 2.6, 2.0, 1.9, 1.7, 1.7, 1.6, 1.6, 1.4, 1.2, 1.0,
     0.9, 0.7, 0.6, 0.5, 0.4, 0.3, 0.3, 0.1, 0.1, 2.0, 0.5, 0.5, 0.1, 0.3), strict=True,
))  # fmt: skip
"""Letters of Russian, and of its neighbours, in percent."""
_LIKELY = 4.0
"""Text in its own code page comes to 5 to 6, in another one to at most 3."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DECLARED = re.compile(
    rb"<meta[^>]+?charset[ \t]*=[ \t\"']*([-\w:.]+)|<\?xml[^>]+?encoding=[\"']([-\w.]+)", re.IGNORECASE
)
_COOKIE = re.compile(rb"(?:#|//|/\*|--).*?coding[:=][ \t]*([-\w.]+)")
BINARY_REMEDY = "Convert it to text, or leave it out by .gitignore"


def normalise(text: str) -> str:
    """Line ends as `\\n`, no byte order mark in front, and U+FFFD for NUL and lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return clean(text.removeprefix("\ufeff"))


def clean(text: str) -> str:
    """U+FFFD for what cannot be stored: NUL and lone surrogates. The length stays the same."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def declared_encoding(head: bytes) -> str:
    """The encoding that a file's first bytes state: HTML's meta, XML's declaration, or a script's comment; else ""."""
    match = _DECLARED.search(head) or _COOKIE.search(b"\n".join(head.split(b"\n", 2)[:2]))
    return match[match.lastindex or 0].decode("ascii", "replace") if match else ""


def decode(data: bytes, declared: str = "") -> tuple[str, str]:
    """Decode a whole file.

    Args:
        data: Its bytes.
        declared: Name of the encoding that the file itself states, or "".

    Returns:
        The normalised text, and the name of the encoding it was in.

    Raises:
        ReadError: With status skipped for a binary; failed where no encoding fits.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return normalise(data[len(mark) :].decode(name, "replace")), name
    head = data[:_SAMPLE]
    if len(head.translate(None, _CONTROLS)) < len(head):
        wide = _wide(head)
        if wide:
            return normalise(data.decode(wide, "replace")), wide
    for name, means, seen in _SEVEN_BITS:
        # The marks of the one without an escape stand in programs too, so that it is believed only where it is declared.
        if seen.search(head) and (name != "hz" or _codec(declared) == name):
            text = _strict(data, means)
            if text is not None:
                return normalise(text), name
    refuse_binary(head)
    for name in ("utf-8", _MEANT.get(declared.lower(), ""), declared):
        text = _strict(data, name)
        if text is not None:
            return normalise(text), declared if name and name != "utf-8" and name == _MEANT.get(
                declared.lower()
            ) else name
    mixed = _with_strays(data)
    if mixed is not None:
        return normalise(mixed), MIXED
    return _line_by_line(data) or _detected(data)


def refuse_binary(head: bytes) -> None:
    """Raise ReadError (skipped) if the first bytes of a file are not text in any encoding."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise skip(f"It is {what}, not text", BINARY_REMEDY)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    # Words that NUL sets apart, as some programs list them, hold no other control character.
    listed = head.count(0) == controls <= 0.1 * len(head)
    if controls >= 2 and controls > 0.03 * len(head) and not listed:
        raise skip("It is a binary file, not text", BINARY_REMEDY)


def _codec(name: str) -> str:
    """The name that Python gives to an encoding, or ""."""
    try:
        return codecs.lookup(name).name if name else ""
    except LookupError:
        return ""


def _strict(data: bytes, name: str) -> str | None:
    if not name:
        return None
    try:
        return data.decode(name, "strict")
    except (UnicodeError, LookupError):
        return None


def _with_strays(data: bytes) -> str | None:
    """UTF-8 in which a few bytes are of another encoding, as where two files were joined: those are read as cp1252."""
    text = data.decode("utf-8", _STRAYS)
    strays = sum("\udc80" <= c <= "\udcff" for c in text)
    proper = len(text) - strays - sum(c < "\x80" for c in text)
    if proper < 3 * strays:
        return None
    return _STRAY.sub(lambda match: match[0].encode("utf-8", _STRAYS).decode("cp1252", "replace"), text)


def _line_by_line(data: bytes) -> tuple[str, str] | None:
    """Text of which a good part of the lines is UTF-8 and the others are not, as where files were joined; else None.

    By chance a line in another encoding is UTF-8 as well, but not a quarter of them.
    """
    lines = data.split(b"\n")
    texts = [_strict(line, "utf-8") for line in lines]
    proper = [text for text in texts if text is not None and not text.isascii()]
    others = [line for line, text in zip(lines, texts, strict=True) if text is None]
    if 4 * len(proper) < len(proper) + len(others) or sum(c > "\x7f" for text in proper for c in text) < 3:
        return None
    try:
        rest, name = _detected(b"\n".join(others))
    except ReadError:
        rest, name = normalise(b"\n".join(others).decode("cp1252", "replace")), "cp1252"
    decoded = iter(rest.split("\n"))
    if rest.count("\n") + 1 != len(others):  # a lone carriage return ended a line too
        return None
    return normalise("\n".join(next(decoded) if text is None else text for text in texts)), f"utf-8 and {name}"


def _wide(head: bytes) -> str:
    """UTF-16 or UTF-32 without a mark, or "".

    Where the zero bytes stand tells which, for texts in Latin letters. In others the upper bytes are the few that name a
    script, and the lower ones are many; every character is one that exists, and there are spaces or full stops.
    """
    for name, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        sample = head[: len(head) // width * width]
        if len(sample) < 8 * width:
            continue
        text = _strict(sample, name)
        if text is None or "\x00" in text:
            continue
        plain = sum(c.isspace() or unicodedata.category(c)[0] in "LMNPS" for c in text)
        letters = sum(c < "\x80" and c.isalnum() for c in text)
        stops = sum(c in _BETWEEN_WORDS for c in text)
        if plain >= 0.97 * len(text) and (letters > 0.3 * len(text) or (width == 4 and stops > len(text) // 100)):
            return name
    if head.isascii() and len(head.translate(None, _CONTROLS)) == len(head) - head.count(0):
        return ""  # ASCII with a NUL here and there: two such bytes are a Han character too, but nobody wrote those
    for name, upper in (("utf-16-le", 1), ("utf-16-be", 0)):
        sample = head[: len(head) // 2 * 2]
        text = _strict(sample, name)
        if text is None or len(text) < 24:
            continue
        if _EASTERN.fullmatch(text) and len(_IDEOGRAPHS.findall(text)) > len(text) / 2 and _EASTERN_STOPS.search(text):
            return name
        if len(set(sample[upper::2])) >= len(set(sample[1 - upper :: 2])):
            continue
        odd = sum(unicodedata.category(c) in ("Cc", "Cn", "Co", "Cs") and c not in "\t\n\r\f" for c in text)
        if not odd and sum(c in _BETWEEN_WORDS for c in text) >= len(text) // 100 + 1:
            return name
    return ""


def _detected(data: bytes) -> tuple[str, str]:
    from charset_normalizer import from_bytes

    sample = data if len(data) <= _SAMPLE else data[: data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    if _ebcdic(sample):
        raise ReadError(
            "It is EBCDIC, the code of mainframes, which is not read", "Save it as UTF-8 (iconv -f CP500 -t UTF-8)"
        )
    cyrillic = _cyrillic(sample)
    if cyrillic:
        return normalise(data.decode(cyrillic, "replace")), cyrillic
    matches = from_bytes(sample, cp_isolation=_COMMON)
    best = matches.best()
    if best is None:
        matches = from_bytes(sample, cp_isolation=_COMMON, threshold=0.4)
        best = matches.best()
    if best is None:
        raise ReadError("Its encoding cannot be told", "Save it as UTF-8")
    others = {m.encoding for m in matches if m.chaos <= best.chaos + 0.02 and m.coherence >= best.coherence - 0.05}
    sure = _by_script(sample)
    if sure:
        return normalise(data.decode(sure, "replace")), sure
    name = _western_or_central(best.encoding, best.language, others, sample)
    # Two bytes of a Chinese character may be an accent and the letter after it, but not in a text of Latin letters.
    latin = name in _TWO_BYTES and len(_LATIN_LETTERS.findall(sample)) > 3 * sum(byte >= 0x80 for byte in sample)
    if latin or name in CODE_PAGES:
        name = latin_code_page(sample, name)
    return normalise(data.decode(name, "replace")), name


def _ebcdic(sample: bytes) -> bool:
    """Whether a text has its blanks at 0x40 and Latin letters where EBCDIC has them; other code pages decode it to noise."""
    if sample.count(0x40) < 0.05 * len(sample) or sample.count(0x20) > 0.01 * len(sample):
        return False
    plain = sum(c.isascii() and (c.isalnum() or c in " .,\n\r\t") for c in sample.decode("cp500"))
    return plain >= 0.8 * len(sample)


def _by_script(sample: bytes) -> str:
    """Some that the detector takes for others, by the bytes that their scripts use and no other text does; else ""."""
    if _chinese(sample):
        return "gb18030"
    high = [byte for byte in sample if byte >= 0x80]
    # Kana are a fifth of any Japanese; their rows in Shift-JIS begin with bytes that are rare elsewhere.
    kana = len(re.findall(rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]", sample))
    if kana >= 3 and kana > len(high) / 10 and _strict(sample, "cp932") is not None:
        return "cp932"
    # In Korean and Chinese their row in EUC is hardly used.
    kana = len(re.findall(rb"[\xa4\xa5][\xa1-\xf6]", sample))
    if kana >= 3 and kana > len(high) / 10 and _strict(sample, "euc_jp") is not None:
        return "euc_jp"
    if len(high) < 30:
        return ""
    # Hebrew has no capitals, and no letters in the last five places, where Cyrillic and Greek have frequent ones.
    letters = sum(0xE0 <= byte <= 0xFA for byte in high)
    plain = sum(chr(byte).isalpha() for byte in sample if byte < 0x80)
    return "cp1255" if letters >= 0.9 * len(high) and plain < letters and max(high) <= 0xFA else ""


def _chinese(sample: bytes) -> bool:
    """Whether a text is in GB 2312 and not Korean, which has the same pairs of bytes, but no syllables in its later rows."""
    pairs = _PAIRS.findall(sample)
    if len(pairs) < 3 or 2 * len(pairs) < sum(byte >= 0x80 for byte in sample) or _strict(sample, "gb2312") is None:
        return False
    frequent = sum(0xB0 <= pair[0] <= 0xD7 for pair in pairs)
    later = sum(0xC9 <= pair[0] <= 0xD7 for pair in pairs)
    kana = sum(pair[0] in (0xA4, 0xA5) for pair in pairs)
    return not kana and frequent > 0.6 * len(pairs) and later > 0.1 * len(pairs)


def _cyrillic(sample: bytes) -> str:
    """Which of the Cyrillic code pages a text is in, by its letters' frequencies; "" where it is in none of them.

    All of them decode everything, to letters that are as many and hardly as likely. A word is of one script, and a capital
    stands at its start or in a word of capitals.
    """
    runs = re.findall(rb"[\x80-\xff]+", sample)
    high = sum(map(len, runs))
    if high < 6 or sum(len(run) for run in runs if len(run) > 1) < 0.9 * high:
        return ""
    scores = {name: _likely(sample, name) for name in _CYRILLIC}
    best = max(scores, key=lambda name: scores[name])
    letters = [c for c in sample.decode(best, "replace") if c > "\x7f"]
    capitals = sum(map(str.isupper, letters)) > 0.5 * len(letters)  # as which Greek and Hebrew are read, less likely
    return best if scores[best] >= _LIKELY + 2 * capitals else ""


def _likely(sample: bytes, name: str) -> float:
    """How often the letters beyond ASCII occur in Russian, on average in percent, less for capitals in the wrong place."""
    text = sample.decode(name, "replace")
    letters = [c for c in text if c > "\x7f"]
    wrong = len(re.findall("[а-яё][А-ЯЁ]", text))
    odd = sum(c.lower() not in _RUSSIAN and c not in "—–«»№…“”„ " for c in letters)
    return (sum(_RUSSIAN.get(c.lower(), 0.0) for c in letters) - 8 * wrong - 8 * odd) / max(len(letters), 1)


def _western_or_central(best: str, language: str, others: set[str], sample: bytes) -> str:
    """Decide between cp1252, cp1250 and ISO 8859-2, which decode the same bytes to other letters."""
    western = sample.decode("cp1252", "replace")
    if best != "cp1252" and sample.decode(best, "replace") == western:
        return "cp1252"
    # Signs that no Western word has in its middle, where the other code pages have letters.
    signs = len(_CENTRAL_INSIDE.findall(western))
    if best in ("cp1252", "cp1250", "iso8859_2") and (signs >= 2 or (signs and language in _CENTRAL)):
        return "cp1250" if any(0x80 <= byte < 0xA0 for byte in sample) else "iso8859_2"
    if best != "cp1252" and "cp1252" in others:
        accents = sum(byte > 127 for byte in sample)
        if language not in _CENTRAL or accents < 5:
            return "cp1252"
    if best == "cp1250" and language in _CENTRAL and not any(0x80 <= byte < 0xA0 for byte in sample):
        return "iso8859_2"
    return best
