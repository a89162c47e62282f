"""The Corpus page: what is indexed, what could not be, and who is shown what of it."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from app_for_tests import TEXTS, all_text, bodies, page, run
from streamlit import config
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench import charts
from workbench.errors import CorpusLocked, UsageError
from workbench.indexing.uploads import keep_files
from workbench.records import Principal
from workbench.store import locks
from workbench.ui import runs
from workbench.ui.components.indexing import progress_text
from workbench.ui.runs import Request, Status
from workbench.ui.views.corpus import PARTS

Open = Callable[..., AppTest]
BROKEN = b"%PDF-1.4\nnothing that follows is one"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs say of themselves is kept apart from this machine's own."""
    monkeypatch.setenv("WORKBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def local_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server listens on this machine only, as `workbench app` starts it."""
    real = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: "127.0.0.1" if name == "server.address" else real(name))
    assert "server.address" in config._config_options_template


def corpus_page(open_app: Open, corpus: Path, **params: str) -> AppTest:
    return page(open_app, corpus, "corpus", **params)


def table(at: AppTest, name: str) -> str:
    (found,) = (b for b in bodies(at) if f'aria-label="{name}"' in b)
    return found


def test_documents_are_a_table_that_letters_filter_bars_and_order_change(open_app: Open, small_corpus: Path):
    """All of it is in the address, and counts add up."""
    at = corpus_page(open_app, small_corpus)
    tiles = {m.label: m.value for m in at.metric}
    assert (tiles["Documents"], tiles["Collections"], tiles["Not indexed"]) == (str(len(TEXTS)), "1", "0")
    assert sorted(at.dataframe[0].value["path"]) == sorted(TEXTS)
    bars = {b.label: b for b in at.button if b.key.startswith("wb.w.facet.")}
    bars["code :small[1]"].click()
    run(at)
    assert at.query_params["filter"] == "type = 'code'"
    assert at.dataframe[0].value["path"].tolist() == ["backoff.py"]
    at = corpus_page(open_app, small_corpus, filter="path = 'notes/'", sort="characters", down="yes", text="NOTE-0")
    frame = at.dataframe[0].value
    assert len(frame) == 10
    assert frame["characters"].is_monotonic_decreasing
    assert "10 documents, 1 to 10 shown" in all_text(at)
    at.text_input(key="wb.w.corpus.filter").set_value("nonsense = 1")
    run(at)
    assert "unknown field nonsense" in all_text(at)
    at = corpus_page(open_app, small_corpus, part="runs")
    with wb.open_corpus(small_corpus) as corpus:
        assert corpus.engine.opened.manifest.digest in table(at, "Generations")
    assert "current, open here" in table(at, "Generations")
    assert at.dataframe[0].value["State"].tolist() == ["done"]


@pytest.mark.slow
def test_every_part_is_in_the_address(open_app: Open, small_corpus: Path) -> None:
    at = corpus_page(open_app, small_corpus)
    for part in PARTS:
        at.segmented_control(key="wb.w.corpus.part").set_value(part)
        run(at)
        assert at.query_params.get("part", "overview") == part
        again = corpus_page(open_app, small_corpus, part=part)
        assert again.segmented_control(key="wb.w.corpus.part").value == part
    assert corpus_page(open_app, small_corpus, part="<b>").metric


def test_chunks_are_found_by_letters_and_filter(open_app: Open, small_corpus: Path):
    at = corpus_page(open_app, small_corpus, part="chunks")

    def chunks() -> str:
        return "".join(b for b in bodies(at) if 'aria-label="Chunks"' in b)

    assert chunks().count("<details") == 50
    assert re.search(r"\d+ chunks, 1 to 50 shown", all_text(at))
    assert "<script>alert" not in chunks()
    at.text_input(key="wb.w.corpus.text").set_value("KETTLE")
    run(at)
    assert 1 <= chunks().count("<details") < 50
    assert "kettle.md:1-" in chunks()
    at.text_input(key="wb.w.corpus.filter").set_value("type = 'code'")
    run(at)
    assert "No chunk holds this" in all_text(at)


@pytest.mark.slow
def test_files_that_were_not_indexed_are_listed_with_reason_and_remedy(open_app: Open, tmp_path: Path) -> None:
    """Failed ones first, and how many by reason."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.md").write_text("# Fine\n\nwords\n")
    (source / "b.pdf").write_bytes(BROKEN)
    (source / "c.bin").write_bytes(bytes(range(256)) * 8)
    wb.index([source], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    at = corpus_page(open_app, tmp_path / "corpus", part="refused")
    reasons, files = (b for b in bodies(at) if "Reasons" in b), table(at, "Files that were not indexed")
    assert list(reasons)
    assert files.index("b.pdf") < files.index("c.bin")
    assert re.search(r"failed</bdi></td><td><bdi>b.pdf</bdi></td><td><bdi>\w.+?</bdi></td><td><bdi>\w", files)


@pytest.fixture(scope="module")
def shared_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tenants and a failed file of one of them."""
    folder = tmp_path_factory.mktemp("shared")
    for tenant in ("acme", "zeta"):
        source = folder / tenant
        source.mkdir()
        (source / f"{tenant}.md").write_text(f"# {tenant}\n\nwords of {tenant}\n")
        (source / f"{tenant}-broken.pdf").write_bytes(BROKEN)
        wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0, tenant=tenant)
    return folder / "corpus"


