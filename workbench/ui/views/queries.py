"""The Query sets page: what people want to find, kept in sets; made, loaded, named, described, exported and deleted here."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import streamlit as st

from workbench.errors import UsageError, WorkbenchError, counted
from workbench.judgments import exchange
from workbench.judgments.known_items import make_known_item_set
from workbench.judgments.query_sets import GRADE_TEXTS, LONGEST_GRADE_TEXT, LONGEST_NEED, QuerySet
from workbench.judgments.report import SetReport, report_of
from workbench.markup import plain, visible
from workbench.ui import resources, state
from workbench.ui.components import controls, live, tables
from workbench.ui.components.cards import in_markdown

if TYPE_CHECKING:
    from workbench.corpus import Corpus

KNOWN_ITEMS = 50
FORMS = {
    "jsonl": ("JSONL", "Everything: passages, judges, times, notes. Reads back here without loss."),
    "csv": ("CSV", "The same as a table."),
    "quepid": ("Quepid CSV", "query, docid, rating: as Quepid and the OpenSearch workbench import it."),
    "trec": ("TREC", "Qrels and topics, in a ZIP."),
    "beir": ("BEIR", "queries.jsonl and qrels, in a ZIP."),
}
UPLOADS = ["txt", "csv", "jsonl", "tsv", "qrels", "zip"]
_KEY = controls.PREFIX + "queries."


def draw(corpus: Corpus) -> None:
    sets = corpus.judging.overview()
    if not sets:
        st.text("There is no query set yet. A set holds questions that people ask, and how well passages answer them.")
        _new(corpus, expanded=True)
        return
    names = [s.name for s in sets]
    active = live.chosen(corpus)[0]
    asked = state.page_value("set")
    name = asked if asked in names else active if active in names else names[0]
    reports = {s.name: report(corpus, s.name) for s in sets}
    st.html(sets_html(sets, reports, name, active))
    options: dict[str, Any] = {"format_func": lambda n: plain(n, 80), "width": 420}
    chosen = st.selectbox("Set", names, index=names.index(name), key=_KEY + "set", **options)
    if chosen != name:
        state.set_page_values(set=chosen)
        st.rerun()
    _set(corpus, reports[name], active)
    _new(corpus, expanded=False)


def report(corpus: Corpus, name: str) -> SetReport:
    """What is known of a set, read again when something was judged or indexed."""
    key = (corpus.engine.key, corpus.principal, resources.judged_at(corpus))
    return resources.once(f"report.{name}", key, functools.partial(report_of, corpus.judging, name))


def sets_html(sets: Sequence[QuerySet], reports: Mapping[str, SetReport], shown: str, active: str) -> str:
    rows = []
    for one in sets:
        known = reports[one.name]
        mark = ' <span class="wb-badge">active</span>' if one.name == active else ""
        link = tables.link("queries?" + urlencode({"set": one.name}), one.name, 80)
        name = tables.Html(f"{link.html}{mark}")
        made = f"{one.made:%Y-%m-%d}" + (f" by {plain(one.made_by, 40)}" if one.made_by else "")
        judged, last = f"{known.judged:,} of {len(known.queries):,}", known.changed
        judges = ", ".join(known.judges)
        rows.append(
            (name, judged, known.judgments, known.stale, judges, f"{last:%Y-%m-%d}" if last else "", made, one.note)
        )
    heads = ("Set", "Queries judged", "Judgments", "Stale", "Judges", "Last", "Made", "From")
    attributes = [' aria-current="true" class="wb-named"' if s.name == shown else "" for s in sets]
    return tables.table(heads, rows, (2, 3), "Query sets", attributes)


@contextmanager
def doing() -> Iterator[None]:
    """Do what a form requested and draw the page again, which sees what changed; or show the error."""
    with controls.faults():
        with st.spinner("One moment"):
            yield
        st.rerun()


def _select(corpus: Corpus, name: str, sentence: str) -> None:
    """Show a set that was just made or loaded, make it the active one, and say what was done."""
    state.set_page_values(set=name)
    st.session_state.pop(_KEY + "set", None)
    live.choose(name)
    state.message(sentence)


# --- one set ------------------------------------------------------------------------------------------------------------


def _set(corpus: Corpus, report: SetReport, active: str) -> None:
    name = report.name
    st.html(f'<h2 class="wb-set"><bdi>{visible(plain(name, 80))}</bdi></h2>{report_html(report)}')
    with st.container(horizontal=True):
        help = "The first results of four plans, shuffled. On the Judge page Change chooses another judge or pool."
        if st.button(
            "Start judging", key=_KEY + "judge", icon=":material/gavel:", disabled=not report.queries, help=help
        ):
            live.choose(name)
            st.switch_page(state.page_of("judge"), query_params={**state.current().to_params(), "set": name})
        if st.button("Make it the active set", key=_KEY + "activate", disabled=name == active):
            live.choose(name)
            state.message(f"Grades and figures are those of {name} now.")
            st.rerun()
        icon, off = ":material/compare_arrows:", not report.judgments
        if st.button("Compare plans", key=_KEY + "compare", icon=icon, disabled=off):
            live.choose(name)
            st.switch_page(state.page_of("compare"))
    queries, added, grades, exported, change = st.tabs(
        ["Queries", "Add queries", "Grades", "Export", "Rename or delete"]
    )
    with queries:
        _queries(corpus, report)
    with added:
        _add(corpus, name)
    with grades:
        _grades(corpus, name)
    with exported:
        _export(corpus, report)
    with change:
        _change(corpus, report)


def report_html(report: SetReport) -> str:
    """How far a set is judged, by whom, what is stale, and how far its judges agree."""
    total = len(report.queries)
    facts = [f"{report.judged:,} of {counted(total, 'query|queries')} judged", counted(report.judgments, "judgment")]
    if report.judges:
        facts.append("by " + ", ".join(f"{plain(judge, 40)} ({count:,})" for judge, count in report.judges.items()))
    if report.changed is not None:
        facts.append(f"last on {report.changed:%Y-%m-%d %H:%M} UTC")
    lines = [" · ".join(facts)]
    if report.stale:
        lines.append(
            f"{counted(report.stale, 'judgment')} stale: the judged text is gone from the corpus; not counted."
        )
    if report.agreement is not None:
        lines.append(report.agreement.words + ".")
    for judge, found in report.machines.items():
        lines.append(f"{judge}: nobody has judged any of its passages too." if found is None else found.words + ".")
    share = 100 * report.judged / total if total else 0
    bar = (
        f'<div class="wb-bar" role="img" aria-label="{share:.0f} % of the queries are judged">'
        f'<span style="width:{share:.0f}%;background:var(--wb-blue)"></span></div>'
    )
    return f"{bar}" + "".join(f'<p class="wb-msg">{visible(plain(line, 600))}</p>' for line in lines)


def _queries(corpus: Corpus, report: SetReport) -> None:
    if not report.queries:
        st.text("This set has no queries. Add some on the next tab.")
        return
    st.caption(
        "Type what counts as an answer into Information need: the Judge page shows it. A tick under Remove takes a query out of "
        "the set with its judgments; Undo brings both back."
    )
    rows = [
        {
            "Query": q.query.text,
            "Information need": q.query.need,
            "Judged": q.judged,
            "Relevant": q.relevant,
            "Stale": q.stale,
            "Keywords": q.query.keywords or "",
            "Remove": False,
        }
        for q in report.queries
    ]
    key = f"{_KEY}needs.{report.name}"
    st.data_editor(
        rows,
        key=key,
        hide_index=True,
        width="stretch",
        height=min(38 * (len(rows) + 1), 420),
        disabled=["Query", "Keywords", "Judged", "Relevant", "Stale"],
        column_config={
            "Query": st.column_config.TextColumn(width="large"),
            "Information need": st.column_config.TextColumn(width="large", max_chars=LONGEST_NEED),
        },
        on_change=_edited,
        args=(corpus, report, key),
    )


def _edited(corpus: Corpus, report: SetReport, key: str) -> None:
    edited: dict[int, dict[str, Any]] = st.session_state[key]["edited_rows"]
    judging, name = corpus.judging, report.name
    rows = {report.queries[int(row)].query: cells for row, cells in edited.items()}
    try:
        for query, cells in rows.items():
            need = str(cells.get("Information need", query.need) or "")
            if need.strip() != query.need:
                judging.sets.describe(name, query.query_id, need)
                back = functools.partial(judging.sets.describe, name, query.query_id, query.need)
                state.remember("the information need", back)
        if gone := [query.query_id for query, cells in rows.items() if cells.get("Remove")]:
            what = counted(len(gone), "query|queries")
            state.remember(f"the removal of {what}", judging.log.remove_queries(name, gone))
            state.message(f"Removed {what} from {name}. Undo brings back what was removed.")
    except WorkbenchError as exc:
        state.notice(str(exc))


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _add(corpus: Corpus, name: str) -> None:
    with st.form(_KEY + "add", border=False, clear_on_submit=True):
        text = st.text_area("Queries, one per line", state.page_value("add"), key=_KEY + "add.lines", height=140)
        if st.form_submit_button("Add"):
            with doing():
                if not (queries := lines_of(text)):
                    raise UsageError("There is no query to add", "Type at least one")
                new = corpus.judging.sets.add(name, queries)
                state.set_page_values(add="")
                state.message(f"{new} of {counted(len(queries), 'query|queries')} new in the set {name}.")
    _files(corpus, "more", name)


def _grades(corpus: Corpus, name: str) -> None:
    sets = corpus.judging.sets
    st.caption(
        "What each grade means, for everybody who judges this set: a few words, and if you like a colon and more."
    )
    with st.form(_KEY + "grades", border=False):
        now = sets.grade_texts(name)
        texts = [
            st.text_input(
                f"Grade {grade}", text, key=f"{_KEY}grades.{name}.{grade}", max_chars=LONGEST_GRADE_TEXT, width=700
            )
            for grade, text in enumerate(now)
        ]
        if st.form_submit_button("Save"):
            with doing():
                own = [
                    text.strip() if text.strip() != usual else ""
                    for text, usual in zip(texts, GRADE_TEXTS, strict=True)
                ]
                sets.set_grade_texts(name, own)
                state.remember("the texts of the grades", functools.partial(sets.set_grade_texts, name, now))
                state.message("The texts of the grades are saved.")


def _export(corpus: Corpus, report: SetReport) -> None:
    if not report.judgments:
        st.text("Nothing of this set is judged yet, so there is nothing to export.")
        return
    download(corpus, report.name, _KEY)
    st.caption("TREC, BEIR and Quepid name documents: each has the highest grade of its passages.")


def download(corpus: Corpus, name: str, prefix: str) -> None:
    """Buttons that download a set's judgments in every form."""
    with st.container(horizontal=True):
        for form, (title, help) in FORMS.items():
            data = functools.partial(exchange.exported, corpus.judging, name, form)
            file = exchange.export_name(name, form)
            controls.download(f"Download {title}", data, file, f"{prefix}download.{form}", help)


