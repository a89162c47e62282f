r"""Makes a pattern ready to search with: case, whole words, compiling with RE2, and RE2's objections in plain words.

RE2 (google-re2) takes time linear in the text whatever the pattern, which is why it alone decides what matches. Every
pattern is compiled so that no match crosses a newline (`never_nl`) and that `^` and `$` are the borders of lines.

A pattern that RE2 took is then rewritten so that RE2 reads text as people do, and searched for text that every match must hold,
through the parse tree of Python's own `re`. What only RE2 knows (`\pL`, `[[:alpha:]]`, `\Q...\E`) gives None: the pattern is
then used as it is.

* A letter with marks matches however it is written, composed or not, alone or in a class.
* `\w` and `\W` are the characters of words in every script (RE2 knows ASCII there), and so are `\b` and `\B` their borders, as
  far as RE2 can tell: it has no look-around, so a border is read off what is beside it in the pattern, and at the pattern's edge
  takes in the character beside the match, which is then left out of the match. A border whose neighbours say nothing of its
  sides (`\b(x|-)?`) stays RE2's own, of ASCII words.
* `^`, `\A` and `$` are borders of lines, so that searching a whole file gives what searching each line alone would.
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]  # typeshed does not know the parser
import re._parser as parser  # type: ignore[import-not-found]
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import re2

from workbench.errors import QueryError
from workbench.store.lexical.tokens import (
    RE2_MARKS,
    RE2_SEPARATOR,
    RE2_SEPARATORS,
    RE2_WORDS,
    is_word_character,
    letters,
    ways,
)

WORD, OTHER, MIXED = "word", "other", "mixed"
"""What a part of a pattern can match: word characters only (or nothing), separators only (at least one), or anything."""

_ONLY_RE2 = re.compile(r"\\[pPC]|\[[^\]]*(?:\[|--|&&|\|\||~~)|\{,|\(\?[a-z-]*U")
"""What Python refuses, or reads as something else."""

_SPELT = re.compile(r"\\x\{([0-9A-Fa-f]{1,8})\}|\\Q(.*?)(?:\\E|$)|\[:(\w+):\]|(\\z)|\\.", re.DOTALL)
_NAMELESS = re.compile(
    r"\\Q(.*?)(?:\\E|$)|\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2}))|\\[pP](?:\{\^?\w+\}|\w)|\\.|\(\?P?<\w+>|\[:\w+:\]",
    re.DOTALL,
)
_NAMED = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f", "space": "\\s",
}  # fmt: skip

_WIDEST = 1000
_EDGES = ("^", "$", "\\A", "\\z")
_NEVER = "[^\\x{0}-\\x{10ffff}]"
_SIDES = {WORD: f"[{RE2_WORDS}]", OTHER: RE2_SEPARATOR}
_CATEGORIES = {
    op.CATEGORY_DIGIT: ("\\d", WORD), op.CATEGORY_NOT_DIGIT: ("\\D", MIXED), op.CATEGORY_SPACE: ("\\s", OTHER),
    op.CATEGORY_NOT_SPACE: ("\\S", MIXED), op.CATEGORY_WORD: (RE2_WORDS, WORD), op.CATEGORY_NOT_WORD: (RE2_SEPARATORS, OTHER),
}  # fmt: skip

_ANCHORS = {
    op.AT_BEGINNING: "^^", op.AT_END: "$$", op.AT_BEGINNING_STRING: ("^", "\\A"), op.AT_END_STRING: ("$", "\\z"),
}  # fmt: skip
"""What they are line by line, and in a whole text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A pattern rewritten, to be compiled with the flag m.

    Attributes:
        text: Its only capturing groups hold the match where the pattern takes in a character beside it, `edged`.
        needs: Text that every match holds in the case of the pattern; "" where nothing is known.
        exact: Whether that text is all there is to a match.
        ascii_borders: Whether it has a `\\b` or `\\B` that knows ASCII words only, because nothing beside it tells more.
    """

    text: str
    needs: str = ""
    exact: bool = False
    edged: bool = False
    ascii_borders: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a branch: RE2's text for it, what it matches, the fewest characters; `fixed` where it is fixed text, `needs`
    otherwise; `border` is b, B, edge (a character taken in) or met; `dots` the repetition of a dot."""

    text: str
    kind: str
    length: int
    fixed: str = ""
    needs: str = ""
    border: str = ""
    dots: str = ""
    ascii: bool = False


