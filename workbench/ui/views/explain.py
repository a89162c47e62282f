"""Explain: why results stand where they stand, and where any other document went."""

from workbench.ui import empty, explain_page

explain_page.draw(empty.corpus_or_help())
