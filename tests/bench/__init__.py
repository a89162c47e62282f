"""Speed on this machine, with the peers beside it in the same run.

A figure without its machine, corpus, version and rival says little, so each row names them: the workbench and its peers
answer the same questions in turn (A B A B), warm, and the table gives both medians and their ratio, which a busy machine
distorts less than it does either of them. `corpora` makes the corpus (once; it is kept), `ground` opens it and draws the
questions, `rows` lists and measures them (`peers`, `processes` and `pages` help), `figures` holds what comes out.
"""
