"""What differs between snapshots: settings, corpora, ranks and measures, each with the likely why.

The first snapshot is the one that the others are compared with. Searches are paired by their query, evaluations by their
judgments. A row that moved has a reason: its own document came, went or changed; otherwise everything that differs between the
two searches is named, for a rank depends on all of it and no list of results can tell which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.errors import UsageError
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.snapshot.causes import Causes, Changes, causes_of, changed_documents, pairs_of, settings_of
from workbench.snapshot.ranks import Moved, moved_rows

if TYPE_CHECKING:
    import polars

    from workbench.snapshot.snapshot import Snapshot

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ABSENT = "(not there)"


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

    # --- tables ----------------------------------------------------------------------------------------------------

    def settings(self) -> polars.DataFrame:
        """One row a setting that differs: query, setting, and its value in each snapshot."""
        import polars as pl

        rows = []
        for query, numbers in self.queries:
            values = [
                None if n is None else settings_of(s.searches[n]) for s, n in zip(self.snapshots, numbers, strict=True)
            ]
            known = [v for v in values if v is not None]
            fields = dict.fromkeys(name for v in known for name in v)
            rows += [
                (query, field, *(ABSENT if v is None else v.get(field, "default") for v in values))
                for field in fields
                if len({v.get(field, "default") for v in known}) > 1
            ]
        schema = {"query": pl.String, "setting": pl.String, **dict.fromkeys(self.names, pl.String)}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def documents(self) -> polars.DataFrame:
        """One row a document that came, changed or went: snapshot, change, path, document_id."""
        import polars as pl

        rows = [
            (name, change, path, document_id)
            for name, changes in zip(self.names[1:], self.changes, strict=True)
            for change, document_id, path in changes.rows()
        ]
        schema = {"snapshot": pl.String, "change": pl.String, "path": pl.String, "document_id": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def results(self) -> polars.DataFrame:
        """One row a query and other snapshot: query, snapshot, shared, jaccard, rbo (p 0.9), moved_in, moved_out, why."""
        import polars as pl

        rows: list[tuple[Any, ...]] = []
        for at, (query, numbers) in enumerate(self.queries):
            for other in range(1, len(self.snapshots)):
                if numbers[0] is None or numbers[other] is None:
                    where = self.names[0] if numbers[0] is None else self.names[other]
                    rows.append((query, self.names[other], None, None, None, None, None, f"{where} has no such query"))
                    continue
                moved = self._moved(at, other)
                before = [m.key for m in sorted((m for m in moved if m.before), key=lambda m: m.before)]
                after = [m.key for m in sorted((m for m in moved if m.after), key=lambda m: m.after)]
                same = before == after
                rows.append(
                    (
                        query, self.names[other], overlap(before, after), jaccard(before, after), rbo(before, after),
                        sum(not m.before for m in moved), sum(not m.after for m in moved),
                        "" if same else self.causes(at, other).words,
                    )
                )  # fmt: skip
        schema = {
            "query": pl.String, "snapshot": pl.String, "shared": pl.Int64, "jaccard": pl.Float64, "rbo": pl.Float64,
            "moved_in": pl.Int64, "moved_out": pl.Int64, "why": pl.String,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    def ranks(self, query: int = 0) -> polars.DataFrame:
        """One row a result of any snapshot: citation, its rank in each (null: not a result), change, why.

        Args:
            query: Which of `queries`, from 0.

        `change` and `why` are between A and the last snapshot that has the query.

        Raises:
            UsageError: The query is not there.
        """
        import polars as pl

        numbers = self._numbers(query)
        others = [n for n in range(1, len(self.snapshots)) if numbers[n] is not None]
        schema = {"citation": pl.String, **dict.fromkeys(self.names, pl.Int64), "change": pl.String, "why": pl.String}
        if numbers[0] is None or not others:
            return pl.DataFrame(schema=schema)
        by_key: dict[str, dict[str, Any]] = {}
        for other in others:
            for m in self._moved(query, other):
                row = by_key.setdefault(m.key, {"citation": m.citation})
                row[self.names[0]], row[self.names[other]] = m.before or None, m.after or None
                row["change"], row["why"] = m.change, m.why
        rows = [tuple(row.get(name) for name in schema) for row in by_key.values()]
        last = 1 + others[-1]
        rows.sort(key=lambda r: (r[last] is None, r[last] or 0, r[1] or 0))
        return pl.DataFrame(rows, schema=schema, orient="row")

    def measures(self) -> polars.DataFrame:
        """One row a measure and pair of evaluations with the same judgments: snapshot, evaluation, measure, first, second,
        difference (second minus first), low and high (95 % bootstrap interval), p, verdict.
        """
        from workbench.snapshot.measured import measure_rows

        return measure_rows(self.snapshots, self.names)

    def figure(self, query: int = 0) -> Any:
        """The bump chart of a query: every result's rank in each snapshot. Raises UsageError as `ranks` does."""
        from workbench.charts.search import change_figure

        frame = self.ranks(query)
        rows = [(r["citation"], [r[n] for n in self.names]) for r in frame.iter_rows(named=True)]
        return change_figure(rows, self.names)

    # --- words -----------------------------------------------------------------------------------------------------

    def causes(self, query: int, other: int) -> Causes:
        """Everything that differs between a query's search in A and in another snapshot, by its number."""
        first, second = self._both(query, other)
        return causes_of(self.snapshots[0], first, self.snapshots[other], second, self.changes[other - 1])

    @property
    def sentences(self) -> tuple[str, ...]:
        """The differences in words, the most telling first."""
        settings, results = self.settings(), self.results()
        differing = settings.unique(subset=["setting", *self.names], maintain_order=True)
        said = [
            f"{row['setting']}: " + ", ".join(f"{n} {row[n] or 'none'}" for n in self.names) + "."
            for row in differing.iter_rows(named=True)
        ]
        for name, changes, other in zip(self.names[1:], self.changes, self.snapshots[1:], strict=True):
            said += [f"{self.names[0]} to {name}: {s}." for s in changes.sentences(self.snapshots[0], other)]
        for row in results.iter_rows(named=True):
            if row["shared"] is None:
                said.append(f"“{row['query']}”: {row['why']}.")
            elif row["why"]:
                said.append(
                    f"“{row['query']}” in {row['snapshot']}: {row['moved_in']} results moved in, {row['moved_out']} out, "
                    f"RBO {row['rbo']:.3f}; because of {row['why']}."
                )
        said += [row["verdict"] for row in self.measures().iter_rows(named=True)]
        return tuple(said) or ("Nothing differs: the same settings, corpus, results and measures.",)

    def to_dict(self) -> dict[str, Any]:
        """The diff as JSON values."""
        return {
            "snapshots": [
                {"name": n, "id": s.id, "title": s.title, "created": s.about.created, "generation": s.about.origin.generation}
                for n, s in zip(self.names, self.snapshots, strict=True)
            ],
            "settings": self.settings().to_dicts(),
            "documents": self.documents().to_dicts(),
            "results": self.results().to_dicts(),
            "ranks": [
                {"query": query, "rows": self.ranks(n).to_dicts()} for n, (query, _) in enumerate(self.queries)
            ],
            "measures": self.measures().to_dicts(),
            "sentences": list(self.sentences),
        }  # fmt: skip

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
        return moved_rows(
            self.snapshots[0].content, first, self.snapshots[other].content, second,
            self.changes[other - 1], self.causes(query, other),
        )  # fmt: skip


def diff(snapshots: Sequence[Snapshot]) -> SnapshotDiff:
    """See `Snapshot.diff`. Raises UsageError for fewer than two snapshots, or more than there are letters."""
    if len(snapshots) < 2:
        raise UsageError("There is nothing to compare with", "Pass another snapshot")
    if len(snapshots) > len(LETTERS):
        raise UsageError(f"{len(snapshots)} snapshots are too many to compare", f"Compare at most {len(LETTERS)}")
    return SnapshotDiff(tuple(snapshots))
