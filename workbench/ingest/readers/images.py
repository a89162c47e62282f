"""Images: format, size, what the camera or its owner wrote into them, and their words where they are to be recognised."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from workbench.ingest.encoding import clean
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.readers import ocr
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.locators import Place

_SUFFIXES = frozenset(".png .jpg .jpeg .gif .webp .tif .tiff .bmp .ico".split())
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*")
_NAMES = {
    270: "description", 271: "make", 272: "model", 305: "software", 306: "changed", 315: "artist", 33432: "copyright",
    36867: "taken", 37510: "comment", 40091: "title", 40092: "comment", 40093: "artist", 40094: "keywords", 40095: "subject",
}  # fmt: skip
_EXIF, _GPS = 0x8769, 0x8825
_LONGEST = 2000
_PASSED = frozenset(
    "exif icc_profile xmp dpi photoshop jfif jfif_version jfif_density jfif_unit adobe mp adobe_transform"
    " transparency background version duration loop extension gamma srgb sizes chromaticity interlace aspect"
    " progressive progression compression resolution mpoffset".split()
)


def _read(source: Source) -> Iterator[Parsed | Problem]:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with source.stream() as stream, Image.open(stream) as image:
                shape = f"{image.format} image, {image.width} x {image.height} pixels"
                found = _known(image)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as exc:
        raise ReadError(
            "It is broken: it cannot be opened as an image", "Get it again, or leave it out by .gitignore"
        ) from exc
    text = "\n".join([source.name, shape, *(f"{name}: {words}" for name, words in found.items())]) + "\n"
    places: tuple[Place, ...] = ()
    if source.ocr:
        try:
            words = ocr.recognised(source.data(), source)
        except ReadError as exc:
            yield Problem(exc.message, exc.remedy)
        else:
            places = (Place(len(text) + 1, ocr.place()),) if words else ()
            text += f"\n{words}\n" if words else ""
    title = found.get("title", "") or source.name
    yield Parsed(text, "image", title=title, metadata=dict(found), places=places)


READER = Reader("image", _read, _SUFFIXES, sniff=lambda head: head.startswith(_MAGIC), certain=True)


def _known(image: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    exif = image.getexif()
    for table in (exif, exif.get_ifd(_EXIF)):
        for tag, value in sorted(table.items()):
            words = _word(value, wide=40091 <= tag <= 40095)
            if tag in _NAMES and words:
                found.setdefault(_NAMES[tag], words)
    place = _position(exif.get_ifd(_GPS))
    if place:
        found["position"] = place
    for key, value in sorted(image.info.items(), key=lambda item: str(item[0])):
        words = _word(value) if isinstance(value, str | bytes) and str(key).lower() not in _PASSED else ""
        if words:
            found.setdefault(str(key).lower(), words)
    return found


def _word(value: Any, wide: bool = False) -> str:
    if isinstance(value, tuple) and all(isinstance(v, int) and 0 <= v < 256 for v in value):
        value = bytes(value)
    if isinstance(value, bytes):
        value = value.removeprefix(b"ASCII\x00\x00\x00")
        value = value.decode("utf-16-le" if wide else "utf-8", "replace")
    words = " ".join(clean(str(value)).replace("\ufffd", " ").split())[:_LONGEST] if isinstance(value, str) else ""
    return words if words.isprintable() else ""


def _position(table: Any) -> str:
    try:
        pairs = [(table[2], table[1] == "S"), (table[4], table[3] == "W")]
        degrees = [sum(float(part) / 60**n for n, part in enumerate(parts)) * (-1) ** low for parts, low in pairs]
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return ""
    return ", ".join(f"{number:.5f}" for number in degrees)
