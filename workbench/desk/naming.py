"""Documents by the names that other programs' judgments know them by, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.desk.judging import Judging, passage
from workbench.desk.judgments import Anchor
from workbench.evaluate.judgments import Judgments
from workbench.evaluate.run import words
from workbench.records import Document


def anchors(judging: Judging, names: Sequence[str]) -> tuple[Mapping[str, Anchor], tuple[str, ...]]:
    """Whole documents by name: path, document id, a record's own id, url.

    Returns:
        An anchor for each name, and the names that mean no visible document now: their anchors have the name as path, and
        find the document once it is there.
    """
    spelled = {name: words(name) for name in names}  # another program's `%20` may be its document's own
    found = _headers(judging, [*names, *(other for name, other in spelled.items() if other != name)])
    found = {name: found[n] for name, other in spelled.items() for n in (other, name) if n in found}
    made = {
        name: passage(found[name], 0, 0, "") if name in found else Anchor(name, tenant=judging.tenant) for name in names
    }
    return made, tuple(name for name in names if name not in found)


def own_ids(judging: Judging, paths: Sequence[str]) -> Mapping[str, str]:
    """Path -> own id of the records among visible documents; an id that two of them have is left out."""
    return _own_ids(_headers(judging, paths))


def other_names(judging: Judging, names: Sequence[str]) -> Mapping[str, str]:
    """Path, document id and own id of visible documents -> which of some names they are known by; an own id that two of them
    have is left out.
    """
    found = _headers(judging, names)
    own = {other: name for name, other in _own_ids(found).items()}
    return own | {other: name for name, d in found.items() for other in (d.document_id, d.path)}


def _own_ids(found: Mapping[str, Document]) -> Mapping[str, str]:
    own = {name: str(d.metadata.get("record_id") or "") for name, d in found.items()}
    counts: dict[str, int] = {}
    for other in own.values():
        counts[other] = counts.get(other, 0) + 1
    return {name: other for name, other in own.items() if other and counts[other] == 1}


def with_own_ids(judging: Judging, judgments: Judgments) -> Judgments:
    """Judgments of documents with a record's own id in place of its path: the name that others know it by."""
    names = own_ids(judging, sorted(judgments.document_keys))
    qrels = {i: {names.get(k, k): g for k, g in found.items()} for i, found in judgments.qrels.items()}
    return replace(judgments, qrels=qrels)


def _headers(judging: Judging, names: Sequence[str]) -> Mapping[str, Document]:
    numbers = judging.records.numbers_named(names, judging.scope) if names else {}
    first = {name: found[0] for name, found in numbers.items()}
    wanted = sorted(set(first.values()))
    headers = dict(zip(wanted, judging.records.headers(wanted), strict=True))
    return {name: headers[number] for name, number in first.items()}