def read_regex(pattern: str, *, ignore: bool = False, whole_word: bool = False, lines: bool = True) -> Reading | None:
    r"""A pattern that RE2 accepts, in NFC, or None where it is not understood. `ignore` is whether it will be compiled to ignore
    case, `whole_word` whether a separator or a line's border is known to be before and after it. Without `lines` matches may
    cross a newline: the flag s and `\A` keep their meaning in the whole text.
    """
    tree = _parsed(pattern)
    if tree is None:
        return None
    try:
        own = bool(tree.state.flags & re.IGNORECASE)
        walker = _Walker(ignore, lines)
        items = list(tree)
        alone = len(items) == 1 and items[0][0] is op.BRANCH
        flags = (ignore or own, bool(tree.state.flags & re.DOTALL))
        return _reading([walker.parts(b, *flags) for b in (items[0][1][1] if alone else [items])], whole_word)
    except (_NotUnderstoodError, RecursionError):
        return None


def has_capital(pattern: str, regex: bool) -> bool:
    r"""Whether a pattern names an upper-case letter; `\S`, `\pL`, `[:upper:]` and group names name none."""
    named = _NAMELESS.sub(_named, pattern) if regex else pattern
    return any(character.isupper() for character in named)


def _named(found: re.Match[str]) -> str:
    """The letters that a piece of a pattern names: those of a quotation, or one by its number."""
    letters, *number = found.groups()
    return letters if letters is not None else "".join(chr(int(digits, 16)) for digits in number if digits)


class _NotUnderstoodError(Exception):
    pass


def _as_python(found: re.Match[str]) -> str:
    """What Python spells otherwise: `\\x{41}`, `\\Q...\\E`, `[:alpha:]`, `\\z`."""
    code, quoted, name, end = found.groups()
    if end:
        return "\\Z"
    if code is not None:
        return f"\\U{int(code, 16):08x}"
    return re.escape(quoted) if quoted is not None else _NAMED.get(name, found[0])


def _parsed(pattern: str) -> Any:
    pattern = _SPELT.sub(
        _as_python, re.sub(r"^\(\?-?m\)", "", pattern)
    )  # lines are searched one by one whatever m says
    if _ONLY_RE2.search(pattern):
        return None
    try:
        return parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


# --- from the tree to parts ---------------------------------------------------------------------------------------------


