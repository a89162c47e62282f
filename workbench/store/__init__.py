"""A corpus on disk: immutable generations that many processes read at once."""
