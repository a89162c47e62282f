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
from workbench.errors import counted
from workbench.evaluate.leaderboard import Leaderboard
from workbench.evaluate.statistics import significant
from workbench.markup import attribute, excerpt, marked, visible
from workbench.records import FEEDBACK, Label
from workbench.snapshot.boards import boards_of
from workbench.snapshot.schema import About, Content, Passages, SavedSearch, name_of_row, placed, spans, who

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
    boards = boards_of(content)
    sections = [_beside(content)]
    sections += [_search(content, n, room, figures) for n in _order(content)]
    sections += [_sweep(content, n, room, figures) for n in range(len(content.sweeps))]
    sections += [_board(board, n, room, figures) for n, board in enumerate(boards)]
    own = [_evaluation(content, n, room, figures) for n in range(len(content.evaluations))]
    if content.sweeps or boards:  # what matters of each plan is said above
        own = [f"<details><summary>Each plan's own figures</summary>\n{''.join(own)}</details>\n"]
    sections += own
    data = "".join(f'<script type="application/json" id="{key}">{text}</script>\n' for key, text in figures.items())
    texts = {"title": attribute(title), "heading": visible(title), "contents": _contents(content, boards), "data": data}
    texts |= {"policy": html.escape(fixed["policy"]), "body": "".join(sections)}
    texts |= {"summary": summary(about, content), "lead": visible(_lead(about, content))}
    return form.substitute({**fixed, **texts})


def _order(content: Content) -> list[int]:
    """The searches, those that fuse several sources first: the answer that matters is on top."""
    return sorted(range(len(content.searches)), key=lambda n: content.searches[n].mode != "hybrid")


def title_of(about: About, content: Content) -> str:
    """The first line of the note, else the first query, else the first evaluation."""
    names = [about.note.strip().split("\n")[0]]
    names += [s.title for s in content.searches] + [e.name for e in content.evaluations]
    return next((n.strip()[:200] for n in names if n.strip()), "Snapshot")


def holds(content: Content) -> str:
    counts = {"search|searches": content.searches, "evaluation": content.evaluations, "sweep": content.sweeps}
    return ", ".join(counted(len(some), word) for word, some in counts.items() if some)


def _lead(about: About, content: Content) -> str:
    """What it is, in a line."""
    by = f" by {about.by}" if about.by else ""
    return f"{holds(content)} of {counted(about.origin.documents, 'document')}, {about.when}{by}"


def summary(about: About, content: Content) -> str:
    origin = about.origin
    records = f" in {origin.records:,} passages" if origin.records else ""
    rows = [
        ("Made", f"{about.when}{f' by {about.by}' if about.by else ''}"),
        ("Holds", holds(content)),
        ("Searched as", who(about.principal)),
        ("Corpus", f"generation {origin.generation}, digest {origin.digest}, {origin.documents:,} documents{records}"),
        *(("Encoder", f"{e.name}, weights {e.digest[:16]}, {e.runtime}, {e.dim} dimensions") for e in origin.encoders),
        *(("Model", f"{name}, which only verifying loads, when it is allowed to") for name in content.models),
        ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(about.packages.items()))),
    ]
    if about.passages is not Passages.SHOWN:
        gone = "replaced by citations" if about.passages is Passages.REDACTED else "left out, with all paths"
        rows.append(("Passages", gone))
    if about.audience is not None:
        rows.append(("Cut for", who(about.audience)))
    rest = about.note.strip().partition("\n")[2].strip()  # its first line is the title
    note = f'<p class="note"><bdi>{visible(rest)}</bdi></p>\n' if rest else ""
    omitted = f'<p class="warning">{OMITTED}.</p>\n' if about.omitted else ""
    return note + _facts(rows) + omitted


def _contents(content: Content, boards: Sequence[Leaderboard]) -> str:
    if len(content.searches) + len(content.evaluations) < 2:
        return ""
    lines = [(f"s{n}", content.searches[n].title[:120], _plan_of(content.searches[n])) for n in _order(content)]
    lines += [
        (f"b{n}", f"Leaderboard on {b.base.judgments.name}", f"{len(b.names)} plans") for n, b in enumerate(boards)
    ]
    lines += [(f"w{n}", f"Sweep of {', '.join(s.fields)}", f"by {s.measure}") for n, s in enumerate(content.sweeps)]
    if not boards and not content.sweeps:
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
    """The place of a picture; its data goes into `figures`: JSON that may be in a page, `<`, `>` and `&` as escapes."""
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


# --- side by side ---


def _beside(content: Content) -> str:
    """Searches of one query, two or more, as columns of their results, each a link to its passage."""
    groups: dict[str, list[int]] = {}
    for number, search in enumerate(content.searches):
        groups.setdefault(search.title, []).append(number)
    made = []
    for title, numbers in groups.items():
        if len(numbers) > 1:
            head = f"<h3><bdi>{visible(title[:300])}</bdi></h3>\n" if len(groups) > 1 else ""
            made.append(f'{head}<div class="beside">{"".join(_column(content, n) for n in numbers)}</div>\n')
    return _section("beside", "Side by side", made, first=True) if made else ""


