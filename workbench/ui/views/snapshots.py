"""Snapshots: keep results, open them again, verify and compare them."""

from workbench.ui import empty, snapshots_page

snapshots_page.draw(empty.corpus_or_help())
