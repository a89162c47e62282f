"""The filter language: conditions on documents, as a value whose text form parses back.

::

    type = 'note' and year >= 2024
    path = 'docs/**' and not (sensitivity in ('secret', 'internal') or tags contains 'draft')
    modified >= 2024-01-01 and title like 'Release%'

A condition is `field op value`: `=`, `!=`, `<`, `<=`, `>`, `>=`, `in (...)`, `contains`, `like` (`%` and `_`), `glob`
(`*`, `**`, `?`, `[a-z]`). Text stands in single or double quotes (a quote inside is doubled); numbers, dates
(`2024-05-01`, `2024-05`, `2024-05-01T12:30Z`; UTC unless an offset is given), `true` and `false` stand bare. A field with
other characters than letters, digits, `_`, `.` and `-` is put in double quotes. `not` binds tighter than `and`, `and`
tighter than `or`.

`parse` gives an And, Or, Not or Condition; `str` of it is the canonical text, which serves as cache key.

What the fields of a filter mean, and the SQL that it becomes: every value a parameter, nothing pasted into the text.

A document-level condition becomes a Boolean expression over `documents d` (never NULL, so that `not` is exactly the
complement); a key of front matter becomes `d.number IN (SELECT ... FROM fields ...)`. A condition on `collection` concerns
records: the filter is compiled once for each collection, with its name in those conditions.

A document that lacks a field fulfils no condition on it, and `!=` is `not (... = ...)`, so it fulfils every `!=`. On a list
(`tags: [a, b]`) a condition holds when it holds for an element. `=` compares text exactly, `contains` without regard to case
(in a list: a whole element), `like` and `glob` exactly. `path =` takes a glob or a folder (`docs/`) too. Text is compared in
the form NFC, whatever the form of the document and of the filter; a quoted date on a key of front matter is a date too, for
every comparison. `source` is the indexed folder, by its whole path or its last name, or the front matter's own `source`. Of a
document that is there several times, path and folder may be those of any of its copies. `year` is the front matter's year, or
that of the modification time.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from workbench.errors import FilterError

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
WORD_OPERATORS = ("in", "contains", "like", "glob")
_KEYWORDS = frozenset({"and", "or", "not", "true", "false", *WORD_OPERATORS})
_MOST_CHARACTERS = 10_000
_MOST_DEPTH = 60
_LARGEST = 1e300

_DATE = re.compile(
    r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(Z|[+-]\d{2}:\d{2})?)?)?)?"
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
        start, end = _moments(self.text)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    def __str__(self) -> str:
        return self.text


Value = str | int | float | bool | Date


@dataclass(frozen=True, slots=True)
class Condition:
    """`field op values`: one value, or for `in` at least one. `at` is where it stood in the text, from 0."""

    field: str
    op: str
    values: tuple[Value, ...]
    at: int = attribute(default=0, compare=False)

    def __str__(self) -> str:
        if self.op == "in":
            return f"{show_field(self.field)} in ({', '.join(map(show_value, self.values))})"
        return f"{show_field(self.field)} {self.op} {show_value(self.values[0])}"


@dataclass(frozen=True, slots=True)
class _Many:
    parts: tuple[Condition | And | Or | Not, ...]

    def __post_init__(self) -> None:
        flat: list[Condition | And | Or | Not] = []
        for part in self.parts:
            flat.extend(part.parts if isinstance(part, _Many) and type(part) is type(self) else (part,))
        object.__setattr__(self, "parts", tuple(flat))


class And(_Many):
    """Every part holds."""

    __slots__ = ()

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


class Or(_Many):
    """Some part holds."""

    __slots__ = ()

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Condition | And | Or | Not

    def __str__(self) -> str:
        return f"not ({self.part})" if isinstance(self.part, _Many) else f"not {self.part}"


Node = Condition | And | Or | Not


def parse(text: str) -> Node:
    """Read a filter.

    Raises:
        FilterError: It cannot be read; the message names the character.
    """
    if len(text) > _MOST_CHARACTERS:
        raise FilterError(f"The filter has {len(text)} characters", f"It may have {_MOST_CHARACTERS}")
    return _Parser(text).whole()


def conditions(node: Node) -> Iterator[Condition]:
    """Every condition of a filter, left to right."""
    if isinstance(node, Condition):
        yield node
    elif isinstance(node, Not):
        yield from conditions(node.part)
    else:
        for part in node.parts:
            yield from conditions(part)


def show_field(name: str) -> str:
    """A field as it is written in a filter."""
    if _BARE_FIELD.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def show_value(value: Value) -> str:
    """A value as it is written in a filter."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, Date) else repr(value)


