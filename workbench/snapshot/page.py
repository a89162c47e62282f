"""`index.html`: the whole snapshot as one page that opens by itself.

No server, no network, no framework: a style, plotly once, one script, and HTML. The policy in the page allows exactly these
three by their digests and nothing else, so text that should get in anyway runs nothing. Texts of documents, paths and queries
are HTML text, escaped by `markup`; the pictures' data is inert JSON of numbers and of ids, for which the script looks the names
up in the page.

The page stays under `MOST_BYTES`: passages and tables share what plotly leaves, and say how much they left out.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
from dataclasses import dataclass

from workbench.markup import attribute, visible
from workbench.plan.plan import Plan
from workbench.snapshot import page_assets
from workbench.snapshot.audience import OMITTED
from workbench.snapshot.model import About, Content, Passages
from workbench.snapshot.page_measures import evaluation_section, sweep_section
from workbench.snapshot.page_search import Room, search_section
from workbench.snapshot.view import models_of

MOST_BYTES = 7_900_000
_PASSAGE, _TABLE_ROWS = 6_000, 1_500


def page(about: About, content: Content) -> str:
    """The page of a snapshot, under `MOST_BYTES` bytes of UTF-8."""
    room = first_room(content)
    while True:
        made = _page(about, content, room)
        if len(made.encode("utf-8")) <= MOST_BYTES or room.smallest:
            return made
        room = room.half()


def first_room(content: Content) -> Room:
    """What each search may take: less where there are many."""
    passages = max(len(content.table("passages")), 1)
    return Room(
        max(120, min(_PASSAGE, 1_200_000 // passages)), max(40, min(300, _TABLE_ROWS // max(len(content.searches), 1)))
    )


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The constant parts of every page, and the policy that allows them."""

    css: str
    script: str
    plotly: str
    policy: str
    held: str


@functools.cache
def _fixed() -> _Fixed:
    css, script, plotly = page_assets.css(), page_assets.script(), page_assets.plotly()
    scripts = " ".join(f"'sha256-{_hash(text)}'" for text in (plotly, script))
    # plotly makes an empty style element and adds its rules through the object model, and sets styles on what it draws.
    styles = f"'sha256-{_hash(css)}' 'sha256-{_hash('')}'"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src-elem {styles}; style-src-attr 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    held = "".join(f'<i id="{name}" hidden></i>' for name in page_assets.unwanted_styles(plotly))
    return _Fixed(css, script, plotly, policy, held)


def policy() -> str:
    """The Content-Security-Policy of a page, for the header of whoever serves one."""
    return _fixed().policy + "; frame-ancestors 'none'"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _page(about: About, content: Content, room: Room) -> str:
    fixed = _fixed()
    title = page_title(about, content)
    figures: dict[str, str] = {}
    body = [search_section(content, n, room, figures) for n in range(len(content.searches))]
    body += [sweep_section(content, n, room, figures) for n in range(len(content.sweeps))]
    body += [evaluation_section(content, n, room, figures) for n in range(len(content.evaluations))]
    data = "".join(f'<script type="application/json" id="{key}">{text}</script>\n' for key, text in figures.items())
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(fixed.policy)}">\n',
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n<meta name="referrer" content="no-referrer">\n',
        f"<title>{attribute(title)}</title>\n<style>{fixed.css}</style>\n</head>\n<body>\n",
        f"<h1><bdi>{visible(title)}</bdi></h1>\n",
        summary(about, content),
        '<p class="soft nojs">The pictures need JavaScript; their numbers are in the tables.</p>\n',
        _bar(),
        _contents(content),
        *body,
        data,
        f"{fixed.held}\n<script>{fixed.plotly}</script>\n<script>{fixed.script}</script>\n</body>\n</html>\n",
    ]
    return "".join(parts)


def page_title(about: About, content: Content) -> str:
    """The first line of the note, else the first query, else the first evaluation."""
    names = [about.note.strip().split("\n")[0], *(s.query or s.keywords for s in content.searches)]
    names += [e.name for e in content.evaluations]
    return next((n.strip()[:200] for n in names if n.strip()), "Snapshot")


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def summary(about: About, content: Content) -> str:
    """Where the snapshot comes from, as an HTML list."""
    origin = about.origin
    who = "the local owner" if about.principal is None else _principal(about.principal.tenant, about.principal.roles)
    holds = _counted(len(content.searches), "search", "searches")
    holds += ", " + _counted(len(content.evaluations), "evaluation", "evaluations")
    holds += f", {len(content.sweeps)} sweeps" if content.sweeps else ""
    models = dict.fromkeys(name for search in content.searches for name in models_of(search))
    records = f" in {origin.records:,} passages" if origin.records else ""
    rows = [
        ("Made", f"{about.created}{f' by {about.by}' if about.by else ''}"),
        ("Holds", holds),
        ("Asked as", who),
        ("Corpus", f"generation {origin.generation}, digest {origin.digest}, {origin.documents:,} documents{records}"),
        *(("Encoder", f"{e.name}, weights {e.digest[:16]}, {e.runtime}, {e.dim} dimensions") for e in origin.encoders),
        *(("Model", f"{name}, which only verifying loads, when it is allowed to") for name in models),
        ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(about.packages.items()))),
    ]
    if about.passages is not Passages.SHOWN:
        rows.append(
            ("Passages", "replaced by citations" if about.passages is Passages.REDACTED else "left out, with all paths")
        )
    if about.audience is not None:
        rows.append(("Cut for", _principal(about.audience.tenant, about.audience.roles)))
    rest = about.note.strip().partition("\n")[2].strip()  # its first line is the title
    note = f'<p class="note"><bdi>{visible(rest)}</bdi></p>\n' if rest else ""
    listed = "".join(f"<dt>{visible(name)}</dt><dd><bdi>{visible(text)}</bdi></dd>" for name, text in rows)
    omitted = f'<p class="warning">{OMITTED}.</p>\n' if about.omitted else ""
    return f"{note}<dl>{listed}</dl>\n{omitted}"


def _principal(tenant: str | None, roles: tuple[str, ...]) -> str:
    return f"{'tenant ' + tenant if tenant is not None else 'no tenant'}, {'roles ' + ', '.join(roles) if roles else 'no roles'}"


def _bar() -> str:
    return (
        '<div class="bar js"><label for="find">Find</label><input id="find" type="search" autocomplete="off" '
        'placeholder="words in passages and tables"><output id="found" class="soft" for="find"></output>'
        '<button type="button" id="theme">Dark or light</button><button type="button" id="print">Print</button></div>\n'
    )


def _contents(content: Content) -> str:
    if len(content.searches) + len(content.evaluations) < 2:
        return ""
    lines = [
        f'<li><a href="#s{n}"><bdi>{visible((s.query or s.keywords)[:120])}</bdi></a> '
        f'<span class="soft">{visible(plan_words(s.mode, s.plan))}</span></li>'
        for n, s in enumerate(content.searches)
    ]
    lines += [
        f'<li><a href="#w{n}"><bdi>Sweep of {visible(", ".join(s.fields))}</bdi></a> '
        f'<span class="soft">by {visible(s.measure)}</span></li>'
        for n, s in enumerate(content.sweeps)
    ]
    lines += [
        f'<li><a href="#e{n}"><bdi>{visible(e.name[:120])}</bdi></a></li>' for n, e in enumerate(content.evaluations)
    ]
    return f'<nav aria-label="Contents"><ol>{"".join(lines)}</ol></nav>\n'


def plan_words(mode: str, plan: str | Plan) -> str:
    """Mode and plan in a few words."""
    return f"{mode}: {plan}"
