"""The query syntax that people know from web search, read into a value.

* `retry policy`: words. With the operator `any` a record needs one of them, with `all` every one.
* `"connection pool"`: these words next to each other, in this order; so is a compound in quotes (`"2024-118"`). It counts
  as one word, rarer than each of its own. Alone it finds nothing else; next to other words its own words count too, so that a
  question which happens to quote something (a title, an error message) still finds what is about it.
* `-draft`, `-"first draft"`: a record that holds it is left out, wherever in the query the minus is.
* `cats OR dogs`, `cats or dogs`: alternatives, in any case, as PostgreSQL's `websearch_to_tsquery` reads it; in small letters it
  must have something to offer on both sides, identifiers or none. With `all` a record must satisfy one side whole; with `any`
  it changes nothing.
* `retr*`: every word that begins so; counted as one word.

Everything else is text to look for: an unbalanced quote, a lone operator or `'; drop table` is never an error.

How much an item counts:

* A stop word counts only in an alternative that has nothing else, or in quotes. (They are indexed; a phrase has them.)
* A compound (`parse_query`, `parseQuery`, `ACME-INV-49302`, `10GB`) counts as one word, wherever the whole is or its parts next
  to each other, and its parts together as another: each of n parts 1/n. So the record with the very code comes first, and one
  with the parts is found. A lone letter or number that touches another part (`v2`, `p53`) says nothing alone and counts only in
  the whole. Where the compound must *occur* (`all`, minus, quotes), the whole must, or its parts next to each other.
* A run of Han, kana, Hangul or Thai characters is a phrase. It may be several words, or a word with endings: its pairs of
  neighbouring characters count too, together as one word (Lucene's CJK bigrams; of Thai, Lao, Khmer and Burmese, triples).
* A word that is typed twice counts twice.
* Next to an identifier (`ACME-INV-49302`: three digits or more after a letter, or with a joint; or a number of five digits) the
  words around it need not occur even with `all`, but count: who asks for the status of an invoice wants that invoice, which may
  not hold the word "status". What is quoted must still occur.

Parsing needs neither a corpus nor DuckDB.

`highlight` finds what a query matches in a text: the same pieces and words as the index.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from workbench.errors import QueryError
from workbench.records import Span, joined
from workbench.store.lexical import tokens

MAX_CHARACTERS = 10_000
"""Longest query."""


Path = tuple[str, ...]
"""Terms one after the other."""

Step = tuple[Path, ...]
"""Ways to write the same thing: any path will do."""


@dataclass(frozen=True, slots=True, order=True)
class Matcher:
    """Something that occurs in a record some number of times.

    Attributes:
        steps: One after the other in the text; a lone step of a lone path of a lone term is that term.
        prefix: Where steps is empty: words that begin so.
    """

    steps: tuple[Step, ...]
    prefix: str = ""

    @property
    def term(self) -> str | None:
        """The term, where the matcher is nothing but one."""
        if len(self.steps) == 1 and len(self.steps[0]) == 1 and len(self.steps[0][0]) == 1:
            return self.steps[0][0][0]
        return None

    @property
    def shown(self) -> str:
        """For people: a term, the terms of a phrase, a prefix and its star; the ways to write a step joined by `/`."""
        return " ".join("/".join(map(" ".join, step)) for step in self.steps) or f"{self.prefix}*"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a query asks for.

    Attributes:
        text: As typed, without quotes, minus and star.
        matcher: What must occur where the item is required or excluded.
        scored: What BM25 counts, with weights.
        beside: What it counts too where the item is not alone: the words of a phrase.
        stop: A stop word outside quotes.
        quoted: Typed in quotes.
        code: An identifier.
    """

    text: str
    matcher: Matcher
    scored: tuple[tuple[Matcher, float], ...]
    beside: tuple[tuple[Matcher, float], ...] = ()
    stop: bool = False
    quoted: bool = False
    code: bool = False


