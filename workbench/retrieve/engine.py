"""An open generation with the encoder of this process: what the pipeline asks of a corpus."""

from __future__ import annotations

import copy
import json
import threading
import weakref
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.encode.load import load_encoder
from workbench.encode.protocol import Encoder
from workbench.ranking.adapt import Adaptation, fit, sample
from workbench.records import Principal, principal_key
from workbench.store.access.visibility import Policy
from workbench.store.lexical.search import LexicalIndex
from workbench.store.lexical.synonyms import NONE, Vocabulary
from workbench.store.reader import Generation
from workbench.store.types import Scope, Vectors

if TYPE_CHECKING:
    from workbench.store.grep.search import MappedGrep
    from workbench.store.records import StoredRecords

_KEPT_VECTORS = 64
_BULK_SAMPLE, _BULK_FEWEST = 400, 200
_KEPT_ADAPTATIONS = 4  # some 3 MB each
NOT_ADAPTED = frozenset({"hashing", "static"})
"""Runtimes of encoders whose vectors are sums over words: on seven judged collections adapting to the corpus brought them
+.001 (hashing) and +.005 (a table of word vectors), and neither is clear of 0."""


class Engine:
    """One pinned generation with the encoder of this process.

    Attributes:
        opened: The generation.
        principal: Who asks; None is the local owner.
        policy: What decides what the principal sees beyond tenant and roles; None shows everything.
        served: Plans come from others: they name only models of the setting `allowed_models`.
        vocabulary: The synonyms and stop words that the word index reads queries with.
    """

    def __init__(
        self,
        generation: Generation,
        encoder: str | None,
        policy: Policy | None = None,
        principal: Principal | None = None,
        *,
        served: bool = False,
    ) -> None:
        self.opened, self.policy, self.served, self.vocabulary = generation, policy, served, NONE
        # Where the policy masks texts for the principal, records, lines and words leave the store masked.
        self._masks = policy is not None and policy.redacts(principal)
        self._masked: tuple[StoredRecords, MappedGrep, LexicalIndex] | None = None
        self.principal, self._encoder = principal, encoder
        self._models: dict[str, Encoder] = {}
        self._embedded: LRUCache[tuple[str, str], NDArray[np.float32]] = LRUCache(_KEPT_VECTORS)
        self._adaptations: LRUCache[tuple[str, bytes | None], Adaptation | None] = LRUCache(_KEPT_ADAPTATIONS)
        self._lock, self._adapting = threading.Lock(), threading.Lock()
        self._first: Engine | None = None
        self._bulks: dict[str, float] = {}
        # A result fetches rows when they are first read, perhaps after its corpus moved on: the generation stays open
        # until the last engine and result that hold it are gone.
        weakref.finalize(self, generation.close)

    @property
    def key(self) -> str:
        """Names the corpus's state for the principal: generation, policy, rules and who asks. For caches of what it answers."""
        return json.dumps([str(self.opened.folder.absolute()), self.access, principal_key(self.principal)])

    @property
    def access(self) -> str:
        """Names the policy and the rules that decide who sees what (`StoredRecords.access_name`)."""
        return self.opened.records.access_name

    @property
    def generation(self) -> str:
        return self.opened.id

    def speaking(self, vocabulary: Vocabulary) -> Engine:
        """The same generation under another vocabulary. A result keeps the engine, and so the vocabulary, it was made with."""
        if vocabulary == self.vocabulary:
            return self
        other = copy.copy(self)
        other._first = self._first or self  # keeps the generation open: only the first one closes it
        other.vocabulary = vocabulary
        return other

    @property
    def records(self) -> StoredRecords:
        return self._shown()[0] if self._masks else self.opened.records

    @property
    def visible(self) -> Scope:
        """Everything that the principal may see. Raises PrincipalRequired."""
        return self.records.scope(self.principal, None, ())

    @property
    def grep(self) -> MappedGrep:
        return self._shown()[1] if self._masks else self.opened.grep

    @property
    def lexical(self) -> LexicalIndex:
        """The word index, read with the vocabulary."""
        return (self._shown()[2] if self._masks else self.opened.lexical).speaking(self.vocabulary)

    def _shown(self) -> tuple[StoredRecords, MappedGrep, LexicalIndex]:
        """Records, lines and words behind the policy, made once."""
        from workbench.store.access.redaction import RedactedGrep, RedactedRecords, Redactor, ShownPostings

        with self._lock:
            if self._masked is None:
                assert self.policy is not None
                records, grep = self.opened.records, self.opened.grep
                redactor = Redactor(records, grep, self.policy, self.principal)
                shown = RedactedRecords(records, redactor)
                lexical = self.opened.lexical.shown_by(shown, lambda inner: ShownPostings(inner, records, redactor))
                self._masked = shown, RedactedGrep(grep, redactor), lexical
            return self._masked

    def vectors(self, encoder: str) -> Vectors:
        """The vectors of one encoder. Raises EncoderMismatch, CorpusDamaged."""
        return self.opened.vectors(encoder)

    def adaptation(self, encoder: str, scope: Scope) -> Adaptation | None:
        """What the vectors of one encoder have in common, over the records that the scope's principal may see; None where these
        are too few, or the encoder is one of `NOT_ADAPTED`. Measured once, and kept. Raises as `vectors`.
        """
        if self.vectors(encoder).identity.runtime.partition(" ")[0] in NOT_ADAPTED:
            return None
        key = (encoder, None if scope.visible is None else scope.visible.tobytes())
        with self._adapting:
            if key not in self._adaptations:
                index = self.vectors(encoder)
                seen = np.arange(len(index)) if scope.visible is None else np.flatnonzero(scope.visible)
                numbers = seen[sample(len(seen))]
                self._adaptations[key] = fit(index.vectors(numbers), numbers)
            return self._adaptations[key]

    def bulk(self, encoder: str) -> float:
        """The cosine that one in twenty pairs of visible passages reach, by a sample spread over them: where what is not related
        begins. -1 for fewer than 200 passages. Kept.
        """
        if encoder not in self._bulks:
            visible = self.visible.visible
            numbers = np.arange(self.records.records_total) if visible is None else np.flatnonzero(visible)
            chosen = numbers[np.linspace(0, len(numbers) - 1, min(_BULK_SAMPLE, len(numbers))).astype(np.int64)]
            rows = self.vectors(encoder).vectors(chosen)
            pairs = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
            self._bulks[encoder] = float(np.quantile(pairs, 0.95)) if len(numbers) >= _BULK_FEWEST else -1.0
        return self._bulks[encoder]

    def embed(self, text: str, encoder: str) -> NDArray[np.float32]:
        """A query as a vector, float32 (dim,), read-only; the last few are kept, so that the same query under another k1 or
        in another column embeds nothing. Raises EncoderError, EncoderMismatch.
        """
        with self._lock:
            kept = self._embedded.get((encoder, text))
            if kept is not None:
                return kept
            model = self._models.get(encoder)
            # The encoder is the process's, and whoever holds it may have closed it: then it is loaded again.
            if model is None or getattr(model, "closed", False):
                name = self._encoder or self.opened.vectors(encoder).identity.name
                model = load_encoder(name)
                self.opened.check_encoder(model.identity, encoder)
                self._models[encoder] = model
        vector = model.encode_query(text)
        vector.flags.writeable = False
        with self._lock:
            self._embedded[(encoder, text)] = vector
        return vector

    def forget_embedded(self) -> None:
        """Embed every query again from now on: what is timed then has no head start."""
        with self._lock:
            self._embedded.clear()

    def left_out(self, text: str, encoder: str) -> str:
        """A sentence where that encoder, which embedded the text, read only its beginning; else ""."""
        model = self._models.get(encoder)
        if (
            model is None or len(text) < model.identity.max_tokens - 2
        ):  # a token has a character, or is one of two marks
            return ""
        longest, tokens = model.identity.max_tokens, model.count_tokens([text])[0]
        part = f"The query has {tokens:,} tokens, and {model.identity.name} read only the first {longest:,}"
        return "" if tokens <= longest else f"{part}; shorten it to search by all of it"
