from __future__ import annotations

import dataclasses
import random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.metadata import controller
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage, ReplayError
from broker_engine.metadata.records import (
    ConfigRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from broker_engine.metadata.snapshot import records_of
from broker_engine.names import Name
from broker_engine.security.scram import ScramMechanism, ScramVerifier
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, broker, cluster, demo, register, root, tenant


def a_long_history(seed: int) -> list[tuple[Record, ...]]:
    """Batches as a cluster would write them: each is one decision on the image of all before it."""
    chance, ids = random.Random(seed), Ids(1000)
    batches: list[tuple[Record, ...]] = [(broker(1), broker(2)), (tenant("demo"), tenant("other"))]
    image = replay_all(batches)
    for step in range(30):
        decision = _some_decision(chance, image, ids, step)
        if decision.records:
            batches.append(decision.records)
            image = after(image, decision.records)
    return batches


def _some_decision(chance: random.Random, image: MetadataImage, ids: Ids, step: int) -> controller.Decision[object]:
    name = chance.choice([root, demo])(f"topic-{chance.randrange(6)}")
    pick = chance.randrange(7)
    if pick <= 2:
        topic = controller.NewTopic(name, chance.randrange(1, 4), 1, configs={"retention.ms": str(step)})
        return controller.create_topics(image, [topic], config=CONFIG, new_id=ids)
    if pick == 3:
        return controller.delete_topics(image, [name], viewer_tenant="", is_root=True, config=CONFIG)
    if pick == 4:
        key = b"k" * 32
        verifier = ScramVerifier(ScramMechanism.SCRAM_SHA_256, b"salt", 4096, key, key)
        change = controller.CredentialChange(f"key-{step}", "demo", "p", [verifier])
        return controller.alter_credentials(image, [change])
    if pick == 5:
        return register(image, 1, incarnation_id=ids(), new_id=ids)
    return controller.allocate_producer_ids(image, broker_id=2, broker_epoch=image.brokers[2].epoch)


def replay_all(batches: list[tuple[Record, ...]]) -> MetadataImage:
    image = EMPTY_IMAGE
    for batch in batches:
        image = after(image, batch)
    return image


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.data())
def test_replay_in_any_pieces_gives_equal_images(seed: int, data: st.DataObject) -> None:
    batches = a_long_history(seed)
    records = [record for batch in batches for record in batch]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=6)))
    pieces = [tuple(records[a:b]) for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
    assert replay_all(pieces) == replay_all(batches)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_replay_of_stored_bytes_gives_the_same_image(seed: int) -> None:
    batches = a_long_history(seed)
    stored = [tuple(decode_record(encode_record(record)) for record in batch) for batch in batches]
    assert replay_all(stored) == replay_all(batches)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_a_snapshot_of_an_image_replays_into_an_equal_one(seed: int) -> None:
    image = replay_all(a_long_history(seed))
    stored = [decode_record(encode_record(record)) for record in records_of(image)]
    restored = dataclasses.replace(EMPTY_IMAGE.replay(stored, 0), next_offset=image.next_offset)
    assert restored == image
    assert list(records_of(restored)) == list(records_of(image))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_an_image_never_changes_once_it_is_shown(seed: int) -> None:
    """Half a change is never visible: whoever holds an image holds it whole, whatever is replayed after it."""
    image, shown = EMPTY_IMAGE, []
    for batch in a_long_history(seed):
        image = after(image, batch)
        shown.append((image, repr(image)))
    assert all(repr(held) == text for held, text in shown)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_counts_and_indexes_agree_with_the_topics(seed: int) -> None:
    image = replay_all(a_long_history(seed))
    for tenant_id, namespace in image.namespaces.items():
        assert namespace.topics
        assert namespace.partition_count == sum(topic.partition_count for topic in namespace.topics.values())
        assert sorted(namespace.by_collision_key.values()) == sorted(namespace.topics)
        assert all(topic.name.tenant == tenant_id for topic in namespace.topics.values())
    by_name = {topic.id: topic for ns in image.namespaces.values() for topic in ns.topics.values()}
    assert by_name == image.topics


def test_a_tenants_listing_holds_only_its_own() -> None:
    image = cluster(1, tenant("demo"))
    topics = [controller.NewTopic(demo("orders")), controller.NewTopic(root("orders"))]
    image = after(image, controller.create_topics(image, topics, config=CONFIG, new_id=Ids()).records)
    assert [topic.name for topic in image.topics_of("demo")] == [demo("orders")]
    assert [topic.name for topic in image.topics_of("")] == [root("orders")]
    assert list(image.topics_of("absent")) == []
    assert len(image.topics) == 2


def test_a_change_shares_all_other_tenants_with_the_image_before() -> None:
    image = cluster(1, tenant("demo"), tenant("other"))
    image = after(
        image, controller.create_topics(image, [controller.NewTopic(demo("a"))], config=CONFIG, new_id=Ids()).records
    )
    before = image.namespace("demo")
    topic = controller.NewTopic(Name("other", "b"))
    image = after(image, controller.create_topics(image, [topic], config=CONFIG, new_id=Ids(9)).records)
    assert image.namespace("demo") is before


def test_a_broker_epoch_is_the_offset_of_its_registration() -> None:
    image = EMPTY_IMAGE.replay([tenant("demo"), broker(4)], 17)
    assert image.brokers[4].epoch == 18
    assert image.next_offset == 19


def test_configs_come_and_go() -> None:
    topic_id = UUID(int=5)
    image = EMPTY_IMAGE.replay([TopicRecord(tenant="demo", name="t", topic_id=topic_id)], 0)
    image = after(image, (ConfigRecord(tenant="demo", resource_name="t", name="retention.ms", value="5"),))
    topic = image.topic(demo("t"))
    assert topic is not None
    assert topic.configs == {"retention.ms": "5"}
    image = after(image, (ConfigRecord(tenant="demo", resource_name="t", name="retention.ms", value=None),))
    topic = image.topic_by_id(topic_id)
    assert topic is not None
    assert topic.configs == {}


@pytest.mark.parametrize(
    "record",
    [
        PartitionRecord(topic_id=UUID(int=9)),
        RemoveTopicRecord(topic_id=UUID(int=9)),
        ConfigRecord(tenant="demo", resource_name="absent", name="a", value="b"),
        TopicRecord(tenant="demo", name="t", topic_id=UUID(int=6)),
        tenant("demo", "not json"),
    ],
)
def test_a_record_that_cannot_follow_stops_the_node(record: Record) -> None:
    image = EMPTY_IMAGE.replay([TopicRecord(tenant="demo", name="t", topic_id=UUID(int=5))], 0)
    with pytest.raises(ReplayError):
        after(image, (record,))


def test_ten_thousand_partitions_replay_at_once() -> None:
    topic_id = UUID(int=5)
    partitions = (PartitionRecord(topic_id=topic_id, partition=index) for index in range(10_000))
    image = EMPTY_IMAGE.replay([TopicRecord(name="t", topic_id=topic_id), *partitions], 0)
    assert image.namespace("").partition_count == 10_000
