"""The Search page: four columns, and what can be done with them; the Guide page, and moving between pages."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from app_for_tests import TEXTS, all_text, bodies, chunks, column, go, paths, run, write_corpus
from app_for_tests import page as page_at
from corpus_files import write_files
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench import guide
from workbench.errors import EncoderError
from workbench.store import vectors
from workbench.ui import app as house
from workbench.ui import resources
from workbench.ui.components.boxes import titles
from workbench.ui.state import MODES, PICTURES, Column

Open = Callable[..., AppTest]


QUERY = "retry request"


ODD_QUERIES = [
    "<b>x</b> & \"'", "$x^2$ **b** :red[x]", "\u202eabc\x1b[0m\x00", "x" * 3000, '"unclosed', "-only", "*", "OR",
]  # fmt: skip


def test_a_query_fills_four_columns_and_every_picture_is_drawn(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus, q=QUERY)
    for mode in MODES:
        assert len(chunks(at, mode)) == 10
        assert "10 results" in column(at, mode)
    assert "Exact match" in column(at, "keyword")
    assert "Semantic match" in column(at, "vector")
    assert "Hybrid" in column(at, "hybrid")
    at = open_app(small_corpus, q="a request after a pause")
    for picture in PICTURES:
        at.button_group(key="wb.w.picture").set_value(picture)
        run(at)
        assert len(at.get("plotly_chart")) == (picture != "none")
        assert at.query_params.get("picture", "none") == picture


def test_an_empty_page_offers_titles_and_an_endless_line_is_cut(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus)
    assert f"{len(TEXTS)} documents" in all_text(at)
    at.button(key="wb.w.example-0").click()
    run(at)
    assert at.query_params["q"] == at.text_input(key="wb.w.query").value
    assert chunks(at, "hybrid")
    at = open_app(small_corpus, q="needlework", columns="grep,keyword")
    for mode in ("grep", "keyword"):
        assert "<mark>needlework</mark>" in column(at, mode)
        assert len(column(at, mode)) < 20_000


def test_two_people_do_not_see_each_other(open_app: Open, small_corpus: Path) -> None:
    one = open_app(small_corpus, q="kettle water")
    other = open_app(small_corpus, q="rate limits")
    one.slider(key="wb.w.limit").set_value(3)
    run(one)
    run(other)
    assert "kettle.md" in paths(one, "keyword")[0]
    assert "limits.md" in paths(other, "keyword")[0]
    assert other.slider(key="wb.w.limit").value == 10
    assert len(chunks(other, "vector")) == 10


@pytest.mark.slow
def test_a_new_generation_is_followed(open_app: Open, tmp_path: Path) -> None:
    import workbench as wb

    corpus = write_corpus(tmp_path)
    at = open_app(corpus, q="zebra crossing")
    assert not chunks(at, "keyword")
    (tmp_path / "source" / "zebra.md").write_text(
        "# A zebra crossing\n\nThe zebra crossing is closed.\n", encoding="utf-8"
    )
    wb.index([tmp_path / "source"], corpus=corpus, workers=0)
    run(at)
    assert paths(at, "keyword") == ["zebra.md:1-3"]


@pytest.mark.slow
def test_any_query_leaves_the_page_whole_or_is_a_sentence_with_the_remedy(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus)
    for query in ODD_QUERIES:
        at.text_input(key="wb.w.query").set_value(query)
        run(at)
        for mode in MODES:
            assert column(at, mode).endswith("</section>")
    at = open_app(small_corpus, q=QUERY, filters="colour = 'red'")
    (said,) = (b for b in bodies(at) if 'role="alert"' in b)
    assert "unknown field colour" in said
    assert not any("results</h3>" in b or 'class="wb-column"' in b for b in bodies(at))
    at = open_app(small_corpus, q=QUERY, filters="colour = 'red'", columns="grep")
    assert 'role="alert"' in column(at, "grep")
    at = open_app(small_corpus, q=QUERY, keywords="(", plan="default grep.regex=yes")
    assert 'role="alert"' in column(at, "grep")
    assert len(chunks(at, "keyword")) == 10


def test_the_context_changes_what_the_vector_side_finds(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus, q=QUERY)
    keyword, vector = chunks(at, "keyword"), column(at, "vector")
    at.session_state["wb.w.section.context"] = True
    run(at)
    at.text_area(key="wb.w.context").set_value("def kettle(water): return tea(water)")
    run(at)
    assert at.query_params["context"] == "def kettle(water): return tea(water)"
    assert chunks(at, "keyword") == keyword
    assert column(at, "vector") != vector


@pytest.mark.slow
def test_code_examples_stand_in_the_place_of_the_columns(open_app: Open, tmp_path: Path) -> None:
    import workbench as wb

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_text("# Bells\n\n## Examples\n\nA bell:\n\n```js\nsound('bell')\n```\n")
    wb.index([tmp_path / "in"], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    at = open_app(tmp_path / "corpus", q="bell")
    at.toggle(key="wb.w.examples").set_value(True)
    run(at)
    assert at.query_params["examples"] == "yes"
    assert [code.value for code in at.code if "bell" in code.value] == ["sound('bell')"]
    assert "a.md:7-9" in "".join(bodies(at))


@pytest.mark.parametrize(("page", "part"), [("", "a-first-hour"), ("reference", guide.anchor("fusion.k"))])
def test_the_guide_shows_the_page_that_the_address_names(
    page: str, part: str, open_app: Open, small_corpus: Path
) -> None:
    at = open_app(small_corpus)
    go(at, "guide")
    if page:
        at.query_params["page"] = page
    run(at)
    assert any(f'id="{part}"' in body for body in bodies(at))


def test_the_filters_that_are_shown_as_examples_can_be_read() -> None:
    """An example that the language refuses would teach a fault."""
    from workbench.store.access.filters import parse
    from workbench.ui.views.search import FILTER_HELP

    table = guide.text("search").partition("| Filter |")[2].partition("\n\n")[0]
    examples = [*re.findall(r"^\| `(.*?)` \|", table, re.M), *FILTER_HELP.split("`")[1::2]]
    assert len(examples) > 7
    for example in examples:
        parse(example)
    assert house.tab_title("Search", "") == "Search · Retrieval workbench"
    assert house.tab_title("Document", "retries.md") == "retries.md · Document · Retrieval workbench"
    assert len(house.tab_title("Search", "word " * 100)) < 100


PAGES = {
    "explain": {"q": QUERY, "target": "tea.md"}, "document": {"path": "tea.md", "q": "boil"}, "corpus": {}, "judge": {},
}  # fmt: skip


def page(open_app: Open, corpus: Path, name: str) -> AppTest:
    return page_at(open_app, corpus, name, **PAGES[name])


def open_boxes(at: AppTest) -> AppTest:
    for name in ("columns", "context", "saved", "words", "away"):
        at.session_state[f"wb.w.section.{name}"] = True
    return run(at)


def test_without_a_corpus_the_pages_say_how_to_make_one(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = tmp_path / "none"
    for name in PAGES:
        assert "There is no corpus yet" in all_text(page(open_app, none, name))
    for allowed in (True, False):
        monkeypatch.setenv("WORKBENCH_APP_INDEXING", "yes" if allowed else "no")
        at = open_app(none, q="retries")
        assert "There is no corpus yet" in all_text(at)
        commands = [code.value for code in at.code]
        assert commands == ([] if allowed else [f"workbench index PATH-TO-YOUR-FILES --corpus {none}"])
        assert bool(at.tabs) == allowed
    at.button(key="wb.w.look-again").click()
    assert run(at).query_params == {"q": "retries"}


@pytest.fixture(scope="module")
def empty_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with a generation and no document in it."""
    folder = tmp_path_factory.mktemp("empty")
    source = write_files(folder / "source", {"a.md": "# One\n\nword\n"})
    wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0)
    (source / "a.md").unlink()
    assert wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0).documents == 0
    return folder / "corpus"


