"""The Judge, Tune and Compare pages: sets made and chosen, passages graded, figures that move, plans compared."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import all_text, bodies, page, run
from endpoint_server import Handler, completion, serving
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.errors import JudgmentError
from workbench.judgments.exchange import import_judgments
from workbench.records import Progress
from workbench.ui import jobs
from workbench.ui.rounds import Choice, Round

Open = Callable[..., AppTest]
KEY = "wb.w.judge."


@pytest.fixture
def corpus(own_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small corpus with judgments of its own."""
    monkeypatch.setenv("WORKBENCH_USER", "ann")
    return own_corpus


def judge(open_app: Open, corpus: Path, **params: str) -> AppTest:
    return page(open_app, corpus, "judge", **params)


def shown(at: AppTest) -> str:
    """The chunk that is to be judged."""
    (body,) = (b for b in bodies(at) if 'aria-label="Passage to judge"' in b)
    return body.partition('data-chunk="')[2].partition('"')[0]


def press(at: AppTest, name: str) -> AppTest:
    at.button(key=KEY + name).click()
    return run(at)


def undo(at: AppTest) -> AppTest:
    """Press the one Undo, which is in the bar."""
    at.button(key="wb.w.undo").click()
    return run(at)


def start(open_app: Open, corpus: Path, *queries: str) -> AppTest:
    with wb.open_corpus(corpus) as opened:
        opened.judging.sets.create("tea", queries or ("boil water", "retry pause"))
    at = judge(open_app, corpus)
    at.number_input(key=KEY + "depth").set_value(3)
    at.multiselect(key=KEY + "plans").set_value(["default", "default sources=keyword"])
    return press(at, "start")


def sets(open_app: Open, corpus: Path, **params: str) -> AppTest:
    return page(open_app, corpus, "queries", **params)


def submit(at: AppTest, label: str, number: int = 0) -> AppTest:
    """Press the button of a form."""
    [b for b in at.button if b.label == label][number].click()
    return run(at)


def test_a_set_is_added_to_described_renamed_and_deleted(open_app: Open, corpus: Path) -> None:
    """A set just made is the one shown and the active one; a deletion and a name are undone."""
    at = sets(open_app, corpus)
    assert "There is no query set yet" in all_text(at)
    at.text_input(key="wb.w.queries.typed.name").set_value("mine")
    assert "Give it at least one query" in "".join(bodies(submit(at, "Create")))
    at.text_area(key="wb.w.queries.typed.lines").set_value("boil water\n\nretry pause\n")
    submit(at, "Create")
    assert "The set mine has 2 queries" in "".join(bodies(at))
    at.text_input(key="wb.w.queries.typed.name").set_value("tea")
    at.text_area(key="wb.w.queries.typed.lines").set_value("kettle\n")
    submit(at, "Create")
    assert at.selectbox(key="wb.w.queries.set").value == "tea"
    assert at.query_params["set"] == "tea"
    assert "no query to add" in "".join(bodies(submit(at, "Add")))
    at.text_area(key="wb.w.queries.add.lines").set_value("kettle\nboil water\n")
    assert "1 of 2 queries new in the set tea" in "".join(bodies(submit(at, "Add")))
    at.text_input(key="wb.w.queries.rename.name").set_value("mine")
    assert "There is a query set" in "".join(b for b in bodies(submit(at, "Rename")) if "wb-alert" in b)
    at.text_input(key="wb.w.queries.rename.name").set_value("hot drinks")
    submit(at, "Rename")
    assert at.selectbox(key="wb.w.queries.set").value == "hot drinks"
    at.text_input(key="wb.w.queries.grades.hot drinks.1").set_value("partly: says something of it")
    submit(at, "Save")
    with wb.open_corpus(corpus) as opened:
        assert opened.judging.sets.grade_texts("hot drinks")[:2] == ("not relevant", "partly: says something of it")
    at.button(key="wb.w.queries.delete").click()
    run(at)
    assert at.selectbox(key="wb.w.queries.set").options == ["mine"]
    undo(at)
    assert at.selectbox(key="wb.w.queries.set").options == ["hot drinks", "mine"]


