"""Result cards, whole result columns and the small histogram as HTML strings: records in, text out, no Streamlit.

One string a column is what makes the page fast: four columns of twenty cards built from Streamlit's own containers took
three times as long to draw. Every text that is not ours goes through `workbench.markup`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from workbench.charts.distributions import Histogram
from workbench.charts.layout import GREEN, GREY, LABELS, source_colour
from workbench.errors import WorkbenchError
from workbench.judgments.log import GRADE_NAMES
from workbench.markup import Excerpt, attribute, cut, excerpt, lines_of, marked, plain, visible
from workbench.records import Chunk, Hit, Label, Span, Unavailable, by_chunk

if TYPE_CHECKING:
    from workbench.retrieve.examples import Example

PASSAGE = 340
LONG_LINE = 300
"""Characters from which a line is too long to find a passage in it without its first words."""
GREP_LINES = 5
GREP_WIDTH = 110
_LABEL_CLASS = {
    Label.EXACT: "exact",
    Label.SEMANTIC: "semantic",
    Label.HYBRID: "hybrid",
    Label.STRONGEST: "strongest",
    Label.ADDED: "beside",
}


@dataclass(frozen=True, slots=True)
class Marks:
    """What is shown on cards beside the hit itself.

    Attributes:
        grades: Chunk id -> the person's own grade for this query.
        judged: Chunk id -> the grade that counts for this query: that of everybody who judged it.
        unjudged: Whether to mark what nobody judged.
        figures: What the judgments say of the column, for its head; "" where nothing is judged.
        few: Whether so few of its results are judged that the figures say little.
        texts: What the grades mean in the set that they go to.
        notes: Chunk id -> the person's notes on it.
        editor: Chunk id -> link that opens the file in an editor; without one there is no button.
        written: How often the person wrote: the browser has shown a grade before the page is drawn again, so a column must
            not look the same as before it.
        collections: Whether to name the collections of a hit.
        asked: Address parameters of the search, for the links to the Explain and Document pages.
        compact: Whether a card is one line that opens.
        plan: The column's own plan; "" is the shared one, which the page's script takes from the address when a link is used,
            so that a moved slider changes no column whose results stay as they are.
        acts: Whether cards have buttons (why, note, grades): those of a kept result have none.
    """

    grades: Mapping[str, int] = field(default_factory=dict)
    judged: Mapping[str, int] = field(default_factory=dict)
    unjudged: bool = False
    figures: str = ""
    few: bool = False
    texts: tuple[str, ...] = GRADE_NAMES
    notes: Mapping[str, str] = field(default_factory=dict)
    editor: Mapping[str, str] = field(default_factory=dict)
    written: int = 0
    collections: bool = False
    asked: Mapping[str, str] = field(default_factory=dict)
    compact: bool = False
    plan: str = ""
    acts: bool = True


NO_MARKS = Marks()


def movement(rank: int, there: int) -> tuple[str, str]:
    """How a result moved against its rank in a source: a sign with the number of places, and the same in words."""
    if not there or not rank:
        return "", ""
    if there == rank:
        return "=", "the same place"
    places = abs(there - rank)
    word = "place" if places == 1 else "places"
    return (f"▲{places}", f"{places} {word} up") if there > rank else (f"▼{places}", f"{places} {word} down")


def document_address(
    path: str,
    *,
    document_id: str = "",
    lines: tuple[int, int] | None = None,
    locator: str = "",
    text: str = "",
    asked: Mapping[str, str] | None = None,
) -> str:
    """Address of the Document page at a place of a document, relative to the app.

    `lines` are first and last, from 1; inside one long line the first words of the passage `text` come along, so that the page
    can find it there. `asked` has the search's address parameters, whose words are marked.
    """
    parts = dict(asked or {})
    if document_id:
        parts["id"] = document_id
    parts["path"] = path
    if locator:
        parts["at"] = locator
    if lines is not None:
        parts["lines"] = f"{lines[0]}-{lines[1]}"
        if lines[0] == lines[1] and len(text) > LONG_LINE:
            parts["quote"] = plain(text[:60], 60)
    return "document?" + encoded(tuple(parts.items()))


def chunk_address(chunk: Chunk | Hit, path: str, asked: Mapping[str, str] | None = None) -> str:
    lines = (chunk.start_line, chunk.end_line)
    return document_address(
        path, document_id=chunk.document_id, lines=lines, locator=chunk.locator, text=chunk.text, asked=asked
    )


@lru_cache(maxsize=8_192)
def encoded(parts: tuple[tuple[str, str], ...]) -> str:
    """Address parameters as text. A slider draws the same links again and again, and encoding was a sixth of its time."""
    return urlencode(parts, errors="replace")


def document_link(hit: Hit, asked: Mapping[str, str] | None = None) -> str:
    words = {name: text for name, text in (asked or {}).items() if name in ("q", "keywords")}
    return chunk_address(hit, hit.path, words)


def number(value: float) -> str:
    return f"{value:.4g}" if abs(value) >= 0.001 or value == 0 else f"{value:.2e}"


def explain_link(hit: Hit, marks: Marks) -> str:
    plan = {"plan": marks.plan} if marks.plan else {}
    return "explain?" + encoded((*marks.asked.items(), *plan.items(), ("target", hit.path)))


def card(
    hit: Hit, ranks: Mapping[str, int], sources: Sequence[str], *, numbered: bool = False, marks: Marks = NO_MARKS
) -> str:
    """One result; `ranks` has its ranks in sources that only other columns asked, `sources` are those to show a rank of."""
    link = attribute(document_link(hit, marks.asked))
    # Of a file that is called like many others the path says which one it is; a line has no room for more than its end.
    named = bool(hit.title) and not hit.path.endswith(f"/{hit.title}")
    path = "/".join(hit.path.split("/")[-2:]) if marks.compact else hit.path
    title = visible(plain(hit.title if named else path, 120))
    name = f"Result {hit.rank}" if hit.rank else "Added by page"
    return (
        f'<article class="wb-card{"" if hit.rank else " wb-added"}" data-rank="{hit.rank}" '
        f'data-chunk="{attribute(hit.chunk_id)}" aria-label="{name}" tabindex="-1">'
        f'<div class="wb-head"><span class="wb-rank">{hit.rank or "+"}</span>'
        f'<a class="wb-title" href="{link}" title="Open the document at these lines">'
        f"<bdi>{title}</bdi></a>{_section(hit, line=True) if marks.compact else ''}{_judged(hit, marks)}</div>{_section(hit)}"
        f"{_facts(hit, marks)}{_ranks(hit, ranks, sources)}{_bar(hit)}{_passage(hit, numbered)}{_note(hit, marks)}"
        f"{_citation(hit, link)}{_copies(hit)}{_actions(hit, marks) if marks.acts else ''}"
        "</article>"
    )


def _judged(hit: Hit, marks: Marks) -> str:
    if not hit.rank or not (marks.unjudged or marks.judged):
        return ""
    return grade_badge(marks.judged.get(hit.chunk_id), "–" if marks.compact else "unjudged", marks.texts)


@cache
def grade_badge(grade: int | None, unjudged: str = "unjudged", texts: tuple[str, ...] = GRADE_NAMES) -> str:
    """The grade that counts, on a card or in a list; of what nobody judged that it is so."""
    if grade is None:
        return f'<span class="wb-judged" title="Nobody has judged it for this query">{unjudged}</span>'
    name = f": {texts[grade]}" if grade in range(len(texts)) else ""
    title = attribute(f"Judged {grade}{plain(name, 300)}")
    return f'<span class="wb-judged wb-grade{min(max(grade, 0), 3)}" title="{title}">{grade}</span>'


def figures_html(figures: str, few: bool) -> str:
    """What judgments say of a list of results: its figures, and that they rest on little where they do."""
    if not figures:
        return ""
    help = "Of this query, by the judgments of the set; what nobody judged counts as not relevant"
    little = ' <b class="wb-little" title="So they may be too low">few judged</b>' if few else ""
    return f'<p class="wb-figures" title="{help}">{visible(figures)}{little}</p>'


def _section(hit: Hit, line: bool = False) -> str:
    """The heading that the passage is under, by which passages of one document differ; in a `line` its place comes first."""
    last = hit.section.rpartition(" > ")[2]
    last = "" if last == hit.title else visible(plain(last, 80))
    if line:
        place = visible(plain(hit.citation.removeprefix(hit.path).lstrip(":#"), 40))
        return f'<span class="wb-spot">{place}</span><span class="wb-spot wb-spot-in"><bdi>{last}</bdi></span>'
    return last and f'<div class="wb-section" title="{attribute(plain(hit.section, 300))}"><bdi>{last}</bdi></div>'


def _facts(hit: Hit, marks: Marks) -> str:
    label = f'<span class="wb-label wb-{_LABEL_CLASS[hit.label]}">{hit.label.value}</span>'
    kind = "fused score" if hit.score_kind == "fused" else f"{plain(hit.score_kind, 60)} score"
    score = (
        f'<span class="wb-score" title="{attribute(kind)}: {hit.score!r}">{number(hit.score)}</span>'
        if hit.rank
        else ""
    )
    distance = "" if hit.distance is None else f'<span class="wb-dim">distance {hit.distance:.3f}</span>'
    named = visible(plain(", ".join(hit.collections), 80)) if marks.collections else ""
    where = f'<span class="wb-dim">in {named}</span>' if named else ""
    return f'<div class="wb-facts">{label}{score}{distance}{where}</div>'


def _note(hit: Hit, marks: Marks) -> str:
    text = marks.notes.get(hit.chunk_id, "")
    return f'<div class="wb-noted" dir="auto">{visible(cut(text, 400))}</div>' if text else ""


@cache
def _grade_buttons(mine: int | None, texts: tuple[str, ...]) -> str:
    return "".join(
        f'<button type="button" data-wb-do="grade" data-v="{n}" title="{n}: {attribute(plain(name, 300))}"'
        f' aria-pressed="{"true" if n == mine else "false"}">{n}</button>'
        for n, name in enumerate(texts)
    )


def _actions(hit: Hit, marks: Marks) -> str:
    """Buttons of a card; the page's script answers them (`style`), and sends what needs an answer from here (`events`)."""
    to = attribute(explain_link(hit, marks))
    why = f'<a class="wb-act wb-why" href="{to}" title="Why this rank (w)">Why</a>'
    link = marks.editor.get(hit.chunk_id, "")
    edit = (
        f'<button type="button" class="wb-act" data-wb-open="{attribute(link)}" title="Open the file in the editor (e)">'
        "Edit</button>"
        if link
        else ""
    )
    grades = _grade_buttons(marks.grades.get(hit.chunk_id), marks.texts)
    return (
        f'<div class="wb-acts">{why}'
        '<button type="button" class="wb-act" data-wb-do="more" title="More like this (m)">Like this</button>'
        f'<button type="button" class="wb-act" data-wb-do="note" title="Write a note (n)">Note</button>{edit}'
        f'<span class="wb-grades" role="group" aria-label="Grade">{grades}</span></div>'
    )


