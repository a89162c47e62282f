"""Many processes on one corpus: readers never fail and never see half of anything while a writer works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench import index

pytestmark = pytest.mark.slow

READ = """
import sys
from workbench.store.reader import open_generation
seen, opened = set(), 0
while True:
    with open_generation(sys.argv[1]) as g:
        store = g.records
        scope = store.scope(None, "type = 'markdown'", ())
        numbers = g.lexical.search("document", scope, 100, k1=0.9, b=0.4, operator="any").numbers
        rows = store.rows(numbers.tolist())
        texts = [d.text for d in store.documents([r.document_number for r in rows])]
        assert len(rows) == store.documents_total == g.manifest.counts["documents"], "half a corpus"
        assert len({t.split()[-1] for t in texts}) == 1, "two generations mixed"
        lines = g.grep.search(["Document"], scope, 100, regex=False, case="smart", word=False, context=0).lines
        assert lines == store.documents_total
        assert len(g.vectors().vectors(numbers)) == len(rows)
        seen.add(g.id)
    opened += 1
    if opened == 1:
        print("reading", flush=True)
    if opened >= 3 and len(seen) > 1 and g.is_current():
        break
print(opened, len(seen), flush=True)
"""


def write(docs: Path, version: int) -> None:
    """Every document ends in the version."""
    for i in range(10):
        (docs / f"{i}.md").write_text(f"# Document {i}\n\nVersion {version}\n")


def test_eight_processes_read_while_one_writes(tmp_path: Path):
    """Each opens again and again, until it has seen more than one generation whole."""
    docs, corpus = tmp_path / "docs", tmp_path / "my.corpus"
    docs.mkdir()
    write(docs, 0)
    index([docs], corpus, encoder="hashing")
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READ, str(corpus)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "reading\n"
        for version in range(1, 4):
            write(docs, version)
            index([docs], corpus, encoder="hashing")
        for reader in readers:
            said, errors = reader.communicate(timeout=120)
            assert reader.returncode == 0, errors
            assert int(said.split()[1]) > 1
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
    index([docs], corpus, encoder="hashing")
    assert len(list((corpus / "generations").iterdir())) == 1
