"""What one broker knows of partitions and of the controller, asked by a bare socket; any broker of Kafka's protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker_engine.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)
from broker_engine.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopicPartitions
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker_engine.raw_client import RawClient

ASK_TIMEOUT_S = 2.0
ELECT_TIMEOUT_S = 10.0
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Replication:
    """One partition as a node knows it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return self.leader >= 0 and sorted(self.isr) == sorted(self.replicas)


def ask_replication(port: int, topic: str) -> dict[int, Replication]:
    """Empty where the node does not answer, or does not know the topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    try:
        with RawClient(f"127.0.0.1:{port}", timeout_s=ASK_TIMEOUT_S) as client:
            answer = client.call(request, 9)
    except (OSError, AssertionError):
        return {}
    return {
        partition.partition_index: Replication(
            partition.leader_id, partition.leader_epoch, tuple(partition.isr_nodes), tuple(partition.replica_nodes)
        )
        for partition in answer.topics[0].partitions
    }


def ask_broker_count(port: int) -> int:
    """How many brokers the node tells clients of; 0 where it does not answer."""
    try:
        with RawClient(f"127.0.0.1:{port}", timeout_s=ASK_TIMEOUT_S) as client:
            return len(client.call(MetadataRequest(topics=[]), 9).brokers)
    except (OSError, AssertionError):
        return 0


def ask_quorum_leader(port: int) -> tuple[int, int]:
    """(epoch, node) of the metadata quorum's leader; (-1, -1) where the node does not say."""
    partitions = [DescribeQuorumPartition(partition_index=0)]
    topics = [DescribeQuorumTopic(topic_name="__cluster_metadata", partitions=partitions)]
    try:
        with RawClient(f"127.0.0.1:{port}", timeout_s=ASK_TIMEOUT_S) as client:
            state = client.call(DescribeQuorumRequest(topics=topics), 1).topics[0].partitions[0]
    except (OSError, AssertionError, IndexError):
        return NOBODY, NOBODY
    return (state.leader_epoch, state.leader_id) if state.leader_id >= 0 else (NOBODY, NOBODY)


def newest_leader(ports: list[int], topic: str, number: int) -> int:
    """As the nodes that answer know it, by the newest epoch; -1 where there is none."""
    known = [ask_replication(port, topic).get(number) for port in ports]
    newest = max((state for state in known if state), key=lambda state: state.leader_epoch, default=None)
    return NOBODY if newest is None else newest.leader


def what_is_missing(ports: dict[int, int], topics: list[str]) -> str:
    """Empty where every node knows a leader and a full ISR of every partition."""
    for node_id, port in ports.items():
        for topic in topics:
            known = ask_replication(port, topic)
            if not known:
                return f"node {node_id} does not answer for {topic}"
            for number, state in known.items():
                if not state.is_whole:
                    return f"node {node_id} knows {topic}-{number} as {state}"
    return ""


def ask_election(addresses: Iterable[str], partitions: Sequence[tuple[str, int]], *, is_unclean: bool = False) -> None:
    """The first replica shall lead again, or anybody; asked of everybody in turn until one carries it out."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    wanted = [ElectLeadersTopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
    request = ElectLeadersRequest(election_type=int(is_unclean), topic_partitions=wanted, timeout_ms=5_000)
    for address in addresses:
        try:
            with RawClient(address, timeout_s=ELECT_TIMEOUT_S) as client:
                if client.call(request, 2).error_code == 0:
                    return
        except (OSError, AssertionError):
            continue
