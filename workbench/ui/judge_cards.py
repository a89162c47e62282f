"""What the Judge page shows of a candidate, as HTML; text from documents goes through `text`. No Streamlit."""

from __future__ import annotations

from workbench.records import cite
from workbench.ui import links
from workbench.ui.judge_round import Shown
from workbench.ui.text import attribute, excerpt, marked, plain, visible

PASSAGE = 6_000
CODE = frozenset({"code", "notebook"})
"""Types of documents whose text is read in columns: shown in letters of one width."""
CSS = """
.wb-judge{max-width:60rem;border:1px solid color-mix(in srgb,currentColor 18%,transparent);border-radius:.5rem;
 padding:.7rem .9rem;font-size:.92rem;line-height:1.5;overflow-wrap:anywhere}
.wb-judge .wb-text{display:block;-webkit-line-clamp:none;max-height:24rem;overflow-y:auto}
.wb-judge .wb-mono{font-family:"Source Code Pro",ui-monospace,monospace;font-size:.8rem;line-height:1.4}
.wb-asked{font-size:1.15rem;font-weight:600;margin:.2rem 0 .1rem;overflow-wrap:anywhere}
.wb-table.wb-counts{max-width:22rem}
[class*="st-key-wb-w-judge-grade"] button{min-height:2.7rem}
"""


def asked(shown: Shown, number: int, total: int, graded: int, candidates: int) -> str:
    """The query, and where in the set we are."""
    keywords = (
        f' <span class="wb-dim">keywords: {visible(plain(shown.query.keywords, 200))}</span>'
        if shown.query.keywords
        else ""
    )
    return (
        f'<p class="wb-msg">Query {number} of {total}, passage {graded + 1} of {candidates}. How well does this passage '
        "answer it?</p>"
        f'<p class="wb-asked" role="heading" aria-level="2"><bdi>{visible(plain(shown.query.text, 600))}</bdi>{keywords}</p>'
    )


def candidate(shown: Shown) -> str:
    """The passage with the query's words marked, its title and section, and a link to its document."""
    chunk, document = shown.chunk, shown.document
    piece = excerpt(chunk.text, shown.matches, PASSAGE)
    before = '<span class="wb-more">… </span>' if piece.before else ""
    after = f'<span class="wb-more"> … {piece.after:,} more characters</span>' if piece.after else ""
    section = f'<p class="wb-msg"><bdi>{visible(plain(chunk.section, 200))}</bdi></p>' if chunk.section else ""
    kind = "wb-text wb-mono" if document.type in CODE else "wb-text"
    place = visible(plain(cite(document.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator), 300))
    return (
        f'<article class="wb-judge" data-chunk="{attribute(chunk.chunk_id)}" aria-label="Passage to judge">'
        f'<div class="wb-title"><bdi>{visible(plain(document.title or document.path, 160))}</bdi></div>{section}'
        f'<div class="{kind}" dir="auto">{before}{marked(piece.text, piece.matches).strip()}{after}</div>'
        f'<div class="wb-cite"><a href="{attribute(_link(shown))}" target="_blank"><bdi>{place}</bdi></a></div></article>'
    )


def _link(shown: Shown) -> str:
    return links.chunk(shown.chunk, shown.document.path, shown.document.document_id, {"q": shown.query.text})


def counts(grades: dict[int, int], names: tuple[str, ...]) -> str:
    """How many passages have each grade."""
    rows = "".join(
        f'<tr><td>{grade} {names[grade] if 0 <= grade < len(names) else ""}</td><td class="wb-num">{count:,}</td></tr>'
        for grade, count in grades.items()
    )
    return f'<table class="wb-table wb-counts"><tr><th>Grade</th><th class="wb-num">Passages</th></tr>{rows}</table>'