def _ranks(hit: Hit, ranks: Mapping[str, int], sources: Sequence[str]) -> str:
    shown = []
    for source in sources:
        # A source that the hit's own column asked: its rank there, the one that counted; else that of another column.
        there = hit.ranks.get(source, 0) if source in hit.contributions else ranks.get(source, 0)
        name = attribute(plain(source, 40))
        dot = f'<i class="wb-dot" style="background:{source_colour(source)}"></i>'
        if not there:
            shown.append(f'<span class="wb-src wb-none" title="{name} did not retrieve it">{dot}{name} <b>–</b></span>')
            continue
        sign, words = movement(hit.rank, there)
        kind = "wb-up" if sign.startswith("▲") else "wb-down" if sign.startswith("▼") else "wb-same"
        words = f"{name}: rank {there}" + (f"; here {words}" if words else "")
        words += f", {by_chunk(hit.counted[source].start_line)}" if source in hit.counted else ""
        shown.append(
            f'<span class="wb-src" data-source="{name}" title="{words}">{dot}{name} <b>{there}</b>'
            f'<span class="{kind}">{sign}</span></span>'
        )
    return f'<div class="wb-ranks">{"".join(shown)}</div>'


def _bar(hit: Hit) -> str:
    """What each source added, as parts of a bar; a negative one (z-scores have them) by its size: how much it decided."""
    added = sorted(hit.contributions.items())
    total = math.fsum(abs(value) for _, value in added)
    if len(added) < 2 or total <= 0:
        return ""  # A lone source has the whole bar: nothing to see.
    parts = [(attribute(plain(s, 40)), value, abs(value) / total, source_colour(s)) for s, value in added]
    words = ", ".join(f"{name} {number(value)} ({share:.0%})" for name, value, share, _ in parts)
    pieces = "".join(
        f'<span style="width:{share:.1%};background:{colour}" data-source="{name}"></span>'
        for name, _, share, colour in parts
        if share
    )
    return f'<div class="wb-bar" role="img" aria-label="{words}" title="{words}">{pieces}</div>'


