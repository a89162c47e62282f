"""Reading files into documents, records and the parts of their vectors, here or in helper processes.

A helper is a process of our own (`python -m workbench.indexing.worker`) that talks over its pipes, not a multiprocessing pool:
a pool would run the caller's script again in every child, and would hang when a reader's C library crashes. Here a crash
costs the one file, which is reported, and a new helper goes on; so does a reader that loops (`max_read_seconds`) or eats the
memory (`max_read_memory_mb`). A helper ends by itself when its pipe closes, so a killed run leaves none behind. Results come
back in the order of the files, whatever helper was faster, a batch of documents at a time: a file of a hundred thousand
records is never held as a whole.
"""

from __future__ import annotations

import pickle
import subprocess
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import Full, Queue, SimpleQueue
from typing import IO, Any

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.indexing.state import Task
from workbench.ingest.chunking import TokenCounter, chunk_document
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.read import ReadDocument, read_documents
from workbench.ingest.rules import DEFAULT_GRANULARITIES
from workbench.records import Chunk, Document, Granularity
from workbench.reports import FileStatus
from workbench.store.processes import end, start_python

_BATCH_CHARACTERS = 1_000_000
_BATCH_DOCUMENTS = 256
_BATCHES_AHEAD = 4


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents are cut; picklable.

    Attributes:
        encoder: The encoder whose tokenizer counts, by name.
        budget_tokens: Most tokens of a chunk, context included.
        granularities: Collection -> granularity, of those that the corpus, its rules or the run name. A record may name
            another one.
        whole: Collections with one chunk a document, without context.
        new_whole: Whether a collection that only a record names is such a one.
    """

    encoder: str
    budget_tokens: int
    granularities: Mapping[str, Granularity] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    new_whole: bool = False

    def granularity(self, collection: str) -> Granularity:
        """What a collection's records are."""
        return self.granularities.get(collection, DEFAULT_GRANULARITIES.get(collection, Granularity.CHUNK))

    def is_whole(self, collection: str) -> bool:
        """Whether a collection has one chunk a document."""
        return collection in self.whole or (self.new_whole and collection not in self.granularities)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the reading of a file ended: INDEXED perhaps with a reason (what was left out), or why there is nothing.

    `seconds` is the time that reading and cutting took, without that of waiting for whoever takes the documents.
    """

    status: FileStatus
    reason: str = ""
    remedy: str = ""
    seconds: float = field(default=0.0, compare=False)


Record = tuple[Chunk, tuple[Chunk, ...]]
"""A record, and the chunks that its vector is made of."""

Batch = tuple[tuple[Document, tuple[Record, ...]], ...]
"""Some documents of a file with their records."""


def read_task(task: Task, cutting: Cutting, counter: TokenCounter) -> Iterator[Batch | Outcome]:
    """Read and cut one file: batches, then one outcome. Every failure of the file is an outcome, none an exception."""
    batch: list[tuple[Document, tuple[Record, ...]]] = []
    problems: list[Problem] = []
    held, some = 0, False
    failure: WorkbenchError | None = None
    started, spent = time.perf_counter(), 0.0
    try:
        for item in read_documents(task.found, task.rules, task.salt):
            if isinstance(item, Problem):
                problems.append(item)
                continue
            batch.append((item.document, tuple(_records(item, cutting, counter))))
            held += len(item.document.text)
            some = True
            if held > _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS:
                spent += time.perf_counter() - started
                yield tuple(batch)
                started = time.perf_counter()
                batch, held = [], 0
    except WorkbenchError as exc:
        failure = exc
    spent += time.perf_counter() - started
    if batch:
        yield tuple(batch)
    yield replace(_outcome(some, problems, failure), seconds=spent)


def _outcome(some: bool, problems: Sequence[Problem], failure: WorkbenchError | None) -> Outcome:
    if failure is not None:
        if some:
            return Outcome(FileStatus.INDEXED, f"Left out from some place on: {failure.message}", failure.remedy)
        status = failure.status if isinstance(failure, ReadError) else FileStatus.FAILED
        return Outcome(status, failure.message, failure.remedy)
    if not problems:
        return Outcome(FileStatus.INDEXED)
    first = next((problem for problem in problems if problem.loses), problems[0])
    where = f"line {first.line}: " if first.line is not None else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if some:
        left = "Left out: " if first.loses else ""
        return Outcome(FileStatus.INDEXED, f"{left}{where}{first.reason}{more}", first.remedy)
    return Outcome(FileStatus.FAILED, f"{where}{first.reason}{more}", first.remedy)


def _records(item: ReadDocument, cutting: Cutting, counter: TokenCounter) -> Iterator[Record]:
    """The records of a document in all its collections. A whole document's vector is made of its chunks."""
    document, outline, budget = item.document, item.outline, cutting.budget_tokens
    chunks: tuple[Chunk, ...] | None = None
    for name in item.collections:
        granularity, whole = cutting.granularity(name), cutting.is_whole(name)
        made = chunk_document(document, outline, name, granularity, budget, counter, one_chunk=whole)
        if granularity is Granularity.DOCUMENT and not whole:
            if chunks is None:
                chunks = chunk_document(document, outline, name, Granularity.CHUNK, budget, counter)
            for record in made:
                yield record, chunks
        else:
            if granularity is Granularity.CHUNK and not whole:
                chunks = made
            for record in made:
                yield record, (record,)


