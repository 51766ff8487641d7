"""The producer against a real broker, over real sockets."""

from __future__ import annotations

import asyncio
import itertools
import random
from pathlib import Path

import pytest

from broker_engine.client import (
    Admin,
    Client,
    ClientConfig,
    KafkaError,
    NewTopic,
    Producer,
    RecordMetadata,
    UnknownTopic,
    raise_errors,
)
from broker_engine.client.murmur2 import partition_for_key
from broker_engine.client.producer import CodecName
from broker_engine.errors import ErrorCode
from broker_engine.records.header import BatchHeader, iter_batches, parse_header
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.reading import MakeTopic, read


def batches_of(broker: BrokerProcess, topic: str) -> list[BatchHeader]:
    path = broker.data_dir / f"{topic}-0" / "00000000000000000000.log"
    return [parse_header(batch) for batch in iter_batches(path.read_bytes())]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_is_sent_is_read_with_each_codec(client: Client, make_topic: MakeTopic, codec: CodecName) -> None:
    topic = await make_topic()
    headers = (("trace", b"\x00\x01"), ("empty", None))
    async with Producer(client, codec=codec) as producer:
        first = await producer.send(topic, b"value", key=b"key", headers=headers, timestamp_ms=1_700_000_000_000)
        producer.send_nowait(topic, None, key=b"deleted")
        producer.send_nowait(topic, b"")

    records = await read(client, topic, 3)
    assert (first.topic, first.partition, first.offset, first.timestamp_ms) == (topic, 0, 0, 1_700_000_000_000)
    assert (records[0].key, records[0].value, records[0].headers) == (b"key", b"value", headers)
    assert records[0].timestamp_ms == 1_700_000_000_000
    assert [(record.offset, record.key, record.value) for record in records[1:]] == [
        (1, b"deleted", None),
        (2, None, b""),
    ]


async def test_records_that_come_while_a_batch_lingers_share_it(
    client: Client, make_topic: MakeTopic, broker: BrokerProcess
) -> None:
    topic = await make_topic()
    async with Producer(client, linger_ms=200) as producer:
        sent = [producer.send_nowait(topic, b"%d" % number) for number in range(20)]
        await asyncio.gather(*sent)

    assert [batch.record_count for batch in batches_of(broker, topic)] == [20]


