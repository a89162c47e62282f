"""Is a snapshot what it says? Its digests, its measures, and, where the corpus is at hand, its searches run again.

Three questions, each answered on its own. The digests: is every part as it was saved? The measures: do the saved runs and
judgments give the saved measures? The searches: does the same corpus, searched the same way by the same principal, answer the
same? The last needs the generation, or another one with the same digest; where it is not at hand the answer says so.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.assist.models import may_name
from workbench.errors import WorkbenchError
from workbench.plan.plan import Plan
from workbench.snapshot import build
from workbench.snapshot.diff import changed_since
from workbench.snapshot.schema import Content, Passages, SavedSearch, types_of, who

if TYPE_CHECKING:
    import polars

    from workbench.corpus import Corpus
    from workbench.snapshot.snapshot import Snapshot

EXACT, CLOSE = 1e-9, 2e-3
"""How far scores may be apart: on the same versions, and where another runtime or version may round otherwise."""
LOADING = "allow it with --load-models, load_models=True, or the setting allowed_models"
_MOST_NAMED = 5
_DECIDING = ("numpy", "openvino", "torch", "usearch", "sentence-transformers", "workbench")
_CANDIDATE = "place rank shown duplicate_of label document_id path start_line end_line whole"
_PASSAGE = "rank chunk_id citation text title section url match_starts match_ends metadata collections"
_COMPARED = {
    "candidates": ("chunk_id", _CANDIDATE, "score rerank"),
    "sources": ("place source", "rank", "score distance contribution"),
    "passages": ("position", _PASSAGE, "score distance"),
}
"""Table -> its key, the columns that must be equal, and those that must be close."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found of one search or evaluation.

    Attributes:
        what: Its query or name.
        same: True: as saved. False: not. None: it could not be run again.
        differences: What differs, or why it could not be run; empty where all is the same.
    """

    what: str
    same: bool | None
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer of `verify`.

    Attributes:
        id: The snapshot's id.
        digests: Whether every part has the digest that the manifest says.
        asked: "" where the corpus was searched again, or the reason why it was not.
        searches, evaluations: One each.
        close: Largest difference of two scores, where searches were run again.
    """

    id: str
    digests: bool
    asked: str
    searches: tuple[Checked, ...]
    evaluations: tuple[Checked, ...]
    close: float = 0.0

    @property
    def ok(self) -> bool:
        """True where nothing contradicts the snapshot; see `ran` for whether its searches were run again."""
        return self.digests and all(c.same is not False for c in (*self.searches, *self.evaluations))

    @property
    def ran(self) -> bool:
        """True where every search was run again."""
        return not self.asked and bool(self.searches) and all(c.same is not None for c in self.searches)

    @property
    def verdict(self) -> str:
        if not self.digests:
            return "A part of the snapshot is not what its manifest says: do not trust it."
        wrong = sum(c.same is False for c in (*self.searches, *self.evaluations))
        if wrong:
            return f"The digests hold, but {wrong} of its searches and evaluations come out differently."
        if self.ran:
            apart = f"; scores differ by at most {self.close:.2g}" if self.close > EXACT else ""
            return f"Verified: every digest holds, and the corpus gives the same answers again{apart}."
        why = self.asked or "some searches could not be run again"
        return f"Every digest holds: nothing changed since it was saved. Its searches were not all run again: {why}."

    def frame(self) -> polars.DataFrame:
        """One row a search or evaluation: what, same (null: not run), differences."""
        import polars as pl

        rows = [(c.what, c.same, "; ".join(c.differences)) for c in (*self.searches, *self.evaluations)]
        return pl.DataFrame(rows, schema=types_of((("what", "S"), ("same", "B"), ("differences", "S"))), orient="row")

    def _repr_html_(self) -> str:
        from workbench.markup import visible

        return f"<p>{visible(self.verdict)}</p>{self.frame()._repr_html_()}"


def verify(snapshot: Snapshot, corpus: Corpus | str | Path | None, *, load_models: bool = False) -> Verification:
    if isinstance(corpus, (str, Path)):
        from workbench.corpus import open_corpus

        with open_corpus(corpus, snapshot.about.principal) as opened:
            return verify(snapshot, opened, load_models=load_models)
    digests = all(
        name in snapshot.parts and hashlib.sha256(snapshot.parts[name]).hexdigest() == digest
        for name, (_, digest) in snapshot.manifest.parts.items()
    )
    measures = tuple(_measures(snapshot.content, n) for n in range(len(snapshot.evaluations)))
    why_not = "no corpus was given" if corpus is None else _at_hand(snapshot, corpus)
    if corpus is None or why_not:
        return Verification(snapshot.id, digests, why_not, (), measures)
    about, versions = snapshot.about, build.packages()
    same_versions = all(versions.get(p) == about.packages.get(p) for p in _DECIDING)
    same_runtime = {e.runtime for e in about.origin.encoders} == {str(e["runtime"]) for e in corpus.info()["encoders"]}
    allowed = EXACT if same_versions and same_runtime else CLOSE
    found = [_again(snapshot, corpus, n, allowed, load_models) for n in range(len(snapshot.searches))]
    apart = max((far for _, far in found), default=0.0)
    return Verification(snapshot.id, digests, "", tuple(checked for checked, _ in found), measures, apart)


