"""Everything that cites an HTML page names the lines of the file, and what is cited opens again, wherever it is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import file_makers as make
import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main

PAGE = """<!doctype html>
<html>
<head><title>Otters</title>
<style>
p { color: green }
</style></head>
<body>
<h1>Where otters live</h1>
<p>An otter builds
its holt
<em>under</em> the bank.</p>
</body></html>
"""
CITED = "8-11"
WORDS = "# Where otters live\n\nAn otter builds its holt under the bank."


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """A page, a copy of it, and others inside an archive and behind front matter."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "files").mkdir()
    for name in ("a.html", "copy.html"):
        (folder / "files" / name).write_text(PAGE, encoding="utf-8")
    (folder / "files" / "in.zip").write_bytes(make.zipped({"d/b.html": "\n\n" + PAGE.replace("tter", "heron")}))
    wb.index([folder / "files"], corpus=folder / "corpus", encoder="hashing", workers=0)
    with wb.open_corpus(folder / "corpus") as corpus:
        yield corpus


def test_results_passages_and_tables_carry_the_lines_of_the_file(pages: wb.Corpus) -> None:
    """Those of the text are others and stay beside them; the copy has the same."""
    result = pages.search("otter", mode="keyword", plan="contract")
    hit = result.hits[0]
    assert (hit.citation, hit.locator, hit.copies) == (f"a.html#line={CITED}", f"line={CITED}", ("copy.html",))
    assert (hit.text, hit.start_line, hit.end_line) == (WORDS, 1, 3)
    (passage, _) = pages.grep("its holt under")
    assert (passage.citation, passage.copies) == ("a.html#line=10-11", ("copy.html",))
    (inner,) = pages.search("oherons", mode="keyword", plan="contract").hits
    assert inner.citation == "in.zip!/d/b.html#line=10-13"
    assert result.to_dict()["hits"][0]["citation"] == f"a.html#line={CITED}"
    kept = result.snapshot().hits()[0]
    assert kept.citation == hit.citation
    for path, words in ((f"copy.html#line={CITED}", WORDS), ("in.zip!/d/b.html#line=10", "# Where oherons live")):
        assert pages.read_file(path) == words
    made = CliRunner().invoke(main, ["read", "a.html", "--at", "9-10", "--corpus", str(pages.path), "--json"])
    assert re.search("An otter builds its holt", json.loads(made.output)["text"])
