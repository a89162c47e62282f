"""Runs that other programs made: the TREC form read, and its names taken for those that the judgments use.

A run holds no texts, only names of documents, so it can be measured beside plans wherever judgments are of documents.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workbench.errors import JudgmentError
from workbench.evaluate.judgments import Judgments
from workbench.evaluate.reading import Draft, one_spaced, text_of
from workbench.evaluate.run import Named, Run, is_own, spoken, words

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def load_run(path: str | Path, *, name: str | None = None) -> Run:
    """Read a run in the TREC form: `query Q0 document rank score name`, one line a document.

    As programs that read runs do, the score decides the order, the greatest first; equal scores stay in the order of their
    ranks. A name of a document may hold spaces.

    Args:
        path: The file.
        name: What to call the run; None is the name that its lines have, or the file's where they have several.

    Returns:
        Rankings of the names that the file spells (`%20` is a space); `evaluate_run` of a corpus and `as_judged` take them
        for documents.

    Raises:
        JudgmentError: The file cannot be read, holds no line, or has a line that is no line of a run; nothing of it is used then.
    """
    file = Path(path)
    found: dict[str, dict[str, tuple[float, int, int]]] = {}
    tags: dict[str, None] = {}
    draft = Draft()
    for line, row in enumerate(text_of(file).split("\n"), 1):
        if not row.strip():
            continue
        head, tail = row.split(None, 2), row.rsplit(None, 3)
        if len(row.split()) < 6:
            draft.fault(file, line, "there are fewer than 6 fields: query, Q0, document, rank, score, name")
            continue
        if head[1] != "Q0" and "Q0" in row.split()[2:-4]:
            draft.fault(file, line, "the query's id has a space: write %20 in its place")
            continue
        query_id, document = spoken(head[0]), spoken(head[2].rsplit(None, 3)[0])
        rank, score = _number(tail[1]), _number(tail[2])
        if rank is None:
            draft.fault(file, line, f"the rank {tail[1]!r} is no number")
        elif score is None:
            draft.fault(file, line, f"the score {tail[2]!r} is no number")
        elif document in found.setdefault(query_id, {}):
            first = found[query_id][document][2]
            draft.fault(file, line, f"query {query_id!r} has {document!r} in line {first} already")
        else:
            found[query_id][document] = (-score, int(rank), line)
            tags[spoken(tail[3].strip())] = None
    draft.check("nothing of the run was used")
    if not found:
        raise JudgmentError(
            f"{file} holds no line of a run", "Give a file of lines: query, Q0, document, rank, score, name"
        )
    own = next(iter(tags)) if len(tags) == 1 else file.stem
    rankings = {i: tuple(sorted(documents, key=documents.__getitem__)) for i, documents in found.items()}
    return Run(rankings, name if name is not None else own)


def _number(text: str) -> float | None:
    """A finite number as programs write them: Python alone reads `1_000` and digits of other scripts."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None


def as_judged(run: Run, judgments: Judgments, also: Mapping[str, str] | None = None) -> Run:
    """A run by the names that judgments use, so that `score_run` can measure it.

    Args:
        run: With names as `load_run` gives them, or as a file spells them.
        judgments: Of documents. Names that they do not use stay as they are: not judged.
        also: Other names -> document keys of the judgments, such as records' own ids.

    Returns:
        The run; a document that it names in two ways counts at its first place. It warns where queries of the run are not
        among those judged, and counts them.
    """
    others = dict(also or {})
    documents: dict[str, str] = {}
    for spelled in (_alike, spoken, words, str):  # the most exact last: it goes before the others
        documents |= {spelled(other): key for other, key in others.items()}
    for spelled in (_alike, spoken, words, str):
        documents |= {spelled(key): key for key in sorted(judgments.document_keys)}
    alike = {_alike(i): i for i in judgments.query_ids}
    queries = {spelled(i): i for spelled in (spoken, words, str) for i in judgments.query_ids}
    answered = {alike[name]: i for i in run.rankings if (name := _alike(i)) in alike}
    answered |= {queries[i]: i for i in run.rankings if i in queries}
    rankings = {
        query_id: tuple(
            dict.fromkeys(
                document
                for key in run.rankings[i]
                if not is_own(
                    judgments,
                    query_id,
                    Named(name := _alike(key), document := documents.get(key, documents.get(name, key))),
                )
            )
        )
        for query_id, i in answered.items()
    }
    left = len(run.rankings) - len(rankings)
    said = (f"{left} of {len(run.rankings)} queries of the run are not judged and were left out",) if left else ()
    return replace(run, rankings=rankings, warnings=(*run.warnings, *said))


def _alike(name: str) -> str:
    """What names have in common that programs spell in different letters: in NFC, with one space where there are several."""
    return one_spaced(unicodedata.normalize("NFC", spoken(name)))
