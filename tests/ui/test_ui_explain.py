"""The Explain page: its pictures, where a document went, and the way to bring it in."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import plotly.io
import pytest
from app_for_tests import all_text, bodies, chunks, go, page, run
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.errors import EncoderError

Open = Callable[..., AppTest]
QUERY = "retry request"
PICTURES = ("bump", "contributions", "plane", "funnel", "timings")


def explain(open_app: Open, corpus: Path, **params: str) -> AppTest:
    return page(open_app, corpus, "explain", **params)


def again(at: AppTest) -> AppTest:
    """A run in the browser keeps the page; AppTest's next run does too."""
    return run(at)


def figure(at: AppTest, name: str) -> Any:
    """A picture of the page, as plotly reads it."""
    specs = [e.proto for e in at.get("plotly_chart") if e.proto.id.endswith(f"wb.w.explain.{name}")]
    assert len(specs) == 1, name
    return plotly.io.from_json(specs[0].spec)


def standing(at: AppTest) -> str:
    (found,) = (b for b in bodies(at) if 'class="wb-standing"' in b)
    return found


def table(at: AppTest) -> str:
    (found,) = (b for b in bodies(at) if 'class="wb-places"' in b)
    return found


def test_without_a_query_it_says_what_to_do_and_a_kept_answer_shows_the_first_times(
    open_app: Open, small_corpus: Path
) -> None:
    at = explain(open_app, small_corpus)
    assert "There is no search to explain yet" in all_text(at)
    at.button(key="wb.w.example-0").click()
    run(at)
    assert at.query_params["q"]
    assert len(at.get("plotly_chart")) == len(PICTURES)
    first, kept = (explain(open_app, small_corpus, q=QUERY) for _ in range(2))
    rows = [next(list(t.y) for t in figure(at, "timings").data) for at in (first, kept)]
    assert rows == [["search", "embedding"], ["search (from cache)", "embedding"]]
    assert sum(sum(t.x) for t in figure(kept, "timings").data) > 0


def test_the_asked_document_is_in_every_picture_and_its_score_is_taken_apart(
    open_app: Open, small_corpus: Path
) -> None:
    at = explain(open_app, small_corpus, q=QUERY, plan="rrf limit=3", target="limit")
    assert "limits.md" in standing(at)  # the only path with these letters
    assert figure(at, "bump").data[-1].customdata is not None
    for name, said in {
        "bump": [t.name for t in figure(at, "bump").data] + [a.text for a in figure(at, "bump").layout.annotations],
        "contributions": figure(at, "contributions").data[0].y,
        "plane": [t.name for t in figure(at, "plane").data],
        "funnel": [a.text for a in figure(at, "funnel").layout.annotations],
    }.items():
        assert [text for text in said if text and "▸ limits.md" in text], name
    assert 'class="wb-named"' in table(at)
    shown = re.sub("<[^>]+>", " ", standing(at))
    assert "Fused score: " in shown
    assert re.search(r"retry\s+retri\s+0\s+\d+ of 70", shown)
    assert re.search(r"request\s+request\s+2\s+\d+ of 70", shown)
    at = explain(open_app, small_corpus, q="kettle", plan="rrf sources=keyword", target="tea.md")
    assert "▸ tea.md:1" in str(figure(at, "bump").to_dict())


def test_every_way_in_has_its_cost_on_the_judged_queries(open_app: Open, own_corpus: Path) -> None:
    with wb.open_corpus(own_corpus) as corpus:
        for query in (QUERY, "boiling water"):
            corpus.judging.grade(corpus.search(query).hits[0], 3, query=query)
    at = explain(open_app, own_corpus, q=QUERY, plan="rrf limit=2", target="timeouts.md")
    at.session_state["wb.w.explain.ways"] = True
    run(at)
    at.toggle(key="wb.w.explain.costs").set_value(True)
    run(at)
    (ways,) = (b for b in bodies(at) if "Rank then" in b)
    rows = [re.sub("<[^>]+>", "|", row) for row in ways.split("<tr>")[2:]]
    assert len(rows) > 1
    assert all("→" in row for row in rows)
    assert "limit=" in rows[-1]
    assert all("limit=" not in row for row in rows[:-1])


def test_the_table_has_the_results_in_their_order_and_nothing_found_its_funnel(
    open_app: Open, small_corpus: Path
) -> None:
    at = open_app(small_corpus, q=QUERY)
    searched = chunks(at, "hybrid")
    go(at, "explain")
    run(at)
    assert re.findall(r'data-chunk="([^"]+)"', table(at)) == searched
    hits = at.session_state["wb.finder"].kept("hybrid").hits
    for hit in hits:
        assert f'title="{hit.score!r}"' in table(at)
        assert all(f'title="{value!r}"' in table(at) for value in hit.contributions.values())
    at = explain(open_app, small_corpus, q="zzzyx", plan="default vector.threshold=0")
    assert "No candidate is left to draw" in all_text(at)
    assert figure(at, "funnel").data
    for query in ("<b>x</b> & \"'", "$x^2$ **b** :red[x]", "x" * 3000, '"unclosed', "-only", "*"):
        assert "<b>x</b>" not in "".join(bodies(explain(open_app, small_corpus, q=query, target=query)))


