"""Three small files to index, and what tests of the indexing run ask again and again."""

from __future__ import annotations

from pathlib import Path

from workbench import index
from workbench.reports import FileStatus, IndexReport
from workbench.store.reader import open_generation

TEXTS = {
    "a.md": "---\ntags: [x, y]\nyear: 2020\n---\n# Retry\n\nRetries back off.\n",
    "b.md": "# Backoff\n\nWait longer each time.\n",
    "sub/c.md": "# Cats\n\nCats sleep all day.\n",
}


def write_texts(folder: Path) -> Path:
    for name, text in TEXTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def run(docs: Path, corpus: Path, **options: object) -> IndexReport:
    """Index with the hashing encoder, and check that the counts add up."""
    report = index([docs], corpus, **{"encoder": "hashing", **options})  # type: ignore[arg-type]
    counted = sum(report.count(s) for s in FileStatus if s is not FileStatus.REMOVED)
    assert report.found == counted
    return report


def paths(corpus: Path) -> list[str]:
    with open_generation(corpus) as opened:
        return [d.path for d in opened.records.documents(range(opened.records.documents_total))]
