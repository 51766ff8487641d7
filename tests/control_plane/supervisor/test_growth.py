"""Whether a home has to grow, and how it does: against a cluster in memory."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from control_plane.engine.cluster import PartitionName
from control_plane.engine.factory import engine_in_place
from control_plane.supervisor import growth
from control_plane.supervisor.management.commands.up import BROKERS_DEFAULT, count_brokers
from control_plane.supervisor.plan import UpOptions
from control_plane.supervisor.progress import Progress
from control_plane.supervisor.watch import Supervisor
from tests.control_plane.memory_cluster import MemoryCluster
from tests.control_plane.memory_engine import MemoryEngine

ORDERS = PartitionName("demo", "orders", 0)


def home_of(path: Path, *brokers: int) -> Path:
    for broker in brokers:
        (path / f"broker-{broker}").mkdir(parents=True)
        (path / f"broker-{broker}" / "meta.properties").touch()
    return path


class AtOnce(MemoryCluster):
    """Moves are done when they are first looked after."""

    def moves_under_way(self, *, timeout_s: float) -> list[PartitionName]:
        self.finish_moves()
        return []


def grow(home: Path, cluster: MemoryCluster, broker_count: int = 3) -> str:
    said = io.StringIO()
    options = UpOptions(home=home, http_port=1, kafka_port=2, is_production=False, broker_count=broker_count)
    with engine_in_place(MemoryEngine(cluster=cluster)):
        growth.grow_topics(options, growth.brokers_before(home), Supervisor(Progress(said)))
    return said.getvalue()


def test_a_home_of_one_broker_gets_three_copies_of_everything(tmp_path: Path) -> None:
    cluster = AtOnce(replicas={ORDERS: (1,)})
    assert "each is on 3 brokers: ok" in grow(home_of(tmp_path, 1), cluster)
    assert cluster.replicas == {ORDERS: (1, 2, 3)}


def test_a_home_that_has_grown_is_left_as_its_owners_want_it(tmp_path: Path) -> None:
    home = home_of(tmp_path, 1)
    grow(home, AtOnce())
    cluster = AtOnce(replicas={ORDERS: (2,)})
    assert grow(home, cluster) == ""
    assert cluster.replicas == {ORDERS: (2,)}


def test_a_new_home_has_nothing_to_copy(tmp_path: Path) -> None:
    assert grow(tmp_path, AtOnce(replicas={ORDERS: (1,)})) == ""
    assert growth.brokers_before(tmp_path) == 3


def test_a_growth_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    home = home_of(tmp_path, 1)
    with pytest.raises(Exception, match="no broker answers"):
        grow(home, AtOnce(is_away=True))
    assert growth.brokers_before(home) == 1


def test_two_brokers_give_two_copies(tmp_path: Path) -> None:
    cluster = AtOnce(brokers=[1, 2], replicas={ORDERS: (1,)})
    assert "on 2 brokers" in grow(home_of(tmp_path, 1), cluster, broker_count=2)
    assert cluster.replicas == {ORDERS: (1, 2)}


def test_there_are_as_many_brokers_as_usual_unless_more_are_there_or_asked_for(tmp_path: Path) -> None:
    assert count_brokers(tmp_path, None) == BROKERS_DEFAULT
    assert count_brokers(tmp_path, 1) == 1
    assert count_brokers(home_of(tmp_path, 1, 2, 3, 4, 5), None) == 5


def test_fewer_brokers_than_there_are_must_be_a_majority(tmp_path: Path) -> None:
    assert count_brokers(home_of(tmp_path, 1, 2, 3), 2) == 2  # so that the third can be removed
    with pytest.raises(CommandError, match=r"a cluster of 3, and 1 of them are no majority"):
        count_brokers(tmp_path, 1)
    with pytest.raises(CommandError, match="between 1 and 9"):
        count_brokers(tmp_path, 12)