def _column(content: Content, number: int) -> str:
    search, rows = content.searches[number], []
    for row in content.rows("passages", number).head(BEST).iter_rows(named=True):
        kind = _CLASS.get(Label(row["label"]), "added")
        name = visible((row["title"] or row["citation"] or row["chunk_id"])[:120])
        where = (
            f'<div class="soft"><bdi>{visible(row["citation"][:200])}</bdi></div>'
            if row["title"] and row["citation"]
            else ""
        )
        value = f' value="{row["rank"]}"' if not row["added"] else ""
        link = f'<a href="#s{number}-r{row["position"]}"><bdi>{name}</bdi></a>'
        rows.append(f'<li class="{kind}"{value}>{link}{where}</li>')
    listed = f"<ol>{''.join(rows)}</ol>" if rows else '<p class="soft">No result.</p>'
    return f'<div><b>{visible(search.mode)}</b><div class="soft"><bdi>{visible(search.plan[:200])}</bdi></div>{listed}</div>'


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
    drawn = (_passage(row, evidence.get(row["place"], []), room, number) for row in rows)
    return f"<h3>Passages</h3>\n{''.join(drawn)}"


def _passage(row: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], room: Room, number: int) -> str:
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
    own = f'id="s{number}-r{row["position"]}" class="{_CLASS.get(label, "added")}"'
    return f"<article {own}>{''.join(parts)}</article>\n"


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


def _board(board: Leaderboard, number: int, room: Room, figures: dict[str, str]) -> str:
    key, measures, differences = f"b{number}", board.measures, board.differences()
    rows = []
    for row in board.frame().iter_rows(named=True):
        own = f"{key}-p{board.names.index(row['plan'])}"
        cells = [f'<td><bdi id="{own}">{visible(row["plan"][:300])}</bdi></td>']
        for measure in measures:
            low, high = (row[f"{measure} {end}"] for end in ("low", "high"))
            ends = "" if low is None else f'<div class="soft">{low:.3f}–{high:.3f}</div>'
            cells.append(f'<td class="n" data-v="{row[measure]!r}">{row[measure]:.4f}{ends}</td>')
        word = "baseline" if row["verdict"] is None else row["verdict"]
        cells += [_cell(row["difference"]), _cell(row["p"], 3), _cell(row["p50_ms"], 1), _cell(row["judged@10"], 2)]
        rows.append(f"<tr>{''.join(cells)}<td><bdi>{visible(word[:600])}</bdi></td></tr>")
    heads = ("plan", *(f"#{m}" for m in measures), "#difference", "#p", "#p50 ms", "#judged@10", "against the baseline")
    drawn = [(f"⟦{key}-p{n}⟧", d) for n in board.order if (d := differences[n]) is not None]
    forest = charts.forest_figure(drawn, measures[0], f"⟦{key}-p{board.baseline}⟧")
    caption = f"{measures[0]}: differences to {board.base.name}, with 95 % intervals"
    text = f"{len(board.base.query_ids):,} judged queries; the baseline is {board.base.name}. " + (
        f"Each p is corrected for {len(drawn)} comparisons (Holm)." if len(drawn) > 1 else ""
    )
    parts = [
        f'<p class="soft"><bdi>{visible(text)}</bdi></p>\n',
        _table(heads, rows),
        f'<div class="plots js">{_plot(figures, f"{key}-forest", forest, caption)}</div>\n',
        _moved_queries(board, room),
    ]
    return _section(key, f"Leaderboard on {board.base.judgments.name or 'the judgments'}", parts, first=True)


def _moved_queries(board: Leaderboard, room: Room) -> str:
    """Every query under every plan by the first measure, those that the plans differ on most first."""
    measure, order = board.measures[0], board.order
    values = [board.evaluations[n].column(measure).tolist() for n in order]
    spread = [max(own) - min(own) for own in zip(*values, strict=True)]
    places = sorted(range(len(spread)), key=lambda at: -spread[at])[: room.rows]
    topics, ids, rows = board.base.judgments.topics, board.base.query_ids, []
    for at in places:
        text = topics[ids[at]].text if ids[at] in topics else ids[at]
        cells = "".join(_cell(own[at]) for own in values)
        rows.append(f"<tr><td><bdi>{visible(text[:300])}</bdi></td>{cells}{_cell(spread[at])}</tr>")
    heads = ("query", *(f"#{board.names[n][:60]}" for n in order), "#spread")
    return _table(heads, rows, _rest(len(rows), len(ids), "queries", "measures"), title=f"Queries by {measure}")


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
    sure = significant(saved.p, saved.low, saved.high)
    kind = "better" if sure and saved.difference > 0 else "worse" if sure else "even"
    lines = [saved.agreement, f"{saved.combinations:,} combinations requested by {saved.search} search."]
    lines += [] if saved.complete else ["It was stopped before the end."]
    heads = ("differs from the baseline in", "plan", f"#{saved.measure}")
    caption = "The plans with the best means, on the training queries"
    parts = [
        f'<p class="verdict {kind}"><bdi>{visible(saved.verdict)}</bdi></p>',
        "".join(f"<p><bdi>{visible(t)}</bdi></p>" for t in lines if t),
        _warnings(saved.warnings),
        _facts([("Best", saved.best), ("Compared with", saved.baseline)]),
        f'<div class="plots js">{_plot(figures, f"{key}-best", charts.means_figure(means), caption)}</div>\n',
        _table(heads, rows, _rest(len(rows), len(every), "plans", "points")),
    ]
    return _section(key, f"Sweep of {', '.join(saved.fields)}", parts)