class _Walker:
    """Writes parts of the tree as RE2 reads them; `ignore` is whether the whole pattern ignores case."""

    def __init__(self, ignore: bool, lines: bool) -> None:
        self.ignore, self.lines = ignore, lines

    def parts(self, items: Any, ignore: bool, crosses: bool, repeated: bool = False) -> list[_Part]:
        """A branch, part by part; `repeated` is whether it is one character whose repetition counts characters."""
        made: list[_Part] = []
        run = ""
        for kind, value in [*items, (None, None)]:
            if kind is op.LITERAL:
                run += chr(value)
                continue
            made += [self._cased(part, ignore) for part in _letters(run)]
            run = ""
            if kind is not None:
                made.append(self._part(kind, value, ignore, crosses, repeated))
        return made

    def _part(self, kind: Any, value: Any, ignore: bool, crosses: bool, repeated: bool) -> _Part:
        if kind is op.ANY:
            dot = "(?s:.)" if crosses and not self.lines else "."
            return _Part(dot if repeated else f"(?:{dot}{RE2_MARKS}*)", MIXED, 1)
        if kind in (op.IN, op.NOT_LITERAL):
            part = _class([(op.NEGATE, None), (op.LITERAL, value)] if kind is op.NOT_LITERAL else value)
            plain = repeated or part.kind == OTHER or part.text in ("[\\d]", "[\\s]")
            return self._cased(part if plain else replace(part, text=f"(?:{part.text}{RE2_MARKS}*)"), ignore)
        if kind is op.AT:
            return self._border(value)
        if kind is op.BRANCH:
            return self._group([self.parts(branch, ignore, crosses) for branch in value[1]])
        if kind is op.SUBPATTERN:
            _, on, off, inner = value
            ignore = (ignore or bool(on & re.IGNORECASE)) and not off & re.IGNORECASE
            crosses = (crosses or bool(on & re.DOTALL)) and not off & re.DOTALL
            items = list(inner)
            branches = items[0][1][1] if len(items) == 1 and items[0][0] is op.BRANCH else [items]
            return self._group([self.parts(branch, ignore, crosses) for branch in branches])
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, inner = value
            return self._repeat(least, most, inner, "?" if kind is op.MIN_REPEAT else "", ignore, crosses)
        raise _NotUnderstoodError

    def _cased(self, part: _Part, ignore: bool) -> _Part:
        """The part under its group's own case flag, where it differs from the whole pattern's."""
        if ignore == self.ignore:
            return part
        return replace(part, text=f"(?{'i' if ignore else '-i'}:{part.text})", fixed="", needs="")

    def _border(self, value: Any) -> _Part:
        if value in (op.AT_BOUNDARY, op.AT_NON_BOUNDARY):
            name = "b" if value is op.AT_BOUNDARY else "B"
            return _Part(f"\\{name}", WORD, 0, border=name)
        if value not in _ANCHORS:
            raise _NotUnderstoodError
        return _Part(_ANCHORS[value][not self.lines], WORD, 0)

    def _group(self, branches: list[list[_Part]]) -> _Part:
        part = _closed([_bordered(branch, None) for branch in branches])
        return replace(part, text=f"(?:{part.text})")

    def _repeat(self, least: int, most: Any, inner: Any, lazy: str, ignore: bool, crosses: bool) -> _Part:
        bounds = {(0, op.MAXREPEAT): "*", (1, op.MAXREPEAT): "+", (0, 1): "?"}
        count = bounds.get((least, most)) or f"{{{least},{'' if most is op.MAXREPEAT else most}}}"
        items = list(inner)
        parts = self.parts(items, ignore, crosses, len(items) == 1 and items[0][0] is not op.SUBPATTERN)
        again = items and items[0][0] in (op.MAX_REPEAT, op.MIN_REPEAT)
        part = parts[0] if len(parts) == 1 and not again else self._group([parts])
        dots = count + lazy if part.text == "." and count in "*+" else ""
        needs = (part.fixed or part.needs) if least else ""
        kind = part.kind if part.kind == WORD or least else MIXED
        broken = part.ascii or part.border != ""
        return _Part(part.text + count + lazy, kind, part.length * least, "", needs, "", dots, broken)


def _letters(text: str) -> Iterator[_Part]:
    for forms in letters(text):
        inside = {is_word_character(character) for form in forms for character in form}
        kind = MIXED if len(inside) > 1 else WORD if inside.pop() else OTHER
        if len(forms) > 1:
            yield _Part(f"(?:{'|'.join(''.join(map(quote, form)) for form in forms)})", kind, 1)
        elif len(forms[0]) == 1:
            yield _Part(quote(forms[0]), kind, 1, fixed=forms[0])
        else:
            yield _Part(f"(?:{''.join(map(quote, forms[0]))})", kind, 1)


def quote(character: str) -> str:
    if character.isalnum() or character == "_" or character >= "\x80":
        return character
    return f"\\{character}" if character.isprintable() and character != " " else f"\\x{{{ord(character):x}}}"


def _class(items: Sequence[tuple[Any, Any]]) -> _Part:
    negated = items[0][0] is op.NEGATE
    kinds: set[str] = set()
    text: list[str] = []
    apart: dict[str, None] = {}
    for kind, value in items[negated:]:
        if kind is op.CATEGORY:
            inside, sort = _CATEGORIES[value]
            text.append(inside)
            kinds.add(sort)
            continue
        low, high = value if kind is op.RANGE else (value, value)
        text.append(f"\\x{{{low:x}}}" + (f"-\\x{{{high:x}}}" if high > low else ""))
        if high > low and high >= 0x80:
            kinds.add(MIXED)
        else:
            kinds |= {WORD if is_word_character(chr(code)) else OTHER for code in range(low, high + 1)}
        if high - low <= _WIDEST:
            apart.update({way: None for code in range(low, high + 1) for way in ways(chr(code)) if len(way) > 1})
    whole = f"[{'^' if negated else ''}{''.join(text)}]"
    if apart and not negated:
        whole = f"(?:{'|'.join(''.join(map(quote, way)) for way in apart)}|{whole})"
    return _Part(whole, kinds.pop() if len(kinds) == 1 and not negated else MIXED, 1)


