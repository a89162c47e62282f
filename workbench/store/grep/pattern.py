"""Makes a pattern ready to search with: case, whole words, compiling with RE2, and RE2's objections in plain words.

RE2 (google-re2) takes time linear in the text whatever the pattern, which is why it alone decides what matches. Every
pattern is compiled so that no match crosses a newline (`never_nl`) and that `^` and `$` are the borders of lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from workbench.errors import QueryError
from workbench.store.grep.syntax import has_capital, quote, read_fixed, read_regex
from workbench.store.lexical.characters import RE2_SEPARATOR, letters

MOST_CHARACTERS = 4_000
"""Longest pattern. RE2's time is linear in the text, but in the worst case times the pattern's length."""

LARGEST_PROGRAM = 100_000
"""Most instructions that a pattern may unfold to, for the same reason."""

_SHOWN = 60
_LINES = "(?m)"
_BYTE_ESCAPE = "\\C"
_ASCII = re.compile(r"[\x00-\x7f]+")

Search = Callable[[Any, int, int], tuple[int, int]]
"""Bytes, first and last offset -> first and last offset of the leftmost match, or (-1, -1)."""


@dataclass(frozen=True, slots=True)
class GrepPattern:
    """One pattern, ready to search with.

    Attributes:
        source: The pattern as it was given.
        ignore: Whether case is ignored.
        needs: Finds text that every match holds, over the text or, where case is ignored, over the text in small letters; or
            None where there is nothing to tell.
        exact: Whether a line that holds it matches.
        odd: Whether characters beyond ASCII may be a case of one of its letters: the Kelvin sign and the long s.
        program: Instructions that the pattern unfolds to.
        literal: The bytes to look for, where the pattern is fixed text that need not be whole words; else b"".
        search: Finds the leftmost match; with whole words, the character before and after may be part of it.
        spans: Finds the leftmost match without them.
        note: What it does not do, in a sentence; else "".
    """

    source: str
    ignore: bool
    needs: Search | None
    exact: bool
    odd: bool
    program: int
    literal: bytes
    search: Search
    spans: Search
    note: str = ""


def compile_re2(pattern: str, ignore: bool, groups: bool = False, lines: bool = True) -> Any:
    """Compile with RE2; with `lines` no match crosses a newline. Raises `re2.error`. RE2's package keeps the last 128."""
    options = re2.Options()
    options.log_errors = False
    options.never_nl = lines
    options.never_capture = not groups
    options.case_sensitive = not ignore
    return re2.compile(_LINES + pattern, options)


def matcher(compiled: Any, groups: bool = False) -> Search:
    """A search function of a compiled pattern, for bytes and mapped files; with `groups`, of the first one that matched.

    It goes straight to RE2 where the package lets it: building a match object costs more than most searches.
    """
    inner = getattr(compiled, "_regexp", None)
    if inner is not None and hasattr(inner, "Match") and hasattr(re2, "_Anchor"):
        anchor, match = re2._Anchor.UNANCHORED, inner.Match

        def direct(data: Any, start: int, end: int) -> tuple[int, int]:
            found: tuple[int, int] = match(anchor, data, start, end)[0]
            return found

        def grouped(data: Any, start: int, end: int) -> tuple[int, int]:
            return next((span for span in match(anchor, data, start, end)[1:] if span[0] >= 0), (-1, -1))

        return grouped if groups else direct

    def plain(data: Any, start: int, end: int) -> tuple[int, int]:
        found = compiled.search(data, start, end)
        return (found.span(found.lastindex if groups else 0)) if found is not None else (-1, -1)

    return plain


def matches(data: bytes, search: Search) -> Iterator[tuple[int, int]]:
    """First and last offsets of the matches in bytes of UTF-8, from left to right, empty ones too.

    The next match is looked for where the last one ends: what a pattern takes in beside one match may be beside the next.
    """
    at = 0
    while at <= len(data):
        first, last = search(data, at, len(data))
        if first < 0:
            return
        yield first, last
        at = max(last, first + 1)
        while at < len(data) and data[at] & 0xC0 == 0x80:  # never start inside a character
            at += 1


