"""Judgments, measures and comparison: how good is a search, and is another one better?"""