def test_who_does_not_see_everything_learns_nothing_of_the_rest(
    open_app: Open, shared_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_TENANT", "acme")
    with wb.open_corpus(shared_corpus, Principal("acme")) as corpus:
        digest = corpus.engine.opened.manifest.digest
    for part in PARTS:
        at = corpus_page(open_app, shared_corpus, part=part)
        said = all_text(at) + "".join(str(d.value) for d in at.dataframe)
        assert "zeta" not in said
        assert ("acme-broken.pdf" in said) == (part == "refused")
        assert digest not in said


# --- who may start a run ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("local_server")
def test_a_server_for_others_and_the_setting_offer_no_run(
    open_app: Open, small_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_APP_INDEXING", "no")
    assert not corpus_page(open_app, small_corpus, part="index").text_area
    at = corpus_page(open_app, small_corpus.parent / "none")
    assert not at.text_area
    assert "There is no corpus yet" in all_text(at)
    assert "workbench index PATH" in at.code[0].value
    real = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: "0.0.0.0" if name == "server.address" else real(name))
    at = corpus_page(open_app, small_corpus, part="index")
    assert "workbench index PATH" in at.code[0].value
    assert not at.text_area


# --- a run ------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("local_server")
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "No path is given"),
        ("/no/such/place", "There is no file or folder /no/such/place"),
        ("CORPUS", "in the corpus itself"),
    ],
)
def test_what_cannot_be_indexed_is_said(open_app: Open, small_corpus: Path, typed: str, words: str) -> None:
    at = corpus_page(open_app, small_corpus, part="index")
    at.text_area(key="wb.w.index.paths").set_value(typed.replace("CORPUS", str(small_corpus)))
    at.button(key="wb.w.index.start").click()
    run(at)
    assert words in all_text(at)
    assert runs.status(small_corpus) is None


def test_a_second_run_is_refused_while_one_lives_and_a_dead_one_is_failed(tmp_path: Path) -> None:
    folder = runs.folder_of(tmp_path / "corpus")
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    held = locks.exclusive(folder / "lock")
    runs.write(folder, Status(runs.RUNNING, Request(("/x",)), started=1.0, step="embed", done=5, total=10))
    with held:
        said = runs.status(tmp_path / "corpus")
        assert said.alive
        with pytest.raises(CorpusLocked, match="going on"):
            runs.start(tmp_path / "corpus", Request(("/x",)))
    (folder / "log").write_text("Traceback\nMemoryError: too big\n")
    runs.write(folder, Status(runs.RUNNING, Request(("/x",)), started=1.0))
    said = runs.status(tmp_path / "corpus")
    assert (said.state, said.alive) == (runs.FAILED, False)
    assert "MemoryError: too big" in said.reason


@pytest.mark.slow
@pytest.mark.usefixtures("local_server")
def test_a_folder_that_is_in_another_collection_is_asked_about(open_app: Open, own_corpus: Path):
    """A dry run counts, the question is answered by a run that moves, and the table moves and removes what is selected."""
    with wb.open_corpus(own_corpus) as corpus:
        (root,) = corpus.info()["roots"]
    at = corpus_page(open_app, own_corpus, part="index")
    at.text_area(key="wb.w.index.paths").set_value(root)
    at.text_input(key="wb.w.index.collection").set_value("notes")
    at.button(key="wb.w.index.dry").click()
    run(at)
    at.session_state["wb.index.dry"].wait(60)
    run(at)
    count = len(TEXTS)
    assert f"A run would add 0 files, change {count} and remove 0; 0 stay as they are" in all_text(at)
    assert f"{count} of these files are in docs already: move or add?" in "".join(m.value for m in at.markdown)
    at.button(key="wb.w.index.cancel").click()
    at.button(key="wb.w.index.start").click()
    run(at)
    at.button(key="wb.w.index.move").click()
    run(at)
    ended(own_corpus)
    at = corpus_page(open_app, own_corpus)
    assert {*map(tuple, at.dataframe[0].value["collections"])} == {("notes",)}
    place = f"{root}/tea.md"
    for request, said in (
        (Request((place,), "drinks", action=runs.MOVE), "1 file moved to drinks"),
        (Request((place,), action=runs.REMOVE, source="drinks"), "1 file removed from drinks"),
        (Request((f"{root}/kettle.md",), action=runs.REMOVE), "1 file removed. The corpus now has 26 documents"),
    ):
        runs.start(own_corpus, request)
        ended(own_corpus)
        assert said in all_text(corpus_page(open_app, own_corpus, part="index"))


