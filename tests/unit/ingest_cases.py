"""What the tests of `workbench.ingest` share: a tokenizer that counts words, files, and a PDF written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench.ingest import FileRules, FoundFile, Problem, ReadDocument, SkippedFile, read_documents
from workbench.ingest.chunking import CountTokens, chunk_document
from workbench.ingest.rules import CorpusRules
from workbench.ingest.walk import walk
from workbench.records import Chunk, Document


def count_words(texts: Sequence[str]) -> list[int]:
    """A tokenizer for tests: words and single punctuation marks; long words count a token for each 8 characters."""
    return [sum(-(-len(w) // 8) for w in re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return folder


def found(file: Path) -> FoundFile:
    (item,) = walk([file])
    assert isinstance(item, FoundFile)
    return item


def cut_file(
    found: FoundFile,
    rules: FileRules | None = None,
    count: CountTokens = count_words,
    budget: int = 200,
    salt: str = "",
    one_chunk: bool = False,
) -> Iterator[tuple[Document, tuple[Chunk, ...]] | Problem]:
    """The documents of a file with their chunks in all collections, and its problems."""
    for item in read_documents(found, rules or FileRules(), salt):
        if isinstance(item, Problem):
            yield item
            continue
        chunks: list[Chunk] = []
        for name in item.collections:
            granularity = CorpusRules().granularity(name)
            chunks += chunk_document(item.document, item.outline, name, granularity, budget, count, one_chunk=one_chunk)
        yield item.document, tuple(chunks)


def names(items: Sequence[FoundFile | SkippedFile]) -> tuple[list[str], dict[str, str]]:
    """Paths of the found ones, and path -> reason of the skipped ones."""
    return (
        [i.path for i in items if isinstance(i, FoundFile)],
        {i.path: i.reason for i in items if isinstance(i, SkippedFile)},
    )


def documents(file: Path, rules: FileRules | None = None) -> list[Document]:
    items = read_documents(found(file), rules or FileRules())
    return [item.document for item in items if isinstance(item, ReadDocument)]


def problems(file: Path, rules: FileRules | None = None) -> list[Problem]:
    return [item for item in read_documents(found(file), rules or FileRules()) if isinstance(item, Problem)]


def check_chunks(document: Document, chunks: Sequence[Chunk]) -> None:
    """The laws of chunks: exact spans and lines, in order, no overlap, every character that is not blank covered."""
    position = 0
    for index, chunk in enumerate(chunks):
        assert chunk.text == document.text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert chunk.chunk_index == index
        assert chunk.document_id == document.document_id
        assert position <= chunk.start < chunk.end
        assert not document.text[position : chunk.start].strip()
        assert chunk.start_line == document.text.count("\n", 0, chunk.start) + 1
        assert chunk.end_line == document.text.count("\n", 0, chunk.end - 1) + 1
        position = chunk.end
    assert not document.text[position:].strip()
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


def pdf(pages: Sequence[str], bookmarks: Sequence[tuple[str, int]] = (), encrypt: bool = False) -> bytes:
    """A PDF with a line of Helvetica for each line of each page; an empty page has no content."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(pages)))
    objects = {1: "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>"}
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"
    objects[3] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    outlines = [f"{1000 + n} 0 R" for n in range(len(bookmarks))]
    ends = f"/First {outlines[0]} /Last {outlines[-1]}" if outlines else ""
    objects[4] = f"<< /Type /Outlines /Count {len(outlines)} {ends} >>"
    for n, (title, page) in enumerate(bookmarks):
        after = f"/Next {outlines[n + 1]}" if n + 1 < len(outlines) else ""
        objects[1000 + n] = f"<< /Title ({title}) /Parent 4 0 R /Dest [{10 + 2 * page} 0 R /Fit] {after} >>"
    for n, page in enumerate(pages):
        shown = "".join(f"({line}) Tj T* " for line in page.split("\n") if line)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown}ET"
        objects[10 + 2 * n] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {11 + 2 * n} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects[11 + 2 * n] = f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"
    extra = ""
    if encrypt:
        key = "00" * 32
        objects[5] = f"<< /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >>"
        extra = f" /Encrypt 5 0 R /ID [<{'00' * 16}> <{'00' * 16}>]"
    body, offsets = "%PDF-1.4\n", {}
    for number in sorted(objects):
        offsets[number] = len(body)
        body += f"{number} 0 obj\n{objects[number]}\nendobj\n"
    table = "".join(f"{number} 1\n{offset:010d} 00000 n \n" for number, offset in sorted(offsets.items()))
    tail = f"xref\n0 1\n0000000000 65535 f \n{table}trailer\n<< /Size 2000 /Root 1 0 R{extra} >>\n"
    return (body + tail + f"startxref\n{len(body)}\n%%EOF\n").encode("latin-1")
