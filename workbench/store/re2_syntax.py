"""Reads a pattern in RE2's syntax: what its words must be, and the same pattern with each line standing alone.

RE2 judges a pattern; this module only reads patterns that RE2 took, for two things that RE2's package does not tell.

First, *what a matching line must contain*. A part of a pattern that can only match characters of words (`retry_\\w+`)
matches inside a single word of the text, so instead of the text the far smaller dictionary of the text's words can be
searched with that part, and the word's lines are all there is to look at. A part that follows something that is surely
no word character (`max-\\d+`) starts at a word's start, and so on. `needs` is that: `All` and `Any` over `Fragment`s.
(The idea of planning an index lookup from a regular expression: Cox, "Regular Expression Matching with a Trigram
Index", 2012; here with words for trigrams.)

Second, *a pattern whose anchors mean lines*: `^`, `\\A`, `$` and `\\z` become line borders, whatever the flags, so that
searching a whole file gives what searching each line alone would.

What is not understood gives None: the pattern is then used as it is, and the text is scanned."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from workbench.store.word_characters import is_word_character

_REPEAT = re.compile(r"(?:([*+?])|\{(\d{1,4})(,?)(\d{0,4})\})(\??)")
_GROUP = re.compile(r"\?(?:P?<\w+>|([imsU]*)(?:-([imsU]+))?([:)]))")
_CLASS_NAME = re.compile(r"\[:\^?([a-z]+):\]")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?\w+)\}|(\w))")
_ESCAPED = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|([0-7]{1,3})|([^A-Za-z0-9])|([aftnrv]))")
_DEEPEST = 200
_SEPARATE = 4
_CONTROL = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_WORD_CLASSES = frozenset({"alnum", "alpha", "digit", "lower", "upper", "word", "xdigit"})
_WORD_PROPERTIES = frozenset("LMN")

WORD, OTHER, MIXED = "word", "other", "mixed"
"""What a part of a pattern can match: word characters only (or nothing), separators only (at least one), or anything."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a word of a matching line must match.

    Attributes:
        text: The part of the pattern, in RE2's syntax.
        literal: The characters, where they are all there is and case is treated as in the whole pattern; else "".
        start, end: Whether the match surely begins at the word's start, and ends at its end.
        length: The fewest characters it can match, at least 1.
    """

    text: str
    literal: str
    start: bool
    end: bool
    length: int


@dataclass(frozen=True, slots=True)
class All:
    """Every one of these must be in the line."""

    parts: tuple[Needs, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """At least one of these must be in the line."""

    parts: tuple[Needs, ...]


Needs = Fragment | All | Any


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a pattern.

    Attributes:
        text: The pattern with line anchors; to be compiled with the flag m.
        needs: What a matching line must contain; None: nothing is known.
        in_word: Every match lies inside one word and `needs` says exactly which words match.
    """

    text: str
    needs: Needs | None
    in_word: bool


@dataclass(slots=True)
class _Part:
    text: str
    kind: str
    length: int
    literal: str = ""
    anchored: bool = False
    needs: Needs | None = None


@dataclass(slots=True)
class _Group:
    ignore: bool
    swap: bool
    open: str = ""
    branches: list[list[_Part]] = field(default_factory=lambda: [[]])


class _NotUnderstoodError(Exception):
    pass


def quote(character: str) -> str:
    """One literal character in RE2's syntax."""
    if character.isalnum() or character == "_" or character >= "\x80":
        return character
    return f"\\{character}" if character.isprintable() and character != " " else f"\\x{{{ord(character):x}}}"


def read_fixed(text: str, whole_word: bool) -> Reading:
    """Read text that stands for itself."""
    parts = [_literal(character) for character in text]
    return _reading([_Group(False, False, branches=[parts])], whole_word)


def read_regex(pattern: str, ignore: bool, whole_word: bool) -> Reading | None:
    """Read a pattern that RE2 accepts; `ignore` is whether it will be compiled to ignore case. None: not understood."""
    try:
        return _reading(_parse(pattern, ignore), whole_word)
    except _NotUnderstoodError:
        return None


def has_capital(pattern: str, regex: bool) -> bool:
    """Whether a pattern names an upper-case letter; `\\S`, `\\pL` and group names name none."""
    if not regex:
        return any(character.isupper() for character in pattern)
    seen: list[str] = []
    try:
        _parse(pattern, False, seen.append)
    except _NotUnderstoodError:
        seen = list(re.sub(r"\\[pP]\{\^?\w+\}|\\.", "", pattern))
    return any(character.isupper() for character in seen)


def _reading(stack: list[_Group], whole_word: bool) -> Reading:
    part = _close(stack[0])
    if whole_word:
        edge = _Part("", OTHER, 0)
        branches = [_join([edge, *branch, edge]) for branch in stack[0].branches]
        part.needs = _any([branch.needs for branch in branches])
    exact = part.kind == WORD and part.length > 0 and not part.anchored
    return Reading(part.text, part.needs, exact and part.needs is not None)


