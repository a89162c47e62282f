"""`index.html`: the whole snapshot as one page that opens by itself.

No server, no network, no framework: a style, plotly once, one script, and HTML (`page.html`, `page.css`, `page.js`). The policy
in the page allows exactly these three by their digests and nothing else, so text that should get in anyway runs nothing. Texts of
documents, paths and queries are HTML text, escaped by `markup`; the pictures' data is inert JSON of numbers and of ids, for
which the script looks the names up in the page. Without the script the page reads from top to bottom, pictures left out.

The page stays under `MOST_BYTES`: passages and tables share what plotly leaves, and say how much they left out.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from workbench import charts
from workbench.charts.layout import BLUE, LABELS, SKY, VERMILION
from workbench.charts.search import most_places
from workbench.markup import attribute, excerpt, marked, visible
from workbench.records import FEEDBACK, Label
from workbench.snapshot.schema import About, Content, Passages, SavedSearch, name_of_row, placed, spans

MOST_BYTES = 7_900_000
PLACES, BEST = 20, 15
_PASSAGE, _TABLE_ROWS = 6_000, 1_500
_CLASS = {Label.EXACT: "exact", Label.SEMANTIC: "semantic", Label.HYBRID: "hybrid", Label.STRONGEST: "strongest"}
OMITTED = (
    "Rows of documents that the audience may not see were left out; ranks and scores are those of the whole result"
)


class Room(NamedTuple):
    """How much a page may show: characters of a passage, rows of a table. A table has room for every place of a picture."""

    passage: int
    rows: int


_LEAST = Room(120, 40)


def page(about: About, content: Content) -> str:
    """The page of a snapshot, under `MOST_BYTES` bytes of UTF-8."""
    passages, searches = max(len(content.table("passages")), 1), max(len(content.searches), 1)
    room = Room(min(_PASSAGE, 1_200_000 // passages), min(300, _TABLE_ROWS // searches))
    while True:
        room = Room(*map(max, room, _LEAST))
        made = draw(about, content, room)
        if len(made.encode("utf-8")) <= MOST_BYTES or room == _LEAST:
            return made
        room = Room(room.passage // 2, room.rows // 2)


# --- the constant parts ---------------------------------------------------------------------------------------------------


@functools.cache
def _fixed() -> tuple[Template, Mapping[str, str]]:
    """The form of every page, and the constant parts in it with the policy that allows them."""
    import plotly.offline

    here = Path(__file__).parent
    form, css, script = (here.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    colours = {"blue": BLUE, "sky": SKY, "vermilion": VERMILION}
    colours |= {name: LABELS[label] for label, name in _CLASS.items()}
    css = ":root{" + "".join(f"--{name}:{colour};" for name, colour in colours.items()) + "}\n" + css
    source = str(plotly.offline.get_plotlyjs())
    scripts = " ".join(f"'sha256-{_hash(text)}'" for text in (source, script))
    # plotly makes an empty style element and adds its rules through the object model, and sets styles on what it draws.
    styles = f"'sha256-{_hash(css)}' 'sha256-{_hash('')}'"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src-elem {styles}; style-src-attr 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # A bundled map library adds style elements unless an element has their ids: the page has no maps.
    unwanted = dict.fromkeys(re.findall(r'getElementById\("([0-9a-f]{64})"\)', source))
    held = "".join(f'<i id="{name}" hidden></i>' for name in unwanted)
    return Template(form), {"css": css, "script": script, "plotly": source, "policy": policy, "held": held}


def policy() -> str:
    """The Content-Security-Policy of a page, for the header of whoever serves one."""
    return _fixed()[1]["policy"] + "; frame-ancestors 'none'"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def draw(about: About, content: Content, room: Room) -> str:
    (form, fixed), title = _fixed(), title_of(about, content)
    figures: dict[str, str] = {}
    sections = [_search(content, n, room, figures) for n in _order(content)]
    sections += [_sweep(content, n, room, figures) for n in range(len(content.sweeps))]
    sections += [_evaluation(content, n, room, figures) for n in range(len(content.evaluations))]
    data = "".join(f'<script type="application/json" id="{key}">{text}</script>\n' for key, text in figures.items())
    own = {"title": attribute(title), "heading": visible(title), "contents": _contents(content), "data": data}
    own |= {"policy": html.escape(fixed["policy"]), "body": "".join(sections), "summary": summary(about, content)}
    return form.substitute({**fixed, **own})


def _order(content: Content) -> list[int]:
    """The searches, those that fuse several sources first: the answer that matters is on top."""
    return sorted(range(len(content.searches)), key=lambda n: content.searches[n].mode != "hybrid")


def title_of(about: About, content: Content) -> str:
    """The first line of the note, else the first query, else the first evaluation."""
    names = [about.note.strip().split("\n")[0]]
    names += [s.title for s in content.searches] + [e.name for e in content.evaluations]
    return next((n.strip()[:200] for n in names if n.strip()), "Snapshot")


def holds(content: Content) -> str:
    counts = {"search": len(content.searches), "evaluation": len(content.evaluations), "sweep": len(content.sweeps)}
    several = {"search": "searches", "evaluation": "evaluations", "sweep": "sweeps"}
    return ", ".join(f"{n} {word if n == 1 else several[word]}" for word, n in counts.items() if n)


def when(about: About) -> str:
    return about.created.replace("T", " ").removesuffix("Z") + " UTC"


def summary(about: About, content: Content) -> str:
    origin = about.origin
    who = "the local owner" if about.principal is None else _principal(about.principal.tenant, about.principal.roles)
    models = dict.fromkeys(name for search in content.searches for name in search.models)
    records = f" in {origin.records:,} passages" if origin.records else ""
    rows = [
        ("Made", f"{when(about)}{f' by {about.by}' if about.by else ''}"),
        ("Holds", holds(content)),
        ("Searched as", who),
        ("Corpus", f"generation {origin.generation}, digest {origin.digest}, {origin.documents:,} documents{records}"),
        *(("Encoder", f"{e.name}, weights {e.digest[:16]}, {e.runtime}, {e.dim} dimensions") for e in origin.encoders),
        *(("Model", f"{name}, which only verifying loads, when it is allowed to") for name in models),
        ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(about.packages.items()))),
    ]
    if about.passages is not Passages.SHOWN:
        gone = "replaced by citations" if about.passages is Passages.REDACTED else "left out, with all paths"
        rows.append(("Passages", gone))
    if about.audience is not None:
        rows.append(("Cut for", _principal(about.audience.tenant, about.audience.roles)))
    rest = about.note.strip().partition("\n")[2].strip()  # its first line is the title
    note = f'<p class="note"><bdi>{visible(rest)}</bdi></p>\n' if rest else ""
    omitted = f'<p class="warning">{OMITTED}.</p>\n' if about.omitted else ""
    return note + _facts(rows) + omitted


def _principal(tenant: str | None, roles: tuple[str, ...]) -> str:
    return f"{'tenant ' + tenant if tenant is not None else 'no tenant'}, {'roles ' + ', '.join(roles) if roles else 'no roles'}"


def _contents(content: Content) -> str:
    if len(content.searches) + len(content.evaluations) < 2:
        return ""
    lines = [(f"s{n}", content.searches[n].title[:120], _plan_of(content.searches[n])) for n in _order(content)]
    lines += [(f"w{n}", f"Sweep of {', '.join(s.fields)}", f"by {s.measure}") for n, s in enumerate(content.sweeps)]
    lines += [(f"e{n}", e.name[:120], "") for n, e in enumerate(content.evaluations)]
    items = "".join(
        f'<li><a href="#{key}"><bdi>{visible(text)}</bdi></a> <span class="soft">{visible(more)}</span></li>'
        for key, text, more in lines
    )
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>\n'


def _plan_of(search: SavedSearch) -> str:
    return f"{search.mode}: {search.plan}"


# --- pieces ---------------------------------------------------------------------------------------------------------------


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    listed = "".join(f"<dt>{visible(name)}</dt><dd><bdi>{visible(text)}</bdi></dd>" for name, text in rows if text)
    return f"<dl>{listed}</dl>\n"


def _warnings(texts: Sequence[str]) -> str:
    return "".join(f'<p class="warning">{visible(text)}</p>' for text in texts)


def _plot(figures: dict[str, str], key: str, figure: Any, caption: str) -> str:
    """The place of a picture; its data goes into `figures`: JSON that may stand in a page, `<`, `>` and `&` as escapes."""
    values = figure.to_plotly_json()
    values["layout"].pop("template", None)
    text = json.dumps(values, ensure_ascii=True, separators=(",", ":"), default=lambda value: value.tolist())
    figures[key] = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    height = int(figure.layout.height or 300)
    place = (
        f'<div class="plot" data-figure="{key}" style="height:{height}px" role="img" aria-label="{attribute(caption)}">'
    )
    return f'<figure class="js-figure"><figcaption>{visible(caption)}</figcaption>{place}</div></figure>\n'


def _cell(value: float | None, digits: int = 4) -> str:
    """A number's cell; it sorts by the whole number and shows some digits."""
    if value is None:
        return '<td class="n"></td>'
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
    return f'<td class="n" data-v="{value!r}">{shown}</td>'


