"""What differs between snapshots: settings, corpora, ranks and measures, each with the likely why.

The first snapshot is the one that the others are compared with. Searches are paired by their query, evaluations by their
judgments. A row that moved has a reason: its own document came, went or changed; otherwise everything that differs between the
two searches is named, for a rank depends on all of it and no list of results can tell which it was.

A passage is the same in both where its chunk id is, or else where it begins at the same line of the same document: a chunk's id
holds its span, so a word more in a passage gives it another id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from workbench.errors import UsageError, counted
from workbench.evaluate.statistics import paired_difference
from workbench.plan import fields as plan_fields
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.records import Principal
from workbench.snapshot.schema import Content, SavedEvaluation, SavedSearch, name_of_row

if TYPE_CHECKING:
    import polars

    from workbench.snapshot.snapshot import Snapshot

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ABSENT = "(not there)"
_SILENT = ("cache_seconds",)
"""Settings that change no result."""
_NAMED = 3
Row = Mapping[str, Any]
_T = TypeVar("_T")


def _table(rows: Sequence[tuple[Any, ...]], schema: str) -> polars.DataFrame:
    """Rows as a frame; the schema is `name:kind` with S text, I whole number, F float."""
    import polars as pl

    types: dict[str, Any] = {"S": pl.String, "I": pl.Int64, "F": pl.Float64}
    named = (pair.rpartition(":") for pair in schema.split())
    return pl.DataFrame(list(rows), schema={name: types[kind] for name, _, kind in named}, orient="row")


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
    def kinds(self) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """Each way to change with its documents."""
        return ("added", self.added), ("changed", self.changed), ("removed", self.removed)

    def own(self, document_id: str) -> str:
        """What happened to one document, or ""."""
        for kind, found in self.kinds:
            if document_id in found:
                return "its document changed" if kind == "changed" else f"its document was {kind}"
        return ""

    @property
    def words(self) -> str:
        """The corpus's changes, or ""."""
        counts = [f"{counted(len(found), 'document')} {kind}" for kind, found in self.kinds if found]
        return ", ".join(counts + (["documents cut or read differently"] if self.recut else []))

    def documents(self) -> Iterator[str]:
        """How many documents came, changed and went, with the first names."""
        for kind, found in self.kinds:
            if found:
                names = list(found.values())
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                yield f"{counted(len(names), 'document')} {kind} ({', '.join(names[:_NAMED])}{more})"

    def sentences(self, first: Snapshot, second: Snapshot) -> Iterator[str]:
        """The changes of corpus, encoder, principal and versions, each in words."""
        yield from self.documents()
        if self.recut:
            yield "the same documents were cut or read differently"
        if self.encoders:
            yield f"another encoder ({_encoders(first)}; then {_encoders(second)})"
        if first.about.principal != second.about.principal:
            yield f"searched as somebody else ({who(first.about.principal)}; then {who(second.about.principal)})"


def _encoders(snapshot: Snapshot) -> str:
    return ", ".join(f"{e.name} {e.digest[:8]}" for e in snapshot.about.origin.encoders) or "none"


def who(principal: Principal | None) -> str:
    """A principal in words."""
    if principal is None:
        return "the local owner"
    return f"tenant {principal.tenant or 'none'} with roles {', '.join(principal.roles) or 'none'}"


def changed_documents(first: Snapshot, second: Snapshot) -> Changes:
    """What came, changed and went between the corpora that two snapshots saw."""
    found = changed_since(first, _documents(second))
    one, two = first.about.origin, second.about.origin
    encoders = {(e.digest, e.dim) for e in one.encoders} != {(e.digest, e.dim) for e in two.encoders}
    runtimes = {(e.name, e.runtime) for e in one.encoders} == {(e.name, e.runtime) for e in two.encoders}
    same = runtimes and not (found.words or encoders or first.about.omitted or second.about.omitted)
    return replace(found, recut=same and one.digest != two.digest, encoders=encoders)


