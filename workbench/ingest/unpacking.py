"""How much may come out of one file: a bomb of a few kilobytes must cost neither the memory nor the disk of a run.

One `Unpacking` belongs to a file on disk and is shared by everything inside it, however deep: its members together may not
be more, larger or deeper than the settings allow. What is asked for beyond them is refused with a sentence.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field
from typing import IO

from workbench import settings
from workbench.ingest.errors import ReadError

_BLOCK = 1 << 20
_RATIO = 200
"""A part larger than a few megabytes that shrank to less than this share of itself is a bomb; text shrinks 3 to 30 times."""
_RATIO_FROM = 8 << 20


def _limit(name: str) -> int:
    return int(settings.get(name))


@dataclass(slots=True)
class Unpacking:
    """What is left to take out of one file on disk.

    Attributes:
        left_bytes: Bytes that may still come out of it.
        left_members: Members that may still be read.
        deepest: How deep archives may lie in one another.
    """

    left_bytes: int = field(default_factory=lambda: _limit("max_unpacked_mb") << 20)
    left_members: int = field(default_factory=lambda: _limit("max_members"))
    deepest: int = field(default_factory=lambda: _limit("max_nesting"))

    def count(self) -> None:
        """One more member. Raises ReadError."""
        if self.left_members <= 0:
            raise ReadError(
                f"It holds more members than the {_limit('max_members'):,} of the setting max_members",
                "Raise max_members, or unpack it and index what is in it",
            )
        self.left_members -= 1

    def take(self, number: int) -> None:
        """Some bytes came out. Raises ReadError."""
        self.left_bytes -= number
        if self.left_bytes < 0:
            raise ReadError(
                f"It unpacks to more than the {_limit('max_unpacked_mb'):,} MB of the setting max_unpacked_mb",
                "Raise max_unpacked_mb, or unpack it and index what is in it",
            )

    def drain(self, stream: IO[bytes], packed: int = 0) -> bytes:
        """Everything that a decompressing stream gives. Raises ReadError where it gives too much.

        Args:
            stream: The stream.
            packed: How many bytes it is made from; 0 if that is not known.
        """
        parts: list[bytes] = []
        size = 0
        while block := stream.read(_BLOCK):
            size += len(block)
            self.take(len(block))
            if packed and size > _RATIO_FROM and size > packed * _RATIO:
                raise ReadError(
                    f"It is packed {_RATIO} times or more, as bombs are", "Unpack it, and index what is in it"
                )
            parts.append(block)
        return b"".join(parts)

    def part(self, package: zipfile.ZipFile, which: str | zipfile.ZipInfo) -> bytes:
        """One part of a zip package. Raises ReadError, KeyError (there is none of that name), zipfile.BadZipFile."""
        info = package.getinfo(which) if isinstance(which, str) else which
        if info.flag_bits & 1:
            raise ReadError("It is locked with a password", "Save it without the password, and index that")
        with package.open(info) as stream:
            return self.drain(stream, info.compress_size)


def safe_name(raw: str) -> str:
    """The path of a member inside its archive: `/`, without leading `./`. Raises ReadError for one that leads out of it."""
    name = raw.replace("\\", "/")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\x00" in name or re.match("[A-Za-z]:", name):
        raise ReadError(
            f"The member {raw[:200]!r} has a name that leads out of the archive", "Unpack it by hand, if you trust it"
        )
    return "/".join(parts)
