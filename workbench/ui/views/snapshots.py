"""The Snapshots page: save what the Search page shows, list what is saved, open, verify, compare, export."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import streamlit as st

from workbench.assist.models import may_name
from workbench.errors import UsageError
from workbench.markup import plain, visible
from workbench.snapshot import Snapshot
from workbench.snapshot import exports as forms
from workbench.snapshot.page import holds, summary
from workbench.snapshot.snapshot import Library
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, snapshot_view, tables
from workbench.ui.finder import request_of
from workbench.ui.routes import PATH, allowed, kept, today
from workbench.ui.views import search

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.snapshot.diff import SnapshotDiff

_KEY = controls.PREFIX + "snapshots."
WHOLE, REDACTED, METADATA = "passages", "citations only", "no names of documents"
MOST_MB = 64
_LIST = 260


def draw(corpus: Corpus) -> None:
    _save(corpus)
    uploaded = _upload(corpus)
    listed = kept(corpus)
    known = {one.snapshot.id: one.snapshot for one in listed if one.snapshot is not None}
    st.subheader("Saved snapshots", anchor=False)
    for one in listed:
        if one.error is not None:
            st.html(cards.alert(one.path.name, one.error.message, one.error.remedy))
    if not known and uploaded is None:
        st.caption(
            "Nothing is saved yet. Save a search above or a leaderboard on the Compare page, open a file, or in a terminal: "
            "`workbench snapshot save QUERY`"
        )
        return
    choices = dict(known)
    if uploaded is not None:
        choices = {uploaded.id: uploaded, **choices}
    _one(corpus, choices, known)
    if len(choices) > 1:
        _compare(choices)


# --- save ---------------------------------------------------------------------------------------------------------------


def _save(corpus: Corpus) -> None:
    state = app_state.current()
    st.subheader("Save this search", anchor=False)
    if request_of(state).blank:
        st.caption("There is no query: ask something on the Search page, then come back to keep what it finds.")
        return
    columns = ", ".join(c.mode if c.plan is None else str(c.plan) for c in state.columns)
    st.html(
        f'<p class="wb-note">“<bdi>{visible(plain(state.query or state.keywords, 200))}</bdi>” '
        f"by {visible(plain(columns, 300))}, "
        f"plan <bdi>{visible(plain(str(state.plan), 300))}</bdi></p>"
    )
    with st.form(_KEY + "form", border=False):
        note, carries, button = st.columns([5, 3, 2], vertical_alignment="bottom")
        text = note.text_input("Note", key=_KEY + "note", placeholder="What is this for? The first line is its title.")
        what = carries.selectbox("Include", (WHOLE, REDACTED, METADATA), key=_KEY + "carries")
        pressed = button.form_submit_button("Save snapshot", type="primary", key=_KEY + "save")
    if not pressed:
        return
    with controls.faults("Not saved"):
        answers = [one.result for one in search.find(corpus, state) if one.result is not None]
        if not answers:
            raise UsageError("No column has an answer to save", "Change the query or the settings on the Search page")
        made = Snapshot.of(answers, note=text.strip(), by=resources.person())
        made = made.redacted() if what == REDACTED else made.metadata_only() if what == METADATA else made
        Library(corpus.path).keep(made)
        st.html(cards.note(f"Saved {made.id}: {made.title}"))


# --- open ---------------------------------------------------------------------------------------------------------------


def _upload(corpus: Corpus) -> Snapshot | None:
    file = st.file_uploader("Open a file", type=["snapshot"], key=_KEY + "file", max_upload_size=MOST_MB)
    if file is None:
        return None
    seen = None
    with controls.faults(plain(file.name, 120)):
        loaded = Snapshot.load(file.getvalue())
        seen = allowed(loaded, corpus.principal, corpus.policy, today(corpus), own=True)
        help = "Puts the file with the corpus, so that it has a link."
        if st.button("Save it here", key=_KEY + "keep", help=help):
            Library(corpus.path).keep(loaded)
            st.html(cards.note(f"Saved {loaded.id}: {loaded.title}"))
    return seen


def base_address() -> str:
    """Scheme and host of the page, without a path; "" where the browser did not say."""
    parts = urlsplit(str(st.context.url or ""))
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _label(one: Snapshot) -> str:
    return f"{plain(one.title, 80)} · {one.about.when}{_plans(one)}"


def _plans(one: Snapshot) -> str:
    """What tells two snapshots of one search apart."""
    return "".join(f" · {plain(plan, 80)}" for plan in dict.fromkeys(search.plan for search in one.searches))


def _one(corpus: Corpus, choices: dict[str, Snapshot], known: dict[str, Snapshot]) -> None:
    ids, asked = list(choices), app_state.page_value("id")
    titles = controls.apart(cards.in_markdown(one.title, 120) for one in choices.values())
    # What came last is chosen first: another key forgets what was chosen before.
    with st.container(height=_LIST if len(ids) > 4 else "content", border=len(ids) > 4):
        chosen = st.radio(
            "Snapshot",
            ids,
            index=ids.index(asked) if asked in ids else 0,
            format_func=dict(zip(ids, titles, strict=True)).__getitem__,
            captions=[cards.in_markdown(_facts(one), 200) for one in choices.values()],
            key=f"{_KEY}one.{ids[0]}",
            label_visibility="collapsed",
        )
    if chosen != asked and (asked or chosen != ids[0]):
        app_state.set_page_values(id=str(chosen))
    one = choices[str(chosen)]
    st.subheader(cards.in_markdown(one.title, 200), anchor=False)
    st.caption(cards.in_markdown(_facts(one), 300))
    _buttons(corpus, one, known)
    snapshot_view.report(one)
    with st.expander("Where it comes from: corpus, encoders, versions"):
        st.html(f'<div class="wb-note">{summary(one.about, one.content)}</div>')


def _facts(one: Snapshot) -> str:
    by = f"{one.about.by} · " if one.about.by else ""
    return f"{one.about.when} · {by}{holds(one.content)}{_plans(one)}"


def _buttons(corpus: Corpus, one: Snapshot, known: dict[str, Snapshot]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        controls.download("Download HTML", one.html, f"{one.id}.html", _KEY + "html")
        controls.download("Download .snapshot", one.to_bytes, f"{one.id}.snapshot", _KEY + "file-out")
        controls.download("Download CSV", functools.partial(forms.to_csv, one), f"{one.id}.csv", _KEY + "csv")
        check = st.button(
            "Load its models and verify" if any(map(may_name, one.models)) else "Verify",
            key=_KEY + "verify",
            help="Checks every digest, and runs the searches again where it can, but with no model that is not allowed here.",
        )
        if one.id in known:
            link = f"{PATH}{one.id}"
            copy = cards.copy_button(base_address() + link, f"Copy the link of {plain(one.title, 80)}", "Copy link")
            st.html(f'<a class="wb-button" href="{link}" target="_blank" rel="noopener">Open as a page</a> {copy}')
            if one.about.by == resources.person():
                with st.popover("Remove", key=_KEY + "remove"):
                    st.text(f"Remove “{plain(one.title, 80)}”? Its link stops working.")
                    st.button(
                        "Remove it", key=_KEY + "remove.sure", on_click=_remove, args=(corpus, one), type="primary"
                    )
    if check:
        with st.spinner("Running its searches again"):
            found = one.verify(corpus, load_models=True)
        st.html(cards.note(found.verdict) if found.ok else cards.alert("", found.verdict, ""))
        lines = [f"{c.what}: {s}" for c in (*found.searches, *found.evaluations) for s in c.differences]
        if lines:
            st.html("<ul>" + "".join(f"<li><bdi>{visible(s)}</bdi></li>" for s in lines) + "</ul>")


def _remove(corpus: Corpus, one: Snapshot) -> None:
    library = Library(corpus.path)
    whole = library.get(one.id)
    library.remove(one.id)
    app_state.remember("removing a snapshot", lambda: library.keep(whole))
    app_state.message(f"Removed {one.id}: {plain(one.title, 80)}")


# --- compare ------------------------------------------------------------------------------------------------------------


def _compare(choices: dict[str, Snapshot]) -> None:
    st.subheader("Compare", anchor=False)
    labels = dict(zip(choices, controls.apart(map(_label, choices.values())), strict=True))
    chosen = st.multiselect(
        "Snapshots, the first is compared with the others",
        list(choices),
        format_func=labels.__getitem__,
        max_selections=6,
        key=_KEY + "compare",
    )
    if len(chosen) < 2:
        st.caption("Choose two or more: what changed in settings, documents, ranks and measures, and why.")
        return
    found = choices[chosen[0]].diff(*(choices[i] for i in chosen[1:]))
    legend = "".join(
        f"<li>{n}: <bdi>{visible(_label(s))}</bdi></li>" for n, s in zip(found.names, found.snapshots, strict=True)
    )
    lines = "".join(f"<li><bdi>{visible(s)}</bdi></li>" for s in found.sentences)
    st.html(f'<ul class="wb-note">{legend}</ul><ul>{lines}</ul>')
    _queries(found)
    frames = {"Settings": found.settings(), "Documents": found.documents(), "Measures": found.measures()}
    for title, frame in frames.items():
        if len(frame):
            st.text(title)
            st.dataframe(tables.headed(frame, p="p"), hide_index=True, key=f"{_KEY}diff.{title}")


def _queries(found: SnapshotDiff) -> None:
    in_both = [numbers[0] is not None and any(x is not None for x in numbers[1:]) for _, numbers in found.queries]
    both = [n for n, so in enumerate(in_both) if so]
    if not both:
        st.caption("They have no query in common.")
        return
    at = both[0]
    if len(both) > 1:
        titles = controls.apart(plain(title, 100) for title in found.titles)
        at = st.selectbox("Query", both, format_func=titles.__getitem__, key=_KEY + "query")
    controls.chart(found.figure(at), _KEY + "bump", f"Ranks of {plain(found.titles[at], 100)} in each snapshot.")
    st.dataframe(tables.headed(found.ranks(at)), hide_index=True, key=_KEY + "ranks")
    if changed := snapshot_view.texts_html(found, at):
        st.html(changed)
