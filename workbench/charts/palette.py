"""Colours that people with any kind of colour vision can tell apart, one a source and one a label.

The colours are those of Okabe and Ito, "Color Universal Design" (2008). A colour never stands alone: every place that uses
one also writes the name. Sources of one family (`vector@notes`, `vector:other`) share a hue and differ in lightness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.records import Label

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#8A8A8A"

SOURCES: Mapping[str, str] = {"grep": ORANGE, "keyword": SKY, "vector": GREEN}
LABELS: Mapping[Label, str] = {Label.EXACT: ORANGE, Label.SEMANTIC: GREEN, Label.HYBRID: PURPLE, Label.STRONGEST: SKY}
CUT = VERMILION


def source_colour(source: str) -> str:
    """Colour of a source, `#RRGGBB`: its family's; another encoder's or one collection's is a shade of it."""
    family, *rest = re.split("[@:]", source, maxsplit=1)
    base = SOURCES.get(family, GREY)
    if not rest:
        return base
    # A shade from the name itself, so that a source keeps its colour in every picture and in every process.
    share = 0.25 + 0.1 * (sum(rest[0].encode()) % 5)
    return _mix(base, BLUE if family == "vector" else VERMILION, share)


def _mix(one: str, other: str, share: float) -> str:
    pairs = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def luminance(colour: str) -> float:
    """Relative luminance of `#RRGGBB`, from 0 to 1 (WCAG 2.1)."""

    def linear(byte: int) -> float:
        c = byte / 255
        return c / 12.92 if c <= 0.04045 else float(((c + 0.055) / 1.055) ** 2.4)

    r, g, b = (linear(x) for x in bytes.fromhex(colour[1:]))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21 (WCAG 2.1)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
