"""The control plane over a real broker: wishes become topics, keys open doors, drift is mended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from django.conf import settings as django_settings

from control_plane.audit.models import AuditEntry
from control_plane.drift.tasks import mend_drift
from control_plane.engine.factory import engine_in_place
from control_plane.engine.highwater import HighwaterEngine
from control_plane.engine.interface import TopicName, TopicSpec
from control_plane.keys.actions import create_key, revoke_key
from control_plane.refusals import RefusedByEngine
from control_plane.topics.actions import change_topic, create_topic, delete_topic
from control_plane.topics.models import Origin, State, Topic
from tests.broker_engine.broker_process import BrokerProcess
from tests.control_plane.world import House, make_house

TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("engine")
    listeners = {"clients": "SASL_PLAINTEXT", "internal": "SASL_PLAINTEXT"}
    with BrokerProcess(folder / "broker", listeners=listeners) as process:
        yield process


@pytest.fixture
def real(broker: BrokerProcess, tmp_path: Path, transactional_db: None) -> Iterator[HighwaterEngine]:
    environment = replace(
        django_settings.HIGHWATER,
        home=tmp_path,
        engine_bootstrap=(broker.address("internal"),),
        cluster_secret=broker.cluster_secret,
    )
    with engine_in_place(HighwaterEngine(environment)) as engine:
        assert isinstance(engine, HighwaterEngine)
        yield engine


HOUSE_NUMBERS = iter(range(1000))


@pytest.fixture
def house(real: HighwaterEngine) -> House:
    """A tenant that no test before has had: the engine outlives the tests of this module."""
    return make_house(f"house-{next(HOUSE_NUMBERS)}")


def client_config(broker: BrokerProcess, key_id: str, secret: str) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.address("clients"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": key_id,
        "sasl.password": secret,
        "log_level": 0,
    }


def kafka_admin(broker: BrokerProcess, house: House) -> AdminClient:
    key, secret = create_key(actor="dev", tenant=house.tenant, name="admin")
    return AdminClient(client_config(broker, key.id, secret))


def can_sign_in(broker: BrokerProcess, key_id: str, secret: str) -> bool:
    errors: list[str] = []
    config = {**client_config(broker, key_id, secret), "error_cb": lambda error: errors.append(error.name())}
    producer = Producer(config)
    try:
        producer.list_topics(timeout=3)
    except KafkaException:
        producer.poll(0)  # serves the callback
        assert "_AUTHENTICATION" in errors, errors
        return False
    return True


def make_orders(house: House, **values: object) -> Topic:
    return create_topic(actor="dev", tenant=house.tenant, name="orders", **values)


def test_a_created_topic_is_ready_and_the_tenants_own_client_sees_it(house: House, broker: BrokerProcess) -> None:
    topic = make_orders(house, partitions=3, configs={"retention.ms": "60000"})
    assert topic.state == State.READY
    assert topic.replication_factor == 1
    seen = kafka_admin(broker, house).list_topics(timeout=TIMEOUT_S).topics
    assert len(seen["orders"].partitions) == 3


def test_a_change_reaches_the_engine(house: House, real: HighwaterEngine) -> None:
    topic = make_orders(house, configs={"retention.ms": "60000", "cleanup.policy": "compact"})
    changed = change_topic(actor="dev", topic=topic, partitions=2, configs={"retention.ms": None})
    assert changed.state == State.READY
    view = real.describe_topic(TopicName(house.tenant.id, "orders"), timeout_s=TIMEOUT_S)
    assert view is not None
    assert (view.partitions, view.configs) == (2, {"cleanup.policy": "compact"})


def test_a_deleted_topic_is_gone(house: House, real: HighwaterEngine) -> None:
    assert delete_topic(actor="dev", topic=make_orders(house)) is True
    assert real.describe_topic(TopicName(house.tenant.id, "orders"), timeout_s=TIMEOUT_S) is None


def test_a_refusal_names_the_topic_as_the_tenant_knows_it(house: House) -> None:
    with pytest.raises(RefusedByEngine) as caught:
        make_orders(house, configs={"cleanup.policy": "shred"})
    assert house.tenant.id not in str(caught.value)
    assert "INVALID_CONFIG" in str(caught.value)


def test_a_replication_factor_beyond_the_brokers_is_refused(house: House) -> None:
    with pytest.raises(RefusedByEngine, match="REPLICATION"):
        make_orders(house, replication_factor=3)


def test_partitions_are_described_with_their_offsets(house: House, real: HighwaterEngine) -> None:
    make_orders(house, partitions=2)
    rows = real.describe_partitions(TopicName(house.tenant.id, "orders"), timeout_s=TIMEOUT_S)
    assert rows is not None
    assert [(row.partition, row.leader, row.log_start_offset, row.high_watermark) for row in rows] == [
        (0, 1, 0, 0),
        (1, 1, 0, 0),
    ]


def test_a_key_opens_the_broker_until_it_is_revoked(house: House, broker: BrokerProcess) -> None:
    key, secret = create_key(actor="dev", tenant=house.tenant, name="app")
    assert can_sign_in(broker, key.id, secret)
    assert not can_sign_in(broker, key.id, secret + "x")
    revoke_key(actor="dev", key=key)
    assert not can_sign_in(broker, key.id, secret)


def test_a_world_in_order_needs_no_mending(house: House) -> None:
    make_orders(house, configs={"retention.ms": "60000"})
    create_key(actor="dev", tenant=house.tenant, name="app")
    assert mend_drift() == 0


def test_a_lost_topic_comes_back(house: House, real: HighwaterEngine) -> None:
    make_orders(house, partitions=2)
    name = TopicName(house.tenant.id, "orders")
    real.delete_topic(name, timeout_s=TIMEOUT_S)
    mend_drift()
    view = real.describe_topic(name, timeout_s=TIMEOUT_S)
    assert view is not None
    assert Topic.objects.get(tenant=house.tenant).topic_id == view.topic_id
    assert AuditEntry.objects.filter(verb="topic.recreated", tenant=house.tenant).exists()


def test_a_topic_made_by_the_tenants_kafka_client_is_adopted(house: House, broker: BrokerProcess) -> None:
    admin = kafka_admin(broker, house)
    admin.create_topics([NewTopic("clicks", num_partitions=2)])["clicks"].result(TIMEOUT_S)
    mend_drift()
    topic = Topic.objects.get(tenant=house.tenant, name="clicks")
    assert (topic.origin, topic.partitions, topic.state) == (Origin.ENGINE, 2, State.READY)


def test_a_config_set_by_the_tenants_kafka_client_is_taken_over(house: House, broker: BrokerProcess) -> None:
    make_orders(house)
    admin = kafka_admin(broker, house)
    entry = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)
    mend_drift()
    assert Topic.objects.get(tenant=house.tenant).configs == {"retention.ms": "7200000"}


def test_lost_tenants_and_credentials_come_back(house: House, real: HighwaterEngine, broker: BrokerProcess) -> None:
    key, secret = create_key(actor="dev", tenant=house.tenant, name="app")
    real.remove_credentials([key.id], timeout_s=TIMEOUT_S)
    assert not can_sign_in(broker, key.id, secret)
    house.tenant.partitions_max = 7
    house.tenant.save()
    assert mend_drift() == 2
    assert can_sign_in(broker, key.id, secret)
    there = real.inventory(timeout_s=TIMEOUT_S).tenants[house.tenant.id]
    assert there.policy["max_partitions"] == 7


def test_a_wish_made_while_the_broker_is_down_is_fulfilled_when_it_is_back(
    house: House, broker: BrokerProcess, real: HighwaterEngine
) -> None:
    broker.stop()
    topic = make_orders(house, partitions=2)
    assert topic.state == State.CREATING
    assert "127.0.0.1" not in topic.status_detail
    broker.start()
    mend_drift()
    topic.refresh_from_db()
    assert topic.state == State.READY


def test_two_tenants_with_the_same_topic_see_their_own(real: HighwaterEngine, broker: BrokerProcess) -> None:
    one, two = make_house(f"house-{next(HOUSE_NUMBERS)}"), make_house(f"house-{next(HOUSE_NUMBERS)}")
    make_orders(one, partitions=1)
    make_orders(two, partitions=2)
    seen = [kafka_admin(broker, house).list_topics(timeout=TIMEOUT_S).topics for house in (one, two)]
    assert [{name: len(topic.partitions) for name, topic in topics.items()} for topics in seen] == [
        {"orders": 1},
        {"orders": 2},
    ]


def test_creating_what_is_there_is_no_error(house: House, real: HighwaterEngine) -> None:
    name = TopicName(house.tenant.id, "twice")
    assert real.create_topic(name, TopicSpec(1), timeout_s=TIMEOUT_S) is True
    assert real.create_topic(name, TopicSpec(1), timeout_s=TIMEOUT_S) is False
    real.delete_topic(name, timeout_s=TIMEOUT_S)
    real.delete_topic(name, timeout_s=TIMEOUT_S)
