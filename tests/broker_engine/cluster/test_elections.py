"""Elections that no rule of sync decides any more: who has the most leads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_engine.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker_engine.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopicPartitions
from broker_engine.wire.messages.metadata import MetadataResponsePartition
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.calls import batch_of, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient

TOPIC = "chosen"


def make_topic(cluster: ClusterProcess, replicas: list[int], **configs: str) -> None:
    topic = CreatableTopic(
        name=TOPIC,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
        configs=[CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()],
    )
    with RawClient(cluster[1].address()) as client:
        assert client.call(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    wait_until(cluster, lambda row: sorted(row.isr_nodes) == sorted(replicas))


def wait_until(cluster: ClusterProcess, holds: Callable[[MetadataResponsePartition], bool]) -> None:
    def look() -> bool:
        found = [topic for topic in cluster.metadata().topics if topic.name == TOPIC and topic.partitions]
        return bool(found) and holds(found[0].partitions[0])

    wait_for("the state of the partition", look)


def leader_id(cluster: ClusterProcess) -> int:
    return next(topic for topic in cluster.metadata().topics if topic.name == TOPIC).partitions[0].leader_id


def write(cluster: ClusterProcess, leader_id: int, value: bytes) -> None:
    with RawClient(cluster[leader_id].address()) as client:
        wait_for("an acked record", lambda: produce(client, TOPIC, batch_of(value)).error_code == 0)


def read(cluster: ClusterProcess, leader_id: int) -> list[bytes | None]:
    with RawClient(cluster[leader_id].address()) as client:
        return values_of(fetch(client, TOPIC))


def test_an_empty_disk_is_not_chosen_before_one_with_records(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        make_topic(cluster, [2, 3], min_insync_replicas="1")
        write(cluster, 2, b"on both")
        cluster[3].kill()
        wait_until(cluster, lambda row: list(row.isr_nodes) == [2])
        write(cluster, 2, b"on one")
        cluster[2].kill()
        shutil.rmtree(cluster[2].data_dir)
        cluster.start()
        cluster.wait_for_brokers(1, 2, 3)
        wait_until(cluster, lambda row: row.leader_id == -1 and not row.isr_nodes)
        asked = [ElectLeadersTopicPartitions(topic=TOPIC, partitions=[0])]
        with RawClient(cluster[1].address()) as client:
            response = client.call(ElectLeadersRequest(election_type=1, topic_partitions=asked), 2)
        assert response.replica_election_results[0].partition_result[0].error_code == 0
        wait_until(cluster, lambda row: row.leader_id == 3)
        wait_for("what is left", lambda: read(cluster, 3) == [b"on both"])


def test_when_all_crashed_somebody_who_was_in_sync_leads_without_being_asked(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        make_topic(cluster, [1, 2, 3], ack_durability="page-cache")
        write(cluster, 1, b"kept")
        for node in cluster:
            node.kill()
        cluster.start()
        wait_until(cluster, lambda row: row.leader_id in (1, 2, 3) and len(row.isr_nodes) == 3)
        assert read(cluster, leader_id(cluster)) == [b"kept"]


def remove_files(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()


@pytest.mark.parametrize("lose", [shutil.rmtree, remove_files], ids=["directory", "its files"])
def test_who_lost_a_partitions_log_after_a_clean_stop_does_not_lead_with_an_empty_one(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        make_topic(cluster, [3, 1, 2])
        write(cluster, 3, b"kept")
        for node_id in (1, 2, 3):  # the last one to go stays in sync, alone
            cluster[node_id].stop()
        lose(cluster[3].data_dir / f"{TOPIC}-0")
        cluster.start()
        wait_until(cluster, lambda row: row.leader_id > 0 and len(row.isr_nodes) == 3)
        assert read(cluster, leader_id(cluster)) == [b"kept"]
        assert "is gone since the last stop" in cluster[3].log
