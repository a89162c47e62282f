"""What differs between snapshots: settings, corpora, ranks and measures, each with the likely why.

The first snapshot is the one that the others are compared with. Searches are paired by their query, evaluations by their
judgments. A row that moved has a reason: its own document came, went or changed; otherwise everything that differs between the
two searches is named, for a rank depends on all of it and no list of results can tell which it was.

A passage is the same in both where its chunk id is, or else where it begins at the same line of the same document: a chunk's id
holds its span, so a word more in a passage gives it another id. Such a passage's texts are compared word by word.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from workbench.errors import UsageError, counted, some_of
from workbench.evaluate.statistics import known, paired_difference
from workbench.plan import fields as plan_fields
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.snapshot.schema import Content, SavedSearch, name_of_row, types_of, who

if TYPE_CHECKING:
    import polars

    from workbench.snapshot.snapshot import Snapshot

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ABSENT = "(not there)"
_SILENT = ("cache_seconds",)
"""Settings that change no result."""
_NAMED = 3
_T = TypeVar("_T")


def _table(rows: Sequence[tuple[Any, ...]], schema: str) -> polars.DataFrame:
    """Rows as a frame; the schema is `name:kind`, with the kinds of `schema.TABLES`."""
    import polars as pl

    pairs = (pair.split(":") for pair in schema.split())
    return pl.DataFrame(list(rows), schema=types_of((name, kind) for name, kind in pairs), orient="row")


def _pairs(
    first: Sequence[_T], second: Sequence[_T], alike: Sequence[Callable[[_T, _T], bool]]
) -> Iterator[tuple[int, int]]:
    """Positions of what is alike in two lists, each once: by the first way to be alike, then by the next."""
    left, free = dict(enumerate(first)), dict(enumerate(second))
    for same in alike:
        for two, other in list(free.items()):
            one = next((n for n, value in left.items() if same(value, other)), None)
            if one is not None:
                del left[one], free[two]
                yield one, two


# --- the corpora ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Changes:
    """Documents of two corpora: id -> path (or id, where paths were left out), in the order of paths.

    Attributes:
        added, changed, removed: In the second and not in the first; in both with other content; in the first only.
        recut: True where the documents are the same and their passages, or how they are read, are not.
        encoders: True where the vectors are those of other weights.
    """

    added: Mapping[str, str]
    changed: Mapping[str, str]
    removed: Mapping[str, str]
    recut: bool = False
    encoders: bool = False

    @property
    def kinds(self) -> Mapping[str, Mapping[str, str]]:
        return {"added": self.added, "changed": self.changed, "removed": self.removed}

    @property
    def words(self) -> str:
        counts = [f"{counted(len(found), 'document')} {kind}" for kind, found in self.kinds.items() if found]
        return ", ".join(counts + (["documents cut or read differently"] if self.recut else []))

    def documents(self) -> Iterator[str]:
        """How many documents came, changed and went, with the first names."""
        for kind, found in self.kinds.items():
            if found:
                yield f"{counted(len(found), 'document')} {kind} ({some_of(list(found.values()), _NAMED)})"


def changed_documents(first: Snapshot, second: Snapshot) -> Changes:
    found = changed_since(first, _documents(second))
    one, two = first.about.origin, second.about.origin
    encoders = {(e.digest, e.dim) for e in one.encoders} != {(e.digest, e.dim) for e in two.encoders}
    runtimes = {(e.name, e.runtime) for e in one.encoders} == {(e.name, e.runtime) for e in two.encoders}
    same = runtimes and not (found.words or encoders or first.about.omitted or second.about.omitted)
    return replace(found, recut=same and one.digest != two.digest, encoders=encoders)


def changed_since(first: Snapshot, now: Mapping[str, tuple[str, str]]) -> Changes:
    """What came, changed and went since a snapshot: `now` has each document's path and content, by id."""
    then = _documents(first)
    return Changes(
        {i: path for i, (path, _) in now.items() if i not in then},
        {i: path for i, (path, text) in now.items() if i in then and then[i][1] != text},
        {i: path for i, (path, _) in then.items() if i not in now},
    )


