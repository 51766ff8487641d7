"""The transactional producer against a real broker, in both versions: what counts, what does not, who is fenced."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from broker_engine.client import (
    AbortRequired,
    Admin,
    Client,
    ClientConfig,
    Consumer,
    GroupIdentity,
    GroupMember,
    KafkaError,
    Producer,
    ProducerFenced,
    TopicPartition,
    TransactionalProducer,
)
from broker_engine.client.coordinator import Coordinator, CoordinatorKind
from broker_engine.client.fetching import Isolation
from broker_engine.client.group_offsets import fetch_offsets
from broker_engine.client.transaction_state import Phase
from broker_engine.errors import ErrorCode
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.reading import MakeTopic

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
}

VERSION = "transaction.version"

_ids = (f"id-{number}" for number in itertools.count())


@pytest.fixture(params=[1, 2], ids=["version-1", "version-2"])
async def client(request: pytest.FixtureRequest, broker: BrokerProcess) -> AsyncIterator[Client]:
    """Of a cluster that has this version of transactions."""
    config = ClientConfig(bootstrap=(broker.address(),), retry_backoff_ms=20)
    async with Client(config) as admin:
        present = (await admin.links.any_connection([])).finalized_features.get(VERSION, 0)
        await Admin(admin).update_features({VERSION: request.param}, is_downgrade=request.param < present)
    async with Client(config) as client:
        yield client


async def values_of(
    client: Client, topic: str, *, partitions: int = 1, until: bytes = b"end", isolation: Isolation = "read_committed"
) -> list[bytes | None]:
    """What a reader sees before the record `until`, which is sent to partition 0 outside of any transaction."""
    async with Producer(client) as producer:
        await producer.send(topic, until, partition=0)
    seen: list[bytes | None] = []
    async with Consumer(client, max_wait_ms=50, isolation=isolation) as consumer, asyncio.timeout(20):
        consumer.assign({(topic, index): "earliest" for index in range(partitions)})
        while until not in seen:
            seen += [record.value for record in await consumer.poll(500)]
        seen += [record.value for record in await consumer.poll(300)]
    return [value for value in seen if value != until]


async def until_stable(client: Client, topic: str, offset: int) -> None:
    async with asyncio.timeout(20):
        while True:
            page = await client.fetch_once(topic, 0, 0, isolation="read_committed", max_wait_ms=50, min_bytes=1 << 20)
            if page.last_stable_offset >= offset:
                return


async def test_committed_records_are_read_and_aborted_ones_are_not(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    async with TransactionalProducer(client, next(_ids)) as producer:
        producer.begin()
        await producer.send(topic, b"a", partition=0)
        producer.send_nowait(topic, b"b", partition=1)
        await producer.commit()
        producer.begin()
        await producer.send(topic, b"never", partition=0)
        await producer.abort()
        producer.begin()
        producer.send_nowait(topic, b"c", partition=0)
        await producer.commit()
    assert sorted(await values_of(client, topic, partitions=2), key=str) == [b"a", b"b", b"c"]
    everything = await values_of(client, topic, partitions=2, until=b"end-2", isolation="read_uncommitted")
    assert b"never" in everything


async def test_readers_of_committed_records_wait_at_an_open_transaction(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with TransactionalProducer(client, next(_ids)) as producer, Producer(client) as plain:
        producer.begin()
        await producer.send(topic, b"open")
        await plain.send(topic, b"behind it")
        page = await client.fetch_once(topic, 0, 0, isolation="read_committed")
        assert (page.records, page.last_stable_offset, page.high_watermark) == ([], 0, 2)
        await producer.commit()
    assert await values_of(client, topic) == [b"open", b"behind it"]


async def test_a_readers_position_goes_behind_markers_and_what_was_aborted(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    async with TransactionalProducer(client, next(_ids)) as producer:
        producer.begin()
        await producer.send(topic, b"counts")
        await producer.commit()
        producer.begin()
        await producer.send(topic, b"does not")
        await producer.abort()
    await until_stable(client, topic, 4)
    async with Consumer(client, max_wait_ms=50, isolation="read_committed") as consumer, asyncio.timeout(20):
        consumer.assign({(topic, 0): "earliest"})
        assert [record.value for record in await consumer.poll(5_000)] == [b"counts"]
        while consumer.positions != {TopicPartition(topic, 0): 4}:
            assert await consumer.poll(100) == []


async def test_a_transaction_of_nothing_needs_no_coordinator(client: Client) -> None:
    async with TransactionalProducer(client, next(_ids)) as producer:
        producer.begin()
        await producer.commit()
        producer.begin()
        await producer.abort()
        assert producer.phase is Phase.READY


async def test_the_next_producer_of_an_id_fences_the_one_before(client: Client, make_topic: MakeTopic) -> None:
    topic, name = await make_topic(), next(_ids)
    async with TransactionalProducer(client, name) as old:
        old.begin()
        await old.send(topic, b"of the old one")
        async with TransactionalProducer(client, name) as new:
            assert old.identity is not None
            assert new.identity is not None
            assert new.identity.producer_id == old.identity.producer_id
            assert new.identity.epoch > old.identity.epoch
            with pytest.raises(ProducerFenced):
                await old.commit()
            with pytest.raises(ProducerFenced):
                old.begin()
            new.begin()
            await new.send(topic, b"of the new one")
            await new.commit()
    assert await values_of(client, topic) == [b"of the new one"]


async def test_a_fenced_producers_record_is_refused(client: Client, make_topic: MakeTopic) -> None:
    topic, name = await make_topic(), next(_ids)
    async with TransactionalProducer(client, name) as old, TransactionalProducer(client, name):
        old.begin()
        with pytest.raises(KafkaError):
            await old.send(topic, b"late")
        with pytest.raises(ProducerFenced):
            await old.abort()
    assert await values_of(client, topic) == []


async def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    async with TransactionalProducer(client, next(_ids), transaction_timeout_ms=200) as producer:
        producer.begin()
        await producer.send(topic, b"forgotten")
        await until_stable(client, topic, 1)
        with pytest.raises(AbortRequired if producer.is_version_2 else ProducerFenced):
            await producer.commit()
    assert await values_of(client, topic) == []


async def test_who_hears_of_being_fenced_while_it_aborts_says_so(client: Client, make_topic: MakeTopic) -> None:
    """In version 2 the coordinator takes the abort for the time-out's own, and answers that all is well."""
    topic = await make_topic()
    async with TransactionalProducer(client, next(_ids), transaction_timeout_ms=200, linger_ms=0) as producer:
        producer.begin()
        await producer.send(topic, b"forgotten")
        await until_stable(client, topic, 1)
        connection = await client.links.any_connection([])
        late = producer.send_nowait(topic, b"late")
        while connection.in_flight_count == 0:  # noqa: ASYNC110 - the next turn of the loop, or the one behind it
            await asyncio.sleep(0)
        with pytest.raises(ProducerFenced):
            await producer.abort()
        assert producer.phase is Phase.FAILED
        assert late.exception() is not None
    assert await values_of(client, topic) == []


