"""What to look for word by word: keywords as people write them, keywords drawn from a question, and names from code.

grep takes words, not questions. Keywords that were given are split (`"a b"` is one). Where none were given, a question
yields its quoted phrases, its identifiers and codes, then its rarest words in this corpus: rare words say most about
what is meant (Spärck Jones, "A statistical interpretation of term specificity", 1972). The code or pattern that somebody
has open in an editor yields the names in it, which are added to what the vector side embeds.

Pure: text in, words out; the corpus's frequencies come in as a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from workbench.plan.plan import Plan
from workbench.records import Span
from workbench.store.grep.pattern import GrepPattern, matches, prepare
from workbench.store.lexical.tokens import STOP_WORDS

MOST_KEYWORDS = 8
MOST_CONTEXT = 10

_PIECE = re.compile(r'(?P<not>(?<!\S)-)?(?:"(?P<straight>[^"]*)"|“(?P<curly>[^”]*)”)|(?P<word>[^\s"“”]+)|["“”]')
_EDGES = ".,;:!?()[]{}<>'`’‘*…/\\|&="
_LONGEST_WORD = 200
_CODE = re.compile(
    r"""
    .*\w[_./\\:@-]+\w.*[_\d].*      # parts joined by signs, with a digit or underscore: ACME-INV-49302, a_b, v1.2
    | .*\w(?:_|::|\.)\w.*           # parts joined as code joins them: foo_bar, std::vector, numpy.sum
    | .*[a-z][A-Z].*                # camelCase
    | [A-Z][A-Z0-9]+s?              # BM25, HTTP
    | .*[^\W\d_].*\d.* | .*\d.*[^\W\d_].*
    | [A-Za-z](?:\+\+|\#) | \.[A-Z]\w+
    | __\w+__ | --?\w[\w-]+ | \d+
    """,
    re.VERBOSE,
)

_SOURCE = re.compile(
    r"""
    (?P<comment>/\*.*?(?:\*/|\Z)|(?<![:\w])//[^\n]*|(?m:^)[ \t]*\#(?![\w!]*[ \t]*\()[^\n]*)
    | "(?P<double>(?:[^"\\\n]|\\.)*)" | (?<!\w)'(?P<single>(?:[^'\\\n]|\\.)*)' | `(?P<back>(?:[^`\\]|\\.)*)`
    | (?P<name>(?<![\w.])[^\W\d]\w* | (?<=\.)[^\W\d]\w*)(?P<call>\s*\()?
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTES = re.compile(r"[^\W\d_][\w#]*")
_NOTE = re.compile(r"[A-Ga-g](?:##?|bb?|s)?-?\d?")

# Words of programming languages, which name nothing of the person's own.
_RESERVED_WORDS = """
    abstract and as assert async await begin bool boolean break byte case catch char class const continue debugger def
    default del delete do double elif else elsif end ensure enum except export extends extern false final finally float
    fn for foreach from func function global goto if impl implements import in include instanceof int interface is lambda
    let long match mod module mut namespace new nil nonlocal not null operator or override package pass private protected
    pub public raise readonly require return self short signed sizeof static str string struct super switch template then
    this throw throws trait true try type typedef typeof undefined union unless unsigned until use using var virtual void
    volatile where while with xor yield None True False
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def parse_keywords(text: str) -> tuple[str, ...]:
    """Split keywords at spaces; what is in double quotes is one. In order, each once, nothing left out but spaces.

    A quote that is not closed is ignored.
    """
    return _distinct(phrase if phrase is not None else word for phrase, word, _ in _pieces(text))


def quoted_phrases(query: str) -> tuple[str, ...]:
    """The phrases in double quotes of a query, in order, each once; those excluded with `-` left out."""
    return _distinct(phrase for phrase, _, negated in _pieces(query) if phrase is not None and not negated)


def extract_keywords(
    query: str, frequencies: Callable[[Sequence[str]], Sequence[int]], most: int = MOST_KEYWORDS
) -> tuple[str, ...]:
    """Draw keywords from a question.

    Args:
        query: The question, in the query syntax: excluded words are left out, `OR` and a closing `*` mean nothing here.
        frequencies: In how many records each of some words occurs.
        most: How many keywords at most.

    Returns:
        Quoted phrases in order; then identifiers and codes in order; then the other words that are no stop words, from
        the rarest to the most frequent, ties in order, words that occur nowhere last. If nothing is left, the words as
        they are. Each once whatever its case.
    """
    phrases = list(quoted_phrases(query))
    words = [word for phrase, word, negated in _pieces(query) if phrase is None and not negated]
    words = [stripped for word in words if word != "OR" and not word.startswith("-") and (stripped := _stripped(word))]
    codes = [word for word in words if len(word) > _LONGEST_WORD or _CODE.fullmatch(word)]
    known = set(codes)
    rest = (word for word in words if word not in known)
    plain = [word for word in rest if word.lower() not in STOP_WORDS and not _is_contraction(word)]
    plain = list(_distinct(plain, fold=True))
    counts = dict(zip(plain, map(int, frequencies(plain) if plain else ()), strict=True))
    plain.sort(key=lambda word: (counts[word] == 0, counts[word]))
    found = _distinct((*phrases, *codes, *plain), fold=True)
    return (found or _distinct(words, fold=True) or parse_keywords(query))[:most]


def context_keywords(text: str, most: int = MOST_CONTEXT) -> tuple[str, ...]:
    """Names in the code or pattern that somebody has open: functions, identifiers, and the words of quoted patterns.

    `s("bd*2 hh").note("c3 e3").lpf(800)` gives `s bd hh note c3 e3 lpf`. Left out: comments, numbers, words of
    programming languages and of plain English, and single letters unless they are called or are notes among notes.

    In order of appearance, each once.
    """
    seen: set[str] = set()
    new = (name for name in _names(text) if not (name in seen or seen.add(name)))  # type: ignore[func-returns-value]
    return tuple(islice(new, most))


def _pieces(text: str) -> Iterator[tuple[str | None, str, bool]]:
    """Phrase (None: a word), word, and whether it is excluded."""
    for found in _PIECE.finditer(text):
        phrase = found["straight"] if found["straight"] is not None else found["curly"]
        if phrase is not None:
            if phrase.strip():
                yield " ".join(phrase.split()), "", found["not"] is not None
        elif found["word"] is not None:
            yield None, found["word"], False


def _distinct(words: Iterable[str | None], fold: bool = False) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for word in words:
        if word:
            found.setdefault(word.casefold() if fold else word, word)
    return tuple(found.values())


def _stripped(word: str) -> str:
    """A word without the punctuation around it; a leading dot and closing `++` or `#` may be part of a name."""
    if re.fullmatch(r"\.[A-Z]\w+[?!,;]*", word):
        return word.rstrip("?!,;")
    return word.strip(_EDGES)


_HALVES = frozenset("isn aren wasn weren hasn haven hadn doesn didn won wouldn couldn shouldn re ve ll d m let".split())


def _is_contraction(word: str) -> bool:
    parts = re.split(r"['’]", word.lower())
    return len(parts) == 2 and all(part in STOP_WORDS or part in _HALVES for part in parts)


def _names(text: str) -> Iterator[str]:
    for found in _SOURCE.finditer(text):
        if found["comment"] is not None:
            continue
        name = found["name"]
        if name is not None:
            own = found["call"] is not None or (len(name) > 1 and name.lower() not in STOP_WORDS)
            if own and name not in _RESERVED:
                yield name
            continue
        quoted = next((q for q in (found["double"], found["single"], found["back"]) if q is not None), "")
        words = _IN_QUOTES.findall(quoted)
        notes = all(_NOTE.fullmatch(word) for word in words)
        for word in words:
            if notes or (len(word) > 1 and word.lower() not in STOP_WORDS):
                yield word


def pattern_spans(patterns: Sequence[str], text: str, plan: Plan) -> list[Span]:
    """Spans of every pattern under the plan's `grep.*` settings; line by line, as grep sees them."""
    spans: list[Span] = []
    start, searches = 0, [p.spans for p in _prepared(patterns, plan)]
    for line in text.split("\n"):
        data = line.encode("utf-8")
        ascii_only = len(data) == len(line)
        for search in searches:
            for low, high in matches(data, search):
                if not ascii_only:
                    low, high = len(data[:low].decode("utf-8")), len(data[:high].decode("utf-8"))
                if low < high:
                    spans.append(Span(start + low, start + high))
        start += len(line) + 1
    return spans


def pattern_notes(patterns: Sequence[str], plan: Plan) -> list[str]:
    """What grep cannot do with these patterns under the plan's `grep.*` settings, a sentence each."""
    return [p.note for p in _prepared(patterns, plan) if p.note]


def _prepared(patterns: Sequence[str], plan: Plan) -> list[GrepPattern]:
    how = {name: plan[f"grep.{name}"] for name in ("regex", "case", "word")}
    return [prepare(pattern, **how) for pattern in patterns if pattern]
