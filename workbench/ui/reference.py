"""The Guide page as HTML: every plan field and preset, from the tables that declare them. No Streamlit."""

from __future__ import annotations

from workbench.plan import fields as plan_fields
from workbench.plan.presets import PRESETS
from workbench.ui.controls import anchor
from workbench.ui.text import visible

MODES = (
    ("grep", "Lines that hold the words, letter for letter, or match the pattern: for names, codes and quotations."),
    ("keyword", "BM25 over stemmed words: for topics that you can name, in any order of words."),
    ("vector", "Passages that mean something alike, whatever their words: for questions in your own words."),
    ("hybrid", "Several of these, fused into one list: for most questions, and to see who contributes what."),
)
QUERIES = (
    ("remoting session", "either word counts; more of them, and rarer ones, count more"),
    ('"remoting session"', "the words side by side"),
    ("remoting -ssh", "without the word"),
    ("remoting OR ssh", "alternatives, where the plan says keyword.operator=all"),
    ("remot*", "words that begin so"),
)
FILTERS = (
    ("type = 'markdown'", "a field is a value"),
    ("language in ('en', 'de')", "one of several"),
    ("path glob 'reference/**'", "a path pattern"),
    ("modified >= 2024-01-01 and not type = 'code'", "dates, and, or, not, parentheses"),
)


def html() -> str:
    """The whole reference."""
    return "".join(
        (
            _heading("modes", "The columns"),
            _table(("Column", "What it finds"), MODES),
            _heading("query", "What can be typed in the query"),
            _table(("Query", "What it means"), QUERIES, code=True),
            _heading("filters", "What can be typed in the filter"),
            _table(("Filter", "What it means"), FILTERS, code=True),
            _heading("card", "How to read a result"),
            "<p>The large number is its place in the column. Then, for each source, its rank there, and how many places "
            "up (▲) or down (▼) it stands here against that rank; – means that the source did not retrieve it. The bar "
            "shows what each source added to the score. The label says which kinds of source found it: exact words, "
            "meaning, or both. The citation opens the document at the lines.</p>",
            _heading("presets", "The presets"),
            _table(("Preset", "What it is for"), tuple((p.name, p.summary) for p in PRESETS), code=True),
            _heading("fields", "Every setting of a plan"),
            _fields(),
        )
    )


def _heading(name: str, title: str) -> str:
    return f'<h3 id="{name}">{title}</h3>'


def _table(head: tuple[str, str], rows: tuple[tuple[str, str], ...], code: bool = False) -> str:
    def first(text: str) -> str:
        return f"<code>{visible(text)}</code>" if code else f"<b>{visible(text)}</b>"

    body = "".join(f"<tr><td>{first(a)}</td><td>{visible(b)}</td></tr>" for a, b in rows)
    return f'<table class="wb-table"><tr><th>{head[0]}</th><th>{head[1]}</th></tr>{body}</table>'


def _fields() -> str:
    rows = "".join(
        f'<tr id="{anchor(f.name)}"><td><code>{visible(f.name + (".SOURCE" if f.family else ""))}</code></td>'
        f"<td>{visible(f.help)}</td><td><code>{visible(plan_fields.show(f.default))}</code></td>"
        f"<td>{visible(f.bounds)}</td></tr>"
        for f in plan_fields.FIELDS
    )
    head = "<tr><th>Field</th><th>What it does</th><th>Default</th><th>Values</th></tr>"
    return f'<div class="wb-scroll"><table class="wb-table">{head}{rows}</table></div>'
