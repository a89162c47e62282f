"""From bytes to text: byte order mark, strict UTF-8, what the file declares, UTF-8 with strays, else what chardet detects.

Text is normalised once, here: line ends become `\\n`, NUL and lone surrogates become U+FFFD (they cannot be stored), and
nothing else changes, so that offsets and lines are those of the file.
"""

from __future__ import annotations

import re
import unicodedata

from workbench.ingest.errors import ReadError, skip

MIXED = "utf-8 and cp1252"
_BOMS = {"\ufeff".encode(name): name for name in ("utf-8", "utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")}
_MAGIC = {
    b"PK\x03\x04": "a zip archive or Office file",
    b"\xd0\xcf\x11\xe0": "an old Office file",
    b"\x7fELF": "a program",
    b"MZ\x90": "a program",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"\x1f\x8b": "a compressed file",
    b"7z\xbc\xaf": "an archive",
    b"Rar!": "an archive",
    b"SQLite format 3\x00": "a database",
    b"PAR1": "a Parquet file",
}
_CONTROLS = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 26, 27})
_SAMPLE = 1 << 16
_BINARY_REMEDY = "Convert it to text, or leave it out by .gitignore"
_MEANT = {
    name: codec
    for codec, names in (
        ("cp932", "x-sjis shift_jis shift-jis sjis windows-31j shift_jis_2004"),
        ("euc_jp", "x-euc-jp"),
        ("gb18030", "gb2312 gbk x-gbk"),
        ("cp949", "euc-kr euc_kr ks_c_5601-1987 ksc5601"),
        ("cp1252", "iso-8859-1 iso8859-1 latin1 us-ascii ascii"),
        ("cp1254", "iso-8859-9 iso8859-9"),
        ("cp874", "tis-620 iso-8859-11 iso8859-11"),
        ("mac_cyrillic", "x-mac-cyrillic"),
        ("mac_roman", "x-mac-roman macintosh"),
        ("big5hkscs", "big5 x-x-big5"),
    )
    for name in names.split()
}
"""Names of encodings, and the larger one that is meant (https://encoding.spec.whatwg.org/#names-and-labels)."""
_SEVEN_BITS = (
    ("iso2022_jp", "iso2022_jp_2", re.compile(rb"\x1b\$[@B(]|\x1b\(J")),
    ("iso2022_kr", "iso2022_kr", re.compile(rb"\x1b\$\)C")),
    ("hz", "hz", re.compile(rb"~\{(?:[!-w][!-~])+~\}")),
)
"""Encodings that look like ASCII: name, the codec, and the marks that set them apart."""
_CENTRAL = frozenset({"cp1250", "iso8859-2", "iso8859-16"})
_UNSURE, _NEARLY = 0.06, 0.9
_OTHER_SCRIPTS = re.compile("[\u0370-\u0e7f]+")
_IN_LATIN_WORD = re.compile("(?<=[A-Za-z])[\u0370-\u0e7f]+|[\u0370-\u0e7f]+(?=[A-Za-z])")
_STRAY = re.compile("[\udc80-\udcff]+")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_EASTERN = re.compile("[\t\n\r -~\u00b7\u2010-\u203b\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]*")
_IDEOGRAPHS = re.compile("[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_EASTERN_STOPS = re.compile("[\u3001\u3002\uff0c\uff01\uff1f\uff1a]|[\uac00-\ud7a3][ .]")
_BETWEEN_WORDS = frozenset(" \n\u3000\u3001\u3002\uff0c")
_DECLARED = re.compile(
    rb"<meta[^>]+?charset[ \t]*=[ \t\"']*([-\w:.]+)|<\?xml[^>]+?encoding=[\"']([-\w.]+)", re.IGNORECASE
)
_COLOURS = re.compile("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[()][A-Z0-9]|[=>])|.\x08")
_SYMBOL = (
    " !\u2200#\u2203%&\u220b()\u2217+,\u2212./0123456789:;<=>?\u2245\u0391\u0392\u03a7\u0394\u0395\u03a6\u0393"
    "\u0397\u0399\u03d1\u039a\u039b\u039c\u039d\u039f\u03a0\u0398\u03a1\u03a3\u03a4\u03a5\u03c2\u03a9\u039e\u03a8"
    "\u0396[\u2234]\u22a5_\u203e\u03b1\u03b2\u03c7\u03b4\u03b5\u03c6\u03b3\u03b7\u03b9\u03d5\u03ba\u03bb\u03bc"
    "\u03bd\u03bf\u03c0\u03b8\u03c1\u03c3\u03c4\u03c5\u03d6\u03c9\u03be\u03c8\u03b6{|}\u223c"
)
_SYMBOL_HIGH = (
    "\u20ac\u03d2\u2032\u2264\u2044\u221e\u0192\u2663\u2666\u2665\u2660\u2194\u2190\u2191\u2192\u2193\u00b0\u00b1"
    "\u2033\u2265\u00d7\u221d\u2202\u2022\u00f7\u2260\u2261\u2248\u2026|\u2014\u21b5\u2135\u2111\u211c\u2118\u2297"
    "\u2295\u2205\u2229\u222a\u2283\u2287\u2284\u2282\u2286\u2208\u2209\u2220\u2207\u00ae\u00a9\u2122\u220f\u221a"
    "\u22c5\u00ac\u2227\u2228\u21d4\u21d0\u21d1\u21d2\u21d3\u25ca\u2329\u00ae\u00a9\u2122\u2211"
)
_FONTS = {
    "symbol": {**dict(enumerate(_SYMBOL, 0x20)), **dict(enumerate(_SYMBOL_HIGH, 0xA0)), 0xF1: "\u232a", 0xF2: "\u222b"},
    "wingdings": dict(
        zip(
            b"\x28\x2a\x46\x4a\x4c\x6c\x6e\x6f\x71\x76\x9f\xa7\xa8\xd8\xdf\xe0\xe1\xe2\xf0\xfb\xfc\xfd\xfe",
            "\u260e\u2709\u261e\u263a\u2639\u25cf\u25a0\u2610\u2751\u2756\u2022\u25aa\u2610\u27a2\u2190\u2192\u2191\u2193\u21e8\u2717\u2713\u2612\u2611",
            strict=True,
        )
    ),
}
"""Signs of the fonts that have letters of their own, by code (Adobe's Symbol encoding; the usual ones of Wingdings)."""
_COOKIE = re.compile(rb"(?:#|//|/\*|--).*?coding[:=][ \t]*([-\w.]+)")


def normalise(text: str) -> str:
    """Line ends as `\\n`, no byte order mark in front, and U+FFFD for NUL and lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return clean(text.removeprefix("\ufeff"))


def clean(text: str) -> str:
    """U+FFFD for what cannot be stored: NUL and lone surrogates. The length stays the same."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def symbols(text: str, font: str) -> str:
    """What a text in a font of symbols shows, its codes as bytes or in the private area (U+F0xx); text in others as it is."""
    signs = _FONTS.get(font.strip().lower())
    if signs is None:
        return text
    return "".join(signs.get(ord(c) & 0xFF, c) if c < "\u0100" or "\uf000" <= c <= "\uf0ff" else c for c in text)


def without_colours(text: str) -> str:
    """A text without the codes by which terminals are told colours and places, and letters that were struck twice once."""
    return _COLOURS.sub("", text) if "\x1b" in text or "\x08" in text else text


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
    for mark, name in _BOMS.items():
        if data.startswith(mark):
            return normalise(data[len(mark) :].decode(name, "replace")), name
    head = data[:_SAMPLE]
    wide = _wide(head) if len(head.translate(None, _CONTROLS)) < len(head) else ""
    if wide:
        return normalise(data.decode(wide, "replace")), wide
    for name, codec, marks in _SEVEN_BITS:
        # The marks of the one without an escape occur in programs too, so that it is believed only where it is declared.
        if marks.search(head) and (name != "hz" or declared.lower().startswith("hz")):
            text = _strict(data, codec)
            if text is not None:
                return normalise(text), name
    refuse_binary(head)
    for name, codec in (("utf-8", "utf-8"), (declared, _MEANT.get(declared.lower(), "")), (declared, declared)):
        text = _strict(data, codec)
        if text is not None:
            return normalise(text), name
    mixed = _with_strays(data)
    if mixed is not None:
        return normalise(mixed), MIXED
    return _line_by_line(data) or _detected(data)


def refuse_binary(head: bytes) -> None:
    """Raise ReadError (skipped) if the first bytes of a file are not text in any encoding."""
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise skip(f"It is {what}, not text", _BINARY_REMEDY)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    # Words that NUL sets apart, as some programs list them, hold no other control character.
    listed = head.count(0) == controls <= 0.1 * len(head)
    if controls >= 2 and controls > 0.03 * len(head) and not listed:
        raise skip("It is a binary file, not text", _BINARY_REMEDY)


def _strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec, "strict") if codec else None
    except (UnicodeError, LookupError):
        return None


