"""Reading, embedding and writing on Ray: `workbench index --ray local`, or the address of a cluster.

Ray runs the same functions elsewhere: files are read and cut by tasks, texts embedded by actors with one encoder each, blocks of
records written to Milvus by tasks. Each takes a few items at once and no more are made than are worked on (back-pressure).
A worker or node that dies costs a retry, which is Ray's: what a task gives depends on nothing but what it was given. Vectors go
into the one journal under the hash of their text and records to Milvus under their number, so nothing is there twice; this
process alone writes DuckDB. A run that was killed goes on where it stopped, as one without Ray does.

Every node sees the folders under the same paths, has the same version of the workbench, and the models of the encoders.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.errors import CorpusError, UsageError
from workbench.indexing.reading import Batch, Cutting, Texts, make_counter, read_task
from workbench.indexing.state import Task
from workbench.records import FileReport, FileStatus
from workbench.store.milvus.remote import Remote
from workbench.store.milvus.write import Block, Written, write_block

LOCAL = "local"

_FILES_AT_ONCE = 16
_BYTES_AT_ONCE = 4_000_000
_AHEAD = 2  # items given to a worker beside the one that it works on

Item = TypeVar("Item")


class Cluster:
    """A Ray cluster for one run: this machine's cores, or those at an address."""

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError as exc:
            raise UsageError(
                "Ray is not installed", "Run: pip install 'hybrid-retrieval-workbench[ray]', or leave out --ray"
            ) from exc
        # Workers have the settings of this process.
        known = {
            n: v for n, v in os.environ.items() if n.startswith(settings.PREFIX) or n in ("HF_HUB_OFFLINE", "HF_HOME")
        }
        own = {"num_cpus": int(settings.get("threads"))} if address == LOCAL else {"address": address}
        try:
            ray.init(**own, runtime_env={"env_vars": known}, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as exc:
            raise UsageError(
                f"There is no Ray cluster at {address!r}: {str(exc).partition(chr(10))[0]}",
                "Start one with `ray start --head`, or write --ray local",
            ) from exc
        self._ray = ray
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def close(self) -> None:
        self._ray.shutdown()

    def read_all(
        self, tasks: Iterable[Task], cutting: Cutting
    ) -> Generator[tuple[Task, Batch | FileReport], None, None]:
        """As `reading.read_all`: for each file, in order, its batches, then its outcome."""
        read = self._ray.remote(max_retries=2)(_read)
        limit = float(settings.get("max_read_seconds"))
        for group, answer in self._flow(_groups(tasks), lambda group: read.remote(group, cutting)):
            try:
                found = self._ray.get(answer, timeout=limit * len(group))
            except self._ray.exceptions.RayError:
                # Something in the group ends its worker each time: one by one, to know which.
                found = [self._alone(read, task, cutting, limit) for task in group]
            for task, items in zip(group, found, strict=True):
                yield from ((task, item) for item in items)

    def _alone(self, read: Any, task: Task, cutting: Cutting, limit: float) -> list[Batch | FileReport]:
        answer = read.options(max_retries=1).remote([task], cutting)
        try:
            return list(self._ray.get(answer, timeout=limit)[0])
        except self._ray.exceptions.RayError as exc:
            slow = isinstance(exc, self._ray.exceptions.GetTimeoutError)
            if slow:
                self._ray.cancel(answer, force=True)
            reason = (
                f"Its reader gave nothing for {limit:g} s, the setting max_read_seconds"
                if slow
                else "Its reader crashed"
            )
            return [
                FileReport(task.found.path, FileStatus.FAILED, reason, "Open and save it again, or convert it to text")
            ]

    def embed(self, encoder: str, batches: Iterable[Texts]) -> Generator[tuple[Texts, NDArray[np.float32]], None, None]:
        """The vectors of each batch, float32 (m, dim), in the order of the batches."""
        # Without a claim on cores: an actor whose node has died finds a place at once.
        made = self._ray.remote(max_restarts=-1, max_task_retries=-1, num_cpus=0, scheduling_strategy="SPREAD")(
            _Encoder
        )
        actors = [made.remote(encoder) for _ in range(max(1, self.workers // int(settings.get("threads"))))]
        turn = cycle(actors)
        try:
            for batch, answer in self._flow(batches, lambda batch: next(turn).encode.remote(batch[2]), len(actors)):
                yield batch, self._got(answer)
        finally:
            for actor in actors:
                self._ray.kill(actor)

    def write(self, blocks: Iterable[Block], remote: Remote, mean_length: float) -> Iterator[Written]:
        """Write blocks of records to Milvus, by many at once; a file of milvus-lite belongs to this process alone."""
        if "://" not in remote.uri:
            yield from (write_block(block, remote, mean_length) for block in blocks)
            return
        write = self._ray.remote(max_retries=5)(write_block)
        for _, answer in self._flow(blocks, lambda block: write.remote(block, remote, mean_length)):
            yield self._got(answer)

    def _got(self, answer: Any) -> Any:
        try:
            return self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as exc:
            raise exc.cause from exc  # as it was raised there
        except self._ray.exceptions.RayError as exc:
            raise CorpusError(
                f"Ray gave the work up: {str(exc).partition(chr(10))[0]}",
                "Run the same command again: what was embedded is kept",
            ) from exc

    def _flow(
        self, items: Iterable[Item], submit: Callable[[Item], Any], workers: int = 0
    ) -> Iterator[tuple[Item, Any]]:
        """Items with what was submitted for them, in order, a few more submitted than there are workers."""
        waiting: deque[tuple[Item, Any]] = deque()
        for item in items:
            waiting.append((item, submit(item)))
            if len(waiting) > (1 + _AHEAD) * (workers or self.workers):
                yield waiting.popleft()
        yield from waiting


def _read(group: Sequence[Task], cutting: Cutting) -> list[list[Batch | FileReport]]:
    counter = make_counter(cutting.encoder)
    return [list(read_task(task, cutting, counter)) for task in group]


class _Encoder:
    """One encoder, in a process of its own."""

    def __init__(self, name: str) -> None:
        from workbench.encode.load import load_encoder

        self._encoder = load_encoder(name)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encoder.encode(texts)


def _groups(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Neighbouring files that are read together."""
    group: list[Task] = []
    size = 0
    for task in tasks:
        if group and (len(group) >= _FILES_AT_ONCE or size + task.found.size > _BYTES_AT_ONCE):
            yield group
            group, size = [], 0
        group.append(task)
        size += task.found.size
    if group:
        yield group
