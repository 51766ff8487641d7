"""The periodic task: what it mends, what it adopts, what it leaves alone."""

from __future__ import annotations

from dataclasses import replace

from control_plane.audit.models import AuditEntry
from control_plane.drift.tasks import mend_drift
from control_plane.engine.factory import engine_in_place
from control_plane.engine.interface import TenantView, TopicName
from control_plane.keys.actions import create_key, revoke_key
from control_plane.topics.actions import change_topic, create_topic, delete_topic
from control_plane.topics.models import Origin, State, Topic
from tests.control_plane.memory_engine import MemoryEngine
from tests.control_plane.world import House, Queue

ORDERS = TopicName("demo", "orders")


def make_orders(house: House, **values: object) -> Topic:
    return create_topic(actor="dev", tenant=house.tenant, name="orders", **values)


def test_a_world_in_order_needs_no_mending(demo: House) -> None:
    make_orders(demo)
    create_key(actor="dev", tenant=demo.tenant, name="k")
    assert mend_drift() == 0


def test_a_wish_whose_task_was_lost_is_found(demo: House, engine: MemoryEngine, queue: Queue) -> None:
    engine.is_away = True
    topic = make_orders(demo)
    assert queue.take_all() != []  # taken by a worker that is then killed
    engine.is_away = False
    mend_drift()
    topic.refresh_from_db()
    assert topic.state == State.READY


def test_a_topic_that_the_engine_lost_is_made_anew_and_that_is_on_record(demo: House, engine: MemoryEngine) -> None:
    first_id = make_orders(demo, partitions=2).topic_id
    engine.delete_topic(ORDERS, timeout_s=1)
    mend_drift()
    assert engine.topics[ORDERS].partitions == 2
    assert Topic.objects.get().topic_id not in (None, first_id)
    assert AuditEntry.objects.filter(verb="topic.recreated", target="orders").count() == 1


def test_a_topic_born_in_the_engine_is_adopted(demo: House, engine: MemoryEngine) -> None:
    topic_id = engine.born("demo", "clicks", 3)
    mend_drift()
    topic = Topic.objects.get(name="clicks")
    assert (topic.state, topic.origin, topic.partitions, topic.topic_id) == (State.READY, Origin.ENGINE, 3, topic_id)
    assert mend_drift() == 0


def test_a_topic_of_an_unknown_tenant_is_left_alone(demo: House, engine: MemoryEngine) -> None:
    engine.born("stranger", "clicks")
    assert mend_drift() == 0
    assert TopicName("stranger", "clicks") in engine.topics


def test_a_topic_that_vanishes_during_the_run_is_not_adopted(demo: House) -> None:
    class Vanishing(MemoryEngine):
        def describe_topics(self, *, timeout_s: float) -> list:  # type: ignore[type-arg]
            views = super().describe_topics(timeout_s=timeout_s)
            self.topics.clear()
            return views

    engine = Vanishing()
    engine.born("demo", "ghost")
    with engine_in_place(engine):
        mend_drift()
    assert not Topic.objects.exists()


def test_a_list_that_is_older_than_a_change_does_not_undo_it(demo: House, engine: MemoryEngine) -> None:
    topic = make_orders(demo, configs={"retention.ms": "1000"})

    class Slow(MemoryEngine):
        """Between the list and what is made of it, the topic is changed over REST."""

        def describe_topics(self, *, timeout_s: float) -> list:  # type: ignore[type-arg]
            views = super().describe_topics(timeout_s=timeout_s)
            change_topic(actor="dev", topic=topic, configs={"retention.ms": "2000"})
            return views

    slow = Slow(topics=engine.topics, shown=engine.shown, tenants=engine.tenants)
    with engine_in_place(slow):
        assert mend_drift() == 0
    assert Topic.objects.get().configs == {"retention.ms": "2000"}
    assert slow.topics[ORDERS].configs == {"retention.ms": "2000"}
    assert not AuditEntry.objects.filter(actor="kafka-client").exists()


def test_a_change_by_a_kafka_client_inside_the_policy_is_taken_over(demo: House, engine: MemoryEngine) -> None:
    make_orders(demo, partitions=1)
    engine.add_partitions(ORDERS, 3, timeout_s=1)
    engine.alter_configs(ORDERS, put={"retention.ms": "5000"}, remove=[], timeout_s=1)
    mend_drift()
    topic = Topic.objects.get()
    assert (topic.partitions, topic.configs) == (3, {"retention.ms": "5000"})
    assert AuditEntry.objects.filter(verb="topic.changed", actor="kafka-client").count() == 1


def test_a_change_by_a_kafka_client_beyond_the_policy_is_put_back(demo: House, engine: MemoryEngine) -> None:
    demo.tenant.retention_ms_max = 1_000_000_000
    demo.tenant.save()
    make_orders(demo)
    engine.alter_configs(ORDERS, put={"retention.ms": "-1"}, remove=[], timeout_s=1)
    mend_drift()
    assert engine.topics[ORDERS].configs == {}


def test_a_pending_deletion_is_carried_out(demo: House, engine: MemoryEngine, queue: Queue) -> None:
    topic = make_orders(demo)
    engine.is_away = True
    delete_topic(actor="dev", topic=topic)
    queue.take_all()
    engine.is_away = False
    mend_drift()
    assert not Topic.objects.exists()
    assert ORDERS not in engine.topics


def test_missing_and_changed_tenants_are_pushed(demo: House, acme: House, engine: MemoryEngine) -> None:
    wanted = dict(engine.tenants)
    del engine.tenants["demo"]
    engine.tenants["acme"] = replace(engine.tenants["acme"], policy={"auto_create": False})
    engine.tenants["operators-own"] = TenantView("operators-own", "lkc-x", {})
    assert mend_drift() == 2
    assert engine.tenants == {**wanted, "operators-own": TenantView("operators-own", "lkc-x", {})}


def test_lost_credentials_come_back_and_revoked_ones_go(demo: House, engine: MemoryEngine) -> None:
    kept, _ = create_key(actor="dev", tenant=demo.tenant, name="kept")
    gone, _ = create_key(actor="dev", tenant=demo.tenant, name="gone")
    old = dict(engine.credentials)
    revoke_key(actor="dev", key=gone)
    engine.credentials = {gone.id: old[gone.id]}
    mend_drift()
    assert set(engine.credentials) == {kept.id}


def test_an_engine_that_is_away_fails_nobody(demo: House, engine: MemoryEngine) -> None:
    engine.is_away = True
    assert mend_drift() == 0
