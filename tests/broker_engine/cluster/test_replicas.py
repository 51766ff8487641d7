"""Replicas in three real processes, written to by a real client: what is acked stays, what is not may go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker_engine.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from broker_engine.wire.messages.metadata import MetadataResponsePartition
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, stopped, wait_for
from tests.broker_engine.handlers.calls import batch_of, fetch, produce_request, records_of
from tests.broker_engine.raw_client import RawClient

ROUNDS = 3
PARTITION_COUNT = 2
_TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("replicas")) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        yield cluster


def make_topic(cluster: ClusterProcess, name: str, *, partition_count: int = PARTITION_COUNT, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(name, partition_count, 3, config=dotted)])[name].result(_TIMEOUT_S)
    wait_until_whole(cluster, name)


def partitions(cluster: ClusterProcess, topic: str, asked_id: int | None = None) -> list[MetadataResponsePartition]:
    for shown in cluster.metadata(None if asked_id is None else cluster[asked_id]).topics:
        if shown.name == topic:
            return list(shown.partitions)
    raise OSError("not shown yet")


def wait_until_whole(cluster: ClusterProcess, topic: str) -> None:
    """In the eyes of every node: one that slept shows for a moment what was."""

    def is_whole() -> bool:
        shown = [each for node in cluster.running for each in partitions(cluster, topic, node.node_id)]
        return all(len(each.isr_nodes) == 3 and each.leader_id > 0 for each in shown)

    wait_for("full ISRs", is_whole, timeout_s=_TIMEOUT_S)


class Writer:
    """Sends numbers, one after the other, and knows which were acked."""

    def __init__(self, cluster: ClusterProcess, topic: str, **settings: object) -> None:
        self._topic = topic
        self.acked: list[int] = []
        self.failed: list[KafkaError] = []
        self.next_number = 0
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0, **settings}
        )

    def send(self, count: int) -> None:
        for _ in range(count):
            number, self.next_number = self.next_number, self.next_number + 1
            self._producer.produce(self._topic, b"%d" % number, on_delivery=partial(self._note, number))
            self._producer.poll(0)

    def _note(self, number: int, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acked.append(number)
        else:
            self.failed.append(error)

    def wait_for_acks(self, count: int) -> None:
        wanted_count = len(self.acked) + count
        wait_for(f"{count} more acks", lambda: len(self.acked) >= wanted_count)

    def finish(self) -> None:
        assert self._producer.flush(_TIMEOUT_S) == 0


def read_all(cluster: ClusterProcess, topic: str) -> list[int]:
    """Of each partition's leader, up to the high watermark."""
    found: list[int] = []
    for shown in partitions(cluster, topic):
        with RawClient(cluster[shown.leader_id].address()) as client:
            offset = 0
            while records := records_of(fetch(client, topic, offset, partition=shown.partition_index)):
                found += [int(record.value or b"") for record in records if record.offset >= offset]
                offset = records[-1].offset + 1
    return found


def segment_of(node: BrokerProcess, topic: str, index: int = 0) -> Path:
    """The first one."""
    return Path(node.data_dir) / f"{topic}-{index}" / f"{0:020d}.log"


def stored(cluster: ClusterProcess, topic: str, index: int) -> set[bytes]:
    return {segment_of(node, topic, index).read_bytes() for node in cluster}


def wait_until_equal(cluster: ClusterProcess, topic: str, index: int) -> None:
    wait_for("equal logs", lambda: len(stored(cluster, topic, index)) == 1)


def test_nothing_that_was_acked_is_lost_when_leaders_are_killed(cluster: ClusterProcess) -> None:
    topic = "killed"
    make_topic(cluster, topic)
    writer = Writer(cluster, topic)
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.001):
            writer.send(5)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(ROUNDS):
            writer.wait_for_acks(200)
            leader_id = partitions(cluster, topic)[0].leader_id
            cluster[leader_id].kill()
            writer.wait_for_acks(200)
            cluster[leader_id].start()
            wait_until_whole(cluster, topic)
    finally:
        stop.set()
        writing.join()
    writer.finish()
    assert not writer.failed
    found = read_all(cluster, topic)
    assert sorted(found) == sorted(writer.acked) == list(range(writer.next_number)), "each one once"
    for index in range(PARTITION_COUNT):
        wait_until_equal(cluster, topic, index)


def is_left_out(cluster: ClusterProcess, topic: str, node_id: int, *, asked_id: int) -> bool:
    shown = partitions(cluster, topic, asked_id)
    return all(node_id not in each.isr_nodes and each.leader_id > 0 for each in shown)


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
def test_a_stopped_follower_leaves_the_isr_and_comes_back(cluster: ClusterProcess, durability: str) -> None:
    topic = f"stopped-{durability}"
    make_topic(cluster, topic, ack_durability=durability)
    controller_id = cluster.controller_id()
    follower = next(node for node in cluster if node.node_id != controller_id)
    # It leads some partitions, too: what was sent to it is sent again to the next leader after this, not after 30 s.
    writer = Writer(cluster, topic, **{"request.timeout.ms": 4_000, "socket.timeout.ms": 5_000})
    with stopped(follower):
        writer.send(100)
        writer.finish()
        wait_for("ISRs without it", lambda: is_left_out(cluster, topic, follower.node_id, asked_id=controller_id))
    wait_until_whole(cluster, topic)
    assert sorted(read_all(cluster, topic)) == list(range(100))


def test_a_tail_that_only_the_dead_leader_had_is_cut_off(cluster: ClusterProcess) -> None:
    topic = "diverging"
    make_topic(cluster, topic, partition_count=1)
    acked = Writer(cluster, topic)
    acked.send(10)
    acked.finish()
    leader = cluster[partitions(cluster, topic)[0].leader_id]
    with stopped(*(node for node in cluster if node is not leader)):
        alone = Writer(cluster, topic, acks=1, **{"enable.idempotence": False})
        for number in (1000, 2000):  # the first ones are on their way to the others already, in the kernel's buffers
            alone.next_number = number
            alone.send(5)
            alone.finish()
        leader.kill()
    acked.send(10)
    acked.finish()
    leader.start()
    wait_until_whole(cluster, topic)
    wait_until_equal(cluster, topic, 0)
    found = read_all(cluster, topic)
    assert [number for number in found if number < 1000] == list(range(20))
    assert not [number for number in found if number >= 2000]
    assert "is cut from" in leader.log


def test_who_comes_to_the_wrong_broker_is_told_the_right_one(cluster: ClusterProcess) -> None:
    topic = "misdirected"
    make_topic(cluster, topic, partition_count=1)
    (shown,) = partitions(cluster, topic)
    wrong = next(node for node in cluster if node.node_id != shown.leader_id)
    wanted = (shown.leader_id, shown.leader_epoch)
    with RawClient(wrong.address()) as client:
        produced = client.call(produce_request(topic, batch_of(b"v")), 12)
        topic_id = next(each.topic_id for each in cluster.metadata().topics if each.name == topic)
        asked = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
        fetched = client.call(FetchRequest(topics=[asked], max_wait_ms=0, min_bytes=1), 16)
        listed = client.call(
            ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=-1)])]
            ),
            7,
        )
    answers = [produced.responses[0].partition_responses[0], fetched.responses[0].partitions[0]]
    assert [answer.error_code for answer in answers] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert listed.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    hints = [(answer.current_leader.leader_id, answer.current_leader.leader_epoch) for answer in answers]
    assert hints == [wanted] * 2
    address = cluster[shown.leader_id].address()
    for response in (produced, fetched):
        assert [f"{node.host}:{node.port}" for node in response.node_endpoints] == [address]
