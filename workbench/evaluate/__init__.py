"""Judgments, measures and comparisons."""
