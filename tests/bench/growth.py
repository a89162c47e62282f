"""What ten times as many chunks cost: building, bytes, memory and searches from 10,000 chunks to a million.

The same 40 questions and 30 words at every size, each size in a process of its own. Above the large collection its documents are
repeated with a mark and moved vectors (`corpora.repeated`): the words' frequencies grow with them, so no list gets shorter."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bench import corpora, figures, pages, processes
from bench.ground import Ground
from bench.pages import browser
from bench.processes import opened
from workbench.errors import UsageError

RESULTS = Path(__file__).with_name("results")
SIZES = (10_000, 50_000, 200_000, 1_000_000)
KINDS = ("keyword", "vector", "hybrid", "grep", "slider")
QUESTIONS, WORDS, ROUNDS = 40, 30, 3


def source_of(data: Path, size: int) -> corpora.Source:
    whole = corpora.find_source(data, size)
    times = round(size / whole.rows)
    return corpora.repeated(whole, times) if times > 1 else whole


def built(data: Path, keep: Path, size: int) -> dict[str, Any]:
    """How a corpus was built, now or before, and its bytes."""
    corpus = corpora.prepare(source_of(data, size), keep, lambda _: None)
    facts = json.loads((corpus.folder.parent / corpora.BUILT).read_text(encoding="utf-8"))
    bytes_ = sum(f.stat().st_size for f in corpus.folder.rglob("*") if f.is_file())
    return {"chunks": corpus.source.rows, "digest": corpus.source.digest[:16], "bytes": bytes_, "build": facts}


def asked(data: Path, keep: Path, size: int) -> dict[str, Any]:
    """Questions, and words that 2 to 20 chunks hold, of the smallest corpus."""
    with Ground(corpora.prepare(source_of(data, size), keep, lambda _: None), None, lambda _: None) as ground:
        return {"questions": [q.typed for q in ground.draw(QUESTIONS)], "words": ground.words(2, 20, WORDS)}


def searched(data: Path, keep: Path, size: int) -> dict[str, Any]:
    """Each kind of search in turn, ten rows read, query vectors kept; the questions come on standard input."""
    said = json.load(sys.stdin)
    built = corpora.prepare(source_of(data, size), keep, lambda _: None)
    row: dict[str, Any] = {"open_ms": min(figures.milliseconds(opened, str(built.folder)) for _ in range(5))}
    with Ground(built, None, lambda _: None) as ground:
        corpus = ground.corpus

        def search(mode: str) -> Callable[[str], object]:
            return lambda text: corpus.search(text, mode=mode, bypass_cache=True).hits

        def slid(text: str) -> object:
            return results[text].with_plan("default fusion.alpha=0.3").hits

        results = {text: corpus.search(text, bypass_cache=True) for text in said["questions"]}
        runs = {mode: search(mode) for mode in KINDS[:3]} | {"slider": slid}
        taken = figures.in_turn(runs, said["questions"], ROUNDS)
        taken |= figures.in_turn({"grep": search("grep")}, said["words"], ROUNDS)
        row["memory_mb"] = figures.memory()
    return row | {kind: {"p50": taken[kind].p50, "p95": taken[kind].p95} for kind in KINDS}


def paged(data: Path, keep: Path, size: int) -> dict[str, Any]:
    """A slider of the app from the key press to the painted page."""
    with Ground(corpora.prepare(source_of(data, size), keep, lambda _: None), None, lambda _: None) as ground:
        slider = next(row.figure for row in pages.pages(ground) if row.key == pages.SLIDER)
    return {"page": {"p50": slider.p50, "p95": slider.p95}}


def again(data: Path, keep: Path, size: int) -> dict[str, Any]:
    """The corpus's documents as files, indexed with the hashing encoder, and again after one of them changed."""
    with Ground(corpora.prepare(source_of(data, size), keep, lambda _: None), None, lambda _: None) as ground:
        return {"again": processes.indexed_again(ground, math.inf)}


# --- the table and the picture ---------------------------------------------------------------------------------------


def child(task: str, data: Path, keep: Path, size: int, given: str = "") -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.growth", task, str(data), str(keep), str(size)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(
            f"{task} of {size:,} chunks failed: {done.stderr.strip().rpartition(chr(10))[2]}", "Try it alone"
        )
    return dict(json.loads(done.stdout.strip().rpartition("\n")[2]))


