"""The consumer by assignment, and the stateless fetch, against a real broker."""

from __future__ import annotations

import asyncio

import pytest

from broker_engine.client import (
    Client,
    ClientConfig,
    Consumer,
    KafkaError,
    OffsetOutOfRange,
    Producer,
    Record,
    Timestamp,
    TopicPartition,
    UnknownTopic,
)
from broker_engine.client.model import Start
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.reading import MakeTopic


@pytest.fixture
async def numbers(client: Client, make_topic: MakeTopic) -> str:
    """A topic with the records 0 to 99, one per second of 1970, ten to a batch."""
    topic = await make_topic()
    async with Producer(client, linger_ms=1_000) as producer:
        for number in range(100):
            producer.send_nowait(topic, b"%d" % number, timestamp_ms=number * 1_000)
            if number % 10 == 9:
                await producer.flush()
    return topic


def values(records: list[Record]) -> list[int]:
    return [int(record.value) for record in records if record.value is not None]


@pytest.mark.parametrize(
    ("start", "first"),
    [("earliest", 0), (37, 37), (Timestamp(50_500), 51), (Timestamp(0), 0)],
    ids=["earliest", "offset", "timestamp", "first timestamp"],
)
async def test_reading_begins_where_it_was_asked_to(client: Client, numbers: str, start: Start, first: int) -> None:
    async with Consumer(client) as consumer:
        consumer.assign({(numbers, 0): start})
        records = await consumer.poll(5_000, 5)

    assert values(records) == list(range(first, first + 5))


@pytest.mark.parametrize("start", ["latest", Timestamp(1 << 50)], ids=["latest", "timestamp in the future"])
async def test_latest_gives_only_what_comes_afterwards(client: Client, numbers: str, start: Start) -> None:
    async with Consumer(client, max_wait_ms=50) as consumer, Producer(client) as producer:
        consumer.assign({(numbers, 0): start})
        assert await consumer.poll(300) == []
        await producer.send(numbers, b"100")
        assert values(await consumer.poll(5_000)) == [100]


async def test_poll_gives_at_most_what_it_was_asked_for_and_positions_follow(client: Client, numbers: str) -> None:
    target = TopicPartition(numbers, 0)
    async with Consumer(client) as consumer:
        consumer.assign({target: "earliest"})
        assert values(await consumer.poll(5_000, 7)) == list(range(7))
        assert consumer.positions == {target: 7}
        assert consumer.high_watermarks == {target: 100}
        assert values(await consumer.poll(5_000, 7)) == list(range(7, 14))


async def test_seek_drops_what_was_fetched_ahead(client: Client, numbers: str) -> None:
    async with Consumer(client) as consumer:
        consumer.assign({(numbers, 0): 0})
        await consumer.poll(5_000, 3)
        consumer.seek((numbers, 0), 90)
        assert values(await consumer.poll(5_000, 2)) == [90, 91]


async def test_a_paused_partition_stays_silent_until_it_is_resumed(client: Client, numbers: str) -> None:
    async with Consumer(client, max_wait_ms=50) as consumer:
        consumer.assign({(numbers, 0): 0})
        await consumer.poll(5_000, 1)
        consumer.pause([(numbers, 0)])
        assert await consumer.poll(200) == []
        consumer.resume([(numbers, 0)])
        assert values(await consumer.poll(5_000, 1)) == [1]


async def test_an_offset_outside_of_the_log_is_an_error_by_default(client: Client, numbers: str) -> None:
    async with Consumer(client) as consumer:
        consumer.assign({(numbers, 0): 5_000})
        with pytest.raises(OffsetOutOfRange, match="offset 5000"):
            await consumer.poll(5_000)
        consumer.seek((numbers, 0), 99)
        assert values(await consumer.poll(5_000)) == [99]


async def test_an_offset_outside_of_the_log_may_start_over(client: Client, numbers: str) -> None:
    async with Consumer(client, offset_reset="earliest") as consumer:
        consumer.assign({(numbers, 0): 5_000})
        assert values(await consumer.poll(5_000, 1)) == [0]