@lru_cache(maxsize=64)
def prepare(pattern: str, *, regex: bool, case: str, word: bool) -> GrepPattern:
    """Make a pattern ready.

    Args:
        pattern: Text that stands for itself, or a regular expression in RE2's syntax.
        regex: Which of the two.
        case: `smart` (sensitive only if the pattern has a capital), `sensitive` or `ignore`.
        word: Match whole words only: a separator or the line's border before and after.

    Raises:
        QueryError: The pattern is empty, or RE2 refuses it; the message gives RE2's reason.
    """
    if not pattern:
        raise QueryError("The pattern is empty", "Give at least one character to look for")
    try:
        pattern.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise QueryError(f"{_shown(pattern)} holds half of a character", "Type the pattern again") from exc
    if len(pattern) > MOST_CHARACTERS:
        raise QueryError(
            f"{_shown(pattern)} has {len(pattern):,} characters, more than {MOST_CHARACTERS:,}",
            "Look for a shorter part of it",
        )
    if regex:
        _refuse_switches(pattern)
        _compile(pattern, pattern, False)
    if case not in ("smart", "sensitive", "ignore"):
        raise QueryError(f"{case!r} is no way to treat case", "It must be smart, sensitive or ignore")
    ignore = case == "ignore" or (case == "smart" and not has_capital(pattern, regex))
    composed = unicodedata.normalize("NFC", pattern)
    reading = read_regex(composed, ignore=ignore, whole_word=word) if regex else read_fixed(composed)
    if reading is None and _BYTE_ESCAPE in pattern.replace("\\\\", ""):
        raise QueryError(
            f"{_shown(pattern)} cannot be used: \\C matches single bytes, and text is searched by characters",
            "Write . for any character",
        )
    text = reading.text if reading is not None else pattern
    plain = _compile(pattern, f"(?:{text})", ignore)
    if plain.programsize > LARGEST_PROGRAM:
        raise QueryError(
            f"{_shown(pattern)} cannot be used: it unfolds to {plain.programsize:,} steps, more than {LARGEST_PROGRAM:,}",
            "Use smaller repetitions",
        )
    search = spans = matcher(plain)
    if reading is not None and reading.edged:
        spans = matcher(_compile(pattern, text, ignore, groups=True), groups=True)
    if word:
        bounded = f"(?:^|{RE2_SEPARATOR})(?:{text})(?:$|{RE2_SEPARATOR})"
        search = matcher(_compile(pattern, bounded, ignore))
        inner = f"(?:^|{RE2_SEPARATOR})({text})(?:$|{RE2_SEPARATOR})"
        spans = matcher(_compile(pattern, inner, ignore, groups=True), groups=True)
    held = reading.needs if reading is not None else ""
    if ignore:
        held = max(_ASCII.findall(held), key=len, default="").lower()
    needs = _held(held) if held and "\n" not in held else None
    exact = reading is not None and reading.exact and not word and held in (reading.needs, reading.needs.lower())
    odd = ignore and not {"k", "s"}.isdisjoint(held)
    literal = b"" if regex or word or any(len(ways) > 1 for ways in letters(pattern)) else pattern.encode("utf-8")
    note = ""
    if reading is not None and reading.ascii_borders:
        note = (
            f"{_shown(pattern)} has a \\b that knows letters of ASCII only, because what stands beside it may or may not be"
            " a word; write it next to a letter, a space or the end of the pattern"
        )
    return GrepPattern(pattern, ignore, needs, exact, odd, plain.programsize, literal, search, spans, note)


def _held(text: str) -> Search:
    return matcher(compile_re2("".join(map(quote, text)), False))


def _compile(source: str, text: str, ignore: bool, groups: bool = False) -> Any:
    try:
        return compile_re2(text, ignore, groups)
    except re2.error as exc:
        raise _objection(source, exc) from exc


def _objection(pattern: str, error: Exception) -> QueryError:
    """RE2's reason in a sentence, with the remedy that fits it."""
    reason = error.args[0] if error.args else "it cannot be read"
    if isinstance(reason, bytes):
        reason = reason.decode("utf-8", "replace")
    reason = reason.replace(_LINES, "", 1)
    remedy = "Fix the pattern, or look for it as fixed words (grep.regex=no)"
    if any(reason.endswith(sign) for sign in ("(?=", "(?!", "(?<", "(?<=", "(?<!")) and "operator" in reason:
        remedy = "RE2 has no look-around: search for the part that must match, and narrow the results another way"
    elif ("escape" in reason and reason[-1:].isdigit()) or "(?P=" in pattern:
        remedy = "RE2 has no backreferences: write out what is repeated"
    elif "too large" in reason or "too big" in reason or "repetition size" in reason:
        remedy = "Use a shorter pattern or smaller repetitions"
    elif reason.startswith("missing") or reason.startswith("unexpected"):
        remedy = "Close or remove the bracket, or look for the pattern as fixed words (grep.regex=no)"
    return QueryError(f"{_shown(pattern)} cannot be used: RE2 says {_shorten(reason)}", remedy)


def _refuse_switches(pattern: str) -> None:
    if pattern.startswith(("-v ", "--invert-match")):
        raise QueryError(
            f"{_shown(pattern)} asks for lines that do not match, which is not offered",
            "Look for what should be there, or turn grep.regex off to look for the text as it is",
        )


def _shown(pattern: str) -> str:
    return f"The pattern {_shorten(pattern.encode('utf-8', 'replace').decode())!r}"


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
