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

Third, *a pattern that reads text as people do*. A letter with marks matches however it is written, composed or not, alone or
in a class; `\\w` and `\\W` are the characters of words in every script (RE2 knows ASCII there), and so are `\\b` and `\\B`
their borders, as far as RE2 can tell: it has no look-around, so a border is read off what stands beside it in the pattern,
and at the pattern's edge takes in the character beside the match, which is then left out of the match. A border whose
neighbours say nothing of its sides (`\\b(x|-)?`) stays RE2's own, of ASCII words.

What is not understood gives None: the pattern is then used as it is, and the text is scanned."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from workbench.store.lexical.characters import (
    RE2_MARKS,
    RE2_SEPARATOR,
    RE2_SEPARATORS,
    RE2_WORDS,
    is_word_character,
    letters,
    ways,
)

_REPEAT = re.compile(r"(?:([*+?])|\{(\d{1,4})(,?)(\d{0,4})\})(\??)")
_GROUP = re.compile(r"\?(?:P?<\w+>|([imsU]*)(?:-([imsU]+))?([:)]))")
_CLASS_NAME = re.compile(r"\[:\^?([a-z]+):\]")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?\w+)\}|(\w))")
_ESCAPED = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|([0-7]{1,3})|([^A-Za-z0-9])|([aftnrv]))")
_DEEPEST = 200
_WIDEST = 1000
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
        text: The pattern with line anchors; to be compiled with the flag m. Its only capturing groups hold the match where
            the pattern takes in a character beside it, `edged`.
        ascii_borders: Whether it has a `\\b` or `\\B` that knows ASCII words only, because nothing beside it tells more.
        needs: What a matching line must contain; None: nothing is known.
        in_word: Every match lies inside one word and `needs` says exactly which words match.
    """

    text: str
    needs: Needs | None
    in_word: bool
    edged: bool = False
    ascii_borders: bool = False


@dataclass(slots=True)
class _Part:
    text: str
    kind: str
    length: int
    literal: str = ""
    anchored: bool = False
    needs: Needs | None = None
    border: str = ""
    dots: str = ""
    ascii: bool = False


@dataclass(slots=True)
class _Group:
    ignore: bool
    swap: bool
    open: str = ""
    crosses: bool = False
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
    parts = [part for letter in letters(text) for part in _letter(letter)]
    return _reading([_Group(False, False, branches=[parts])], whole_word)


def read_regex(pattern: str, ignore: bool, whole_word: bool, lines: bool = True) -> Reading | None:
    """Read a pattern that RE2 accepts; `ignore` is whether it will be compiled to ignore case. None: not understood.

    With `lines` no match is to cross a newline; without, the flag s, `\\A` and `\\z` keep their meaning in the whole text.
    """
    try:
        return _reading(_parse(pattern, ignore, lines=lines), whole_word)
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
    group = stack[0]
    for number, branch in enumerate(group.branches):
        group.branches[number] = _bordered(branch, (OTHER if whole_word else "",) * 2)
    edged = any(part.border == "edge" for branch in group.branches for part in branch)
    bare = [[part for part in branch if part.border != "edge"] for branch in group.branches]
    part = _close(replace(group, branches=bare))
    if whole_word or edged:
        edge = _Part("", OTHER, 0)
        ends = [[edge, *branch, edge] for branch in bare] if whole_word else group.branches
        part.needs = _any([_join(branch).needs for branch in ends])
    if edged:
        part.text = "|".join(map(_captured, group.branches))
    exact = part.kind == WORD and part.length > 0 and not part.anchored
    return Reading(part.text, part.needs, exact and part.needs is not None, edged, part.ascii)


def _captured(branch: list[_Part]) -> str:
    """A branch with the match in a group, and what is taken in beside it around that."""
    first = branch[0].text if branch and branch[0].border == "edge" else ""
    last = branch[-1].text if len(branch) > 1 and branch[-1].border == "edge" else ""
    body = "".join(part.text for part in branch if part.border != "edge")
    return f"{first}({body}){last}"


_NEVER = "[^\\x{0}-\\x{10ffff}]"
_SIDES = {WORD: f"[{RE2_WORDS}]", OTHER: RE2_SEPARATOR}
_EDGES = {(WORD, True): _SIDES[WORD], (WORD, False): _SIDES[WORD],
          (OTHER, True): f"(?:^|{RE2_SEPARATOR})", (OTHER, False): f"(?:$|{RE2_SEPARATOR})"}  # fmt: skip


def _bordered(parts: list[_Part], outside: tuple[str, str] | None) -> list[_Part]:
    """Replace `\\b` and `\\B` by what they say of the parts beside them, where these say on which side words are.

    Args:
        parts: A branch.
        outside: What is known to stand before and after the branch: WORD, OTHER, or "" at the edge of the pattern, where a
            character may be taken in; None inside a group, where nothing is known.
    """
    parts = [part for at, part in enumerate(parts) if not (at and part.border and part.border == parts[at - 1].border)]
    made = list(parts)
    for at, part in enumerate(parts):
        if not part.border:
            continue
        if at and parts[at - 1].border:
            made[at] = _Part(_NEVER, OTHER, 1)
            continue
        sides = (
            _side(parts[:at][::-1], "^", outside and outside[0]),
            _side(parts[at + 1 :], "$", outside and outside[1]),
        )
        known = 0 if sides[0] in (WORD, OTHER) else 1
        if sides[known] not in (WORD, OTHER):
            continue
        wanted = WORD if (sides[known] == WORD) == (part.border == "B") else OTHER
        other, neighbour = sides[1 - known], at + (1 if known == 0 else -1)
        if other in (WORD, OTHER):
            made[at] = _Part("", OTHER, 0, border="met") if other == wanted else _Part(_NEVER, OTHER, 1)
        elif other == "":
            made[at] = _Part(_EDGES[wanted, known == 1], wanted, int(wanted == WORD), border="edge")
        elif other == "dots" and made[neighbour].dots:
            after = known == 0
            rest = parts[neighbour + 1 :] if after else parts[:neighbour][::-1]
            beyond = _side(rest, "$" if after else "^", outside and outside[1 if after else 0])
            held = _held(made[neighbour].dots, _SIDES[wanted], beyond, wanted, after)
            if held is not None:
                made[at] = _Part("", OTHER, 0, border="met")
                made[neighbour] = replace(made[neighbour], text=held, dots="")
    return made


def _held(dots: str, side: str, beyond: str | None, wanted: str, first: bool) -> str | None:
    """`.*` and the like whose first (or last) character is on one side; None where that cannot be written."""
    lazy = dots[1:]
    some = f"{side}.*{lazy}" if first else f".*{lazy}{side}"
    if dots[0] == "+" or beyond in (WORD, OTHER):
        return some if dots[0] == "+" or beyond != wanted else f"(?:{some})?{lazy}"
    if beyond == "" and wanted == OTHER:
        return f"(?:{some}|{'$' if first else '^'})"
    return None


def _side(parts: Sequence[_Part], last: str, outside: str | None) -> str | None:
    """What stands next: WORD or OTHER where that is sure, "" the pattern's edge, "dots" any characters, None not known.

    `last` is the line's border that may stand there.
    """
    for at, part in enumerate(parts):
        if part.border or part.text in _ZERO_WIDTH:
            if part.text == last:
                return OTHER
            continue
        if part.dots:
            return "dots"
        if part.length and part.kind in (WORD, OTHER):
            return part.kind
        if part.kind == WORD and _side(parts[at + 1 :], last, outside) == WORD:
            return WORD
        return None
    return outside


def _literal(character: str) -> list[_Part]:
    """A character that stands for itself, however it is written."""
    return [part for letter in letters(character) for part in _letter(letter)]


def _letter(forms: tuple[str, ...]) -> list[_Part]:
    """A letter with its marks: its characters where there is one way to write it, else one part for all ways."""
    if len(forms) == 1:
        kinds = [WORD if is_word_character(character) else OTHER for character in forms[0]]
        return [_Part(quote(c), kind, 1, literal=c) for c, kind in zip(forms[0], kinds, strict=True)]
    inside = {is_word_character(character) for form in forms for character in form}
    kind = MIXED if len(inside) > 1 else WORD if inside.pop() else OTHER
    return [_Part(f"(?:{'|'.join(''.join(map(quote, form)) for form in forms)})", kind, 1)]


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
        ascii=any(part.ascii for part in joined),
    )


def _join(parts: list[_Part]) -> _Part:
    """One part out of parts in a row, with what its runs of word characters need."""
    needs: list[Needs] = []
    run: list[_Part] = []
    before = False
    for part in parts:
        if part.border == "met" and not part.text:
            continue
        if part.kind == WORD:
            run.append(part)
            continue
        _need(run, before, part.kind == OTHER, needs)
        run, before = [], part.kind == OTHER
        if part.needs is not None:
            needs.append(part.needs)
    _need(run, before, False, needs)
    seen = [part for part in parts if not part.border]
    kinds = {part.kind for part in seen if part.kind != WORD or part.length or part.text not in _ZERO_WIDTH}
    kind = WORD if not kinds else kinds.pop() if len(kinds) == 1 else MIXED
    plain = all(part.literal for part in parts)
    return _Part(
        "".join(part.text for part in parts),
        kind,
        sum(part.length for part in parts),
        "".join(part.literal for part in parts) if plain else "",
        any(part.anchored for part in parts),
        None if not needs else needs[0] if len(needs) == 1 else All(tuple(needs)),
        ascii=any(part.ascii or part.border in ("b", "B") for part in parts),
    )


_ZERO_WIDTH = frozenset({"^", "$", "\\A", "\\z", "\\b", "\\B"})


def _need(run: list[_Part], start: bool, end: bool, needs: list[Needs]) -> None:
    """Add what a run of word-only parts between two others needs, if it cannot match nothing."""
    length = sum(part.length for part in run)
    if length and len(run) == 1 and run[0].needs is not None and not (start or end):
        needs.append(run[0].needs)
    elif length:
        literal = "".join(part.literal for part in run) if all(part.literal for part in run) else ""
        needs.append(Fragment("".join(part.text for part in run), literal, start, end, length))


def _parse(
    pattern: str, ignore: bool, seen: Callable[[str], None] = lambda _: None, lines: bool = True
) -> list[_Group]:
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
            inner = stack.pop()
            inner.branches = [_bordered(branch, None) for branch in inner.branches]
            part = _close(inner)
            part.text = f"{group.open}{part.text})"
            stack[-1].branches[-1].append(part)
            at += 1
        elif character == "|":
            group.branches.append([])
            at += 1
        elif character == "[":
            part, at = _class(pattern, at, seen)
            branch.append(_flagged(_marked(part, pattern, at), group, ignore))
        elif repeat := _REPEAT.match(pattern, at):
            _repeat(repeat, group)
            at = repeat.end()
        elif pattern.startswith("\\Q", at):
            stop = pattern.find("\\E", at)
            quoted = pattern[at + 2 : len(pattern) if stop < 0 else stop]
            for literal in quoted:
                seen(literal)
            branch += [_flagged(part, group, ignore) for part in _literal(quoted)]
            at = len(pattern) if stop < 0 else stop + 2
        elif character == "\\":
            parts, at = _escape(pattern, at, seen, lines)
            branch += [_flagged(part, group, ignore) for part in parts]
        else:
            if character in "^$":
                branch.append(_Part(character, WORD, 0, anchored=True))
            elif character == ".":
                dot = "(?s:.)" if group.crosses and not lines else "."
                branch.append(_marked(_Part(dot, MIXED, 1), pattern, at + 1))
            else:
                end = at + 1
                while end < len(pattern) and unicodedata.combining(pattern[end]):
                    end += 1
                for literal in pattern[at:end]:
                    seen(literal)
                branch += [_flagged(part, group, ignore) for part in _literal(pattern[at:end])]
                at = end - 1
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
        stack.append(_Group(group.ignore, group.swap, "(?:", group.crosses))
        return at + 1
    found = _GROUP.match(pattern, at + 1)
    if found is None:
        raise _NotUnderstoodError
    on, off, last = found[1] or "", found[2] or "", found[3]
    ignore = ("i" in on or group.ignore) and "i" not in off
    swap = ("U" in on or group.swap) and "U" not in off
    crosses = ("s" in on or group.crosses) and "s" not in off
    if last == ")":
        group.ignore, group.swap, group.crosses = ignore, swap, crosses
    else:
        stack.append(_Group(ignore, swap, "(?:", crosses))
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
    if part.text == "." and count in ("*", "+"):
        part.dots = count + ("?" if bool(lazy) != group.swap else "")
    part.ascii, part.border = part.ascii or part.border != "", ""
    part.text += count + ("?" if bool(lazy) != group.swap else "")
    part.length *= least
    part.literal = ""
    if part.kind == WORD:
        part.needs = None
    elif not least:
        part.kind, part.needs = MIXED, None


def _escape(pattern: str, at: int, seen: Callable[[str], None], lines: bool) -> tuple[list[_Part], int]:
    follows = pattern[at + 1 : at + 2]
    if follows in ("A", "z"):
        border = ("^" if follows == "A" else "$") if lines else f"\\{follows}"
        return [_Part(border, WORD, 0, anchored=True)], at + 2
    if follows in ("b", "B"):
        return [_Part(f"\\{follows}", WORD, 0, border=follows)], at + 2
    kind, literal, end = _item(pattern, at)
    if literal is not None:
        seen(literal)
        return _literal(literal), end
    text = f"[{_INSIDE[follows]}]" if follows in _INSIDE else pattern[at:end]
    return [_marked(_Part(text, kind, 1), pattern, end) if follows not in ("d", "s") else _Part(text, kind, 1)], end


_INSIDE = {"w": RE2_WORDS, "W": RE2_SEPARATORS}


def _marked(part: _Part, pattern: str, at: int) -> _Part:
    """A part for one character, with the marks that make one letter with it; what is repeated counts characters."""
    if part.kind == OTHER or pattern.startswith(("*", "+", "{"), at):
        return part
    return replace(part, text=f"(?:{part.text}{RE2_MARKS}*)")


def _item(pattern: str, at: int) -> tuple[str, str | None, int]:
    """An escape inside or outside a class: its kind, the character if it stands for one, and where it ends."""
    follows = pattern[at + 1 : at + 2]
    if follows and follows in "dwsDWS":
        return {"d": WORD, "w": WORD, "s": OTHER, "W": OTHER}.get(follows, MIXED), None, at + 2
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
    text: list[str] = [pattern[start:at]]
    apart: dict[str, None] = {}
    first = True
    while first or not pattern.startswith("]", at):
        first = False
        if at >= len(pattern):
            raise _NotUnderstoodError
        if found := _CLASS_NAME.match(pattern, at):
            positive = not found[0].startswith("[:^")
            kinds.add(WORD if positive and found[1] in _WORD_CLASSES else MIXED)
            text.append(found[0])
            at = found.end()
            continue
        begin = at
        kind, low, at = _class_character(pattern, at)
        if low is None:
            kinds.add(kind)
            text.append(_INSIDE.get(pattern[begin + 1], pattern[begin:at]))
            continue
        seen(low)
        last = low
        if pattern.startswith("-", at) and pattern[at + 1 : at + 2] not in ("]", ""):
            _, high, at = _class_character(pattern, at + 1)
            if high is None:
                raise _NotUnderstoodError
            seen(high)
            kind, last = _range_kind(low, high), high
        kinds.add(kind)
        text.append(pattern[begin:at])
        if ord(last) - ord(low) <= _WIDEST:
            apart.update({way: None for c in range(ord(low), ord(last) + 1) for way in ways(chr(c)) if len(way) > 1})
    kind = kinds.pop() if len(kinds) == 1 and not negated else MIXED
    whole = "".join(text) + "]"
    if apart and not negated:
        whole = f"(?:{'|'.join(''.join(map(quote, way)) for way in apart)}|{whole})"
    return _Part(whole, kind, 1), at + 1


def _class_character(pattern: str, at: int) -> tuple[str, str | None, int]:
    if pattern[at] == "\\":
        return _item(pattern, at)
    return (WORD if is_word_character(pattern[at]) else OTHER), pattern[at], at + 1


def _range_kind(low: str, high: str) -> str:
    if high >= "\x80":
        return MIXED
    kinds = {is_word_character(chr(c)) for c in range(ord(low), ord(high) + 1)}
    return MIXED if len(kinds) != 1 else WORD if kinds.pop() else OTHER
