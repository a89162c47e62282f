"""Corpus: what is indexed, what could not be, and a run started from here."""

from workbench.ui import corpus_page

corpus_page.draw()
