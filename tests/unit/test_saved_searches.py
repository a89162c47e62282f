"""History, saved searches and plans, notes: kept, seen by their owner only, and taken back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.errors import UsageError
from workbench.saved import searches as kept
from workbench.saved.database import Group, open_database
from workbench.saved.searches import HISTORY, PLAN, SEARCH, SEARCHES, Searches, owner_of


@pytest.fixture
def mine(tmp_path: Path) -> Searches:
    return Searches(tmp_path, owner_of("ada", None))


def test_history_is_newest_first_and_a_search_asked_again_is_one_entry(mine: Searches) -> None:
    mine.asked({"q": "one"})
    mine.asked({"q": "two", "plan": "tmm"})
    mine.asked({"q": "one"})
    assert [entry.params for entry in mine.kept(HISTORY)] == [{"q": "one"}, {"q": "two", "plan": "tmm"}]


def test_history_forgets_the_oldest(mine: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_HISTORY", 3)
    mine.save_search("keep", {"q": "0"})
    for n in range(6):
        mine.asked({"q": str(n)})
    assert [e.params["q"] for e in mine.kept(HISTORY)] == ["5", "4", "3"]
    assert [e.name for e in mine.kept(SEARCH)] == ["keep"]


def test_a_name_is_one_entry_of_its_kind(mine: Searches) -> None:
    """Saving again replaces, and gives back what was there; a plan of the same name is another thing."""
    assert mine.save_search("  best   of ", {"q": "a"}) is None
    assert mine.save_plan("best of", "tmm") is None
    old = mine.save_search("best of", {"q": "b"})
    assert old is not None
    assert old.params == {"q": "a"}
    assert [(e.name, e.params) for e in mine.kept(SEARCH)] == [("best of", {"q": "b"})]
    assert [(e.name, e.value, e.params) for e in mine.kept(PLAN)] == [("best of", "tmm", {})]


def test_what_an_older_version_kept_is_the_plan_that_it_was(tmp_path: Path, mine: Searches) -> None:
    """A database of the first version: `default`, and an address that names no plan, meant rrf; what is kept now stays."""
    first = Group("searches", SEARCHES.migrations[:1])
    columns = {"q": "c", "columns": "hybrid,plan", "column2": "default limit=3", "plan": "passages"}
    rows = [
        (PLAN, "mine", "default fusion.k=5"),
        (PLAN, "mixed", "tmm limit=3"),
        (SEARCH, "plain", json.dumps({"q": "a"})),
        (SEARCH, "set", json.dumps(columns)),
    ]
    with open_database(tmp_path).writing(first) as db:
        db.executemany(
            "INSERT INTO searches_kept (owner, kind, name, value, at) VALUES (?, ?, ?, ?, 1)",
            [(mine.owner, *row) for row in rows],
        )
    open_database(tmp_path).close()
    saved = Searches(tmp_path, mine.owner)
    assert [e.value for e in saved.kept(PLAN)] == ["rrf fusion.k=5", "tmm limit=3 grep.when=never"]
    assert [e.params for e in saved.kept(SEARCH)] == [{"q": "a", "plan": "rrf"}, {**columns, "column2": "rrf limit=3"}]
    saved.restore([gone] if (gone := saved.delete(saved.kept(PLAN)[1].number)) else [])
    saved.save_plan("new", "default")
    saved.save_search("plain", {"q": "b"})
    assert [e.value for e in saved.kept(PLAN)] == ["rrf fusion.k=5", "tmm limit=3 grep.when=never", "default"]
    assert saved.kept(SEARCH)[0].params == {"q": "b"}


def test_what_is_deleted_can_be_put_back(mine: Searches) -> None:
    mine.save_plan("p", "tmm")
    (before,) = mine.kept(PLAN)
    gone = mine.delete(before.number)
    assert gone == before
    assert mine.kept(PLAN) == []
    assert mine.delete(before.number) is None
    mine.restore([before])
    (after,) = mine.kept(PLAN)
    assert (after.name, after.value, after.at) == (before.name, before.value, before.at)


def test_the_history_can_be_cleared_and_put_back(mine: Searches) -> None:
    for n in range(4):
        mine.asked({"q": str(n)})
    gone = mine.clear_history()
    assert mine.kept(HISTORY) == []
    mine.restore(gone)
    assert [e.params["q"] for e in mine.kept(HISTORY)] == ["3", "2", "1", "0"]


def test_nobody_sees_anothers_things(tmp_path: Path) -> None:
    one = Searches(tmp_path, owner_of("ada", "acme"))
    others = [Searches(tmp_path, owner_of("ada", None)), Searches(tmp_path, owner_of("bob", "acme"))]
    one.asked({"q": "secret"})
    one.write_note("a.md", 0, 5, "hello", "mine")
    (entry,) = one.kept(HISTORY)
    for other in others:
        assert other.kept(HISTORY) == []
        assert other.notes() == []
        assert other.delete(entry.number) is None
    assert one.kept(HISTORY) == [entry]


def test_a_note_is_written_over_and_deleted_by_a_blank(mine: Searches) -> None:
    assert mine.write_note("a.md", 3, 8, "quote", " first ") == ""
    assert mine.write_note("a.md", 3, 8, "quote", "second") == "first"
    (note,) = mine.notes()
    assert (note.path, note.start, note.end, note.quote, note.text) == ("a.md", 3, 8, "quote", "second")
    assert mine.write_note("a.md", 3, 8, "quote", "  ") == "second"
    assert mine.notes() == []


def test_a_note_is_found_by_its_quote_after_cutting_anew(mine: Searches) -> None:
    """In a longer passage that holds it, or a shorter one that it holds; never in another document."""
    mine.write_note("a.md", 10, 20, "the middle words", "seen")
    (note,) = mine.notes()
    assert note.is_on("a.md", "before the middle words and after")
    assert note.is_on("a.md", "middle")
    assert not note.is_on("a.md", "other words")
    assert not note.is_on("a.md", "")
    assert not note.is_on("b.md", "the middle words")


@pytest.mark.parametrize("name", ["", "  \n ", "x" * 201])
def test_a_bad_name_is_refused(mine: Searches, name: str) -> None:
    with pytest.raises(UsageError):
        mine.save_search(name, {"q": "a"})
    assert mine.kept(SEARCH) == []
