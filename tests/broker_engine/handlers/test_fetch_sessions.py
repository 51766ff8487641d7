"""Fetch sessions over the wire, with the answers that a real Kafka gave (protocol.md 2.4)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from broker_engine.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from broker_engine.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest
from broker_engine.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, produce, topic_id_of, values_of
from tests.broker_engine.raw_client import RawClient

Offsets = dict[int, int]
"""Partition -> fetch offset."""


class Reader:
    """One session on one topic, as a client keeps it."""

    def __init__(self, client: RawClient, topic: str, *, version: int = 12) -> None:
        self.client = client
        self.version = version
        self.session_id = 0
        self.epoch = 0
        self._topic: dict[str, Any] = {"topic": topic}
        if version >= 13:
            self._topic = {"topic_id": topic_id_of(client, topic)}

    def request(self, offsets: Offsets | None = None, forget: Iterable[int] = (), **options: Any) -> FetchRequest:
        asked = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in (offsets or {}).items()
        ]
        forgotten = [ForgottenTopic(**self._topic, partitions=list(forget))] if forget else []
        settings: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 50 << 20, **options}
        settings = {"session_id": self.session_id, "session_epoch": self.epoch, **settings}
        topics = [FetchTopic(**self._topic, partitions=asked)] if asked else []
        return FetchRequest(topics=topics, forgotten_topics_data=forgotten, **settings)

    def fetch(self, offsets: Offsets | None = None, forget: Iterable[int] = (), **options: Any) -> dict[int, Any]:
        """The partitions of the answer; goes on with the session."""
        response = self.client.call(self.request(offsets, forget, **options), self.version)
        assert response.error_code == 0, response
        self.session_id = response.session_id
        self.epoch += 1
        return {data.partition_index: data for topic in response.responses for data in topic.partitions}

    def refusal(self, **options: Any) -> int:
        response = self.client.call(self.request(**options), self.version)
        assert (response.session_id, list(response.responses)) == (0, [])
        return int(response.error_code)


@pytest.mark.parametrize("version", [7, 11, 12, 13, 17])
def test_only_what_changed_is_answered(root: RawClient, version: int) -> None:
    topic = create(root, partitions=3)
    reader = Reader(root, topic, version=version)
    assert sorted(reader.fetch({0: 0, 1: 0, 2: 0})) == [0, 1, 2]
    assert reader.session_id > 0
    session_id = reader.session_id
    assert reader.fetch() == {}
    produce(root, topic, batch_of(b"one"), partition=1)
    (answered,) = reader.fetch().items()
    assert (answered[0], values_of(answered[1])) == (1, [b"one"])
    assert reader.fetch({1: 1}) == {}
    assert reader.session_id == session_id


def test_a_moved_high_watermark_or_log_start_is_told_once(root: RawClient) -> None:
    topic = create(root)
    for _ in range(3):
        produce(root, topic, batch_of(b"x"))
    reader = Reader(root, topic)
    reader.fetch({0: 3})
    produce(root, topic, batch_of(b"x"))
    assert reader.fetch({0: 4})[0].high_watermark == 4
    part = DeleteRecordsPartition(partition_index=0, offset=2)
    root.call(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])]), 2)
    assert reader.fetch()[0].log_start_offset == 2
    assert reader.fetch() == {}


def test_an_error_is_repeated_in_every_answer(root: RawClient) -> None:
    topic = create(root)
    produce(root, topic, batch_of(b"x"))
    reader = Reader(root, topic)
    assert reader.fetch({0: 99, 5: 0})[0].error_code == 1
    for _ in range(2):
        again = reader.fetch()
        assert {index: data.error_code for index, data in again.items()} == {0: 1, 5: 3}
    healed = reader.fetch({0: 1}, forget=[5])
    assert (healed[0].error_code, healed[0].high_watermark) == (0, 1)
    assert reader.fetch() == {}


def test_partitions_come_and_go(root: RawClient) -> None:
    topic = create(root, partitions=3)
    for index in range(3):
        produce(root, topic, batch_of(b"%d" % index), partition=index)
    reader = Reader(root, topic)
    assert sorted(reader.fetch({0: 0})) == [0]
    assert sorted(reader.fetch({1: 0, 2: 0})) == [0, 1, 2]
    assert sorted(reader.fetch(forget=[0, 1])) == [2]


def test_a_session_without_partitions_ends(root: RawClient) -> None:
    reader = Reader(root, create(root))
    reader.fetch({0: 0})
    old_id = reader.session_id
    assert reader.fetch(forget=[0]) == {}
    assert reader.session_id == 0
    assert reader.refusal(session_id=old_id) == 70


def test_the_final_epoch_closes_and_answers_in_full(root: RawClient) -> None:
    reader = Reader(root, create(root))
    reader.fetch({0: 0})
    old_id = reader.session_id
    assert sorted(reader.fetch({0: 0}, session_epoch=-1)) == [0]
    assert reader.session_id == 0
    assert reader.refusal(session_id=old_id, session_epoch=1) == 70


def test_a_new_session_replaces_the_one_that_it_names(root: RawClient) -> None:
    reader = Reader(root, create(root))
    reader.fetch({0: 0})
    old_id = reader.session_id
    reader.fetch({0: 0}, session_epoch=0)
    assert reader.session_id not in (0, old_id)
    assert reader.refusal(session_id=old_id, session_epoch=1) == 70


def test_refusals_and_what_survives_them(root: RawClient) -> None:
    topic = create(root)
    reader = Reader(root, topic)
    assert reader.refusal(session_id=12345, session_epoch=1) == 70
    assert reader.refusal(session_id=0, session_epoch=1) == 70
    reader.fetch({0: 0})
    assert reader.refusal(session_epoch=9) == 71
    by_id = Reader(root, topic, version=13)
    assert by_id.refusal(session_id=reader.session_id, session_epoch=1) == 106
    assert reader.fetch() == {}


def test_another_tenant_does_not_find_the_session(acme: RawClient, globex: RawClient) -> None:
    reader = Reader(acme, create(acme))
    reader.fetch({0: 0})
    stranger = Reader(globex, create(globex))
    assert stranger.refusal(session_id=reader.session_id, session_epoch=1) == 70
    stranger.fetch({0: 0}, session_id=reader.session_id)
    assert reader.fetch() == {}


def test_a_long_poll_in_a_session_wakes_for_its_partitions(broker: BrokerProcess, root: RawClient) -> None:
    topic = create(root, partitions=3)
    with RawClient(broker.address()) as client:
        reader = Reader(client, topic)
        reader.fetch({0: 0, 1: 0, 2: 0})
        started = time.monotonic()
        request = reader.request(max_wait_ms=20_000)
        client.send_request(request, reader.version)
        produce(root, topic, batch_of(b"woken"), partition=2)
        (answer,) = client.receive(request, reader.version).responses
    assert [values_of(data) for data in answer.partitions] == [[b"woken"]]
    assert time.monotonic() - started < 10


def test_whoever_got_records_comes_last(root: RawClient) -> None:
    topic = create(root, partitions=2)
    for index in range(2):
        produce(root, topic, batch_of(b"x" * 1000), partition=index)
    reader = Reader(root, topic)
    reader.fetch({0: 0, 1: 0})
    assert list(reader.fetch(max_bytes=1)) == [0]
    assert list(reader.fetch(max_bytes=1)) == [1]


def test_a_topic_that_is_deleted_and_one_that_grows(root: RawClient) -> None:
    topic = create(root)
    reader = Reader(root, topic)
    assert reader.fetch({0: 0, 1: 0})[1].error_code == 3
    root.call(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=topic, count=2, assignments=None)]), 3)
    assert reader.fetch()[1].error_code == 0
    root.call(DeleteTopicsRequest(topic_names=[topic]), 5)
    assert {data.error_code for data in reader.fetch(max_wait_ms=20_000).values()} == {3}


def test_an_unknown_id_is_an_error_until_it_is_forgotten(root: RawClient) -> None:
    reader = Reader(root, create(root), version=13)
    reader.fetch({0: 0})
    unknown = FetchTopic(topic_id=UUID(int=99), partitions=[FetchPartition(partition=0)])
    request = reader.request()
    request.topics = [unknown]
    assert root.call(request, 13).responses[0].partitions[0].error_code == 100
    reader.epoch += 1
    assert reader.fetch()[0].error_code == 100
