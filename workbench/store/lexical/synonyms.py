"""A corpus's own words: synonyms and stop words, applied to a query when it is asked, never to the index.

They are in the corpus's file `synonyms.yaml`, and may be edited there or on the page. Where that file does not exist they are
read from the same keys of `corpus.yaml`, where earlier versions kept them::

    synonyms:               # words that mean the same here; a phrase of several words is written as it is read
      - [k8s, kubernetes]
      - [CI, continuous integration]
    stop_words: [acme, inc]

A word of the query that is in a group is searched as itself OR any other of its group, each with the weight of the word. With
`keyword.operator` `all` any of them satisfies it. Excluded words and prefixes stay as they are. A stop word counts as the
built-in ones do: only in quotes, or where nothing else is asked. Everything is compared as the index compares it, stemmed and
without accents, so that `retry` covers `retries`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.errors import CorpusError, SettingError, quoted
from workbench.settings import read_yaml
from workbench.store.generations import write_whole
from workbench.store.lexical.query import Item, Matcher, ParsedQuery, assembled, in_quotes, parse

FILES = ("synonyms.yaml", "corpus.yaml")
"""Where a vocabulary is read from: the first that exists."""

MOST_GROUPS = 10_000
MOST_STOP_WORDS = 10_000
LONGEST_WORD = 200
_MOST_PATHS = 32
_MOST_RUNS = 4


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Synonyms and stop words of one corpus. Equal by value; hashable.

    Attributes:
        synonyms: Groups of at least two words or phrases, as written.
        stop_words: As written, sorted, each once.
    """

    synonyms: tuple[tuple[str, ...], ...] = ()
    stop_words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.synonyms or self.stop_words)


NONE = Vocabulary()


@dataclass(frozen=True, slots=True)
class Spoken:
    """A query under a vocabulary.

    Attributes:
        query: What is searched.
        also: What is searched besides what was typed, as the vocabulary writes it, in order.
        dropped: Words of the query that are stop words here and do not count, as typed.
    """

    query: ParsedQuery
    also: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def read(text: str, vocabulary: Vocabulary) -> ParsedQuery:
    """A query as read, under a vocabulary. Raises QueryError as `parse` does."""
    return spoken(text, vocabulary).query


@lru_cache(maxsize=256)
def spoken(text: str, vocabulary: Vocabulary) -> Spoken:
    """A query under a vocabulary, with what that changes. Raises QueryError as `parse` does."""
    parsed = parse(text)
    return _spoken(parsed, vocabulary) if vocabulary else Spoken(parsed)


# --- applying it ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Words:
    """A vocabulary as matchers: the group of each word, and the stop words."""

    groups: Mapping[tuple[Any, ...], tuple[int, ...]]
    members: tuple[tuple[tuple[str, Item], ...], ...]
    longest: int
    stop: frozenset[Matcher]


@lru_cache(maxsize=16)
def _words(vocabulary: Vocabulary) -> _Words:
    groups: dict[tuple[Any, ...], tuple[int, ...]] = {}
    members = []
    for number, group in enumerate(vocabulary.synonyms):
        known: dict[Matcher, tuple[str, Item]] = {}
        for word in group:
            for item in in_quotes(word):
                known.setdefault(item.matcher, (word, item))
        members.append(tuple(known.values()))
        for matcher in known:
            groups[matcher.steps] = (*groups.get(matcher.steps, ()), number)
    longest = max((len(steps) for steps in groups), default=0)
    stop = frozenset(item.matcher for word in vocabulary.stop_words for item in in_quotes(word))
    return _Words(groups, tuple(members), longest, stop)


def _spoken(parsed: ParsedQuery, vocabulary: Vocabulary) -> Spoken:
    words = _words(vocabulary)
    dropped: dict[str, None] = {}
    alternatives = []
    for items in parsed.alternatives:
        marked = tuple(
            replace(item, stop=True) if not item.quoted and item.matcher in words.stop else item for item in items
        )
        if not all(item.stop for item in marked):
            dropped.update({m.text: None for m, i in zip(marked, items, strict=True) if m.stop and not i.stop})
        alternatives.append(marked)
    query = assembled(parsed.text, tuple(alternatives), parsed.excluded)
    weights = dict(query.scored)
    also: dict[str, None] = {}
    wanted: list[tuple[Item, ...]] = []
    for items in query.required:
        own = {matcher for item in items for matcher, _ in item.scored}
        singles, runs = _found(items, words)
        others = [*itertools.chain.from_iterable(singles.values()), *(one for _, _, some in runs for one in some)]
        also.update(dict.fromkeys(word for word, _ in others))
        added = {matcher: weight for _, item in others for matcher, weight in item.scored if matcher not in own}
        for matcher, weight in added.items():
            weights[matcher] = weights.get(matcher, 0.0) + weight
        joined = tuple(_either(item, singles.get(n, ())) for n, item in enumerate(items))
        wanted += [joined, *_with_runs(joined, runs)]
    query = replace(query, required=tuple(wanted), scored=tuple(sorted(weights.items())))
    return Spoken(query, tuple(also), tuple(dropped))


_Members = Sequence[tuple[str, Item]]
_Run = tuple[int, int, _Members]


