"""Counting tokens in batches, with a memory for lines that come again.

Chunking asks for the lengths of many short lines, and documents repeat lines (blank ones, table borders, licence headers,
the same page in three versions), so a counter remembers short ones. It is a plain callable around another callable, and
may be used for one document or for a whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

CountTokens = Callable[[Sequence[str]], list[int]]
"""Lengths of texts in the encoder's tokens: one call, one number a text, in the same order."""

_LONGEST = 160
_MOST = 1 << 17


class TokenCounter:
    """Counts tokens through another callable.

    Args:
        count: The encoder's tokenizer. If it counts marks that it puts around each text (such as [CLS] and [SEP]), they
            count once for a chunk, not once for each of its lines.
        additive: Promise that a text is as long as its words are together, as with tokenizers that split at white space
            first (BERT's). Then a chunk's length is the sum of its lines' and the text is counted once, not twice.
    """

    def __init__(self, count: CountTokens, *, additive: bool = False) -> None:
        self.additive = additive
        self._count = count
        self._memo: dict[str, int] = {"": 0}
        self._around: int | None = None

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Lengths of whole texts, marks around them included."""
        return [int(n) for n in self._count(list(texts))] if texts else []

    @property
    def around(self) -> int:
        """Tokens that the tokenizer puts around every text."""
        if self._around is None:
            self._around = int(self._count([""])[0])
        return self._around

    def parts(self, texts: Sequence[str]) -> list[int]:
        """Lengths of pieces of a text, without the marks around a text."""
        memo = self._memo
        missing = list(dict.fromkeys(text for text in texts if text not in memo))
        if missing:
            around = self.around
            fresh = dict(zip(missing, (max(0, int(n) - around) for n in self._count(missing)), strict=True))
            if len(memo) + len(fresh) > _MOST:
                memo.clear()
                memo[""] = 0
            memo.update((text, n) for text, n in fresh.items() if len(text) <= _LONGEST)
            return [fresh[text] if text in fresh else memo[text] if text in memo else self._one(text) for text in texts]
        return [memo[text] for text in texts]

    def _one(self, text: str) -> int:
        return max(0, int(self._count([text])[0]) - self.around)
