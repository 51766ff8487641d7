"""Stories that only a real PostgreSQL and Redis can tell; `test_real_servers` runs them in a process of their own."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from channels.layers import get_channel_layer
from django.core.cache import cache
from django.db import connection

from api import throttle
from api.problems import ProblemError
from control_plane.celery import app, enqueue
from control_plane.drift.tasks import mend_drift
from control_plane.refusals import PolicyViolation
from control_plane.topics import tasks
from control_plane.topics.actions import create_topic
from control_plane.topics.models import Topic
from tests.control_plane.world import House, Queue


@pytest.fixture(autouse=True)
def queue() -> Queue:
    """The real queue this time."""
    assert app.conf.broker_url.startswith("redis://")
    queue = Queue()
    queue.take_all()
    return queue


def test_this_runs_on_postgresql(db: None) -> None:
    assert connection.vendor == "postgresql"


def test_two_requests_cannot_share_the_last_of_a_quota(demo: House) -> None:
    demo.tenant.partitions_max = 5
    demo.tenant.save()

    def create(index: int) -> bool:
        try:
            create_topic(actor="dev", tenant=demo.tenant, name=f"topic-{index}", partitions=3)
        except PolicyViolation:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(8)))
    assert made.count(True) == 1
    assert Topic.objects.count() == 1


def test_menders_that_run_side_by_side_adopt_a_topic_once(demo: House, engine: object) -> None:
    engine.born("demo", "clicks", 2)  # type: ignore[attr-defined]

    def mend(_: int) -> int:
        try:
            return mend_drift()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(mend, range(4)))
    assert Topic.objects.get().name == "clicks"


def test_a_task_goes_through_redis(queue: Queue) -> None:
    enqueue(tasks.reconcile_topic, 7)
    assert queue.take_all() == [("control_plane.topics.tasks.reconcile_topic", [7])]


def test_failed_sign_ins_are_counted_in_redis() -> None:
    assert "redis" in type(cache).__module__ or "redis" in str(cache._cache)  # type: ignore[attr-defined]
    for _ in range(throttle.FREE_FAILURES):
        throttle.failed("ada@example.com", "192.0.2.1")
    with pytest.raises(ProblemError):
        throttle.check("ada@example.com", "192.0.2.1")


def test_the_channel_layer_carries_messages_over_redis() -> None:
    async def send_and_receive() -> dict[str, object]:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add("watchers", channel)
        await layer.group_send("watchers", {"type": "hello", "n": 1})
        message: dict[str, object] = await asyncio.wait_for(layer.receive(channel), 5)
        return message

    assert asyncio.run(send_and_receive())["n"] == 1
