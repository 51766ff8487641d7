"""The seam over three real brokers: topics that all of them show, moves of replicas, a broker that dies or leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from broker_engine.client import Client, ClientConfig, PlainCredentials, Producer
from control_plane.cluster.queries import Status, view_of
from control_plane.engine.cluster import PartitionName
from control_plane.engine.groups import GroupName
from control_plane.engine.highwater import HighwaterEngine
from control_plane.engine.interface import TopicName, TopicSpec
from control_plane.live.snapshot import Snapshot
from control_plane.live.tail import TelemetryTail
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for

TIMEOUT_S = 20.0
LISTENERS = {"default": "PLAINTEXT", "internal": "SASL_PLAINTEXT"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path, 3, listeners=LISTENERS) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        yield cluster


@pytest.fixture
def engine(cluster: ClusterProcess, tmp_path: Path) -> HighwaterEngine:
    environment = replace(
        django_settings.HIGHWATER,
        home=tmp_path,
        engine_bootstrap=addresses(cluster),
        cluster_secret=cluster.secret_file.read_text().strip(),
    )
    return HighwaterEngine(environment)


def addresses(cluster: ClusterProcess) -> tuple[str, ...]:
    return tuple(node.address("internal") for node in cluster)


def create(engine: HighwaterEngine, name: str, partitions: int = 3, factor: int | None = None) -> TopicName:
    topic = TopicName("acme", name)
    assert engine.create_topic(topic, TopicSpec(partitions, factor), timeout_s=TIMEOUT_S)
    assert engine.wait_until_shown(topic, partitions, timeout_s=TIMEOUT_S)
    return topic


def replicas(engine: HighwaterEngine, topic: TopicName) -> list[tuple[int, ...]]:
    found = engine.cluster.placement(timeout_s=TIMEOUT_S)
    return [found[name] for name in sorted(found) if (name.tenant, name.topic) == (topic.tenant, topic.name)]


def wait_until_still(engine: HighwaterEngine) -> None:
    wait_for("moves are done", lambda: not engine.cluster.moves_under_way(timeout_s=TIMEOUT_S), timeout_s=60)


def test_a_topic_is_shown_by_all_and_survives_the_controller(cluster: ClusterProcess, engine: HighwaterEngine) -> None:
    create(engine, "orders")
    cluster[cluster.controller_id()].kill()
    # The next answer may take an election; what is asked is done all the same.
    assert engine.create_topic(TopicName("acme", "later"), TopicSpec(1, 2), timeout_s=TIMEOUT_S)
    assert engine.wait_until_shown(TopicName("acme", "later"), 1, timeout_s=TIMEOUT_S)
    assert len(engine.cluster.live_brokers(timeout_s=TIMEOUT_S)) == 2


def test_topics_get_more_copies_and_the_throttle_ends_with_the_moves(engine: HighwaterEngine) -> None:
    topic = create(engine, "grown", factor=1)
    assert all(len(each) == 1 for each in replicas(engine, topic))
    moves = engine.cluster.propose_moves(replication_factor=3, leaving=frozenset(), timeout_s=TIMEOUT_S)
    assert [move.partition for move in moves] == [PartitionName("acme", "grown", index) for index in range(3)]
    engine.cluster.begin_moves(moves, bytes_per_s_max=1 << 20, timeout_s=TIMEOUT_S)
    wait_until_still(engine)
    assert [sorted(each) for each in replicas(engine, topic)] == [[1, 2, 3]] * 3

    engine.cluster.end_throttle(timeout_s=TIMEOUT_S)
    view = engine.describe_topic(topic, timeout_s=TIMEOUT_S)
    assert view is not None
    assert (view.replication_factor, dict(view.configs)) == (3, {})
    engine.cluster.end_throttle(timeout_s=TIMEOUT_S)  # nothing is left to end


def test_a_broker_is_drained_and_removed(cluster: ClusterProcess, engine: HighwaterEngine) -> None:
    topic = create(engine, "stays", factor=2)
    moves = engine.cluster.propose_moves(replication_factor=None, leaving=frozenset({3}), timeout_s=TIMEOUT_S)
    engine.cluster.begin_moves(moves, bytes_per_s_max=None, timeout_s=TIMEOUT_S)
    wait_until_still(engine)
    assert [sorted(each) for each in replicas(engine, topic)] == [[1, 2]] * 3
    cluster[3].kill()
    engine.cluster.remove_broker(3, timeout_s=TIMEOUT_S)
    assert engine.cluster.live_brokers(timeout_s=TIMEOUT_S) == [1, 2]


def test_leaders_go_back_to_the_first_of_their_replicas(cluster: ClusterProcess, engine: HighwaterEngine) -> None:
    topic = create(engine, "led")
    cluster[2].stop()
    cluster[2].start()
    cluster.wait_for_brokers(1, 2, 3)

    def all_preferred() -> bool:
        engine.cluster.elect_preferred_leaders(timeout_s=TIMEOUT_S)
        views = engine.describe_partitions(topic, timeout_s=TIMEOUT_S) or []
        return all(view.leader == view.replicas[0] for view in views)

    wait_for("every partition has its first leader", all_preferred)


class Tailing:
    """The tail in a thread of its own, as a web process has it."""

    def __init__(self, make_client: Callable[[], Client]) -> None:
        self.snapshot = Snapshot()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._tail = TelemetryTail(self.snapshot, make_client)

    def __enter__(self) -> Snapshot:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._tail.run(), self._loop)
        return self.snapshot

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(_end_all_others(), self._loop).result(TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_all_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def statuses(snapshot: Snapshot) -> dict[int, Status]:
    if snapshot.cluster() is None:
        return {}
    return {it.member.broker: it.status for it in view_of(snapshot).brokers}


def test_the_tail_sees_every_broker_and_one_that_dies(cluster: ClusterProcess, engine: HighwaterEngine) -> None:
    sasl = PlainCredentials("control-plane", cluster.secret_file.read_text().strip())
    config = ClientConfig(bootstrap=addresses(cluster), sasl=sasl)
    create(engine, "watched")
    with Tailing(lambda: Client(config)) as snapshot:
        all_up = dict.fromkeys((1, 2, 3), Status.UP)
        wait_for("all are up", lambda: statuses(snapshot) == all_up, timeout_s=30)
        wait_for("three rows", lambda: len(snapshot.topic("acme", "watched")) == 3)
        first = snapshot.topic("acme", "watched")[0]
        cluster[first.leader].kill()
        wait_for("it is down", lambda: statuses(snapshot).get(first.leader) is Status.DOWN, timeout_s=30)

        def is_led_by_another() -> bool:
            row = snapshot.topic("acme", "watched")[0]
            return row.leader not in (first.leader, -1) and row.leader_epoch > first.leader_epoch

        wait_for("another leads, in a later epoch", is_led_by_another, timeout_s=30)
        assert first.leader in snapshot.topic("acme", "watched")[0].osr
        cluster[first.leader].start()
        wait_for("it is back", lambda: statuses(snapshot) == all_up, timeout_s=60)
        wait_for("in sync", lambda: snapshot.topic("acme", "watched")[0].osr == (), timeout_s=60)


async def _produce(config: ClientConfig, topic: str, partitions: int, timestamp_ms: int) -> None:
    async with Client(config) as client, Producer(client) as producer:
        for partition in range(partitions):
            await producer.send(topic, b"unread", partition=partition, timestamp_ms=timestamp_ms)


def test_lag_in_seconds_is_known_wherever_the_record_is(cluster: ClusterProcess, engine: HighwaterEngine) -> None:
    """One copy of each partition, on three brokers: the coordinator has to ask two of them."""
    sasl = PlainCredentials("control-plane", cluster.secret_file.read_text().strip())
    config = ClientConfig(bootstrap=addresses(cluster), sasl=sasl)
    topic, group = create(engine, "lagging", factor=1), GroupName("acme", "readers")
    leaders = {view.leader for view in engine.describe_partitions(topic, timeout_s=TIMEOUT_S) or []}
    assert leaders == {1, 2, 3}
    asyncio.run(_produce(config, "acme/lagging", 3, 5_000))
    engine.groups.commit(group, {("lagging", index): 0 for index in range(3)}, timeout_s=TIMEOUT_S)
    with Tailing(lambda: Client(config)) as snapshot:

        def unread() -> list[int]:
            page = snapshot.group("acme", "readers")
            return [] if page is None else [told.unread_ms for told in page.offsets.values()]

        wait_for("each record's own time", lambda: unread() == [5_000] * 3, timeout_s=30)
        page = snapshot.group("acme", "readers")
        assert page is not None
        view = engine.groups.describe(group, timeout_s=TIMEOUT_S)
        assert view is not None
        assert page.told.coordinator == view.coordinator
        before = page.told.coordinator
        cluster[before].kill()

        def is_with_another() -> bool:
            later = snapshot.group("acme", "readers")
            return later is not None and later.told.coordinator != before

        wait_for("another broker coordinates it", is_with_another, timeout_s=40)
