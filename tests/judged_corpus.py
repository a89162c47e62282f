"""A corpus with judgments, small enough for the command line's tests."""

from __future__ import annotations

from pathlib import Path

from corpus_files import write_files

import workbench as wb


def write_judged(folder: Path, queries: int) -> Path:
    """Twenty files, indexed in `corpus`, and judgments of some queries in `judged.csv`; the folder of both."""
    files = {f"f{n:02}.md": f"alpha word{n} beta word{(n * 7) % 20}\n" for n in range(20)}
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    lines = ["query_id,query,document,grade", *(f"q{n},word{n} alpha,f{n:02}.md,1" for n in range(queries))]
    (folder / "judged.csv").write_text("\n".join(lines) + "\n")
    return folder
