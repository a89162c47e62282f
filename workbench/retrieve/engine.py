"""What the pipeline needs of a corpus: one generation's stores, and an encoder when a vector source runs.

The service makes one from an open corpus; tests make small ones by hand.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.store.protocols import GrepIndex, LexicalIndex, RecordStore, VectorIndex
from workbench.store.vocabulary import Vocabulary


class Engine(Protocol):
    """One pinned generation.

    Attributes:
        served: Plans come from others, and name only models that the setting `allowed_models` lists.
    """

    served: bool

    @property
    def generation(self) -> str:
        """Id of the generation."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The synonyms and stop words that `lexical` reads queries with."""

    @property
    def records(self) -> RecordStore:
        """Documents and records."""

    @property
    def lexical(self) -> LexicalIndex:
        """The word index."""

    @property
    def grep(self) -> GrepIndex:
        """The line index."""

    def vectors(self, encoder: str) -> VectorIndex:
        """The vectors of one encoder ("" is the corpus's own). Raises WorkbenchError where there are none."""

    def embed(self, text: str, encoder: str) -> NDArray[np.float32]:
        """A query as a vector, float32 (dim,), by that encoder. Raises WorkbenchError where it cannot run."""

    def left_out(self, text: str, encoder: str) -> str:
        """A sentence where that encoder, which embedded the text, read only its beginning; else ""."""
