"""Search: one query, answered in several ways side by side, with every setting at hand."""

from workbench.ui import empty, search_page

search_page.draw(empty.corpus_or_help())