def test_a_set_is_made_from_the_documents_and_exported(open_app: Open, corpus: Path) -> None:
    at = sets(open_app, corpus)
    at.number_input(key="wb.w.queries.made.count").set_value(5)
    submit(at, "Create from documents")
    assert "5 of 5 queries judged" in "".join(bodies(at))
    assert [b.label for b in at.get("download_button")][2] == "Download Quepid CSV"
    submit(at, "Create from documents")
    assert "There is a query set" in "".join(b for b in bodies(at) if "wb-alert" in b)


def test_without_a_set_there_is_nothing_to_judge(open_app: Open, corpus: Path) -> None:
    assert "no query set to judge yet" in all_text(judge(open_app, corpus))


def test_undo_skip_and_note_and_the_page_is_blind(open_app: Open, corpus: Path) -> None:
    at = start(open_app, corpus, "boil water")
    first = shown(at)
    at.text_input(key=KEY + "note").set_value("because of the pot")
    press(at, "grade.1")
    assert at.text_input(key=KEY + "note").value == ""
    with wb.open_corpus(corpus) as opened:
        assert [x.judgment.note for x in opened.judging.located("tea")] == ["because of the pot"]
    undo(at)
    assert shown(at) == first
    assert "Undone: the grade 1 of " in "".join(bodies(at))
    press(at, "skip")
    while any('aria-label="Passage to judge"' in b for b in bodies(at)):
        assert shown(at) != first
        press(at, "grade.2")
    assert "1 skipped passage is left" in all_text(at)
    press(at, "take-up")
    assert shown(at) == first
    press(at, "grade.0")
    assert "All passages of this pool are judged" in all_text(at)
    undo(at)
    assert shown(at) == first
    with wb.open_corpus(corpus) as opened:
        opened.judging.grade(shown(at), 3, opened.judging.queries("tea")[0], set="tea", judge="bob")
    (body,) = (b for b in bodies(run(at)) if 'aria-label="Passage to judge"' in b)
    assert not {"keyword", "vector", "hybrid", "rank", "score", "bob"} & set(body.lower().replace('"', " ").split())


def test_a_query_is_jumped_to_a_passage_gone_back_to_and_the_rest_graded_at_once(open_app: Open, corpus: Path) -> None:
    """The need of a query and what the grades mean are shown; what one undo takes back is what was graded at once."""
    with wb.open_corpus(corpus) as opened:
        opened.judging.sets.create("tea", ["boil water", "retry pause"])
        opened.judging.sets.set_grade_texts("tea", ["", "partly: says something"])
        second = opened.judging.queries("tea")[1]
        opened.judging.sets.describe("tea", second.query_id, "how long the pause is")
    at = judge(open_app, corpus, set="tea", pool="default sources=keyword", depth="3")
    assert "how long the pause is" not in all_text(at)
    at.radio(key=KEY + "query").set_value(second.query_id)
    run(at)
    assert "how long the pause is" in all_text(at)
    assert "partly: says something" in all_text(at)
    assert at.button(key=KEY + "grade.1").label == "Partly"
    first = shown(at)
    press(at, "grade.2")
    other = shown(at)
    press(at, "back")
    assert shown(at) == first
    assert "You graded it 2" in all_text(at)
    press(at, "grade.3")
    assert shown(at) == other
    press(at, "rest")
    assert "boil water" in "".join(b for b in bodies(at) if "wb-asked" in b)
    with wb.open_corpus(corpus) as opened:
        assert [x.judgment.grade for x in opened.judging.located("tea")] == [3, 0, 0]
    undo(at)
    assert "Undone: 2 grades of 0" in all_text(at)
    assert shown(at) == other


