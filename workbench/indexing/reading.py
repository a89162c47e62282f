"""Reading files into documents, records and the parts of their vectors, here or in helper processes.

A helper is a process of our own (`serve`) at the other end of a connection, not a multiprocessing
pool: a pool would run the caller's script again in every child, and would hang when a reader's C library crashes. Here a crash
costs the one file, which is reported, and a new helper goes on; so does a reader that loops (`max_read_seconds`) or eats the
memory (`max_read_memory_mb`). A helper ends by itself when its connection closes, so a killed run leaves none behind. Results
come back in the order of the files, whatever helper was faster, a batch of documents at a time: a file of a hundred thousand
records is never held as a whole.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.indexing.state import Task
from workbench.ingest.chunking import TokenCounter, chunk_document
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.read import ReadDocument, read_documents
from workbench.ingest.rules import DEFAULT_GRANULARITIES
from workbench.records import Chunk, Document, FileReport, FileStatus, Granularity

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
        ocr: Languages in which words of pictures are recognised; "": they are not.
    """

    encoder: str
    budget_tokens: int
    granularities: Mapping[str, Granularity] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    new_whole: bool = False
    ocr: str = ""

    def granularity(self, collection: str) -> Granularity:
        return self.granularities.get(collection, DEFAULT_GRANULARITIES.get(collection, Granularity.CHUNK))

    def is_whole(self, collection: str) -> bool:
        return collection in self.whole or (self.new_whole and collection not in self.granularities)


Record = tuple[Chunk, tuple[Chunk, ...]]
"""A record, and the chunks that its vector is made of."""

Batch = tuple[tuple[Document, tuple[Record, ...]], ...]
"""Some documents of a file with their records."""


Texts = tuple[Sequence[str], Sequence[int], Sequence[str]]
"""Hashes, tokens and texts that are embedded together."""


def read_task(
    task: Task, cutting: Cutting, counter: TokenCounter, alive: Callable[[], None] = lambda: None
) -> Iterator[Batch | FileReport]:
    """Read and cut one file: batches, then how that ended, with the time that it took without waiting for whoever takes the
    documents. A failure of the file is reported so and is no exception. `alive` is called while a reader is busy for long.
    """
    batch: list[tuple[Document, tuple[Record, ...]]] = []
    problems: list[Problem] = []
    held, some = 0, False
    failure: WorkbenchError | None = None
    started, spent = time.perf_counter(), 0.0
    try:
        for item in read_documents(task.found, task.rules, task.salt, ocr=cutting.ocr, alive=alive):
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
    yield FileReport(task.found.path, *_outcome(some, problems, failure), seconds=spent)


def _outcome(some: bool, problems: Sequence[Problem], failure: WorkbenchError | None) -> tuple[FileStatus, str, str]:
    """Status, reason and remedy: INDEXED perhaps with a reason (what was left out), or why there is nothing."""
    if failure is not None:
        if some:
            return FileStatus.INDEXED, f"Left out from some place on: {failure.message}", failure.remedy
        status = failure.status if isinstance(failure, ReadError) else FileStatus.FAILED
        return status, failure.message, failure.remedy
    if not problems:
        return FileStatus.INDEXED, "", ""
    first = next((problem for problem in problems if problem.loses), problems[0])
    where = f"line {first.line}: " if first.line is not None else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    left = "Left out: " if some and first.loses else ""
    status = FileStatus.INDEXED if some else FileStatus.FAILED
    return status, f"{left}{where}{first.reason}{more}", first.remedy


def _records(item: ReadDocument, cutting: Cutting, counter: TokenCounter) -> Iterator[Record]:
    """The records of a document in all its collections. A whole document's vector is made of its chunks."""
    document, outline, budget = item.document, item.outline, cutting.budget_tokens
    chunks: tuple[Chunk, ...] = ()
    for name in item.collections:
        granularity, whole = cutting.granularity(name), cutting.is_whole(name)
        made = chunk_document(document, outline, name, granularity, budget, counter, one_chunk=whole)
        if granularity is Granularity.DOCUMENT and not whole:
            chunks = chunks or chunk_document(document, outline, name, Granularity.CHUNK, budget, counter)
            yield from ((record, chunks) for record in made)
        else:
            if not whole:
                chunks = made
            yield from ((record, (record,)) for record in made)


def read_all(
    tasks: Iterable[Task], cutting: Cutting, workers: int
) -> Generator[tuple[Task, Batch | FileReport], None, None]:
    """Read files, in order, in that many helper processes (0: in this one): for each its batches, then how that ended."""
    if not workers:
        counter = make_counter(cutting.encoder)
        for task in tasks:
            for item in read_task(task, cutting, counter):
                yield task, item
        return
    left = iter(tasks)
    jobs: deque[_Job] = deque()
    helpers = [_Helper(cutting) for _ in range(workers)]
    try:
        while True:
            for helper in helpers:
                if helper.job is None and len(jobs) <= 2 * workers and (following := next(left, None)):
                    jobs.append(_Job(following))
                    helper.give(jobs[-1])
            if not jobs:
                return
            first = jobs[0]
            if not first.answers:
                _listen([h for h in helpers if h.job and (h.job is first or len(h.job.answers) < _BATCHES_AHEAD)])
                continue
            answer = first.answers.popleft()
            if isinstance(answer, WorkbenchError):
                raise answer
            yield first.task, answer
            if isinstance(answer, FileReport):
                jobs.popleft()
    finally:
        for helper in helpers:
            helper.close()


