from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.metadata.parts import BrokerImage, EndpointImage
from broker_engine.metadata.placement import place, starts_of


def brokers(*places: tuple[str | None, str]) -> list[BrokerImage]:
    return [
        BrokerImage(n, n, UUID(int=n), rack, (EndpointImage("default", host, 1, "PLAINTEXT"),), False)
        for n, (rack, host) in enumerate(places)
    ]


def plain(count: int) -> list[BrokerImage]:
    return brokers(*((None, f"host-{n}") for n in range(count)))


def test_start_zero_gives_the_textbook_table() -> None:
    """Partition i on broker i mod n, its replica j on (i + j) mod n, for the first n partitions."""
    for count in range(1, 7):
        for factor in range(1, count + 1):
            table = [tuple((i + j) % count for j in range(factor)) for i in range(count)]
            assert place(plain(count), range(count), factor) == table


def test_the_second_round_shifts_the_followers() -> None:
    assert place(plain(4), range(8), 2) == [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (2, 0), (3, 1)]


def test_the_start_moves_the_leaders() -> None:
    assert place(plain(3), range(3), 2, start=1) == [(1, 2), (2, 0), (0, 1)]


def test_partitions_added_later_go_on_where_the_first_ones_ended() -> None:
    everything = place(plain(5), range(20), 3, start=2, shift=1)
    assert (
        place(plain(5), range(7), 3, start=2, shift=1) + place(plain(5), range(7, 20), 3, start=2, shift=1)
        == everything
    )


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 8), st.integers(0, 8), st.integers(1, 60))
def test_replicas_are_on_different_brokers_and_leaders_are_even(
    count: int, factor: int, start: int, shift: int, partition_count: int
) -> None:
    factor = min(factor, count)
    placed = place(plain(count), range(partition_count), factor, start=start, shift=shift)
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(n, 0) for n in range(count)) <= 1


def test_a_dead_brokers_leaders_spread_over_all_others() -> None:
    placed = place(plain(5), range(100), 3)
    heirs = Counter(replicas[1] for replicas in placed if replicas[0] == 0)
    assert set(heirs) == {1, 2, 3, 4}
    assert max(heirs.values()) - min(heirs.values()) <= 1


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30))
def test_replicas_spread_over_racks_first(start: int, shift: int, partition_count: int) -> None:
    row = brokers(("a", "h0"), ("a", "h1"), ("b", "h2"), ("b", "h3"), ("c", "h4"), ("c", "h5"))
    for replicas in place(row, range(partition_count), 3, start=start, shift=shift):
        assert {row[n].rack for n in replicas} == {"a", "b", "c"}


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30))
def test_replicas_spread_over_hosts_inside_a_rack(start: int, shift: int, partition_count: int) -> None:
    row = brokers((None, "h0"), (None, "h0"), (None, "h1"), (None, "h1"), (None, "h2"), (None, "h2"))
    for replicas in place(row, range(partition_count), 3, start=start, shift=shift):
        assert len({row[n].host for n in replicas}) == 3


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_starts_come_from_the_id_and_reach_every_broker(count: int) -> None:
    starts = {starts_of(UUID(int=n), count)[0] for n in range(50)}
    assert starts == set(range(count))
    assert starts_of(UUID(int=77), count) == starts_of(UUID(int=77), count)
