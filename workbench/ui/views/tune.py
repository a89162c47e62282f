"""Tune: try many plans on judged queries, and take the best one to the Search page."""

from workbench.ui import empty, tune_page

tune_page.draw(empty.corpus_or_help())
