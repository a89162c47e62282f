"""Reads configuration keys and warns where the same key comes in two spellings."""

from __future__ import annotations

import re


def snake_case_name(name: str) -> str:
    """`snakeCaseName` as `snake_case_name`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def double_spellings(keys: list[str]) -> list[tuple[str, str]]:
    """Pairs of keys that differ in spelling only, in the order of the list."""
    seen: dict[str, str] = {}
    pairs = []
    for key in keys:
        plain = snake_case_name(key)
        if plain in seen and seen[plain] != key:
            pairs.append((seen[plain], key))
        seen.setdefault(plain, key)
    return pairs
