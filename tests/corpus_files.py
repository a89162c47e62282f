"""Files and corpora for tests that index folders."""

from collections.abc import Mapping
from pathlib import Path

import workbench as wb
from workbench.records import FileStatus, IndexReport
from workbench.store.reader import open_generation


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files by relative path into a folder, made where it does not exist."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return folder


TEXTS = {
    "a.md": "---\ntags: [x, y]\nyear: 2020\n---\n# Retry\n\nRetries back off.\n",
    "b.md": "# Backoff\n\nWait longer each time.\n",
    "sub/c.md": "# Cats\n\nCats sleep all day.\n",
}


def write_texts(folder: Path) -> Path:
    return write_files(folder, TEXTS)


def run(docs: Path, corpus: Path, **options: object) -> IndexReport:
    """Index with the hashing encoder, and check that the counts add up."""
    report = wb.index([docs], corpus, **{"encoder": "hashing", **options})  # type: ignore[arg-type]
    counted = sum(report.count(s) for s in FileStatus if s is not FileStatus.REMOVED)
    assert report.found == counted
    return report


def paths(corpus: Path) -> list[str]:
    with open_generation(corpus) as opened:
        return [d.path for d in opened.records.documents(range(opened.records.documents_total))]


def write_judged(folder: Path, queries: int) -> Path:
    """Twenty files, indexed in `corpus`, and judgments of some queries in `judged.csv`; the folder of both."""
    files = {f"f{n:02}.md": f"alpha word{n} beta word{(n * 7) % 20}\n" for n in range(20)}
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    lines = ["query_id,query,document,grade", *(f"q{n},word{n} alpha,f{n:02}.md,1" for n in range(queries))]
    (folder / "judged.csv").write_text("\n".join(lines) + "\n")
    return folder
