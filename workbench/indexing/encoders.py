"""What another choice of encoders than the corpus's own costs.

The first encoder is the corpus's own (`vector`) and its tokenizer cuts; each other one is a source `vector:NAME`. A new one
needs every text again, so all folders of the corpus are read, but texts that have a vector of an older encoder are not
embedded for that one again. Leaving one out needs nothing: its vectors are not carried over.
"""

from __future__ import annotations

import os
import shlex

from workbench import settings
from workbench.errors import EncoderMismatch
from workbench.indexing.roots import inside
from workbench.indexing.state import Previous, Run
from workbench.store.build import vector_key


def settle_encoders(run: Run, asked: tuple[str, ...]) -> dict[str, str]:
    """Compare the run's encoders with the corpus's: what has to be read again, and what the report says of it.

    Returns:
        Other paths of the corpus that are to be read, with how they were walked; none unless an encoder is new.

    Raises:
        EncoderMismatch: They are to be read, and one is not there.
    """
    held = [vector_key(identity) for _, identity in run.previous.own_encoders]
    names = {vector_key(identity): name for name, identity in run.encoders}
    if run.previous.pin is not None:
        main = next(iter(names))
        new = [name for key, name in names.items() if key not in held]
        gone = sorted(identity.name for key, identity in run.previous.encoders.items() if key not in names)
        run.anew, run.fewer = bool(new) or main != held[0], bool(gone)
        other = ", ".join(name for name in new if name in gone)
        added = ", ".join(name for name in new if name not in gone)
        left = ", ".join(name for name in gone if name not in new)
        if other:
            run.warnings.append(f"{other} has other weights now: every text was embedded for it again")
        if main != held[0] and not (names[main] in new and names[main] in gone):
            run.warnings.append(
                f"The corpus now has the encoder {', '.join(names.values())}: texts without a vector of it were embedded"
            )
        elif added:
            run.warnings.append(f"The corpus now has the encoder {added} too: every text was embedded for it")
        if left:
            run.warnings.append(f"The corpus no longer has the encoder {left}: its vectors are gone")
    budget = min(int(settings.get("chunk_tokens")), run.encoders[0][1].max_tokens)
    for name, identity in run.encoders[1:]:
        if identity.max_tokens < budget:
            run.warnings.append(
                f"{name} reads the first {identity.max_tokens} tokens of a chunk, and chunks have up to {budget};"
                " set chunk_tokens to fit both"
            )
    return other_targets(asked, run.previous) if run.anew else {}


def other_targets(asked: tuple[str, ...], previous: Previous, *, there: bool = False) -> dict[str, str]:
    """Every folder and file of the corpus outside `asked`, with how it was walked: those that are there, or all of them, because
    records of folders that nobody asked for would lack a vector. Raises EncoderMismatch where one of all is not there.
    """
    paths = {root.root: root.options for root in previous.roots.values() if root.whole}
    for folder, name in sorted(previous.files):
        root = previous.roots[folder]
        if not root.whole:
            paths[os.path.join(folder, name)] = root.options
    also = {path: how for path, how in sorted(paths.items()) if not any(inside(path, target) for target in asked)}
    missing = [path for path in also if not os.path.exists(path)]
    if missing and not there:
        raise EncoderMismatch(
            f"All texts must be embedded again for another encoder, and {missing[0]} is not there",
            f"Bring it back, or take it out first: workbench remove {shlex.quote(missing[0])}",
        )
    return {path: how for path, how in also.items() if path not in missing}