def _listen(helpers: Sequence[_Helper]) -> None:
    """Take an answer of each helper that has one; one that has been silent for too long is ended."""
    most = float(settings.get("max_read_seconds"))
    now = time.monotonic()
    ready = wait([h.connection for h in helpers], max(0.0, min(h.heard for h in helpers) + most - now))
    for helper in helpers:
        if helper.connection in ready:
            helper.receive()
        elif time.monotonic() - helper.heard >= most:
            helper.end(
                f"Its reader gave nothing for {most:g} s, the setting max_read_seconds",
                "Raise max_read_seconds, or split the file or convert it to text",
            )


def make_counter(encoder: str) -> TokenCounter:
    """The token counter of an encoder; from the model's tokenizer file alone where there is one. Raises EncoderError."""
    from workbench.encode.load import load_encoder, load_tokens

    tokens = load_tokens(encoder)
    if tokens is not None:
        return TokenCounter(tokens.count, additive=tokens.additive)
    loaded = load_encoder(encoder)
    return TokenCounter(loaded.count_tokens, additive=loaded.additive)


@dataclass(slots=True, eq=False)
class _Job:
    """A file that was given to a helper, and its answers that nobody has taken yet."""

    task: Task
    answers: deque[Batch | FileReport | WorkbenchError] = field(default_factory=deque)


class _Helper:
    """One helper process, started again for the next file after it died. `heard` is when it last gave or took something."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self.job: _Job | None = None
        self.heard = 0.0
        self._start()

    def _start(self) -> None:
        self.connection, theirs = Pipe()
        package = str(Path(__file__).resolve().parents[2])
        self.process: subprocess.Popen[bytes] | None = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))},
            start_new_session=True,  # Ctrl-C goes to the run, which ends its helpers itself
        )
        theirs.close()
        self._ready = False

    def give(self, job: _Job) -> None:
        self.job = job
        if self.process is None:
            self._start()
        try:
            if not self._ready:
                # The tokenizer may have to be fetched: that time is not the file's.
                self.connection.send(self._cutting)
                refusal: WorkbenchError | None = self.connection.recv()
                if refusal is not None:
                    self._answer(refusal)
                    return
                self._ready = True
            self.connection.send(job.task)
            self.heard = time.monotonic()
        except (EOFError, OSError):
            self.end()

    def receive(self) -> None:
        try:
            self._answer(self.connection.recv())
        except (EOFError, OSError):
            self.end()

    def _answer(self, item: Batch | FileReport | WorkbenchError) -> None:
        self.heard = time.monotonic()
        if self.job is not None and item != ():  # an empty batch says only that it is alive
            self.job.answers.append(item)
            if not isinstance(item, tuple):
                self.job = None

    def end(self, reason: str = "", remedy: str = "Open and save it again, or convert it to text") -> None:
        """Give its file up, because it is to be killed or has died."""
        if self.process is not None and not reason:
            code = self.process.wait()
            reason = f"Its reader crashed ({f'signal {-code}' if code < 0 else f'exit code {code}'})"
        self.close()
        if self.job is not None:
            self._answer(FileReport(self.job.task.found.path, FileStatus.FAILED, reason, remedy))

    def close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            self.connection.close()


def _limit_memory(megabytes: int) -> None:
    """Let this process take no more than that beyond what it has, in units of 2**20 bytes.

    What counts is private writable memory (`RLIMIT_DATA`): mapped files and reserved addresses cost nothing. Python then
    raises MemoryError; a C library may end the process. Either costs the one file.
    """
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii", errors="replace").splitlines() if status.exists() else []
    held = next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:")), 0)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = held + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def serve() -> None:
    """A helper process, until its connection ends. It is sent a `Cutting`, which it answers by None or by the error that ends the
    run (the tokenizer cannot be loaded); then `Task`s, each answered by batches and a `FileReport`.
    """
    connection: Connection[Batch | FileReport | WorkbenchError | None, Cutting | Task] = Connection(int(sys.argv[1]))
    try:
        cutting = connection.recv()
        assert isinstance(cutting, Cutting)
        try:
            counter = make_counter(cutting.encoder)
        except WorkbenchError as exc:
            connection.send(exc)
            return
        _limit_memory(int(settings.get("max_read_memory_mb")))
        connection.send(None)
        while True:
            task = connection.recv()
            assert isinstance(task, Task)
            for item in read_task(task, cutting, counter, lambda: connection.send(())):
                connection.send(item)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
