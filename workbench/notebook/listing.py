"""The results under the picture, as one HTML table: where each stands, whether it moved, and what each source says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.errors import WorkbenchError
from workbench.evaluate.live import LiveFigure
from workbench.markup import plain, visible
from workbench.plan.plan import Plan
from workbench.records import Hit

_CELL = "text-align:left;padding:1px 10px 1px 0;white-space:nowrap"


def listing(hits: Sequence[Hit], before: Mapping[str, int], sources: Sequence[str], said: Sequence[str] = ()) -> str:
    """The results as HTML.

    Args:
        hits: Results, best first.
        before: Chunk id -> its rank at the start, for the arrows.
        sources: The sources to give a column, in order.
        said: What else the reader must know: messages and warnings.
    """
    titles = ("", "", "result", *(f"{source} rank" for source in sources), "score")
    head = "".join(f'<th style="{_CELL}">{visible(title)}</th>' for title in titles)
    rows = "".join(_row(hit, before, sources) for hit in hits if hit.rank)
    lines = "".join(f"<div>{visible(line)}</div>" for line in said)
    return f'<div style="overflow-x:auto"><table><tr>{head}</tr>{rows}</table>{lines}</div>'


def _row(hit: Hit, before: Mapping[str, int], sources: Sequence[str]) -> str:
    cells = [
        str(hit.rank),
        moved(before.get(hit.chunk_id), hit.rank),
        visible(plain(hit.citation, 90)),
        *("" if (rank := hit.ranks.get(source)) is None else str(rank) for source in sources),
        f"{hit.score:.4f}",
    ]
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def moved(before: int | None, now: int) -> str:
    """How a result moved: ▲ or ▼ and by how many places, `new`, or nothing where it did not."""
    if before is None:
        return "new"
    return "" if before == now else f"▲{before - now}" if before > now else f"▼{now - before}"


def headline(figure: LiveFigure) -> str:
    """The measure of the judged queries, how far it is from the start, and its interval, as HTML."""
    said = visible(f"{figure.text}, 95 % interval {figure.low:.3f} to {figure.high:.3f}")
    return f'<div style="font-size:1.15em"><b>{said}</b></div>'


def plan_text(plan: Plan) -> str:
    """The plan's text form, to copy, as HTML."""
    return f'<div>Plan: <code style="white-space:normal">{visible(str(plan))}</code></div>'


def alert(error: WorkbenchError) -> str:
    """What could not be done, and the remedy, as HTML that a screen reader speaks at once."""
    return f'<div role="alert" style="border-left:4px solid #D55E00;padding-left:8px">{visible(str(error))}</div>'
