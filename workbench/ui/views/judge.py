"""Judge: say how well passages answer queries, one after the other, by keyboard."""

from workbench.ui import empty, judge_page

judge_page.draw(empty.corpus_or_help())
