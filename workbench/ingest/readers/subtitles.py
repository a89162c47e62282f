"""Subtitles (SRT, WebVTT): what is said, one cue after the other; a place is the moment, `time=00:01:02`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.ingest.errors import Problem
from workbench.ingest.outline import Outline
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.ingest.writing import TextWriter
from workbench.locators import locator

_TIMES = re.compile(r"[ \t]*(?:(\d+):)?(\d{1,2}):(\d{2})[,.]\d{1,3}[ \t]*-->[ \t]*[\d:.,]+.*")
_TAGS = re.compile(r"</?(?:[bius]|font|v|c|lang|ruby|rt|\d)[^<>]*>|\{\\[^{}]*\}")
_SPEAKER = re.compile(r"<v(?:\.[^ <>]*)? ([^<>]+)>")
_PAUSE = 5


def _read(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    lines = text.split("\n")
    starts = [(index, match) for index, line in enumerate(lines) if (match := _TIMES.fullmatch(line)) is not None]
    if not starts:
        yield Problem("It has no times as subtitles have them, and was read as text", "Nothing needs to be done")
        yield Parsed(text, "text", Outline(), metadata=metadata)
        return
    writer = TextWriter()
    last = 0
    for number, (index, match) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(lines)
        cue = lines[index + 1 : end]
        if number + 1 < len(starts) and cue and _names_next(cue):
            cue = cue[:-1]
        seconds = int(match[1] or 0) * 3600 + int(match[2]) * 60 + int(match[3])
        if seconds - last > _PAUSE:
            writer.gap()
        last = seconds
        words = " ".join(
            _TAGS.sub("", _SPEAKER.sub(r"\1: ", line)).strip() for line in cue if not line.startswith("NOTE")
        )
        at = locator(time=f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}")
        writer.line(" ".join(words.split()), at)
    written, outline, places = writer.finish()
    yield Parsed(written, "subtitles", outline, metadata=metadata, places=places)


def _names_next(cue: list[str]) -> bool:
    """Whether the last line before the next times is the number or name of that cue."""
    last = cue[-1].strip()
    return bool(last) and (last.isdigit() or not any(line.strip() for line in cue[-2:-1]))


READER = Reader("subtitles", _read, frozenset({".srt", ".vtt"}))
