"""Snapshots of every schema version so far stay readable: one file of each is kept, made once by that version.

A new schema adds a file here; the old ones are never made again.
"""

from pathlib import Path

import pytest

import workbench as wb
from workbench.snapshot.exports import to_csv, to_json, to_trec
from workbench.snapshot.schema import SCHEMA

FOLDER = Path(__file__).parent / "snapshots"


def test_older_snapshots_say_what_they_said_under_their_plans():
    assert sorted(p.name for p in FOLDER.iterdir()) == [f"schema-{n}.snapshot" for n in range(1, SCHEMA + 1)]
    old = wb.Snapshot.load(FOLDER / "schema-1.snapshot")
    assert (old.title, old.about.by) == ("schema 1", "Ada")
    assert old.about.principal == wb.Principal("acme", ("admin", "support"))
    assert [s.query for s in old.searches] == ["how do retries work", "runbook"]
    assert old.searches[0].filters == "sensitivity = 'public'"
    assert old.searches[0].settings["limit"] == 3
    assert old.searches[1].context == "an open file"
    assert [h.rank for h in old.hits(0)] == [1, 2, 3]
    assert old.hits(0)[0].citation == "kb/retries.md:13-17"
    assert old.evaluations[0].means[0].measure == "RR"
    assert old.verify().evaluations[0].same
    assert old.sweeps[0].fields == ("fusion.k",)
    assert old.sweeps[0].combinations == 2
    assert [s.plan for s in old.searches] == [
        "rrf limit=3 vector.threshold=off depth.keyword=20 depth.vector=20", "tmm limit=2 grep.when=never",
    ]  # fmt: skip
    plans = [wb.Plan(dict(s.settings)) for s in old.searches]
    without_grep = {"fusion.normalise.grep": "minmax"}  # which it never reads
    assert plans == [wb.Plan.parse(s.plan).replace(without_grep) for s in old.searches]
    assert plans[0].fusion.method == "rrf"
    assert (old.sweeps[0].baseline, old.evaluations[0].name) == ("rrf", "rrf")
    assert set(old.content.tables["points"]["plan"]) == {"rrf", "rrf fusion.k=1"}
    assert old.to_bytes() == (FOLDER / "schema-1.snapshot").read_bytes()
    again = wb.Snapshot.load(old.redacted().to_bytes())
    assert [s.plan for s in again.searches] == [s.plan for s in old.searches]


@pytest.mark.parametrize("number", range(1, SCHEMA + 1))
def test_it_is_read_shown_exported_and_compared(number):
    old = wb.Snapshot.load(FOLDER / f"schema-{number}.snapshot")
    assert old.verify().digests
    assert old.html().endswith("</html>\n")
    assert to_csv(old)
    assert to_json(old)
    assert to_trec(old)
    assert old.diff(old).settings().is_empty()
    assert old.for_audience(wb.Principal("acme")).about.omitted
    assert old.redacted().frame().equals(old.frame())
