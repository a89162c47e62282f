"""The filter language: conditions on documents, as a value whose text form parses back.

::

    type = 'note' and year >= 2024
    path = 'docs/**' and not (sensitivity in ('secret', 'internal') or tags contains 'draft')
    modified >= 2024-01-01 and title like 'Release%'

A condition is `field op value`: `=`, `!=`, `<`, `<=`, `>`, `>=`, `in (...)`, `contains`, `like` (`%` and `_`), `glob`
(`*`, `**`, `?`, `[a-z]`). Text is in single or double quotes (a quote inside is doubled); numbers, dates
(`2024-05-01`, `2024-05`, `2024-05-01T12:30Z`; UTC unless an offset is given), `true` and `false` are bare. A field with
other characters than letters, digits, `_`, `.` and `-` is put in double quotes. `not` binds tighter than `and`, `and`
tighter than `or`.

`parse` gives an And, Or, Not or Condition; `str` of it is the canonical text, which serves as cache key. `select` turns it into
SQL in which every value is a parameter. A condition becomes a Boolean expression over `documents d` (never NULL, so that `not` is
exactly the complement); a key of front matter becomes `d.number IN (SELECT ... FROM fields ...)`. A condition on `collection`
concerns records: the filter is compiled once for each collection, with its name in those conditions.

A document that lacks a field fulfils no condition on it, and `!=` is `not (... = ...)`, so it fulfils every `!=`. On a list
(`tags: [a, b]`) a condition holds when it holds for an element. `=` compares text exactly, `contains` without regard to case
(in a list: a whole element), `like` and `glob` exactly. `path =` takes a glob or a folder (`docs/`) too. Text is compared in
the form NFC, whatever the form of the document and of the filter; a quoted date on a key of front matter is a date too, for
every comparison. `source` is the indexed folder, by its whole path or its last name, or the front matter's own `source`. `year`
is the front matter's year, or that of the modification time.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from workbench.errors import FilterError, some_of

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ORDER = COMPARISONS[2:]
_WORD_OPERATORS = ("in", "contains", "like", "glob")
_KEYWORDS = frozenset({"and", "or", "not", "true", "false", *_WORD_OPERATORS})
_MOST_CHARACTERS = 10_000
_MOST_DEPTH = 60
_MOST_NAMES = 60
_LARGEST = 1e300
_EXAMPLE = "Write for example type = 'note' and year >= 2024"

_DATE = re.compile(
    r"\d{4}(?:-\d{2}(?:-\d{2}(?:[T ](?P<minute>\d{2}:\d{2})(?P<second>:\d{2}(?P<fraction>\.\d{1,6})?)?"
    r"(?:Z|[+-]\d{2}:\d{2})?)?)?)?"
)
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<date>\d{4}-\d{2}(?:-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?)?)(?![\w.-])
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])
    | (?P<word>[^\W\d][\w.\-]*)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<op><=|>=|!=|<>|==|=|<|>)
    | (?P<mark>[(),])
    )""",
    re.VERBOSE,
)
_BARE_FIELD = re.compile(r"[^\W\d][\w.\-]*")


@dataclass(frozen=True, slots=True)
class Date:
    """A date as written: the moments from `start` up to and without `end` (a second, minute, day, month or year), naive UTC."""

    text: str
    start: datetime = attribute(compare=False, init=False)
    end: datetime = attribute(compare=False, init=False)

    def __post_init__(self) -> None:
        text, match = self.text, _DATE.fullmatch(self.text)
        if match is None:
            raise FilterError(f"{text!r} is not a date", "Write for example 2024-05-01")
        try:
            start = datetime.fromisoformat(text[:10] + "0000-01-01"[len(text) :] + text[10:])
            if start.tzinfo is not None:
                start = start.astimezone(UTC).replace(tzinfo=None)
        except (ValueError, OverflowError) as exc:
            raise FilterError(f"There is no date {text}", "Write for example 2024-05-01") from exc
        try:
            if len(text) == 4:
                end = start.replace(year=start.year + 1)
            elif len(text) == 7:
                end = (start + timedelta(days=32)).replace(day=1)
            elif match["minute"] is None:
                end = start + timedelta(days=1)
            elif match["second"] is None:
                end = start + timedelta(minutes=1)
            else:
                end = start + (timedelta(seconds=1) if match["fraction"] is None else timedelta(microseconds=1))
        except (OverflowError, ValueError):  # the last month, or the year 9999
            end = datetime.max
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    def __str__(self) -> str:
        return self.text


