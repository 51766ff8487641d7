"""A byte that turns on a leader's disk, in three real processes: nobody reads it, and the copy is made whole again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, stopped, wait_for
from tests.broker_engine.cluster.test_replicas import (
    Writer,
    make_topic,
    partitions,
    read_all,
    segment_of,
    wait_until_equal,
    wait_until_whole,
)

PATIENT = {"broker.session.timeout.ms": "18000", "replica.lag.time.max.ms": "30000"}
"""Who is stopped for a moment stays in sync: the damage is what moves things here, not the stop."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("rot"), settings=PATIENT) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        yield cluster


def leader_of(cluster: ClusterProcess, topic: str) -> BrokerProcess:
    return cluster[partitions(cluster, topic)[0].leader_id]


def write_acked(cluster: ClusterProcess, topic: str, numbers: range, **settings: object) -> None:
    writer = Writer(cluster, topic, **settings)
    writer.next_number = numbers.start
    writer.send(len(numbers))
    writer.finish()
    assert not writer.failed


def rot_last_byte(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 0x10]))


def test_what_rotted_on_the_leader_is_mended_by_a_follower(cluster: ClusterProcess) -> None:
    """Found by a follower that lost its disk and is sent all of it."""
    topic = "committed"
    make_topic(cluster, topic, partition_count=1)
    write_acked(cluster, topic, range(10))
    wait_until_equal(cluster, topic, 0)
    leader = leader_of(cluster, topic)
    whole = segment_of(leader, topic).read_bytes()
    follower = next(node for node in cluster if node is not leader)
    follower.stop()
    shutil.rmtree(segment_of(follower, topic).parent)
    rot_last_byte(segment_of(leader, topic))
    follower.start()
    for node in (leader, follower):
        wait_for("a whole copy", lambda node=node: segment_of(node, topic).read_bytes() == whole)
    wait_until_whole(cluster, topic)
    assert sorted(read_all(cluster, topic)) == list(range(10))
    assert "is damaged on disk" in leader.log
    assert "is whole again" in leader.log


def test_a_leader_whose_last_records_rotted_before_others_had_them_hands_over(cluster: ClusterProcess) -> None:
    """Nobody was promised them: they go, and everything after them is acknowledged again."""
    topic = "uncommitted"
    make_topic(cluster, topic, partition_count=1)
    write_acked(cluster, topic, range(10))
    leader = leader_of(cluster, topic)
    with stopped(*(node for node in cluster if node is not leader)):
        for numbers in (range(1000, 1005), range(2000, 2005)):  # the first are in the kernel's buffers already
            write_acked(cluster, topic, numbers, acks=1, **{"enable.idempotence": False})
        rot_last_byte(segment_of(leader, topic))
    write_acked(cluster, topic, range(10, 20))
    assert leader_of(cluster, topic) is not leader
    assert "another one in sync is to lead" in leader.log
    wait_until_whole(cluster, topic)
    found = read_all(cluster, topic)
    assert [number for number in found if number < 1000] == list(range(20))
    assert not [number for number in found if number >= 2000]
