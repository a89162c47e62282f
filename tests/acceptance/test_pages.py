"""`pages`: 0.7 of the cosine and 0.3 of the keyword score, organised by page."""

from collections.abc import Callable
from typing import Any

import pytest

import workbench as wb
from workbench.records import Label
from workbench.retrieve.messages import format_text


def page(name: str, examples: int) -> str:
    """A page with a summary, examples of so many characters (heading apart) and two sections."""
    heading = "## Examples\n\n"
    code = "x" * (examples - len(heading))
    return (
        f"# {name}\n\n## Summary\n\n{name} in short.\n\n"
        f"## Zebra\n\nzebra stripes of {name}. " + "calm grass " * 60 + "\n\n"
        f"## Lion\n\nlion mane of {name}. " + "warm stone " * 60 + f"\n\n{heading}{code}\n"
    )


@pytest.fixture(scope="module")
def site(corpus_of: Callable[..., wb.Corpus]) -> wb.Corpus:
    """Technical and concept pages, and one without special sections."""
    files = {
        "docs/short.md": page("Short", 400),
        "docs/below.md": page("Below", 499),
        "concepts/at.md": page("At", 500),
        "concepts/above.md": page("Above", 501),
        "docs/bare.md": "# Bare\n\n## Fish\n\nfish and water\n",
    }
    return corpus_of(files)


def test_each_list_is_five_deeper_than_the_limit_and_both_run_at_once(site, meet):
    result = site.search("zebra", plan="pages", limit=3)
    assert len(result.rankings["vector"].entries) == 8
    assert (wb.preset("pages").depth("keyword"), wb.preset("pages")["limit"]) == (15, 10)
    came = meet(site, {"keyword": 1, "vector": 1})
    assert site.search("zebra", plan="pages", bypass_cache=True).hits
    assert min(came.values()) == 1


def test_seven_tenths_of_the_cosine_and_three_of_the_keyword_score(site):
    """The cosine counts from 0, the keyword score by its list's top, and what a source did not find adds 0."""
    kinds, shares = set(), set()
    for query in ("zebra stripes", "short"):
        result = site.search(query, plan="pages")
        top = result.rankings["keyword"].entries[0].score
        for hit in (h for h in result.hits if not h.added):
            vector, keyword = hit.scores.get("vector"), hit.scores.get("keyword")
            assert hit.contributions["vector"] == pytest.approx(0.7 * max(vector or 0.0, 0.0))
            assert hit.contributions["keyword"] == pytest.approx(0.3 * (keyword or 0.0) / top)
            kinds.add(hit.label)
            shares.add(keyword / top if keyword else 0.0)
    assert {Label.HYBRID, Label.SEMANTIC} <= kinds
    assert any(0 < share < 1 for share in shares)
    result = site.search("lion zebra mane stripes", plan="pages limit=6")
    heads = [line for line in format_text(result).splitlines() if line.startswith("[")]
    assert len(heads) == len(result.hits)
    assert [h.startswith("[+] ") for h in heads] == [hit.added for hit in result.hits]
    assert heads[0].startswith("[+] Summary of the page")
    numbers = [int(h[1 : h.index("]")]) for h in heads if not h.startswith("[+]")]
    assert numbers == list(range(1, 7))


def test_a_page_comes_as_summary_examples_sections(site):
    """The summary always and the short examples before the sections, which stand in document order."""
    result = site.search("lion zebra mane stripes", plan="pages", filters="path = 'docs/short.md'", limit=2)
    sections = [(h.section.split(" > ")[-1], h.added) for h in result.hits]
    assert [name for name, _ in sections] == ["Summary", "Examples", "Zebra", "Lion"]
    assert [added for _, added in sections] == [True, True, False, False]
    hits = site.search("fish and water", plan="pages", filters="path = 'docs/bare.md'").hits
    assert hits
    assert not any(h.added for h in hits)
    result = site.search("zebra stripes lion", plan="pages")
    order = [h.path for h in result.hits]
    pages = list(dict.fromkeys(order))
    assert order == [p for p in pages for _ in range(order.count(p))]
    best = [min(h.rank for h in result.hits if h.path == p and not h.added) for p in pages]
    assert best == sorted(best)
    assert {p.split("/")[0] for p in pages} == {"docs", "concepts"}