def read_all(
    tasks: Iterable[Task], cutting: Cutting, workers: int
) -> Generator[tuple[Task, Batch | Outcome], None, None]:
    """Read files, in order: for each its batches, then its outcome.

    Args:
        tasks: The files.
        cutting: How they are cut.
        workers: Helper processes; 0 reads in this one.
    """
    if not workers:
        counter = make_counter(cutting.encoder)
        for task in tasks:
            for item in read_task(task, cutting, counter):
                yield task, item
        return
    stopped = threading.Event()
    every = [_Helper(cutting) for _ in range(workers)]
    free: SimpleQueue[_Helper] = SimpleQueue()
    for helper in every:
        free.put(helper)

    def run(task: Task, answers: Queue[Batch | Outcome | WorkbenchError]) -> None:
        helper = free.get()
        try:
            for item in helper.read(task):
                while not stopped.is_set():
                    try:
                        answers.put(item, timeout=0.1)
                        break
                    except Full:
                        continue
        finally:
            free.put(helper)

    waiting: deque[tuple[Task, Queue[Batch | Outcome | WorkbenchError]]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="read") as pool:
        try:
            for task in tasks:
                answers: Queue[Batch | Outcome | WorkbenchError] = Queue(_BATCHES_AHEAD)
                pool.submit(run, task, answers)
                waiting.append((task, answers))
                if len(waiting) > 2 * workers:
                    yield from _drain(*waiting.popleft())
            while waiting:
                yield from _drain(*waiting.popleft())
        finally:
            stopped.set()
            for helper in every:
                helper.close()
            pool.shutdown(wait=True, cancel_futures=True)


def _drain(
    task: Task, answers: Queue[Batch | Outcome | WorkbenchError]
) -> Generator[tuple[Task, Batch | Outcome], None, None]:
    while True:
        item = answers.get()
        if isinstance(item, WorkbenchError):
            raise item
        yield task, item
        if isinstance(item, Outcome):
            return


def make_counter(encoder: str) -> TokenCounter:
    """The token counter of an encoder; from the model's tokenizer file alone where there is one. Raises EncoderError."""
    from workbench.encode.load import load_encoder, load_tokens

    tokens = load_tokens(encoder)
    if tokens is not None:
        return TokenCounter(tokens.count, additive=tokens.additive)
    loaded = load_encoder(encoder)
    return TokenCounter(loaded.count_tokens, additive=loaded.additive)


class _Helper:
    """One helper process, started when it is first needed and again after it died."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self._seconds = float(settings.get("max_read_seconds"))
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = self._late = self._ready = False
        self._lock = threading.Lock()

    def read(self, task: Task) -> Iterator[Batch | Outcome | WorkbenchError]:
        try:
            with self._lock:
                process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            if not self._ready:
                # The tokenizer may have to be fetched: that time is not the file's.
                refusal: WorkbenchError | None = receive(process.stdout)
                if refusal is not None:
                    yield refusal
                    return
                self._ready = True
            send(process.stdin, task)
            while True:
                answer: Batch | Outcome | WorkbenchError = self._answer(process)
                yield answer
                if not isinstance(answer, tuple):
                    return
        except (BrokenPipeError, EOFError):
            yield self._died()

    def _answer(self, process: subprocess.Popen[bytes]) -> Any:
        """The next answer, or EOFError. The time counts only while this side waits, not while it makes the helper wait."""
        assert process.stdout is not None
        timer = threading.Timer(self._seconds, self._give_up, (process,))
        timer.daemon = True
        timer.start()
        try:
            return receive(process.stdout)
        finally:
            timer.cancel()

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if process is self._process:
                self._late = True
                process.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise EOFError
        if self._late and self._process is not None:
            # Time ran out between its last answer and the timer's end: that file is whole, and this one gets a new helper.
            end(self._process)
            self._process = None
        self._late = False
        if self._process is None:
            self._process = start_python("workbench.indexing.worker", stdout=subprocess.PIPE)
            self._ready = False
            assert self._process.stdin is not None
            send(self._process.stdin, self._cutting)
        return self._process

    def _died(self) -> Outcome:
        with self._lock:
            process, self._process, late = self._process, None, self._late
        code = process.wait() if process is not None else 0
        if process is not None:
            end(process)
        if late:
            return Outcome(
                FileStatus.FAILED,
                f"Its reader gave nothing for {self._seconds:g} s, the setting max_read_seconds",
                "Raise max_read_seconds, or split the file or convert it to text",
            )
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Outcome(
            FileStatus.FAILED, f"Its reader crashed ({how})", "Open and save it again, or convert it to text"
        )

    def close(self) -> None:
        """End the process; a file that it is reading is given up."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            end(process)


def send(pipe: IO[bytes], value: Any) -> None:
    """Write one value with its length before it."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    pipe.write(len(data).to_bytes(8, "little"))
    pipe.write(data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Read one value. Raises EOFError at the end of the pipe."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    size = int.from_bytes(head, "little")
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)  # nosec B301 - from our own reader process
