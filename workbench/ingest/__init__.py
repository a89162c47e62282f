"""From files to documents and chunks.

`walk` finds files, `rules` says what each is given, `read` reads one file into documents, `chunking` cuts them. Nothing here
knows of stores, encoders or runs; the tokenizer is passed in.
"""