def _change(corpus: Corpus, report: SetReport) -> None:
    sets, name = corpus.judging.sets, report.name
    with st.form(_KEY + "rename", border=False, clear_on_submit=True):
        typed = st.text_input("New name", key=_KEY + "rename.name", max_chars=100, width=500)
        if st.form_submit_button("Rename"):
            with doing():
                new = sets.rename(name, typed)
                _select(corpus, new, f"The set {name} is called {new} now.")
                state.remember(f"the name of the set {new}", functools.partial(sets.rename, new, name))
    what = f"{counted(len(report.queries), 'query|queries')} and {counted(report.judgments, 'judgment')}"
    st.caption(f"Delete the set with its {in_markdown(what)}. Undo brings it back; notes and saved searches stay.")
    if st.button("Delete the set", key=_KEY + "delete", icon=":material/delete:"):
        with doing():
            active, number = live.chosen(corpus)[0], sets.remove(name)
            if active == name:
                live.choose("")
            state.remember(f"the deletion of the set {name}", functools.partial(sets.restore, number))
            state.set_page_values(set="")
            st.session_state.pop(_KEY + "set", None)
            state.message(f"The set {name} is deleted. Undo brings it back.")


# --- a new one ----------------------------------------------------------------------------------------------------------


def _new(corpus: Corpus, expanded: bool) -> None:
    judging = corpus.judging
    with st.expander("New query set", expanded=expanded, key=_KEY + "new"):
        typed, loaded, known = st.tabs(["Type queries", "Load files", "From my documents"])
        with typed, st.form(_KEY + "typed", border=False):
            name = st.text_input("Name", key=_KEY + "typed.name", max_chars=100, width=500)
            lines = lines_of(st.text_area("Queries, one per line", key=_KEY + "typed.lines", height=140))
            if st.form_submit_button("Create", type="primary"):
                with doing():
                    made = judging.sets.create(name, lines, "Typed in the app", resources.person())
                    _select(corpus, made, f"The set {made} has {counted(len(judging.queries(made)), 'query|queries')}.")
        with loaded:
            _files(corpus, "new", "")
        with known, st.form(_KEY + "made", border=False):
            st.text(
                "Titles, headings, rare phrases and questions of your documents become queries, and what they were made of is "
                "the answer. They are easier than people's questions: a start, not a verdict."
            )
            name = st.text_input("Name", value="known-items", key=_KEY + "made.name", max_chars=100, width=500)
            count = st.number_input("Queries", 1, 1000, KNOWN_ITEMS, key=_KEY + "made.count", width=200)
            if st.form_submit_button("Create from documents", type="primary"):
                with doing():
                    total = make_known_item_set(judging, corpus.engine, name, int(count))
                    _select(corpus, name, f"{name}: {counted(total, 'query|queries')} with their answers.")


