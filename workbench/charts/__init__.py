"""Pictures: pure functions from the workbench's records to plotly figures.

The pages, the notebooks and the snapshots draw with these same functions, so the same result gives the same picture
everywhere. They read records and arrays, never a store or a session; none draws more than 200 points, and no picture says
something by colour alone. plotly is imported when a figure is made, not before.
"""

from __future__ import annotations

from workbench.charts.distributions import Histogram as Histogram
from workbench.charts.distributions import distance_figure as distance_figure
from workbench.charts.distributions import distribution_figure as distribution_figure
from workbench.charts.distributions import histogram as histogram
from workbench.charts.distributions import score_histogram as score_histogram
from workbench.charts.distributions import token_figure as token_figure
from workbench.charts.layout import LABELS as LABELS
from workbench.charts.layout import MOST_POINTS as MOST_POINTS
from workbench.charts.layout import SOURCES as SOURCES
from workbench.charts.layout import source_colour as source_colour
from workbench.charts.search import Candidate as Candidate
from workbench.charts.search import bump_figure as bump_figure
from workbench.charts.search import change_figure as change_figure
from workbench.charts.search import contribution_figure as contribution_figure
from workbench.charts.search import funnel_figure as funnel_figure
from workbench.charts.search import places as places
from workbench.charts.search import plane_figure as plane_figure
from workbench.charts.search import rank_figure as rank_figure
from workbench.charts.search import score_figure as score_figure
from workbench.charts.search import share_figure as share_figure
from workbench.charts.search import timing_figure as timing_figure
from workbench.charts.search import upset_figure as upset_figure
from workbench.charts.tuning import forest_figure as forest_figure
from workbench.charts.tuning import heat_figure as heat_figure
from workbench.charts.tuning import history_figure as history_figure
from workbench.charts.tuning import means_figure as means_figure
from workbench.charts.tuning import sensitivity_figure as sensitivity_figure
from workbench.charts.tuning import wins_figure as wins_figure
