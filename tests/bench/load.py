"""Many sessions on one corpus while it is indexed again and again: latencies, errors, and the app's memory over time.

    PYTHONPATH=tests python -m bench.load --minutes 20 [--folder DOCS]

Thirty sessions search through the library in processes of their own, twenty open the app's pages through its websocket as a
browser does, ask two or three questions in each and leave. What counts is the memory's slope in the second half: sessions of
closed pages are kept for a while, so the first minutes rise.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import quote

from serving import serving

import workbench as wb
from bench.figures import Figure

WORDS = tuple("lamp bridge river copper signal garden window ladder engine harbour meadow pencil".split())
PLANS = ("default", "tmm", "rrf", "passages", "contract", "default limit=20")
_SAMPLE_SECONDS = 5
_SHARED_BY = 3  # processes of the library's sessions


@dataclass(slots=True)
class Met:
    """What some sessions met: seconds of each answer, and errors."""

    took: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Count, median and 95th percentile in milliseconds, and the first errors."""
        text = f"{name}: {len(self.took):,} answers, {len(self.errors)} errors"
        if self.took:
            figure = Figure.of(self.took)
            text += f", p50 {figure.p50 * 1000:.0f} ms, p95 {figure.p95 * 1000:.0f} ms"
        return "\n  ".join((text, *sorted(set(self.errors))[:5]))


def question(rng: random.Random) -> tuple[str, str]:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 3))), rng.choice(PLANS)


def search(corpus: str, seconds: float, sessions: int, seed: int, pause: float) -> Met:
    """The library's sessions of one process, a thread each."""
    met, end = Met(), time.monotonic() + seconds

    def session(n: int) -> None:
        rng = random.Random(1_000 * seed + n)
        with wb.open_corpus(corpus, follow=True) as opened:
            while time.monotonic() < end:
                query, plan = question(rng)
                begun = time.monotonic()
                try:
                    opened.search(query, plan=plan)
                    met.took.append(time.monotonic() - begun)
                except Exception as exc:  # noqa: BLE001 - counted and shown
                    met.errors.append(repr(exc)[:300])
                time.sleep(2 * pause * rng.random())

    with ThreadPoolExecutor(sessions) as pool:
        list(pool.map(session, range(sessions)))
    return met


async def visit(address: str, rng: random.Random, met: Met, pause: float) -> None:
    """One browser's visit: it opens a page, asks, asks again, and leaves."""
    import websockets
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    url = address.replace("http", "ws", 1) + "/_stcore/stream"
    async with websockets.connect(url, subprotocols=["streamlit"], max_size=None, open_timeout=60) as socket:
        for _ in range(rng.randint(2, 3)):
            query, plan = question(rng)
            asked, begun = BackMsg(), time.monotonic()
            asked.rerun_script.query_string = f"q={quote(query)}&plan={quote(plan)}"
            await socket.send(asked.SerializeToString())
            kind = None
            while kind != "script_finished":
                reply = ForwardMsg()
                reply.ParseFromString(await asyncio.wait_for(socket.recv(), 120))
                kind = reply.WhichOneof("type")
                if kind == "delta" and reply.delta.new_element.WhichOneof("type") == "exception":
                    met.errors.append(reply.delta.new_element.exception.message[:300])
            met.took.append(time.monotonic() - begun)
            await asyncio.sleep(2 * pause * rng.random())


async def browse(address: str, seed: int, end: float, met: Met, pause: float) -> None:
    rng = random.Random(seed)
    while time.monotonic() < end:
        try:
            await visit(address, rng, met, pause)
        except Exception as exc:  # noqa: BLE001 - counted and shown
            met.errors.append(repr(exc)[:300])
            await asyncio.sleep(1)


async def sample(pid: int, end: float, rows: list[tuple[float, float]]) -> None:
    """Minutes, and MB of memory that is the process's own."""
    begun = time.monotonic()
    while time.monotonic() < end:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        rows.append(((time.monotonic() - begun) / 60, int(text.split("Anonymous:")[1].split()[0]) / 1024))
        await asyncio.sleep(_SAMPLE_SECONDS)


async def index_again(command: Sequence[str], folder: Path, end: float, every: float, codes: list[int]) -> None:
    """Change three files and index, again and again."""
    files, rng = sorted(p for p in folder.rglob("*") if p.suffix in {".md", ".txt"}), random.Random(3)
    while time.monotonic() + every < end:
        for file in rng.sample(files, 3):
            file.write_text(f"{file.read_text()}\n\nAnother {rng.choice(WORDS)} {rng.random()}.\n")
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        codes.append(await process.wait())
        await asyncio.sleep(every)


def write_files(folder: Path) -> None:
    """Three hundred files of the words that are asked for."""
    folder.mkdir()
    rng = random.Random(1)
    for n in range(300):
        text = "\n\n".join(" ".join(rng.choices(WORDS, k=40)) + f" number{n}." for _ in range(8))
        (folder / f"f{n}.md").write_text(f"# Part {n}\n\n{text}\n")


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--minutes", type=float, default=20)
    given.add_argument("--folder", type=Path, help="files to index, copied first; by default some are written")
    given.add_argument("--library", type=int, default=30, help="sessions of the library")
    given.add_argument("--pages", type=int, default=20, help="sessions of the app")
    given.add_argument("--pause", type=float, default=4.0, help="mean seconds between two questions of a session")
    given.add_argument("--index-every", type=float, default=30.0, help="seconds between two indexing runs; 0: none")
    given.add_argument("--encoder", default="hashing")
    asked = given.parse_args()
    os.environ["WORKBENCH_ENCODER"] = asked.encoder
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        measure(asked, Path(folder))


def measure(asked: argparse.Namespace, where: Path) -> None:
    folder, corpus = where / "files", where / "corpus"
    if asked.folder:
        shutil.copytree(asked.folder, folder)
    else:
        write_files(folder)
    index = [sys.executable, "-m", "workbench", "index", str(folder), "--corpus", str(corpus)]
    subprocess.run(index, check=True)
    pages, library = Met(), Met()
    rows: list[tuple[float, float]] = []
    codes: list[int] = []
    with serving(corpus, where, {}) as app, ProcessPoolExecutor(_SHARED_BY, get_context("spawn")) as pool:
        seconds, each = asked.minutes * 60, max(1, asked.library // _SHARED_BY)
        end = time.monotonic() + seconds

        async def everything() -> None:
            visitors = [browse(app, n, end, pages, asked.pause) for n in range(asked.pages)]
            others = [index_again(index, folder, end, asked.index_every, codes)] if asked.index_every else []
            await asyncio.gather(sample(app.pid, end, rows), *visitors, *others)

        starts = range(asked.library // each)
        readers = [pool.submit(search, str(corpus), seconds, each, n, asked.pause) for n in starts]
        asyncio.run(everything())
        for reader in readers:
            library.took += reader.result().took
            library.errors += reader.result().errors
    print(library.line("library"), pages.line("app"), sep="\n")
    print(f"indexing: {len(codes)} runs, {sum(map(bool, codes))} failed")
    for minutes, mb in rows[:: max(1, len(rows) // 24)]:
        print(f"  {minutes:5.1f} min {mb:7.1f} MB")
    half = rows[len(rows) // 2 :]
    slope = statistics.linear_regression([m for m, _ in half], [mb for _, mb in half]).slope
    print(f"memory: {rows[0][1]:.0f} to {rows[-1][1]:.0f} MB, in the second half {slope:+.2f} MB a minute")


if __name__ == "__main__":
    main()
