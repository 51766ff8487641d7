"""Which partition a record meets: the Java client's answer for keys, one per batch without."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from broker_engine.client.murmur2 import murmur2, partition_for_key
from broker_engine.client.partitioner import StickyPartitioner

GOLDEN = json.loads((Path(__file__).parent / "data" / "murmur2.json").read_text())["values"]


def lots(*values: float) -> Callable[[], float]:
    return cycle(values).__next__


@pytest.mark.parametrize(("key_hex", "java_hash", "java_positive"), GOLDEN, ids=range(len(GOLDEN)))
def test_murmur2_is_the_java_clients(key_hex: str, java_hash: int, java_positive: int) -> None:
    key = bytes.fromhex(key_hex)

    assert murmur2(key) == java_hash & 0xFFFFFFFF
    assert partition_for_key(key, 12) == java_positive % 12


def test_a_keyless_record_stays_until_the_partitioner_moves_on() -> None:
    partitioner = StickyPartitioner(lots(0.0))
    first = partitioner.move_on("orders", (0, 1, 2), 3)

    assert partitioner.current("orders", (0, 1, 2)) == first
    assert partitioner.move_on("orders", (0, 1, 2), 3) != first


def test_leaderless_partitions_are_skipped() -> None:
    partitioner = StickyPartitioner(lots(0.0, 0.3, 0.6, 0.99))

    chosen = {partitioner.move_on("orders", (1, 3), 4) for _ in range(40)}

    assert chosen == {1, 3}


def test_a_partition_that_lost_its_leader_is_left_at_once() -> None:
    partitioner = StickyPartitioner(lots(0.0))
    partitioner.move_on("orders", (0, 1), 2)

    assert partitioner.current("orders", (1,)) is None
    assert partitioner.move_on("orders", (1,), 2) == 1


def test_without_any_leader_records_wait_on_some_partition() -> None:
    assert StickyPartitioner(lots(0.99)).move_on("orders", (), 4) == 3


def test_topics_do_not_share_their_partition() -> None:
    partitioner = StickyPartitioner(lots(0.0, 0.99))
    orders, payments = partitioner.move_on("orders", (0, 1), 2), partitioner.move_on("payments", (0, 1), 2)

    assert (orders, payments) == (0, 1)
    assert partitioner.current("orders", (0, 1)) == 0
