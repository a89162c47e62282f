"""What a snapshot leaves out: what its principal could not see, what is redacted, what an audience may not see."""

from __future__ import annotations

from pathlib import Path

import pytest
from snapshot_cases import members, shrunk

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import PrincipalRequired
from workbench.snapshot.schema import Passages
from workbench.store.access.mask import MaskPatterns

QUERY = "runbook retry deploy password"
PLAN = "default vector.threshold=off limit=50"


def everything(snapshot: wb.Snapshot) -> bytes:
    """Every byte of every part, and the tables as text (Parquet packs them)."""
    tables = "".join(t.write_json() for t in snapshot.content.tables.values())
    return b"".join(members(snapshot.to_bytes()).values()) + tables.encode()


@pytest.fixture(scope="module")
def full(sample: wb.Corpus) -> wb.Snapshot:
    return sample.search(QUERY, plan=PLAN).snapshot("all of acme's")


def test_what_the_principal_could_not_see_is_nowhere(sample_path: Path, full: wb.Snapshot) -> None:
    with wb.open_corpus(sample_path, wb.Principal("acme")) as corpus:
        result = corpus.search(QUERY, plan=PLAN)
        made = result.snapshot()
        assert made.about.origin.documents == corpus.info()["documents"] == len(made.documents())
    secret = full.documents().filter(full.documents()["roles"].list.len() > 0)
    assert len(secret)
    text = everything(made)
    for row in secret.iter_rows(named=True):
        assert row["path"].encode() not in text
        assert row["document_id"].encode() not in text


def test_redacted_keeps_citations_and_no_text(full: wb.Snapshot) -> None:
    made = full.redacted()
    assert made.about.passages is Passages.REDACTED
    assert [h.citation for h in made.hits()] == [h.citation for h in full.hits()]
    text = everything(made)
    for hit in full.hits():
        assert hit.text[:40].encode() not in text
        if len(hit.title) > 12 and hit.title not in hit.path:
            assert hit.title.encode() not in text
    assert made.frame().equals(full.frame())
    assert made.redacted() == made


@pytest.mark.slow
def test_metadata_only_names_no_document(full: wb.Snapshot) -> None:
    made = full.metadata_only()
    assert made.frame()["score"].equals(full.frame()["score"])
    assert made.searches[0].funnel == full.searches[0].funnel
    text = everything(made)
    for row in full.documents().iter_rows(named=True):
        if len(row["path"]) > 8:
            assert row["path"].encode() not in text
    for hit in full.hits():
        assert hit.text[:40].encode() not in text
    assert wb.Snapshot.load(made.to_bytes()).about.passages is Passages.NONE


def test_an_open_document_goes_with_the_passages(sample: wb.Corpus) -> None:
    made = sample.search(QUERY, context="my private draft of the quarterly numbers").snapshot()
    assert made.searches[0].context.startswith("my private draft")
    for cut in (made.redacted(), made.metadata_only()):
        assert cut.searches[0].context_left_out
        assert b"private draft" not in everything(cut)
        assert cut.verify(sample).searches[0].same is None


def test_an_audience_gets_what_it_may_see(full: wb.Snapshot, sample_path: Path) -> None:
    audience = wb.Principal("acme")
    made = full.for_audience(audience)
    with wb.open_corpus(sample_path, audience) as corpus:
        theirs = corpus.search(QUERY, plan=PLAN).snapshot().documents()
    assert sorted(made.documents()["document_id"]) == sorted(theirs["document_id"])
    allowed = set(theirs["document_id"])
    assert {h.document_id for h in made.hits()} == {h.document_id for h in full.hits()} & allowed
    assert set(made.frame()["document_id"]) <= allowed
    assert {h.chunk_id: h.rank for h in made.hits()}.items() <= {h.chunk_id: h.rank for h in full.hits()}.items()
    assert made.about.omitted
    assert made.searches[0].funnel == ()
    assert made.searches[0].messages == ()
    text = everything(made)
    for row in full.documents().iter_rows(named=True):
        if row["document_id"] not in allowed:
            assert row["path"].encode() not in text
            assert row["document_id"].encode() not in text


def test_another_tenant_gets_nothing(full: wb.Snapshot) -> None:
    made = full.for_audience(wb.Principal("birch", ("admin", "support")))
    assert made.hits() == ()
    assert len(made.documents()) == 0
    assert made.about.origin.documents == 0
    with pytest.raises(PrincipalRequired):
        full.for_audience(None)


def test_a_policy_hides_sensitivities(full: wb.Snapshot) -> None:
    made = full.for_audience(full.about.principal, MaskPatterns(hidden=("confidential",)))
    assert "confidential" not in set(made.documents()["sensitivity"])
    assert "confidential" in set(full.documents()["sensitivity"])


def test_runs_and_judgments_follow_the_audience(sample: wb.Corpus) -> None:
    evaluation = sample.evaluate(wb.load_judgments(sample_folder()), measures=["RR"])
    made = shrunk(wb.Snapshot.of(evaluation, corpus=sample))
    cut = made.for_audience(wb.Principal("acme"))
    allowed = {*cut.documents()["path"], *cut.documents()["document_id"]}
    assert set(made.content.table("runs")["document"]) - allowed
    assert set(cut.content.table("runs")["document"]) <= allowed
    assert set(cut.content.table("judgments")["document"]) <= allowed
    assert cut.evaluations == made.evaluations
    assert cut.verify().evaluations[0].same is None
    assert len(made.metadata_only().content.table("runs")) == 0