def _table(heads: Sequence[str], rows: Sequence[str], more: str = "", *, title: str = "", sortable: bool = True) -> str:
    """A table; a head that begins with `#` is of numbers, with `##` of ranks; `more` says what is left out."""

    def head(text: str) -> str:
        kind = ' class="n rank"' if text.startswith("##") else ' class="n"' if text.startswith("#") else ""
        return f"<th{kind}>{visible(text.lstrip('#'))}</th>"

    kind = ' class="sortable"' if sortable else ""
    body = f"<thead><tr>{''.join(map(head, heads))}</tr></thead><tbody>{''.join(rows)}</tbody>"
    left = f'<p class="soft">{more}</p>' if more else ""
    return f'{f"<h3>{title}</h3>" if title else ""}\n<div class="scroll"><table{kind}>{body}</table></div>{left}\n'


def _rest(shown: int, every: int, what: str, file: str) -> str:
    return f"The other {every - shown:,} of {every:,} {what} are in {file}.parquet." if every > shown else ""


def _section(key: str, title: str, parts: Sequence[str], first: bool = False) -> str:
    kind = ' class="first"' if first else ""
    head = f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h"{kind}><bdi>{visible(title)}</bdi></h2>\n'
    return f"{head}{''.join(parts)}</section>\n"


