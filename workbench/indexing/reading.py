"""Reading files into documents, records and the parts of their vectors, here or in helper processes.

A helper is a process of our own (`python -m workbench.indexing.helper`) that talks over its pipes, not a multiprocessing pool:
a pool would run the caller's script again in every child, and would hang when a reader's C library crashes. Here a crash
costs the one file, which is reported, and a new helper goes on. A helper ends by itself when its pipe closes, so a killed
run leaves none behind. Results come back in the order of the files, whatever helper was faster.
"""

from __future__ import annotations

import pickle
import subprocess
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, Any

from workbench.errors import WorkbenchError
from workbench.ingest.chunk import chunk_document
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.read import ReadDocument, read_documents
from workbench.ingest.rules import FileRules
from workbench.ingest.tokens import TokenCounter
from workbench.ingest.walk import FoundFile
from workbench.records import Chunk, Document, FileStatus, Granularity
from workbench.store.processes import end, start_python


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents are cut; picklable.

    Attributes:
        encoder: The encoder whose tokenizer counts, by name.
        budget_tokens: Most tokens of a chunk, context included.
        granularities: Collection -> granularity.
        whole: Collections with one chunk a document, without context.
    """

    encoder: str
    budget_tokens: int
    granularities: Mapping[str, Granularity] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()

    def granularity(self, collection: str) -> Granularity:
        """What a collection's records are."""
        return self.granularities.get(collection, Granularity.CHUNK)


@dataclass(frozen=True, slots=True)
class Task:
    """One file to read: what it is given and the salt of its root."""

    found: FoundFile
    rules: FileRules
    salt: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: its documents, each record with the chunks its vector is made of, or why there are none."""

    status: FileStatus
    documents: tuple[tuple[Document, tuple[tuple[Chunk, tuple[Chunk, ...]], ...]], ...] = ()
    reason: str = ""
    remedy: str = ""


def read_task(task: Task, cutting: Cutting, counter: TokenCounter) -> Outcome:
    """Read and cut one file. Every failure of the file is an outcome, none an exception."""
    documents = []
    problems: list[Problem] = []
    try:
        for item in read_documents(task.found, task.rules, task.salt):
            if isinstance(item, Problem):
                problems.append(item)
            else:
                documents.append((item.document, tuple(_records(item, cutting, counter))))
    except ReadError as exc:
        return Outcome(exc.status, (), exc.message, exc.remedy)
    except WorkbenchError as exc:
        return Outcome(FileStatus.FAILED, (), exc.message, exc.remedy)
    if not documents:
        first = problems[0] if problems else Problem("It has no text", "Nothing needs to be done")
        return Outcome(FileStatus.FAILED, (), first.reason, first.remedy)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return Outcome(FileStatus.INDEXED, tuple(documents), f"Left out: {problems[0]}"[:-1] + more, problems[0].remedy)
    return Outcome(FileStatus.INDEXED, tuple(documents))


def _records(item: ReadDocument, cutting: Cutting, counter: TokenCounter) -> Iterator[tuple[Chunk, tuple[Chunk, ...]]]:
    """The records of a document in all its collections. A whole document's vector is made of its chunks."""
    document, outline, budget = item.document, item.outline, cutting.budget_tokens
    chunks: tuple[Chunk, ...] | None = None
    for name in item.collections:
        granularity, whole = cutting.granularity(name), name in cutting.whole
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


def read_all(tasks: Iterable[Task], cutting: Cutting, workers: int) -> Generator[tuple[Task, Outcome], None, None]:
    """Read files, in order.

    Args:
        tasks: The files.
        cutting: How they are cut.
        workers: Helper processes; 0 reads in this one.
    """
    if not workers:
        counter = make_counter(cutting.encoder)
        for task in tasks:
            yield task, read_task(task, cutting, counter)
        return
    helpers: SimpleQueue[_Helper] = SimpleQueue()
    every = [_Helper(cutting) for _ in range(workers)]
    for helper in every:
        helpers.put(helper)

    def run(task: Task) -> Outcome:
        helper = helpers.get()
        try:
            return helper.read(task)
        finally:
            helpers.put(helper)

    waiting: deque[tuple[Task, Future[Outcome]]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="read") as pool:
        try:
            for task in tasks:
                waiting.append((task, pool.submit(run, task)))
                if len(waiting) > 2 * workers:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
            for helper in every:
                helper.close()


def make_counter(encoder: str) -> TokenCounter:
    """The token counter of an encoder; from the model's tokenizer file alone where there is one. Raises EncoderError."""
    from workbench.encode import hashing
    from workbench.encode.load import load_encoder

    if encoder != hashing.NAME:
        from workbench.encode.batching import Tokens
        from workbench.encode.converted import find_copy
        from workbench.encode.models import find

        model = find(encoder, download=True)
        copy = find_copy(model)
        file = (model if copy is None else copy).folder / "tokenizer.json"
        if file.is_file():
            tokens = Tokens(file, 1)
            return TokenCounter(tokens.count, additive=tokens.additive)
    loaded = load_encoder(encoder)
    return TokenCounter(loaded.count_tokens, additive=loaded.additive)


class _Helper:
    """One helper process, started when it is first needed and again after it died."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def read(self, task: Task) -> Outcome:
        try:
            with self._lock:
                process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            send(process.stdin, task)
            answer = receive(process.stdout)
        except (BrokenPipeError, EOFError):
            return self._died()
        if isinstance(answer, WorkbenchError):
            raise answer
        outcome: Outcome = answer
        return outcome

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise EOFError
        if self._process is None:
            self._process = start_python("workbench.indexing.helper", stdout=subprocess.PIPE)
            assert self._process.stdin is not None
            send(self._process.stdin, self._cutting)
        return self._process

    def _died(self) -> Outcome:
        with self._lock:
            process, self._process = self._process, None
        code = process.wait() if process is not None else 0
        if process is not None:
            end(process)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Outcome(
            FileStatus.FAILED, (), f"Its reader crashed ({how})", "Open and save it again, or convert it to text"
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
    return pickle.loads(data)
