"""The metadata quorum of real processes: who votes, how voters change, snapshots on the way to a node that lost all."""

from __future__ import annotations

import shutil
from pathlib import Path

from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.add_raft_voter import AddRaftVoterRequest
from broker_engine.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumPartitionResult,
    DescribeQuorumReplicaState,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)
from broker_engine.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.calls import create
from tests.broker_engine.raw_client import RawClient

SMALL_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "1500"}


def quorum(cluster: ClusterProcess) -> DescribeQuorumPartitionResult | None:
    topic = DescribeQuorumTopic(topic_name="__cluster_metadata", partitions=[DescribeQuorumPartition()])
    with RawClient(cluster.running[0].address()) as client:
        response = client.call(DescribeQuorumRequest(topics=[topic]), 2)
    if response.error_code != ErrorCode.NONE:
        return None
    result: DescribeQuorumPartitionResult = response.topics[0].partitions[0]
    return result


def voter_ids(cluster: ClusterProcess) -> list[int]:
    described = quorum(cluster)
    return [] if described is None else [voter.replica_id for voter in described.current_voters]


def wait_for_voters(cluster: ClusterProcess, *node_ids: int) -> DescribeQuorumPartitionResult:
    wait_for(f"voters {node_ids}", lambda: voter_ids(cluster) == list(node_ids) or None)
    described = quorum(cluster)
    assert described is not None
    return described


def test_nodes_that_are_named_become_voters_and_are_close_behind(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        described = wait_for_voters(cluster, 1, 2, 3)
        assert described.leader_id == 1
        assert len({voter.replica_directory_id for voter in described.current_voters}) == 3

        def all_caught_up() -> bool:
            now = quorum(cluster)
            return now is not None and all(v.log_end_offset >= now.high_watermark for v in now.current_voters)

        wait_for("all caught up", all_caught_up)


def test_a_leader_that_is_gone_is_removed_by_hand_and_comes_back_as_another(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        described = wait_for_voters(cluster, 1, 2, 3)
        assert described.leader_id == 1
        leader = described.current_voters[0]
        cluster[1].kill()
        shutil.rmtree(cluster[1].data_dir)
        wait_for("another leader", lambda: (quorum(cluster) or described).leader_id != leader.replica_id or None)
        assert _remove(cluster, leader) is ErrorCode.NONE
        wait_for_voters(cluster, 2, 3)
        assert _remove(cluster, leader) is ErrorCode.VOTER_NOT_FOUND
        cluster[1].start()
        now = wait_for_voters(cluster, 1, 2, 3)
        again = next(voter for voter in now.current_voters if voter.replica_id == 1)
        assert again.replica_directory_id != leader.replica_directory_id


def _remove(cluster: ClusterProcess, voter: DescribeQuorumReplicaState) -> ErrorCode:
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=voter.replica_id, voter_directory_id=voter.replica_directory_id
    )
    with RawClient(cluster.running[0].address()) as client:
        return ErrorCode(client.call(request, 0).error_code)


def test_a_stranger_cannot_become_a_voter(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, 1) as cluster:
        described = wait_for_voters(cluster, 1)
        mine = described.current_voters[0]
        request = AddRaftVoterRequest(cluster_id=None, voter_id=9, voter_directory_id=mine.replica_directory_id)
        with RawClient(cluster[1].address()) as client:
            assert client.call(request, 1).error_code == ErrorCode.REQUEST_TIMED_OUT
            request = AddRaftVoterRequest(cluster_id="another", voter_id=9)
            assert client.call(request, 1).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        assert _remove(cluster, mine) is ErrorCode.INVALID_REQUEST


def test_a_node_that_lost_its_disk_catches_up_by_a_snapshot(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, settings=SMALL_SNAPSHOTS) as cluster:
        wait_for_voters(cluster, 1, 2, 3)
        with RawClient(cluster[1].address()) as client:
            names = {create(client, f"topic-{number}") for number in range(25)}
        cluster[3].kill()
        shutil.rmtree(cluster[3].data_dir)
        cluster[3].start()
        wait_for("the snapshot", lambda: "fetching the metadata snapshot" in cluster[3].log or None)
        cluster.wait_for_brokers(1, 2, 3)
        wait_for_voters(cluster, 1, 2, 3)
        assert names <= {topic.name for topic in cluster.metadata(cluster[3]).topics}


def test_snapshots_survive_the_end_of_all_nodes(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, settings=SMALL_SNAPSHOTS) as cluster:
        with RawClient(cluster[1].address()) as client:
            names = {create(client, f"topic-{number}") for number in range(25)}
        for node in cluster:
            node.kill()
        assert list((cluster[1].data_dir / "__cluster_metadata-0").glob("*.checkpoint"))
        cluster.start()
        for node in cluster:
            assert names <= {topic.name for topic in cluster.metadata(node).topics}