# --- searches -------------------------------------------------------------------------------------------------------------


def _search(content: Content, number: int, room: Room, figures: dict[str, str]) -> str:
    search = content.searches[number]
    context = search.context[:300] or ("left out" if search.context_left_out else "")
    times = ", ".join(f"{n.removesuffix('_ms')} {v:.1f}" for n, v in search.timings_ms.items())
    rows = [("Mode", search.mode), ("Plan", search.plan), ("Keywords", search.keywords), ("Filter", search.filters)]
    parts = [
        _facts([*rows, ("Context", context), ("Milliseconds", times)]),
        _warnings(
            [*search.warnings, *(f"{u.source} could not run: {u.reason}. {u.remedy}." for u in search.unavailable)]
        ),
        "".join(f'<p class="soft">{visible(m)}</p>' for m in search.messages),
        _pictures(content, number, figures),
        _passages(content, number, room),
        _candidates(content, number, room),
        _funnel(search, number),
    ]
    return _section(f"s{number}", search.title, parts, first=number == _order(content)[0])


def _pictures(content: Content, number: int, figures: dict[str, str]) -> str:
    search, key = content.searches[number], f"s{number}"
    reranked = any(content.rows("candidates", number)["rerank"].is_not_null())
    most = min(PLACES, most_places(len(search.sources), reranked))
    shown = placed(content, number, most, lambda row: f"⟦{key}-p{row['place']}⟧")
    made = []
    if shown and search.sources:
        bump = charts.bump_figure(shown, search.sources, reranked=reranked, height=420)
        added = charts.contribution_figure(shown, search.sources)
        made.append(("ranks", bump, "How the ranks moved from each source to the result"))
        made.append(("added", added, "What each source added to each score"))
    if search.funnel:
        steps = [replace(s, reason=f"⟦{key}-f{n}⟧") for n, s in enumerate(search.funnel)]
        made.append(("funnel", charts.funnel_figure(steps), "How many candidates each step left"))
    if search.timings_ms:
        made.append(("times", charts.timing_figure({"this search": search.timings_ms}), "Milliseconds by step"))
    drawn = "".join(_plot(figures, f"{key}-{name}", figure, caption) for name, figure, caption in made)
    return f'<div class="plots js">{drawn}</div>\n' if drawn else ""