def as_date(text: str) -> Date | None:
    """The date that a text is, or None; four digits alone are a number."""
    if "-" not in text or not _DATE.fullmatch(text):
        return None
    try:
        return Date(text)
    except FilterError:
        return None


def fault(what: str, at: int, remedy: str) -> FilterError:
    """The error for something at a place of the filter: `at` counts from 0, people from 1."""
    return FilterError(f"The filter {what} at character {at + 1}", remedy)


def _moments(text: str) -> tuple[datetime, datetime]:
    match = _DATE.fullmatch(text)
    if match is None:
        raise FilterError(f"{text!r} is not a date", "Write for example 2024-05-01")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        start = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0),
            int((fraction or "0").ljust(6, "0")), tzinfo=UTC,
        )  # fmt: skip
        if zone and zone != "Z":
            hours, minutes = int(zone[1:3]), int(zone[4:6])
            offset = timedelta(hours=hours, minutes=minutes)
            start += -offset if zone[0] == "+" else offset
    except (ValueError, OverflowError) as exc:
        raise FilterError(f"There is no date {text}", "Write for example 2024-05-01") from exc
    start = start.replace(tzinfo=None)
    try:
        if month is None:
            end = start.replace(year=start.year + 1)
        elif day is None:
            end = (start.replace(day=1) + timedelta(days=32)).replace(day=1)
        elif hour is None:
            end = start + timedelta(days=1)
        elif second is None:
            end = start + timedelta(minutes=1)
        else:
            end = start + (timedelta(seconds=1) if fraction is None else timedelta(microseconds=1))
    except (OverflowError, ValueError):  # the last month, or the year 9999
        end = datetime.max
    return start, end


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    """Recursive descent over the tokens, one method a rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._scan())
        self._next = 0
        self._depth = 0

    def _scan(self) -> Iterator[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                what = "has an open quote" if self._text[start] in "'\"" else f"has an unexpected {self._text[start]!r}"
                raise fault(what, start, "Write for example type = 'note' and year >= 2024")
            kind = str(match.lastgroup)
            yield _Token(kind, match.group(kind), match.start(kind))
            at = match.end()
        yield _Token("end", "", end)

    @property
    def _here(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._here
        self._next += token.kind != "end"
        return token

    def _keyword(self, *names: str) -> str:
        """Take the next token if it is one of these keywords."""
        token = self._here
        if token.kind == "word" and token.text.lower() in names:
            return self._take().text.lower()
        return ""

    def _expect(self, mark: str, after: str) -> None:
        if self._here.text != mark or self._here.kind != "mark":
            raise self._unexpected(f"Write {mark!r} after {after}")
        self._take()

    def _unexpected(self, remedy: str) -> FilterError:
        token = self._here
        return fault("ends too early" if token.kind == "end" else f"has an unexpected {token.text}", token.at, remedy)

    def whole(self) -> Node:
        node = self._either()
        if self._here.kind != "end":
            raise self._unexpected("Join conditions with and, or")
        return node

    def _either(self) -> Node:
        parts = [self._both()]
        while self._keyword("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Node:
        parts = [self._one()]
        while self._keyword("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Node:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise fault("is nested too deeply", self._here.at, f"Use at most {_MOST_DEPTH} levels")
        try:
            if self._keyword("not"):
                return Not(self._one())
            if self._here.kind == "mark" and self._here.text == "(":
                self._take()
                node = self._either()
                self._expect(")", "the conditions in parentheses")
                return node
            return self._condition()
        finally:
            self._depth -= 1

    def _condition(self) -> Condition | Not:
        token = self._here
        if token.kind == "word" and token.text.lower() not in _KEYWORDS:
            name = token.text
        elif token.kind == "text" and token.text.startswith('"'):
            name = token.text[1:-1].replace('""', '"')
        else:
            raise self._unexpected("A condition starts with a field, for example type = 'note'")
        self._take()
        negated = bool(self._keyword("not"))
        op = self._keyword(*WORD_OPERATORS)
        if not op and not negated and self._here.kind == "op":
            op = {"==": "=", "<>": "!="}.get(self._here.text, self._here.text)
            self._take()
        if not op:
            raise self._unexpected(f"After a field comes one of {' '.join((*COMPARISONS, *WORD_OPERATORS))}")
        condition = Condition(name, op, self._values() if op == "in" else (self._value(),), token.at)
        return Not(condition) if negated else condition

    def _values(self) -> tuple[Value, ...]:
        self._expect("(", "in")
        values = [self._value()]
        while self._here.text == "," and self._here.kind == "mark":
            self._take()
            values.append(self._value())
        self._expect(")", "the values of in")
        return tuple(values)

    def _value(self) -> Value:
        token = self._here
        if token.kind == "text":
            value: Value = token.text[1:-1].replace(token.text[0] * 2, token.text[0])
        elif token.kind == "number":
            value = float(token.text) if any(c in token.text for c in ".eE") else int(token.text)
            if abs(value) > _LARGEST:
                raise fault("has a number that is too large", token.at, "Write a smaller one")
        elif token.kind == "date":
            try:
                value = Date(token.text)
            except FilterError as exc:
                raise fault(f"has no date {token.text}", token.at, exc.remedy) from exc
        elif token.kind == "word" and token.text.lower() in ("true", "false"):
            value = token.text.lower() == "true"
        elif token.kind == "word":
            raise self._unexpected(f"Put text in quotes: '{token.text}'")
        else:
            raise self._unexpected("Write a value: 'text', a number, or a date such as 2024-05-01")
        self._take()
        return value


# --- SQL ----------------------------------------------------------------------------------------------------------------

_TEXT = {
    "type": "d.type", "sensitivity": "d.sensitivity", "path": "d.path", "title": "d.title", "url": "d.url",
    "language": "d.language", "tenant": "d.tenant",
}  # fmt: skip
_NUMBER = {"year": "d.year", "size": "d.size", "characters": "d.characters", "lines": "d.lines"}
_TIME = {"modified": "d.modified"}
COLUMNS = tuple(sorted((*_TEXT, *_NUMBER, *_TIME, "source", "root", "collection")))
"""Fields that every corpus has."""

_ROOT_NAME = r"regexp_extract(d.root, '[^/]+$')"
_MOST_NAMES = 60
_ORDER = ("<", "<=", ">", ">=")


@dataclass(slots=True)
class Compiled:
    """One SQL expression and its parameters, in order."""

    sql: str
    values: list[object] = attribute(default_factory=list)


def check_fields(node: Node, keys: Collection[str]) -> None:
    """Refuse fields that are neither columns nor among the visible front-matter `keys`. Raises FilterError."""
    keys = {_nfc(key) for key in keys}
    for condition in conditions(node):
        name = _plain(condition.field)
        if name in keys or (name in COLUMNS and name == condition.field):
            continue
        known = sorted({*COLUMNS, *keys})
        close = difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
        raise fault(
            f"names the unknown field {condition.field}",
            condition.at,
            f"{hint}The fields are {', '.join(known[:_MOST_NAMES])}{more}",
        )


def uses_collection(node: Node) -> bool:
    """Whether any condition is on `collection`."""
    return any(c.field == "collection" for c in conditions(node))


def select(node: Node, collections: Sequence[str], keys: Collection[str]) -> Compiled:
    """The statement that evaluates a filter: one row a document in number order, one Boolean column a collection.

    Args:
        node: The filter.
        collections: Names of the corpus's collections; empty where the filter does not use `collection`.
        keys: Front-matter keys that the principal may know of.

    Raises:
        FilterError: An unknown field, or a value that its field cannot have.
    """
    check_fields(node, keys)
    columns = [compile_filter(node, name) for name in collections] or [compile_filter(node, "")]
    listed = ", ".join(f"{c.sql} AS c{i}" for i, c in enumerate(columns))
    values = [value for c in columns for value in c.values]
    return Compiled(f"SELECT {listed} FROM documents d ORDER BY d.number", values)


def compile_filter(node: Node, collection: str) -> Compiled:
    """One filter as an expression over `documents d`, for records of one collection. Raises FilterError."""
    if isinstance(node, Condition):
        if node.op == "!=":
            return _negate(_condition(Condition(node.field, "=", node.values, node.at), collection))
        return _condition(node, collection)
    if isinstance(node, Not):
        return _negate(compile_filter(node.part, collection))
    parts = [compile_filter(part, collection) for part in node.parts]
    word = " AND " if isinstance(node, And) else " OR "
    return Compiled(f"({word.join(p.sql for p in parts)})", [v for p in parts for v in p.values])


def _negate(part: Compiled) -> Compiled:
    return Compiled(f"(NOT {part.sql})", part.values)


def _any(parts: Sequence[Compiled]) -> Compiled:
    return Compiled(f"({' OR '.join(p.sql for p in parts)})", [v for p in parts for v in p.values])


def _plain(name: str) -> str:
    """`metadata.year` names the front matter's key even where a column has that name."""
    return _nfc(name.removeprefix("metadata."))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _condition(c: Condition, collection: str) -> Compiled:
    if c.op == "in":
        return _any([_condition(Condition(c.field, "=", (value,), c.at), collection) for value in c.values])
    value = c.values[0]
    if c.field == "collection":
        named = _text("CAST(? AS VARCHAR)", c, value)
        return Compiled(named.sql, [collection, *named.values])
    if c.field in ("source", "root"):
        parts = [_text(f"coalesce({sql}, '')", c, value) for sql in ("d.root", _ROOT_NAME)]
        return _any([*parts, _key("source", c, value)] if c.field == "source" else parts)
    if c.field in _TEXT:
        return _text(_TEXT[c.field], c, value)
    if c.field in _NUMBER:
        return _number(_NUMBER[c.field], c, value)
    if c.field in _TIME:
        return _time(_TIME[c.field], c, _moment(c, value))
    return _key(_plain(c.field), c, value)