def changed_since(first: Snapshot, two: Mapping[str, tuple[str, str]]) -> Changes:
    """What came, changed and went since a snapshot: `two` has each document's path and content now, by id."""
    one = _documents(first)
    added = {i: path for i, (path, _) in two.items() if i not in one}
    removed = {i: path for i, (path, _) in one.items() if i not in two}
    return Changes(added, {i: path for i, (path, text) in two.items() if i in one and one[i][1] != text}, removed)


def _documents(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    rows = snapshot.documents().iter_rows(named=True)
    return {r["document_id"]: (r["path"] or r["document_id"], r["content"]) for r in rows}


# --- the searches ---------------------------------------------------------------------------------------------------------


def settings_of(search: SavedSearch) -> dict[str, str]:
    """Everything that was set for a search, as text: its plan's fields, and mode, keywords, filter and context."""
    request = {"mode": search.mode, "keywords": search.keywords, "filter": search.filters, "context": search.context}
    shown = {name: plan_fields.show(value) for name, value in search.settings.items() if name not in _SILENT}
    return {**request, **shown}


def pairs_of(snapshots: Sequence[Snapshot]) -> tuple[tuple[str, tuple[int | None, ...]], ...]:
    """Each query with the number of its search in every snapshot.

    Searches of one query are paired by mode first, then as they come: one that was run in two modes is two.
    """
    rows: list[tuple[str, str]] = []  # query and mode, where each was seen first
    columns: list[dict[int, int]] = []  # of each snapshot, row -> number of its search
    for snapshot in snapshots:
        asked = [(search.title, search.mode) for search in snapshot.searches]
        numbers = dict(_pairs(rows, asked, (lambda a, b: a == b, lambda a, b: a[0] == b[0])))
        for n in sorted({*range(len(asked))} - {*numbers.values()}):
            numbers[len(rows)] = n
            rows.append(asked[n])
        columns.append(numbers)
    return tuple((query, tuple(numbers.get(n) for numbers in columns)) for n, (query, _) in enumerate(rows))


def _pairs(
    first: Sequence[_T], second: Sequence[_T], alike: Sequence[Callable[[_T, _T], bool]]
) -> Iterator[tuple[int, int]]:
    """Positions of what is alike in two lists, each once: by the first way to be alike, then by the next."""
    left = dict(enumerate(first))
    free = dict(enumerate(second))
    for same in alike:
        for two, other in list(free.items()):
            one = next((n for n, value in left.items() if same(value, other)), None)
            if one is not None:
                del left[one], free[two]
                yield one, two


@dataclass(frozen=True)
class Causes:
    """Everything that differs between two searches of one query: settings (before, after), the corpus's changes in words,
    encoder, principal, versions of packages.
    """

    settings: Mapping[str, tuple[str, str]]
    corpus: str
    encoder: bool
    principal: bool
    versions: tuple[str, ...]

    @property
    def listed(self) -> list[str]:
        """What differs but the versions, in words."""
        said = [f"setting {name} ({was or 'none'} to {now or 'none'})" for name, (was, now) in self.settings.items()]
        said += [f"corpus ({self.corpus})"] if self.corpus else []
        return said + ["encoder"] * self.encoder + ["who searched"] * self.principal

    @property
    def words(self) -> str:
        """All of it in words; versions only where nothing else differs."""
        versions = f"versions ({', '.join(self.versions)})" if self.versions else "nothing that the snapshots record"
        return ", ".join(self.listed) or versions


def causes_of(first: Snapshot, one: int, second: Snapshot, two: int, changes: Changes) -> Causes:
    """Everything that differs between search `one` of the first snapshot and search `two` of the second."""
    before, after = settings_of(first.searches[one]), settings_of(second.searches[two])
    values = {n: (before.get(n, "default"), after.get(n, "default")) for n in dict.fromkeys([*before, *after])}
    settings = {name: pair for name, pair in values.items() if pair[0] != pair[1]}
    old, new = first.about.packages, second.about.packages
    versions = tuple(n for n in sorted({*old, *new}) if old.get(n) != new.get(n))
    principal = first.about.principal != second.about.principal
    return Causes(settings, changes.words, changes.encoders, principal, versions)


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


def moved_rows(
    first: Content, one: int, second: Content, two: int, changes: Changes, causes: Causes
) -> tuple[Moved, ...]:
    """Every result of either search, those of the second first, each by its rank."""
    before, after = _candidates(first, one), _candidates(second, two)
    same = {i: i for i in before if i in after}
    starts = {_start(row): i for i, row in after.items() if i not in before}
    for chunk_id, row in before.items():
        if chunk_id not in same and _start(row) in starts:
            same[chunk_id] = starts.pop(_start(row))
    back = {new: old for old, new in same.items()}
    rows = []
    for chunk_id, row in after.items():
        old = before.get(back.get(chunk_id, ""))
        if row["shown"] or (old is not None and old["shown"]):
            rows.append(_moved(back.get(chunk_id, chunk_id), old, row, changes, causes))
    gone = ((i, row) for i, row in before.items() if row["shown"] and i not in same)
    return (*rows, *(_moved(i, row, None, changes, causes) for i, row in gone))


def _candidates(content: Content, number: int) -> dict[str, dict[str, Any]]:
    frame = content.rows("candidates", number).sort("rank", nulls_last=True, maintain_order=True)
    return {row["chunk_id"]: row for row in frame.iter_rows(named=True)}


def _start(row: Row) -> tuple[str, int, bool]:
    return row["document_id"], row["start_line"], row["whole"]


def _moved(key: str, old: Row | None, new: Row | None, changes: Changes, causes: Causes) -> Moved:
    before = old["rank"] if old is not None and old["shown"] else 0
    after = new["rank"] if new is not None and new["shown"] else 0
    row: Row = new or old or {}
    if before == after:
        return Moved(key, name_of_row(row), before, after, "stays", "")
    own = changes.own(row["document_id"])
    why = ", ".join([own, *replace(causes, corpus="").listed]) if own else causes.words
    if before and after:
        change = f"up {before - after}" if after < before else f"down {after - before}"
        return Moved(key, name_of_row(row), before, after, change, why)
    change, verb, other = ("moved out", "is now", new) if before else ("moved in", "was", old)
    if other is not None and other["rank"] is not None:
        why += f" ({verb} rank {other['rank']}, beyond the limit)"
    return Moved(key, name_of_row(row), before, after, change, why)


# --- the measures ---------------------------------------------------------------------------------------------------------


def _evaluation_pairs(first: Snapshot, second: Snapshot) -> list[tuple[int, int]]:
    """Evaluations with the same judgments: those of one name first, the others in their order."""

    def judged(a: SavedEvaluation, b: SavedEvaluation) -> bool:
        return a.judgments_digest == b.judgments_digest

    return sorted(
        _pairs(first.evaluations, second.evaluations, (lambda a, b: judged(a, b) and a.name == b.name, judged))
    )


def _measures(first: Snapshot, one: int, a: str, second: Snapshot, two: int, b: str) -> Iterator[tuple[Any, ...]]:
    """The measures of two evaluations, query by query, with an interval and a test."""
    before, after = (
        {(r["query_id"], r["measure"]): r["value"] for r in s.content.rows("measures", n).iter_rows(named=True)}
        for s, n in ((first, one), (second, two))
    )
    saved, other = first.evaluations[one], second.evaluations[two]
    name = saved.name if saved.name == other.name else f"{saved.name} / {other.name}"
    both = {n.measure for n in other.means}
    for measure in (m.measure for m in saved.means if m.measure in both):
        queries = [q for q, m in before if m == measure and (q, m) in after]
        if queries:
            values = (np.array([v[q, measure] for q in queries]) for v in (before, after))
            found = paired_difference(measure, (a, b), *values, seed=saved.seed)
            low, high = (None if v != v else v for v in (found.low, found.high))
            means = (found.first_mean, found.second_mean, found.difference)
            yield (b, name, measure, *means, low, high, found.p, found.verdict)


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
        return pairs_of(self.snapshots)

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
            names = dict.fromkeys(name for v in known for name in v)
            rows += [
                (query, name, *(ABSENT if v is None else v.get(name, "default") for v in values))
                for name in names
                if len({v.get(name, "default") for v in known}) > 1
            ]
        return _table(rows, "query:S setting:S " + " ".join(f"{name}:S" for name in self.names))

    def documents(self) -> polars.DataFrame:
        """One row a document that came, changed or went: snapshot, change, path, document_id."""
        rows = [
            (name, kind, path, document_id)
            for name, changes in zip(self.names[1:], self.changes, strict=True)
            for kind, found in changes.kinds
            for document_id, path in found.items()
        ]
        return _table(rows, "snapshot:S change:S path:S document_id:S")

    def results(self) -> polars.DataFrame:
        """One row a query and other snapshot: query, snapshot, shared, jaccard, rbo (p 0.9), moved_in, moved_out, why."""
        rows: list[tuple[Any, ...]] = []
        for at, (query, numbers) in enumerate(self.queries):
            for other in range(1, len(self.snapshots)):
                name = self.names[other]
                if numbers[0] is None or numbers[other] is None:
                    lacking = self.names[0] if numbers[0] is None else name
                    rows.append((query, name, None, None, None, None, None, f"{lacking} has no such query"))
                    continue
                moved = self._moved(at, other)
                before = [m.key for m in sorted((m for m in moved if m.before), key=lambda m: m.before)]
                after = [m.key for m in sorted((m for m in moved if m.after), key=lambda m: m.after)]
                alike = (overlap(before, after), jaccard(before, after), rbo(before, after))
                counts = (sum(not m.before for m in moved), sum(not m.after for m in moved))
                why = "" if before == after else self.causes(at, other).words
                rows.append((query, name, *alike, *counts, why))
        return _table(rows, "query:S snapshot:S shared:I jaccard:F rbo:F moved_in:I moved_out:I why:S")

    def ranks(self, query: int = 0) -> polars.DataFrame:
        """One row a result of any snapshot for one of `queries`: citation, its rank in each (null: not a result), change, why.

        `change` and `why` are between A and the last snapshot that has the query. Raises UsageError for one that is not there.
        """
        numbers = self._numbers(query)
        others = [n for n in range(1, len(self.snapshots)) if numbers[n] is not None]
        columns = ("citation", *self.names, "change", "why")
        by_key: dict[str, dict[str, Any]] = {}
        for other in others if numbers[0] is not None else ():
            for m in self._moved(query, other):
                row = by_key.setdefault(m.key, {"citation": m.citation})
                row[self.names[0]], row[self.names[other]] = m.before or None, m.after or None
                row["change"], row["why"] = m.change, m.why
        rows = [tuple(row.get(name) for name in columns) for row in by_key.values()]
        if others:
            last = 1 + others[-1]
            rows.sort(key=lambda r: (r[last] is None, r[last] or 0, r[1] or 0))
        return _table(rows, " ".join(f"{c}:{'I' if c in self.names else 'S'}" for c in columns))

    def measures(self) -> polars.DataFrame:
        """One row a measure and pair of evaluations with the same judgments: snapshot, evaluation, measure, first, second,
        difference (second minus first), low and high (95 % bootstrap interval), p, verdict.
        """
        first = self.snapshots[0]
        rows: list[tuple[Any, ...]] = []
        for name, other in zip(self.names[1:], self.snapshots[1:], strict=True):
            for one, two in _evaluation_pairs(first, other):
                rows += _measures(first, one, self.names[0], other, two, name)
        numbers = "first:F second:F difference:F low:F high:F p:F"
        return _table(rows, f"snapshot:S evaluation:S measure:S {numbers} verdict:S")

    def figure(self, query: int = 0) -> Any:
        """The bump chart of a query: every result's rank in each snapshot. Raises UsageError as `ranks` does."""
        from workbench.charts import change_figure

        rows = [(r["citation"], [r[n] for n in self.names]) for r in self.ranks(query).iter_rows(named=True)]
        return change_figure(rows, self.names)

    def causes(self, query: int, other: int) -> Causes:
        """Everything that differs between a query's search in A and in another snapshot, by its number."""
        first, second = self._both(query, other)
        return causes_of(self.snapshots[0], first, self.snapshots[other], second, self.changes[other - 1])

    @property
    def sentences(self) -> tuple[str, ...]:
        """The differences in words, the most telling first."""
        differing = self.settings().unique(subset=["setting", *self.names], maintain_order=True)
        said = [
            f"{row['setting']}: " + ", ".join(f"{n} {row[n] or 'none'}" for n in self.names) + "."
            for row in differing.iter_rows(named=True)
        ]
        for name, changes, other in zip(self.names[1:], self.changes, self.snapshots[1:], strict=True):
            said += [f"{self.names[0]} to {name}: {s}." for s in changes.sentences(self.snapshots[0], other)]
        modes = self._modes()
        for row in self.results().with_row_index().iter_rows(named=True):
            query = f"“{row['query']}”{modes[row['index'] // (len(self.snapshots) - 1)]}"
            if row["shared"] is None:
                said.append(f"{query}: {row['why']}.")
            elif row["why"]:
                counts = f"{counted(row['moved_in'], 'result')} moved in, {row['moved_out']} out, RBO {row['rbo']:.3f}"
                said.append(f"{query} in {row['snapshot']}: {counts}; because of {row['why']}.")
        said += [row["verdict"] for row in self.measures().iter_rows(named=True)]
        return tuple(said) or ("Nothing differs: the same settings, corpus, results and measures.",)

    def _modes(self) -> list[str]:
        """Of each query the mode that it was run in, in words, where several searches have the same query."""
        texts = [query for query, _ in self.queries]
        modes = []
        for query, numbers in self.queries:
            found = (s.searches[n].mode for s, n in zip(self.snapshots, numbers, strict=True) if n is not None)
            modes.append(f" ({' and '.join(dict.fromkeys(found))})" if texts.count(query) > 1 else "")
        return modes

    def to_dict(self) -> dict[str, Any]:
        """The diff as JSON values."""
        shots = []
        for name, s in zip(self.names, self.snapshots, strict=True):
            origin = s.about.origin.generation
            shots.append({"name": name, "id": s.id, "title": s.title, "created": s.about.created, "generation": origin})
        tables = {name: getattr(self, name)().to_dicts() for name in ("settings", "documents", "results", "measures")}
        ranks = [{"query": query, "rows": self.ranks(n).to_dicts()} for n, (query, _) in enumerate(self.queries)]
        return {"snapshots": shots, **tables, "ranks": ranks, "sentences": list(self.sentences)}

    def _repr_html_(self) -> str:
        """The sentences and the tables, for a notebook."""
        from workbench.markup import visible

        legend = "".join(
            f"<dt>{n}</dt><dd>{visible(f'{s.title} ({s.about.created}, generation {s.about.origin.generation})')}</dd>"
            for n, s in zip(self.names, self.snapshots, strict=True)
        )
        said = "".join(f"<li>{visible(s)}</li>" for s in self.sentences)
        tables = [t for t in (self.settings(), self.documents(), self.results(), self.measures()) if len(t)]
        return f"<dl>{legend}</dl><ul>{said}</ul>" + "".join(str(t._repr_html_()) for t in tables)

    def _numbers(self, query: int) -> tuple[int | None, ...]:
        if not 0 <= query < len(self.queries):
            raise UsageError(f"There is no query {query}", f"There are {len(self.queries)} queries, counted from 0")
        return self.queries[query][1]

    def _both(self, query: int, other: int) -> tuple[int, int]:
        numbers = self._numbers(query)
        first, second = numbers[0], numbers[other]
        if first is None or second is None:
            raise UsageError("One of the two snapshots has no such query", "Look at queries")
        return first, second

    def _moved(self, query: int, other: int) -> Sequence[Moved]:
        first, second = self._both(query, other)
        one, two = self.snapshots[0].content, self.snapshots[other].content
        return moved_rows(one, first, two, second, self.changes[other - 1], self.causes(query, other))


def diff(snapshots: Sequence[Snapshot]) -> SnapshotDiff:
    """See `Snapshot.diff`. Raises UsageError for fewer than two snapshots, or more than there are letters."""
    if len(snapshots) < 2:
        raise UsageError("There is nothing to compare with", "Pass another snapshot")
    if len(snapshots) > len(LETTERS):
        raise UsageError(f"{len(snapshots)} snapshots are too many to compare", f"Compare at most {len(LETTERS)}")
    return SnapshotDiff(tuple(snapshots))