def test_the_way_in_can_be_tried_here(open_app: Open, small_corpus: Path) -> None:
    at = explain(open_app, small_corpus, q=QUERY, plan="default limit=3", target="limits.md")
    at.button(key="wb.w.explain.apply").click()
    again(at)
    assert "limit=" in at.query_params["plan"]
    assert re.search(r"<h3>Rank \d+", standing(at))
    at = explain(open_app, small_corpus, q="limits -request", plan="rrf sources=keyword", target="limits.md")
    assert "which the query leaves out with -request" in standing(at)
    (link,) = re.findall(r'href="([^"]+)"[^>]*data-wb-way-in', standing(at))
    assert parse_qs(urlsplit(link.replace("&amp;", "&")).query)["q"] == ["limits"]
    at = explain(open_app, small_corpus, q=QUERY, target="note-1")
    assert "It is not in the corpus" in standing(at)
    assert "<code>workbench index PATH</code>" in standing(at)
    at.button(key="wb.w.explain.similar-0").click()
    again(at)
    assert at.query_params["target"] == "notes/note-10.md"
    assert "notes/note-10.md" in standing(at)
    at = explain(open_app, small_corpus, q=QUERY)
    box = at.selectbox(key="wb.w.explain.target")
    assert "tea.md" in box.options
    box.set_value("tea.md")
    again(at)
    assert at.query_params["target"] == "tea.md"
    assert "tea.md" in standing(at)
    at.selectbox(key="wb.w.explain.target").set_value(None)
    again(at)
    assert "target" not in at.query_params
    assert not any('class="wb-standing"' in b for b in bodies(at))


def test_what_was_run_is_shown_and_finds_what_the_page_found(open_app: Open, small_corpus: Path) -> None:
    at = explain(open_app, small_corpus, q=QUERY, filters="type = 'markdown'", plan="default keyword.k1=1.3")
    assert not any("SELECT" in c.value for c in at.code)
    at.session_state["wb.w.explain.how"] = True
    again(at)
    shown = "\n".join(c.value for c in at.code)
    assert "default keyword.k1=1.3" in shown
    assert "1.3::DOUBLE" in shown
    assert "cosine(query, X)" in shown
    assert "nfc_normalize(d.type) = ?" in shown
    assert "'markdown'" in shown
    at = explain(open_app, small_corpus, q=QUERY)
    at.session_state["wb.w.explain.how"] = True
    again(at)
    (sql,) = (c.value for c in at.code if c.value.startswith("WITH"))
    from workbench.corpus import open_corpus
    from workbench.store.database import fetch

    with open_corpus(small_corpus) as corpus:
        result = corpus.search(QUERY, mode="keyword", plan="default limit=100")
        rows = fetch(corpus.engine.opened.records.connection, sql)
        ids = [corpus.engine.records.rows([n])[0].chunk.chunk_id for n, _ in rows]
    assert ids == [e.chunk_id for e in result.rankings["keyword"].entries]


def test_an_unavailable_vector_side_is_said_and_the_rest_is_explained(
    open_app: Open, small_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise EncoderError("The model is gone", "Install it again")

    monkeypatch.setattr("workbench.retrieve.engine.load_encoder", gone)
    at = explain(open_app, small_corpus, q=QUERY, target="tea.md")
    assert "vector is unavailable" in all_text(at)
    assert "The model is gone" in all_text(at)
    assert "needs a keyword and a vector source" in all_text(at)
    assert len(at.get("plotly_chart")) == len(PICTURES) - 1
    assert "tea.md" in standing(at)


def test_judged_candidates_are_marked_in_the_plane(open_app: Open, own_corpus: Path) -> None:
    with wb.open_corpus(own_corpus) as corpus:
        hits = corpus.search(QUERY).hits
        corpus.judging.grade(hits[0], 3, query=QUERY)
        corpus.judging.grade(hits[1], 2, query="another query")

    def symbols(at: AppTest) -> list[str]:
        return [s for t in figure(at, "plane").data if t.mode == "markers" for s in t.marker.symbol]

    at = explain(open_app, own_corpus, q=QUERY)
    assert symbols(at).count("star") == 1
    assert "square" not in symbols(at)
    assert "Large shapes are judged" in all_text(at)
    with wb.open_corpus(own_corpus) as corpus:
        corpus.judging.grade(hits[0], 1, query=QUERY)
    assert symbols(again(at)).count("triangle-up") == 1


@pytest.mark.slow
def test_a_file_that_was_not_indexed_is_told_with_its_reason(open_app: Open, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_text("retry the request", encoding="utf-8")
    (tmp_path / "in" / "scan.dat").write_bytes(bytes(range(256)) * 8)
    wb.index([tmp_path / "in"], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    at = explain(open_app, tmp_path / "corpus", q=QUERY, target="scan.dat")
    assert "It is not in the corpus" in standing(at)
    (said,) = (b for b in bodies(at) if 'class="wb-alert"' in b)
    assert "scan.dat was not indexed (skipped)" in said
    at = explain(open_app, tmp_path / "corpus", q=QUERY, target="no.dat")
    assert not any('class="wb-alert"' in b for b in bodies(at))


def test_sliders_move_the_pictures_without_a_search(open_app: Open, small_corpus: Path) -> None:
    at = explain(open_app, small_corpus, q=QUERY)
    assert len(at.get("plotly_chart")) == len(PICTURES)
    names = [n for n in PICTURES if n != "timings"]
    moves = {"fusion.weights.keyword": 0.25, "fusion.alpha": 0.2, "vector.threshold": 0.42, "limit": 3}
    for name, value in moves.items():
        before = [figure(at, n).to_json() for n in names]
        at.slider(key=f"wb.w.{name}").set_value(value)
        again(at)
        assert f"{name}=" in at.query_params["plan"]
        assert [figure(at, n).to_json() for n in names] != before
        again(at)  # a slider draws its part of the page only
    assert at.session_state["wb.finder"].searched == 1
