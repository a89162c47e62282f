"""A generation that was made from the one before holds what a first build of the same folder holds, row by row.

Nothing that answers may depend on history: not the numbers of records, not a posting.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import workbench as wb
from workbench.store import generations
from workbench.store.generations import DATABASE

NAMES = ("pump", "valve", "Retry-Policy", "getHttpClient", "weirs", "naïve", "検索", "C++", "10.0.0.1", "notes_of_2024")


def write(folder: Path, name: str, number: int) -> None:
    """A document whose words are partly its own and partly everyone's, stems shared by several words among them."""
    words = " ".join(f"{word} {word}s{number}" for word in NAMES[number % 4 :])
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"---\nyear: {2000 + number}\n---\n# Document {number}\n\nThe pumps {words}.\n\n"
        + "\n\n".join(f"Paragraph {n} connects connections of {number * n}." for n in range(30))
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some documents, two of them equal."""
    made = tmp_path / "folder"
    for number in range(8):
        write(made, f"{number}.md", number)
    shutil.copy(made / "3.md", made / "copy.md")
    return made


def held(corpus: Path) -> tuple[str, dict[str, list[Any]]]:
    """Digest, and the rows of each table in their order."""
    pin = generations.pin(corpus)
    try:
        connection = duckdb.connect(str(pin.folder / DATABASE), read_only=True)
        try:
            tables = [
                row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
            ]
            rows = {table: connection.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables}
        finally:
            connection.close()
        return pin.manifest.digest, rows
    finally:
        pin.close()


def check(folder: Path, corpus: Path, tmp_path: Path, **options: Any) -> None:
    """Index again, index anew, and compare."""
    assert wb.index([folder], corpus, workers=0, **options).changed
    fresh = tmp_path / "fresh.corpus"
    shutil.rmtree(fresh, ignore_errors=True)
    wb.index([folder], fresh, workers=0, **{"encoder": "hashing", **options})
    (digest, rows), (fresh_digest, fresh_rows) = held(corpus), held(fresh)
    assert digest == fresh_digest
    assert sorted(rows) == sorted(fresh_rows)
    for table, found in fresh_rows.items():
        if table not in ("former", "roots"):  # paths that a document had are history by their nature; the salt is drawn
            assert rows[table] == found, table


def test_an_edit_gives_what_a_first_build_gives(folder: Path, tmp_path: Path) -> None:
    """One file changed: words come, words go, and every later record has another number."""
    corpus = tmp_path / "my.corpus"
    wb.index([folder], corpus, encoder="hashing", workers=0)
    (folder / "2.md").write_text("# Two\n\nA zebra connected the pumping station.\n")
    check(folder, corpus, tmp_path)


@pytest.mark.slow
def test_a_long_history_gives_what_a_first_build_gives(folder: Path, tmp_path: Path) -> None:
    """Files edited, added, renamed and removed, the first of two equal ones too, one generation after the other."""
    corpus = tmp_path / "my.corpus"
    wb.index([folder], corpus, encoder="hashing", workers=0)
    write(folder, "new/9.md", 9)
    check(folder, corpus, tmp_path)
    (folder / "0.md").unlink()
    check(folder, corpus, tmp_path)
    (folder / "1.md").rename(folder / "z.md")
    check(folder, corpus, tmp_path)
    (folder / "3.md").unlink()
    check(folder, corpus, tmp_path)
    (folder / "empty.md").write_text("---\nyear: 1\n---\n")
    write(folder, "4.md", 400)
    check(folder, corpus, tmp_path)
    for path in folder.glob("*.md"):
        if path.name != "5.md":
            path.unlink()
    check(folder, corpus, tmp_path)
    (folder / "5.md").write_text("---\nyear: 2001\n---\n# Document 5\n\nOther words altogether.\n")
    check(folder, corpus, tmp_path)
