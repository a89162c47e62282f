"""`index.html`: safe with any text, complete without JavaScript, small enough to send."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
from corpus_files import write_files

import workbench as wb
from workbench.snapshot import page as snapshot_page

HOSTILE = (
    "</script><script>alert(1)</script> <img src=x onerror=alert(2)> \u202egnp.exe \x00 \x1b[31m \u2066 retry "
    "${alert(3)} ⟦s0-p1⟧ <!-- --> ]]> &lt;b&gt; \" ' ` <style>*{display:none}</style> javascript:alert(4)"
)


class Page(HTMLParser):
    """The elements of a page, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append((self.elements[-1][1], data))
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> wb.Snapshot:
    """A corpus of hostile texts, titles and paths, and a hostile query."""
    folder = tmp_path_factory.mktemp("hostile")
    files = {
        "<img src=x onerror=alert(9)>.md": f"# {HOSTILE}\n\n{HOSTILE}\n",
        "plain.md": "# Plain\n\nretry alert script\n",
        "a&b\u202e.md": f"# A & B\n\nretry {HOSTILE}\n",
    }
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    with wb.open_corpus(folder / "corpus") as corpus:
        return corpus.search(HOSTILE.replace('"', ""), plan="default vector.threshold=off").snapshot(note=HOSTILE)


def test_hostile_text_is_text(hostile: wb.Snapshot) -> None:
    """No element, no attribute, no script of a document; characters that act unseen are named."""
    text = hostile.html()
    found = Page(text)
    tags = {tag for tag, _ in found.elements}
    assert tags & {"img", "iframe", "object", "embed", "svg", "form", "base"} == set()
    assert not [a for _, attrs in found.elements for a in attrs if a.startswith("on")]
    assert not [
        a for _, attrs in found.elements if (a := attrs.get("href")) and not a.startswith(("#", "https://", "http://"))
    ]
    assert len(found.styles) == 1
    for character in "\x00\x1b\u202e\u2066":
        assert character not in text
    said = "".join(found.words)
    assert "<img src=x onerror=alert(2)>" in said
    assert "U+202E" in said


def test_no_text_of_a_document_is_in_a_script(hostile: wb.Snapshot) -> None:
    """Scripts are the constant ones and inert JSON of numbers and ids; names are looked up in the page."""
    found = Page(hostile.html())
    running = [data for attrs, data in found.scripts if attrs.get("type") is None]
    inert = [data for attrs, data in found.scripts if attrs.get("type") == "application/json"]
    assert len(running) == 2
    assert inert
    assert all(attrs.get("type") in (None, "application/json") for attrs, _ in found.scripts)
    for data in (*inert, running[-1]):
        for word in ("alert", "onerror", "retry", "Plain", "plain.md", "</script", "<!--"):
            assert word not in data, word
    for data in inert:
        assert "<" not in data
        json.loads(data)


def test_the_policy_allows_these_scripts_and_this_style_only(hostile: wb.Snapshot) -> None:
    text = hostile.html()
    found = Page(text)
    policy = next(
        html.unescape(a["content"] or "")
        for t, a in found.elements
        if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    digests = re.findall(r"'sha256-([^']+)'", policy)

    def digest(data: str) -> str:
        return base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()

    running = [data for attrs, data in found.scripts if attrs.get("type") is None]
    assert [digest(d) for d in running] == digests[:2]
    assert digest(found.styles[0]) == digests[2]
    script_rule = next(rule for rule in policy.split(";") if "script-src" in rule)
    assert "unsafe" not in script_rule
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert not re.search(r'(?:src|href)="(?!#|http)', re.sub(r"<script>.*?</script>", "", text, flags=re.S))


def test_it_reads_without_javascript(sample: wb.Corpus) -> None:
    """Every passage, score, setting and count is in the HTML; pictures are for who has JavaScript."""
    result = sample.search("how do retries work", keywords="retry", plan="default limit=4 vector.threshold=off")
    found = Page(result.snapshot("for reading").html())
    said = "".join(found.words)
    for hit in result.hits:
        assert hit.citation in said
        assert hit.text.strip()[:30] in said
        assert f"{hit.score:.4f}" in said
    assert str(result.plan) in said
    for step in result.steps:
        assert step.reason in said
    assert sum(tag == "mark" for tag, _ in found.elements) >= 1
    assert sum(tag == "article" for tag, _ in found.elements) == 4
    assert ("p", {"class": "soft nojs"}) in found.elements


def test_ids_are_there_once(sample: wb.Corpus) -> None:
    result = sample.search("retry", plan="default vector.threshold=off")
    found = Page(wb.Snapshot.of([result, sample.search("invoice")]).html())
    ids = [a["id"] for _, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    wanted = {
        m for attrs, d in found.scripts if attrs.get("type") for m in re.findall(r"\\u27e6([a-z0-9-]+)\\u27e7", d)
    }
    assert wanted
    assert wanted <= set(ids)


@pytest.mark.slow
def test_ten_long_searches_stay_under_eight_megabytes(sample: wb.Corpus) -> None:
    one = sample.search("retry", plan="default vector.threshold=off limit=10").snapshot()
    content = one.content
    text = pl.lit("\u202e<>&" * 20_000)
    many = {
        name: pl.concat([frame.with_columns(search=pl.lit(n, pl.Int64)) for n in range(10)])
        if "search" in frame.columns
        else frame
        for name, frame in content.tables.items()
    }
    many["passages"] = many["passages"].with_columns(text=text, title=text)
    many["candidates"] = pl.concat(
        [
            many["candidates"].with_columns(place=pl.col("place") + n * 1000, rank=pl.col("rank") + n * 1000)
            for n in range(12)
        ]
    )
    big = replace(content, searches=content.searches * 10, tables=many)
    made = snapshot_page.page(one.about, big)
    assert len(made.encode()) < 8_000_000
    assert "more characters" in made
    assert re.search(r"The other [\d,]+ of [\d,]+ candidates", made)


def test_the_same_snapshot_gives_the_same_page(sample: wb.Corpus) -> None:
    made = sample.search("retry").snapshot()
    assert wb.Snapshot.load(made.to_bytes()).html().encode() == made.parts["index.html"]


def test_nothing_found_is_a_page_too(sample: wb.Corpus) -> None:
    result = sample.search("zzzzqq", mode="keyword")
    text = result.snapshot().html()
    assert "No passage was shown" in text
