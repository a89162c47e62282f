"""Evaluations and sweeps of the page: means with their intervals, every judged query, every plan that was tried."""

from __future__ import annotations

from workbench.charts.tuning import means_figure
from workbench.markup import visible
from workbench.snapshot.model import Content
from workbench.snapshot.page_search import Room, cell, plot
from workbench.snapshot.view import rows_of


def evaluation_section(content: Content, number: int, room: Room, figures: dict[str, str]) -> str:
    """An evaluation as HTML; its picture's data goes into `figures`, by id."""
    saved = content.evaluations[number]
    rows = "".join(
        f"<tr><td>{visible(m.measure)}</td>{cell(m.mean)}{cell(m.low)}{cell(m.high)}{cell(m.queries)}</tr>"
        for m in saved.means
    )
    heads = (
        '<th>measure</th><th class="n">mean</th><th class="n">low</th><th class="n">high</th><th class="n">queries</th>'
    )
    picture = means_figure([(m.measure, m.mean, m.low, m.high) for m in saved.means])
    judged = saved.coverage.get("judged")
    said = f"Judgments {saved.judgments_name or 'without a name'} ({saved.judgments_digest[:16]})"
    if judged is not None:
        said += f"; {judged:.0%} of the first 10 documents are judged"
    parts = [
        f'<section id="e{number}" aria-labelledby="g{number}"><h2 id="g{number}"><bdi>{visible(saved.name)}</bdi></h2>\n',
        f'<p class="soft"><bdi>{visible(said)}.</bdi> The intervals are 95 % bootstrap intervals over queries.</p>\n',
        "".join(f'<p class="warning">{visible(w)}</p>' for w in saved.warnings),
        f'<div class="plots js">{plot(figures, f"e{number}-means", picture, "Means and their 95 % intervals")}</div>\n',
        f'<div class="scroll"><table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>\n',
        _queries(content, number, room),
        "</section>\n",
    ]
    return "".join(parts)


def _queries(content: Content, number: int, room: Room) -> str:
    saved = content.evaluations[number]
    names = [m.measure for m in saved.means]
    values: dict[str, dict[str, float]] = {}
    for row in rows_of(content.table("measures"), number).iter_rows(named=True):
        values.setdefault(row["query_id"], {})[row["measure"]] = row["value"]
    every = rows_of(content.table("queries"), number)
    rows = []
    for row in every.head(room.rows).iter_rows(named=True):
        mine = values.get(row["query_id"], {})
        text = row["query"] if row["query"] is not None else row["query_id"]
        failed = f'<div class="soft">{visible(row["failure"])}</div>' if row["failure"] else ""
        cells = "".join(cell(mine.get(name)) for name in names)
        rows.append(f"<tr><td><bdi>{visible(text[:300])}</bdi>{failed}</td>{cells}{cell(row['latency_ms'], 1)}</tr>")
    heads = "<th>query</th>" + "".join(f'<th class="n">{visible(n)}</th>' for n in names) + '<th class="n">ms</th>'
    left = len(every) - len(rows)
    more = f'<p class="soft">The other {left:,} of {len(every):,} queries are in measures.parquet.</p>' if left else ""
    return (
        f'<h3>Queries</h3>\n<div class="scroll"><table class="sortable"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{more}\n"
    )


BEST = 15


def sweep_section(content: Content, number: int, room: Room, figures: dict[str, str]) -> str:
    """A sweep as HTML: what was chosen, and the plans by their means; its picture's data goes into `figures`, by id."""
    import polars as pl

    saved = content.sweeps[number]
    every = rows_of(content.table("points"), number).filter(pl.col("measure") == saved.measure)
    ordered = every.sort("mean", descending=True, maintain_order=True)
    shown = list(ordered.head(room.rows).iter_rows(named=True))
    rows = "".join(
        f'<tr><td><bdi id="w{number}-p{row["point"]}">{visible(row["changes"][:400])}</bdi></td>'
        f"<td><bdi>{visible(row['plan'][:400])}</bdi></td>{cell(row['mean'])}</tr>"
        for row in shown
    )
    means = [(f"{n}. ⟦w{number}-p{row['point']}⟧", row["mean"], None, None) for n, row in enumerate(shown[:BEST], 1)]
    left = len(every) - len(shown)
    more = f'<p class="soft">The other {left:,} of {len(every):,} plans are in points.parquet.</p>' if left else ""
    told = [saved.verdict, saved.agreement, f"{saved.combinations:,} combinations asked for by {saved.search} search."]
    told += [] if saved.complete else ["It was stopped before the end."]
    caption = "The plans with the best means, on the queries that chose"
    picture = plot(figures, f"w{number}-best", means_figure(means), caption)
    heads = f'<th>differs from the baseline in</th><th>plan</th><th class="n">{visible(saved.measure)}</th>'
    title = f"Sweep of {', '.join(saved.fields)}"
    named = "".join(
        f"<dt>{name}</dt><dd><bdi>{visible(plan)}</bdi></dd>"
        for name, plan in (("Best", saved.best), ("Compared with", saved.baseline))
    )
    parts = [
        f'<section id="w{number}" aria-labelledby="v{number}"><h2 id="v{number}"><bdi>{visible(title)}</bdi></h2>\n',
        "".join(f"<p><bdi>{visible(t)}</bdi></p>" for t in told if t),
        "".join(f'<p class="warning">{visible(w)}</p>' for w in saved.warnings),
        f'<dl>{named}</dl>\n<div class="plots js">{picture}</div>\n',
        f'<div class="scroll"><table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>',
        f"{more}\n</section>\n",
    ]
    return "".join(parts)
