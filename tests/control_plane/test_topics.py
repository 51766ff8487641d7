"""Topics: the wish, the engine that follows it, and what happens when it cannot."""

from __future__ import annotations

import pytest

from control_plane.audit.models import AuditEntry
from control_plane.engine.factory import engine_in_place
from control_plane.engine.interface import TopicName
from control_plane.refusals import Conflict, Invalid, PolicyViolation, RefusedByEngine
from control_plane.tenants.actions import create_project
from control_plane.topics.actions import change_topic, create_topic, delete_topic, judge_new_topic
from control_plane.topics.models import State, Topic
from control_plane.topics.reconcile import IN_REQUEST_S, reconcile
from tests.control_plane.memory_engine import MemoryEngine
from tests.control_plane.world import House, Queue

ORDERS = TopicName("demo", "orders")


def make_orders(house: House, **values: object) -> Topic:
    return create_topic(actor="dev@demo", tenant=house.tenant, name="orders", **values)


def test_a_created_topic_is_in_the_engine_and_ready(demo: House, engine: MemoryEngine) -> None:
    topic = make_orders(demo, partitions=3, configs={"retention.ms": "60000"})
    assert topic.state == State.READY
    assert engine.topics[ORDERS].partitions == 3
    assert topic.topic_id == engine.topics[ORDERS].topic_id
    assert topic.replication_factor == 1


def test_the_wish_and_its_audit_entry_are_written_together(demo: House) -> None:
    make_orders(demo, partitions=2)
    entry = AuditEntry.objects.get(verb="topic.created")
    assert (entry.actor, entry.target, entry.tenant_id) == ("dev@demo", "orders", "demo")
    assert entry.after is not None
    assert entry.after["partitions"] == 2


def test_a_topic_waits_while_the_engine_is_away_and_the_queue_gets_the_retry(
    demo: House, engine: MemoryEngine, queue: Queue
) -> None:
    engine.is_away = True
    topic = make_orders(demo)
    assert topic.state == State.CREATING
    assert "no broker answers" in topic.status_detail
    engine.is_away = False
    queue.run_all()
    topic.refresh_from_db()
    assert topic.state == State.READY


def test_a_topic_is_not_ready_before_every_broker_shows_it(demo: House, engine: MemoryEngine, queue: Queue) -> None:
    engine.lagging = {2}
    topic = make_orders(demo)
    assert topic.state == State.CREATING
    engine.catch_up()
    queue.run_all()
    topic.refresh_from_db()
    assert topic.state == State.READY


def test_the_same_name_twice_is_a_conflict(demo: House) -> None:
    make_orders(demo)
    with pytest.raises(Conflict, match="already"):
        make_orders(demo)


def test_two_tenants_may_use_the_same_name(demo: House, acme: House, engine: MemoryEngine) -> None:
    make_orders(demo, partitions=1)
    make_orders(acme, partitions=2)
    assert engine.topics[ORDERS].partitions == 1
    assert engine.topics[TopicName("acme", "orders")].partitions == 2


def test_a_refusal_of_the_engine_reaches_the_caller_and_leaves_the_name_free(demo: House) -> None:
    with pytest.raises(RefusedByEngine, match="must be a number"):
        make_orders(demo, configs={"segment.bytes": "many"})
    assert Topic.objects.get().state == State.FAILED
    assert make_orders(demo, configs={"segment.bytes": "1048576"}).state == State.READY


def test_a_change_adds_partitions_and_sets_and_unsets_configs(demo: House, engine: MemoryEngine) -> None:
    topic = make_orders(demo, configs={"retention.ms": "60000", "cleanup.policy": "delete"})
    topic = change_topic(
        actor="dev", topic=topic, partitions=4, configs={"retention.ms": "90000", "cleanup.policy": None}
    )
    assert topic.state == State.READY
    assert engine.topics[ORDERS].partitions == 4
    assert engine.topics[ORDERS].configs == {"retention.ms": "90000"}


def test_a_topic_cannot_shrink(demo: House) -> None:
    topic = make_orders(demo, partitions=3)
    with pytest.raises(PolicyViolation) as caught:
        change_topic(actor="dev", topic=topic, partitions=2)
    assert [verdict.rule for verdict in caught.value.verdicts if not verdict.ok] == ["partitions"]


def test_a_change_that_changes_nothing_does_not_touch_the_engine(demo: House, engine: MemoryEngine) -> None:
    topic = make_orders(demo, partitions=3)
    calls = engine.calls
    change_topic(actor="dev", topic=topic, partitions=3)
    assert engine.calls == calls


def test_a_deleted_topic_is_gone_from_both(demo: House, engine: MemoryEngine) -> None:
    assert delete_topic(actor="dev", topic=make_orders(demo)) is True
    assert not Topic.objects.exists()
    assert ORDERS not in engine.topics


def test_a_deletion_waits_for_the_engine(demo: House, engine: MemoryEngine, queue: Queue) -> None:
    topic = make_orders(demo)
    engine.is_away = True
    assert delete_topic(actor="dev", topic=topic) is False
    assert Topic.objects.get().state == State.DELETING
    engine.is_away = False
    queue.run_all()
    assert not Topic.objects.exists()


def test_reconciling_twice_changes_nothing(demo: House, engine: MemoryEngine) -> None:
    topic = make_orders(demo, partitions=2)
    before = dict(engine.topics)
    assert reconcile(topic.pk, budget_s=IN_REQUEST_S)
    assert engine.topics == before


def test_an_outcome_for_an_older_wish_does_not_close_a_newer_one(demo: House, engine: MemoryEngine) -> None:
    class ChangesUnderway(MemoryEngine):
        """While the first wish is worked on, a second one is written."""

        def wait_until_shown(self, name: TopicName, partitions: int, *, timeout_s: float) -> bool:
            Topic.objects.filter(name=name.name, generation=1).update(generation=2, partitions=5, state="updating")
            return super().wait_until_shown(name, partitions, timeout_s=timeout_s)

    with engine_in_place(ChangesUnderway()):
        topic = make_orders(demo, partitions=1)
    assert (topic.state, topic.observed_generation, topic.generation) == (State.UPDATING, 0, 2)


def test_partitions_beyond_the_quota_are_refused_with_what_is_left(demo: House) -> None:
    demo.tenant.partitions_max = 5
    demo.tenant.save()
    make_orders(demo, partitions=3)
    verdicts = judge_new_topic(tenant=demo.tenant, name="more", partitions=4)
    failed = [verdict for verdict in verdicts if not verdict.ok]
    assert [(verdict.rule, verdict.quota_left) for verdict in failed] == [("partition_quota", 2)]


def test_a_project_overrides_the_tenants_policy(demo: House) -> None:
    demo.tenant.name_pattern = "[a-z]+"
    demo.tenant.save()
    project = create_project(actor="owner", tenant=demo.tenant, name="Payments")
    project.name_pattern = r"pay\..+"
    project.partitions_per_topic_max = 2
    project.save()
    with pytest.raises(PolicyViolation):
        make_orders(demo, project="payments")
    topic = create_topic(actor="dev", tenant=demo.tenant, name="pay.in", project="payments", partitions=2)
    assert topic.project == project


def test_an_unknown_project_is_named_as_the_wrong_field(demo: House, acme: House) -> None:
    create_project(actor="owner", tenant=acme.tenant, name="secret")
    with pytest.raises(Invalid) as caught:
        make_orders(demo, project="secret")
    assert caught.value.field == "project"
