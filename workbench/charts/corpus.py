"""Pictures of a corpus: how long its chunks are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.charts.layout import figure
from workbench.charts.palette import BLUE, CUT

_MOST_BINS = 60


def token_figure(tokens: NDArray[np.int64], budget: int | None = None, *, height: int = 240) -> Any:
    """How many chunks have how many tokens, with the budget that chunks are cut to drawn in.

    Args:
        tokens: int64 (n,), tokens of each chunk.
        budget: Most tokens of a chunk by the settings; None draws no line.
        height: Pixels.
    """
    most = int(tokens.max()) if len(tokens) else 1
    width = max(1, -(-(most + 1) // _MOST_BINS))
    edges = np.arange(0, most + width + 1, width)
    counts, _ = np.histogram(tokens, bins=edges)
    told = [f"{a:,} to {a + width - 1:,}" if width > 1 else f"{a:,}" for a in edges[:-1].tolist()]
    line = {"color": CUT, "width": 2, "dash": "dash"}
    shapes = (
        [{"type": "line", "x0": budget, "x1": budget, "y0": 0, "y1": 1, "yref": "paper", "line": line}]
        if budget is not None
        else []
    )
    return figure(
        [
            {
                "type": "bar",
                "x": (edges[:-1] + width / 2).tolist(),
                "y": counts.tolist(),
                "width": width * 0.92,
                "customdata": told,
                "marker": {"color": BLUE},
                "hovertemplate": "%{y:,} chunks of %{customdata} tokens<extra></extra>",
            }
        ],
        height=height,
        shapes=shapes,
        xaxis={"title": {"text": "tokens of a chunk"}, "fixedrange": True},
        yaxis={"title": {"text": "chunks"}, "fixedrange": True},
    )
