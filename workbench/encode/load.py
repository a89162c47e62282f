"""Loading an encoder: once in a process, when it is first asked for, with the fastest runtime that is still the model.

`auto` takes the OpenVINO copy when it agrees with torch, else torch, and then says why in the encoder's notes. `openvino`
insists on the copy and fails where it does not agree; `torch` never makes one. A static embedding is a table, which numpy
reads whatever the runtime.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from cachetools import LRUCache

from workbench import settings
from workbench.encode.hashing import IDENTITY, NAME, HashingEncoder
from workbench.encode.models import Model, find
from workbench.encode.protocol import Encoder, Tokens
from workbench.encode.static import StaticEncoder, find_static, static_identity
from workbench.errors import EncoderError
from workbench.records import EncoderIdentity

_RUNTIMES = ("auto", "openvino", "torch")


@dataclass(slots=True)
class _Slot:
    """One encoder of this process and the lock under which it is loaded."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    encoder: Encoder | None = None


_MOST_KEPT = 4
_slots: LRUCache[tuple[str, ...], _Slot] = LRUCache(_MOST_KEPT)
"""The last ones asked for: a model that no open corpus holds any more is let go of when four others were asked for."""
_slots_lock = threading.Lock()


def load_encoder(name: str | None = None, runtime: str | None = None) -> Encoder:
    """The encoder of that name (`hashing`, `all-MiniLM-L6-v2`, a folder or a name on the hub; None: the setting `encoder`),
    loaded if it is not yet, with that runtime (`auto`, `openvino` or `torch`; None: the setting `encoder_runtime`). Safe from
    several threads; all get the same one.

    Raises EncoderError where there is no such model, a package is missing, or it cannot be loaded or run.
    """
    wanted = name or str(settings.get("encoder"))
    how = runtime or str(settings.get("encoder_runtime"))
    if how not in _RUNTIMES:
        raise EncoderError(f"There is no encoder runtime {how!r}", "The runtimes are " + ", ".join(_RUNTIMES))
    # Found and digested each time: a model that was changed on disk is another model.
    model = None if wanted == NAME else find(wanted, download=True)
    key: tuple[str, ...] = (NAME,)
    if model is not None:
        key = (model.name, str(model.folder), model.digest, model.configuration, how, str(settings.cache_dir()))
    with _slots_lock:
        slot = _slots.setdefault(key, _Slot())
    with slot.lock:
        if slot.encoder is None or slot.encoder.closed:
            slot.encoder = HashingEncoder() if model is None else _load(model, how)
        return slot.encoder


def load_tokens(name: str) -> Tokens | None:
    """The tokenizer of an encoder (see `load_encoder`) without its model, to count with; None where it has no file of its own.
    Raises EncoderError."""
    from workbench.encode.openvino_copy import find_copy

    if name == NAME:
        return None
    model = find(name, download=True)
    static = find_static(model)
    if static is not None:
        return Tokens(static.tokenizer, 1, special=False)
    file = (find_copy(model) or model).folder / "tokenizer.json"
    return Tokens(file, 1) if file.is_file() else None


def identity_of(name: str | None = None) -> EncoderIdentity:
    """Who an encoder (see `load_encoder`) would be, from its files: milliseconds, and nothing is loaded or fetched.

    Name and digest are exact. Dimensions and longest input are those of the converted copy, or what the configuration
    files say (0 where they do not). The runtime is "" where loading has yet to decide it. Raises EncoderError where there is
    no such model on this machine.
    """
    from workbench.encode import sentence
    from workbench.encode.openvino_copy import find_copy

    wanted = name or str(settings.get("encoder"))
    if wanted == NAME:
        return IDENTITY
    model = find(wanted, download=False)
    static = find_static(model)
    if static is not None:
        return static_identity(model, static)
    how, copy = str(settings.get("encoder_runtime")), find_copy(model)
    dim, longest = model.guess() if copy is None else (copy.dim, copy.max_tokens)
    runtime = ""
    if how == "torch" or (copy is not None and not copy.agrees):
        runtime = sentence.runtime()
    elif copy is not None:
        runtime = copy.runtime
    return EncoderIdentity(model.name, model.digest, runtime, dim, longest)


def _load(model: Model, how: str) -> Encoder:
    from workbench.encode.openvino_copy import OpenVINOEncoder, find_copy, import_openvino, make_copy
    from workbench.encode.sentence import SentenceEncoder

    static = find_static(model)
    if static is not None:
        return StaticEncoder(model, static)
    if how == "torch":
        return SentenceEncoder(model)
    try:
        import_openvino()
        copy = find_copy(model) or make_copy(model)
        if copy.agrees:
            return OpenVINOEncoder(model, copy)
        reason = f"its copy does not agree with torch (worst cosine {copy.worst:.6f})"
    except ImportError as exc:
        reason = f"OpenVINO cannot be imported ({exc})"
    except EncoderError as exc:
        reason = exc.message
    if how == "openvino":
        raise EncoderError(
            f"OpenVINO cannot replace the model {model.name}: {reason}", "Set encoder_runtime to auto or torch"
        )
    return SentenceEncoder(model, (f"torch runs the model {model.name}, slower than OpenVINO would: {reason}",))
