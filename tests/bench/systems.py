"""`make systems`: whole systems that people install for hybrid search, on the same texts, vectors and questions as ours.

Each system runs in processes of its own (`adapters.py`) with the interpreter of another environment, so that nobody's libraries
change ours. Three sets: chunks of the large collection for time and size, SciFact and NFCorpus for what is found. All answer
the same question in turn; indexes are kept between runs, and so is what building them took. They go to `results/`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench import corpora, figures, ground
from workbench.corpus import open_corpus
from workbench.encode.load import load_encoder
from workbench.errors import UsageError
from workbench.evaluate.measures import compute
from workbench.judgments.qrels import load_judgments

RESULTS = Path(__file__).with_name("results")
PACKAGES = {
    "Workbench": "", "LanceDB": "lancedb", "Chroma": "chromadb", "Qdrant": "qdrant-client", "Txtai": "txtai",
    "MilvusLite": "milvus-lite", "SQLite": "sqlite-vec", "DuckDBFts": "duckdb", "Bm25sFaiss": "bm25s"
}  # fmt: skip
EXPLAINS = {
    "Workbench": "rank, score, share and threshold of each source, for any document; the step that dropped one",
    "LanceDB": "the score of each side, if asked for",
    "Chroma": "a distance",
    "Qdrant": "nothing in local mode",
    "Txtai": "the weight of each word of one result",
    "MilvusLite": "nothing",
    "SQLite": "what your own SQL selects",
    "DuckDBFts": "what your own SQL selects",
    "Bm25sFaiss": "what your own code keeps",
}
AHEAD = {
    "index s": (
        lambda row: row["build"]["seconds"],
        "We write a graph, tables for filters and access, and lines for grep, and check what was written; SQLite, LanceDB, DuckDB"
        " and faiss write no graph. Left: embedding the same chunks takes some 40 times as long.",
    ),
    "MB on disk": (
        lambda row: row["build"]["bytes"],
        "Texts are kept as rows, as lines and as lines in small letters (grep), vectors also as bf16 in the graph. Left.",
    ),
    "open ms": (
        lambda row: row["open_ms"],
        "Imports, and a first search that measures the corpus for its adapted similarity; the corpus itself opens in 22 ms. Its"
        " lengths of texts are no longer sorted (8 to 4 ms).",
    ),
    "p50 ms": (
        lambda row: row["p50_ms"],
        "Chroma searches vectors alone, txtai and bm25s with faiss keep all in memory. Ours reads ten rows from disk (5 ms),"
        " adapts similarities and feeds back (4 ms: +.017 nDCG@10 over nine collections). Seven ways to read the rows were"
        " timed, and it has the fastest.",
    ),
    "memory MB": (
        lambda row: row["memory_mb"],
        "SQLite reads pages, faiss holds one matrix; ours counts mapped vectors, which the system may take back. Left.",
    ),
}
"""Where others may be ahead of ours: the figure, less is better, and why, and what was done."""

SPEED, JUDGED, QUESTIONS, ROUNDS = "large", ("scifact", "nfcorpus"), 40, 5
Tell = Callable[[str], None]


# --- what they are given ----------------------------------------------------------------------------------------------


def large(data: Path, rows: int, folder: Path) -> Path:
    """Chunks of the large collection, with questions drawn from them."""
    source = corpora.find_source(data, rows)
    built = corpora.prepare(source, folder.parent, lambda _: None)
    texts, paths, vectors = [], [], []
    for given in source.documents():
        texts += given.texts
        paths += [given.path] * len(given.texts)
        vectors.append(given.vectors)
    with open_corpus(built.folder) as corpus:
        typed = [question.typed for question in ground.draw(corpus.engine.records, QUESTIONS)]
    return given_folder(folder, texts, paths, np.concatenate(vectors), typed)


def judged(data: Path, name: str, folder: Path) -> Path:
    """A judged collection, one text a document."""
    lines = (data / "collections" / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    texts = [f"{d['title']}\n{d['text']}".strip() for d in documents]
    judgments = load_judgments(data / "collections" / name)
    ids = list(judgments.query_ids)
    encoder = load_encoder(corpora.MODEL)
    typed = [judgments.topic(i).text for i in ids]
    given_folder(folder, texts, [str(d["_id"]) for d in documents], encoder.encode(texts), typed)
    (folder / "judged.json").write_text(json.dumps([ids, {i: dict(judgments.qrels[i]) for i in ids}]))
    return folder


def given_folder(folder: Path, texts: list[str], paths: list[str], vectors: Any, typed: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    encoder = load_encoder(corpora.MODEL)
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "queries.npy", np.stack([encoder.encode_query(text) for text in typed]))
    for name, value in (("texts", texts), ("paths", paths), ("queries", typed)):
        (folder / f"{name}.json").write_text(json.dumps(value))
    np.save(folder / "order.npy", np.arange(len(texts)))
    return folder


def shuffled(folder: Path) -> Path:
    """The same in another order of insertion."""
    other = folder.with_name(f"{folder.name}-shuffled")
    if not other.exists():
        shutil.copytree(folder, other)
        np.save(other / "order.npy", np.random.default_rng(7).permutation(len(np.load(folder / "order.npy"))))
    return other


# --- running them ------------------------------------------------------------------------------------------------------


class Runner:
    """One system on one set: its index, and a process that answers."""

    def __init__(self, name: str, given: Path, python: Path) -> None:
        python = Path(sys.executable) if name == "Workbench" else python
        self.given, self.target = given, given.parent / "systems" / f"{name}-{given.name}"
        self.command = [str(python), "-m", "bench.adapters", name, str(self.target), str(given)]
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "TOKENIZERS_PARALLELISM": "false",
        }

    def build(self) -> dict[str, Any]:
        facts = self.target.with_suffix(".json")
        if not facts.exists():
            shutil.rmtree(self.target, ignore_errors=True)
            self.target.parent.mkdir(exist_ok=True)
            done = subprocess.run([*self.command, "build"], capture_output=True, text=True, env=self.environment)
            if done.returncode:
                raise UsageError(f"It could not be built: {done.stderr.strip().rpartition(chr(10))[2]}", "See its log")
            said = json.loads(done.stdout.strip().rpartition("\n")[2])
            said["bytes"] = sum(f.stat().st_size for f in self.target.rglob("*") if f.is_file())
            facts.write_text(json.dumps(said))
        return dict(json.loads(facts.read_text()))

    def __enter__(self) -> Runner:
        self.process = subprocess.Popen(
            [*self.command, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=self.environment,
        )  # fmt: skip
        self.open_ms = self._line()["open_ms"]
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, number: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(number, file=self.process.stdin, flush=True)
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise UsageError("The process of a system ended early", "Run its adapter by hand to see why")


def timed(names: Sequence[str], given: Path, python: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """Opening, and every question in turn."""
    rows: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        runners = {}
        for name in names:
            opened = []
            for _ in range(2):
                with Runner(name, given, python) as runner:
                    opened.append(runner.open_ms)
            runners[name] = stack.enter_context(Runner(name, given, python))
            rows[name] = {"open_ms": min(*opened, runners[name].open_ms), "ms": []}
        count = len(json.loads((given / "queries.json").read_text()))
        for turn in range(rounds + 1):  # the first one is no measurement
            for number in range(count):
                for name, runner in runners.items():
                    said = runner.ask(number)
                    rows[name]["memory_mb"] = said["memory_mb"]
                    if turn:
                        rows[name]["ms"].append(said["ms"])
    for row in rows.values():
        row["p50_ms"], row["p95_ms"] = np.percentile(row.pop("ms"), [50, 95]).tolist()
    return rows


def answers(name: str, given: Path, python: Path) -> list[list[list[Any]]]:
    count = len(json.loads((given / "queries.json").read_text()))
    with Runner(name, given, python) as runner:
        return [runner.ask(number)["found"] for number in range(count)]


def quality(found: list[list[list[Any]]], given: Path) -> float:
    ids, qrels = json.loads((given / "judged.json").read_text())
    paths = json.loads((given / "paths.json").read_text())
    rankings = {i: [paths[number] for number, _, _ in rows] for i, rows in zip(ids, found, strict=True)}
    return float(compute(rankings, qrels, ids, ["nDCG@10"]).mean())


def same(first: list[list[list[Any]]], second: list[list[list[Any]]]) -> float:
    """Share of the questions with the same ten in the same order."""
    return float(np.mean([[r[0] for r in a] == [r[0] for r in b] for a, b in zip(first, second, strict=True)]))


# --- the table ---------------------------------------------------------------------------------------------------------

FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
INTERPRETER = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.option(
    "--data", type=FOLDER, required=True, help="Folder with large.parquet, large_vectors.npz and collections/."
)
@click.option("--keep", type=click.Path(path_type=Path), required=True, help="Where sets and indexes are kept.")
@click.option("--python", type=INTERPRETER, required=True, help="Interpreter of the systems' environment.")
@click.option("--rows", default=20_000, show_default=True, help="Chunks of the large collection.")
@click.option("--rounds", default=ROUNDS, show_default=True, help="How often each question is asked.")
@click.option("--only", multiple=True, type=click.Choice(list(PACKAGES)), help="Some of the systems.")
@click.option(
    "--step", type=click.Choice(["build", "found", "time"]), help="Only build, only what is found, or only time."
)
def systems(
    data: Path, keep: Path, python: Path, rows: int, rounds: int, only: tuple[str, ...], step: str | None
) -> None:
    """Measure whole systems beside ours."""
    machine, names = figures.describe(), [n for n in PACKAGES if not only or n in only]
    sets = {SPEED: keep / f"{SPEED}-{rows}"} | {name: keep / name for name in JUDGED}
    for name, folder in sets.items():
        if not (folder / "order.npy").exists():
            click.echo(f"{name}: texts and vectors", err=True)
            large(data, rows, folder) if name == SPEED else judged(data, name, folder)
    kept = keep / "systems.json"
    table: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    other = shuffled(sets["nfcorpus"])
    for name in list(names):
        row = table.setdefault(name, {})
        row.pop("failed", None)
        try:
            if step in (None, "build"):
                click.echo(f"{name}: building", err=True)
                for given in (*sets.values(), other):
                    built = Runner(name, given, python).build()
                    if given is sets[SPEED]:
                        row["build"] = built
            if step in (None, "found"):
                click.echo(f"{name}: answers", err=True)
                for label in JUDGED:
                    first = answers(name, sets[label], python)
                    row[label] = quality(first, sets[label])
                row["restart"] = same(first, answers(name, sets["nfcorpus"], python))
                row["order"] = same(first, answers(name, other, python))
        except UsageError as exc:
            row["failed"] = str(exc)
            names.remove(name)
    if step in (None, "time"):
        for name, row in timed(names, sets[SPEED], python, rounds).items():
            table[name] |= row
    kept.write_text(json.dumps(table))
    if step in (None, "time"):
        facts = {"machine": machine, "chunks": rows, "rounds": rounds, "systems": table}
        facts["versions"] = {n: version_of(n, python) for n in names}
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "systems.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
        (RESULTS / "systems.md").write_text(markdown(facts))
        click.echo(markdown(facts))


def version_of(name: str, python: Path) -> str:
    if name == "Workbench":
        return str(figures.describe()["versions"]["workbench"])
    code = f"import importlib.metadata as m; print(m.version({PACKAGES[name]!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()


def markdown(facts: dict[str, Any]) -> str:
    machine, table = facts["machine"], facts["systems"]
    head = [
        "| system | index s (processor) | MB on disk | open ms | p50 ms | p95 ms | beside ours | memory MB |"
        " SciFact | NFCorpus | restart | order |",
        "|" + "---|" * 12,
    ]
    forms = (
        ("open_ms", ".0f"), ("p50_ms", ".1f"), ("p95_ms", ".1f"), ("ratio", ".2f"), ("memory_mb", ".0f"), ("scifact", ".3f"),
        ("nfcorpus", ".3f"), ("restart", ".0%"), ("order", ".0%"),
    )  # fmt: skip
    lines = []
    for name, row in table.items():
        build, said = row.get("build"), {**row}
        if "p50_ms" in row and "p50_ms" in table.get("Workbench", {}):
            said["ratio"] = row["p50_ms"] / table["Workbench"]["p50_ms"]
        cells = [f"{name} {facts['versions'].get(name, '')}", "", ""]
        if build:
            cells[1:] = [f"{build['seconds']:.1f} ({build['processor_seconds']:.1f})", f"{build['bytes'] / 1e6:.0f}"]
        cells += [format(said[key], form) if key in said else "" for key, form in forms]
        lines.append("| " + " | ".join(cells) + " |")
    ahead, ours = [], table.get("Workbench", {})
    for measure, (value, why) in AHEAD.items():
        if ours.keys() >= {"build", "p50_ms"}:
            ratios = {
                name: value(ours) / value(row) for name, row in table.items() if row.keys() >= {"build", "p50_ms"}
            }
            better = [
                f"{name} {ratio:.1f}x" for name, ratio in sorted(ratios.items(), key=lambda r: -r[1]) if ratio > 1
            ]
            ahead.append(f"| {measure} | {', '.join(better)} | {why} |")
    explained = [f"| {name} | {said} |" for name, said in EXPLAINS.items() if name in table]
    return "\n".join(
        [
            "# Whole systems", "",
            f"{facts['chunks']:,} chunks with MiniLM vectors, {QUESTIONS} questions, {facts['rounds']} rounds in turn;"
            f" {machine['processor']}, {machine['cores']} cores, Python {machine['python']}, commit {machine['commit']}, load"
            f" {machine['load']:.1f} at the start.", "",
            *figures.notes(RESULTS / "systems.md"), *head, *lines, "",
            "| system | what explains a score |", "|---|---|", *explained, "",
            "| where we are behind | who, by what ratio | why, and what was done |", "|---|---|---|", *ahead, "",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    systems()
