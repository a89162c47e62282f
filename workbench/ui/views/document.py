"""Document: the whole text of one document, opened at the lines that a citation names."""

from workbench.ui import document_page, empty

document_page.draw(empty.corpus_or_help())
