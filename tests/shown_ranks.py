"""The rank of every source as each output of one result shows it: by output, (result, source) -> rank."""

import os
import re
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import workbench as wb
from workbench.charts.search import labels_of, places, rank_figure
from workbench.cli.search import print_result
from workbench.mcp.answers import search_answer, search_text
from workbench.snapshot.snapshot import Snapshot
from workbench.ui.components.cards import column
from workbench.ui.views.explain import candidates_table

Ranks = dict[tuple[int, str], int]


def shown_ranks(result: wb.SearchResult, printed: str) -> dict[str, Ranks]:
    """Ranks by output, for the result's hits; `printed` is what the command line printed of it."""
    sources, hits = tuple(result.rankings), [h for h in result.hits if not h.added]
    frame = {row["chunk_id"]: row for row in result.frame().to_dicts()}
    drawn = rank_figure(hits, sources)
    rank_of = {name: h.rank for h, name in zip(hits, labels_of(hits), strict=True)}
    listed = places(result.fused, result.order, len(result.fused))
    table = _table(candidates_table(listed, sources), sources)
    snapshot = Snapshot.of(result)
    saved = {
        (row["place"], row["source"]): row["rank"]
        for row in snapshot.content.table("sources").to_dicts()
        if row["rank"]
    }
    places_of = {chunk_id: n for n, chunk_id in enumerate(result.fused.chunk_ids, 1)}
    page = column("title", hits, ranks={}, sources=sources)
    return {
        "hits": {(h.rank, s): r for h in hits for s, r in h.ranks.items()},
        "frame": {
            (h.rank, s): rank for h in hits for s in sources if (rank := frame[h.chunk_id][f"{s}_rank"]) is not None
        },
        "json": {(h["rank"], s): r for h in result.to_dict()["hits"] if not h["added"] for s, r in h["ranks"].items()},
        "mcp": _lines(search_text(search_answer(result))),
        "cli": _lines(printed),
        "cards": _cards(page),
        "explain": {(h.rank, s): r for h in hits for s, r in table[h.chunk_id].items()},
        "moved": {
            (rank_of[name], s): int(said.removeprefix("rank ").replace(",", ""))
            for points in (t for t in drawn.data if t.mode == "markers")
            for s, (said, name, *_) in zip(points.x, points.customdata, strict=True)
            if s in sources and said != "absent"
        },
        "snapshot": {(h.rank, s): r for h in hits for s in sources if (r := saved.get((places_of[h.chunk_id], s)))},
    }


def _lines(text: str) -> Ranks:
    """Ranks in lines of text: the line of a result begins with its number."""
    found: Ranks = {}
    at = 0
    for line in text.split("\n"):
        head = re.match(r" *(\d+)\. ", line)
        at = int(head[1]) if head and (" match" in line or "Hybrid" in line or "keyword hit" in line) else at
        for source, rank in re.findall(r"([a-z_:@]+) #(\d+) \(\+", line):
            found.setdefault((at, source), int(rank))
    return found


def _cards(page: str) -> Ranks:
    found: Ranks = {}
    for card in page.split("<article")[1:]:
        rank = int(re.search(r'data-rank="(\d+)"', card)[1])  # type: ignore[index]
        for source, shown in re.findall(r'data-source="([^"]+)" title="[^"]*">.*?<b>(\d+)</b>', card):
            found[(rank, source)] = int(shown)
    return found


def _table(page: str, sources: tuple[str, ...]) -> Mapping[str, Mapping[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for chunk_id, row in re.findall(r'<tr data-chunk="([^"]+)">(.*?)</tr>', page):
        cells = [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<td.*?</td>", row)]
        ranks = dict(zip(sources, cells[-3 * len(sources) :: 3], strict=True))
        found[chunk_id] = {s: int(r.strip("*").replace(",", "")) for s, r in ranks.items() if r != "absent"}
    return found


def wrong_ranks(result: wb.SearchResult, printed: str) -> list[str]:
    """Where an output shows another rank than the one that counted, and ranks that do not give the contribution beside them."""
    plan, fused, wrong = result.plan, result.fused, []
    at = {chunk_id: n for n, chunk_id in enumerate(fused.chunk_ids)}
    hits = [h for h in result.hits if not h.added]
    counted = {(h.rank, s): int(r[at[h.chunk_id]]) for h in hits for s, r in fused.ranks.items() if r[at[h.chunk_id]]}
    for output, ranks in shown_ranks(result, printed).items():
        keys = counted.keys() | ranks.keys()
        wrong += [f"{output} {k}: {ranks.get(k)} for {counted.get(k)}" for k in keys if ranks.get(k) != counted.get(k)]
    for hit in hits:
        for source, added in hit.contributions.items():
            if result.score_kind != "fused" or plan["fusion.method"] != "rrf":
                continue
            rank, weight = hit.ranks.get(source), plan.fusion.weight(source)
            law = 0.0 if rank is None else weight / (plan["fusion.k"] + rank - 1 + plan["fusion.rank_base"])
            wrong += [] if abs(added - law) <= 1e-12 else [f"{source} #{rank} of result {hit.rank}: {added}, not {law}"]
    return wrong


def printed(result: wb.SearchResult, capture: Any) -> str:
    capture.readouterr()
    with patch.dict(os.environ, {"COLUMNS": "1000"}):  # no line is broken
        print_result(result, timings=False, funnel=False, most=80)
    return str(capture.readouterr().out)