def _text(sql: str, c: Condition, value: Value) -> Compiled:
    text, sql = _text_value(c, value), f"nfc_normalize({sql})"
    if c.op == "contains":
        return Compiled(f"coalesce(contains(lower({sql}), lower(?)), false)", [text])
    if c.op == "like":
        return Compiled(f"coalesce({sql} LIKE ?, false)", [text])
    if c.op == "glob":
        return Compiled(f"coalesce(regexp_full_match({sql}, ?), false)", [glob_pattern(text)])
    if c.op == "=" and c.field == "path" and (text.endswith("/") or any(mark in text for mark in "*?[")):
        pattern = glob_pattern(text + "**" if text.endswith("/") else text)
        return Compiled(f"coalesce({sql} = ? OR regexp_full_match({sql}, ?), false)", [text, pattern])
    return Compiled(f"coalesce({sql} {c.op} ?, false)", [text])


def _number(sql: str, c: Condition, value: Value) -> Compiled:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fault(f"compares the number {c.field} with {value!s}", c.at, f"Write for example {c.field} >= 2024")
    if c.op in ("contains", "like", "glob"):
        raise fault(f"uses {c.op} on the number {c.field}", c.at, "Use =, !=, <, <=, >, >= or in")
    return Compiled(f"coalesce(CAST({sql} AS DOUBLE) {c.op} CAST(? AS DOUBLE), false)", [float(value)])


