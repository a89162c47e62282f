"""The bar over every page: what it says of corpus, query set and plan, and what its buttons do."""

import re
from collections.abc import Callable
from pathlib import Path

from app_for_tests import all_text, bodies, go, open_plan, run
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.judgments.exchange import import_judgments
from workbench.ui.components.bar import name_of, plan_label

Open = Callable[..., AppTest]


def test_the_bar_is_on_every_page_with_the_plan_and_what_differs(open_app: Open, small_corpus: Path) -> None:
    at = open_app(small_corpus, q="retry", plan="tmm fusion.alpha=0.3 limit=5")
    for name in ("search", "judge", "tune", "compare", "snapshots", "document", "corpus", "guide"):
        open_plan(go(at, name))
        assert re.search(r"28 documents(<.*?>)? · generation 1", all_text(at))
        assert '<code class="wb-plantext">tmm limit=5 fusion.alpha=0.3</code>' in all_text(at)
        assert len([b for b in bodies(at) if b.startswith("<h1")]) == 1
    run(go(at, "judge"))
    at.button(key="wb.w.bar.reset").click()
    run(at)
    assert at.query_params["plan"] == "tmm"
    assert at.button(key="wb.w.bar.reset").disabled
    at.button(key="wb.w.undo").click()
    run(at)
    assert at.query_params["plan"] == "tmm limit=5 fusion.alpha=0.3"


def test_words_of_the_plan_and_the_corpus() -> None:
    assert plan_label(wb.Plan.parse("default"), 0) == "default"
    assert plan_label(wb.Plan.parse("tmm fusion.alpha=0.3"), 0) == "tmm + 1 change"
    assert plan_label(wb.Plan.parse("tmm fusion.alpha=0.3 limit=5"), 2) == "Column 2: tmm + 2 changes"
    assert name_of(Path("/data/notes/.workbench")) == "notes"
    assert name_of(Path("/data/my.corpus")) == "my.corpus"


def test_a_link_names_a_query_set_and_never_a_file_of_this_machine(
    open_app: Open, own_corpus: Path, tmp_path: Path
) -> None:
    """Set and measure are restored from the address; a path in it is not read."""
    path = tmp_path / "judged.csv"
    path.write_text("query_id,query,document,grade\nq,kettle,kettle.md,1\n")
    at = open_app(own_corpus, q="kettle", judged=str(path))
    assert "wb.live" not in at.session_state
    with wb.open_corpus(own_corpus) as corpus:
        import_judgments(corpus.judging, path, "tea")
        import_judgments(corpus.judging, path, "more tea")
    at = open_app(own_corpus, q="kettle", judged="tea", measure="P@10")
    assert (at.session_state["wb.live"].name, at.session_state["wb.live"].measure) == ("tea", "P@10")
    assert at.query_params["judged"] == "tea"
    before = at.session_state["wb.live"].key
    with wb.open_corpus(own_corpus) as corpus:
        asked = corpus.judging.query("tea", "kettle", None)
        corpus.judging.grade(corpus.search("kettle").hits[0], 2, query=asked, set="tea")
        again = run(at).session_state["wb.live"].key
        corpus.judging.grade(corpus.search("kettle").hits[0], 0, query=asked, set="tea")
    assert len({before, again, run(at).session_state["wb.live"].key}) == 3