def _documents(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    rows = snapshot.documents().iter_rows(named=True)
    return {r["document_id"]: (r["path"] or r["document_id"], r["content"]) for r in rows}


# --- the searches ---------------------------------------------------------------------------------------------------------


def settings_of(search: SavedSearch) -> dict[str, str]:
    request = {"mode": search.mode, "keywords": search.keywords, "filter": search.filters, "context": search.context}
    return request | {n: plan_fields.show(v) for n, v in search.settings.items() if n not in _SILENT}


def _searches(snapshots: Sequence[Snapshot]) -> tuple[tuple[str, tuple[int | None, ...]], ...]:
    """Each query with the number of its search in every snapshot.

    Searches of one query are paired by mode first, then as they come: one that was run in two modes is two.
    """
    rows: list[tuple[str, str]] = []  # query and mode, where each was seen first
    columns: list[dict[int, int]] = []  # of each snapshot, row -> number of its search
    for snapshot in snapshots:
        requests = [(search.title, search.mode) for search in snapshot.searches]
        numbers = dict(_pairs(rows, requests, (lambda a, b: a == b, lambda a, b: a[0] == b[0])))
        for n in sorted({*range(len(requests))} - {*numbers.values()}):
            numbers[len(rows)] = n
            rows.append(requests[n])
        columns.append(numbers)
    return tuple((query, tuple(numbers.get(n) for numbers in columns)) for n, (query, _) in enumerate(rows))


def _causes(first: Snapshot, one: int, second: Snapshot, two: int, changes: Changes) -> tuple[list[str], str]:
    """What differs between search `one` of the first snapshot and search `two` of the second: everything but the corpus and the
    versions of packages, and all of it in words; versions are named only where nothing else differs.
    """
    before, after = settings_of(first.searches[one]), settings_of(second.searches[two])
    values = {n: (before.get(n, "default"), after.get(n, "default")) for n in (before | after)}
    settings = [f"setting {n} ({was or 'none'} to {now or 'none'})" for n, (was, now) in values.items() if was != now]
    others = ["encoder"] * changes.encoders + ["who searched"] * (first.about.principal != second.about.principal)
    corpus = [f"corpus ({changes.words})"] if changes.words else []
    old, new = first.about.packages, second.about.packages
    versions = ", ".join(n for n in sorted({*old, *new}) if old.get(n) != new.get(n))
    fallback = f"versions ({versions})" if versions else "nothing that the snapshots record"
    return settings + others, ", ".join(settings + corpus + others) or fallback


@dataclass(frozen=True, slots=True)
class Moved:
    """One passage that is a result in either snapshot.

    Attributes:
        key: Its chunk id in the first snapshot, or in the second where the first lacks it.
        before, after: Its rank in each, from 1; 0 where it is not a result there.
        change: `moved in`, `moved out`, `up 2`, `down 1` or `stays`.
        why: What may have moved it; "" where it stays.
    """

    key: str
    citation: str
    before: int
    after: int
    change: str
    why: str


def _moved(
    key: str,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    changes: Changes,
    causes: tuple[list[str], str],
) -> Moved:
    """A passage by its rows in both searches, one of which may lack it."""
    before, after = (row["rank"] if row is not None and row["shown"] else 0 for row in (old, new))
    row: Mapping[str, Any] = new or old or {}
    if before == after:
        return Moved(key, name_of_row(row), before, after, "stays", "")
    others, why = causes
    kind = next((kind for kind, found in changes.kinds.items() if row["document_id"] in found), None)
    if kind is not None:
        why = ", ".join([f"its document {'' if kind == 'changed' else 'was '}{kind}", *others])
    if before and after:
        change = f"up {before - after}" if after < before else f"down {after - before}"
    else:
        change, verb, other = ("moved out", "is now", new) if before else ("moved in", "was", old)
        if other is not None and other["rank"] is not None:
            why += f" ({verb} rank {other['rank']}, beyond the limit)"
    return Moved(key, name_of_row(row), before, after, change, why)


def _candidates(content: Content, number: int) -> dict[str, dict[str, Any]]:
    frame = content.rows("candidates", number).sort("rank", nulls_last=True, maintain_order=True)
    return {row["chunk_id"]: row for row in frame.iter_rows(named=True)}


def _start(row: Mapping[str, Any]) -> tuple[str, int, bool]:
    return row["document_id"], row["start_line"], row["whole"]


def _same_passages(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Chunk id in the second -> that of the same passage in the first."""
    back = {i: i for i in before if i in after}
    starts = {_start(row): i for i, row in after.items() if i not in before}
    for chunk_id, row in before.items():
        if chunk_id not in after and _start(row) in starts:
            back[starts.pop(_start(row))] = chunk_id
    return back


def word_diff(before: str, after: str) -> list[tuple[str, str]]:
    """Two texts as pieces, in order: `same`, `out` (in the first only) and `in` (in the second only)."""
    one, two = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in (before, after))
    pieces = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(("same", "".join(one[i:j])))
            continue
        pieces += [(word, text) for word, text in (("out", "".join(one[i:j])), ("in", "".join(two[k:m]))) if text]
    return pieces


# --- the measures ---------------------------------------------------------------------------------------------------------


def _measures(first: Snapshot, one: int, second: Snapshot, two: int, name: str) -> Iterator[tuple[Any, ...]]:
    """The measures of two evaluations, query by query, with an interval and a test; `name` is the second snapshot's."""
    before, after = (
        {(r["query_id"], r["measure"]): r["value"] for r in s.content.rows("measures", n).iter_rows(named=True)}
        for s, n in ((first, one), (second, two))
    )
    saved, other = first.evaluations[one], second.evaluations[two]
    title = saved.name if saved.name == other.name else f"{saved.name} / {other.name}"
    both = {n.measure for n in other.means}
    for measure in (m.measure for m in saved.means if m.measure in both):
        queries = [q for q, m in before if m == measure and (q, m) in after]
        if queries:
            values = (np.array([v[q, measure] for q in queries]) for v in (before, after))
            found = paired_difference(measure, (LETTERS[0], name), *values, seed=saved.seed)
            means = (found.first_mean, found.second_mean, found.difference)
            yield (name, title, measure, *means, *known(found.low, found.high), found.p, found.verdict)


# --- the answer -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SnapshotDiff:
    """The answer of `Snapshot.diff`. Snapshots are called A, B, C ... in the order given; A is compared with each other one."""

    snapshots: tuple[Snapshot, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """A, B, C ..."""
        return tuple(LETTERS[: len(self.snapshots)])

    @cached_property
    def queries(self) -> tuple[tuple[str, tuple[int | None, ...]], ...]:
        """Each query with the number of its search in every snapshot (None: not there), in the order of first appearance."""
        return _searches(self.snapshots)

    @cached_property
    def changes(self) -> tuple[Changes, ...]:
        """What came, changed and went between A and each other snapshot."""
        return tuple(changed_documents(self.snapshots[0], other) for other in self.snapshots[1:])

    def settings(self) -> polars.DataFrame:
        """One row a setting that differs: query, setting, and its value in each snapshot."""
        rows = []
        for query, numbers in self.queries:
            pairs = zip(self.snapshots, numbers, strict=True)
            values = [None if n is None else settings_of(s.searches[n]) for s, n in pairs]
            known = [v for v in values if v is not None]
            rows += [
                (query, name, *(ABSENT if v is None else v.get(name, "default") for v in values))
                for name in dict.fromkeys(name for v in known for name in v)
                if len({v.get(name, "default") for v in known}) > 1
            ]
        return _table(rows, "query:S setting:S " + " ".join(f"{name}:S" for name in self.names))

    def documents(self) -> polars.DataFrame:
        """One row a document that came, changed or went: snapshot, change, path, document_id."""
        rows = [
            (name, kind, path, document_id)
            for name, changes in zip(self.names[1:], self.changes, strict=True)
            for kind, found in changes.kinds.items()
            for document_id, path in found.items()
        ]
        return _table(rows, "snapshot:S change:S path:S document_id:S")

    def results(self) -> polars.DataFrame:
        """One row a query and other snapshot: query, snapshot, shared, jaccard, rbo (p 0.9), moved_in, moved_out, why."""
        rows: list[tuple[Any, ...]] = []
        for at, (query, numbers) in enumerate(self.queries):
            for other, name in enumerate(self.names[1:], 1):
                if numbers[0] is None or numbers[other] is None:
                    lacking = self.names[0] if numbers[0] is None else name
                    rows.append((query, name, None, None, None, None, None, f"{lacking} has no such query"))
                    continue
                moved, why = self._moved(at, other)
                before = [m.key for m in sorted((m for m in moved if m.before), key=lambda m: m.before)]
                after = [m.key for m in sorted((m for m in moved if m.after), key=lambda m: m.after)]
                alike = (overlap(before, after), jaccard(before, after), rbo(before, after))
                counts = (sum(not m.before for m in moved), sum(not m.after for m in moved))
                rows.append((query, name, *alike, *counts, "" if before == after else why))
        return _table(rows, "query:S snapshot:S shared:I jaccard:F rbo:F moved_in:I moved_out:I why:S")

    def ranks(self, query: int = 0) -> polars.DataFrame:
        """One row a result of any snapshot for one of `queries`: citation, its rank in each (null: not a result), change, why.

        `change` and `why` are between A and the last snapshot that has the query. Raises UsageError for one that is not there.
        """
        if not 0 <= query < len(self.queries):
            raise UsageError(f"There is no query {query}", f"There are {len(self.queries)} queries, counted from 0")
        numbers = self.queries[query][1]
        others = [n for n in range(1, len(self.snapshots)) if numbers[n] is not None]
        columns = ("citation", *self.names, "change", "why")
        by_key: dict[str, dict[str, Any]] = {}
        for other in others if numbers[0] is not None else ():
            for m in self._moved(query, other)[0]:
                row = by_key.setdefault(m.key, {"citation": m.citation})
                row |= {self.names[0]: m.before or None, self.names[other]: m.after or None}
                row |= {"change": m.change, "why": m.why}
        rows = [tuple(row.get(name) for name in columns) for row in by_key.values()]
        if others:
            last = 1 + others[-1]
            rows.sort(key=lambda r: (r[last] is None, r[last] or 0, r[1] or 0))
        return _table(rows, " ".join(f"{c}:{'I' if c in self.names else 'S'}" for c in columns))

    def measures(self) -> polars.DataFrame:
        """One row a measure and pair of evaluations with the same judgments: snapshot, evaluation, measure, first, second,
        difference (second minus first), low and high (95 % bootstrap interval), p, verdict.
        """
        first, rows = self.snapshots[0], list[tuple[Any, ...]]()
        for name, other in zip(self.names[1:], self.snapshots[1:], strict=True):
            # Those of one name first, the others in their order.
            before, after = ([(e.judgments_digest, e.name) for e in s.evaluations] for s in (first, other))
            for one, two in sorted(_pairs(before, after, (lambda a, b: a == b, lambda a, b: a[0] == b[0]))):
                rows += _measures(first, one, other, two, name)
        numbers = "first:F second:F difference:F low:F high:F p:F"
        return _table(rows, f"snapshot:S evaluation:S measure:S {numbers} verdict:S")

    def texts(self, query: int = 0) -> polars.DataFrame:
        """One row a result of one of `queries` whose text is another than in A: snapshot, citation, before and after; of passages
        that both snapshots show. `word_diff` compares the two.
        """
        rows, (first, *others) = [], self.queries[query][1]
        for name, snapshot, number in zip(self.names[1:], self.snapshots[1:], others, strict=True):
            if first is None or number is None:
                continue
            pair = ((self.snapshots[0].content, first), (snapshot.content, number))
            back = _same_passages(*(_candidates(*one) for one in pair))
            old, new = ({r["chunk_id"]: r for r in c.rows("passages", i).iter_rows(named=True)} for c, i in pair)
            for chunk_id, row in new.items():
                was = old.get(back.get(chunk_id, chunk_id))
                if was is not None and None not in (was["text"], row["text"]) and was["text"] != row["text"]:
                    rows.append((name, row["citation"] or row["chunk_id"], was["text"], row["text"]))
        return _table(rows, "snapshot:S citation:S before:S after:S")

    def figure(self, query: int = 0) -> Any:
        """The bump chart of a query: every result's rank in each snapshot. Raises UsageError as `ranks` does."""
        from workbench.charts import change_figure

        rows = [(r["citation"], [r[n] for n in self.names]) for r in self.ranks(query).iter_rows(named=True)]
        return change_figure(rows, self.names)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The differences in words, the most telling first."""
        differing = self.settings().unique(subset=["setting", *self.names], maintain_order=True)
        sentences = [
            f"{row['setting']}: " + ", ".join(f"{n} {row[n] or 'none'}" for n in self.names) + "."
            for row in differing.iter_rows(named=True)
        ]
        for name, changes, other in zip(self.names[1:], self.changes, self.snapshots[1:], strict=True):
            sentences += [f"{self.names[0]} to {name}: {s}." for s in _of_corpora(changes, self.snapshots[0], other)]
        for number, row in enumerate(self.results().iter_rows(named=True)):
            query = self.titles[number // (len(self.snapshots) - 1)]
            if row["shared"] is None:
                sentences.append(f"{query}: {row['why']}.")
            elif row["why"]:
                counts = f"{counted(row['moved_in'], 'result')} moved in, {row['moved_out']} out, RBO {row['rbo']:.3f}"
                sentences.append(f"{query} in {row['snapshot']}: {counts}; because of {row['why']}.")
        sentences += self.measures()["verdict"].to_list()
        return tuple(sentences) or ("Nothing differs: the same settings, corpus, results and measures.",)

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """What each of `queries` is called: `hybrid: “how do retries work”`."""
        titles = []
        for query, numbers in self.queries:
            modes = (s.searches[n].mode for s, n in zip(self.snapshots, numbers, strict=True) if n is not None)
            titles.append(f"{' and '.join(dict.fromkeys(modes))}: “{query}”")
        return tuple(titles)

    def to_dict(self) -> dict[str, Any]:
        """The diff as JSON values."""
        shots = []
        for name, s in zip(self.names, self.snapshots, strict=True):
            origin = s.about.origin.generation
            shots.append({"name": name, "id": s.id, "title": s.title, "created": s.about.created, "generation": origin})
        tables = {name: getattr(self, name)().to_dicts() for name in ("settings", "documents", "results", "measures")}
        ranks = [
            {"query": query, "title": title, "rows": self.ranks(n).to_dicts(), "texts": self.texts(n).to_dicts()}
            for n, ((query, _), title) in enumerate(zip(self.queries, self.titles, strict=True))
        ]
        return {"snapshots": shots, **tables, "ranks": ranks, "sentences": list(self.sentences)}

    def _repr_html_(self) -> str:
        from workbench.markup import visible

        legend = "".join(
            f"<dt>{n}</dt><dd>{visible(f'{s.title} ({s.about.when}, generation {s.about.origin.generation})')}</dd>"
            for n, s in zip(self.names, self.snapshots, strict=True)
        )
        lines = "".join(f"<li>{visible(s)}</li>" for s in self.sentences)
        tables = [t for t in (self.settings(), self.documents(), self.results(), self.measures()) if len(t)]
        return f"<dl>{legend}</dl><ul>{lines}</ul>" + "".join(str(t._repr_html_()) for t in tables)

    def _moved(self, query: int, other: int) -> tuple[list[Moved], str]:
        """Every result of a query's search in A or in another snapshot that both have, those of the other first, each by its
        rank; and all that differs between the two, in words.
        """
        one, two = self.queries[query][1][0] or 0, self.queries[query][1][other] or 0
        first, second, changes = self.snapshots[0], self.snapshots[other], self.changes[other - 1]
        causes = _causes(first, one, second, two, changes)
        before, after = _candidates(first.content, one), _candidates(second.content, two)
        back, rows = _same_passages(before, after), []
        for chunk_id, row in after.items():
            old = before.get(back.get(chunk_id, ""))
            if row["shown"] or (old is not None and old["shown"]):
                rows.append(_moved(back.get(chunk_id, chunk_id), old, row, changes, causes))
        kept = set(back.values())
        rows += [_moved(i, r, None, changes, causes) for i, r in before.items() if r["shown"] and i not in kept]
        return rows, causes[1]


def _of_corpora(changes: Changes, first: Snapshot, second: Snapshot) -> Iterator[str]:
    yield from changes.documents()
    if changes.recut:
        yield "the same documents were cut or read differently"
    if changes.encoders:
        encoders = (
            ", ".join(f"{e.name} {e.digest[:8]}" for e in s.about.origin.encoders) or "none" for s in (first, second)
        )
        yield f"another encoder ({'; then '.join(encoders)})"
    if first.about.principal != second.about.principal:
        yield f"searched as somebody else ({who(first.about.principal)}; then {who(second.about.principal)})"