def _time(sql: str, c: Condition, date: Date) -> Compiled:
    """A date as written is a stretch of time: `=` is within it, `<` before its start, `<=` before its end."""
    if c.op == "=":
        return Compiled(f"coalesce({sql} >= ? AND {sql} < ?, false)", [date.start, date.end])
    bound = date.start if c.op in ("<", ">=") else date.end
    return Compiled(f"coalesce({sql} {'<' if c.op in ('<', '<=') else '>='} ?, false)", [bound])


def _moment(c: Condition, value: Value) -> Date:
    if c.op in ("contains", "like", "glob"):
        raise fault(f"uses {c.op} on the date {c.field}", c.at, "Use =, !=, <, <=, >, >= or in")
    if isinstance(value, Date):
        return value
    if isinstance(value, str) and (date := as_date(value)) is not None:
        return date
    raise fault(f"compares the date {c.field} with {value!s}", c.at, f"Write for example {c.field} >= 2024-05-01")


def _key(key: str, c: Condition, value: Value) -> Compiled:
    """A condition on a front-matter key: the documents that have a fulfilling value of it."""
    date = value if isinstance(value, Date) else as_date(value) if isinstance(value, str) else None
    if isinstance(value, bool):
        if c.op != "=":
            raise fault(f"uses {c.op} with {str(value).lower()}", c.at, "Use = or !=")
        test = Compiled("coalesce(lower(f.text) = ?, false)", [str(value).lower()])
    elif date is not None and c.op in ("=", *_ORDER):
        test = _time("f.time", c, date)
        if c.op == "=" and isinstance(value, str):
            test = _any([test, _text("f.text", c, value)])
    elif isinstance(value, (int, float)) and c.op in ("=", *_ORDER):
        test = _number("f.number", c, value)
        if isinstance(value, int) and 1000 <= value <= 9999:  # a year, where the key holds dates
            test = _any([test, _time("f.time", c, Date(str(value)))])
    elif c.op == "contains":
        text = _text_value(c, value)
        test = Compiled(
            "CASE WHEN f.listed THEN lower(nfc_normalize(f.text)) = lower(?)"
            " ELSE contains(lower(nfc_normalize(f.text)), lower(?)) END",
            [text, text],
        )
    else:
        test = _text("f.text", c, value)
    sql = f"(d.number IN (SELECT f.document_number FROM fields f WHERE nfc_normalize(f.key) = ? AND {test.sql}))"
    return Compiled(sql, [key, *test.values])


