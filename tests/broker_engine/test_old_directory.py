"""A directory that one broker made before there was a cluster: it opens as it was, and grows.

The fixture was written by `python -m broker_engine serve` at commit 590dd12: orders (3 partitions, 20 records each),
payments (5 records), one topic that was deleted, two starts, a clean stop.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient

FIXTURE = Path(__file__).parent / "fixtures" / "single_broker_590dd12.tar.gz"


def unpack(directory: Path) -> None:
    directory.mkdir()
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(directory, filter="data")


def check_records(node: BrokerProcess) -> None:
    with RawClient(node.address()) as client:
        for partition in range(3):
            values = values_of(fetch(client, "orders", partition=partition))
            assert values == [b"order %d" % number for number in range(partition, 60, 3)]
        assert values_of(fetch(client, "payments")) == [b"payment %d" % number for number in range(5)]


def leaders_of(cluster: ClusterProcess, name: str) -> set[int]:
    topics = [topic for topic in cluster.metadata().topics if topic.name == name]
    return {partition.leader_id for topic in topics for partition in topic.partitions}


def test_it_opens_as_it_was_and_takes_more(tmp_path: Path) -> None:
    unpack(tmp_path / "broker")
    broker = BrokerProcess(tmp_path / "broker")
    with broker:
        assert "cluster=7HTkda7NT8G9tbSj9lL1Kw" in broker.ready_line
        check_records(broker)
        with RawClient(broker.address()) as client:
            produce(client, create(client, "new"), batch_of(b"after"))
        broker.kill()
        broker.start()
        check_records(broker)
        with RawClient(broker.address()) as client:
            assert values_of(fetch(client, "new")) == [b"after"]


def test_it_grows_into_three_voters_and_outlives_the_first(tmp_path: Path) -> None:
    unpack(tmp_path / "node-1")
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        check_records(cluster[1])
        wait_for("three voters", lambda: "voters 1, 2, 3" in cluster[1].log or None)
        cluster[1].kill()
        assert cluster.controller_id() in (2, 3)
        cluster[1].start()
        cluster.wait_for_brokers(1, 2, 3)
        wait_for("its leaders again", lambda: leaders_of(cluster, "orders") == {1} or None)
        check_records(cluster[1])
