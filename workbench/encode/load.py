"""Loading an encoder: once in a process, when it is first asked for, with the fastest runtime that is still the model.

`auto` takes the OpenVINO copy when it agrees with torch (see `agreement`), else torch, and then says why in the encoder's
notes. `openvino` insists on the copy and fails where it does not agree; `torch` never makes one. A static embedding is a
table, which numpy reads whatever the runtime.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from cachetools import LRUCache

from workbench import settings
from workbench.encode.batching import Tokens
from workbench.encode.hashing import IDENTITY as HASHING
from workbench.encode.hashing import NAME as HASHING_NAME
from workbench.encode.hashing import HashingEncoder
from workbench.encode.models import Model, find
from workbench.encode.protocol import Encoder
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
    """The encoder of that name, loaded if it is not yet. Safe from several threads; all get the same one.

    Args:
        name: `hashing`, `all-MiniLM-L6-v2`, a folder or a name on the hub; None is the setting `encoder`.
        runtime: `auto`, `openvino` or `torch`; None is the setting `encoder_runtime`.

    Raises:
        EncoderError: There is no such model, a package is missing, or it cannot be loaded or run.
    """
    wanted = name or str(settings.get("encoder"))
    how = runtime or str(settings.get("encoder_runtime"))
    if how not in _RUNTIMES:
        raise EncoderError(f"There is no encoder runtime {how!r}", "The runtimes are " + ", ".join(_RUNTIMES))
    if wanted == HASHING_NAME:
        key: tuple[str, ...] = (HASHING_NAME,)
        model = None
    else:
        # Found and digested each time: a model that was changed on disk is another model.
        model = find(wanted, download=True)
        key = (model.name, str(model.folder), model.digest, model.configuration, how, str(settings.cache_dir()))
    with _slots_lock:
        slot = _slots.setdefault(key, _Slot())
    with slot.lock:
        if slot.encoder is None or getattr(slot.encoder, "closed", False):
            encoder = HashingEncoder() if model is None else _load(model, how)
            # The first inference of a process must be alone: OpenVINO's binding sets itself up in it, and two at once
            # wait for each other for ever (one for the interpreter's lock, the other for the set-up).
            encoder.encode_query("first")
            slot.encoder = encoder
        return slot.encoder


def load_tokens(name: str) -> Tokens | None:
    """An encoder's tokenizer without its model, to count with; None where it has no file of its own. Raises EncoderError.

    Args:
        name: As in `load_encoder`.
    """
    if name == HASHING_NAME:
        return None
    model = find(name, download=True)
    static = find_static(model)
    if static is not None:
        return Tokens(static.tokenizer, 1, special=False)
    from workbench.encode.openvino_copy import find_copy

    copy = find_copy(model)
    file = (model if copy is None else copy).folder / "tokenizer.json"
    return Tokens(file, 1) if file.is_file() else None


def identity_of(name: str | None = None) -> EncoderIdentity:
    """Who an encoder would be, from its files: milliseconds, and nothing is loaded or fetched.

    Name and digest are exact. Dimensions and longest input are those of the converted copy, or what the configuration
    files say (0 where they do not). The runtime is "" where loading has yet to decide it.

    Args:
        name: As in `load_encoder`.

    Raises:
        EncoderError: There is no such model on this machine.
    """
    wanted = name or str(settings.get("encoder"))
    if wanted == HASHING_NAME:
        return HASHING
    model = find(wanted, download=False)
    static = find_static(model)
    if static is not None:
        return static_identity(model, static)
    from workbench.encode import sentence
    from workbench.encode.openvino_copy import find_copy

    how = str(settings.get("encoder_runtime"))
    dim, longest = model.guess()
    runtime = sentence.runtime() if how == "torch" else ""
    copy = find_copy(model)
    if copy is not None:
        dim, longest = copy.dim, copy.max_tokens
        checks = list(copy.checks().values())
        if how != "torch" and len(checks) == 1:
            precision, figures = checks[0]
            runtime = f"openvino {copy.version} {precision}" if figures.passed else sentence.runtime()
    return EncoderIdentity(model.name, model.digest, runtime, dim, longest)


def _load(model: Model, how: str) -> Encoder:
    static = find_static(model)
    if static is not None:
        return StaticEncoder(model, static)
    from workbench.encode.sentence import SentenceEncoder

    if how == "torch":
        return SentenceEncoder(model)
    try:
        fast, reason = _try_openvino(model)
    except EncoderError as exc:
        fast, reason = None, exc.message
    if fast is not None:
        return fast
    if how == "openvino":
        raise EncoderError(
            f"OpenVINO cannot replace the model {model.name}: {reason}", "Set encoder_runtime to auto or torch"
        )
    return SentenceEncoder(model, (f"torch runs the model {model.name}, slower than OpenVINO would: {reason}",))


def _try_openvino(model: Model) -> tuple[Encoder | None, str]:
    """The OpenVINO encoder if it may stand in for the model, or the reason why not."""
    from workbench.encode.openvino_copy import OpenVINOEncoder, find_copy, import_openvino, make_copy
    from workbench.encode.sentence import SentenceEncoder

    try:
        import_openvino()
    except ImportError as exc:
        return None, f"OpenVINO cannot be imported ({exc})"
    copy = find_copy(model)
    if copy is None:
        copy = make_copy(model, SentenceEncoder(model))
    encoder = OpenVINOEncoder(model, copy)
    figures = encoder.agreement()
    if figures.passed:
        return encoder, ""
    encoder.close()
    return None, f"its copy does not agree with torch ({figures})"
