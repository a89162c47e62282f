"""A run: what a search answered to every judged query, as document keys, best first.

Measures judge documents, a search returns chunks. Here chunks become documents: a document counts once, at the rank of its
best chunk, so that a figure does not depend on how documents were cut. Judgments may name a document by its path, its id
or the part of a record's path after `#`; whichever of a hit's names the judgments use is its key.

Where passages were judged, a chunk stands for every judged passage that it has (`inherits`), and each passage counts once, at
the rank of the first chunk that has it. A chunk whose passages all counted before takes no place; one that has none counts as
itself, not judged. So finer or coarser chunks change ranks, not what can be found.

A hit also counts for what was judged of others with the same text, which dedupe removed for it (`with_alike`): whoever reads it
has read them.

Where queries are documents of the collection, as in BEIR's ArguAna, each finds itself: `as_indexed` decides whether a query's
own document is left out, and the ranks below it close up.
"""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import JudgmentError, QueryError
from workbench.judgments.formats import Draft, lines_of, one_spaced, spoken, words
from workbench.judgments.qrels import JudgedPassage, Judgments, Topic, inherits
from workbench.records import Progress, Span
from workbench.retrieve.result import SearchResult

if TYPE_CHECKING:
    import polars as pl

    from workbench.ranking.candidates import Ints
    from workbench.store.records import StoredRecords
    from workbench.store.types import Scope

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NOWHERE = Span(0, 0)
_TRIED = 200  # queries whose own documents are read, to decide whether queries are documents


@dataclass(frozen=True, slots=True)
class Named:
    """A candidate by the names of its document: no text is read to measure it. `span`: Its characters, where passages may be
    judged.
    """

    document_id: str
    path: str
    span: Span = _NOWHERE
    alike: tuple[Named, ...] = ()  # those of the same text that dedupe removed for it


@dataclass(frozen=True, slots=True)
class Run:
    """The answers to the judged queries.

    Attributes:
        rankings: query id -> document keys, best first, each once.
        latencies_ms: query id -> milliseconds, by the search's own clock; empty where not measured.
        cut_at: Number of hits at which at least half of the answers ended, as a limit or a depth does; None where they
            ended at different numbers or had no more to give, or where it is not known.
    """

    rankings: Mapping[str, tuple[str, ...]]
    name: str = "run"
    latencies_ms: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    cut_at: int | None = None

    @property
    def depth(self) -> int:
        """Length of the longest ranking."""
        return max(map(len, self.rankings.values()), default=0)

    def to_trec(self) -> str:
        """The run in the TREC form: `query Q0 document rank score name`, one line a document.

        Scores are whole numbers that fall by one, because programs that read runs sort by score again and break ties by
        document; so every program sees this order. Spaces inside a name become `%20` (`words`).
        """
        tag = words(self.name) or "run"
        return "".join(
            f"{words(query_id)} Q0 {words(key)} {rank} {len(keys) - rank + 1} {tag}\n"
            for query_id, keys in self.rankings.items()
            for rank, key in enumerate(keys, 1)
        )

    def save_trec(self, path: str | Path) -> Path:
        """Write `to_trec()` to a file and return its path."""
        target = Path(path)
        target.write_text(self.to_trec(), encoding="utf-8", newline="\n")
        return target


def document_key(hit: Named, known: frozenset[str]) -> str:
    """The name by which judgments know a hit's document: its id, its path, or the part after `#` of a record's path; else its
    path.
    """
    return next((name for name in _names(hit) if name in known), hit.path)


def _names(hit: Named) -> tuple[str, ...]:
    record, _, own = hit.path.rpartition("#")
    return (hit.document_id, hit.path, *([own] if record else []))


