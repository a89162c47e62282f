"""Judging on an open corpus: judgments where they are in this generation, for who may see them.

`Corpus.judging` makes one, bound to the corpus's database, principal and generation. It turns hits into anchors when somebody
grades, and anchors into spans of today's documents when judgments are read, listed or measured; `judgments` states the rules.
Nothing is kept in between: an indexing run or another judge shows at the next call.

Of the judgments of one query and document, taken from the newest to the oldest, each joins the first passage that it is the
same as (`same_passage`), or begins one. So a passage is what was judged last, and its key in the qrels is that judgment's
place when it was given: it stays when the text moves, and figures of two generations have the same keys. Of each judge
the newest grade of a passage counts, of several judges the median, of an even number the lower of the middle two.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from cachetools import LRUCache

from workbench.errors import JudgmentError
from workbench.judgments.agreement import with_people
from workbench.judgments.formats import words
from workbench.judgments.log import MACHINE, Anchor, Judgment, JudgmentLog, find_again, same_passage
from workbench.judgments.qrels import JudgedPassage, Judgments, inherits
from workbench.judgments.query_sets import SEARCH, Query, QuerySet, QuerySets, checked, query_id_of
from workbench.records import Document, Granularity, Principal, Span
from workbench.saved.database import Database
from workbench.settings import login
from workbench.store.access.visibility import Access, Policy, SeeAll, visible
from workbench.store.records import StoredRecords
from workbench.store.types import Scope

_BATCH = 500
_EVERYTHING = Scope()
# Pages ask at every run, and counting thousands of judgments takes a good part of a second.
_overviews: LRUCache[tuple[object, ...], tuple[QuerySet, ...]] = LRUCache(16)
_lock = threading.Lock()


class Judging:
    """Query sets and judgments of one open corpus. Safe from several threads.

    Args:
        principal: Who asks; None is the local owner.

    Attributes:
        judge: Who judges, where a call does not say.
    """

    def __init__(
        self,
        database: Database,
        records: StoredRecords,
        principal: Principal | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.principal = principal
        self.tenant = None if principal is None else principal.tenant
        self.sets = QuerySets(database, self.tenant)
        self.log = JudgmentLog(self.sets)
        self.judge = login() or "somebody"
        self.records = records
        self._policy: Policy = policy or SeeAll()

    @cached_property
    def scope(self) -> Scope:
        """What the principal may see."""
        return self.records.scope(self.principal, None, ())

    # --- query sets ----------------------------------------------------------------------------------------------------

    def overview(self) -> tuple[QuerySet, ...]:
        """The sets, the newest first, with the numbers of queries and judgments that the principal sees."""
        seen = (self.sets.database.path, self.records.generation, self.scope.key, self.sets.stamp())
        with _lock:
            kept = _overviews.get(seen)
        if kept is None:
            kept = tuple(
                replace(s, queries=len(self.queries(s.name)), judgments=self._count(s.name))
                for s in self.sets.overview()
            )
            with _lock:
                _overviews[seen] = kept
        return kept

    def _count(self, name: str) -> int:
        """How many valid judgments of a set the principal sees; no text is read unless a policy masks some."""
        valid = self.log.valid(name)
        return len(self.locate(valid)) if self.records.masks else len(self._shown([j.anchor for j in valid])[0])

    def queries(self, name: str) -> tuple[Query, ...]:
        """The queries of a set, without those that were made from documents that the principal does not see."""
        found = self.sets.queries(name)
        sources = [q.source for q in found if q.source is not None]
        unknown = {
            s.path for s in sources if not s.root
        }  # made before roots were kept: every document of the path counts
        named = self.records.numbers_named(sorted(unknown), _EVERYTHING) if unknown else {}
        anchors = [Anchor(s.path, s.root, s.tenant, 0, 0, "", s.roles, s.sensitivity, s.document_id) for s in sources]
        shown, owner, _ = self._shown(anchors)
        allowed = {
            sources[p]
            for p in shown
            if sources[p].root and not (self.records.masks and (p not in owner or self._masked([owner[p]])))
        }
        for source in sources:
            own = named.get(source.path, ())
            if own and all(map(self._sees, own)) and not (self.records.masks and self._masked(own)):
                allowed.add(source)
        if name == SEARCH:
            # What somebody typed and graded: it may say what is in the documents that it was graded for.
            valid = self.log.valid(name)
            graded = {valid[p].query_id for p in self._shown([j.anchor for j in valid])[0]}
            graded |= {q.query_id for q in found} - {j.query_id for j in valid}
            found = tuple(q for q in found if q.query_id in graded)
        return tuple(q for q in found if q.source is None or q.source in allowed)

    def query(self, set: str, text: str, keywords: str | None = None) -> Query | None:
        """The query of a set that is asked so; in a set that somebody made also with other keywords. None where it has none."""
        if set not in self.sets.names():
            return None
        asked = checked(Query("", text, keywords))
        same = [
            q for q in self.queries(set) if q.text == asked.text and (set != SEARCH or q.keywords == asked.keywords)
        ]
        return next((q for q in same if q.keywords == asked.keywords), next(iter(same), None))

    def _sees(self, number: int) -> bool:
        seen = self.scope.visible_documents
        return seen is None or bool(seen[number])

    def _masked(self, numbers: Sequence[int]) -> bool:
        """Whether the principal sees one of some documents with something masked."""
        return bool(self.records.masked(np.array(numbers, np.int64)).any())

    # --- grading -------------------------------------------------------------------------------------------------------

    def anchor(self, hit: Any) -> Anchor:
        """What a hit, or a chunk id, is a judgment of: its characters, or its whole document where it is one."""
        chunk_id = hit if isinstance(hit, str) else hit.chunk_id
        number = self.records.find_record(chunk_id, self.scope)
        if number is None:
            raise JudgmentError("This passage is not in the corpus any more", "Search again, and grade what is found")
        row = self.records.rows([number])[0]
        document = self.records.headers([row.document_number])[0]
        whole = row.chunk.granularity is Granularity.DOCUMENT
        start, end, quote = (0, 0, "") if whole else (row.chunk.start, row.chunk.end, row.chunk.text)
        return passage(document, start, end, quote)

    def grade(
        self,
        hit: Any,
        grade: int,
        query: str | Query,
        *,
        keywords: str | None = None,
        set: str = SEARCH,
        judge: str | None = None,
        note: str = "",
    ) -> Judgment:
        """Grade a hit of a query; it is on the disk when this returns.

        A set `search` is made when it is first needed, and a query that it lacks is added; other sets must be there, and hold
        the query. `judge`: Who judges; None is this object's judge.
        """
        anchor = self.anchor(hit)
        asked = checked(query if isinstance(query, Query) else Query("", query, keywords))
        if set == SEARCH:
            before = self.sets.queries(SEARCH) if SEARCH in self.sets.names() else ()
            known = {(q.text, q.keywords): q for q in before}
            kept = known.get((asked.text, asked.keywords))
            if kept is None and any(q.query_id == asked.query_id for q in known.values()):
                asked = replace(
                    asked, query_id=f"{asked.query_id}-{query_id_of(asked.keywords or '')[1:]}"
                )  # other keywords
            asked = kept or asked
            self.sets.add(SEARCH, [asked], make=True, note="Graded on the Search page", by=self.judge)
        return self.log.grade(set, asked.query_id, anchor, grade, judge or self.judge, note)

    def undo(self, set: str = SEARCH, judge: str | None = None) -> Judgment | None:
        """Take back the judge's newest judgment in a set of what the principal may see, and at the next call the one before
        it. Returns what was taken back; None where there is nothing (or no such set yet).
        """
        if set not in self.sets.names():
            return None
        mine = self.log.valid(set, None, [judge or self.judge])
        seen = self._shown([j.anchor for j in mine])[0]
        return self.log.undo(set, judge or self.judge, mine[seen[-1]].number) if seen else None

    def grades(
        self,
        query: str | Query,
        hits: Sequence[Any],
        *,
        keywords: str | None = None,
        set: str = SEARCH,
        judge: str | None = None,
    ) -> Mapping[str, Judgment]:
        """The judge's newest judgment that each hit has, by chunk id; hits without one are left out.

        A passage's own judgment goes before one that it inherits, and that before one of its whole document.
        """
        if set not in self.sets.names() or not hits:
            return {}
        asked = query if isinstance(query, Query) else self.query(set, query, keywords)
        located = [] if asked is None else self.located(set, asked.query_id, [judge or self.judge])
        if not located:
            return {}
        found: dict[str, Judgment] = {}
        for chunk_id, document_id, span in self.spans(hits):
            best = 0
            for one in reversed(located):  # the newest first: of judgments as near it counts
                near = _nearness(span, one) if one.document_id == document_id else 0
                if near > best:
                    best, found[chunk_id] = near, one.judgment
        return found

    def spans(self, hits: Sequence[Any]) -> Iterator[tuple[str, str, Span]]:
        """Chunk id, document id and characters of hits, in their order; those that are not to be seen are left out."""
        ids = dict.fromkeys(h.chunk_id for h in hits)
        numbers = {i: n for i in ids if (n := self.records.find_record(i, self.scope)) is not None}
        columns = self.records.columns(np.array(list(numbers.values()), np.int64))
        spans = zip(columns.start_chars.tolist(), columns.end_chars.tolist(), strict=True)
        for chunk_id, document_id, (start, end) in zip(numbers, columns.document_ids, spans, strict=True):
            yield chunk_id, document_id, Span(start, end)

    # --- reading -------------------------------------------------------------------------------------------------------

    def located(
        self, name: str, query_id: str | None = None, judges: Sequence[str] | None = None
    ) -> tuple[Located, ...]:
        """The valid judgments of a set where they are now, oldest first; those that the principal may see."""
        return self.locate(self.log.valid(name, query_id, judges))

    def locate(self, judgments: Sequence[Judgment]) -> tuple[Located, ...]:
        """Where judgments are now, in the order given, without those that the principal may not see.

        Where a policy masks texts for the principal, quotes are the masked texts of today, and stale judgments, whose quotes
        nobody can mask any more, are left out.
        """
        shown, owner, headers = self._shown([j.anchor for j in judgments])
        spans, quotes = self._found_again(judgments, owner)
        made = []
        for position in shown:
            judgment, found = judgments[position], owner.get(position)
            if found is None:
                if not self.records.masks:
                    made.append(Located(judgment, "", judgment.anchor.path, None))
                continue
            document, span = headers[found], spans.get(position)
            a = judgment.anchor
            if self.records.masks and not a.whole:
                if span is None:
                    continue
                judgment = replace(judgment, anchor=replace(a, quote=quotes[position]))
            moved = span is not None and not a.whole and span != Span(a.start, a.end)
            made.append(Located(judgment, document.document_id, document.path, span, moved))
        return tuple(made)

    def _shown(self, anchors: Sequence[Anchor]) -> tuple[list[int], dict[int, int], Mapping[int, Document]]:
        """Positions of the anchors that the principal may see, their documents' numbers where these are still there, and the
        documents, without texts, by number.

        Shown is what is of a document that the principal sees now, and of one that is gone what they could have seen then. One
        that is found in another folder (it was moved, or another file took its place) has to be seen now and then.
        """
        names = list(dict.fromkeys(n for a in anchors for n in (a.path, a.document_id) if n))
        numbers = self.records.numbers_named(names, _EVERYTHING) if names else {}
        wanted = sorted({n for found in numbers.values() for n in found})
        headers = dict(zip(wanted, self.records.headers(wanted), strict=True))
        owner: dict[int, int] = {}  # position in anchors -> document number
        shown: list[int] = []
        for position, a in enumerate(anchors):
            then = visible(Access(a.tenant, a.roles, a.sensitivity), self.principal, self._policy)
            own = [n for n in numbers.get(a.path, ()) if headers[n].tenant == a.tenant]
            same = next((n for n in own if headers[n].root == a.root), None)
            if same is None and a.document_id:
                own = [n for n in numbers.get(a.document_id, ()) if headers[n].tenant == a.tenant]
            elif same is None:
                own = [n for n in own if self._sees(n)]  # known by its path alone
            number = next(iter(own), None) if same is None else same
            if number is None:
                if then:
                    shown.append(position)
            elif self._sees(number) and (then or number == same or not a.root):
                owner[position] = number
                shown.append(position)
        return shown, owner, headers

    def _found_again(
        self, judgments: Sequence[Judgment], owner: Mapping[int, int]
    ) -> tuple[dict[int, Span], dict[int, str]]:
        """Where each judgment's text is, and what is there as the principal sees it.

        Texts are read a batch of documents at a time.
        """
        positions: dict[int, list[int]] = {}
        for position, number in owner.items():
            positions.setdefault(number, []).append(position)
        numbers = sorted(positions)
        spans: dict[int, Span] = {}
        quotes: dict[int, str] = {}
        for start in range(0, len(numbers), _BATCH):
            batch = numbers[start : start + _BATCH]
            for number, document in zip(batch, self.records.documents(batch), strict=True):
                for position in positions[number]:
                    span = find_again(document.text, judgments[position].anchor)
                    if span is not None:
                        spans[position] = span
                        if self.records.masks:
                            quotes[position] = document.text[span.start : span.end]
        return spans, quotes

    def judgments(
        self, set: str, judges: Sequence[str] | None = None, *, documents: bool = False, query: Query | None = None
    ) -> Judgments:
        """The judgments of a set as `evaluate` takes them, at their places in this generation (`to_judgments`). `judges`:
        Whose grades count; None is every person's and no machine's. `query`: The judgments of this query of the set alone,
        which cost no more than it has.
        """
        if query is None:
            made = to_judgments(set, self.queries(set), self.located(set), judges)
        else:
            located = self.located(set, query.query_id)
            made = to_judgments(set, [query], located, judges, passages=self.log.has_passages(set))
        return made.by_document() if documents else made


def _nearness(span: Span, one: Located) -> int:
    """How near a judgment is to a hit: 3 the same passage, 2 inherited, 1 its whole document, 0 none."""
    if one.span is None:
        return 0
    if one.judgment.anchor.whole:
        return 3 if span == one.span else 1
    if same_passage(span, one.span):
        return 3
    return 2 if inherits(span, one.span) else 0


def passage(document: Document, start: int, end: int, quote: str) -> Anchor:
    """What is judged when characters of a document are; 0, 0 and "" for the whole of it."""
    access = (document.roles, document.sensitivity, document.document_id)
    return Anchor(document.path, document.root, document.tenant, start, end, quote, *access)


# --- from judgments to qrels: passages judged twice are one, several judges give one grade ---


@dataclass(frozen=True, slots=True)
class Located:
    """A judgment and where it is now.

    Attributes:
        document_id, path: Its document now; "" and the anchor's path where it is gone.
        span: The characters now; None where it is stale. A whole document has all of its characters.
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
    name: str,
    queries: Sequence[Query],
    located: Sequence[Located],
    judges: Sequence[str] | None = None,
    passages: bool = False,
) -> Judgments:
    """The judgments of a set; of documents where nothing but whole documents was judged, else (or with `passages`: another
    query of the set has some) of passages. `judges`: Whose grades count; None is every person's. Machines count only if named.
    """
    chosen = [x for x in located if (not x.judgment.machine if judges is None else x.judgment.judge in judges)]
    asked = {q.query_id: q for q in queries}
    groups: dict[tuple[str, str], list[_Passage]] = {}
    for one in reversed(chosen):
        if one.span is not None and one.judgment.query_id in asked:
            _join(groups.setdefault((one.judgment.query_id, one.document_id), []), one)
    if not groups:
        raise _nothing(name, located, judges)
    qrels: dict[str, dict[str, int]] = {}
    judged: dict[str, list[JudgedPassage]] = {}
    order = {query_id: number for number, query_id in enumerate(asked)}
    for query_id, document_id in sorted(groups, key=lambda f: (order[f[0]], groups[f][0].path, f[1])):
        mine = qrels.setdefault(query_id, {})
        for passage in sorted(groups[query_id, document_id], key=lambda p: (p.span or Span(-1, -1), p.key)):
            key = passage.key if passage.key not in mine else f"{passage.key}@{document_id}"
            mine[key] = sorted(passage.grades.values())[(len(passage.grades) - 1) // 2]
            judged.setdefault(query_id, []).append(JudgedPassage(key, document_id, passage.path, passage.span))
    notes = (*_notes(chosen, [asked[i] for i in qrels]), *_machines(located, judges))
    kept = {i: tuple(found) for i, found in judged.items()}
    made = Judgments({i: q.topic for i, q in asked.items()}, qrels, name, notes, kept)
    passages = passages or any(p.span is not None for found in judged.values() for p in found)
    return made if passages else made.by_document()


def graded_by(located: Sequence[Located]) -> list[dict[str, int]]:
    """Each judged passage with the newest grade of each judge, machines included: what `agreement` compares. `located`:
    Judgments of a set, oldest first; stale ones are passed over.
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
            f"{shown} of {len(queries)} queries were made of words from the documents that answer them, and these "
            "words are searched: figures are higher than for people's own questions"
        )
    return tuple(notes)


def _machines(located: Sequence[Located], judges: Sequence[str] | None) -> tuple[str, ...]:
    """Who reads figures of a machine's grades must know how far it agrees with people."""
    notes = []
    items = graded_by(located)
    for judge in sorted({j for j in judges or () if j.startswith(MACHINE)}):
        agreement = with_people(items, judge)
        text = "nobody has judged any of its passages too" if agreement is None else agreement.words
        notes.append(f"Grades of {judge} count as judgments: {text}")
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


# --- documents by the names that other programs know them by ---


def anchors(judging: Judging, names: Sequence[str]) -> tuple[Mapping[str, Anchor], tuple[str, ...]]:
    """Whole documents by name: path, document id, a record's own id, url. Returns an anchor for each name, and the names that
    mean no visible document now: their anchors have the name as path, and find the document once it is there.
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
