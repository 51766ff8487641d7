"""kafka-metadata-quorum add-controller and remove-controller of Apache Kafka against brokers of ours.

A fourth broker that no `--quorum` of the first three names is an observer until the tool makes a voter of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.compatibility.kafka_admin_tools import KafkaTools

pytestmark = pytest.mark.kafka_peer
FOURTH = 4


def voters(tools: KafkaTools) -> dict[int, str]:
    """Directory ids of the voters by node, as the tool shows them."""
    said = tools.run("quorum", "describe", "--replication")
    rows = [line.split() for line in said.splitlines() if line[:1].isdecimal()]
    return {int(row[0]): row[1] for row in rows if row[-1] in ("Leader", "Follower")}


def properties_of(node: BrokerProcess, cluster: ClusterProcess, folder: Path) -> Path:
    """What the tool reads of a controller: its number, its directory and where it listens."""
    path = folder / "controller.properties"
    lines = [
        "process.roles=broker,controller",
        f"node.id={node.node_id}",
        f"log.dirs={node.data_dir}",
        "controller.listener.names=CONTROLLER",
        f"listeners=CONTROLLER://127.0.0.1:{cluster.spare_port},PLAINTEXT://{node.address()}",
        f"controller.quorum.bootstrap.servers={cluster.addresses[1]}",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.timeout(180)
def test_a_controller_is_added_and_removed_by_hand(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        tools = KafkaTools(cluster.bootstrap, tmp_path)
        fourth = cluster.make_node(FOURTH, quorum=f"{cluster.quorum},{FOURTH}@127.0.0.1:{cluster.spare_port}")
        fourth.start()
        try:
            cluster.wait_for_brokers(1, 2, 3, FOURTH)
            assert sorted(voters(tools)) == [1, 2, 3]
            config = str(properties_of(fourth, cluster, tmp_path))
            add = ("quorum", "--command-config", config, "add-controller")
            said = wait_for("a voter that follows", lambda: _added(tools.run(*add)))
            assert f"Added controller {FOURTH}" in said, said
            assert sorted(voters(tools)) == [1, 2, 3, FOURTH]
            directory_id = voters(tools)[FOURTH]
            fourth.stop()
            said = tools.run(
                "quorum", "remove-controller",
                "--controller-id", str(FOURTH), "--controller-directory-id", directory_id,
            )  # fmt: skip
            assert f"KRaft controller {FOURTH} with directory id {directory_id}" in said, said
            assert sorted(voters(tools)) == [1, 2, 3]
        finally:
            if fourth.is_running:
                fourth.kill()


def _added(said: str) -> str | None:
    """None where it is not caught up yet; anything else is for the test to look at."""
    return None if "not caught up" in said or "REQUEST_TIMED_OUT" in said else said
