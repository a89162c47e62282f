"""Whether a faster copy of a model still is that model: vectors of a fixed set of texts, compared one by one.

The worst text counts, not the mean: a conversion that is right for most inputs and wrong for long ones, for empty ones or
for another script has a fine mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST = 0.999
"""A copy agrees when the cosine of its worst text is at least this."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How near a copy's vectors are to the model's own: cosines over `texts` texts."""

    worst: float
    mean: float
    texts: int

    @property
    def passed(self) -> bool:
        """True when the worst text agrees."""
        return self.worst >= LEAST

    def __str__(self) -> str:
        return f"worst cosine {self.worst:.6f}, mean {self.mean:.6f}, over {self.texts} texts (at least {LEAST} needed)"


def agreement(reference: NDArray[np.float32], vectors: NDArray[np.float32]) -> Agreement:
    """Compare two sets of vectors of the same texts, float32 (n, dim). NaN and other shapes agree with nothing."""
    if reference.shape != vectors.shape:
        return Agreement(-1.0, -1.0, len(reference))
    a, b = np.asarray(reference, np.float64), np.asarray(vectors, np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b))
    products = np.einsum("ij,ij->i", a, b)
    usable = np.isfinite(products) & np.isfinite(lengths) & (lengths > 0)
    cosines = np.where(usable, products / np.where(usable, lengths, 1.0), -1.0)
    return Agreement(float(cosines.min()), float(cosines.mean()), len(cosines))


_SENTENCES = (
    "Retries wait longer after each failure and stop after the fifth.",
    "Please send invoice ACME-INV-49302 again; the total of 1,204.50 was wrong.",
    "def parse(line: str) -> dict[str, int]:\n    key, _, value = line.partition('=')\n    return {key: int(value)}",
    "SELECT path, count(*) FROM records WHERE tenant = ? GROUP BY path ORDER BY 2 DESC LIMIT 10;",
    "The patient's temperature rose to 39.4 °C on the second day, then fell.",
    "| name | type | default |\n|---|---|---|\n| limit | int | 10 |\n| depth | int | auto |",
    "Der Rückgabewert ist leer, wenn die Datei fehlt; sonst enthält er den Text.",
    "La función devuelve una lista vacía si no encuentra nada.",
    "Cette page décrit les réglages, leurs bornes et leurs valeurs par défaut.",
    "Индекс строится заново после каждого изменения словаря.",
    "検索結果は関連度の高い順に並びます。",
    "搜索结果按相关性排序。",
    "खोज के परिणाम प्रासंगिकता के क्रम में हैं।",
    "نتائج البحث مرتبة حسب الصلة.",
    "https://example.org/a/b?c=d&e=f#g and C:\\Users\\me\\notes.txt",
    "Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'limit'",
    "s(\"bd*2 hh\").note('c3 e3').lpf(800)",
    "WARNING!!! DISK 97% FULL ON /dev/sda1",
    "🙂 thanks, that fixed it 🎉",
    "2024-02-29T23:59:59Z, 1e-9, 0x7fff, 3.14159, -42, ½, №7, x²",
)


def texts() -> tuple[str, ...]:
    """The fixed texts: empty, one letter, words, code, tables, other scripts, and every length up to beyond the limit."""
    whole = " ".join(_SENTENCES)
    lengths = tuple(
        whole[start : start + size] for start, size in ((0, 90), (40, 250), (90, 500), (200, 800), (300, 1100))
    )
    beyond = (whole * 3, "word " * 700, "a" * 3000)
    return ("", " ", "a", "?", "retry", "how do retries work", *_SENTENCES, *lengths, *beyond)
