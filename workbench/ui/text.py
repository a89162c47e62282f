"""The pages' way to `workbench.markup`: text from documents as HTML that shows it and does nothing else."""

from workbench.markup import LONGEST_LINE, Excerpt, Line, attribute, cut, excerpt, lines_of, marked, plain, visible

__all__ = ["LONGEST_LINE", "Excerpt", "Line", "attribute", "cut", "excerpt", "lines_of", "marked", "plain", "visible"]
