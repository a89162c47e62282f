"""What moved between two results of one query, and why: which results were lost, fell, rose or came, and what pushed them.

Everything that is said was looked up: the step that dropped a result is `explain`'s, what overtook it are the results that are
above it now and were not before, and how the sources value it are its own ranks and shares in both lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.errors import counted
from workbench.records import Hit
from workbench.retrieve.explain import dropped
from workbench.retrieve.messages import listed
from workbench.retrieve.result import SearchResult

KINDS = ("lost", "fell", "same", "rose", "came")


@dataclass(frozen=True, slots=True)
class Move:
    """One result of either list.

    Attributes:
        hit: As the second list shows it; as the first does where the second lacks it.
        first, second: Its rank in each list, 0 where it is no result.
        kind: lost, fell, same, rose or came.
        step: The step that keeps it out of the list that lacks it, as `Explanation.dropped_by` names it; else "".
        by: Ranks, in the second list, of the results that are before it now and were not.
        reason: Why, in a sentence or two; "" where it stayed.
    """

    hit: Hit
    first: int
    second: int
    kind: str
    step: str = ""
    by: tuple[int, ...] = ()
    reason: str = ""


def moved(first: SearchResult, second: SearchResult) -> tuple[Move, ...]:
    """Every result of two lists of one query: those of the first in its order, then those that came.

    Where either plan ranks documents, a document's first result in each list is one and the same.
    """
    whole = "document" in (first.plan["fusion.unit"], second.plan["fusion.unit"])
    before, after = _by_key(first.hits, whole), _by_key(second.hits, whole)
    moves = [_move(before[key], after.get(key), key, before, after, second) for key in before]
    for key, hit in after.items():
        if key not in before:
            step, reason = dropped(first.engine, first, hit.chunk_id)
            moves.append(Move(hit, 0, hit.rank, "came", step, reason=f"Not in the first list: {_clause(reason)}."))
    return tuple(moves)


def _by_key(hits: Sequence[Hit], whole: bool) -> dict[str, Hit]:
    found: dict[str, Hit] = {}
    for hit in hits:
        if not hit.added:
            key = hit.document_id if whole and hit.document_id not in found else hit.chunk_id
            found[key] = hit
    return found


def _move(
    old: Hit, new: Hit | None, key: str, before: dict[str, Hit], after: dict[str, Hit], second: SearchResult
) -> Move:
    last = new.rank if new is not None else len(after) + 1
    over = tuple(h.rank for k, h in after.items() if h.rank < last and (k not in before or before[k].rank > old.rank))
    if new is None:
        step, reason = dropped(second.engine, second, old.chunk_id)
        pushed = step in ("limit", "strongest")
        words = f"{reason}." + (f" {_overtaken(over, after)}" if pushed and over else "")
        return Move(old, old.rank, 0, "lost", step, over if pushed else (), words)
    if new.rank == old.rank:
        return Move(new, old.rank, new.rank, "same")
    kind, why = ("rose" if new.rank < old.rank else "fell"), _valued(old, new)
    gone = [h.rank for k, h in before.items() if h.rank < old.rank and (k not in after or after[k].rank > new.rank)]
    if kind == "fell":
        return Move(new, old.rank, new.rank, kind, by=over, reason=f"{_overtaken(over, after)}{why}")
    left = f"Now before {_ranks(gone)} of the first list." if gone else ""
    return Move(new, old.rank, new.rank, kind, reason=f"{left}{why}".strip())


def _overtaken(over: Sequence[int], after: dict[str, Hit]) -> str:
    by_rank = {h.rank: h for h in after.values()}
    names = list(dict.fromkeys(by_rank[r].path.rpartition("/")[2] for r in over[:3]))
    more = f" and {len(over) - 3} more" if len(over) > 3 else ""
    return f"Pushed down by {counted(len(over), 'result')}: {_ranks(over[:3])}{more} ({', '.join(names)})."


def _ranks(ranks: Sequence[int]) -> str:
    return f"number {ranks[0]}" if len(ranks) == 1 else "numbers " + listed(map(str, ranks))


def _valued(old: Hit, new: Hit) -> str:
    """How the sources value a result in both lists, where that differs."""
    parts = []
    sizes = [sum(abs(v) for v in h.contributions.values()) for h in (old, new)]
    for source in sorted({*old.contributions, *new.contributions}):
        was, now = old.ranks.get(source, 0), new.ranks.get(source, 0)
        shares = [
            round(100 * abs(h.contributions.get(source, 0.0)) / size) if size else 0
            for h, size in zip((old, new), sizes, strict=True)
        ]
        if was != now:
            parts.append(f"{source} has it at {f'rank {now}' if now else 'no rank'}, was {was or 'none'}")
        elif shares[0] != shares[1] and len({*old.contributions, *new.contributions}) > 1:
            parts.append(f"{source} gives {shares[1]} % of its score, was {shares[0]} %")
    return f" {_capital('; '.join(parts))}." if parts else ""


def _clause(reason: str) -> str:
    return reason[:1].lower() + reason[1:]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
