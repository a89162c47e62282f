"""How much the columns agree, in one line of HTML: shared results, Jaccard, rank-biased overlap. No Streamlit."""

from __future__ import annotations

from itertools import combinations

from workbench.plan.plan import Plan
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.ui.searching import Found
from workbench.ui.text import attribute, plain, visible

HELP = (
    "Of each two columns: how many results both show, Jaccard (shared over all), and RBO, rank-biased overlap with p 0.9 "
    "(1 is the same order; the top counts most)"
)


def html(found: tuple[Found, ...], plan: Plan) -> str:
    """One line, empty where there are not two columns with results; it carries the shared plan for the page's script."""
    lists = [(f.title, [h.chunk_id for h in f.hits if h.rank]) for f in found if f.hits]
    pairs = []
    for (one, first), (other, second) in combinations(lists, 2):
        most = min(len(first), len(second))
        pairs.append(
            f'<span class="wb-pair"><b>{visible(plain(one, 24))} · {visible(plain(other, 24))}</b> '
            f"{overlap(first, second)} of {most} <i>J</i> {jaccard(first, second):.2f} <i>RBO</i> {rbo(first, second):.2f}"
            "</span>"
        )
    held = f'data-wb-plan="{attribute(str(plan))}"'
    if not pairs:
        return f"<div {held}></div>"
    return f'<div class="wb-overlap" {held} title="{HELP}" aria-label="Overlap of the columns">{"".join(pairs)}</div>'
