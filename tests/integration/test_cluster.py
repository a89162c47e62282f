"""Indexing on Ray: the same corpus as without it, whatever dies on the way."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_a_worker_and_a_node_that_are_killed_half_way_change_nothing(tmp_path):
    """Counts, digest and results of an undisturbed run without Ray; rows are written to a server by Ray's tasks."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread
    from ray.cluster_utils import Cluster

    files = write_files(
        tmp_path / "files", {f"{n:03}.md": f"# Part {n}\n\n" + f"words of number{n} and rain " * 30 for n in range(400)}
    )
    alone = wb.index([files], corpus=tmp_path / "alone", encoder="hashing")
    server, database, port = start_server_in_thread(str(tmp_path / "data.db"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 200_000_000})
    killed = []
    try:
        node = cluster.add_node(num_cpus=4, object_store_memory=200_000_000)
        cluster.wait_for_nodes()
        (raylet,) = cluster.head_node.all_processes["raylet"]

        def progress(event):
            if event.step == "embed" and event.done and len(killed) < 2:
                killed.append("node" if killed else "worker")
                if killed[-1] == "node":
                    cluster.remove_node(node, allow_graceful=False)
                else:
                    os.kill(encoder_below(raylet.process.pid), signal.SIGKILL)

        report = wb.index(
            [files], corpus=tmp_path / "ray", encoder="hashing", ray=cluster.address, progress=progress,
            store=f"http://127.0.0.1:{port}",
        )  # fmt: skip
        assert killed == ["worker", "node"]
        assert (report.documents, report.chunks) == (alone.documents, alone.chunks)
        with wb.open_corpus(tmp_path / "alone") as here, wb.open_corpus(tmp_path / "ray") as there:
            assert here.info()["digest"] == there.info()["digest"]
            results = [corpus.search("number17 rain", limit=20) for corpus in (here, there)]
            assert [(h.chunk_id, h.text) for h in results[0].hits] == [(h.chunk_id, h.text) for h in results[1].hits]
    finally:
        ray.shutdown()
        cluster.shutdown()
        server.stop(grace=0).wait()
        database.close()


def encoder_below(raylet):
    """An encoder's process that this raylet started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == raylet and b"_Encoder" in (folder / "cmdline").read_bytes():
                return int(folder.name)
    raise AssertionError("there is no encoder on the first node")
