"""One search of the page: what was asked, pictures, passages, and the tables that the pictures are of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.charts import bump_figure, contribution_figure, funnel_figure, timing_figure
from workbench.charts.search import most_places
from workbench.markup import attribute, excerpt, marked, visible
from workbench.records import Label
from workbench.snapshot.model import Content, SavedSearch
from workbench.snapshot.view import name_of_row, placed, rows_of, spans, standings

PLACES = 20
_LEAST_PASSAGE, _LEAST_ROWS = 120, 40
_CLASS = {Label.EXACT: "exact", Label.SEMANTIC: "semantic", Label.HYBRID: "hybrid", Label.STRONGEST: "strongest"}


@dataclass(frozen=True, slots=True)
class Room:
    """How much a page may show: characters of a passage, rows of a table. A table has room for every place of a picture."""

    passage: int
    rows: int

    @property
    def smallest(self) -> bool:
        """True where no less can be shown."""
        return self.passage <= _LEAST_PASSAGE and self.rows <= _LEAST_ROWS

    def half(self) -> Room:
        """Half of it."""
        return Room(max(_LEAST_PASSAGE, self.passage // 2), max(_LEAST_ROWS, self.rows // 2))


def search_section(content: Content, number: int, room: Room, figures: dict[str, str]) -> str:
    """A search as HTML; its pictures' data goes into `figures`, by id.

    Args:
        content: The snapshot's content.
        number: The search, from 0.
        room: How much may be shown.
        figures: Id -> JSON that may stand in a page; added to.
    """
    search = content.searches[number]
    first = ' class="first"' if number == 0 else ""
    parts = [
        f'<section id="s{number}" aria-labelledby="h{number}"><h2 id="h{number}"{first}>'
        f"<bdi>{visible(search.query or search.keywords)}</bdi></h2>\n",
        _asked(search),
        "".join(f'<p class="warning">{visible(w)}</p>' for w in search.warnings),
        "".join(
            f'<p class="warning">{visible(f"{u.source} could not run: {u.reason}. {u.remedy}.")}</p>'
            for u in search.unavailable
        ),
        "".join(f'<p class="soft">{visible(m)}</p>' for m in search.messages),
        _pictures(content, number, figures),
        _passages(content, number, room),
        _table(content, number, room),
        _funnel(search, number),
        "</section>\n",
    ]
    return "".join(parts)


def _asked(search: SavedSearch) -> str:
    rows = [("Mode", search.mode), ("Plan", search.plan), ("Keywords", search.keywords), ("Filter", search.filters)]
    if search.context or search.context_left_out:
        rows.append(("Context", search.context[:300] if search.context else "left out"))
    times = ", ".join(f"{n.removesuffix('_ms')} {v:.1f}" for n, v in search.timings_ms.items())
    rows.append(("Milliseconds", times))
    listed = "".join(f"<dt>{n}</dt><dd><bdi>{visible(t)}</bdi></dd>" for n, t in rows if t)
    return f"<dl>{listed}</dl>\n"


# --- pictures --------------------------------------------------------------------------------------------------------


def figure_json(figure: Any) -> str:
    """A figure's data as JSON that may stand inside a script element: `<`, `>` and `&` are written as escapes."""
    values = figure.to_plotly_json()
    values["layout"].pop("template", None)
    text = json.dumps(values, ensure_ascii=True, separators=(",", ":"), default=_plain)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    return value.tolist()


def plot(figures: dict[str, str], key: str, figure: Any, caption: str) -> str:
    """The place of a picture; its data goes into `figures`."""
    figures[key] = figure_json(figure)
    height = int(figure.layout.height or 300)
    return (
        f'<figure class="js-figure"><figcaption>{visible(caption)}</figcaption>'
        f'<div class="plot" data-figure="{key}" style="height:{height}px" role="img" aria-label="{attribute(caption)}">'
        "</div></figure>\n"
    )


def _pictures(content: Content, number: int, figures: dict[str, str]) -> str:
    search = content.searches[number]

    def by_id(row: Mapping[str, Any]) -> str:
        return f"⟦s{number}-p{row['place']}⟧"

    reranked = any(rows_of(content.table("candidates"), number)["rerank"].is_not_null())
    most = min(PLACES, most_places(len(search.sources), reranked))
    shown = placed(content, number, most, by_id)
    parts = []
    if shown and search.sources:
        bump = bump_figure(shown, search.sources, reranked=reranked, height=420)
        parts.append(plot(figures, f"s{number}-ranks", bump, "How the ranks moved from each source to the result"))
        added = contribution_figure(shown, search.sources)
        parts.append(plot(figures, f"s{number}-added", added, "What each source added to each score"))
    if search.funnel:
        steps = [replace(s, reason=f"⟦s{number}-f{n}⟧") for n, s in enumerate(search.funnel)]
        parts.append(plot(figures, f"s{number}-funnel", funnel_figure(steps), "How many candidates each step left"))
    if search.timings_ms:
        times = timing_figure({"this search": search.timings_ms})
        parts.append(plot(figures, f"s{number}-times", times, "Milliseconds by step"))
    return f'<div class="plots js">{"".join(parts)}</div>\n' if parts else ""


# --- passages ---------------------------------------------------------------------------------------------------------


