from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.controller import (
    NewTopic,
    allocate_producer_ids,
    bootstrap,
    create_topics,
    register_broker,
)
from broker_engine.metadata.image import EMPTY_IMAGE
from broker_engine.metadata.parts import EndpointImage
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, cluster, root


def test_a_new_cluster_begins_with_its_level_and_its_voter() -> None:
    image = after(EMPTY_IMAGE, bootstrap(EMPTY_IMAGE, voter_id=1, directory_id=UUID(int=7)).records)
    assert [(voter.id, voter.directory_id) for voter in image.voters] == [(1, UUID(int=7))]
    assert image.features == {"highwater.metadata": 1}
    assert bootstrap(image, voter_id=1, directory_id=UUID(int=7)).records == ()


def test_a_broker_registers_with_its_endpoints_and_gets_its_offset_as_epoch() -> None:
    endpoint = EndpointImage("demo", "localhost", 9092, "PLAINTEXT")
    decision = register_broker(EMPTY_IMAGE, broker_id=4, incarnation_id=UUID(int=1), endpoints=[endpoint], rack="r")
    broker = EMPTY_IMAGE.replay(decision.records, 12).brokers[4]
    assert (broker.epoch, broker.rack, broker.endpoints, broker.is_fenced) == (12, "r", (endpoint,), False)


def test_a_broker_that_comes_back_leads_under_new_epochs() -> None:
    image = cluster(2)
    image = after(image, create_topics(image, [NewTopic(root("t"), 4, 1)], config=CONFIG, new_id=Ids()).records)
    decision = register_broker(image, broker_id=1, incarnation_id=UUID(int=99), endpoints=[])
    topic = after(image, decision.records).topic(root("t"))
    assert topic is not None
    epochs = {
        partition.leader: (partition.leader_epoch, partition.partition_epoch) for partition in topic.partitions.values()
    }
    assert epochs == {1: (1, 1), 2: (0, 0)}


def test_the_same_life_registers_once() -> None:
    image = cluster(1)
    assert register_broker(image, broker_id=1, incarnation_id=UUID(int=1), endpoints=[]).records == ()


def test_blocks_of_producer_ids_never_meet() -> None:
    image = cluster(2)
    firsts = []
    for broker_id in (1, 2, 1):
        decision = allocate_producer_ids(image, broker_id=broker_id, broker_epoch=image.brokers[broker_id].epoch)
        image = after(image, decision.records)
        firsts.append((decision.results[0].first, decision.results[0].count))
    assert firsts == [(0, 1000), (1000, 1000), (2000, 1000)]


@pytest.mark.parametrize(
    ("broker_id", "epoch", "code"), [(1, 77, ErrorCode.STALE_BROKER_EPOCH), (9, 0, ErrorCode.BROKER_ID_NOT_REGISTERED)]
)
def test_a_broker_of_the_past_gets_no_producer_ids(broker_id: int, epoch: int, code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as caught:
        allocate_producer_ids(cluster(1), broker_id=broker_id, broker_epoch=epoch)
    assert caught.value.code is code
