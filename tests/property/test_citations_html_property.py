"""A citation of HTML opens where the words are in the file itself: at the lines that an editor shows, not at those of the text.

Each page is made of random words in random markup, broken into lines anywhere. It is opened again without a parser: what is no
words is blanked out, and the cited lines must hold the chunk's words.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

import reader_files as make
from citation_cases import CHECK, PARAGRAPHS, SENTENCE, Original, check, chunks, read

SCRIPT = "<script>\n'no'</script>\n"
BETWEEN = st.sampled_from(
    [
        " ",
        "\n",
        "\n\n\t ",
        " <b\nclass='a>b'>",
        "</b>\n",
        "&nbsp;",
        "<br>\n",
        " <!-- no\n<p>word\n-->\n",
        "&amp;\n",
        SCRIPT,
    ]
)
# No headings: long ones leave a chunk of this test no room for a whole word.
BLOCKS = st.sampled_from(
    ["p", "pre", "li", "div", "blockquote", "noscript>never</noscript><p", "td", "tr><td", "table><tr><td"]
)
RUNS = st.lists(st.tuples(SENTENCE, BETWEEN), min_size=1, max_size=3)
PAGES = st.lists(st.tuples(BLOCKS, RUNS), min_size=1, max_size=6)


def source(blocks: list[tuple[str, list[tuple[str, str]]]]) -> str:
    body = "\n".join(f"<{tag}>" + "".join(f"{words}{after}" for words, after in runs) for tag, runs in blocks)
    return (
        f"<!doctype html>\n<html><head>\n<title>The page</title>\n<style>\np {{ }}\n</style></head>\n<body>\n{body}\n"
    )


def lines_of(page: str) -> Original:
    """The words of each line, by patterns that know nothing of elements."""
    silent = r"<!--.*?-->|<(script|style|title|noscript)>.*?</\1>|</?[a-z!](?:'[^']*'|[^'>])*>"
    plain = re.sub(silent, lambda markup: " " + "\n" * markup[0].count("\n"), page, flags=re.DOTALL)
    return [({"line": n}, html.unescape(line)) for n, line in enumerate(plain.split("\n"), 1)]


@CHECK
@given(PAGES)
@pytest.mark.parametrize(("encoding", "end"), [("utf-8", "\n"), ("utf-16", "\r\n")])
def test_pages(tmp_path: Path, encoding: str, end: str, blocks: list[tuple[str, list[tuple[str, str]]]]) -> None:
    page = source(blocks)
    made = chunks(tmp_path, "a.html", page.replace("\n", end).encode(encoding))
    check(made, lines_of(page))
    assert all(re.fullmatch(r"line=\d+(-\d+)?", chunk.locator) for chunk in made)


@CHECK
@given(PAGES, PARAGRAPHS)
def test_pages_inside_archives(
    tmp_path: Path, blocks: list[tuple[str, list[tuple[str, str]]]], more: list[str]
) -> None:
    """A member of an archive and a page that is attached have lines of their own, with front matter before them too."""
    page = "---\nauthor: Ada\n---\n" + source(blocks)
    other = source([("p", [(p, "\n")]) for p in more])
    within = make.zipped({"d/in.htm": page, "x.xhtml": '<?xml version="1.0"?>\n' + other})
    made = {document.path: own for document, own in read(tmp_path, "a.zip", make.zipped({"in.zip": within}))}
    check(made["a.zip!/in.zip!/d/in.htm"], lines_of(page.replace("---\nauthor: Ada\n---\n", "\n" * 3)))
    check(made["a.zip!/in.zip!/x.xhtml"], lines_of("\n" + other))


@CHECK
@given(PARAGRAPHS)
def test_a_page_on_one_line(tmp_path: Path, paragraphs: list[str]) -> None:
    start, original = len("<html>") + 1, []
    for words in (*paragraphs, "filling " * 300):
        original.append(({"line": 1, "column": start + len("<p>")}, words))
        start += len(f"<p>{words}</p>")
    page = "<html>" + "".join(f"<p>{words}</p>" for _, words in original)
    made = chunks(tmp_path, "a.html", page.encode("utf-8"))
    check(made, original)
    assert all(chunk.locator.startswith("line=1&column=") for chunk in made)