# --- from parts to a pattern --------------------------------------------------------------------------------------------


def _reading(branches: list[list[_Part]], whole_word: bool = False) -> Reading:
    branches = [_bordered(branch, (OTHER if whole_word else "",) * 2) for branch in branches]
    edged = any(part.border == "edge" for branch in branches for part in branch)
    part = _closed([[p for p in branch if p.border != "edge"] for branch in branches])
    text = "|".join(map(_captured, branches)) if edged else part.text
    exact = part.fixed != "" and not edged
    return Reading(text, part.fixed or part.needs, exact, edged, part.ascii)


def _captured(branch: list[_Part]) -> str:
    """A branch with the match in a group, and what is taken in beside it around that."""
    first = branch[0].text if branch and branch[0].border == "edge" else ""
    last = branch[-1].text if len(branch) > 1 and branch[-1].border == "edge" else ""
    body = "".join(part.text for part in branch if part.border != "edge")
    return f"{first}({body}){last}"


def _closed(branches: list[list[_Part]]) -> _Part:
    joined = [_joined(branch) for branch in branches]
    only = joined[0]
    return _Part(
        "|".join(part.text for part in joined),
        only.kind if len({part.kind for part in joined}) == 1 else MIXED,
        min(part.length for part in joined),
        only.fixed if len(joined) == 1 else "",
        only.needs if len(joined) == 1 else "",
        ascii=any(part.ascii for part in joined),
    )


def _joined(parts: list[_Part]) -> _Part:
    runs = [""]
    for part in parts:
        if part.fixed:
            runs[-1] += part.fixed
        elif part.border != "met" or part.text:
            runs += [part.needs, ""]
    seen = [part for part in parts if not part.border and (part.kind != WORD or part.length or part.text not in _EDGES)]
    kinds = {part.kind for part in seen}
    fixed = runs[0] if len(runs) == 1 else ""
    return _Part(
        "".join(part.text for part in parts),
        WORD if not kinds else kinds.pop() if len(kinds) == 1 else MIXED,
        sum(part.length for part in parts),
        fixed,
        "" if fixed else max(runs, key=len),
        ascii=any(part.ascii or part.border in ("b", "B") for part in parts),
    )


def _bordered(parts: list[_Part], outside: tuple[str, str] | None) -> list[_Part]:
    r"""Replace `\b` and `\B` by what they say of the parts beside them, where these say on which side words are.

    Args:
        parts: A branch.
        outside: What is known to be before and after the branch: WORD, OTHER, or "" at the edge of the pattern, where a
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
        before = _side(parts[:at][::-1], "^", outside and outside[0])
        after = _side(parts[at + 1 :], "$", outside and outside[1])
        first = before not in (WORD, OTHER)  # whether what is open is before the border
        known, other = (after, before) if first else (before, after)
        if known not in (WORD, OTHER):
            continue
        wanted = WORD if (known == WORD) == (part.border == "B") else OTHER
        neighbour = at - 1 if first else at + 1
        if other in (WORD, OTHER):
            made[at] = _Part("", OTHER, 0, border="met") if other == wanted else _Part(_NEVER, OTHER, 1)
        elif other == "":
            edge = _SIDES[WORD] if wanted == WORD else f"(?:{'^' if first else '$'}|{RE2_SEPARATOR})"
            made[at] = _Part(edge, wanted, int(wanted == WORD), border="edge")
        elif other == "dots" and made[neighbour].dots:
            rest = parts[:neighbour][::-1] if first else parts[neighbour + 1 :]
            beyond = _side(rest, "^" if first else "$", outside and outside[0 if first else 1])
            held = _held(made[neighbour].dots, _SIDES[wanted], beyond, wanted, not first)
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
    """What is next: WORD or OTHER where that is sure, "" the pattern's edge, "dots" any characters, None not known.

    `last` is the line's border that may be there.
    """
    for at, part in enumerate(parts):
        if part.border or part.text in _EDGES:
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


MOST_CHARACTERS = 4_000
"""Longest pattern. RE2's time is linear in the text, but in the worst case times the pattern's length."""

LARGEST_PROGRAM = 100_000
"""Most instructions that a pattern may unfold to, for the same reason."""

_SHOWN = 60
_SHORTEST = 3
_LINES = "(?m)"
_BYTE_ESCAPE = "\\C"
_ONE_CASE = re.compile(r"[\x00-JL-RT-jl-rt-\x7f]+")

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
        fixed: The bytes that alone match, in small letters where case is ignored; b"" where other bytes do, too, but for the
            Kelvin sign and the long s, which are k and s.
        program: Instructions that the pattern unfolds to.
        search: Finds the leftmost match; with whole words, the character before and after may be part of it.
        spans: Finds the leftmost match without them.
        note: What it does not do, in a sentence; else "".
        held: The text that `needs` looks for; "" where nothing is known.
    """

    source: str
    ignore: bool
    needs: Search | None
    exact: bool
    fixed: bytes
    program: int
    search: Search
    spans: Search
    note: str = ""
    held: str = ""


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


