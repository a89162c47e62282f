"""RTF, by its own grammar: the words with their encodings, headings by style, tables, notes; pictures and objects are left out.

Each font has a code page of its own and a byte may be half of a character, so bytes go through an incremental decoder that is
exchanged with the font. A place is the paragraph or row of a table, `paragraph=12`, counted from 1 in the order of the file.
(Specification: Rich Text Format 1.9.1.)
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from workbench.ingest.encoding import clean, symbols
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import TextWriter, left_out, raised
from workbench.ingest.readers.base import RESAVE, Member, Parsed, Reader, Source, written
from workbench.locators import locator

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|([\r\n]+)|([^\\{}\r\n]+)", re.DOTALL
)
_CODES = (
    "0=cp1252 2=cp1252 77=mac_roman 128=cp932 129=cp949 130=johab 134=gbk 136=big5 161=cp1253 162=cp1254 163=cp1258 177=cp1255"
    " 178=cp1256 186=cp1257 204=cp1251 222=cp874 238=cp1250 254=cp437 255=cp850"
)
_CHARSETS = {int(number): codec for number, codec in (pair.split("=") for pair in _CODES.split())}
_NAMES = (
    "emspace enspace qmspace line softline column tab emdash endash bullet lquote rquote ldblquote rdblquote zwj zwnj"
)
_SIGNS = "   \n\n\n\t\u2014\u2013\u2022\u2018\u2019\u201c\u201d\u200d\u200c\u200e\u200f"
_SPECIAL = dict(zip(f"{_NAMES} ltrmark rtlmark".split(), _SIGNS, strict=True))
_SKIPPED = frozenset(
    "colortbl pict objclass objname themedata colorschememapping datastore latentstyles listtable"
    " listoverridetable list listlevel leveltext listname rsidtbl generator xmlnstbl filetbl revtbl fldinst"
    " bkmkstart bkmkend nonshppict pgptbl operator datafield panose falt fname sp sn sv template mmathPr private"
    " ftnsep ftnsepc aftnsep aftnsepc userprops xe tc pnseclvl pn atrfstart atrfend atnid atnref atntime atndate"
    " creatim revtim printim buptim mhtmltag htmltag".split()
)
_STARRED = frozenset("shptxt shpinst objdata annotation fldrslt listtext pntext".split())  # which may be skipped
_RAISED = {"super": "high", "up": "high", "sub": "low", "dn": "low", "nosupersub": ""}
_INFO = frozenset("title author subject keywords doccomm".split())
_ASIDE = {
    "footnote": "footnote",
    "annotation": "comment",
    **dict.fromkeys(("header", "headerl", "headerr", "headerf"), "header"),
    **dict.fromkeys(("footer", "footerl", "footerr", "footerf"), "footer"),
}
_EMBEDDED = (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PK\x03\x04", b"%PDF-")
_HEADING = re.compile(r"(?i)heading (\d)")


def _read(source: Source) -> Iterator[Parsed | Member | Problem]:
    document = _Document(source.data())
    title = document.info.pop("title", "")
    for number, data in enumerate(document.objects, 1):
        yield Member(f"object-{number}.bin", data)
    if document.unread:
        yield Problem(f"{document.unread} of its embedded objects are of a kind that is not read", RESAVE)
    if not document.closed:
        yield Problem("It ends too early: some of it may be missing", "Get the file again")
    yield written(document.writer, "word", title, metadata=document.info | left_out(document.hidden))


READER = Reader("rtf", _read, frozenset({".rtf"}), sniff=lambda head: head.lstrip().startswith(b"{\\rtf"), certain=True)


def rtf_text(data: bytes) -> str:
    """The words of an RTF text. Raises ReadError."""
    return _Document(data).writer.finish()[0]


@dataclass(slots=True)
class _Group:
    """What a `{` saves and its `}` brings back."""

    target: str = ""  # "": the text; "-": nowhere; else the destination's name
    font: int = -1
    skip: int = 1  # how many characters stand for a \u that is not understood
    hidden: bool = False
    deleted: bool = False
    raised: str = ""  # `high`, `low` or ""


class _Document:
    """Reads one RTF file. Raises ReadError if it is not RTF."""

    def __init__(self, data: bytes) -> None:
        self.writer = TextWriter()
        self.info: dict[str, str] = {}
        self.closed = False
        self.objects: list[bytes] = []
        self._hex: list[bytes] = []
        self._group = _Group()
        self._stack: list[_Group] = []
        self._codepage, self._fonts = "cp1252", dict[int, str]()
        self._default_font, self._defining = -1, -1
        self._decoder_name, self._decoder = "", codecs.getincrementaldecoder("cp1252")("replace")
        self._buffers: dict[str, list[str]] = {}
        self._pending, self._half, self._ignorable, self._fresh = 0, 0, False, False
        self.hidden = self.unread = 0
        self._names, self._symbols = dict[int, str](), set[int]()
        self._raised = ""
        self._styles: dict[int, int] = {}
        self._style = self._level = 0
        self._cells: list[str] = []
        self._rows: list[tuple[list[str], str]] = []
        self._in_table = False
        self._number = 0
        self._asides: list[tuple[str, str]] = []
        self._parse(data)
        self._flush()
        self._paragraph()
        self._table()
        for name, words in dict.fromkeys(self._asides):
            self.writer.apart()
            self.writer.paragraph(words, locator(part=name))

    def _parse(self, data: bytes) -> None:
        begin = data.find(b"{\\rtf")
        if begin < 0:
            raise ReadError("It is not RTF, despite its name", "Give it the name of what it is")
        position, end = begin, len(data)
        while position < end:
            match = _TOKEN.match(data, position)
            if match is None:
                break
            position = match.end()
            word, number, code, symbol, brace, ends, text = match.groups()
            fresh, self._fresh = self._fresh, self._fresh and bool(ends)
            if brace == b"{":
                self._flush()
                self._stack.append(replace(self._group))
                self._ignorable, self._fresh = False, True
            elif brace:
                self._flush()
                if not self._stack:
                    break
                self._close(self._stack.pop())
                if not self._stack:
                    self.closed = True
                    break
            elif word:
                if word == b"bin":
                    position += max(0, int(number or 0))
                else:
                    self._word(word.decode("ascii"), None if number is None else int(number))
            elif code:
                self._bytes(bytes([int(code, 16)]))
            elif symbol:
                if symbol != b"*":
                    self._symbol(symbol)
                elif fresh:  # elsewhere the mark says nothing, and what follows is text
                    self._ignorable = True
            elif text:
                self._bytes(text)

    def _close(self, outer: _Group) -> None:
        target = self._group.target
        self._group = outer
        if target == outer.target:
            return
        words = "".join(self._buffers.pop(target, ()))
        plain = " ".join(words.split())
        if target in _INFO and plain:
            self.info[target if target != "doccomm" else "description"] = plain
        elif target == "objdata":
            self._object()
        elif target in _ASIDE and plain:
            self._asides.append((_ASIDE[target], words.strip()))

    def _word(self, word: str, number: int | None) -> None:
        group = self._group
        if self._ignorable and word not in _STARRED:
            self._ignorable = False
            group.target = "-"
            return
        self._ignorable = False
        if word in _SKIPPED:
            group.target = "-"
        elif word in ("fonttbl", "stylesheet", "objdata") or word in _INFO or word in _ASIDE:
            if group.target != "-" and not (word in _INFO and group.target != "info"):
                group.target = word
        elif word == "info":
            group.target = "info"
        elif word == "u" and number is not None:
            self._unicode(number % 65536)
        elif word == "uc":
            group.skip = number or 0
        elif word == "ansicpg" and number:
            try:
                self._codepage = codecs.lookup(f"cp{number}").name
            except LookupError:
                self._codepage = "cp1252"
        elif word in ("mac", "pc", "pca"):
            self._codepage = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
        elif word == "deff":
            self._default_font = number or 0
        elif word == "f" and number is not None:
            self._flush()
            group.font = number
            self._defining = number
        elif word == "fcharset" and number is not None:
            if number == 2:
                self._symbols.add(self._defining)
            if number in _CHARSETS:
                self._fonts[self._defining] = _CHARSETS[number]
        elif word in ("v", "deleted"):
            self._flush()
            setattr(group, "hidden" if word == "v" else word, number != 0)
        elif word in _RAISED:
            self._flush()
            group.raised = _RAISED[word] if number != 0 else ""
        elif word == "plain":
            self._flush()
            group.hidden, group.deleted, group.raised, group.font = False, False, "", -1
        elif group.target == "stylesheet":
            if word == "s":
                self._defining = -2 - (number or 0)
        elif word in _SPECIAL:
            self._put_apart(_SPECIAL[word])
        elif group.target in ("", *_ASIDE):
            self._block_word(word, number)

    def _block_word(self, word: str, number: int | None) -> None:
        if word in ("par", "sect", "page"):
            self._flush()
            if self._group.target:
                self._put_apart("\n")
            elif self._in_table or self._cells:
                self._put_apart(" ")
            else:
                self._paragraph()
        elif self._group.target:
            return
        elif word == "pard":
            self._in_table = False
            self._style = self._level = 0
        elif word == "intbl":
            self._in_table = True
        elif word == "s":
            self._style = number or 0
        elif word == "outlinelevel":
            self._level = (number or 0) + 1 if (number or 0) < 9 else 0
        elif word in ("cell", "nestcell"):
            self._flush()
            self._cells.append("".join(self._buffers.pop("", ())))
        elif word == "row":
            self._flush()
            if any(cell.strip() for cell in self._cells):
                self._number += 1
                self._rows.append((self._cells, locator(paragraph=self._number)))
            self._cells = []

    def _symbol(self, symbol: bytes) -> None:
        if symbol in b"\\{}":
            self._bytes(symbol)
        elif symbol == b"~":
            self._put_apart(" ")
        elif symbol == b"_":
            self._put_apart("-")
        elif symbol in b"\r\n":
            self._block_word("par", None)

    def _unicode(self, unit: int) -> None:
        self._flush()
        if 0xD800 <= unit < 0xDC00:
            self._half = unit
        elif 0xDC00 <= unit < 0xE000:
            if self._half:
                self._put_apart(chr(0x10000 + ((self._half - 0xD800) << 10) + unit - 0xDC00))
            self._half = 0
        else:
            self._put_apart(chr(unit))
        self._pending = self._group.skip

    def _bytes(self, data: bytes) -> None:
        if self._pending:
            cut = min(self._pending, len(data))
            self._pending -= cut
            data = data[cut:]
        if not data or self._group.target == "-":
            return
        if self._group.target == "objdata":
            self._hex.append(data)
            return
        if self._group.target == "stylesheet":
            match = _HEADING.search(data.decode("latin-1"))
            if match is not None and self._defining <= -2:
                self._styles[-2 - self._defining] = int(match[1])
            return
        if self._group.target == "fonttbl":
            self._names[self._defining] = self._names.get(self._defining, "") + data.decode("latin-1")
            return
        font = self._group.font if self._group.font >= 0 else self._default_font
        name = self._codepage if self._group.target in _INFO else self._fonts.get(font, self._codepage)
        if font in self._symbols:
            name = "latin-1"
        if name != self._decoder_name:
            self._flush()
            self._decoder_name, self._decoder = name, codecs.getincrementaldecoder(name)("replace")
        self._put(self._decoder.decode(data))

    def _object(self) -> None:
        """Keep an embedded file that is recognised by its first bytes, whatever is around it."""
        digits = re.sub(rb"[^0-9a-fA-F]", b"", b"".join(self._hex))
        data = bytes.fromhex(digits[: len(digits) // 2 * 2].decode("ascii"))
        self._hex = []
        begin = min((at for at in map(data.find, _EMBEDDED) if at >= 0), default=-1)
        if begin >= 0:
            self.objects.append(data[begin:])
        else:
            self.unread += bool(data)

    def _flush(self) -> None:
        if self._decoder_name:
            self._put(self._decoder.decode(b"", True))
            self._decoder.reset()

    def _put_apart(self, words: str) -> None:
        if self._group.target != "-":
            self._flush()
            self._put(words)

    def _put(self, words: str) -> None:
        group = self._group
        if not words or group.deleted:
            return
        if group.hidden:
            self.hidden += 1
            return
        font = group.font if group.font >= 0 else self._default_font
        words = symbols(words, self._names[font].partition(";")[0]) if font in self._symbols else words
        buffer = self._buffers.setdefault(group.target, [])
        if group.raised and not self._raised:
            words = raised(buffer[-1] if buffer else "", words, group.raised == "low")
        self._raised = group.raised
        buffer.append(words)

    def _paragraph(self) -> None:
        words = clean("".join(self._buffers.pop("", ())))
        self._number += 1
        if words.strip() and not self._cells:
            self._table()
            level = self._level or self._styles.get(self._style, 0)
            if level:
                self.writer.heading(words, level, locator(paragraph=self._number))
            else:
                self.writer.paragraph(words, locator(paragraph=self._number))

    def _table(self) -> None:
        if self._rows:
            self.writer.table(([" ".join(clean(cell).split()) for cell in cells], at) for cells, at in self._rows)
            self._rows = []
