"""Optional help from models around a search: rewriting the query before it, reranking its top afterwards."""
