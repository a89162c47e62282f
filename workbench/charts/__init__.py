"""Pictures: pure functions from the workbench's records to plotly figures.

The pages, the notebooks and the snapshots draw with these same functions, so the same result gives the same picture
everywhere. They read records and arrays, never a store or a session; none draws more than 200 points, and no picture says
something by colour alone. plotly is imported when a figure is made, not before.
"""

from __future__ import annotations

from workbench.charts.distributions import (
    Histogram,
    distance_figure,
    distribution_figure,
    histogram,
    score_histogram,
    token_figure,
)
from workbench.charts.layout import LABELS, MOST_POINTS, SOURCES, source_colour
from workbench.charts.search import (
    Candidate,
    bump_figure,
    change_figure,
    contribution_figure,
    funnel_figure,
    places,
    plane_figure,
    rank_figure,
    score_figure,
    share_figure,
    timing_figure,
    upset_figure,
)
from workbench.charts.tuning import (
    forest_figure,
    heat_figure,
    history_figure,
    means_figure,
    sensitivity_figure,
    wins_figure,
)

__all__ = [
    "LABELS",
    "MOST_POINTS",
    "SOURCES",
    "Candidate",
    "Histogram",
    "bump_figure",
    "change_figure",
    "contribution_figure",
    "distance_figure",
    "distribution_figure",
    "forest_figure",
    "funnel_figure",
    "heat_figure",
    "histogram",
    "history_figure",
    "means_figure",
    "places",
    "plane_figure",
    "rank_figure",
    "score_figure",
    "score_histogram",
    "sensitivity_figure",
    "share_figure",
    "source_colour",
    "timing_figure",
    "token_figure",
    "upset_figure",
    "wins_figure",
]