Value = str | int | float | bool | Date


@dataclass(frozen=True, slots=True)
class Condition:
    """`field op values`: one value, or for `in` at least one. `at` is where it was in the text, from 0."""

    field: str
    op: str
    values: tuple[Value, ...]
    at: int = attribute(default=0, compare=False)

    def __str__(self) -> str:
        shown = ", ".join(map(show_value, self.values))
        return f"{show_field(self.field)} {self.op} {f'({shown})' if self.op == 'in' else shown}"


@dataclass(frozen=True, slots=True)
class _Group:
    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        parts = (
            part.parts if isinstance(part, _Group) and type(part) is type(self) else (part,) for part in self.parts
        )
        object.__setattr__(self, "parts", tuple(inner for several in parts for inner in several))


class And(_Group):
    __slots__ = ()

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


class Or(_Group):
    __slots__ = ()

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    part: Node

    def __str__(self) -> str:
        return f"not ({self.part})" if isinstance(self.part, _Group) else f"not {self.part}"


Node = Condition | And | Or | Not


def parse(text: str) -> Node:
    """Read a filter. Raises FilterError, whose message names the character."""
    if len(text) > _MOST_CHARACTERS:
        raise FilterError(f"The filter has {len(text)} characters", f"It may have {_MOST_CHARACTERS}")
    parser = _Parser(text)
    node = parser.any_of(0)
    if parser.here.kind != "end":
        raise parser.unexpected("Join conditions with and, or")
    return node


def values_of(where: str, field: str) -> tuple[Value, ...]:
    """The values that a filter asks of a field, where it asks for one or some of them beside its other conditions. Raises
    FilterError.
    """
    return next((c.values for c in _parts(where) if _chooses(c, field)), ())  # type: ignore[union-attr]


def toggled(where: str, field: str, value: Value | None) -> str:
    """A filter that asks for a value of a field too, or no longer, where it did; None: for none of them. Values of one field are
    alternatives, and everything else stays. Raises FilterError.
    """
    parts, chosen = _parts(where), list(values_of(where, field))
    at = next((n for n, part in enumerate(parts) if _chooses(part, field)), len(parts))
    chosen = [] if value is None else [v for v in chosen if v != value] + [value] * (value not in chosen)
    parts[at : at + 1] = [Condition(field, "in" if len(chosen) > 1 else "=", tuple(chosen))] if chosen else []
    return str(parts[0] if len(parts) == 1 else And(tuple(parts)))


def _parts(where: str) -> list[Node]:
    node = parse(where) if where.strip() else None
    return [] if node is None else list(node.parts) if isinstance(node, And) else [node]


def _chooses(part: Node, field: str) -> bool:
    return isinstance(part, Condition) and part.field == field and part.op in ("=", "in")


def conditions(node: Node) -> Iterator[Condition]:
    if isinstance(node, Condition):
        yield node
    else:
        for part in (node.part,) if isinstance(node, Not) else node.parts:
            yield from conditions(part)


def show_field(name: str) -> str:
    if _BARE_FIELD.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def show_value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, Date) else repr(value)


def _fault(what: str, at: int, remedy: str) -> FilterError:
    """The error for something at a place of the filter: `at` counts from 0, people from 1."""
    return FilterError(f"The filter {what} at character {at + 1}", remedy)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def _tokens(text: str) -> Iterator[_Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:].lstrip()
            what = "has an open quote" if rest[0] in "'\"" else f"has an unexpected {rest[0]!r}"
            raise _fault(what, len(text) - len(rest), _EXAMPLE)
        kind = str(match.lastgroup)
        yield _Token(kind, match[kind], match.start(kind))
        at = match.end()
    yield _Token("end", "", end)