def matches(data: bytes, search: Search, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """First and last offsets of the matches in bytes of UTF-8 from `start` to `end`, from left to right, empty ones too.

    The next match is looked for where the last one ends: what a pattern takes in beside one match may be beside the next.
    """
    at, end = start, len(data) if end is None else end
    while at <= end:
        first, last = search(data, at, end)
        if first < 0:
            return
        yield first, last
        at = max(last, first + 1)
        while at < end and data[at] & 0xC0 == 0x80:  # never start inside a character
            at += 1


@lru_cache(maxsize=64)
def prepare(pattern: str, *, regex: bool, case: str, word: bool) -> GrepPattern:
    """Make a pattern ready: text that stands for itself, or a regular expression in RE2's syntax; `case` is `smart`
    (sensitive only if the pattern has a capital), `sensitive` or `ignore`; `word` matches whole words only, a separator or
    the line's border before and after. Raises QueryError where it is empty or RE2 refuses it, with RE2's reason.
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
        if pattern.startswith(("-v ", "--invert-match")):
            raise QueryError(
                f"{_shown(pattern)} asks for lines that do not match, which is not offered",
                "Look for what should be there, or turn grep.regex off to look for the text as it is",
            )
        _compile(pattern, pattern, False)
    if case not in ("smart", "sensitive", "ignore"):
        raise QueryError(f"{case!r} is no way to treat case", "It must be smart, sensitive or ignore")
    ignore = case == "ignore" or (case == "smart" and not has_capital(pattern, regex))
    composed = unicodedata.normalize("NFC", pattern)
    reading = read_regex(composed, ignore=ignore, whole_word=word) if regex else _reading([list(_letters(composed))])
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
    exact = reading is not None and reading.exact and not word and "\n" not in held
    fixed = (held.lower() if ignore else held).encode() if exact and (held.isascii() or not ignore) else b""
    if ignore:
        # Of k and s a character beyond ASCII is a case too: the Kelvin sign and the long s.
        whole, held = held, max(_ONE_CASE.findall(held), key=len, default="").lower()
        exact &= held == whole.lower()
    # A character or two are in so many lines that looking for them first costs more than it saves.
    needs = (
        matcher(compile_re2(_literal(held), False))
        if "\n" not in held and len(held) >= (1 if exact else _SHORTEST)
        else None
    )
    note = ""
    if reading is not None and reading.ascii_borders:
        note = (
            f"{_shown(pattern)} has a \\b that knows letters of ASCII only, because what stands beside it may or may not be"
            " a word; write it next to a letter, a space or the end of the pattern"
        )
    held = "" if "\n" in held else held
    return GrepPattern(pattern, ignore, needs, exact, fixed, plain.programsize, search, spans, note, held)


def _literal(text: str) -> str:
    return "".join(map(quote, text))


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


def _shown(pattern: str) -> str:
    return f"The pattern {_shorten(pattern.encode('utf-8', 'replace').decode())!r}"


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