def _passage(hit: Hit, numbered: bool) -> str:
    if numbered:
        return _lines(hit)
    mono = " wb-mono" if hit.metadata.get("type") == "code" else ""
    return f'<div class="wb-text{mono}" dir="auto">{passage_html(excerpt(hit.text, hit.matches, PASSAGE))}</div>'


def passage_html(piece: Excerpt) -> str:
    before = '<span class="wb-more">… </span>' if piece.before else ""
    after = f'<span class="wb-more"> … {piece.after:,} more characters</span>' if piece.after else ""
    return f"{before}{marked(piece.text, piece.matches).strip()}{after}"


def _lines(hit: Hit) -> str:
    first = hit.text.count("\n", 0, hit.matches[0].start) if hit.matches else 0
    lines = hit.text.split("\n")
    top = max(first - 1, 0)
    text = "\n".join(lines[top : top + GREP_LINES])
    start = sum(len(line) + 1 for line in lines[:top])
    end = start + len(text) + 1
    spans = [Span(max(m.start - start, 0), m.end - start) for m in hit.matches if m.end > start and m.start < end]
    rows = "".join(
        f'<div class="wb-line{" wb-hit" if line.hit else ""}"><span class="wb-no">{line.number}</span>'
        f'<span class="wb-src-line" dir="auto">{line.html}</span></div>'
        for line in lines_of(text, hit.start_line + top, spans, longest=GREP_WIDTH)
    )
    return f'<div class="wb-lines">{rows}</div>'