def test_two_people_judge_one_set_in_two_browsers_and_nothing_is_lost(open_app: Open, corpus: Path) -> None:
    """Their grades in turn; at the end both see how far they agree, and the figures of the pooled plans."""
    with wb.open_corpus(corpus) as opened:
        opened.judging.sets.create("tea", ["boil water", "retry pause"])
    pages = {
        judge_of: judge(open_app, corpus, set="tea", pool="default sources=keyword", depth="3", judge=judge_of)
        for judge_of in ("bob", "cleo")
    }
    given: dict[tuple[str, str], int] = {}
    for turn in range(20):
        for judge_of, at in pages.items():
            if any('aria-label="Passage to judge"' in b for b in bodies(at)):
                grade = (turn + (judge_of == "cleo" and turn == 1)) % 4
                given[judge_of, shown(at)] = grade
                press(at, f"grade.{grade}")
    with wb.open_corpus(corpus) as opened:
        found = {(x.judgment.judge, x.judgment.anchor.path): x.judgment.grade for x in opened.judging.located("tea")}
        named = {i: opened.judging.anchor(i).path for _, i in given}
    assert found == {(who, named[i]): grade for (who, i), grade in given.items()}
    assert len({who for who, _ in found}) == 2
    for at in pages.values():
        run(at)
        assert "agree on" in all_text(at).replace("\\", "")
    at = pages["bob"]
    at.session_state["wb.judge.figures"].wait(60)
    run(at)
    assert "Figures of the pooled plans" in all_text(at)
    assert any('aria-label="Plans and their measures"' in b for b in bodies(at))
    assert at.dataframe[0].value["Query"].tolist() == ["boil water", "retry pause"]
    assert len(at.get("download_button")) == 5