def test_an_empty_corpus_is_told(open_app: Open, empty_corpus: Path) -> None:
    assert "It is not in the corpus" in all_text(page(open_app, empty_corpus, "explain"))
    said = all_text(page(open_app, empty_corpus, "document"))
    assert "outside the allowed folders" in said
    assert "nothing in this corpus that you may see" in all_text(page(open_app, empty_corpus, "corpus"))
    at = open_boxes(open_app(empty_corpus))
    assert "0 documents" in all_text(at)
    at.text_input(key="wb.w.query").set_value("anything")
    run(at)
    for mode in MODES:
        assert "index a folder with `workbench index PATH`" in column(at, mode)
    assert "there are no distances" in all_text(at)


@pytest.fixture
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model cannot be loaded on this machine."""

    def refuse(name: str | None = None, runtime: str | None = None) -> None:
        raise EncoderError("The model is not on this machine", "Install it")

    monkeypatch.setattr("workbench.retrieve.engine.load_encoder", refuse)


def test_without_the_vector_side_the_rest_goes_on(
    open_app: Open, small_corpus: Path, request: pytest.FixtureRequest
) -> None:
    whole = open_app(small_corpus, q=QUERY)
    st.cache_resource.clear()
    request.getfixturevalue("no_encoder")
    at = open_app(small_corpus, q=QUERY)
    assert chunks(at, "grep") == chunks(whole, "grep")
    assert chunks(at, "keyword") == chunks(whole, "keyword")
    assert not chunks(at, "vector")
    assert "The model is not on this machine.</b> Install it." in column(at, "vector")
    assert "vector is unavailable" in column(at, "hybrid")
    assert column(at, "hybrid").count("The model is not on this machine") == 1
    assert chunks(at, "hybrid") == chunks(whole, "keyword")
    assert "No vector source ran" in all_text(at)


@pytest.mark.usefixtures("no_encoder")
def test_pages_and_pictures_without_the_vector_side(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus, q=QUERY)
    for picture in PICTURES:
        at.button_group(key="wb.w.picture").set_value(picture)
        run(at)
        assert len(at.get("plotly_chart")) == (picture not in ("none", "scores", "distances"))
        if picture in ("scores", "distances"):
            assert {"scores": "Two sources are needed", "distances": "No vector source ran"}[picture] in all_text(at)
    for name, words in (("document", "<mark>Boil</mark>"), ("corpus", "1 to 28 shown")):
        said = all_text(page(open_app, small_corpus, name))
        assert words in said
        assert "not on this machine" not in said
    at = open_boxes(open_app(small_corpus, q=QUERY, columns="keyword,plan", column2="tmm"))
    at.button(key="wb.w.exactness").click()
    assert "The model is not on this machine" in all_text(run(at))


def test_facets_and_conditions_write_the_filter(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus, q=QUERY, filters="path = '*'")
    assert not [w for w in at.button if w.key == "wb.w.facet.type.0"]
    at.session_state["wb.w.section.facets"] = True
    run(at)
    values = {w.label.split()[0]: w for w in at.button if w.key.startswith("wb.w.facet.type.")}
    assert values["markdown"].label == "markdown :small[6]"
    values["code"].click()
    run(at)
    assert at.query_params["filters"] == "path = '*' and type = 'code'"
    assert paths(at, "keyword") == ["backoff.py:1-3"]
    next(w for w in at.button if w.label.startswith("code ")).click()
    run(at)
    at.selectbox(key="wb.w.condition.field").set_value("lines")
    run(at)
    at.selectbox(key="wb.w.condition.operator").set_value("<=")
    at.multiselect(key="wb.w.condition.values").set_value(["3"])
    run(at)
    at.button(key="wb.w.condition.add").click()
    run(at)
    assert at.query_params["filters"] == "path = '*' and lines <= 3"
    at.text_input(key="wb.w.filters").set_value("type = 'novel'")
    run(at)
    (said,) = [b for b in bodies(at) if "No document matches the filter" in b]  # once, not in four columns
    assert "Values of type here: markdown (" in said
    assert '<section class="wb-column' not in "".join(bodies(at))


def test_results_can_be_lines_and_code_is_in_one_width(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus, q="backoff", columns="keyword,vector")
    assert '<div class="wb-text wb-mono"' in column(at, "keyword")
    assert "wb-compact" not in column(at, "keyword")
    at.toggle(key="wb.w.compact").set_value(True)
    run(at)
    assert at.query_params["compact"] == "yes"
    assert '<section class="wb-column wb-compact"' in column(at, "keyword")


def test_the_sources_show_grep_where_keywords_let_it_run(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus, q=QUERY, keywords="pause", columns="hybrid")
    assert at.button_group(key="wb.w.sources").value == ["grep", "keyword", "vector"]
    at.button_group(key="wb.w.sources").set_value(["keyword", "vector"])
    run(at)
    assert at.query_params["plan"] == "default grep.when=never"
    at.button_group(key="wb.w.sources").set_value(["grep", "keyword", "vector"])
    run(at)
    assert at.query_params["plan"] == "default sources=grep,keyword,vector"
    at = open_app(small_corpus, q=QUERY, plan="default rerank.model=/no/model")
    assert at.selectbox(key="wb.w.rerank.model").options == ["off", "overlap", "/no/model"]


def headings(at: AppTest) -> list[str]:
    """Headings of the columns from left to right, the mark of the moved ones after a bar."""
    found = [
        re.search(r"<h3>(.*?)(?:<span[^>]*>(.*?)</span>)?</h3>", b)
        for b in bodies(at)
        if '<section class="wb-column"' in b
    ]
    return [f"{m[1]}|{m[2]}" if m[2] else m[1] for m in found if m]


def opened(open_app: Open, corpus: Path, **params: str) -> AppTest:
    """The page with the box of columns open."""
    at = open_app(corpus, q=QUERY, **params)
    at.session_state["wb.w.section.columns"] = True
    return run(at)


def choose(at: AppTest, n: int, value: str) -> None:
    at.selectbox(key=f"wb.w.column.{n}").set_value(value)
    run(at)


def press(at: AppTest, key: str) -> None:
    at.button(key=f"wb.w.column.{key}").click()
    run(at)


def test_columns_are_added_swapped_and_taken_away(open_app: Open, small_corpus: Path) -> None:
    at = opened(open_app, small_corpus, columns="plan,keyword", column1="tmm", moves="1")
    press(at, "1.right")
    assert headings(at) == ["Keyword", "tmm|moved by the sidebar"]
    assert at.query_params["moves"] == "2"
    press(at, "add")
    press(at, "add")
    assert len(headings(at)) == 4
    assert not [b for b in at.button if b.key == "wb.w.column.add"]
    press(at, "1.away")
    assert headings(at)[0] == "tmm|moved by the sidebar"
    press(at, "1.away")
    assert "moves" not in at.query_params
    press(at, "1.away")
    (last,) = headings(at)
    assert at.button(key="wb.w.column.1.away").disabled
    assert last in {"Vector", "Grep"}


def test_the_sidebar_moves_the_chosen_plan_only(open_app: Open, small_corpus: Path) -> None:
    at = opened(open_app, small_corpus, columns="hybrid,plan", column2="tmm limit=5")
    assert headings(at) == ["Hybrid|moved by the sidebar", "tmm limit=5"]
    at.slider(key="wb.w.limit").set_value(3)
    run(at)
    assert (at.query_params["plan"], at.query_params["column2"]) == ("default limit=3", "tmm limit=5")
    at.selectbox(key="wb.w.moves").set_value(2)
    run(at)
    assert at.slider(key="wb.w.limit").value == 5
    at.slider(key="wb.w.limit").set_value(7)
    run(at)
    assert (at.query_params["plan"], at.query_params["column2"]) == ("default limit=3", "tmm limit=7")
    counts = [len(re.findall("<article", b)) for b in bodies(at) if '<section class="wb-column"' in b]
    assert counts == [3, 7]


def test_a_saved_plan_is_a_column_by_its_name(
    open_app: Open, own_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is offered, and its name is the heading until the plan is moved."""
    monkeypatch.setenv("WORKBENCH_CORPUS", str(own_corpus))
    resources.searches().save_plan("my best", "tmm fusion.alpha=0.6")
    at = opened(open_app, own_corpus, columns="keyword,hybrid")
    choose(at, 2, "saved:my best")
    assert headings(at) == ["Keyword", "my best|moved by the sidebar"]
    at.slider(key="wb.w.fusion.alpha").set_value(0.5)
    run(run(at))
    assert headings(at)[1] == "tmm fusion.alpha=0.5|moved by the sidebar"


