"""How one query's results moved between two snapshots.

A passage is the same in both where its chunk id is, or else where it begins at the same line of the same document: a chunk's id
holds its span, so a word more in a passage gives it another id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench.snapshot.causes import Causes, Changes
from workbench.snapshot.view import name_of_row, rows_of

if TYPE_CHECKING:
    from workbench.snapshot.model import Content


@dataclass(frozen=True, slots=True)
class Moved:
    """One passage that is a result in either snapshot.

    Attributes:
        key: Its chunk id in the first snapshot, or in the second where the first lacks it.
        citation: Path and first line.
        before, after: Its rank in each, from 1; 0 where it is no result there.
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
    same = _same_passages(before, after)
    back = {new: old for old, new in same.items()}
    rows = []
    for chunk_id, row in after.items():
        old = before.get(back.get(chunk_id, ""))
        if row["shown"] or (old is not None and old["shown"]):
            rows.append(_moved(back.get(chunk_id, chunk_id), old, row, changes, causes))
    rows += [
        _moved(chunk_id, row, None, changes, causes)
        for chunk_id, row in before.items()
        if row["shown"] and chunk_id not in same
    ]
    return tuple(rows)


def _candidates(content: Content, number: int) -> dict[str, dict[str, Any]]:
    frame = rows_of(content.table("candidates"), number).sort("rank", nulls_last=True, maintain_order=True)
    return {row["chunk_id"]: row for row in frame.iter_rows(named=True)}


def _same_passages(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Chunk id in the first -> in the second."""
    same = {i: i for i in before if i in after}
    starts = {_start(row): i for i, row in after.items() if i not in before}
    for chunk_id, row in before.items():
        if chunk_id not in same and _start(row) in starts:
            same[chunk_id] = starts.pop(_start(row))
    return same


def _start(row: Mapping[str, Any]) -> tuple[str, int, bool]:
    return row["document_id"], row["start_line"], row["whole"]


def _moved(
    key: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, changes: Changes, causes: Causes
) -> Moved:
    before = old["rank"] if old is not None and old["shown"] else 0
    after = new["rank"] if new is not None and new["shown"] else 0
    row = new or old or {}
    if not before:
        change = "moved in"
    elif not after:
        change = "moved out"
    elif before == after:
        change = "stays"
    else:
        change = f"up {before - after}" if after < before else f"down {after - before}"
    return Moved(key, name_of_row(row), before, after, change, _why(change, row, old, new, changes, causes))


def _why(
    change: str,
    row: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    changes: Changes,
    causes: Causes,
) -> str:
    if change == "stays":
        return ""
    own = changes.own(row["document_id"])
    rest = replace(causes, corpus="") if own else causes
    why = ", ".join(part for part in (own, rest.words if rest.any or not own else "") if part)
    gone = new if change == "moved out" else old
    if change in ("moved in", "moved out") and gone is not None and gone["rank"] is not None:
        verb = "was" if change == "moved in" else "is now"
        return f"{why} ({verb} rank {gone['rank']}, beyond the limit)"
    return why