async def test_flush_does_not_linger(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with Producer(client, linger_ms=60_000) as producer:
        sent = producer.send_nowait(topic, b"now")
        async with asyncio.timeout(10):
            await producer.flush()
        assert sent.result().offset == 0


async def test_no_batch_is_larger_than_the_batch_size(
    client: Client, make_topic: MakeTopic, broker: BrokerProcess
) -> None:
    topic = await make_topic()
    async with Producer(client, linger_ms=50, batch_size_bytes=2_000) as producer:
        for number in range(100):
            producer.send_nowait(topic, b"%03d" % number + b"x" * 100)

    batches = batches_of(broker, topic)
    assert sum(batch.record_count for batch in batches) == 100
    assert all(batch.size_bytes <= 2_000 for batch in batches)
    assert len(batches) <= 10, "full batches, not one per record"


async def test_large_records_travel_in_batches_of_their_own(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    values = [bytes([number]) * (300_000 + number) for number in range(8)]
    async with Producer(client) as producer:
        await asyncio.gather(*(producer.send(topic, value) for value in values))

    assert [record.value for record in await read(client, topic, 8)] == values


async def test_a_record_above_the_topics_limit_is_refused_and_the_next_one_is_not(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = await make_topic(max_message_bytes="10000")
    async with Producer(client) as producer:
        with pytest.raises(KafkaError) as caught:
            await producer.send(topic, random.Random(1).randbytes(20_000))
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert (await producer.send(topic, b"small")).offset == 0


async def test_keys_meet_the_partition_of_the_java_client(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic(partitions=5)
    keys = [b"customer-%d" % number for number in range(50)]
    async with Producer(client) as producer:
        sent = await asyncio.gather(*(producer.send(topic, b"x", key=key) for key in keys))

    assert [one.partition for one in sent] == [partition_for_key(key, 5) for key in keys]


async def test_keyless_records_spread_over_the_partitions_batch_by_batch(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic(partitions=3)
    async with Producer(client, batch_size_bytes=500) as producer:
        sent = [producer.send_nowait(topic, b"x" * 100) for _ in range(300)]
    partitions = [one.result().partition for one in sent]

    assert set(partitions) == {0, 1, 2}
    switches = sum(left != right for left, right in itertools.pairwise(partitions))
    assert switches < 150, "several records stay together before the next partition is chosen"


async def test_a_thousand_sends_from_a_hundred_tasks_share_one_producer(client: Client, make_topic: MakeTopic) -> None:
    """Safe to share within one loop: each record arrives once, each task's records in its own order."""
    topic = await make_topic(partitions=4)
    task_count, records_per_task = 100, 10

    async def work(task: int) -> None:
        for number in range(records_per_task):
            future = await producer.enqueue(topic, b"%d:%d" % (task, number), key=b"task-%d" % task)
            await asyncio.sleep(0)
            if number % 3 == 0:
                await future

    async with Producer(client, linger_ms=1, batch_size_bytes=1_000) as producer:
        await asyncio.gather(*(work(task) for task in range(task_count)))

    seen: dict[int, list[int]] = {task: [] for task in range(task_count)}
    for record in await read(client, topic, task_count * records_per_task, partitions=4):
        assert record.value is not None
        task, number = map(int, record.value.split(b":"))
        seen[task].append(number)
    assert all(numbers == list(range(records_per_task)) for numbers in seen.values())


async def test_a_killed_broker_costs_neither_a_record_nor_a_duplicate(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        config = ClientConfig(bootstrap=(broker.address(),), retry_backoff_ms=20)
        async with Client(config) as client, Producer(client, batch_size_bytes=500, linger_ms=0) as producer:
            raise_errors(await Admin(client).create_topics([NewTopic("orders", 2, 1)]))
            is_under_way, is_back = asyncio.Event(), asyncio.Event()
            sending = asyncio.create_task(_send_until(producer, is_under_way, is_back))
            await is_under_way.wait()
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            is_back.set()
            count = await sending
            records = await read(client, "orders", count, partitions=2)

    for partition in (0, 1):
        numbers = [int(record.value) for record in records if record.partition == partition and record.value]
        assert numbers == list(range(partition, count, 2))


async def _send_until(producer: Producer, is_under_way: asyncio.Event, is_back: asyncio.Event) -> int:
    """Send numbers in waves of 200, each while the one before is still under way; a few waves after the crash, too."""
    waves_afterwards = 3
    sent: list[asyncio.Future[RecordMetadata]] = []
    while waves_afterwards:
        waves_afterwards -= is_back.is_set()
        for _ in range(200):
            sent.append(await producer.enqueue("orders", b"%d" % len(sent), partition=len(sent) % 2))
        if len(sent) >= 600:
            await asyncio.gather(*sent[-600:-400])
            is_under_way.set()
    await asyncio.gather(*sent)
    return len(sent)


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_every_kind_of_acks_reaches_the_log(client: Client, make_topic: MakeTopic, acks: int) -> None:
    topic = await make_topic()
    async with Producer(client, acks=acks) as producer:
        for number in range(10):
            producer.send_nowait(topic, b"%d" % number)

    assert [record.value for record in await read(client, topic, 10)] == [b"%d" % number for number in range(10)]


async def test_an_unknown_topic_is_named_after_the_wait(broker: BrokerProcess) -> None:
    config = ClientConfig(bootstrap=(broker.address(),), unknown_topic_wait_ms=200)
    async with Client(config) as client, Producer(client, auto_create_topics=False) as producer:
        with pytest.raises(
            UnknownTopic, match=r"topic 'nowhere' does not exist on 127.0.0.1:\d+ \(waited 200 ms\); create it"
        ):
            await producer.send("nowhere", b"x")


async def test_a_topic_is_created_on_first_use_where_the_broker_does_so(client: Client) -> None:
    async with Producer(client) as producer:
        assert (await producer.send("born-by-use", b"x")).offset == 0
