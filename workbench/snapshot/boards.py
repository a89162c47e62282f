"""A snapshot's evaluations as they were, and those on the same judgments together as a leaderboard."""

from __future__ import annotations

from math import nan

import numpy as np

from workbench.evaluate.evaluation import Coverage, Evaluation
from workbench.evaluate.leaderboard import Leaderboard
from workbench.evaluate.run import Run
from workbench.judgments.qrels import Judgments, Topic
from workbench.snapshot.schema import Content


def evaluation_of(content: Content, number: int) -> Evaluation:
    """One evaluation; without names of documents where the snapshot has none."""
    saved = content.evaluations[number]
    qrels: dict[str, dict[str, int]] = {}
    topics: dict[str, Topic] = {}
    for row in content.rows("judgments", saved.judgments).iter_rows(named=True):
        qrels.setdefault(row["query_id"], {})[row["document"]] = row["grade"]
        if row["query"] is not None:
            topics[row["query_id"]] = Topic(row["query_id"], row["query"])
    latencies, failures = dict[str, float](), dict[str, str]()
    asked = content.rows("queries", number)
    for row in asked.iter_rows(named=True):
        if row["query"] is not None:
            topics.setdefault(row["query_id"], Topic(row["query_id"], row["query"]))
        if row["latency_ms"] is not None:
            latencies[row["query_id"]] = row["latency_ms"]
        if row["failure"]:
            failures[row["query_id"]] = row["failure"]
    ids, names = tuple(dict.fromkeys(asked["query_id"])), tuple(m.measure for m in saved.means)
    rows = {i: n for n, i in enumerate(ids)}
    columns = {m: n for n, m in enumerate(names)}
    values = np.full((len(ids), len(names)), nan)
    for row in content.rows("measures", number).iter_rows(named=True):
        if row["query_id"] in rows and row["measure"] in columns:
            values[rows[row["query_id"]], columns[row["measure"]]] = row["value"]
    rankings: dict[str, list[str]] = {}
    for row in content.rows("runs", number).iter_rows(named=True):
        rankings.setdefault(row["query_id"], []).append(row["document"])
    run = Run({i: tuple(keys) for i, keys in rankings.items()}, saved.name, latencies, failures)
    judged = saved.coverage.get("judged")
    counts = (int(saved.coverage.get(n) or 0) for n in ("unjudged_documents", "empty"))
    judgments = Judgments(topics, qrels, saved.judgments_name)
    coverage = Coverage(nan if judged is None else float(judged), *counts)
    return Evaluation(saved.name, names, ids, values, run, judgments, coverage, saved.warnings, saved.seed)


def boards_of(content: Content) -> list[Leaderboard]:
    """Evaluations on the same judgments, two or more, with the first as the baseline; none where the judgments were left out."""
    groups: dict[int, dict[str, Evaluation]] = {}
    for number, saved in enumerate(content.evaluations):
        group, made = groups.setdefault(saved.judgments, {}), evaluation_of(content, number)
        first = next(iter(group.values()), made)
        if first.query_ids == made.query_ids and not np.isnan(made.values).any():  # a file may lack what it should have
            group.setdefault(saved.name, made)
    boards = [Leaderboard(tuple(group.values())) for group in groups.values() if len(group) > 1]
    return [board for board in boards if board.measures]
