"""What is left out of a snapshot: passages, everything of a document, or what an audience may not see.

An audience is judged as a search judges it (`store.visibility`): tenant, roles, sensitivity. What cannot be attributed to a
document that the audience may see is left out. Counts, messages and timings of a search that lost rows go too, because they
count documents that the audience may not know of; ranks and scores stay as they were, since renumbered ones would be a lie.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import PrincipalRequired
from workbench.records import Principal
from workbench.snapshot.capture import policy_digest
from workbench.snapshot.model import About, Audience, Content, Passages, SavedSearch
from workbench.store.access.visibility import Access, Policy, SeeAll, visible

if TYPE_CHECKING:
    import polars as pl

_TEXT = ("title", "url", "section", "text", "metadata")
_NAMES = ("path", "citation", *_TEXT)
OMITTED = (
    "Rows of documents that the audience may not see were left out; ranks and scores are those of the whole result"
)


def redacted(about: About, content: Content) -> tuple[About, Content]:
    """Passages replaced by their citations."""
    if about.passages is not Passages.SHOWN:
        return about, content
    tables = {**content.tables, "passages": _without(content.table("passages"), _TEXT)}
    return replace(about, passages=Passages.REDACTED), _plain(content, tables)


def metadata_only(about: About, content: Content) -> tuple[About, Content]:
    """Nothing that names a document or holds its text; rows keep their ids."""
    import polars as pl

    tables = dict(content.tables)
    tables["passages"] = _without(content.table("passages"), _NAMES).with_columns(locator=pl.lit(""))
    for name in ("candidates", "documents"):
        tables[name] = _without(content.table(name), ("path",))
    # Runs and judgments name documents by their paths: the measures stay.
    for name in ("runs", "judgments"):
        if name in tables:
            tables[name] = tables[name].clear()
    return replace(about, passages=Passages.NONE), _plain(content, tables)


def for_audience(
    about: About,
    content: Content,
    principal: Principal | None,
    policy: Policy | None,
    shown: Collection[str] | None = None,
) -> tuple[About, Content]:
    """What an audience may see, of documents with the ids `shown` (None: all). Raises PrincipalRequired.

    Where the policy masks texts for the audience and they were had as somebody else, or under another policy, none of them
    stays: a policy masks whole documents, and here are only pieces.
    """
    same = principal == about.principal and policy_digest(policy) == about.policy
    if policy is not None and policy.redacts(principal) and not same:
        about, content = redacted(about, content)
    import polars as pl

    documents = content.table("documents")
    judge = SeeAll() if policy is None else policy
    kinds = [Access(r["tenant"], tuple(r["roles"]), r["sensitivity"]) for r in documents.iter_rows(named=True)]
    if principal is None and any(k.tenant is not None or k.roles for k in kinds):
        raise PrincipalRequired(
            "This snapshot has documents of tenants or roles, and nobody said for whom it is",
            "Name the audience: tenant and roles",
        )
    seen: dict[Access, bool] = {k: visible(k, principal, judge) for k in dict.fromkeys(kinds)}
    audience = Audience(*((None, ()) if principal is None else (principal.tenant, principal.roles)))
    # A row whose document the list does not name belongs to nobody.
    listed = documents["document_id"].to_list()
    allowed = [seen[k] and (shown is None or i in shown) for k, i in zip(kinds, listed, strict=True)]
    kept = documents.filter(pl.Series(allowed, dtype=pl.Boolean))
    ids = kept["document_id"]
    tables = dict(content.tables)
    for name in ("candidates", "passages"):
        tables[name] = content.table(name).filter(pl.col("document_id").is_in(ids.implode()))
    lost = [
        n
        for n in range(len(content.searches))
        if any(_count(tables[t], n) != _count(content.table(t), n) for t in ("candidates", "passages"))
    ]
    hidden = len(kept) != len(documents)
    if not lost and not hidden:
        return replace(about, audience=audience), content
    tables["documents"] = kept
    tables["sources"] = content.table("sources").join(
        tables["candidates"].select("search", "place"), on=["search", "place"], how="semi", maintain_order="left"
    )
    names = pl.concat([ids, kept["path"].drop_nulls()]).unique()
    for name in ("runs", "judgments"):
        if name in tables:
            key = pl.col("document")
            tables[name] = tables[name].filter(
                key.is_in(names.implode()) | key.str.replace(r"#\d+-\d+$", "").is_in(names.implode())
            )
    # The statistics of a search are taken over all that its principal saw: where the audience sees less, none is told.
    searches = tuple(_quiet(s) for s in content.searches)
    origin = replace(about.origin, documents=len(kept), records=0)
    return replace(about, audience=audience, omitted=True, origin=origin), replace(
        content, searches=searches, tables=tables
    )


def _count(frame: pl.DataFrame, number: int) -> int:
    return int((frame["search"] == number).sum())


def _quiet(search: SavedSearch) -> SavedSearch:
    return replace(search, funnel=(), messages=(), timings_ms={}, context="", context_left_out=_had_context(search))


def _had_context(search: SavedSearch) -> bool:
    return bool(search.context) or search.context_left_out


def _plain(content: Content, tables: Mapping[str, pl.DataFrame]) -> Content:
    """The content with other tables and without the texts that people had open."""
    searches = tuple(replace(s, context="", context_left_out=_had_context(s)) for s in content.searches)
    return replace(content, searches=searches, tables=tables)


def _without(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """The frame with nothing in these columns, and without matches where the text goes."""
    import polars as pl

    gone = {name: pl.lit(None, pl.String) for name in names if name in frame.columns}
    if "text" in gone:
        none: pl.Expr = pl.lit([], pl.List(pl.Int64))
        gone |= {"match_starts": none, "match_ends": none}
    return frame.with_columns(**gone)