def _literal(character: str) -> _Part:
    kind = WORD if is_word_character(character) else OTHER
    return _Part(quote(character), kind, 1, literal=character)


def _any(needs: list[Needs | None]) -> Needs | None:
    """One of several needs; many fragments become a single one, to be looked for in one go."""
    known = [n for n in needs if n is not None]
    if len(known) < len(needs) or not known:
        return None
    fragments = [n for n in known if isinstance(n, Fragment)]
    if len(fragments) == len(known) > _SEPARATE:
        text = "|".join(f"{'^' if f.start else ''}(?:{f.text}){'$' if f.end else ''}" for f in fragments)
        return Fragment(text, "", False, False, min(f.length for f in fragments))
    return known[0] if len(known) == 1 else Any(tuple(known))


def _close(group: _Group) -> _Part:
    """One part out of a group's branches."""
    joined = [_join(branch) for branch in group.branches]
    kinds = {part.kind for part in joined}
    only = joined[0]
    return _Part(
        "|".join(part.text for part in joined),
        only.kind if len(kinds) == 1 else MIXED,
        min(part.length for part in joined),
        only.literal if len(joined) == 1 else "",
        any(part.anchored for part in joined),
        _any([part.needs for part in joined]),
    )


def _join(parts: list[_Part]) -> _Part:
    """One part out of parts in a row, with what its runs of word characters need."""
    needs: list[Needs] = []
    run: list[_Part] = []
    before = False
    for part in parts:
        if part.kind == WORD:
            run.append(part)
            continue
        _need(run, before, part.kind == OTHER, needs)
        run, before = [], part.kind == OTHER
        if part.needs is not None:
            needs.append(part.needs)
    _need(run, before, False, needs)
    kinds = {part.kind for part in parts if part.kind != WORD or part.length or part.text not in _ZERO_WIDTH}
    kind = WORD if not kinds else kinds.pop() if len(kinds) == 1 else MIXED
    plain = all(part.literal for part in parts)
    return _Part(
        "".join(part.text for part in parts),
        kind,
        sum(part.length for part in parts),
        "".join(part.literal for part in parts) if plain else "",
        any(part.anchored for part in parts),
        None if not needs else needs[0] if len(needs) == 1 else All(tuple(needs)),
    )


_ZERO_WIDTH = frozenset({"^", "$", "\\b", "\\B"})


def _need(run: list[_Part], start: bool, end: bool, needs: list[Needs]) -> None:
    """Add what a run of word-only parts between two others needs, if it cannot match nothing."""
    length = sum(part.length for part in run)
    if length and len(run) == 1 and run[0].needs is not None and not (start or end):
        needs.append(run[0].needs)
    elif length:
        literal = "".join(part.literal for part in run) if all(part.literal for part in run) else ""
        needs.append(Fragment("".join(part.text for part in run), literal, start, end, length))


def _parse(pattern: str, ignore: bool, seen: Callable[[str], None] = lambda _: None) -> list[_Group]:
    stack = [_Group(ignore, False)]
    at = 0
    while at < len(pattern):
        group = stack[-1]
        branch = group.branches[-1]
        character = pattern[at]
        if character == "(":
            at = _open(pattern, at, stack)
        elif character == ")":
            if len(stack) == 1:
                raise _NotUnderstoodError
            part = _close(stack.pop())
            part.text = f"{group.open}{part.text})"
            stack[-1].branches[-1].append(part)
            at += 1
        elif character == "|":
            group.branches.append([])
            at += 1
        elif character == "[":
            part, at = _class(pattern, at, seen)
            branch.append(_flagged(part, group, ignore))
        elif repeat := _REPEAT.match(pattern, at):
            _repeat(repeat, group)
            at = repeat.end()
        elif pattern.startswith("\\Q", at):
            stop = pattern.find("\\E", at)
            quoted = pattern[at + 2 : len(pattern) if stop < 0 else stop]
            for literal in quoted:
                seen(literal)
                branch.append(_flagged(_literal(literal), group, ignore))
            at = len(pattern) if stop < 0 else stop + 2
        elif character == "\\":
            part, at = _escape(pattern, at, seen)
            branch.append(_flagged(part, group, ignore))
        else:
            if character in "^$":
                branch.append(_Part(character, WORD, 0, anchored=True))
            elif character == ".":
                branch.append(_Part(".", MIXED, 1))
            else:
                seen(character)
                branch.append(_flagged(_literal(character), group, ignore))
            at += 1
    if len(stack) != 1:
        raise _NotUnderstoodError
    return stack