def test_without_the_vector_side_the_page_says_so(
    open_app: Open, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.errors import EncoderError

    def broken(*_: object, **__: object) -> None:
        raise EncoderError("The model is gone", "Install it again")

    monkeypatch.setattr("workbench.retrieve.engine.load_encoder", broken)
    with wb.open_corpus(corpus) as opened:
        opened.judging.sets.create("tea", ["boil water"])
    at = judge(open_app, corpus, set="tea", pool="default sources=vector", depth="3")
    alerts = "".join(b for b in bodies(at) if 'role="alert"' in b)
    assert "The model is gone" in alerts
    at = judge(open_app, corpus, set="tea", pool="default|default sources=keyword", depth="3")
    assert shown(at)


@pytest.mark.slow
def test_a_model_grades_the_pool(open_app: Open, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wb.open_corpus(corpus) as opened:
        opened.judging.sets.create("tea", ["boil water"])
        (query,) = opened.judging.queries("tea")
        for hit in opened.search("boil water", mode="keyword").hits[:2]:
            opened.judging.grade(hit, 1, query, set="tea", judge="ann")
    assert "Set endpoint_url" in all_text(judge(open_app, corpus))

    def ones(handler: Handler) -> None:
        grades = {str(p["number"]): 1 for p in handler.passages}
        handler.send(completion(json.dumps({"grades": grades})))

    with serving(ones) as server:
        monkeypatch.setenv("WORKBENCH_ENDPOINT_URL", server.url)
        at = judge(open_app, corpus)
        at.multiselect(key=KEY + "plans").set_value(["default sources=keyword"])
        at.text_input(key=KEY + "machine.model").set_value("m")
        at = press(at, "machine.start")
    assert "machine:m graded" in "".join(bodies(at))
    assert "agree on 100% of 2 passages" in all_text(at)
    assert server.requests


@pytest.mark.parametrize("params", [{"set": "gone"}, {"set": "tea", "pool": "nonsense plan", "depth": "-4"}])
def test_an_address_that_cannot_be_is_a_sentence(open_app: Open, corpus: Path, params: dict[str, str]) -> None:
    """A set that is gone, a plan that cannot be read."""
    with wb.open_corpus(corpus) as opened:
        opened.judging.sets.create("tea", ["boil water"])
    at = judge(open_app, corpus, **params)
    assert any('role="alert"' in b for b in bodies(at))


def test_a_grade_taken_back_is_asked_again_though_the_passage_has_one_of_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole document and its chunks stand in one pool; taking back the document's grade must not pass it over."""
    monkeypatch.setenv("WORKBENCH_USER", "ann")
    source, folder = tmp_path / "in", tmp_path / "corpus"
    source.mkdir()
    folder.mkdir()
    (folder / "corpus.yaml").write_text("collections:\n  whole: document\n  docs: chunk\n", encoding="utf-8")
    text = "".join(f"# Part {n}\n\nboil water {'and wait a while ' * 60}\n\n" for n in range(3))
    (source / "tea.md").write_text(text, encoding="utf-8")
    wb.index([source], corpus=folder, collection=["whole", "docs"], encoder="hashing", workers=0)
    with wb.open_corpus(folder) as opened:
        opened.judging.sets.create("tea", ["boil water"])
        made = Round(opened, Choice("tea", "ann", ("default sources=keyword",), 10))
        graded = []
        while (found := made.next()) is not None:
            query, candidate = found
            made.grade(opened, query.query_id, candidate.chunk_id, 1)
            graded.append(candidate.chunk_id)
        assert len(graded) == made.done == made.total > 1
        for chunk_id in reversed(graded):
            made.undo(opened)
            again = made.next()
            assert again[1].chunk_id == chunk_id
        assert made.done == 0


def measured(at: AppTest) -> str:
    """The figure's line, when its retrieval is done."""
    kept = at.session_state["wb.live"]
    if kept.job is not None:
        kept.job.wait(60)
        assert kept.job.error is None, str(kept.job.error)
    run(at)
    (said,) = (b for b in bodies(at) if 'class="wb-live" role="status"' in b)
    return said


@pytest.mark.slow
def test_the_bar_shows_the_figure_of_the_plan_that_is_moved(open_app: Open, own_corpus: Path, judged: Path) -> None:
    """Of a small set without being asked; it is that of an evaluation; `none` takes it away, and both are in the address."""
    with wb.open_corpus(own_corpus) as corpus:
        import_judgments(corpus.judging, judged, "tea")
    at = open_app(own_corpus, q="kettle")
    at.session_state["wb.w.section.live"] = True
    assert "no change" in measured(at)
    at.slider(key="wb.w.vector.threshold").set_value(0.45)
    run(at)
    said = measured(at)
    with wb.open_corpus(own_corpus) as corpus:
        plan = at.session_state["wb.state"].moved
        expected = corpus.evaluate(corpus.judgments("tea"), plan, "nDCG@10").mean("nDCG@10")
    assert f"nDCG@10 {expected:.3f}" in said
    assert "judged@10" in said
    at.selectbox(key="wb.w.fusion.method").set_value("rrf")
    run(at)
    measured(at)
    moved = next(b for kind in ("better", "worse") if not (b := at.button(key=f"wb.w.live.{kind}")).disabled)
    moved.click()
    run(at)
    assert f"{moved.label.split()[0]} quer" in all_text(at)
    (lists,) = (b for b in bodies(at) if 'class="wb-pair-lists"' in b)
    assert 'aria-label="Results of At the start"' in lists
    assert 'title="Judged 1' in lists
    at.selectbox(key="wb.w.fusion.method").set_value("convex")
    run(at)
    at.slider(key="wb.w.keyword.k1").set_value(2.0)
    run(at)
    with wb.open_corpus(own_corpus) as corpus:
        plan = at.session_state["wb.state"].moved
        expected = corpus.evaluate(corpus.judgments("tea"), plan, "nDCG@10").mean("nDCG@10")
    assert f"nDCG@10 {expected:.3f}" in measured(at)
    at.selectbox(key="wb.w.live.set").set_value("none")
    run(at)
    assert not any("wb-live" in b for b in bodies(at) if "<style>" not in b)


def test_a_job_says_its_faults_and_can_be_stopped(sample: wb.Corpus) -> None:
    def fails(tell: object, stop: object) -> None:
        raise ValueError("broken")

    job = jobs.Job(fails)
    job.wait(10)
    assert "broken" in str(job.error)

    def waits(tell: Callable[[Progress], None], stop: Callable[[], bool]) -> str:
        while not stop():
            tell(Progress("waiting", 1, 2))
        return "stopped"

    job = jobs.Job(waits)
    assert job.running
    job.stop()
    job.wait(10)
    assert job.result == "stopped"
    with pytest.raises(JudgmentError, match="no query set"):
        jobs.read_judged(sample, "/etc/passwd", files=False)