def _with_strays(data: bytes) -> str | None:
    """UTF-8 in which a few bytes are of another encoding, as where two files were joined: those are read as cp1252."""
    text = data.decode("utf-8", "surrogateescape")
    strays = sum("\udc80" <= c <= "\udcff" for c in text)
    proper = len(text) - strays - sum(c < "\x80" for c in text)
    if proper < 3 * strays:
        return None
    return _STRAY.sub(lambda match: match[0].encode("utf-8", "surrogateescape").decode("cp1252", "replace"), text)


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


def _detected(data: bytes) -> tuple[str, str]:
    """Decode by chardet, which knows all code pages; where it is unsure only those that are met on the web."""
    from chardet import EncodingEra, detect_all

    sample = data if len(data) <= _SAMPLE else data[: data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    found = detect_all(sample, ignore_threshold=True, compat_names=False)
    if "A".encode(found[0]["encoding"] or "ascii", "replace") == b"\xc1":
        reason = "It is EBCDIC, the code of mainframes, which is not read"
        raise ReadError(reason, "Save it as UTF-8 (iconv -f CP500 -t UTF-8)")
    if found[0]["confidence"] < _UNSURE:
        found = detect_all(sample, ignore_threshold=True, compat_names=False, encoding_era=EncodingEra.MODERN_WEB)
    found = [one for one in found if one["encoding"] and _is_of_one_script(sample, one["encoding"])]
    if not found:
        raise ReadError("Its encoding cannot be detected", "Save it as UTF-8")
    name = str(found[0]["encoding"])
    likely = [one["encoding"] for one in found if one["confidence"] >= _NEARLY * found[0]["confidence"]]
    if name in _CENTRAL and ("cp1252" in likely or "iso8859-1" in likely):
        name = "cp1252"  # the one in wide use
    name = _MEANT.get(name, name).replace("-", "_")
    return normalise(data.decode(name, "replace")), name


def _is_of_one_script(sample: bytes, encoding: str) -> bool:
    """Whether letters of other scripts are words of their own, as Cyrillic ones are not where French is read as Cyrillic."""
    text = sample.decode(encoding, "replace")
    return 2 * len(_IN_LATIN_WORD.findall(text)) <= len(_OTHER_SCRIPTS.findall(text))


def _wide(head: bytes) -> str:
    """UTF-16 or UTF-32 without a mark, or "".

    Texts in Latin letters show by their zero bytes. In others the upper bytes are the few that name a script, and the lower
    ones are many; every character is one that exists, and there are spaces or full stops.
    """
    for name, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        sample = head[: len(head) // width * width]
        text = _strict(sample, name) if len(sample) >= 8 * width else None
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
