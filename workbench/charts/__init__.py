"""Pictures: pure functions from the workbench's records to plotly figures.

The pages, the notebooks and the snapshots draw with these same functions, so the same result gives the same picture
everywhere. They read records and arrays, never a store or a session; none draws more than 200 points; colours come from
`palette`, which people with any colour vision can tell apart, and no picture says something by colour alone. plotly is
imported when a figure is made, not before.
"""

from __future__ import annotations

from workbench.charts.changes import change_figure
from workbench.charts.corpus import token_figure
from workbench.charts.distances import Histogram, distance_figure, histogram
from workbench.charts.explain import bump_figure, contribution_figure, plane_figure
from workbench.charts.measures import means_figure
from workbench.charts.palette import LABELS, SOURCES, source_colour
from workbench.charts.place import Place, places
from workbench.charts.results import MOST_POINTS, funnel_figure, rank_figure, score_figure, share_figure, timing_figure
from workbench.charts.tuning import distribution_figure, heat_figure, sensitivity_figure, wins_figure

__all__ = [
    "LABELS",
    "MOST_POINTS",
    "SOURCES",
    "Histogram",
    "Place",
    "bump_figure",
    "change_figure",
    "contribution_figure",
    "distance_figure",
    "distribution_figure",
    "funnel_figure",
    "heat_figure",
    "histogram",
    "means_figure",
    "places",
    "plane_figure",
    "rank_figure",
    "score_figure",
    "sensitivity_figure",
    "share_figure",
    "source_colour",
    "timing_figure",
    "token_figure",
    "wins_figure",
]
