"""DuckDB with usearch beside Milvus, on the same chunks and vectors: `PYTHONPATH=tests python -m bench.milvus --rows 20000`.

Without `--store` Milvus is a file of milvus-lite, in this process. Time to build, p50 and p95 of each source over the queries,
and memory of the process before and after, in one run.
"""

import json
import resource
import tempfile
import time
from pathlib import Path

import click
import numpy as np

from bench.corpora import build_given, find_source
from workbench.plan.plan import Plan
from workbench.store.reader import open_generation
from workbench.store.types import Scope

_SEARCHES = 50


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


def _measured(opened, texts, vectors):
    """Milliseconds, p50 and p95, of each source."""
    plan, everything = Plan.of("default"), Scope()
    how = {name: plan[f"keyword.{name}"] for name in ("k1", "b", "operator")}
    rows = list(range(0, opened.records.records_total, max(1, opened.records.records_total // 10)))[:10]
    asked = {
        "keyword": lambda n: opened.lexical.search(texts[n], everything, plan.depth("keyword"), **how),
        "vector": lambda n: opened.vectors("").search(vectors[n], everything, plan.depth("vector")),
        "grep": lambda n: opened.grep.search(
            [texts[n].split()[0]], everything, 50, regex=False, case="smart", word=False, context=3
        ),
        "rows": lambda n: opened.records.rows(rows),
    }
    found = {}
    for name, ask in asked.items():
        spent = []
        for n in range(len(texts)):
            started = time.perf_counter()
            ask(n)
            spent.append((time.perf_counter() - started) * 1000)
        found[name] = [round(float(np.percentile(spent, p)), 1) for p in (50, 95)]
    return found


@click.command()
@click.option("--rows", type=int)
@click.option("--data", type=click.Path(path_type=Path))
@click.option("--store", default="")
def main(rows: int | None, data: Path | None, store: str) -> None:
    source = find_source(data, rows)
    with tempfile.TemporaryDirectory() as folder:
        queries = None
        for name, where in (("here", ""), ("milvus", store or f"{folder}/milvus.db")):
            started, before = time.perf_counter(), _memory()
            build_given(Path(folder) / name, source.root, source.documents(), source.identity, lambda _: None, where)
            built = round(time.perf_counter() - started, 1)
            with open_generation(Path(folder) / name) as opened:
                total = opened.records.records_total
                if queries is None:
                    some = np.linspace(0, total - 1, _SEARCHES, dtype=np.int64)
                    texts = [
                        " ".join(row.chunk.text.split()[3:7]) or "text" for row in opened.records.rows(some.tolist())
                    ]
                    queries = texts, opened.vectors("").vectors(some)
                spent = _measured(opened, *queries)
            click.echo(json.dumps({"store": name, "chunks": total, "build_s": built, "ms_p50_p95": spent,
                                   "memory_mb": [before, _memory()]}))  # fmt: skip


if __name__ == "__main__":
    main()
