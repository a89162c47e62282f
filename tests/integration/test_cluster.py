"""Indexing on Ray: the same corpus as without it, whatever dies on the way."""

import pytest
from corpus_files import write_files

import workbench as wb

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_a_node_that_is_killed_half_way_changes_nothing(tmp_path):
    """Two nodes, one killed while texts are embedded: counts, digest and results of an undisturbed run without Ray."""
    from ray.cluster_utils import Cluster

    files = write_files(
        tmp_path / "files", {f"{n:03}.md": f"# Part {n}\n\n" + f"words of number{n} and rain " * 30 for n in range(400)}
    )
    alone = wb.index([files], corpus=tmp_path / "alone", encoder="hashing")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 200_000_000})
    killed = []
    try:
        node = cluster.add_node(num_cpus=3, object_store_memory=200_000_000)
        cluster.wait_for_nodes()

        def progress(event):
            if event.step == "embed" and event.done and not killed:
                killed.append(event)
                cluster.remove_node(node, allow_graceful=False)

        report = wb.index(
            [files], corpus=tmp_path / "ray", encoder="hashing", ray=cluster.address, progress=progress,
            store=str(tmp_path / "ray.db"),
        )  # fmt: skip
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert killed
    assert (report.documents, report.chunks) == (alone.documents, alone.chunks)
    with wb.open_corpus(tmp_path / "alone") as here, wb.open_corpus(tmp_path / "ray") as there:
        assert here.info()["digest"] == there.info()["digest"]
        results = [corpus.search("number17 rain", limit=20) for corpus in (here, there)]
        assert [(h.chunk_id, h.text) for h in results[0].hits] == [(h.chunk_id, h.text) for h in results[1].hits]