def _files(corpus: Corpus, place: str, into: str) -> None:
    """Load files into a set, or into one that is made of them."""
    with st.form(_KEY + place, border=False):
        name = into or st.text_input(
            "Name", key=f"{_KEY}{place}.name", max_chars=100, placeholder="that of the file", width=500
        )
        what = "Queries (one per line, CSV, JSONL), judgments (CSV, Quepid, JSONL), a BEIR folder as ZIP, or qrels and topics"
        files = st.file_uploader(what, type=UPLOADS, accept_multiple_files=True, key=f"{_KEY}{place}.files")
        if st.form_submit_button("Load"):
            with doing():
                if not files:
                    raise UsageError("No file is chosen", "Choose one, then press Load")
                chosen = name.strip() or Path(files[0].name).stem
                message = load(corpus, chosen, [(file.name, file.getvalue()) for file in files])
                _select(corpus, " ".join(chosen.split()), message)


def load(corpus: Corpus, name: str, files: Sequence[tuple[str, bytes]]) -> str:
    """Add uploaded files to a set. Returns what was done, in a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for given, data in files:
            stem = "".join(c for c in Path(given).stem if c.isalnum() or c in " ._-")[:100]  # messages name the file
            path = Path(folder) / ((stem.strip(". ") or "upload") + Path(given).suffix.lower())
            path.write_bytes(data)
            paths.append(path)
        return exchange.import_files(corpus.judging, paths, name)