def passage_keys(hits: Sequence[Named], passages: Sequence[JudgedPassage]) -> tuple[str, ...]:
    """Keys of the judged passages that hits have, each once, at its best hit's place. `passages`: What was judged for the
    query. Where a hit has several they follow each other in the order of the document, and a judged document counts for a hit
    without a judged passage.
    """
    judged: dict[str, list[JudgedPassage]] = {}
    for passage in sorted(passages, key=lambda p: (p.span or Span(-1, -1), p.key)):
        judged.setdefault(passage.document_id, []).append(passage)
    keys: dict[str, None] = {}
    for hit in hits:
        own = judged.get(hit.document_id, [])
        found = [p.key for p in own if p.span is not None and inherits(hit.span, p.span)]
        found = found or [p.key for p in own if p.span is None] or [f"{hit.path}#{hit.span.start}-{hit.span.end}"]
        keys.update(dict.fromkeys(found))
    return tuple(keys)


def with_alike(own: Sequence[str], alike: Sequence[str], grades: Mapping[str, int]) -> tuple[str, ...]:
    """Keys that a hit stands for, those of the same text that dedupe removed for it included. Returns the relevant ones, the
    most relevant first, where some of the others are relevant, or nothing of its own is judged and something of theirs is;
    else its own.
    """
    if grades.keys().isdisjoint(alike):
        return tuple(own)
    every = dict.fromkeys((*own, *alike))
    relevant = sorted((key for key in every if grades.get(key, 0) > 0), key=lambda key: -grades[key])
    if relevant:
        return tuple(relevant)
    return tuple(own) if not grades.keys().isdisjoint(own) else tuple(key for key in alike if key in grades)[:1]


def judged_keys(hits: Sequence[Named], judgments: Judgments, query_id: str) -> tuple[str, ...]:
    """Keys of what hits stand for in the judgments, each once: of passages where passages were judged, else of documents."""

    def keys(some: Sequence[Named]) -> tuple[str, ...]:
        if judgments.passages:
            return passage_keys(some, judgments.passages.get(query_id, ()))
        return tuple(dict.fromkeys(document_key(hit, judgments.document_keys) for hit in some))

    if not judgments.drop_identical_ids and not any(hit.alike for hit in hits):
        return keys(hits)
    found: dict[str, None] = {}
    for hit in hits:
        group = [h for h in (hit, *hit.alike) if not is_own(judgments, query_id, h)]
        found.update(dict.fromkeys(with_alike(keys(group[:1]), keys(group[1:]), judgments.qrels[query_id])))
    return tuple(found)


def is_own(judgments: Judgments, query_id: str, hit: Named) -> bool:
    """Whether a hit is of the query's own document, which is left out."""
    return bool(judgments.drop_identical_ids) and unicodedata.normalize("NFC", query_id) in _names(hit)


def as_indexed(judgments: Judgments, records: StoredRecords, scope: Scope) -> Judgments:
    """Judgments as a corpus measures them: it is decided whether the queries' own documents are left out.

    Where the judgments do not say, they are if for more than half of the queries the document of the query's id starts with
    the query's text, or has it as its title: ids alone are equal where both are plain numbers, too. Returns judgments with
    `drop_identical_ids` True or False, and a note if it is True.
    """
    asked = judgments.drop_identical_ids
    drop = _are_documents(judgments, records, scope) if asked is None else asked
    if not drop:
        return replace(judgments, drop_identical_ids=False)
    note = "Each query's own document, the one with the query's id, is left out of its results before they are measured"
    notes = judgments.notes
    if not any(n.startswith(note) for n in notes):
        why = ", because the queries are documents of the corpus; --no-drop-identical-ids counts it"
        notes = (*notes, note + (why if asked is None else ""))
    return replace(judgments, drop_identical_ids=True, notes=notes)


