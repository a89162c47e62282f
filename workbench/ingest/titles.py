"""Titles that say nothing about a document: those that programs put into its properties, and that of its contents."""

from __future__ import annotations

import re

_NOTHING = re.compile(
    r"(?i)[\W_]*(?:(?:untitled|unbenannt|anonymous|unspecified|title|titel)(?: ?(?:document|dokument|presentation|spreadsheet))?"
    r"|(?:slide|folie|page|sheet|document|book|presentation) ?\d+"
    r"|(?:power ?point|microsoft (?:power ?point|word|excel|office)) ?(?:presentation|document|worksheet)?"
    r"|microsoft (?:word|powerpoint|excel|office \w+) ?- .*"
    r"|(?:paper|document) title\b.*"
    r"|(?:table of )?contents|inhalt(?:sverzeichnis)?|table des mati\u00e8res|\u00edndice"
    r"|.*\.(?:docx?|pptx?|xlsx?|indd|tex|dvi|pdf|odt|ods|odp|rtf|pub|qxd|pmd))?[\W_]*"
)


def said_title(title: str) -> str:
    """A title as one line, or "" where it says nothing about the document."""
    words = " ".join(title.split())
    return "" if _NOTHING.fullmatch(words) else words
