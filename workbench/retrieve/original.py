"""The original file of a document, to draw its pages: read only where reading is allowed and the file is what was indexed.

What is drawn shows more than the stored text, so the conditions are stricter than for the text: the document is visible (the
caller has it from the store), no policy masks anything for who asks, the file lies below an allowed folder after links are
resolved, and its bytes have the digest of the day it was indexed.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from workbench.records import Document, Principal
from workbench.retrieve.engine import Engine
from workbench.retrieve.readfile import explicit_roots
from workbench.store.access.visibility import Policy


@dataclass(frozen=True, slots=True)
class Original:
    """A file's bytes, or why there are none and what to do (both without a full stop)."""

    data: bytes = b""
    reason: str = ""
    remedy: str = ""


def original(engine: Engine, principal: Principal | None, policy: Policy | None, document: Document) -> Original:
    """The bytes of a visible document's file.

    Args:
        engine: The generation that the document comes from.
        principal: Who asks.
        policy: The corpus's policy.
        document: A document that the store gave to this principal.
    """
    if policy is not None and policy.redacts(principal):
        return Original(
            reason="Parts of texts are masked for you, and a picture of the page would show them",
            remedy="Read the text, or ask somebody with the role to see all of it",
        )
    path = Path(document.root) / document.path
    roots = explicit_roots() or tuple(
        Path(os.path.realpath(r)) for r in engine.records.roots(engine.records.scope(principal, None, ()))
    )
    real = Path(os.path.realpath(path))
    if not document.root or not any(root in real.parents for root in roots):
        return Original(
            reason="The file is outside the allowed folders",
            remedy="Add its folder to the setting allowed_roots, or index the whole folder",
        )
    try:
        data = real.read_bytes()
    except OSError:
        return Original(
            reason="The file is not there any more", remedy="Index its folder again to bring the corpus up to date"
        )
    if hashlib.sha256(data).hexdigest() != document.sha256:
        return Original(
            reason="The file has changed since it was indexed", remedy="Index its folder again to see it as it is now"
        )
    return Original(data)
