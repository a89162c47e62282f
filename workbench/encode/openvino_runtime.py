"""The encoder that runs a model's OpenVINO copy: four to five times torch's fp32, and no torch to import.

Each stream has one core: two batches on two cores are faster than one batch on both, and the bits are the same either
way. Batches hold texts of one length (see `batching`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.encode.agreement import Agreement, agreement, texts
from workbench.encode.batching import WINDOW, Batch, Tokens, batches, features
from workbench.encode.converted import Converted, import_openvino
from workbench.encode.models import Model
from workbench.encode.protocol import Meter, Tell, Vectors, unit
from workbench.errors import EncoderError
from workbench.records import EncoderIdentity

BATCH = 8


class OpenVINOEncoder:
    """An `Encoder` that runs an OpenVINO copy on the CPU.

    Args:
        model: The model it is a copy of.
        copy: The copy.

    Raises:
        EncoderError: OpenVINO cannot read or compile it.
    """

    def __init__(self, model: Model, copy: Converted) -> None:
        openvino = import_openvino()
        threads = int(settings.get("threads"))
        self._queue = openvino.AsyncInferQueue
        self._name = model.name
        self._copy = copy
        self._jobs = threads
        self._idle: deque[Any] = deque()
        self._tokens = Tokens(copy.folder / "tokenizer.json", copy.max_tokens)
        try:
            core = openvino.Core()
            self.processor = str(core.get_property("CPU", "FULL_DEVICE_NAME"))
            self._compiled: Any = core.compile_model(
                core.read_model(str(copy.folder / "model.xml")),
                "CPU",
                {"NUM_STREAMS": str(threads), "INFERENCE_NUM_THREADS": threads},
            )
            self.precision = _precision(self._compiled)
        except RuntimeError as exc:
            raise EncoderError(
                f"OpenVINO cannot run its copy of {model.name}: {_first_line(exc)}", "Set encoder_runtime to torch"
            ) from exc
        self.additive = self._tokens.additive
        self.notes: tuple[str, ...] = ()
        runtime = f"openvino {copy.version} {self.precision}"
        self.identity = EncoderIdentity(model.name, model.digest, runtime, copy.dim, copy.max_tokens)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._compiled is None

    def agreement(self) -> Agreement:
        """How well the copy agrees with torch on this processor: as recorded, else measured and recorded."""
        recorded = self._copy.checks().get(self.processor)
        if recorded is not None and recorded[0] == self.precision:
            return recorded[1]
        figures = agreement(self._copy.reference(), self.encode(texts()))
        try:
            self._copy.write_check(self.processor, self.precision, figures)
        except OSError:
            return figures  # a cache that cannot be written: measured again at the next start
        return figures

    def encode(self, texts: Sequence[str], progress: Tell | None = None) -> Vectors:
        """Vectors of documents, float32 (n, dim). See `Encoder.encode`."""
        compiled = self._open()
        result = np.zeros((len(texts), self.identity.dim), np.float32)
        finished: deque[Batch] = deque()

        def keep(request: Any, work: tuple[int, Batch]) -> None:
            start, batch = work
            result[[start + row for row in batch.rows]] = unit(request.get_output_tensor(0).data)
            finished.append(batch)

        queue = self._queue(compiled, self._jobs)
        queue.set_callback(keep)
        tokens = 0
        meter: Meter | None = None
        for start in range(0, len(texts), WINDOW):
            cut = self._tokens.cut([self._copy.prompts[0] + text for text in texts[start : start + WINDOW]])
            tokens = sum(len(ids) for ids, _ in cut)
            if meter is None:  # later windows are taken to be like the first
                meter = Meter(progress, len(texts), tokens * len(texts) // len(cut))
            try:
                for batch in batches(cut, BATCH):
                    queue.start_async(features(batch, self._copy.inputs), (start, batch))
                    _report(meter, finished)
                queue.wait_all()
            except RuntimeError as exc:
                raise EncoderError(
                    f"OpenVINO failed with the model {self._name}: {_first_line(exc)}", "Set encoder_runtime to torch"
                ) from exc
            _report(meter, finished)
        return result

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Vector of a query, float32 (dim,)."""
        compiled = self._open()
        batch = next(batches(self._tokens.cut([self._copy.prompts[1] + text]), 1))
        try:
            request = self._idle.pop()
        except IndexError:
            request = compiled.create_infer_request()
        try:
            request.infer(features(batch, self._copy.inputs))
        except RuntimeError as exc:
            raise EncoderError(
                f"OpenVINO failed with the model {self._name}: {_first_line(exc)}", "Set encoder_runtime to torch"
            ) from exc
        vector: NDArray[np.float32] = unit(request.get_output_tensor(0).data)[0]
        if not self.closed:
            self._idle.append(request)
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Lengths in the model's tokens, special ones included, nothing cut."""
        return self._tokens.count(texts)

    def close(self) -> None:
        """Let go of the model."""
        self._compiled = None
        self._idle.clear()

    def _open(self) -> Any:
        compiled = self._compiled
        if compiled is None:
            raise EncoderError(f"The encoder {self._name} is closed", "Load it again with load_encoder")
        return compiled


def _report(meter: Meter, finished: deque[Batch]) -> None:
    while finished:
        batch = finished.popleft()
        meter.add(len(batch.rows), batch.tokens)


def _precision(compiled: Any) -> str:
    """`bf16`, `fp16` or `fp32`: what this processor calculates in."""
    name = str(compiled.get_property("INFERENCE_PRECISION_HINT"))
    for short, spelling in (("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32")):
        if spelling in name:
            return short
    return name.strip("<>'").rpartition("'")[2] or name


def _first_line(exc: Exception) -> str:
    return str(exc).strip().splitlines()[-1] if str(exc).strip() else type(exc).__name__