def _citation(hit: Hit, link: str) -> str:
    path = visible(plain(hit.path, 300))
    # A path may break after its folders, the lines stay in one piece.
    shown = (
        path.replace("/", "/<wbr>") + f'<span class="wb-where">{visible(hit.citation.removeprefix(hit.path))}</span>'
    )
    return (
        f'<div class="wb-cite"><a href="{link}"><bdi>{shown}</bdi></a>'
        f"{copy_button(hit.citation, 'Copy the citation')}</div>"
    )


def copy_button(text: str, label: str, shown: str = "Copy") -> str:
    """A button that copies a text; `label` is what it is called for who hears it."""
    return (
        f'<button type="button" class="wb-copy" data-wb-copy="{attribute(text)}" aria-label="{attribute(label)}"'
        f' title="{attribute(label)}">{visible(shown)}</button>'
    )


def _copies(hit: Hit) -> str:
    if not hit.copies:
        return ""
    named = ", ".join(f"<bdi>{visible(plain(path, 120))}</bdi>" for path in hit.copies[:3])
    more = f" and {len(hit.copies) - 3:,} more" if len(hit.copies) > 3 else ""
    return f'<div class="wb-dim" title="The same text, shown once">Also in {named}{more}</div>'


def column(
    title: str,
    hits: Sequence[Hit],
    *,
    ranks: Mapping[str, Mapping[str, int]],
    sources: Sequence[str],
    messages: str = "",
    numbered: bool = False,
    badge: str = "",
    marks: Marks = NO_MARKS,
) -> str:
    """One column of results, best first. `ranks`: chunk id -> source -> rank; `messages`: what the result says of itself, as
    HTML; `numbered`: lines with numbers (grep); `badge`: words beside the heading.
    """
    cards = "".join(card(h, ranks.get(h.chunk_id, {}), sources, numbered=numbered, marks=marks) for h in hits)
    figures = figures_html(marks.figures, marks.few)
    return f"{_column_head(title, badge, marks.written, marks.compact)}{figures}{messages}{cards}</section>"


def messages_html(messages: Sequence[str], warnings: Sequence[str], unavailable: Sequence[Unavailable]) -> str:
    notes = [f'<p class="wb-msg">{visible(plain(m, 400))}</p>' for m in messages]
    notes += [alert(f"{u.source} is unavailable", u.reason, u.remedy) for u in unavailable]
    # The result words an unavailable source as a warning too: once is enough.
    reasons = [u.reason for u in unavailable if u.reason]
    return "".join(notes + [alert("", w, "") for w in warnings if not any(reason in w for reason in reasons)])


