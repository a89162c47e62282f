"""Query sets that come with their judgments: known items, whose one answer is where they were made."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.desk.judging import Judging, passage
from workbench.desk.judgments import KNOWN_ITEM
from workbench.desk.query_sets import JUDGING, Query, Source
from workbench.errors import JudgmentError
from workbench.evaluate.known_items import KINDS, make_known_items
from workbench.retrieve.engine import Engine

GRADE = 3


def make_known_item_set(
    judging: Judging, engine: Engine, name: str, count: int = 50, kinds: Sequence[str] = KINDS, seed: int = 0
) -> int:
    """Make a set of known-item queries with their judgments, in one transaction.

    Args:
        judging: Of the corpus.
        engine: The generation that judging is bound to.
        name: The new set.
        count: How many queries at most.
        kinds: Which kinds (`evaluate.known_items`).
        seed: Other seeds give other queries.

    Returns:
        How many queries it has.

    Raises:
        JudgmentError: There is a set of that name, or the corpus gives no such queries.
        UsageError: A kind that there is not, or a count out of bounds.
    """
    items = make_known_items(engine, judging.scope, count, kinds, seed)
    if not items:
        raise JudgmentError("No such queries can be made of these documents", "Index more text, or choose other kinds")
    numbers = sorted({i.document_number for i in items})
    documents = dict(zip(numbers, engine.records.headers(numbers), strict=True))
    queries, anchors = [], []
    for number, item in enumerate(items, 1):
        document = documents[item.document_number]
        source = Source(
            document.path, item.kind, item.used.start, item.used.end, False, document.root, document.tenant,
            document.roles, document.sensitivity, document.document_id,
        )  # fmt: skip
        queries.append(Query(f"{item.kind}-{number}", item.text, None, source))
        anchors.append(judging.anchor(item.chunk_id) if item.chunk_id else passage(document, 0, 0, ""))
    note = f"Made from the documents: {', '.join(dict.fromkeys(i.kind for i in items))}; seed {seed}"
    with judging.sets.desk.writing(JUDGING) as db:
        made = judging.sets.make(db, name, note, judging.judge)
        judging.sets.add_in(db, made, name, queries)
        for query, anchor in zip(queries, anchors, strict=True):
            judging.log.write(db, made, query.query_id, anchor, GRADE, KNOWN_ITEM)
    return len(items)
