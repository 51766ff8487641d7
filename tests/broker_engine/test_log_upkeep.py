"""What a running broker does to its logs: compaction, producer snapshots, checkpoints that speak of one topic only."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.server.compactor import CLEANER_OFFSETS
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest
from broker_engine.wire.messages.delete_topics import DeleteTopicState as TopicToDelete
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, records_of, values_of
from tests.broker_engine.raw_client import RawClient

TIMEOUT_S = 20.0


@pytest.fixture
def broker(tmp_path: Path) -> BrokerProcess:
    return BrokerProcess(tmp_path / "broker", settings={"log.cleaner.backoff.ms": "100"})


def keyed(key: bytes, value: bytes | None, timestamp_ms: int) -> bytes:
    return build_batch([NewRecord(timestamp_ms, key, value)])


def all_pairs(client: RawClient, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    pairs, offset = [], 0
    while records := records_of(fetch(client, topic, offset)):
        pairs += [(record.offset, record.key, record.value) for record in records if record.offset >= offset]
        offset = records[-1].offset + 1
    return pairs


def test_a_compacted_topic_shrinks_to_the_last_record_of_each_key(broker: BrokerProcess) -> None:
    now_ms = int(time.time() * 1000)
    with broker:
        with RawClient(broker.address()) as client:
            topic = create(client, cleanup_policy="compact", segment_ms="1000", **{"min.cleanable.dirty.ratio": "0.01"})
            for number in range(20):  # every batch is two seconds younger: each begins a segment
                produce(client, topic, keyed(b"key-%d" % (number % 3), b"%d" % number, now_ms - 60_000 + 2000 * number))
            deadline = time.monotonic() + TIMEOUT_S
            while len(all_pairs(client, topic)) > 4 or not (broker.data_dir / CLEANER_OFFSETS).exists():
                assert time.monotonic() < deadline, "not compacted in time"
            expected = [(16, b"key-1", b"16"), (17, b"key-2", b"17"), (18, b"key-0", b"18"), (19, b"key-1", b"19")]
            assert all_pairs(client, topic) == expected
            checkpoint = broker.data_dir / CLEANER_OFFSETS
            while f"{topic} 0 19" not in checkpoint.read_text():
                assert time.monotonic() < deadline, "not remembered in time"
        broker.stop()
        broker.start()
        with RawClient(broker.address()) as client:
            assert all_pairs(client, topic) == expected


def test_a_restarted_broker_knows_its_producers_from_the_snapshot(broker: BrokerProcess) -> None:
    batches = [batch_of(b"%d" % number, producer_id=77, producer_epoch=0, base_sequence=number) for number in range(4)]
    with broker:
        with RawClient(broker.address()) as client:
            topic = create(client)
            answers = [produce(client, topic, batch).base_offset for batch in batches]
        broker.stop()
        assert list(broker.data_dir.rglob(f"{topic}-0/*4.snapshot"))
        broker.start()
        with RawClient(broker.address()) as client:
            assert [produce(client, topic, batch).base_offset for batch in batches] == answers == [0, 1, 2, 3]
            assert len(values_of(fetch(client, topic))) == 4


def test_a_topic_that_gets_a_deleted_ones_name_gets_nothing_of_its_checkpoints(broker: BrokerProcess) -> None:
    with broker:
        with RawClient(broker.address()) as client:
            topic = create(client, retention_ms="1000")
            for _ in range(5):
                produce(client, topic, batch_of(b"old", b"old"))
        broker.stop()  # the checkpoints say 10
        broker.start()
        with RawClient(broker.address()) as client:
            client.call(DeleteTopicsRequest(topics=[TopicToDelete(name=topic)], timeout_ms=10_000), 6)
            create(client, topic)
            produce(client, topic, batch_of(b"new"))
        broker.kill()
        broker.start()
        with RawClient(broker.address()) as client:
            answer = fetch(client, topic)
            assert (answer.error_code, answer.log_start_offset, answer.high_watermark) == (0, 0, 1)
            assert values_of(answer) == [b"new"]