def _text_value(c: Condition, value: Value) -> str:
    """The value as text: numbers and dates as they would be written, so that `contains 2024` works."""
    if isinstance(value, bool):
        raise fault(f"compares the text {c.field} with {str(value).lower()}", c.at, "Put text in quotes")
    if not isinstance(value, str) and c.op in _ORDER:
        raise fault(f"compares the text {c.field} with {value!s}", c.at, f"Put it in quotes: '{value!s}'")
    return _nfc(str(value))


def glob_pattern(glob: str) -> str:
    r"""A path glob as a regular expression (RE2): `*` and `?` stay within a folder, `**` crosses, `[a-z]` and `[!a]`.

    `**/` also matches no folder at all: `docs/**/a.md` finds `docs/a.md`.
    """
    out, i = ["(?s)"], 0
    while i < len(glob):
        if glob.startswith("**/", i) and (i == 0 or glob[i - 1] == "/"):
            out.append("(?:.*/)?")
            i += 3
        elif glob.startswith("**", i):
            out.append(".*")
            i += 2
        elif glob[i] == "*":
            out.append("[^/]*")
            i += 1
        elif glob[i] == "?":
            out.append("[^/]")
            i += 1
        elif glob[i] == "[" and (group := _GROUP.match(glob, i)) and _forward(group.group(2)):
            inside = re.sub(r"([\\\[\]&~|^])", r"\\\1", group.group(2))
            out.append(f"[{'^/' if group.group(1) else ''}{inside}]")
            i = group.end()
        else:
            out.append(re.escape(glob[i]))
            i += 1
    return "".join(out)


def _forward(group: str) -> bool:
    """Whether every range of a group runs upwards; `[z-a]` is not a group but these five characters."""
    return all(low <= high for low, high in re.findall(r"(?s)(.)-(.)", group))


_GROUP = re.compile(r"\[(!?)((?:[^\]/\-]-[^\]/\-]|[^\]/\-])+)\]")