async def test_many_partitions_are_read_together_and_in_order(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic(partitions=6)
    async with Producer(client) as producer:
        for number in range(600):
            producer.send_nowait(topic, b"%d" % number, partition=number % 6)
    got: dict[int, list[int]] = {partition: [] for partition in range(6)}
    async with Consumer(client) as consumer, asyncio.timeout(20):
        consumer.assign({(topic, partition): "earliest" for partition in range(6)})
        while sum(map(len, got.values())) < 600:
            for record in await consumer.poll(1_000, 50):
                got[record.partition] += values([record])

    assert all(numbers == list(range(partition, 600, 6)) for partition, numbers in got.items())


async def test_a_small_buffer_still_reads_everything(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic(partitions=2)
    async with Producer(client, batch_size_bytes=4_000) as producer:
        for number in range(400):
            producer.send_nowait(topic, b"%d" % number + b" " * 500, partition=number % 2)
    count = 0
    async with Consumer(client, max_bytes=5_000, partition_max_bytes=2_000) as consumer, asyncio.timeout(30):
        consumer.assign({(topic, 0): 0, (topic, 1): 0})
        while count < 400:
            count += len(await consumer.poll(1_000, 3))

    assert count == 400


async def test_records_that_arrive_during_a_long_poll_come_at_once(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with Consumer(client, max_wait_ms=30_000) as consumer, Producer(client) as producer:
        consumer.assign({(topic, 0): 0})
        polling = asyncio.create_task(consumer.poll(20_000))
        await producer.send(topic, b"7")
        async with asyncio.timeout(10):
            assert values(await polling) == [7]


async def test_an_unknown_topic_is_an_error_of_the_poll(broker: BrokerProcess) -> None:
    config = ClientConfig(bootstrap=(broker.address(),), unknown_topic_wait_ms=200)
    async with Client(config) as client, Consumer(client) as consumer:
        consumer.assign({("nowhere", 0): "earliest"})
        with pytest.raises(UnknownTopic, match="'nowhere' does not exist"):
            await consumer.poll(20_000)


async def test_what_is_not_assigned_cannot_be_sought(client: Client) -> None:
    async with Consumer(client) as consumer:
        with pytest.raises(ValueError, match="orders-0 is not assigned"):
            consumer.seek(("orders", 0), 0)


async def test_a_consumer_leaves_no_task_behind(client: Client, numbers: str) -> None:
    before = asyncio.all_tasks()
    consumer = Consumer(client, max_wait_ms=30_000)
    consumer.assign({(numbers, 0): "latest"})
    await consumer.poll(100)
    await consumer.close()

    assert asyncio.all_tasks() == before


async def test_fetch_once_pages_through_a_partition(client: Client, numbers: str) -> None:
    got: list[int] = []
    offset = 0
    while offset < 100:
        page = await client.fetch_once(numbers, 0, offset, max_records=15)
        assert len(page.records) <= 15
        got += values(page.records)
        offset = page.next_offset

    assert got == list(range(100))
    assert (page.high_watermark, page.log_start_offset, page.last_stable_offset) == (100, 0, 100)


async def test_fetch_once_waits_for_the_next_record(client: Client, numbers: str) -> None:
    waiting = asyncio.create_task(client.fetch_once(numbers, 0, 100, max_wait_ms=20_000))
    async with Producer(client) as producer:
        await producer.send(numbers, b"100")
    async with asyncio.timeout(10):
        page = await waiting

    assert (values(page.records), page.next_offset) == ([100], 101)


async def test_long_polls_do_not_wait_for_each_other(client: Client, numbers: str, make_topic: MakeTopic) -> None:
    quiet = await make_topic()
    waiting = [asyncio.create_task(client.fetch_once(quiet, 0, 0, max_wait_ms=20_000)) for _ in range(5)]
    async with asyncio.timeout(5):
        page = await client.fetch_once(numbers, 0, 95)
        async with Producer(client) as producer:
            await producer.send(quiet, b"1")
        pages = await asyncio.gather(*waiting)

    assert len(page.records) == 5
    assert [values(one.records) for one in pages] == [[1]] * 5


async def test_fetch_once_tells_the_range_when_the_offset_is_outside(client: Client, numbers: str) -> None:
    with pytest.raises(OffsetOutOfRange, match="which holds 0 to 100") as caught:
        await client.fetch_once(numbers, 0, 101)
    assert (caught.value.log_start_offset, caught.value.high_watermark) == (0, 100)


async def test_fetch_once_names_a_partition_that_is_not_there(client: Client, numbers: str) -> None:
    with pytest.raises(KafkaError, match="has 1 partitions, there is no 3"):
        await client.fetch_once(numbers, 3, 0)