def _found(items: Sequence[Item], words: _Words) -> tuple[dict[int, _Members], list[_Run]]:
    """Where groups apply: at single items by position, and at runs of several (start, end, the others of the group)."""
    singles: dict[int, _Members] = {}
    runs: list[_Run] = []
    for start in range(len(items)):
        steps: tuple[Any, ...] = ()
        for end in range(start + 1, min(len(items), start + words.longest) + 1):
            if not items[end - 1].matcher.steps:
                break  # a prefix is no word
            steps += items[end - 1].matcher.steps
            others = tuple(
                m for g in words.groups.get(steps, ()) for m in words.members[g] if m[1].matcher.steps != steps
            )
            if others and end == start + 1:
                singles[start] = others
            elif others and len(runs) < _MOST_RUNS:
                runs.append((start, end, others))
    return singles, runs


def _either(item: Item, others: _Members) -> Item:
    if not others:
        return item
    paths = {path for matcher in (item.matcher, *(o.matcher for _, o in others)) for path in _paths(matcher)}
    return replace(item, matcher=Matcher((tuple(sorted(paths)),)))


def _paths(matcher: Matcher) -> list[tuple[str, ...]]:
    """The ways to write a matcher, as terms one after the other; of very many, the first."""
    ways = itertools.islice(itertools.product(*matcher.steps), _MOST_PATHS)
    return [tuple(itertools.chain.from_iterable(way)) for way in ways]


def _with_runs(items: tuple[Item, ...], runs: Sequence[_Run]) -> list[tuple[Item, ...]]:
    """Alternatives of the items in which runs of words are replaced by what means the same."""
    made: list[tuple[Item, ...]] = []
    for size in range(1, len(runs) + 1):
        for chosen in itertools.combinations(runs, size):
            if any(a[1] > b[0] for a, b in itertools.pairwise(chosen)):
                continue
            parts: list[Item] = []
            at = 0
            for start, end, others in chosen:
                first, rest = others[0][1], others[1:]
                parts += [*items[at:start], _either(first, rest)]
                at = end
            made.append((*parts, *items[at:]))
    return made


# --- reading and writing the file -------------------------------------------------------------------------------------


def load_vocabulary(corpus: Path) -> Vocabulary:
    """The vocabulary of a corpus folder.

    Raises:
        SettingError: The file cannot be read, or holds something else under these keys.
    """
    for file in (corpus / name for name in FILES):
        try:
            data = read_yaml(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as exc:
            raise SettingError(f"{file} cannot be read: {exc}", "Fix it, or move it away") from exc
        # corpus.yaml may also be a list of indexing rules.
        return parse_vocabulary(data, str(file)) if isinstance(data, Mapping) else NONE
    return NONE


def parse_vocabulary(data: Mapping[str, Any], where: str = FILES[0]) -> Vocabulary:
    """A vocabulary from the values under `synonyms` and `stop_words`. Raises SettingError that names `where`."""
    groups, stop = data.get("synonyms") or [], data.get("stop_words") or []
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise SettingError(
            f"synonyms in {where} is not a list of lists", "Write one `- [word, other word]` for each group"
        )
    if not isinstance(stop, list):
        raise SettingError(f"stop_words in {where} is not a list", "Write `stop_words: [word, word]`")
    for value in itertools.chain(stop, *groups):
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise SettingError(f"{quoted(value)} in {where} is not a word", "Write it in quotes")
    return vocabulary_of([list(map(str, group)) for group in groups], list(map(str, stop)), where)


def vocabulary_of(groups: Sequence[Sequence[str]], stop_words: Sequence[str], where: str = "the page") -> Vocabulary:
    """A checked vocabulary: spaces joined, repetitions and empty words left out.

    Raises:
        SettingError: A group with fewer than two words, a word without letters or digits, or too many.
    """
    cleaned = []
    for number, group in enumerate(groups, 1):
        words = tuple(dict.fromkeys(" ".join(word.split()) for word in group if word.strip()))
        if not words:
            continue
        if len(words) < 2:
            raise SettingError(
                f"Group {number} of the synonyms in {where} has one word, {words[0]!r}",
                "Write at least two words that mean the same, with a comma between them",
            )
        cleaned.append(words)
    stop = tuple(sorted({" ".join(word.split()) for word in stop_words if word.strip()}))
    for word in (*itertools.chain.from_iterable(cleaned), *stop):
        if len(word) > LONGEST_WORD or not in_quotes(word):
            raise SettingError(
                f"{word[:80]!r} in {where} is not a word", "Use words with letters or digits, without quotes"
            )
    several = [word for word in stop if len(word.split()) > 1]
    if several:
        raise SettingError(
            f"The stop word {several[0]!r} in {where} is several words", "Write each stop word by itself"
        )
    if len(cleaned) > MOST_GROUPS or len(stop) > MOST_STOP_WORDS:
        raise SettingError(
            f"There are {len(cleaned):,} groups of synonyms and {len(stop):,} stop words in {where}",
            f"Use at most {MOST_GROUPS:,} and {MOST_STOP_WORDS:,}",
        )
    return Vocabulary(tuple(cleaned), stop)


def save_vocabulary(corpus: Path, vocabulary: Vocabulary) -> None:
    """Write a vocabulary into `synonyms.yaml`; what `corpus.yaml` holds of one no longer counts. Raises CorpusError."""
    import yaml

    file = corpus / FILES[0]
    values = {"synonyms": [list(group) for group in vocabulary.synonyms], "stop_words": list(vocabulary.stop_words)}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, default_flow_style=None, width=10**6)
    try:
        write_whole(file, text)
    except OSError as exc:
        raise CorpusError(
            f"{file} cannot be written: {exc.strerror or exc}", "Ask for write access to the corpus folder"
        ) from exc