async def test_in_version_2_every_transaction_has_an_epoch_of_its_own(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    epochs = []
    async with TransactionalProducer(client, next(_ids)) as producer:
        for end in (producer.commit, producer.abort, producer.commit):
            producer.begin()
            await producer.send(topic, b"some")
            assert producer.identity is not None
            epochs.append(producer.identity.epoch)
            await end()
        assert epochs == ([0, 1, 2] if producer.is_version_2 else [0, 0, 0])
    assert await values_of(client, topic) == [b"some", b"some"]


async def test_in_version_2_a_transaction_that_took_too_long_is_aborted_and_the_next_one_begun(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    async with TransactionalProducer(client, next(_ids), transaction_timeout_ms=200) as producer:
        if not producer.is_version_2:
            return
        producer.begin()
        await producer.send(topic, b"forgotten")
        await until_stable(client, topic, 1)
        await producer.abort()
        producer.begin()
        await producer.send(topic, b"in time")
        await producer.commit()
    assert await values_of(client, topic) == [b"in time"]


async def test_what_others_send_while_it_is_committed_is_part_of_it(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with TransactionalProducer(client, next(_ids)) as producer:
        producer.begin()
        first = producer.send_nowait(topic, b"0")
        commit = asyncio.create_task(producer.commit())
        await asyncio.wait([first])
        last = producer.send_nowait(topic, b"1")
        await commit
        assert last.done()
    assert await values_of(client, topic) == [b"0", b"1"]


async def test_a_record_that_is_refused_makes_an_abort_the_only_way_on(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic(max_message_bytes="500")
    async with TransactionalProducer(client, next(_ids)) as producer:
        producer.begin()
        await producer.send(topic, b"small")
        with pytest.raises(KafkaError) as refused:
            await producer.send(topic, b"x" * 2_000)
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(AbortRequired):
            await producer.commit()
        with pytest.raises(AbortRequired):
            producer.send_nowait(topic, b"not in this one")
        await producer.abort()
        producer.begin()
        await producer.send(topic, b"in the next one")
        await producer.commit()
    assert await values_of(client, topic) == [b"in the next one"]


async def test_offsets_move_with_the_transaction(client: Client, make_topic: MakeTopic) -> None:
    topic, group = await make_topic(), next(_ids)
    target = TopicPartition(topic, 0)
    coordinator = Coordinator(client, CoordinatorKind.GROUP, group)
    async with TransactionalProducer(client, next(_ids)) as producer:
        producer.begin()
        await producer.send_offsets({target: 5}, GroupIdentity(group))
        await producer.commit()
        assert await fetch_offsets(coordinator, group, [target]) == {target: 5}
        producer.begin()
        await producer.send_offsets({target: 9}, GroupIdentity(group))
        await producer.abort()
        assert await fetch_offsets(coordinator, group, [target]) == {target: 5}


async def test_a_member_of_an_old_generation_cannot_move_offsets(client: Client, make_topic: MakeTopic) -> None:
    topic, group = await make_topic(), next(_ids)
    async with (
        GroupMember(client, group, [topic], heartbeat_interval_ms=50) as member,
        TransactionalProducer(client, next(_ids)) as producer,
    ):
        await member.wait_assigned()
        now = member.identity
        producer.begin()
        old = GroupIdentity(group, now.generation - 1, now.member_id)
        with pytest.raises(AbortRequired) as refused:
            await producer.send_offsets({TopicPartition(topic, 0): 1}, old)
        assert refused.value.code == ErrorCode.ILLEGAL_GENERATION
        await producer.abort()
        producer.begin()
        await producer.send_offsets({TopicPartition(topic, 0): 1}, now)
        await producer.commit()
        assert await member.committed([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 1}
