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
from workbench.records import Principal
from workbench.store import locks
from workbench.ui import runs
from workbench.ui.runs import Request, Status
from workbench.ui.views.corpus import PARTS, progress_text

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


@pytest.mark.slow
def test_the_overview_counts_what_is_there(open_app: Open, small_corpus: Path) -> None:
    at = corpus_page(open_app, small_corpus)
    assert f"<td><bdi>{len(TEXTS)}</bdi></td>" in table(at, "Facts")
    for name in ("documents by type", "documents by language", "documents by sensitivity"):
        assert sum(int(n) for n in re.findall(r'wb-num">([\d,]+)', table(at, name))) == len(TEXTS)
    assert "source</bdi>" in table(at, "Sources")
    assert len(at.get("plotly_chart")) == 1
    assert "Half of the" in all_text(at)
    at = corpus_page(open_app, small_corpus, part="runs")
    with wb.open_corpus(small_corpus) as corpus:
        assert corpus.engine.opened.manifest.digest in table(at, "Generations")
    assert "current, open here" in table(at, "Generations")
    assert at.dataframe[0].value["state"].tolist() == ["done"]


@pytest.mark.slow
def test_every_part_is_in_the_address(open_app: Open, small_corpus: Path) -> None:
    at = corpus_page(open_app, small_corpus)
    for part in PARTS:
        at.segmented_control(key="wb.w.corpus.part").set_value(part)
        run(at)
        assert at.query_params.get("part", "overview") == part
        again = corpus_page(open_app, small_corpus, part=part)
        assert again.segmented_control(key="wb.w.corpus.part").value == part
    assert "This corpus" in all_text(corpus_page(open_app, small_corpus, part="<b>"))


def test_chunks_are_found_by_letters_and_filter(open_app: Open, small_corpus: Path) -> None:
    at = corpus_page(open_app, small_corpus, part="chunks")
    everything = table(at, "Chunks").count("<tr><td>")
    assert everything == 50
    assert re.search(r"\d+ chunks, 1 to 50 shown", all_text(at))
    assert "<script>alert" not in "".join(b for b in bodies(at) if "wb-places" in b)
    at.text_input(key="wb.w.corpus.words").set_value("KETTLE")
    run(at)
    assert 1 <= table(at, "Chunks").count("<tr><td>") < everything
    assert "kettle.md:1-" in table(at, "Chunks")
    at.text_input(key="wb.w.corpus.filter").set_value("type = 'code'")
    run(at)
    assert "No chunk holds this" in all_text(at)
    at.text_input(key="wb.w.corpus.filter").set_value("nonsense = 1")
    run(at)
    assert "unknown field nonsense" in all_text(at)


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
    for process in list(runs._started):
        process.wait(120)
    said = runs.status(corpus)
    assert said.state == runs.DONE


# --- parts --------------------------------------------------------------------------------------------------------------------
