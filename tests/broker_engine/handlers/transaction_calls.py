"""Short words for tests of transactions: a producer on a raw connection, which says exactly what it wants to say."""

from __future__ import annotations

from typing import Any, NamedTuple

from broker_engine.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker_engine.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from broker_engine.wire.messages.describe_transactions import DescribeTransactionsRequest
from broker_engine.wire.messages.end_txn import EndTxnRequest
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest
from broker_engine.wire.messages.list_transactions import ListTransactionsRequest
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import batch_of, new_name
from tests.broker_engine.raw_client import RawClient

TIMEOUT_MS = 60_000
_TRANSACTION = 1
_NOT_YET = (14, 15, 16, 51)


class Producer(NamedTuple):
    transactional_id: str
    id: int
    epoch: int


def ready(client: RawClient, name: str | None = None) -> str:
    """A transactional id, once somebody coordinates it: the first question makes the topic."""
    name = name or new_name("txn")

    def is_found() -> bool:
        response = client.call(FindCoordinatorRequest(coordinator_keys=[name], key_type=_TRANSACTION), 4)
        return bool(response.coordinators[0].error_code == 0)

    wait_for(f"a coordinator of {name}", is_found)
    wait_for("the id's shard", lambda: describe(client, name).error_code not in _NOT_YET)
    return name


def init(client: RawClient, name: str | None, version: int = 5, *, timeout_ms: int = TIMEOUT_MS, **fields: int) -> Any:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms, **fields)
    return client.call(request, version)


def started(client: RawClient, name: str | None = None, **options: Any) -> Producer:
    """A producer with its id and epoch; waits for whatever its predecessor left open."""
    name = ready(client, name)
    answers: list[Any] = []

    def is_there() -> bool:
        answers.append(init(client, name, **options))
        return answers[-1].error_code not in _NOT_YET

    wait_for(f"a producer of {name}", is_there)
    assert answers[-1].error_code == 0, answers[-1]
    return Producer(name, answers[-1].producer_id, answers[-1].producer_epoch)


def add(client: RawClient, producer: Producer, *places: tuple[str, int], version: int = 3) -> list[int]:
    """The code of each partition."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in places],
    )
    results = client.call(request, version).results_by_topic_v3_and_below
    return [each.partition_error_code for topic in results for each in topic.results_by_partition]


def added(client: RawClient, producer: Producer, *places: tuple[str, int]) -> None:
    """Waits until the last transaction is complete."""
    codes: list[int] = []

    def is_added() -> bool:
        codes[:] = add(client, producer, *places)
        return not set(codes) & set(_NOT_YET)

    wait_for("partitions in a transaction", is_added)
    assert set(codes) == {0}, codes


def add_offsets(client: RawClient, producer: Producer, group: str, version: int = 4) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id=group,
    )
    return int(client.call(request, version).error_code)


def end(client: RawClient, producer: Producer, *, is_commit: bool, version: int = 4) -> Any:
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=is_commit,
    )
    return client.call(request, version)


def write(
    client: RawClient,
    producer: Producer,
    topic: str,
    *values: bytes,
    sequence: int = 0,
    partition: int = 0,
    version: int = 11,
) -> Any:
    """The partition's answer to one transactional batch."""
    batch = batch_of(
        *values,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    data = [PartitionProduceData(index=partition, records=batch)]
    request = ProduceRequest(
        transactional_id=producer.transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    return client.call(request, version).responses[0].partition_responses[0]


def describe(client: RawClient, name: str) -> Any:
    return client.call(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states[0]


def wait_for_state(client: RawClient, name: str, state: str) -> Any:
    found: list[Any] = []

    def is_there() -> bool:
        found[:] = [describe(client, name)]
        return bool(found[0].transaction_state == state)

    wait_for(f"{name} to be {state}", is_there)
    return found[0]


def listed(client: RawClient, version: int = 2, **fields: Any) -> dict[str, str]:
    response = client.call(ListTransactionsRequest(**fields), version)
    assert response.error_code == 0, response
    return {each.transactional_id: each.transaction_state for each in response.transaction_states}
