"""Indexing on Ray: the same corpus as without it, whatever dies on the way."""

import os
import signal
import subprocess
import sys

import pytest
from corpus_files import write_files

import workbench as wb

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
psutil = pytest.importorskip("psutil", reason="finds Ray's workers")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

DRIVER = """
import os, signal, sys
import workbench as wb

def progress(event):
    if event.step == "embed" and event.done:
        os.kill(os.getpid(), signal.SIGKILL)

files, corpus, address, store = sys.argv[1:]
wb.index([files], corpus=corpus, encoder="hashing", ray=address, store=store, progress=progress)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The files, and the folder and report of an undisturbed run without Ray."""
    folder = tmp_path_factory.mktemp("ray")
    texts = {f"{n:03}.md": f"# Part {n}\n\n" + f"words of number{n} and rain " * 30 for n in range(400)}
    files = write_files(folder / "files", texts)
    return files, folder / "alone", wb.index([files], corpus=folder / "alone", encoder="hashing")


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 200_000_000})
    yield made
    ray.shutdown()
    made.shutdown()


def kill_node(cluster, node):
    cluster.remove_node(node, allow_graceful=False)
    return [node]


def kill_worker(cluster, node):
    ours = psutil.Process().children(recursive=True)
    workers = [process for process in ours if " ".join(process.cmdline()).startswith("ray::_Encoder")][:1]
    for worker in workers:
        worker.kill()
    return workers


@pytest.mark.parametrize("kill", [kill_node, kill_worker])
def test_what_is_killed_half_way_changes_nothing(tmp_path, alone, cluster, kill):
    """Two nodes, and one of them or one worker killed while texts are embedded."""
    node = cluster.add_node(num_cpus=3, object_store_memory=200_000_000)
    cluster.wait_for_nodes()
    killed = []

    def progress(event):
        if event.step == "embed" and event.done and not killed:
            killed.extend(kill(cluster, node))

    files, store = alone[0], str(tmp_path / "ray.db")
    report = wb.index(
        [files], corpus=tmp_path / "ray", encoder="hashing", ray=cluster.address, progress=progress, store=store
    )
    assert killed
    assert_same(alone, tmp_path / "ray", report)


def test_the_run_after_a_killed_driver_goes_on_where_it_stopped(tmp_path, alone, cluster):
    files, corpus, store = alone[0], tmp_path / "ray", str(tmp_path / "ray.db")
    given = map(str, (files, corpus, cluster.address, store))
    died = subprocess.run([sys.executable, "-c", DRIVER, *given], env=dict(os.environ), capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    report = wb.index([files], corpus=corpus, encoder="hashing", ray=cluster.address, store=store)
    assert report.embedded < alone[2].embedded
    assert_same(alone, corpus, report)


def assert_same(alone, corpus, report):
    _, folder, undisturbed = alone
    assert (report.documents, report.chunks) == (undisturbed.documents, undisturbed.chunks)
    with wb.open_corpus(folder) as here, wb.open_corpus(corpus) as there:
        assert here.info()["digest"] == there.info()["digest"]
        results = [each.search("number17 rain", limit=20) for each in (here, there)]
        assert [(h.chunk_id, h.text) for h in results[0].hits] == [(h.chunk_id, h.text) for h in results[1].hits]