class _Parser:
    """Recursive descent over the tokens, one method a rule."""

    def __init__(self, text: str) -> None:
        self._left = list(_tokens(text))[::-1]

    @property
    def here(self) -> _Token:
        return self._left[-1]

    def _take(self, kind: str, *texts: str) -> str:
        """The text of the next token, in small letters, if it is of this kind and one of these texts; it is then taken."""
        text = self.here.text.lower()
        if self.here.kind != kind or (texts and text not in texts):
            return ""
        self._left.pop()
        return text

    def _expect(self, mark: str, after: str) -> None:
        if not self._take("mark", mark):
            raise self.unexpected(f"Write {mark!r} after {after}")

    def unexpected(self, remedy: str) -> FilterError:
        kind, text, at = self.here
        return _fault("ends too early" if kind == "end" else f"has an unexpected {text}", at, remedy)

    def any_of(self, depth: int) -> Node:
        parts = [self._all_of(depth)]
        while self._take("word", "or"):
            parts.append(self._all_of(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all_of(self, depth: int) -> Node:
        parts = [self._one(depth + 1)]
        while self._take("word", "and"):
            parts.append(self._one(depth + 1))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self, depth: int) -> Node:
        if depth > _MOST_DEPTH:
            raise _fault("is nested too deeply", self.here.at, f"Use at most {_MOST_DEPTH} levels")
        if self._take("word", "not"):
            return Not(self._one(depth + 1))
        if self._take("mark", "("):
            node = self.any_of(depth)
            self._expect(")", "the conditions in parentheses")
            return node
        return self._condition()

    def _condition(self) -> Condition | Not:
        kind, name, at = self.here
        if kind == "text" and name[0] == '"':
            name = name[1:-1].replace('""', '"')
        elif kind != "word" or name.lower() in _KEYWORDS:
            raise self.unexpected("A condition starts with a field, for example type = 'note'")
        self._left.pop()
        negated = self._take("word", "not")
        op = self._take("word", *_WORD_OPERATORS) or ("" if negated else self._take("op"))
        if not op:
            raise self.unexpected(f"After a field comes one of {' '.join((*COMPARISONS, *_WORD_OPERATORS))}")
        op = {"==": "=", "<>": "!="}.get(op, op)
        if op == "in":
            self._expect("(", "in")
        values = [self._value()]
        while op == "in" and self._take("mark", ","):
            values.append(self._value())
        if op == "in":
            self._expect(")", "the values of in")
        condition = Condition(name, op, tuple(values), at)
        return Not(condition) if negated else condition

    def _value(self) -> Value:
        kind, text, at = self.here
        value: Value
        if kind == "text":
            value = text[1:-1].replace(text[0] * 2, text[0])
        elif kind == "number":
            value = float(text) if any(c in text for c in ".eE") else int(text)
            if abs(value) > _LARGEST:
                raise _fault("has a number that is too large", at, "Write a smaller one")
        elif kind == "date":
            try:
                value = Date(text)
            except FilterError as exc:
                raise _fault(f"has no date {text}", at, exc.remedy) from exc
        elif kind == "word" and text.lower() in ("true", "false"):
            value = text.lower() == "true"
        elif kind == "word":
            raise self.unexpected(f"Put text in quotes: '{text}'")
        else:
            raise self.unexpected("Write a value: 'text', a number, or a date such as 2024-05-01")
        self._left.pop()
        return value


# --- SQL ----------------------------------------------------------------------------------------------------------------

_TEXT = ("type", "sensitivity", "path", "title", "url", "language", "tenant")
_NUMBER = ("year", "size", "characters", "lines")
COLUMNS = tuple(sorted((*_TEXT, *_NUMBER, "modified", "source", "root", "collection")))
"""Fields that every corpus has."""


def uses_collection(node: Node) -> bool:
    return any(c.field == "collection" for c in conditions(node))


def select(node: Node, collections: Sequence[str], keys: Collection[str]) -> tuple[str, list[object]]:
    """The SQL that evaluates a filter, and its parameters: one row a document in number order, one Boolean column for each name
    in `collections` (one column where there are none, because the filter does not use them). `keys` are the front-matter keys
    that the principal may know of. Raises FilterError for an unknown field, or a value that its field cannot have.
    """
    _check_fields(node, {_nfc(key) for key in keys})
    values: list[object] = []
    columns = [f"{_Sql(name, values).filter(node)} AS c{i}" for i, name in enumerate(collections or [""])]
    return f"SELECT {', '.join(columns)} FROM documents d ORDER BY d.number", values


def _check_fields(node: Node, keys: set[str]) -> None:
    """Refuse fields that are neither columns nor among the visible front-matter keys. Raises FilterError."""
    for condition in conditions(node):
        name = _key_name(condition.field)
        if name in keys or (name in COLUMNS and name == condition.field):
            continue
        known = sorted({*COLUMNS, *keys})
        close = difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        remedy = f"{hint}The fields are {some_of(known, _MOST_NAMES)}"
        raise _fault(f"names the unknown field {condition.field}", condition.at, remedy)


def _key_name(field: str) -> str:
    """`metadata.year` names the front matter's key even where a column has that name."""
    return _nfc(field.removeprefix("metadata."))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


class _Sql:
    """Writes a filter for records of one collection as an expression over `documents d`; its parameters go to `values`."""

    def __init__(self, collection: str, values: list[object]) -> None:
        self._collection, self._values = collection, values

    def filter(self, node: Node) -> str:
        if isinstance(node, Condition):
            if node.op == "!=":
                return f"(NOT {self._condition(replace(node, op='='), node.values[0])})"
            if node.op == "in":
                return _any(self._condition(replace(node, op="="), value) for value in node.values)
            return self._condition(node, node.values[0])
        if isinstance(node, Not):
            return f"(NOT {self.filter(node.part)})"
        word = " AND " if isinstance(node, And) else " OR "
        return f"({word.join(map(self.filter, node.parts))})"

    def _given(self, *values: object) -> str:
        self._values.extend(values)
        return "?"

    def _condition(self, c: Condition, value: Value) -> str:
        if c.field == "collection":
            return self._text(f"CAST({self._given(self._collection)} AS VARCHAR)", c, value)
        if c.field in ("source", "root"):
            places = ("coalesce(d.root, '')", "coalesce(regexp_extract(d.root, '[^/]+$'), '')")
            parts = [self._text(place, c, value) for place in places]
            return _any([*parts, self._key("source", c, value)] if c.field == "source" else parts)
        if c.field in _TEXT:
            return self._text(f"d.{c.field}", c, value)
        if c.field in _NUMBER:
            return self._number(f"d.{c.field}", c, value)
        if c.field == "modified":
            return self._time("d.modified", c, _moment(c, value))
        return self._key(_key_name(c.field), c, value)

    def _text(self, sql: str, c: Condition, value: Value) -> str:
        text, sql = _text_value(c, value), f"nfc_normalize({sql})"
        if c.op == "contains":
            test = f"contains(lower({sql}), lower({self._given(text)}))"
        elif c.op == "glob":
            test = f"regexp_full_match({sql}, {self._given(glob_pattern(text))})"
        elif c.op == "=" and c.field == "path" and (text.endswith("/") or any(mark in text for mark in "*?[")):
            self._given(text, glob_pattern(text + "**" if text.endswith("/") else text))
            test = f"{sql} = ? OR regexp_full_match({sql}, ?)"
        else:
            test = f"{sql} {c.op} {self._given(text)}"
        return f"coalesce({test}, false)"

    def _number(self, sql: str, c: Condition, value: Value) -> str:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _fault(f"compares the number {c.field} with {value!s}", c.at, f"Write for example {c.field} >= 2024")
        _refuse_text_operators("number", c)
        return f"coalesce(CAST({sql} AS DOUBLE) {c.op} CAST({self._given(float(value))} AS DOUBLE), false)"

    def _time(self, sql: str, c: Condition, date: Date) -> str:
        """A date as written is a stretch of time: `=` is within it, `<` before its start, `<=` before its end."""
        if c.op == "=":
            self._given(date.start, date.end)
            return f"coalesce({sql} >= ? AND {sql} < ?, false)"
        bound = self._given(date.start if c.op in ("<", ">=") else date.end)
        return f"coalesce({sql} {'<' if c.op in ('<', '<=') else '>='} {bound}, false)"

    def _key(self, key: str, c: Condition, value: Value) -> str:
        sql = f"SELECT f.document_number FROM fields f WHERE nfc_normalize(f.key) = {self._given(key)}"
        return f"(d.number IN ({sql} AND {_any(self._key_tests(c, value))}))"

    def _key_tests(self, c: Condition, value: Value) -> Iterator[str]:
        """What a value may fulfil: any of these."""
        compares = c.op in ("=", *_ORDER)
        date = value if isinstance(value, Date) else _as_date(value) if isinstance(value, str) else None
        if isinstance(value, bool):
            if c.op != "=":
                raise _fault(f"uses {c.op} with {str(value).lower()}", c.at, "Use = or !=")
            yield f"coalesce(lower(f.text) = {self._given(str(value).lower())}, false)"
        elif date is not None and compares:
            yield self._time("f.time", c, date)
            if c.op == "=" and isinstance(value, str):
                yield self._text("f.text", c, value)
        elif isinstance(value, (int, float)) and compares:
            yield self._number("f.number", c, value)
            if isinstance(value, int) and 1000 <= value <= 9999:  # a year, where the key holds dates
                yield self._time("f.time", c, Date(str(value)))
        elif c.op == "contains":
            self._given(*[_text_value(c, value)] * 2)
            text = "lower(nfc_normalize(f.text))"
            yield f"CASE WHEN f.listed THEN {text} = lower(?) ELSE contains({text}, lower(?)) END"
        else:
            yield self._text("f.text", c, value)


def _any(parts: Iterator[str] | Sequence[str]) -> str:
    return f"({' OR '.join(parts)})"


def _refuse_text_operators(kind: str, c: Condition) -> None:
    if c.op in ("contains", "like", "glob"):
        raise _fault(f"uses {c.op} on the {kind} {c.field}", c.at, "Use =, !=, <, <=, >, >= or in")


def _moment(c: Condition, value: Value) -> Date:
    _refuse_text_operators("date", c)
    date = _as_date(value) if isinstance(value, str) else value
    if isinstance(date, Date):
        return date
    raise _fault(f"compares the date {c.field} with {value!s}", c.at, f"Write for example {c.field} >= 2024-05-01")


def _as_date(text: str) -> Date | None:
    """The date that a text is, or None; four digits alone are a number."""
    try:
        return Date(text) if "-" in text else None
    except FilterError:
        return None


def _text_value(c: Condition, value: Value) -> str:
    """The value as text: numbers and dates as they would be written, so that `contains 2024` works."""
    if isinstance(value, bool):
        raise _fault(f"compares the text {c.field} with {str(value).lower()}", c.at, "Put text in quotes")
    if not isinstance(value, str) and c.op in _ORDER:
        raise _fault(f"compares the text {c.field} with {value!s}", c.at, f"Put it in quotes: '{value!s}'")
    return _nfc(str(value))


_GLOB = re.compile(
    r"(?P<folders>(?:(?<=/)|^)\*\*/)|(?P<all>\*\*)|(?P<some>\*)|(?P<one>\?)"
    r"|(?P<group>\[(?P<not>!?)(?P<inside>(?:[^\]/\-]-[^\]/\-]|[^\]/\-])+)\])"
)
_GLOB_PATTERNS = {"folders": "(?:.*/)?", "all": ".*", "some": "[^/]*", "one": "[^/]"}


def glob_pattern(glob: str) -> str:
    r"""A path glob as a regular expression (RE2): `*` and `?` stay within a folder, `**` crosses, `[a-z]` and `[!a]`.

    `**/` also matches no folder at all: `docs/**/a.md` finds `docs/a.md`.
    """
    out, at = ["(?s)"], 0
    while at < len(glob):
        match = _GLOB.match(glob, at)
        kind = match.lastgroup if match else None
        if match and any(low > high for low, high in re.findall(r"(?s)(.)-(.)", match["inside"] or "")):
            match = None  # `[z-a]` is not a group but these five characters
        if match is None:
            out.append(re.escape(glob[at]))
        elif kind == "group":
            inside = re.sub(r"([\\\[\]&~|^])", r"\\\1", match["inside"])
            out.append(f"[{'^/' if match['not'] else ''}{inside}]")
        else:
            out.append(_GLOB_PATTERNS[str(kind)])
        at = match.end() if match else at + 1
    return "".join(out)
