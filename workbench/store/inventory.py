"""What the visible documents of a generation came from: a row for each indexed folder, and for folders of single files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from workbench.store.columns import Columns
from workbench.store.copies import Copy
from workbench.store.database import Database, fetch, fetch_columns
from workbench.store.types import Scope, Source


def sources(connection: Database, arrays: Columns, scope: Scope, copies: Sequence[Copy] = ()) -> list[Source]:
    """One row for each root that holds visible documents or copies of some, by path.

    Args:
        connection: The generation's database.
        arrays: Its mapped columns.
        scope: What is visible; only `visible` masks are used.
        copies: The visible copies.
    """
    names = arrays.names["roots"]
    whole = {row[0] for row in fetch(connection, "SELECT root FROM roots WHERE whole")}
    codes = np.asarray(arrays.documents["root"], np.int64)
    seen = np.ones(len(codes), bool) if scope.visible_documents is None else scope.visible_documents
    owners = np.asarray(arrays.records["document_number"], np.int64)
    if scope.visible is not None:
        owners = owners[scope.visible]
    documents = np.bincount(codes[seen], minlength=len(names))
    chunks = np.bincount(codes[owners], minlength=len(names))
    sizes = np.bincount(codes[seen], weights=arrays.documents["size"][seen], minlength=len(names))
    rows = fetch_columns(connection, "SELECT epoch(modified) AS at FROM documents ORDER BY number")
    times = np.asarray(rows["at"], np.float64)
    copied = Counter(copy.root for copy in copies)
    made = []
    for code, name in enumerate(names):
        if documents[code]:
            own = times[seen & (codes == code) & np.isfinite(times)]
            newest = datetime.fromtimestamp(float(own.max()), UTC) if len(own) else None
            kind = "folder" if name in whole else "files"
            counts = int(documents[code]), int(chunks[code]), int(sizes[code])
            made.append(Source(name, kind, *counts, newest, copied.pop(name, 0)))
    for name, number in copied.items():
        made.append(Source(name, "folder" if name in whole else "files", 0, 0, 0, None, number))
    return sorted(made, key=lambda source: source.path)