def _are_documents(judgments: Judgments, records: StoredRecords, scope: Scope) -> bool:
    """Whether queries are the texts of the documents with their ids."""
    topics = [judgments.topics[i] for i in judgments.query_ids if i in judgments.topics]
    topics = topics[:: max(1, len(topics) // _TRIED)]
    own = {t.query_id: unicodedata.normalize("NFC", t.query_id) for t in topics}  # as documents' names are
    numbers = records.numbers_named(list(own.values()), scope) if topics else {}
    if 2 * len(numbers) <= len(topics):
        return False
    wanted = sorted({found[0] for found in numbers.values()})
    documents = dict(zip(wanted, records.documents(wanted), strict=True))
    same = 0
    for topic in topics:
        if own[topic.query_id] in numbers and (query := _plain(topic.text)):
            document = documents[numbers[own[topic.query_id]][0]]
            title, text = _plain(document.title), _plain(document.text)
            same += query == title or text.startswith(query) or text.removeprefix(title).lstrip().startswith(query)
    return 2 * same > len(topics)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def named(result: SearchResult, positions: Ints | None = None) -> list[Named]:
    """The candidates of a result as judgments know them, best first; of all, or of some (positions in `fused`)."""
    groups = ([Named(d, p, span=s) for d, p, s in group] for group in result.alike(positions))
    return [replace(first, alike=tuple(others)) if others else first for first, *others in groups]


def make_run(
    search: Callable[[Topic], SearchResult],
    judgments: Judgments,
    *,
    name: str = "run",
    depth: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Ask every judged query, in order.

    A query that the search cannot read (QueryError) is a failure and counts 0 in every measure; it is listed, and the
    others go on. Every other error ends the run: a mean over what did not run is no result.

    Args:
        search: Searches; the whole fused list counts, and not only the rows that are shown.
        depth: Documents (or judged passages) of each ranking that are kept; None keeps all.
    """
    topics = [judgments.topic(query_id) for query_id in judgments.query_ids]
    rankings: dict[str, tuple[str, ...]] = {}
    latencies: dict[str, float] = {}
    failures: dict[str, str] = {}
    warned: Counter[str] = Counter()
    lengths: list[int] = []
    begun = time.monotonic()
    for number, topic in enumerate(topics, 1):
        try:
            answer = search(topic)
        except QueryError as exc:
            rankings[topic.query_id], failures[topic.query_id] = (), exc.message
        else:
            latencies[topic.query_id] = answer.timings_ms["total_ms"]
            hits = named(answer)
            rankings[topic.query_id] = judged_keys(hits, judgments, topic.query_id)[:depth]
            lengths.append(len(hits) if answer.cut_by_depth else 0)
            warned.update(list(dict.fromkeys(answer.warnings)))
        if progress is not None:
            progress(Progress.since(begun, "evaluate", number, len(topics), topic.text))
    warnings = [f"{count} of {len(topics)} queries: {text}" for text, count in warned.items()]
    if failures:
        query_id, reason = next(iter(failures.items()))
        warnings.append(f"{len(failures)} of {len(topics)} queries could not be run and count 0: {query_id} ({reason})")
    longest = max(lengths, default=0)
    cut = longest if longest and 2 * lengths.count(longest) >= len(lengths) else None
    return Run(rankings, name, latencies, failures, tuple(warnings), cut)


def query_frame(judgments: Judgments, query_ids: Sequence[str], **columns: Any) -> pl.DataFrame:
    """One row a query: query_id, query, and other columns, of fractions unless they say otherwise."""
    import polars as pl

    asked = {i: topic.text for i, topic in judgments.topics.items()}
    texts = {"query_id": query_ids, "query": [asked.get(i) for i in query_ids]}
    made = {name: pl.Series(values, dtype=pl.String) for name, values in texts.items()}
    for name, values in columns.items():
        made[name] = values if isinstance(values, pl.Series) else pl.Series(values, dtype=pl.Float64)
    return pl.DataFrame(made)


# --- runs of other programs: names of documents without texts, measured wherever judgments are of documents ---


def load_run(path: str | Path, *, name: str | None = None) -> Run:
    """Read a run in the TREC form: `query Q0 document rank score name`, one line a document.

    As programs that read runs do, the score decides the order, the greatest first; equal scores stay in the order of their
    ranks. A name of a document may hold spaces.

    Args:
        path: The file.
        name: What to call the run; None is the name that its lines have, or the file's where they have several.

    Returns:
        Rankings of the names that the file spells (`%20` is a space); `evaluate_run` of a corpus and `as_judged` take them
        for documents.

    Raises:
        JudgmentError: The file cannot be read, holds no line, or has a line that is no line of a run; nothing of it is used then.
    """
    file = Path(path)
    found: dict[str, dict[str, tuple[float, int, int]]] = {}
    tags: dict[str, None] = {}
    draft = Draft()
    for line, row in lines_of(file):
        head, tail = row.split(None, 2), row.rsplit(None, 3)
        if len(row.split()) < 6:
            draft.fault(file, line, "there are fewer than 6 fields: query, Q0, document, rank, score, name")
            continue
        if head[1] != "Q0" and "Q0" in row.split()[2:-4]:
            draft.fault(file, line, "the query's id has a space: write %20 in its place")
            continue
        query_id, document = spoken(head[0]), spoken(head[2].rsplit(None, 3)[0])
        rank, score = _number(tail[1]), _number(tail[2])
        if rank is None:
            draft.fault(file, line, f"the rank {tail[1]!r} is not a number")
        elif score is None:
            draft.fault(file, line, f"the score {tail[2]!r} is not a number")
        elif document in found.setdefault(query_id, {}):
            first = found[query_id][document][2]
            draft.fault(file, line, f"query {query_id!r} has {document!r} in line {first} already")
        else:
            found[query_id][document] = (-score, int(rank), line)
            tags[spoken(tail[3].strip())] = None
    draft.check("nothing of the run was used")
    if not found:
        raise JudgmentError(
            f"{file} holds no line of a run", "Give a file of lines: query, Q0, document, rank, score, name"
        )
    own = next(iter(tags)) if len(tags) == 1 else file.stem
    rankings = {i: tuple(sorted(documents, key=documents.__getitem__)) for i, documents in found.items()}
    return Run(rankings, name if name is not None else own)


def _number(text: str) -> float | None:
    """A finite number as programs write them: Python alone reads `1_000` and digits of other scripts."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None


def as_judged(run: Run, judgments: Judgments, also: Mapping[str, str] | None = None) -> Run:
    """A run by the names that judgments use, so that `score_run` can measure it. Returns the run; a document that it names in
    two ways counts at its first place. It warns where queries of the run are not among those judged, and counts them.
    """
    spellings = (_alike, spoken, words, str)  # the most exact last: it goes before the others
    documents: dict[str, str] = {}
    for names in (dict(also or {}), {key: key for key in sorted(judgments.document_keys)}):
        for spelled in spellings:
            documents |= {spelled(other): key for other, key in names.items()}
    alike = {_alike(i): i for i in judgments.query_ids}
    queries = {spelled(i): i for spelled in spellings[1:] for i in judgments.query_ids}
    answered = {alike[name]: i for i in run.rankings if (name := _alike(i)) in alike}
    answered |= {queries[i]: i for i in run.rankings if i in queries}
    rankings: dict[str, tuple[str, ...]] = {}
    for query_id, i in answered.items():
        named = {key: documents.get(key, documents.get(_alike(key), _alike(key))) for key in run.rankings[i]}
        kept = (d for k, d in named.items() if not is_own(judgments, query_id, Named(_alike(k), d)))
        rankings[query_id] = tuple(dict.fromkeys(kept))
    left = len(run.rankings) - len(rankings)
    warning = (f"{left} of {len(run.rankings)} queries of the run are not judged and were left out",) if left else ()
    return replace(run, rankings=rankings, warnings=(*run.warnings, *warning))


def _alike(name: str) -> str:
    """What names have in common that programs spell in different letters: in NFC, with one space where there are several."""
    return one_spaced(unicodedata.normalize("NFC", spoken(name)))