def _passages(content: Content, number: int, room: Room) -> str:
    rows = list(rows_of(content.table("passages"), number).iter_rows(named=True))
    if not rows:
        return "<p>No passage was shown.</p>\n"
    said = standings(content, number)
    return f"<h3>Passages</h3>\n{''.join(_passage(row, said.get(row['place'], []), room) for row in rows)}"


def _passage(row: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], room: Room) -> str:
    label = Label(row["label"])
    rank = "" if row["added"] else f"<strong>{row['rank']}.</strong> "
    where = visible(row["citation"] or row["chunk_id"])
    score = "" if row["score"] is None or row["added"] else f" {row['score']:.4f}"
    sources = " · ".join(
        f"{visible(s['source'])} {'#' + str(s['rank']) if s['rank'] is not None else 'absent'} (+{s['contribution']:.4f})"
        for s in lines
    )
    title = " › ".join(dict.fromkeys(t for t in (row["title"], row["section"]) if t))
    head = (
        f'<header><span class="where">{rank}<bdi>{where}</bdi></span><span class="soft">{label}{score}</span></header>'
    )
    told = f'<div class="soft">{sources}</div>' if sources else ""
    named = f"<div><bdi>{visible(title[:400])}</bdi></div>" if title else ""
    link = _link(row["url"]) if row["url"] else ""
    return f'<article class="{_CLASS.get(label, "added")}">{head}{named}{link}{told}{_text(row, room)}</article>\n'


def _link(url: str) -> str:
    """The original's address, as a link only where it is one of the web."""
    if url.startswith(("https://", "http://")):
        return f'<div class="soft"><a href="{attribute(url)}" rel="noreferrer noopener">{visible(url[:200])}</a></div>'
    return f'<div class="soft"><bdi>{visible(url[:200])}</bdi></div>'


def _text(row: Mapping[str, Any], room: Room) -> str:
    if row["text"] is None:
        return ""
    piece = excerpt(row["text"], spans(row), room.passage)
    before = f'<span class="soft">… {piece.before:,} characters before</span>\n' if piece.before else ""
    after = f'<span class="soft"> … {piece.after:,} more characters</span>' if piece.after else ""
    return f'<div class="text">{before}{marked(piece.text, piece.matches)}{after}</div>'


# --- tables -----------------------------------------------------------------------------------------------------------


def cell(value: float | None, digits: int = 4) -> str:
    """A number's cell; it sorts by the whole number and shows some digits."""
    if value is None:
        return '<td class="n"></td>'
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
    return f'<td class="n" data-v="{value!r}">{shown}</td>'


def _table(content: Content, number: int, room: Room) -> str:
    search = content.searches[number]
    every = rows_of(content.table("candidates"), number)
    if not len(every):
        return ""
    # Those with a rank first, in their final order: the pictures' places are always among them.
    ordered = every.sort("rank", nulls_last=True, maintain_order=True).head(room.rows)
    said = standings(content, number)
    reranked = any(every["rerank"].is_not_null())
    heads = ['<th class="n rank">rank</th><th>where</th><th>label</th><th class="n">score</th>']
    if reranked:
        heads.append('<th class="n">rerank</th>')
    for source in search.sources:
        name = visible(source)
        heads.append(
            f'<th class="n rank">{name} rank</th><th class="n">{name} score</th><th class="n">{name} added</th>'
        )
    rows = [
        _row(row, said.get(row["place"], []), search.sources, number, reranked) for row in ordered.iter_rows(named=True)
    ]
    left = len(every) - len(ordered)
    more = (
        f'<p class="soft">The other {left:,} of {len(every):,} candidates are in candidates.parquet.</p>'
        if left
        else ""
    )
    return (
        f'<h3>Candidates</h3>\n<div class="scroll"><table class="sortable"><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{more}\n"
    )


def _row(
    row: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], sources: Sequence[str], number: int, reranked: bool
) -> str:
    by_source = {line["source"]: line for line in lines}
    cells = [cell(row["rank"])]
    cells.append(f'<td><bdi id="s{number}-p{row["place"]}">{visible(name_of_row(row)[:300])}</bdi></td>')
    why = row["label"] if row["duplicate_of"] is None else "the text of a better one"
    cells.append(f"<td>{visible(why)}</td>{cell(row['score'])}")
    if reranked:
        cells.append(cell(row["rerank"]))
    for source in sources:
        line = by_source.get(source)
        one = (None, None, None) if line is None else (line["rank"], line["score"], line["contribution"])
        cells += [cell(value) for value in one]
    dropped = ' class="dropped"' if not row["shown"] else ""
    return f"<tr{dropped}>{''.join(cells)}</tr>"


def _funnel(search: SavedSearch, number: int) -> str:
    if not search.funnel:
        return ""
    rows = "".join(
        f"<tr><td>{visible(s.step)}</td><td>{visible(s.source)}</td>{cell(s.entered)}{cell(s.left)}{cell(s.entered - s.left)}"
        f'<td><bdi id="s{number}-f{n}">{visible(s.reason)}</bdi></td></tr>'
        for n, s in enumerate(search.funnel)
    )
    heads = '<th>step</th><th>source</th><th class="n">entered</th><th class="n">left</th><th class="n">dropped</th><th>why</th>'
    return f'<h3>Funnel</h3>\n<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>\n'