def _open(pattern: str, at: int, stack: list[_Group]) -> int:
    """Open a group, or set flags for the rest of the group that stands open."""
    group = stack[-1]
    if len(stack) > _DEEPEST:
        raise _NotUnderstoodError
    if not pattern.startswith("?", at + 1):
        stack.append(_Group(group.ignore, group.swap, "(?:"))
        return at + 1
    found = _GROUP.match(pattern, at + 1)
    if found is None:
        raise _NotUnderstoodError
    on, off, last = found[1] or "", found[2] or "", found[3]
    ignore = ("i" in on or group.ignore) and "i" not in off
    swap = ("U" in on or group.swap) and "U" not in off
    if last == ")":
        group.ignore, group.swap = ignore, swap
    else:
        stack.append(_Group(ignore, swap, "(?:"))
    return found.end()


def _flagged(part: _Part, group: _Group, ignore: bool) -> _Part:
    """The part under the group's own case flag, where it differs from the whole pattern's."""
    if group.ignore != ignore and part.text not in _ZERO_WIDTH:
        part.text = f"(?{'i' if group.ignore else '-i'}:{part.text})"
        part.literal = ""
    return part


def _repeat(found: re.Match[str], group: _Group) -> None:
    branch = group.branches[-1]
    if not branch:
        raise _NotUnderstoodError
    sign, low, comma, high, lazy = found.groups()
    least = (1 if sign == "+" else 0) if sign else int(low)
    count = sign or f"{{{low}{comma}{high}}}"
    part = branch[-1]
    part.text += count + ("?" if bool(lazy) != group.swap else "")
    part.length *= least
    part.literal = ""
    if part.kind == WORD:
        part.needs = None
    elif not least:
        part.kind, part.needs = MIXED, None


def _escape(pattern: str, at: int, seen: Callable[[str], None]) -> tuple[_Part, int]:
    follows = pattern[at + 1 : at + 2]
    if follows in ("A", "z"):
        return _Part("^" if follows == "A" else "$", WORD, 0, anchored=True), at + 2
    if follows in ("b", "B"):
        return _Part(f"\\{follows}", WORD, 0), at + 2
    kind, literal, end = _item(pattern, at)
    if literal is not None:
        seen(literal)
        return _literal(literal), end
    return _Part(pattern[at:end], kind, 1), end


def _item(pattern: str, at: int) -> tuple[str, str | None, int]:
    """An escape inside or outside a class: its kind, the character if it stands for one, and where it ends."""
    follows = pattern[at + 1 : at + 2]
    if follows and follows in "dwsDWS":
        return {"d": WORD, "w": WORD, "s": OTHER}.get(follows, MIXED), None, at + 2
    if found := _PROPERTY.match(pattern, at):
        name = found[2] or found[3]
        word = found[1] == "p" and len(name) <= 2 and name[0] in _WORD_PROPERTIES
        return WORD if word else MIXED, None, found.end()
    found = _ESCAPED.match(pattern, at)
    if found is None:
        raise _NotUnderstoodError
    wide, narrow, octal, punctuation, control = found.groups()
    if wide or narrow:
        literal = chr(int(wide or narrow, 16))
    elif octal:
        literal = chr(int(octal, 8))
    else:
        literal = punctuation or _CONTROL[control]
    return WORD if is_word_character(literal) else OTHER, literal, found.end()


def _class(pattern: str, at: int, seen: Callable[[str], None]) -> tuple[_Part, int]:
    """A bracketed class, its text taken over as it is."""
    start = at
    at += 1
    negated = pattern.startswith("^", at)
    at += negated
    kinds: set[str] = set()
    first = True
    while first or not pattern.startswith("]", at):
        first = False
        if at >= len(pattern):
            raise _NotUnderstoodError
        if found := _CLASS_NAME.match(pattern, at):
            positive = not found[0].startswith("[:^")
            kinds.add(WORD if positive and found[1] in _WORD_CLASSES else MIXED)
            at = found.end()
            continue
        kind, low, at = _class_character(pattern, at)
        if low is None:
            kinds.add(kind)
            continue
        seen(low)
        if pattern.startswith("-", at) and pattern[at + 1 : at + 2] not in ("]", ""):
            _, high, at = _class_character(pattern, at + 1)
            if high is None:
                raise _NotUnderstoodError
            seen(high)
            kind = _range_kind(low, high)
        kinds.add(kind)
    kind = kinds.pop() if len(kinds) == 1 and not negated else MIXED
    return _Part(pattern[start : at + 1], kind, 1), at + 1


def _class_character(pattern: str, at: int) -> tuple[str, str | None, int]:
    if pattern[at] == "\\":
        return _item(pattern, at)
    return (WORD if is_word_character(pattern[at]) else OTHER), pattern[at], at + 1


def _range_kind(low: str, high: str) -> str:
    if high >= "\x80":
        return MIXED
    kinds = {is_word_character(chr(c)) for c in range(ord(low), ord(high) + 1)}
    return MIXED if len(kinds) != 1 else WORD if kinds.pop() else OTHER
