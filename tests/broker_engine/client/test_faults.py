"""What the producer makes of refusals, lost answers and silence, against a broker that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker_engine.client import (
    BufferExhausted,
    Client,
    ClientClosed,
    ClientConfig,
    ConnectionFailed,
    DeliveryTimedOut,
    KafkaError,
    Producer,
    RecordMetadata,
    RequestTimedOut,
    UnknownTopic,
)
from broker_engine.errors import ErrorCode
from tests.broker_engine.client.scripted_broker import HANG_UP, SILENCE, TOPIC, Produced, ScriptedBroker


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    async with ScriptedBroker() as broker:
        yield broker


@pytest.fixture
async def client(broker: ScriptedBroker) -> AsyncIterator[Client]:
    async with Client(quick_config(broker.address)) as client:
        yield client


def quick_config(address: str, *, request_timeout_ms: int = 5_000) -> ClientConfig:
    return ClientConfig(
        bootstrap=(address,),
        request_timeout_ms=request_timeout_ms,
        connect_timeout_ms=500,
        retry_backoff_ms=5,
        retry_backoff_ms_max=20,
        reconnect_backoff_ms=5,
        unknown_topic_wait_ms=100,
    )


def address_of(server: asyncio.Server) -> str:
    return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def in_log(produced: list[Produced]) -> list[bytes | None]:
    """The values in the order in which a log would have them: refused batches are not in it, repeated ones once."""
    seen: dict[tuple[int, int, int], list[bytes | None]] = {}
    for one in produced:
        if one.answer in (ErrorCode.NONE, HANG_UP):
            seen.setdefault((one.producer_id, one.epoch, one.sequence), one.values)
    return [value for values in seen.values() for value in values]


async def test_a_lost_answer_is_met_with_the_same_sequence_again(client: Client, broker: ScriptedBroker) -> None:
    broker.produce_script.append(HANG_UP)
    async with Producer(client) as producer:
        await producer.send(TOPIC, b"once")

    first, again = broker.produced
    assert (first.producer_id, first.epoch, first.sequence) == (again.producer_id, again.epoch, again.sequence)
    assert in_log(broker.produced) == [b"once"]


async def test_order_is_kept_when_the_first_of_several_batches_is_refused(
    client: Client, broker: ScriptedBroker
) -> None:
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    broker.produce_script.extend([refused, out_of_order, out_of_order, out_of_order, out_of_order, refused])
    values = [b"%d" % number + b"." * 150 for number in range(12)]
    async with Producer(client, batch_size_bytes=200) as producer:
        for value in values:
            producer.send_nowait(TOPIC, value)

    assert in_log(broker.produced) == values


async def test_out_of_order_without_an_earlier_failure_begins_a_new_epoch(
    client: Client, broker: ScriptedBroker
) -> None:
    async with Producer(client) as producer:
        await producer.send(TOPIC, b"first")
        broker.produce_script.append(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        await producer.send(TOPIC, b"second")

    assert [(one.epoch, one.sequence) for one in broker.produced] == [(0, 0), (0, 1), (1, 0)]


async def test_a_topic_that_is_gone_for_a_moment_is_asked_for_again(client: Client, broker: ScriptedBroker) -> None:
    async with Producer(client) as producer:
        await producer.send(TOPIC, b"before")
        broker.produce_script.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        broker.metadata_script.extend([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3)
        async with asyncio.timeout(10):
            await producer.send(TOPIC, b"after")

    assert in_log(broker.produced) == [b"before", b"after"]


async def test_a_sender_that_gives_up_waiting_leaves_the_line_in_order(client: Client, broker: ScriptedBroker) -> None:
    async with Producer(client, buffer_memory_bytes=1_000, linger_ms=100) as producer:
        sending = [asyncio.create_task(producer.send(TOPIC, b"%d" % number + b"x" * 800)) for number in range(5)]
        await asyncio.sleep(0)  # one turn of the loop: the first holds the room now, the others stand in line
        sending[2].cancel()
        outcomes = await asyncio.gather(*sending, return_exceptions=True)

    assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [False, False, True, False, False]
    assert producer.buffered_bytes == 0
    assert [one.values[0][:1] for one in broker.produced if one.values[0]] == [b"0", b"1", b"3", b"4"]


async def test_a_duplicate_counts_as_delivered(client: Client, broker: ScriptedBroker) -> None:
    broker.produce_script.append(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    async with Producer(client) as producer:
        assert (await producer.send(TOPIC, b"known")).offset == -1


async def test_a_batch_that_is_too_large_is_split(client: Client, broker: ScriptedBroker) -> None:
    broker.produce_script.append(ErrorCode.MESSAGE_TOO_LARGE)
    async with Producer(client, linger_ms=20) as producer:
        sent = [producer.send_nowait(TOPIC, b"%d" % number) for number in range(4)]
        await asyncio.gather(*sent)

    assert in_log(broker.produced) == [b"0", b"1", b"2", b"3"]
    assert [len(one.values) for one in broker.produced] == [4, 2, 2]


async def test_what_cannot_be_mended_fails_at_once_and_says_why(client: Client, broker: ScriptedBroker) -> None:
    broker.produce_script.append(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with Producer(client) as producer:
        with pytest.raises(KafkaError, match="orders-0") as caught:
            await producer.send(TOPIC, b"secret")
        assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert not caught.value.retriable
        assert (await producer.send(TOPIC, b"next")).offset >= 0


async def test_retries_end_with_the_delivery_timeout(client: Client, broker: ScriptedBroker) -> None:
    broker.produce_default = ErrorCode.NOT_ENOUGH_REPLICAS
    async with Producer(client, delivery_timeout_ms=100) as producer:
        with pytest.raises(DeliveryTimedOut, match="orders-0 was not acknowledged within 100 ms"):
            await producer.send(TOPIC, b"never")
        assert producer.buffered_bytes == 0


async def test_a_full_buffer_blocks_then_raises_when_the_broker_stays_silent(
    client: Client, broker: ScriptedBroker
) -> None:
    broker.produce_default = SILENCE
    producer = Producer(client, buffer_memory_bytes=1_000, max_block_ms=50, delivery_timeout_ms=60_000)
    held = await producer.enqueue(TOPIC, b"x" * 900)

    with pytest.raises(BufferExhausted, match="stayed full for 50 ms"):
        await producer.send(TOPIC, b"x" * 200)
    with pytest.raises(BufferExhausted, match="1000 bytes is full"):
        producer.send_nowait(TOPIC, b"x" * 200)
    await producer.close(timeout_ms=0)
    with pytest.raises(ClientClosed):
        await held


async def test_room_is_given_in_the_order_of_asking(client: Client, broker: ScriptedBroker) -> None:
    async with Producer(client, buffer_memory_bytes=1_000, linger_ms=300) as producer:
        sends = [producer.send(TOPIC, b"%d" % number + b"x" * 800) for number in range(6)]
        await asyncio.gather(*sends)

    assert [one.values[0][:1] for one in broker.produced if one.values[0]] == [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_a_record_that_can_never_fit_is_refused_at_once(client: Client) -> None:
    producer = Producer(client, buffer_memory_bytes=1_000)
    with pytest.raises(KafkaError, match="can never fit"):
        await producer.send(TOPIC, b"x" * 2_000)


async def test_only_bytes_are_taken(client: Client) -> None:
    with pytest.raises(TypeError, match="value must be bytes"):
        Producer(client).send_nowait(TOPIC, "text")  # type: ignore[arg-type]


async def test_callbacks_get_where_the_record_is_or_why_not(client: Client, broker: ScriptedBroker) -> None:
    broker.produce_script.extend([ErrorCode.NONE, ErrorCode.INVALID_RECORD])
    told: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    async with Producer(client, batch_size_bytes=1) as producer:
        producer.send_nowait(TOPIC, b"good", on_delivery=lambda *outcome: told.append(outcome))
        producer.send_nowait(TOPIC, b"bad", on_delivery=lambda *outcome: told.append(outcome))

    (good, no_error), (nothing, error) = told
    assert (good, no_error) == (RecordMetadata(TOPIC, 0, 0, good.timestamp_ms if good else 0), None)
    assert nothing is None
    assert error is not None
    assert error.code == ErrorCode.INVALID_RECORD


async def test_acks_0_reports_no_offset(client: Client, broker: ScriptedBroker) -> None:
    broker.produce_default = SILENCE
    async with Producer(client, acks=0) as producer:
        sent = await producer.send(TOPIC, b"gone")

    assert sent.offset == -1
    assert not any(name == "InitProducerId" for name, _ in broker.asked)


async def test_a_partition_that_is_not_there_is_named(client: Client) -> None:
    async with Producer(client) as producer:
        with pytest.raises(UnknownTopic, match="'orders' has 1 partitions, there is no 7"):
            await producer.send(TOPIC, b"x", partition=7)


async def test_idempotence_needs_all_acks(client: Client) -> None:
    with pytest.raises(ValueError, match="acks=-1"):
        Producer(client, acks=1, idempotent=True)


async def test_an_older_broker_is_asked_again_with_the_version_it_names() -> None:
    async with ScriptedBroker(api_versions_max=2) as broker, Client(quick_config(broker.address)):
        assert broker.asked[:2] == [("ApiVersions", 4), ("ApiVersions", 2)]


async def test_an_unanswered_request_times_out_and_the_next_one_dials_again(broker: ScriptedBroker) -> None:
    broker.produce_script.append(SILENCE)
    async with Client(quick_config(broker.address, request_timeout_ms=100)) as client, Producer(client) as producer:
        await producer.send(TOPIC, b"again")

    assert in_log([one for one in broker.produced if one.answer == ErrorCode.NONE]) == [b"again"]


async def test_a_listener_that_stays_silent_is_named_with_host_and_port() -> None:
    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    address = address_of(server)
    client = Client(quick_config(address))
    producer = Producer(client, buffer_memory_bytes=1_000, max_block_ms=50)
    async with server:
        with pytest.raises(RequestTimedOut, match=f"{address} did not answer ApiVersions within 500 ms"):
            await client.start()
        held = await producer.enqueue(TOPIC, b"x" * 900)
        with pytest.raises(BufferExhausted):
            await producer.send(TOPIC, b"x" * 900)
        await producer.close(timeout_ms=0)
        await client.close()
        with pytest.raises(KafkaError):
            await held


async def test_a_refused_connection_says_what_to_check() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    address = address_of(server)
    server.close()
    await server.wait_closed()

    with pytest.raises(ConnectionFailed, match=rf"{address}: cannot connect \(Connection refused\); check the address"):
        async with Client(quick_config(address)):
            pass


async def test_a_peer_that_does_not_speak_kafka_is_told_apart() -> None:
    async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak_http, "127.0.0.1", 0)
    address = address_of(server)
    async with server:
        with pytest.raises(ConnectionFailed, match="is this a Kafka listener"):
            async with Client(quick_config(address)):
                pass


async def test_close_leaves_no_task_behind(broker: ScriptedBroker) -> None:
    before = asyncio.all_tasks()
    broker.produce_default = SILENCE
    client = Client(quick_config(broker.address))
    await client.start()
    producer = Producer(client)
    producer.send_nowait(TOPIC, b"stuck")
    producer.send_nowait("other-topic", b"unknown")
    await producer.close(timeout_ms=10)
    await client.close()

    assert asyncio.all_tasks() == before
    with pytest.raises(ClientClosed):
        await producer.send(TOPIC, b"late")
