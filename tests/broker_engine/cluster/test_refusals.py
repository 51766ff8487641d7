"""What must never run together is refused, with one line that says why (reliability.md F30)."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.broker_engine.broker_process import REPOSITORY, BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess
from tests.broker_engine.raw_client import RawClient


def refused_line(node: BrokerProcess) -> str:
    """Run it until it ends by itself; its last line on stderr."""
    with node.stderr_path.open("a") as stderr:
        done = subprocess.run(node.command(), stderr=stderr, cwd=REPOSITORY, timeout=30, check=False)
    assert done.returncode == 1, node.log
    return node.log.splitlines()[-1]


def test_two_processes_on_one_directory(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        assert "another broker runs on" in refused_line(cluster[1])


def test_the_number_of_a_node_that_lives(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        quorum = f"1@127.0.0.1:{cluster.spare_port},2@{cluster.addresses[2]},3@{cluster.addresses[3]}"
        twin = cluster.make_node(1, directory="twin", quorum=quorum)
        assert "node 1 runs already" in refused_line(twin)
        cluster.wait_for_brokers(1, 2, 3)


def test_a_node_of_another_cluster(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        cluster[3].stop()
        stranger = cluster.make_node(3, directory="stranger", quorum=f"3@{cluster.addresses[3]}")
        with stranger:
            pass
        stranger = cluster.make_node(3, directory="stranger")
        assert "belongs to cluster" in refused_line(stranger)


def test_only_nodes_speak_on_the_controllers_listener(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster, RawClient(cluster.addresses[2]) as client:
        secret = cluster.secret_file.read_text().strip()
        assert client.sign_in("control-plane", secret).error_code == 58
