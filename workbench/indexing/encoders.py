"""Which encoders a run gives its corpus, and what another choice than the corpus's own costs.

The first encoder is the corpus's own (`vector`) and its tokenizer cuts; each other one is a source `vector:NAME`. A new one
needs every text again, so all folders of the corpus are read, but texts that have a vector of an older encoder are not
embedded for that one again. Leaving one out needs nothing: its vectors are not carried over.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from workbench import settings
from workbench.errors import EncoderError, EncoderMismatch
from workbench.indexing.roots import inside
from workbench.indexing.state import IndexOptions, Previous, Run
from workbench.records import EncoderIdentity
from workbench.store.build import vector_key


def choose_encoders(options: IndexOptions, previous: Previous) -> tuple[tuple[str, EncoderIdentity], ...]:
    """Name and identity of the run's encoders, none of them loaded.

    A list is exactly what the corpus is to have. One name alone may be the corpus's own: then it keeps the others.
    """
    held = [name for name, _ in previous.own_encoders]
    chosen = _known(options.encoders or held or [str(settings.get("encoder"))])
    if held and [name for name, _ in chosen] == held[:1] and (not options.encoder or isinstance(options.encoder, str)):
        chosen = _known(held)
    return chosen


def settle_encoders(run: Run, asked: tuple[str, ...]) -> dict[str, str]:
    """Compare the run's encoders with the corpus's: what has to be read again, and what the report says of it.

    Returns:
        Other paths of the corpus that are to be read, with how they were walked; none unless an encoder is new.

    Raises:
        EncoderMismatch: They are to be read, and one is not there.
    """
    held, wanted = _keys(run.previous.own_encoders), _keys(run.encoders)
    names = {key: name for key, (name, _) in zip(wanted, run.encoders, strict=True)}
    if run.previous.pin is not None:
        new = [names[key] for key in wanted if key not in held]
        gone = sorted(identity.name for key, identity in run.previous.encoders.items() if key not in wanted)
        run.anew = bool(new) or wanted[0] != held[0]
        run.fewer = bool(gone)
        other = [name for name in new if name in gone]
        added = [name for name in new if name not in gone]
        left = [name for name in gone if name not in new]
        if other:
            run.warnings.append(f"{', '.join(other)} has other weights now: every text was embedded for it again")
        if wanted[0] != held[0] and names[wanted[0]] not in other:
            run.warnings.append(
                f"The corpus now has the encoder {', '.join(names.values())}: texts without a vector of it were embedded"
            )
        elif added:
            run.warnings.append(
                f"The corpus now has the encoder {', '.join(added)} too: every text was embedded for it"
            )
        if left:
            run.warnings.append(f"The corpus no longer has the encoder {', '.join(left)}: its vectors are gone")
    budget = min(int(settings.get("chunk_tokens")), run.encoders[0][1].max_tokens)
    for name, identity in run.encoders[1:]:
        if identity.max_tokens < budget:
            run.warnings.append(
                f"{name} reads the first {identity.max_tokens} tokens of a chunk, and chunks have up to {budget};"
                " set chunk_tokens to fit both"
            )
    return other_targets(asked, run.previous) if run.anew else {}


def _known(names: Sequence[str]) -> tuple[tuple[str, EncoderIdentity], ...]:
    """Encoders by the names that they have themselves, so that one which is named in two ways is there once."""
    identities = (_identity(name) for name in dict.fromkeys(names))
    return tuple({vector_key(identity): (identity.name, identity) for identity in identities}.values())


def _identity(name: str) -> EncoderIdentity:
    """Who an encoder is; it is loaded only where its files do not say (the first time on a machine)."""
    from workbench.encode.load import identity_of, load_encoder

    try:
        identity = identity_of(name)
    except EncoderError:
        return load_encoder(name).identity  # fetches one that is not on this machine yet
    known = identity.runtime and identity.dim and identity.max_tokens
    return identity if known else load_encoder(name).identity


def _keys(encoders: Sequence[tuple[str, EncoderIdentity]]) -> list[str]:
    return [vector_key(identity) for _, identity in encoders]


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
