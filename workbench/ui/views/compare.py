"""Compare: two plans on the same queries, who wins where, and by how much."""

from workbench.ui import compare_page, empty

compare_page.draw(empty.corpus_or_help())
