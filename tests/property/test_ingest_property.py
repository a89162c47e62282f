"""Laws of reading and cutting, on generated documents of every kind."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from file_makers import cut_file
from hypothesis import example, given
from hypothesis import strategies as st
from trials import trials

from workbench.ingest.chunking import TokenCounter
from workbench.ingest.encoding import normalise
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.rules import FileRules
from workbench.ingest.walk import FoundFile, walk
from workbench.records import Granularity

NAMES = ("a.md", "a.txt", "a.rst", "a.py", "a.js", "a.html", "a.yaml", "noname")
LINES = st.sampled_from(
    [
        "# Head", "## Examples", "### Deep", "Overview", "=====", "-----", "~~~~", "```", "| a | b |", "|---|---|",
        "- item", "  1. sub", "def f(x):", "    return x", "class A:", "function g() {", "}", "", "", "   ", "\t",
        "text::", "    literal", ".. note::", "====  ====", "<h2>Head</h2>", "<p>para</p>", "<pre>", "</pre>",
        "<table><tr><td>x</td></tr></table>", "<ul><li>i", "---", "k: v", "A sentence. And another! A third?",
        "word " * 60, "x" * 700, "e\u0301" * 300, "漢字" * 200, "ไทย" * 100, "\U0001f469\u200d\U0001f467" * 40,
    ]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\x00\n", "\u2028\n", "\x0b\n", "\f\n"])
TEXTS = st.lists(st.tuples(st.one_of(LINES, st.text(max_size=30)), ENDS), max_size=25).map(
    lambda parts: "".join(line + end for line, end in parts)
)


def count(texts: Sequence[str]) -> list[int]:
    """A token for each 3 characters of a word, and each other mark."""
    return [sum(-(-len(w) // 3) for w in re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def _file(folder: Path, name: str, data: bytes) -> FoundFile:
    (folder / name).write_bytes(data)
    (found,) = walk([folder / name])
    assert isinstance(found, FoundFile)
    return found


QUICK = trials(50)


@QUICK
@given(text=TEXTS, name=st.sampled_from(NAMES), budget=st.sampled_from([16, 40, 200]))
def test_chunks_are_exact_runs_that_cover_the_text(tmp_path, text, name, budget):
    data = text.encode("utf-8", "surrogatepass")
    found = _file(tmp_path, name, data)
    rules = FileRules(("artifacts", "docs"))
    try:
        items = list(cut_file(found, rules, count, budget=budget))
    except ReadError:
        return
    again = list(cut_file(found, rules, TokenCounter(count, additive=False), budget=budget))
    assert items == again
    for item in items:
        if isinstance(item, Problem):
            continue
        document, chunks = item
        assert "\r" not in document.text
        assert "\x00" not in document.text
        whole, *parts = chunks
        assert (whole.granularity, whole.text) == (Granularity.DOCUMENT, document.text)
        position = 0
        for chunk in parts:
            assert document.text[chunk.start : chunk.end] == chunk.text
            assert position <= chunk.start < chunk.end
            assert not document.text[position : chunk.start].strip()
            assert chunk.start_line == document.text.count("\n", 0, chunk.start) + 1
            assert chunk.end_line == document.text.count("\n", 0, chunk.end - 1) + 1
            assert chunk.tokens == count([chunk.indexed_text])[0]
            assert chunk.tokens <= budget or len(chunk.text) < 25
            position = chunk.end
        assert not document.text[position:].strip()


@QUICK
@example(text="# Head\n# Head\n# Head\x00\n# Head\n# Head\n# Head\n## Examples\n")
@given(text=TEXTS)
def test_text_files_lose_nothing(tmp_path, text):
    data = text.encode("utf-8", "replace")
    try:
        ((document, _),) = [
            i for i in cut_file(_file(tmp_path, "a.log", data), FileRules(), count) if not isinstance(i, Problem)
        ]
    except ReadError:
        return
    assert document.text == normalise(data.decode("utf-8"))


@QUICK
@given(data=st.binary(max_size=400), name=st.sampled_from([*NAMES, "a.pdf", "a.jsonl", "corpus.jsonl", "a.bin"]))
def test_any_bytes_give_documents_or_a_read_error(tmp_path, data, name):
    try:
        for item in cut_file(_file(tmp_path, name, data), FileRules(), count, budget=16):
            if not isinstance(item, Problem):
                item[0].text.encode("utf-8")
                json.dumps(dict(item[0].metadata), ensure_ascii=False).encode("utf-8")
    except ReadError as exc:
        json.dumps([exc.message, exc.remedy]).encode("ascii")


@QUICK
@example(texts=[" "], noise=["{"])
@given(
    texts=st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=8),
    noise=st.lists(st.sampled_from(["{", "[]", "null", '{"id": "n"}']), max_size=3),
)
def test_every_line_of_a_jsonl_file_is_a_document_or_a_problem(tmp_path, texts, noise):
    lines = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)] + noise
    try:
        items = list(cut_file(_file(tmp_path, "r.jsonl", "\n".join(lines).encode()), FileRules(), count))
    except ReadError:
        assert not any(normalise(text).strip() for text in texts)
        return
    documents = [item for item in items if not isinstance(item, Problem)]
    assert len(items) == len(lines)
    assert [d.text for d, _ in documents] == [normalise(t) for t in texts if normalise(t).strip()]