def _at_hand(snapshot: Snapshot, corpus: Corpus) -> str:
    origin, principal = snapshot.about.origin, snapshot.about.principal
    if corpus.principal != principal:
        return f"it was made as {who(principal)}, and the corpus is open as {who(corpus.principal)}"
    info = corpus.info()
    if info["digest"] == origin.digest:
        return ""
    engine = corpus.engine
    now = build.documents(engine, engine.visible)
    found = changed_since(snapshot, {row[0]: (row[1], row[2]) for row in now})
    # Of documents that were left out for an audience nothing is known.
    changes = ", ".join((replace(found, added={}) if snapshot.about.omitted else found).documents())
    other = (
        f"its generation {origin.generation} is not at hand; the corpus is now {info['generation']}, which is another"
    )
    return other + (f": {changes}" if changes else "")


def _again(snapshot: Snapshot, corpus: Corpus, number: int, allowed: float, load_models: bool) -> tuple[Checked, float]:
    search = snapshot.searches[number]
    if search.context_left_out:
        return Checked(search.title, None, ("its context was left out of the snapshot",)), 0.0
    for model in search.models:
        if not may_name(model) and (corpus.engine.served or not load_models):
            remedy = "the setting allowed_models does not list it" if corpus.engine.served else LOADING
            return Checked(search.title, None, (f"its plan loads {model}, which was not requested: {remedy}",)), 0.0
    try:
        result = corpus.search(
            search.query,
            keywords=search.keywords or None,
            context=search.context or None,
            mode=search.mode,
            plan=Plan(dict(search.settings)),
            filters=search.filters or None,
            depths=search.depths,
            bypass_cache=True,
        )
    except WorkbenchError as exc:
        return Checked(search.title, None, (str(exc),)), 0.0
    found, far = _compare(snapshot, number, search, build.searches([result]), allowed)
    more = [f"and {len(found) - _MOST_NAMED} more differences"] if len(found) > _MOST_NAMED else []
    return Checked(search.title, not found, (*found[:_MOST_NAMED], *more)), far


def _compare(
    snapshot: Snapshot, number: int, saved: SavedSearch, fresh: Content, allowed: float
) -> tuple[list[str], float]:
    """What differs between a saved search and the same one now; and the largest difference of two scores."""
    now, about = fresh.searches[0], snapshot.about
    found, far = [], 0.0

    def differs(name: str, was: Any, is_now: Any) -> None:
        shown = (t if len(t := repr(v)) <= 60 else t[:59] + "…" for v in (was, is_now))
        found.append("{} was {} and is {}".format(name, *shown))

    if saved.sources != now.sources:
        found.append(f"the sources were {', '.join(saved.sources)} and are {', '.join(now.sources)}")
    if saved.score_kind != now.score_kind:
        found.append(f"the scores were {saved.score_kind} and are {now.score_kind}")
    if saved.funnel:  # how a step is worded is no difference
        steps = ({(s.step, s.source): f"{s.entered:,} to {s.left:,}" for s in one.funnel} for one in (saved, now))
        before, after = steps
        for step in before | after:
            was, is_now = before.get(step, "absent"), after.get(step, "absent")
            if was != is_now:
                found.append(f"the step {' of '.join(filter(None, step))} was {was} and is {is_now}")
    for table, (keys, exact, close) in _COMPARED.items():
        old, new = (
            {tuple(row[k] for k in keys.split()): row for row in frame.iter_rows(named=True)}
            for frame in (snapshot.content.rows(table, number), fresh.table(table))
        )
        missing, added = len(old.keys() - new.keys()), 0 if about.omitted else len(new.keys() - old.keys())
        if missing or added:
            found.append(f"{missing} rows of {table} are not there now, and {added} are new")
        for key in (k for k in old if k in new):
            row, other = old[key], new[key]
            place = f"{row.get('source')} at place {row.get('place')}"
            name = f"{table} {row.get('path') or row.get('chunk_id') or place}"
            for column in exact.split():
                gone = about.passages is not Passages.SHOWN and (row[column] is None or column.startswith("match_"))
                if row[column] != other[column] and not gone:
                    differs(f"{name}: {column}", row[column], other[column])
            for column in close.split():
                one, two = row[column], other[column]
                if one is None or two is None:
                    if one is not two:
                        differs(f"{name}: {column}", one, two)
                    continue
                far = max(far, abs(one - two))
                if abs(one - two) > allowed * max(1.0, abs(one)):
                    found.append(f"{name}: {column} was {one:.6g} and is {two:.6g}")
    return found, far


def _measures(content: Content, number: int) -> Checked:
    from workbench.evaluate.evaluation import score_run
    from workbench.snapshot.boards import evaluation_of

    saved, was = content.evaluations[number], evaluation_of(content, number)
    if was.judgments.digest != saved.judgments_digest:
        return Checked(saved.name, None, ("its judgments are not all in the snapshot",))
    again = score_run(was.run, was.judgments, was.measures, seed=saved.seed)
    if again.query_ids != was.query_ids:
        return Checked(saved.name, False, ("its queries are not those of its judgments",))
    found = [
        f"{was.measures[m]} of {was.query_ids[q]} was {was.values[q, m]} and is {again.values[q, m]:.6g}"
        for q, m in np.argwhere(~(np.abs(was.values - again.values) <= EXACT)).tolist()
    ]
    means = [(m.measure, m.mean, again.mean(m.measure)) for m in saved.means]
    found += [f"the mean {name} was {was:.6g} and is {now:.6g}" for name, was, now in means if abs(was - now) > EXACT]
    return Checked(saved.name, not found, tuple(found[:_MOST_NAMED]))