@pytest.mark.parametrize(
    ("path", "shown"), [("docs/below.md", True), ("concepts/at.md", False), ("concepts/above.md", False)]
)
def test_examples_are_added_below_five_hundred_characters(site, path, shown):
    hits = site.search("zebra stripes", plan="pages", filters=f"path = '{path}'", limit=1).hits
    names = [h.section.split(" > ")[-1] for h in hits]
    assert names == (["Summary", "Examples", "Zebra"] if shown else ["Summary", "Zebra"])


def test_added_rows_do_not_count_and_what_was_found_is_not_added(site):
    result = site.search("Short in short summary", plan="pages", limit=10)
    assert len({h.chunk_id for h in result.hits}) == len(result.hits)
    summary = next(h for h in result.hits if h.path == "docs/short.md" and h.section.endswith("Summary"))
    assert not summary.added
    assert summary.rank >= 1
    result = site.search("zebra stripes", plan="pages", limit=3)
    ranked, added = [h for h in result.hits if not h.added], [h for h in result.hits if h.added]
    assert sorted(h.rank for h in ranked) == [1, 2, 3]
    assert added
    assert all(h.label is Label.ADDED and h.rank == 0 and not h.contributions for h in added)
    result = site.search("zebra stripes", plan="pages limit=3")
    added = sum(h.added for h in result.hits)
    assert added
    rows = "row" if added == 1 else "rows"
    assert result.messages[0].startswith(f"{len(result.hits) - added} results with {added} {rows} beside, ")
    assert site.search("quagga", plan="pages", mode="keyword").hits == ()


def test_the_open_text_helps_the_vector_side_alone_with_ten_names(site, embedded):
    plain = site.search("mane", plan="pages", bypass_cache=True)
    helped = site.search("mane", plan="pages", context='s("bd").lpf(800)', bypass_cache=True)
    empty = site.search("mane", plan="pages", context="   ", bypass_cache=True)
    assert embedded == ["mane", "mane s bd lpf"]
    assert helped.rankings["keyword"] == plain.rankings["keyword"]
    assert empty.to_dict() == plain.to_dict()
    calls = " ".join(f"name{n}()" for n in (1, 2, 1, *range(3, 13)))
    site.search("mane", plan="pages", context=calls, bypass_cache=True)
    assert embedded[2:] == [" ".join(["mane", *(f"name{n}" for n in range(1, 11))])]
    question = "How do I find the zebra, please?"
    result = site.search(question, plan="pages", bypass_cache=True)
    site.search(question, plan="pages rewrite.model=off", bypass_cache=True)
    assert embedded[-2:] == ["find zebra please", question]
    assert result.query == question


def test_front_matter_is_metadata_and_no_content(make_corpus):
    """No result begins with it; a filter reads it, and grep finds its lines as those of the file and of the first chunk."""
    corpus = make_corpus({"a.md": "---\ntitle: Zebras\nteam: herdsmen\n---\n\n# Stripes\n\nZebra stripes.\n"})
    for plan in ("pages", "contract", "passages", "default"):
        (hit,) = corpus.search("zebra stripes", plan=plan, filters="team = 'herdsmen'").hits
        if plan != "passages":
            assert hit.text.startswith("# Stripes")
            assert hit.start_line == 6
    assert not corpus.search("herdsmen", plan="pages", mode="keyword").hits
    (passage,) = corpus.grep("herdsmen")
    assert (passage.matched_lines, passage.chunk_id) == ((3,), hit.chunk_id)
    (found,) = corpus.search("herdsmen", "herdsmen", plan="passages", mode="grep").hits
    assert (found.chunk_id, "team: herdsmen" in found.text) == (hit.chunk_id, True)


def test_the_keyword_side_wants_every_word_and_may_fail(site, monkeypatch):
    found = {
        q: len(site.search(q, plan="pages").rankings["keyword"].entries) for q in ("zebra", "the zebra", "zebra quagga")
    }
    assert found["zebra"] == found["the zebra"] > 0
    assert found["zebra quagga"] == 0
    plan = wb.preset("pages")
    plain = site.search("zebra stripes", plan=plan)
    failed = site.search("zebra stripes", plan=plan.replace({"rewrite.model": "endpoint:none"}))
    assert [(h.chunk_id, h.score) for h in failed.hits] == [(h.chunk_id, h.score) for h in plain.hits]
    assert "Rewriting was left out" in " ".join(failed.warnings)

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(type(site.engine.lexical), "search", fails)
    result = site.search("zebra stripes", plan="pages", bypass_cache=True)
    assert any(h.added for h in result.hits)
    assert all(set(h.contributions) == {"vector"} for h in result.hits if not h.added)
    assert "keyword could not run" in result.warnings[0]