def needed(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items of an alternative that must occur with `all`: every one, or next to an identifier only the explicit ones."""
    if not any(item.code for item in items):
        return items
    return tuple(item for item in items if item.code or item.quoted or item.matcher.prefix)


def names_code(text: str) -> bool:
    """Whether every alternative of a query names an identifier."""
    alternatives = parse(text).alternatives
    return bool(alternatives) and all(any(item.code for item in items) for items in alternatives)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as read.

    Attributes:
        text: As given.
        alternatives: What is between the ORs; each has at least one item. None: the query asks for nothing.
        excluded: What must not occur.
        required: The items of each alternative that count: all but the stop words, unless there is nothing else.
        scored: What BM25 counts, each once, with its weight, in the one order in which scores are added up.
    """

    text: str
    alternatives: tuple[tuple[Item, ...], ...]
    excluded: tuple[Item, ...]
    required: tuple[tuple[Item, ...], ...]
    scored: tuple[tuple[Matcher, float], ...]


def assembled(text: str, alternatives: tuple[tuple[Item, ...], ...], excluded: tuple[Item, ...]) -> ParsedQuery:
    """The query of these items: which of them count, and what is scored."""
    required = tuple(tuple(i for i in items if not i.stop) or items for items in alternatives)
    weights: dict[Matcher, float] = {}
    for items in required:
        for item in items:
            for matcher, weight in item.scored + (item.beside if len(items) > 1 else ()):
                weights[matcher] = weights.get(matcher, 0.0) + weight
    return ParsedQuery(text, alternatives, excluded, required, tuple(sorted(weights.items())))


_QUOTES = str.maketrans(dict.fromkeys("“”„‟＂", '"'))
_LEXEMES = re.compile(r'(?P<minus>(?<![^\s"])-)?"(?P<phrase>[^"]*)"|(?P<chunk>[^\s"]+)')
_CODE = re.compile(r"(?=.*[^\W\d_].*\d|.*[-_\u2010\u2011]|\d{5})(?=(?:\D*\d){3})[\w.\-\u2010\u2011]+")
_STAR = re.compile(r"([-.\u2010\u2011]?)\*")


@lru_cache(maxsize=1024)
def parse(text: str) -> ParsedQuery:
    """Read a query; without alternatives where it holds no words. Raises QueryError where it has more than `MAX_CHARACTERS`,
    or only says what to leave out.
    """
    if len(text) > MAX_CHARACTERS:
        raise QueryError(
            f"The query has {len(text):,} characters",
            f"Shorten it to {MAX_CHARACTERS:,}, for example to the sentences that say what is wanted",
        )
    alternatives: list[list[Item]] = [[]]
    offers: set[int] = set()
    excluded: list[Item] = []
    for lexeme, items, minus in _lexemes(text):
        chunk = lexeme["chunk"] or ""
        if chunk in {"OR", "|"}:
            alternatives.append([])
        elif chunk.lower() == "or" and any(not item.stop for item in alternatives[-1]):
            offers.add(len(alternatives))
            alternatives.append([])
        else:
            (excluded if minus else alternatives[-1]).extend(items)
    for at in sorted(offers, reverse=True):
        codes = [any(item.code for item in alternatives[n]) for n in (at - 1, at)]
        # "is it safe or not" offers nothing, nor does "was ORD-20118 shipped or returned", which is about that order.
        if codes[0] != codes[1] or all(item.stop for item in alternatives[at]):
            alternatives[at - 1] += alternatives.pop(at)
    wanted = tuple(tuple(items) for items in alternatives if items)
    if excluded and not wanted:
        raise QueryError("The query only says what to leave out", "Add a word to look for")
    return assembled(text, wanted, tuple(excluded))


def _lexemes(text: str) -> Iterator[tuple[re.Match[str], list[Item], bool]]:
    """What is between spaces and quotes: its items, and whether they are excluded; an OR has none."""
    clean = text.encode("utf-8", "replace").decode("utf-8").translate(_QUOTES)
    for lexeme in _LEXEMES.finditer(clean):
        phrase, chunk = lexeme["phrase"], lexeme["chunk"]
        if phrase is not None:
            yield lexeme, in_quotes(phrase), bool(lexeme["minus"])
        elif chunk in {"OR", "|"}:
            yield lexeme, [], False
        elif chunk[0] == "-" and chunk[1:2] != "-":
            yield lexeme, _words(chunk[1:])[-1:] if _STAR.search(chunk) else in_quotes(chunk[1:]), True
        else:
            yield lexeme, _words(chunk), False


def word_matcher(text: str) -> Matcher | None:
    """What a word occurs as, operators ignored; several words are a phrase; None where there is no word."""
    items = in_quotes(text.encode("utf-8", "replace").decode("utf-8"))
    return items[0].matcher if items else None


def in_quotes(text: str) -> list[Item]:
    """The item for text in quotes: none where it holds no words."""
    pieces = tokens.PIECES.findall(text)
    if not pieces:
        return []
    steps = tuple(_step(tokens.analyse(p)) for p in pieces)
    matcher = Matcher(steps)
    if matcher.term is not None:
        return [_word(pieces[0], quoted=True)]
    words = [item for item in map(_word, pieces) if not item.stop]
    beside = tuple(scored for item in words for scored in item.scored if scored[0] != matcher)
    return [Item(text, matcher, ((matcher, 1.0),), beside, quoted=True)]


def _words(chunk: str) -> list[Item]:
    found = list(tokens.PIECES.finditer(chunk))
    items: list[Item] = []
    at = 0
    while at < len(found):
        piece = found[at]
        star = _STAR.match(chunk, piece.end()) if at == len(found) - 1 else None
        last = at
        while tokens.unspaced(piece[0]) and last + 1 < len(found) and found[last].end() == found[last + 1].start():
            if not tokens.unspaced(found[last + 1][0]):
                break
            last += 1
        if last > at:
            items.append(_run([p[0] for p in found[at : last + 1]]))
        elif star and not tokens.unspaced(piece[0]):
            prefix = Matcher((), tokens.fold(tokens.plain_joints(piece[0] + star[1])))
            items.append(Item(piece[0] + star[1], prefix, ((prefix, 1.0),)))
        else:
            items.append(_word(piece[0]))
        at = last + 1
    return items


def _run(pieces: Sequence[str]) -> Item:
    steps = tuple(_step(tokens.analyse(p)) for p in pieces)
    matcher = Matcher(steps)
    scored = [(matcher, 1.0)]
    size = 2 if tokens.pairs(pieces[0]) else 3
    grams = len(steps) - size + 1
    if grams > 1:
        scored += [(Matcher(steps[i : i + size]), 1 / grams) for i in range(grams)]
    return Item("".join(pieces), matcher, tuple(scored))


def _word(piece: str, quoted: bool = False) -> Item:
    analysis = tokens.analyse(piece)
    matcher = Matcher((_step(analysis),))
    code = _CODE.fullmatch(piece) is not None
    if matcher.term is not None:
        stop = not quoted and not analysis.symbol and analysis.parts[0].word in tokens.STOP_WORDS
        return Item(piece, matcher, ((matcher, 1.0),), stop=stop, quoted=quoted, code=code)
    n = len(analysis.parts)
    scored = [(matcher, 1.0)]
    scored += [(_term(w.word), w.span / n) for w in analysis.outermost if w.span < n]
    scored += [
        (_term(p.word), 1 / n) for p in analysis.parts if p.word not in tokens.STOP_WORDS and not tokens.leans(p, piece)
    ]
    return Item(piece, matcher, tuple(scored), quoted=quoted, code=code)


def _term(word: str) -> Matcher:
    return Matcher((((tokens.stem(word),),),))


def _step(analysis: tokens.Analysis) -> Step:
    """The ways to write a piece: the whole, its words, its parts."""
    parts, wholes, symbol = analysis.parts, analysis.outermost, analysis.symbol
    if symbol:
        return ((tokens.stem((wholes or parts)[0].word),),)
    paths = {tuple(tokens.stem(p.word) for p in parts): None}
    over = [w for w in wholes if w.span == len(parts)]
    paths |= {(tokens.stem(w.word),): None for w in over}
    inner = {w.first: w for w in wholes if w not in over}
    if inner:
        words: list[str] = []
        at = 0
        while at < len(parts):
            word = inner.get(at)
            words.append(word.word if word else parts[at].word)
            at += word.span if word else 1
        paths[tuple(map(tokens.stem, words))] = None
    return tuple(sorted(paths))


def without(text: str, excluded: Collection[str]) -> str:
    """A query without the exclusions of these texts (`Item.text`), as somebody would type it."""
    kept = [
        lexeme[0]
        for lexeme, items, minus in _lexemes(text)
        if not (minus and any(item.text in excluded for item in items))
    ]
    return " ".join(kept)


def unquoted(text: str) -> str:
    """A query with its phrases as words; what is excluded stays as it is."""
    lexemes = ((lexeme, minus) for lexeme, _, minus in _lexemes(text))
    return " ".join(lexeme["phrase"] if lexeme["phrase"] and not minus else lexeme[0] for lexeme, minus in lexemes)


class _Occurrence(NamedTuple):
    """A word in a text: itself and its term, its positions (`start` to before `end`) and its characters."""

    word: str
    term: str
    start: int
    end: int
    first: int
    last: int


def highlight(query: ParsedQuery, text: str) -> tuple[Span, ...]:
    """Character spans of the text that what the query counts matches, in order; overlapping ones are one.

    A phrase is marked from its first word to its last. Excluded words and stop words that do not count are not marked.
    """
    matchers = [matcher for matcher, _ in query.scored]
    words = _words_of(matchers, text)
    spans = {span for matcher in matchers for span in _matched(matcher, words)}
    return tuple(Span(start, end) for start, end in joined(spans))


def occurrences_of(matchers: Sequence[Matcher], text: str) -> list[int]:
    """How often each matcher occurs in a text, as the index counts it."""
    words = _words_of(matchers, text)
    terms = {occurrence.term for occurrence in words}
    found = []
    for matcher in matchers:
        # Most of what is asked for is not in most texts.
        if matcher.steps and not any(terms.issuperset(path) for path in matcher.steps[0]):
            found.append(0)
            continue
        places = _matched(matcher, words)
        found.append(len({last for _, last in places}) if matcher.steps else len(places))
    return found


def _words_of(matchers: Sequence[Matcher], text: str) -> list[_Occurrence]:
    """The words of a text that the matchers name, or all if one is a prefix."""
    wanted = {term for matcher in matchers for step in matcher.steps for path in step for term in path}
    prefixes = any(not matcher.steps for matcher in matchers)
    found: list[_Occurrence] = []
    position = 0
    for match in tokens.PIECES.finditer(text) if matchers else ():
        positions, terms, words = analysed(match[0])
        if prefixes or not wanted.isdisjoint(terms):
            at = match.start()
            for word, term, start, end, first, last in words:
                if prefixes or term in wanted:
                    found.append(_Occurrence(word, term, position + start, position + end, at + first, at + last))
        position += positions
    return found


@lru_cache(maxsize=1 << 16)
def analysed(piece: str) -> tuple[int, frozenset[str], list[_Occurrence]]:
    """How many positions a piece takes, its terms, and its words relative to its start. Texts repeat their pieces, and most hold
    nothing that was asked for.
    """
    parts, wholes, _ = tokens.analyse(piece)
    words = [_Occurrence(p.word, tokens.stem(p.word), i, i + 1, p.start, p.end) for i, p in enumerate(parts)]
    words += [_Occurrence(w.word, tokens.stem(w.word), w.first, w.first + w.span, w.start, w.end) for w in wholes]
    return len(parts), frozenset(word.term for word in words), words


def _matched(matcher: Matcher, words: Sequence[_Occurrence]) -> list[tuple[int, int]]:
    if not matcher.steps:
        return [(o.first, o.last) for o in words if o.word.startswith(matcher.prefix)]
    # (next position, first character, last character) for every way to come there; None: it may start anywhere
    state: set[tuple[int, int, int]] | None = None
    for step in matcher.steps:
        state = set().union(*(_advance(path, words, state) for path in step))
    return [(first, last) for _, first, last in state or ()]


def _advance(
    path: Path, words: Sequence[_Occurrence], state: set[tuple[int, int, int]] | None
) -> set[tuple[int, int, int]]:
    for term in path:
        found = [o for o in words if o.term == term]
        if state is None:
            state = {(o.end, o.first, o.last) for o in found}
        else:
            begun: dict[int, list[int]] = {}
            for position, first, _ in state:
                begun.setdefault(position, []).append(first)
            state = {(o.end, first, o.last) for o in found for first in begun.get(o.start, ())}
    return state or set()
