"""What the client believes of the cluster, and how long."""

from __future__ import annotations

from uuid import UUID

from broker_engine.client.backoff import backoff_ms
from broker_engine.client.config import BrokerAddress
from broker_engine.client.metadata import MetadataCache
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ORDERS = TopicPartition("orders", 0)


def answer(*, leader: int, epoch: int = 0, topic_id: int = 1, error_code: int = 0) -> MetadataResponse:
    part = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2])
    topic = MetadataResponseTopic(name="orders", topic_id=UUID(int=topic_id), partitions=[part], error_code=error_code)
    brokers = [MetadataResponseBroker(node_id=node, host="broker", port=9000 + node) for node in (1, 2)]
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=[topic])


def cache_with(*answers: MetadataResponse) -> MetadataCache:
    cache = MetadataCache(age_ms_max=1_000)
    for one in answers:
        cache.apply(one, now_ms=0)
    return cache


def test_the_leader_of_a_partition_is_found_with_its_address() -> None:
    cache = cache_with(answer(leader=2))

    assert cache.leader(ORDERS) == 2
    assert cache.brokers[2] == BrokerAddress("broker", 9002)
    assert cache.name_of(UUID(int=1)) == "orders"


def test_a_broker_that_lags_behind_does_not_bring_the_old_leader_back() -> None:
    assert cache_with(answer(leader=2, epoch=5), answer(leader=1, epoch=4)).leader(ORDERS) == 2


def test_a_topic_that_was_made_anew_begins_with_its_own_epochs() -> None:
    cache = cache_with(answer(leader=2, epoch=5), answer(leader=1, epoch=0, topic_id=2))

    assert cache.leader(ORDERS) == 1
    assert cache.name_of(UUID(int=1)) is None


def test_a_partition_without_a_leader_has_none() -> None:
    cache = cache_with(answer(leader=-1))
    view = cache.topic("orders")

    assert cache.leader(ORDERS) is None
    assert view is not None
    assert view.led == frozenset()


def test_a_leader_whose_address_is_unknown_cannot_be_asked() -> None:
    assert cache_with(answer(leader=9)).leader(ORDERS) is None


def test_knowledge_ages_and_can_be_called_stale() -> None:
    cache = cache_with(answer(leader=1))

    assert cache.is_fresh("orders", now_ms=999)
    assert cache.due_topics(now_ms=1_000) == ["orders"]
    cache.mark_stale("orders")
    assert not cache.is_fresh("orders", now_ms=1)
    cache.apply(answer(leader=1), now_ms=1)
    assert cache.is_fresh("orders", now_ms=2)


def test_a_refused_topic_is_forgotten_and_the_reason_kept() -> None:
    cache = cache_with(answer(leader=1), answer(leader=1, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    assert cache.topic("orders") is None
    assert cache.refusal("orders") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_error_code_of_the_future_is_an_unknown_error() -> None:
    assert cache_with(answer(leader=1, error_code=9_999)).refusal("orders") == ErrorCode.UNKNOWN_SERVER_ERROR


def test_backoff_doubles_up_to_its_ceiling() -> None:
    waits = [backoff_ms(count, base_ms=100, ceiling_ms=1_000, random_unit=lambda: 0.5) for count in range(7)]

    assert waits == [0, 100, 200, 400, 800, 1_000, 1_000]


def test_backoff_differs_between_clients() -> None:
    low = backoff_ms(1, base_ms=100, ceiling_ms=1_000, random_unit=lambda: 0.0)
    high = backoff_ms(1, base_ms=100, ceiling_ms=1_000, random_unit=lambda: 0.99)

    assert (low, high) == (80, 119)