def failed_column(title: str, error: WorkbenchError, badge: str = "") -> str:
    return f"{_column_head(title, badge)}{alert('', error.message, error.remedy)}</section>"


def _column_head(title: str, badge: str, written: int = 0, compact: bool = False) -> str:
    mark = f'<span class="wb-badge">{visible(badge)}</span>' if badge else ""
    name = plain(title, 120)
    stamp = f' data-written="{written}"' if written else ""
    lines = " wb-compact" if compact else ""
    return f'<section class="wb-column{lines}" aria-label="{attribute(name)} results"{stamp}><h3>{visible(name)}{mark}</h3>'


def example_head(number: int, example: Example) -> str:
    """What is over a worked example's code: its place, what it is, and where it is."""
    link = document_address(
        example.path, lines=(example.start_line, example.end_line), locator=example.locator, text=example.code
    )
    about = " › ".join(part for part in (example.title, example.description, ", ".join(example.tags)) if part)
    return (
        f'<div class="wb-cite">{number}. <a href="{link}"><bdi>{visible(plain(example.citation, 300))}</bdi></a>'
        f' {example.score:.4f}</div><div dir="auto">{visible(plain(about, 400))}</div>'
    )


def note(sentence: str) -> str:
    return f'<div class="wb-status" role="status">{visible(plain(sentence, 600))}</div>'


def alert(title: str, reason: str, remedy: str) -> str:
    """A note that must be seen: a title, what is wrong, what to do; empty parts are left out."""
    sentences = [_sentence(plain(part, 500)) for part in (title, reason, remedy) if part]
    head = f"<b>{visible(sentences[0])}</b>"
    rest = "".join(f" {visible(s)}" for s in sentences[1:])
    return f'<div class="wb-alert" role="alert">{head}{rest}</div>'


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else text + "."


def in_markdown(text: str, most: int = 60) -> str:
    """A text for Markdown, as labels of buttons are: every sign of it taken literally."""
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$:<>" else c for c in plain(text, most))


def label_rules() -> str:
    return "".join(f".wb-{_LABEL_CLASS[label]}{{border-left-color:{colour}}}" for label, colour in LABELS.items())


def histogram_html(histogram: Histogram, threshold: float | str, of: str = "") -> str:
    """Bars of how many records lie at which distance or score; grey where the threshold drops them, which is a dashed line (at
    the border where it is beyond the values seen). `of`: the source, where there are several.
    """
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    cut = None if threshold == "off" else float(threshold)
    tallest = max(int(histogram.counts.max()), 1)
    bars = []
    starts, ends = histogram.edges[:-1], histogram.edges[1:]
    kept = histogram.keeps((starts + ends) / 2, threshold)
    columns = (values.tolist() for values in (histogram.counts, starts, ends, kept))
    for count, start, end, stays in zip(*columns, strict=True):
        # The square root keeps the few near records visible beside the many far ones.
        height = (count / tallest) ** 0.5 * 100
        colour = GREEN if stays else GREY
        title = f"{count:,} at {_figure(start)} to {_figure(end)}"
        bars.append(f'<span style="height:{height:.0f}%;background:{colour}" title="{title}"></span>')
    what = f"{histogram.axis.rpartition(' ')[2]}s of {histogram.total:,} records"
    label = f"Histogram of the {what}, {_figure(low)} to {_figure(high)}" + (f", by {of}" if of else "")
    axis, line = f"{of}: {histogram.axis}".removeprefix(": "), ""
    if cut is not None:
        at = min(max((cut - low) / (high - low), 0.0), 1.0) * 100
        line, label = f'<i style="left:{at:.1f}%"></i>', f"{label}, cut at {cut:g}"
    return (
        f'<div class="wb-histogram" role="img" aria-label="{attribute(label)}">{"".join(bars)}{line}</div>'
        f'<p class="wb-axis"><span>{_figure(low)}</span><span>{visible(axis)}</span><span>{_figure(high)}</span></p>'
    )


def _figure(value: float) -> str:
    """A border: two decimals, or more where the value is small, as fused scores are."""
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.2g}"
