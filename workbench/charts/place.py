"""What the pictures of one search read of each candidate: where it stands, in every source and in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from workbench.ranking.fuse import Fused
from workbench.records import Label


@dataclass(frozen=True, slots=True)
class Place:
    """One fused candidate.

    Attributes:
        rank: In the final order, from 1.
        fused_rank: In the fused order before dedupe and reranking, from 1.
        name: Path and first line.
        chunk_id, path: The chunk.
        label: Which kinds of source retrieved it.
        ranks: Source -> the rank that counted, from 1, only sources that retrieved it.
        scores: Source -> raw score at that rank.
        contributions: Source -> what it added, every source.
        score: The `math.fsum` of the contributions.
        rerank: A reranking model's score, or None.
        counted: Source -> first line of the chunk whose rank counted, only where it is not the shown chunk.
    """

    rank: int
    fused_rank: int
    name: str
    chunk_id: str
    path: str
    label: Label
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    contributions: Mapping[str, float]
    score: float
    rerank: float | None = None
    counted: Mapping[str, int] = field(default_factory=dict)


def places(
    fused: Fused, order: NDArray[np.int64], most: int, rerank: Mapping[int, float] | None = None
) -> tuple[Place, ...]:
    """The first `most` of the final order.

    Args:
        fused: A fused ranking.
        order: int64 positions in it, in the final order.
        most: How many at most.
        rerank: Position -> a reranking model's score.
    """
    made = []
    for rank, position in enumerate(order[:most].tolist(), 1):
        row = int(fused.rows[position])
        evidence = fused.evidence(position)
        made.append(
            Place(
                rank=rank,
                fused_rank=position + 1,
                name=f"{fused.candidates.paths[row]}:{int(fused.candidates.start_lines[row])}",
                chunk_id=fused.chunk_ids[position],
                path=fused.candidates.paths[row],
                label=fused.labels[position],
                ranks={source: rank for source, (rank, _) in evidence.items()},
                scores={s: float(fused.candidates.column(s).score[at]) for s, (_, at) in evidence.items()},
                counted={s: int(fused.candidates.start_lines[at]) for s, (_, at) in evidence.items() if at != row},
                contributions={s: float(c[position]) for s, c in fused.contributions.items()},
                score=float(fused.scores[position]),
                rerank=(rerank or {}).get(position),
            )
        )
    return tuple(made)