def _passages(content: Content, number: int, room: Room) -> str:
    rows = list(content.rows("passages", number).iter_rows(named=True))
    if not rows:
        return "<p>No passage was shown.</p>\n"
    evidence = content.evidence(number)
    return f"<h3>Passages</h3>\n{''.join(_passage(row, evidence.get(row['place'], []), room) for row in rows)}"


def _passage(row: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], room: Room) -> str:
    label = Label(row["label"])
    rank = "" if row["added"] else f"<strong>{row['rank']}.</strong> "
    score = "" if row["score"] is None or row["added"] else f" {row['score']:.4f}"
    where = f'<span class="where">{rank}<bdi>{visible(row["citation"] or row["chunk_id"])}</bdi></span>'
    parts = [f'<header>{where}<span class="soft">{label}{score}</span></header>']
    title = " › ".join(dict.fromkeys(t for t in (row["title"], row["section"]) if t))
    parts += [f"<div><bdi>{visible(title[:400])}</bdi></div>"] if title else []
    if row["url"]:
        # The original's address, as a link only where it is one of the web.
        shown = visible(row["url"][:200])
        link = f"<bdi>{shown}</bdi>"
        if row["url"].startswith(("https://", "http://")):
            link = f'<a href="{attribute(row["url"])}" rel="noreferrer noopener">{shown}</a>'
        parts.append(f'<div class="soft">{link}</div>')
    absent = {FEEDBACK: ""}
    sources = " · ".join(
        f"{visible(s['source'])}{absent.get(s['source'], ' absent') if s['rank'] is None else ' #' + str(s['rank'])}"
        f" ({s['contribution']:+.4f})"
        for s in lines
    )
    parts += [f'<div class="soft">{sources}</div>'] if sources else []
    if row["text"] is not None:
        piece = excerpt(row["text"], spans(row), room.passage)
        before = f'<span class="soft">… {piece.before:,} characters before</span>\n' if piece.before else ""
        after = f'<span class="soft"> … {piece.after:,} more characters</span>' if piece.after else ""
        parts.append(f'<div class="text">{before}{marked(piece.text, piece.matches)}{after}</div>')
    return f'<article class="{_CLASS.get(label, "added")}">{"".join(parts)}</article>\n'


def _candidates(content: Content, number: int, room: Room) -> str:
    sources, every = content.searches[number].sources, content.rows("candidates", number)
    fed = any(content.rows("sources", number)["source"] == FEEDBACK)
    if not len(every):
        return ""
    # Those with a rank first, in their final order: the pictures' places are always among them.
    ordered = every.sort("rank", nulls_last=True, maintain_order=True).head(room.rows)
    evidence, reranked = content.evidence(number), any(every["rerank"].is_not_null())
    heads = ["##rank", "where", "label", "#score", *(["#rerank"] if reranked else [])]
    heads += [f"{sign}{s} {what}" for s in sources for sign, what in (("##", "rank"), ("#", "score"), ("#", "added"))]
    heads += [f"#{FEEDBACK} added"] if fed else []
    rows = []
    for row in ordered.iter_rows(named=True):
        by_source = {line["source"]: line for line in evidence.get(row["place"], [])}
        why = row["label"] if row["duplicate_of"] is None else "the text of a better one"
        name = visible(name_of_row(row)[:300])
        cells = [_cell(row["rank"]), f'<td><bdi id="s{number}-p{row["place"]}">{name}</bdi></td>']
        cells += [f"<td>{visible(why)}</td>", _cell(row["score"]), *([_cell(row["rerank"])] if reranked else [])]
        for source in sources:
            line = by_source.get(source, {})
            cells += [_cell(line.get(name)) for name in ("rank", "score", "contribution")]
        cells += [_cell(by_source.get(FEEDBACK, {}).get("contribution"))] if fed else []
        kind = "" if row["shown"] else ' class="dropped"'
        rows.append(f"<tr{kind}>{''.join(cells)}</tr>")
    return _table(heads, rows, _rest(len(rows), len(every), "candidates", "candidates"), title="Candidates")