def markdown(facts: dict[str, Any]) -> str:
    machine = facts["machine"]
    lines = [
        "# Growth", "",
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:g} GB, Python {machine['python']}, commit"
        f" {machine['commit']}, load {machine['load']:.1f} at the start. p50 and p95 in ms of a whole search with its ten rows,"
        f" warm, query vectors kept, {ROUNDS} rounds of {facts['questions']} questions and {facts['words']} words.", "",
        *figures.notes(RESULTS / "growth.md"),
        "| chunks | build s (processor) | build MB | on disk MB | open ms | " + " | ".join(KINDS) + " | page | search MB |"
        " again s | corpus |",
        "|" + "---|" * (9 + len(KINDS)),
    ]  # fmt: skip
    for row in facts["rows"]:
        build, page, repeated = row["build"], row.get("page"), row.get("again")
        cells = [
            f"{row['chunks']:,}", f"{build['seconds']:.0f} ({build['processor_seconds']:.0f})", f"{build['memory_mb']:,.0f}",
            f"{row['bytes'] / 1e6:,.0f}", f"{row['open_ms']:.1f}", *(f"{row[k]['p50']:.1f}, {row[k]['p95']:.1f}" for k in KINDS),
            f"{page['p50']:.0f}, {page['p95']:.0f}" if page else "", f"{row['memory_mb']:,.0f}",
            f"{min(repeated['changed']):.1f} of {repeated['new']:.0f}" if repeated else "", f"`{row['digest']}`",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "![p50 in ms by number of chunks](growth.png)", ""])


def picture(facts: dict[str, Any], path: Path) -> None:
    """Searches to the left, building and room to the right; both axes are logarithmic."""
    import plotly.graph_objects as graphs
    from plotly.subplots import make_subplots

    chart = make_subplots(1, 2, subplot_titles=("p50 of a search, ms", "building and room"))
    rows = facts["rows"]
    sizes = [row["chunks"] for row in rows]
    right = {
        "build, processor s": [row["build"]["processor_seconds"] for row in rows],
        "on disk, MB": [row["bytes"] / 1e6 for row in rows],
        "memory of searching, MB": [row["memory_mb"] for row in rows],
    }
    for column, lines in enumerate(({kind: [row[kind]["p50"] for row in rows] for kind in KINDS}, right), 1):
        for name, values in lines.items():
            chart.add_trace(graphs.Scatter(x=sizes, y=values, name=name, mode="lines+markers"), 1, column)
    chart.update_xaxes(type="log", title="chunks", tickvals=sizes, ticktext=[f"{size / 1000:,.0f}k" for size in sizes])
    chart.update_yaxes(type="log", dtick=1)
    chart.update_layout(template="plotly_white", width=960, height=360, margin={"t": 40, "b": 50, "l": 50, "r": 20})
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 960, "height": 360})
        page.set_content(chart.to_html(config={"displayModeBar": False}))
        page.wait_for_selector(".legend")
        page.screenshot(path=path)


FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command()
@click.option("--data", type=FOLDER, required=True, help="Folder with large.parquet and large_vectors.npz.")
@click.option("--keep", type=click.Path(path_type=Path), required=True, help="Where corpora are kept.")
@click.option("--size", "sizes", multiple=True, type=int, default=SIZES, show_default=True, help="Chunks, about.")
@click.option("--ui", is_flag=True, help="Also the app in a browser: a slider from the key press to the painted page.")
@click.option("--again", "most_again", type=int, default=0, help="Also indexing files again, up to so many chunks.")
def growth(data: Path, keep: Path, sizes: tuple[int, ...], ui: bool, most_again: int) -> None:
    """Build what is missing, and search every size."""
    machine, kept = figures.describe(), RESULTS / "growth.json"
    earlier = {row["digest"]: row for row in json.loads(kept.read_text())["rows"]} if kept.is_file() else {}
    rows = [child("built", data, keep, size) for size in sizes]
    for row in rows:  # what takes long and is not asked for stays
        row |= {key: value for key, value in earlier.get(row["digest"], {}).items() if key in ("page", "again")}
    given = child("asked", data, keep, sizes[0])
    for row, size in zip(rows, sizes, strict=True):
        row |= child("searched", data, keep, size, json.dumps(given))
        row |= child("paged", data, keep, size) if ui else {}
        row |= child("again", data, keep, size) if size <= most_again else {}
        click.echo(f"{row['chunks']:,}", err=True)
    facts = {"machine": machine, "questions": len(given["questions"]), "words": len(given["words"]), "rows": rows}
    kept.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    (RESULTS / "growth.md").write_text(markdown(facts))
    picture(facts, RESULTS / "growth.png")
    click.echo(markdown(facts))


TASKS = {task.__name__: task for task in (built, asked, searched, paged, again)}

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in TASKS:
        print(json.dumps(TASKS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))), flush=True)
    else:
        growth()
