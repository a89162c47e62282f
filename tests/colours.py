"""The contrast of two colours, for tests of pages and pictures."""

from __future__ import annotations


def luminance(colour: str) -> float:
    """Relative luminance of `#RRGGBB`, from 0 to 1 (WCAG 2.1)."""
    parts = (byte / 255 for byte in bytes.fromhex(colour[1:]))
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return float(0.2126 * r + 0.7152 * g + 0.0722 * b)


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21 (WCAG 2.1)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