def test_a_preset_of_collections_names_them_and_headings_differ(open_app: Open, two_collections: Path) -> None:
    at = open_app(two_collections, q="kettle water", columns="plan,keyword", column1="pages")
    body = next(b for b in bodies(at) if "pages results" in b)
    assert 'data-rank="0"' in body
    assert "Added by page" in body
    assert "in docs" in body
    from workbench.plan.plan import Plan

    plan = Plan.parse("tmm")
    columns = (Column("grep"), Column("grep"), Column(plan=plan), Column(plan=plan))
    assert titles(columns, {}) == ("Grep", "Grep (2)", "tmm", "tmm (2)")
    assert titles(columns[2:], {"tmm": "Grep"}) == ("Grep", "Grep (2)")


def test_how_much_the_columns_agree_and_how_exact_they_are(
    open_app: Open, small_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_app(small_corpus, q=QUERY, columns="vector,vector,keyword", picture="agreement")
    (matrix,) = [b for b in bodies(at) if 'class="wb-agreement"' in b]
    assert "Vector and Vector (2): 10 of 10 shared, Jaccard 1.00, RBO 1.00" in matrix
    assert matrix.count("<b>") == 6
    at = open_app(small_corpus, q=QUERY, columns="vector", picture="agreement")
    assert "Two columns with results are needed" in all_text(at)
    at = open_app(small_corpus, q=QUERY)
    at.button(key="wb.w.exactness").click()
    assert "Every vector search of this query is exact: the corpus is small" in all_text(run(at))
    monkeypatch.setattr(vectors, "GRAPH_MS_PER_WIDTH", 0.0)
    at = open_app(write_corpus(tmp_path), q=QUERY)
    at.button(key="wb.w.exactness").click()
    run(at)
    assert re.search(r"finds recall@10 1\.000 and recall@100 1\.000, in [\d.]+ ms against", all_text(at))
