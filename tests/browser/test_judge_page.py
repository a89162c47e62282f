"""Journeys through the Judge page in a real browser: by keyboard, loaded again, and two people at once."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from visiting import choose, expect, prepared, settled

import workbench as wb

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SET = "journey"
QUERIES = ("retry request", "boil water", "pause", "kettle")


@pytest.fixture
def query_set(corpus: Path, request: pytest.FixtureRequest) -> str:
    """A set of its own for each test."""
    name = f"{SET} {request.node.name[5:25]} {uuid4().hex[:6]}"  # a test that is gone through again has another one
    with wb.open_corpus(corpus) as opened:
        opened.judging.sets.create(name, QUERIES)
    return name


def start(page: Any, server: str, name: str, judge: str | None = None) -> None:
    """Choose the set and the judge, and begin."""
    page.goto(f"{server}/judge")
    choose(page, "Query set", name, exact=False)  # the numbers of its queries and judgments stand behind its name
    if judge is not None:
        box = page.get_by_role("textbox", name="Judged by")
        box.fill(judge)
        box.press("Tab")
    page.get_by_role("button", name="Start judging").click()
    expect(page.get_by_label("Passage to judge")).to_be_visible()
    settled(page)


def shown(page: Any) -> str:
    return str(page.get_by_label("Passage to judge").get_attribute("data-chunk"))


def press(page: Any, key: str) -> None:
    """Press a key and wait for another passage."""
    query, before = page.locator(".wb-asked").inner_text(), shown(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "([query, chunk]) => { const c = document.querySelector('.wb-judge'), q = document.querySelector('.wb-asked');"
        " return c && q && (c.dataset.chunk !== chunk || q.innerText !== query); }",
        arg=[query, before],
    )


def grades(corpus: Path, name: str, judge: str | None = None) -> list[int]:
    with wb.open_corpus(corpus) as opened:
        return [x.judgment.grade for x in opened.judging.located(name) if judge in (None, x.judgment.judge)]


def test_ten_results_judged_by_keyboard_are_all_there_after_a_reload(
    page: Any, server: str, corpus: Path, query_set: str
) -> None:
    """0 to 3, each shown passage another one; a reload goes on at the eleventh; U takes the last back, N puts off."""
    start(page, server, query_set)
    given = [0, 1, 2, 3, 0, 3, 2, 1, 0, 2]
    for grade in given:
        press(page, str(grade))
    assert grades(corpus, query_set) == given
    expect(page.get_by_text("10 of", exact=False).first).to_be_visible()
    eleventh = shown(page)
    page.reload()
    expect(page.get_by_label("Passage to judge")).to_be_visible()
    expect(page.get_by_text("10 of", exact=False).first).to_be_visible()
    assert shown(page) == eleventh
    press(page, "n")
    assert shown(page) != eleventh
    press(page, "u")
    expect(page.get_by_text("Undone: the last grade.")).to_be_visible()
    assert grades(corpus, query_set) == given[:-1]
    assert page.foreign == []


def test_keys_in_quick_succession_are_a_grade_each(page: Any, server: str, corpus: Path, query_set: str) -> None:
    """Faster than the page draws: none is lost, none is taken for the passage before, and undo comes in its turn."""
    start(page, server, query_set)
    for key in "0123012301uu":
        page.keyboard.press(key)
    expect(page.get_by_text("Undone: the grade 0 of")).to_be_visible()
    assert grades(corpus, query_set) == [0, 1, 2, 3, 0, 1, 2, 3]


def test_a_note_is_typed_without_grading(page: Any, server: str, corpus: Path, query_set: str) -> None:
    start(page, server, query_set)
    note = page.get_by_role("textbox", name="Note")
    note.fill("")
    note.press_sequentially("under 3 words, not u")
    assert grades(corpus, query_set) == []
    note.press("Tab")
    press(page, "1")
    with wb.open_corpus(corpus) as opened:
        (kept,) = opened.judging.located(query_set)
    assert (kept.judgment.grade, kept.judgment.note) == (1, "under 3 words, not u")


def test_two_people_judge_at_once(browser: Any, server: str, corpus: Path, query_set: str) -> None:
    """In two browsers, on phones: each grade of both is kept, and both see how far they agree."""
    contexts = [browser.new_context(viewport={"width": 390, "height": 844}) for _ in range(2)]
    pages = [prepared(context) for context in contexts]
    for page, judge in zip(pages, ("ann", "bob"), strict=True):
        start(page, server, query_set, judge)
    for key in "31x":  # x grades the rest of the first query
        for page in pages:
            press(page, key)
    ann, bob = (grades(corpus, query_set, judge) for judge in ("ann", "bob"))
    assert ann == bob == [3, 1, *[0] * (len(ann) - 2)]
    for page in pages:
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
        page.goto(f"{server}/queries?set={quote(query_set)}")
        expect(page.get_by_text(re.compile(rf"agree on \d+% of {len(ann)} passages"))).to_be_visible()
        expect(page.get_by_text(f"by ann ({len(ann)}), bob ({len(bob)})")).to_be_visible()
        settled(page)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    for context in contexts:
        context.close()
