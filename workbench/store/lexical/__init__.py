"""Keyword search: words, queries, postings in DuckDB, BM25."""