def _funnel(search: SavedSearch, number: int) -> str:
    rows = [
        f"<tr><td>{visible(s.step)}</td><td>{visible(s.source)}</td>{_cell(s.entered)}{_cell(s.left)}"
        f'{_cell(s.entered - s.left)}<td><bdi id="s{number}-f{n}">{visible(s.reason)}</bdi></td></tr>'
        for n, s in enumerate(search.funnel)
    ]
    heads = ("step", "source", "#entered", "#left", "#dropped", "why")
    return _table(heads, rows, title="Funnel", sortable=False) if rows else ""


# --- evaluations and sweeps -----------------------------------------------------------------------------------------------


def _evaluation(content: Content, number: int, room: Room, figures: dict[str, str]) -> str:
    saved, key = content.evaluations[number], f"e{number}"
    judged = saved.coverage.get("judged")
    about = f"Judgments {saved.judgments_name or 'without a name'} ({saved.judgments_digest[:16]})"
    about += "" if judged is None else f"; {judged:.0%} of the first 10 documents are judged"
    means = charts.means_figure([(m.measure, m.mean, m.low, m.high) for m in saved.means])
    picture = _plot(figures, f"{key}-means", means, "Means and their 95 % intervals")
    rows = [
        f"<tr><td>{visible(m.measure)}</td>{_cell(m.mean)}{_cell(m.low)}{_cell(m.high)}{_cell(m.queries)}</tr>"
        for m in saved.means
    ]
    parts = [
        f'<p class="soft"><bdi>{visible(about)}.</bdi> The intervals are 95 % bootstrap intervals over queries.</p>\n',
        _warnings(saved.warnings),
        f'<div class="plots js">{picture}</div>\n',
        _table(("measure", "#mean", "#low", "#high", "#queries"), rows),
        _queries(content, number, room),
    ]
    return _section(key, saved.name, parts)


def _queries(content: Content, number: int, room: Room) -> str:
    names = [m.measure for m in content.evaluations[number].means]
    values: dict[str, dict[str, float]] = {}
    for row in content.rows("measures", number).iter_rows(named=True):
        values.setdefault(row["query_id"], {})[row["measure"]] = row["value"]
    every, rows = content.rows("queries", number), []
    for row in every.head(room.rows).iter_rows(named=True):
        mine, text = values.get(row["query_id"], {}), row["query"] if row["query"] is not None else row["query_id"]
        failed = f'<div class="soft">{visible(row["failure"])}</div>' if row["failure"] else ""
        cells = "".join(_cell(mine.get(name)) for name in names) + _cell(row["latency_ms"], 1)
        rows.append(f"<tr><td><bdi>{visible(text[:300])}</bdi>{failed}</td>{cells}</tr>")
    heads = ("query", *(f"#{name}" for name in names), "#ms")
    return _table(heads, rows, _rest(len(rows), len(every), "queries", "measures"), title="Queries")


def _sweep(content: Content, number: int, room: Room, figures: dict[str, str]) -> str:
    import polars as pl

    saved, key = content.sweeps[number], f"w{number}"
    every = content.rows("points", number).filter(pl.col("measure") == saved.measure)
    shown = every.sort("mean", descending=True, maintain_order=True).head(room.rows).to_dicts()
    rows = [
        f'<tr><td><bdi id="{key}-p{row["point"]}">{visible(row["changes"][:400])}</bdi></td>'
        f"<td><bdi>{visible(row['plan'][:400])}</bdi></td>{_cell(row['mean'])}</tr>"
        for row in shown
    ]
    means = [(f"{n}. ⟦{key}-p{row['point']}⟧", row["mean"], None, None) for n, row in enumerate(shown[:BEST], 1)]
    lines = [saved.verdict, saved.agreement, f"{saved.combinations:,} combinations requested by {saved.search} search."]
    lines += [] if saved.complete else ["It was stopped before the end."]
    heads = ("differs from the baseline in", "plan", f"#{saved.measure}")
    caption = "The plans with the best means, on the training queries"
    parts = [
        "".join(f"<p><bdi>{visible(t)}</bdi></p>" for t in lines if t),
        _warnings(saved.warnings),
        _facts([("Best", saved.best), ("Compared with", saved.baseline)]),
        f'<div class="plots js">{_plot(figures, f"{key}-best", charts.means_figure(means), caption)}</div>\n',
        _table(heads, rows, _rest(len(rows), len(every), "plans", "points")),
    ]
    return _section(key, f"Sweep of {', '.join(saved.fields)}", parts)
