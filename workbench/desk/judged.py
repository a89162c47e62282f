"""From judgments where they stand to what measures take: passages that were judged twice are one, several judges give one grade.

Of the judgments of one query and document, taken from the newest to the oldest, each joins the first passage that it is the
same as (`same_passage`), or begins one. So a passage is what was judged last, and its key in the qrels is that judgment's
place when it was given: it stays when the text moves, and figures of two generations have the same keys. Of each judge
the newest grade of a passage counts, of several judges the median, of an even number the lower of the middle two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.desk.judgments import MACHINE, Judgment, same_passage
from workbench.desk.query_sets import Query
from workbench.errors import JudgmentError
from workbench.evaluate.judgments import JudgedPassage, Judgments
from workbench.records import Span


@dataclass(frozen=True, slots=True)
class Located:
    """A judgment and where it stands now.

    Attributes:
        judgment: As given.
        document_id, path: Its document now; "" and the anchor's path where it is gone.
        span: The characters now; None where it is stale. A whole document has all of its characters.
        moved: Whether they are others than when it was judged.
    """

    judgment: Judgment
    document_id: str
    path: str
    span: Span | None
    moved: bool = False

    @property
    def stale(self) -> bool:
        """Whether the judged text is gone."""
        return self.span is None


def to_judgments(
    name: str, queries: Sequence[Query], located: Sequence[Located], judges: Sequence[str] | None = None
) -> Judgments:
    """The judgments of a set; of documents where nothing but whole documents was judged, else of passages.

    Args:
        name: Of the set.
        queries: Its queries, in their order; judgments of others are passed over.
        located: Its judgments, oldest first.
        judges: Whose grades count; None is every person's. Machines count only if named.

    Raises:
        JudgmentError: Nothing is judged by these judges.
    """
    chosen = [x for x in located if (not x.judgment.machine if judges is None else x.judgment.judge in judges)]
    asked = {q.query_id: q for q in queries}
    passages: dict[tuple[str, str], list[_Passage]] = {}
    for one in reversed(chosen):
        if one.span is not None and one.judgment.query_id in asked:
            _join(passages.setdefault((one.judgment.query_id, one.document_id), []), one)
    if not passages:
        raise _nothing(name, located, judges)
    qrels: dict[str, dict[str, int]] = {}
    judged: dict[str, list[JudgedPassage]] = {}
    order = {query_id: number for number, query_id in enumerate(asked)}
    for query_id, document_id in sorted(passages, key=lambda f: (order[f[0]], passages[f][0].path, f[1])):
        mine = qrels.setdefault(query_id, {})
        for passage in sorted(passages[query_id, document_id], key=lambda p: (p.span or Span(-1, -1), p.key)):
            key = passage.key if passage.key not in mine else f"{passage.key}@{document_id}"
            mine[key] = _median(list(passage.grades.values()))
            judged.setdefault(query_id, []).append(JudgedPassage(key, document_id, passage.path, passage.span))
    made = Judgments(
        {i: q.topic for i, q in asked.items()},
        qrels,
        name,
        (*_notes(chosen, [asked[i] for i in qrels]), *_machines(located, judges)),
        {i: tuple(found) for i, found in judged.items()},
    )
    return made if any(p.span is not None for found in judged.values() for p in found) else made.by_document()


def graded_by(located: Sequence[Located]) -> list[dict[str, int]]:
    """Each judged passage with the newest grade of each judge, machines included: what `agreement` compares.

    Args:
        located: Judgments of a set, oldest first; stale ones are passed over.
    """
    passages: dict[tuple[str, str], list[_Passage]] = {}
    for one in reversed(located):
        if one.span is not None:
            _join(passages.setdefault((one.judgment.query_id, one.document_id), []), one)
    return [dict(sorted(p.grades.items())) for found in sorted(passages) for p in passages[found]]


def _notes(chosen: Sequence[Located], queries: Sequence[Query]) -> tuple[str, ...]:
    notes = []
    stale = sum(x.stale for x in chosen)
    if stale:
        notes.append(f"{stale} judgments are stale: their text is gone from the corpus, and they were left out")
    shown = sum(q.source is not None and not q.source.hidden for q in queries)
    if shown:
        notes.append(
            f"{shown} of {len(queries)} queries were made of words that stand in the documents that answer them, and these "
            "words are searched: figures are higher than for people's own questions"
        )
    return tuple(notes)


def _machines(located: Sequence[Located], judges: Sequence[str] | None) -> tuple[str, ...]:
    """Who reads figures of a machine's grades must know how far it agrees with people."""
    from workbench.desk.machine import with_people

    notes = []
    items = graded_by(located)
    for judge in sorted({j for j in judges or () if j.startswith(MACHINE)}):
        told = with_people(items, judge)
        said = "nobody has judged any of its passages too" if told is None else told.words
        notes.append(f"Grades of {judge} count as judgments: {said}")
    return tuple(notes)


def _nothing(name: str, located: Sequence[Located], judges: Sequence[str] | None) -> JudgmentError:
    machines = sorted({x.judgment.judge for x in located if x.judgment.machine})
    remedy = "Judge some of its results on the Judge page, or import judgments"
    if machines and judges is None:
        remedy = f"Judge on the Judge page, or ask for the machine's grades by name: {', '.join(machines)}"
    whose = " of people" if judges is None else " of " + ", ".join(judges)
    stale = [
        x for x in located if x.stale and (not x.judgment.machine if judges is None else x.judgment.judge in judges)
    ]
    if stale:
        return JudgmentError(
            f"The judgments{whose} in the set {name!r} are all of documents or passages that are not in the corpus now "
            f"({stale[-1].judgment.anchor.path})",
            "Ask the corpus that they belong to, index these documents, or judge again",
        )
    return JudgmentError(f"The set {name!r} has no judgments{whose}", remedy)


class _Passage:
    """One judged passage of a query, and the newest grade of each judge."""

    def __init__(self, newest: Located) -> None:
        self.key = newest.judgment.anchor.key
        self.path = newest.path
        self.whole = newest.judgment.anchor.whole
        self.span = None if self.whole else newest.span
        self.grades: dict[str, int] = {}


def _join(groups: list[_Passage], one: Located) -> None:
    """Put a judgment, newest first, to the passage that it judges; a judge's older grade of the same passage is passed over."""
    whole = one.judgment.anchor.whole
    for group in groups:
        same = group.whole and whole
        if not same and group.span is not None and one.span is not None and not whole:
            same = same_passage(group.span, one.span)
        if same:
            group.grades.setdefault(one.judgment.judge, one.judgment.grade)
            return
    groups.append(_Passage(one))
    groups[-1].grades[one.judgment.judge] = one.judgment.grade


def _median(grades: list[int]) -> int:
    return sorted(grades)[(len(grades) - 1) // 2]
