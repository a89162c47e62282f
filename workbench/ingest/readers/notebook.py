"""Notebooks (IPYNB): Markdown and code cells in their order, and what each cell put out, kept apart from its code.

A place is the cell's number from 1, `cell=4`, and `cell=4&output=1` for an output. No chunk mixes code and output: an answer
that quotes a printed table is not an answer about the code that printed it. Pictures are left out, what stands for them in
text is kept; very long outputs are cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.ingest.encoding import normalise
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.ingest.readers.markdown import markdown_outline
from workbench.ingest.writing import TextWriter
from workbench.locators import locator

_COLOURS = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
_LONGEST_OUTPUT = 20_000
_PICTURE = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/=]{400,}")


def _read(source: Source) -> Iterator[Parsed | Problem]:
    raw, metadata = source.text()
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise ReadError("It is a broken notebook: it is not JSON", "Open it in Jupyter, and save it anew") from exc
    if not isinstance(data, dict):
        raise ReadError("It is no notebook: it is JSON of another kind", "Give it the suffix .json")
    cells = data.get("cells")
    if not isinstance(cells, list):  # version 3 kept them in worksheets
        sheets = data.get("worksheets")
        cells = (
            [c for s in sheets if isinstance(s, dict) for c in s.get("cells", ())] if isinstance(sheets, list) else None
        )
    if cells is None:
        raise ReadError("It is no notebook: it has no cells", "Give it the suffix .json")
    writer = TextWriter()
    cut = 0
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict):
            cut += _cell(writer, cell, number)
    text, outline, places = writer.finish()
    inner = data.get("metadata")
    kernel = inner.get("kernelspec") if isinstance(inner, dict) else None
    info = inner.get("language_info") if isinstance(inner, dict) else None
    language = str(info.get("name") or "") if isinstance(info, dict) else ""
    language = language or (str(kernel.get("language") or "") if isinstance(kernel, dict) else "")
    if cut:
        yield Problem(
            f"{cut} outputs were cut to their first {_LONGEST_OUTPUT:,} characters", "Nothing needs to be done"
        )
    yield Parsed(text, "notebook", outline, language=language, metadata=metadata, places=places)


READER = Reader("notebook", _read, frozenset({".ipynb"}))


def _cell(writer: TextWriter, cell: Mapping[str, Any], number: int) -> int:
    """Write a cell and its outputs; returns how many outputs were cut."""
    at = locator(cell=number)
    words = _text(cell.get("source", cell.get("input", "")))
    kind = cell.get("cell_type")
    if kind == "heading":
        level = cell.get("level", 1)
        writer.heading(words, level if isinstance(level, int) else 1, at)
    elif kind == "code":
        writer.block(words, at)
    else:
        words = _PICTURE.sub("[picture]", words)
        writer.shaped(words, markdown_outline(normalise(words).strip("\n")), at)
    cut = 0
    outputs = cell.get("outputs")
    for index, output in enumerate(outputs if isinstance(outputs, list) else (), 1):
        said = _output(output) if isinstance(output, dict) else ""
        if not said.strip():
            continue
        cut += len(said) > _LONGEST_OUTPUT
        writer.apart()
        writer.block(said[:_LONGEST_OUTPUT], locator(cell=number, output=index))
        writer.apart()
    return cut


def _output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        trace = output.get("traceback")
        words = "\n".join(map(str, trace)) if isinstance(trace, list) and trace else ""
        return _COLOURS.sub("", words or f"{output.get('ename', '')}: {output.get('evalue', '')}")
    data = output.get("data", output)
    if not isinstance(data, dict):
        return ""
    for name in ("text/markdown", "text/plain", "text/latex", "text"):
        if name in data:
            return _PICTURE.sub("[picture]", _COLOURS.sub("", _text(data[name])))
    if "text/html" in data:
        from workbench.ingest.readers.html import html_text

        return html_text(_text(data["text/html"]))[0]
    return ""


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
