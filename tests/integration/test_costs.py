"""What work may cost, counted and not timed: statements, rows, embedded queries, mapped files, imported modules.

The bounds are what is needed today. A change that raises one makes the same thing slower on every machine: look for the reason
before the number is changed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb
from workbench.encode.hashing import HashingEncoder
from workbench.store.database import Database

QUERY = "how often does the station send readings"
HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "streamlit",
    "plotly",
    "polars",
    "pandas",
    "scipy",
    "openvino",
)


class Counted:
    """A cursor that counts statements and rows."""

    def __init__(self, inner, counts):
        self.inner, self.counts = inner, counts

    def _said(self, answer, rows):
        self.counts["rows"] += rows
        return answer

    def execute(self, sql, values=()):
        self.counts["statements"] += 1
        self.inner.execute(sql, values)
        return self

    def sql(self, sql, params=()):
        self.counts["statements"] += 1
        self.relation = self.inner.sql(sql, params=params)
        return self

    def fetchall(self):
        rows = self.inner.fetchall()
        return self._said(rows, len(rows))

    def fetchnumpy(self):
        columns = self.inner.fetchnumpy()
        return self._said(columns, max(map(len, columns.values())))

    def to_arrow_table(self):
        table = self.relation.to_arrow_table()
        return self._said(table, table.num_rows)

    def close(self):
        self.inner.close()


@pytest.fixture
def counts(monkeypatch):
    made = {"statements": 0, "rows": 0, "embedded": 0}
    cursor, embed = Database.cursor, HashingEncoder.encode_query
    monkeypatch.setattr(Database, "cursor", lambda self: Counted(cursor(self), made))

    def counted(self, text):
        made["embedded"] += 1
        return embed(self, text)

    monkeypatch.setattr(HashingEncoder, "encode_query", counted)
    return made


def cost(counts, run):
    before = dict(counts)
    run()
    return {name: value - before[name] for name, value in counts.items()}


def within(found, **most):
    return all(found[name] <= bound for name, bound in most.items())


def test_a_search_reads_what_it_shows(sample_path, counts):
    """Three statements: the words, and the rows of the ten hits and their documents. Another plan reads the words no more,
    nor embeds them again.
    """
    with wb.open_corpus(sample_path, wb.Principal("acme", ("admin", "support"))) as corpus:
        corpus.search("warm").hits  # noqa: B018 - the first search reads what all searches share
        made = {}

        def search(plan="rrf"):
            made["result"] = corpus.search(QUERY, plan=plan, bypass_cache=True)
            return made["result"].hits

        assert within(cost(counts, search), statements=3, rows=30, embedded=1)
        assert within(cost(counts, lambda: search("default")), statements=2, rows=20, embedded=0)
        moved = cost(counts, lambda: made["result"].with_plan("default fusion.alpha=0.2").hits)
        assert within(moved, statements=2, rows=20, embedded=0)
        keyword = cost(counts, lambda: corpus.search(QUERY, mode="keyword", bypass_cache=True).hits)
        assert within(keyword, statements=2, rows=20, embedded=0)


def loaded(code: str, *arguments: str) -> tuple[set[str], dict[str, int]]:
    """The modules of a new process after some code, and the bytes that it maps of each file of a corpus."""
    ends = (
        "\nimport json\nlines = [line.split() for line in open('/proc/self/maps') if '/generations/' in line]\n"
        "sizes = {line[5]: int.__rsub__(*(int(end, 16) for end in line[0].split('-'))) for line in lines}\n"
        "print(json.dumps([sorted(sys.modules), sizes]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import sys\n" + code + ends, *arguments], capture_output=True, text=True, check=True
    )
    modules, sizes = json.loads(done.stdout.strip().rpartition("\n")[2])
    return set(modules), {Path(name).name: size for name, size in sizes.items()}


def test_help_loads_little():
    modules, _ = loaded("from workbench.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass")
    assert len(modules) <= 130, sorted(modules)
    assert not modules & {"numpy", "duckdb", *HEAVY}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_keyword_search_loads_no_model_and_maps_no_text(sample_path):
    """Vectors, lines and models are left alone: only the columns of the records are mapped."""
    code = (
        "import workbench as wb\ncorpus = wb.open_corpus(sys.argv[1], wb.Principal('acme', ('admin',)))\n"
        "corpus.search(sys.argv[2], mode='keyword').hits"
    )
    modules, sizes = loaded(code, str(sample_path), QUERY)
    assert len(modules) <= 480, len(modules)
    assert not modules & set(HEAVY)
    assert set(sizes) == {"columns.arrays"}
    assert sum(sizes.values()) <= sum(f.stat().st_size for f in sample_path.rglob("columns.arrays")) + 4096
