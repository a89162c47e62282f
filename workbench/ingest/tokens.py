"""Counting tokens in batches, with a memory for lines that come again.

Chunking asks for the lengths of many short lines, and documents repeat lines (blank ones, table borders, licence headers,
the same page in three versions), so a counter remembers short ones. Tokenizers slow down out of proportion on very long
strings (a file of 900 KB in one line took 12 seconds), so those are counted in slices. A counter is a plain callable
around another callable, and may be used for one document or for a whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

CountTokens = Callable[[Sequence[str]], list[int]]
"""Lengths of texts in the encoder's tokens: one call, one number a text, in the same order."""

_LONGEST_KEPT = 160
_MOST_KEPT = 1 << 17
_SLICE = 4096


class TokenCounter:
    """Counts tokens through another callable.

    Args:
        count: The encoder's tokenizer, not cut at its window. If it counts marks that it puts around each text (such as
            [CLS] and [SEP]), they count once for a chunk, not once for each of its lines.
        additive: Promise that a text is as long as its words are together, as with tokenizers that split at white space
            first (BERT's). Then a chunk's length is the sum of its lines' and the text is counted once, not twice.
    """

    def __init__(self, count: CountTokens, *, additive: bool = False) -> None:
        self.additive = additive
        self._count = count
        self._memo: dict[str, int] = {"": 0}
        self._around: int | None = None

    @property
    def around(self) -> int:
        """Tokens that the tokenizer puts around every text."""
        if self._around is None:
            self._around = int(self._count([""])[0])
        return self._around

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Lengths of whole texts, marks around them included; of texts over 4,096 characters the sum of their slices."""
        around = self.around
        return [length + around for length in self._lengths(texts)]

    def parts(self, texts: Sequence[str]) -> list[int]:
        """Lengths of pieces of a text, without the marks around a text."""
        memo = self._memo
        missing = list(dict.fromkeys(text for text in texts if text not in memo))
        if not missing:
            return [memo[text] for text in texts]
        fresh = dict(zip(missing, self._lengths(missing), strict=True))
        result = [fresh[text] if text in fresh else memo[text] for text in texts]
        if len(memo) + len(fresh) > _MOST_KEPT:
            memo.clear()
            memo[""] = 0
        memo.update((text, length) for text, length in fresh.items() if len(text) <= _LONGEST_KEPT)
        return result

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Lengths without the marks, long texts in slices, all in one call."""
        if not texts:
            return []
        slices: list[str] = []
        counts: list[int] = []
        for text in texts:
            before = len(slices)
            slices.extend(_slices(text))
            counts.append(len(slices) - before)
        around = self.around
        flat = iter(self._count(slices))
        return [sum(max(0, int(next(flat)) - around) for _ in range(count)) for count in counts]


def _slices(text: str) -> list[str]:
    """A text in slices of at most 4,096 characters, cut at a space where there is one."""
    if len(text) <= _SLICE:
        return [text]
    found: list[str] = []
    start = 0
    while len(text) - start > _SLICE:
        space = text.rfind(" ", start + 1, start + _SLICE)
        end = space if space > 0 else start + _SLICE
        found.append(text[start:end])
        start = end
    return [*found, text[start:]]