def ended(corpus: Path) -> Status:
    for process in list(runs._started):
        process.wait(120)
    said = runs.status(corpus)
    assert said.state == runs.DONE, said
    return said


def test_files_that_are_handed_over_are_kept_where_they_may_be(tmp_path: Path):
    corpus = tmp_path / "corpus"
    (path,) = keep_files([("a/../../b\\notes.md", b"# One")], corpus)
    assert path == corpus / "uploads" / "a" / "b" / "notes.md"
    (again,) = keep_files([("a/b/notes.md", b"# Two words")], corpus)
    assert wb.index([again], corpus, encoder="hashing", workers=0).documents == 1
    with wb.open_corpus(corpus) as opened:
        assert opened.read_file("notes.md") == "# Two words"
        assert opened.info()["roots"] == []
    (kept,) = keep_files([("x.md", b"1")], corpus, tmp_path / "mine")
    assert keep_files([("x.md", b"1")], corpus, tmp_path / "mine") == (kept,)
    with pytest.raises(UsageError, match="another file x"):
        keep_files([("x.md", b"2")], corpus, tmp_path / "mine")
    with pytest.raises(UsageError, match="not a name"):
        keep_files([("..", b"")], corpus)


@pytest.mark.usefixtures("local_server")
def test_an_empty_app_offers_the_demo_a_folder_and_a_snapshot(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begun: list[Request] = []
    monkeypatch.setattr(runs, "start", lambda corpus, request: begun.append(request))
    at = open_app(tmp_path / "none")
    assert [tab.label for tab in at.tabs] == ["Try the demo", "Index your files", "Open a snapshot"]
    assert at.text_area(key="wb.w.index.paths")
    at.button(key="wb.w.welcome.demo").click()
    run(at)
    assert [request.action for request in begun] == [runs.DEMO]


def test_who_has_asked_nothing_is_offered_examples_and_a_tour(open_app: Open, own_corpus: Path):
    """Judged queries come first; the steps are links to pages in a state; the guide keeps them."""
    at = open_app(own_corpus)
    steps = [link.proto.query_string for link in at.get("page_link")]
    assert len(steps) == 5
    assert "target=" in steps[2]
    at.button(key="wb.w.welcome.dismiss").click()
    assert not run(at).get("page_link")
    with wb.open_corpus(own_corpus) as corpus:
        hit = corpus.search("boiling water").hits[0]
        corpus.judging.grade(hit, 3, "why does water boil")
    at = open_app(own_corpus)
    assert at.button(key="wb.w.example-0").label == "why does water boil"
    assert len(page(open_app, own_corpus, "guide").get("page_link")) == 5
    at.button(key="wb.w.example-0").click()
    assert not run(at).get("page_link")


@pytest.mark.parametrize("name", ["", "  ", "a b", "../x", "a'b"])
def test_a_collection_needs_a_name(name: str) -> None:
    with pytest.raises(UsageError, match="not a name of a collection"):
        runs.request_of(("/x",), name, None)


def test_progress_is_said_in_words_and_counted_in_bars() -> None:
    said = Status(
        runs.RUNNING, Request(("/x",)), started=100.0, step="embed", done=5, total=10, rate=2.5, seconds_left=120.0
    )
    assert progress_text(said, 130.0) == "Indexing /x, for 30 s, 2.5 a second, about 2 min left in this step"
    tokens = np.array([0, 1, 5, 5, 199, 200, 2000])
    drawn = charts.token_figure(tokens, 200)
    assert sum(drawn.data[0].y) == len(tokens)
    assert len(drawn.data[0].x) <= 61
    assert drawn.layout.shapes[0].x0 == 200
    assert not charts.token_figure(np.zeros(0, np.int64)).layout.shapes


@pytest.mark.slow
def test_a_run_is_stopped_and_leaves_the_corpus_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_ENCODER", "hashing")
    source = tmp_path / "source"
    source.mkdir()
    for n in range(400):
        (source / f"{n}.md").write_text(f"# Note {n}\n\n" + f"words of {n}. " * 300)
    corpus = tmp_path / "corpus"
    runs.start(corpus, runs.request_of([str(source)], "docs", None))
    runs.stop(corpus)
    for process in list(runs._started):
        process.wait(120)
    said = runs.status(corpus)
    assert said.state == runs.STOPPED, said
    assert not (corpus / "current").exists()
    runs.start(corpus, runs.request_of([str(source / "1.md")], "docs", None))
    ended(corpus)


# --- parts --------------------------------------------------------------------------------------------------------------------
