"""A group of librdkafka consumers that all come at once: how long until each has its partitions, and keeps them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, TopicPartition

from benchmarks.loads.result import Settled
from benchmarks.process import usage

SETTLE_TIMEOUT_S = 300.0
STEADY_S = 7.0
"""Longer than a heartbeat of either protocol: what is to change has begun to by then."""
LOOK_S = 0.02


def settle(
    bootstrap: str, pid: int, topic: str, *, group: str, protocol: str, member_count: int, partition_count: int
) -> Settled:
    """`protocol`: classic or consumer (KIP-848). Clients are made before; timed from the first one that joins."""
    members = [_member(bootstrap, group, protocol) for _ in range(member_count)]
    before, started = usage(pid), time.perf_counter()
    for member in members:
        member.subscribe([topic])
    seconds = _wait_until_steady(members, partition_count, started)
    used = usage(pid) - before
    for member in members:
        member.close()
    return Settled(seconds, used)


def _member(bootstrap: str, group: str, protocol: str) -> Consumer:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "log_level": 2}
    member = Consumer({**settings, "enable.auto.commit": False})
    member.list_topics(timeout=60)  # connected: a client's own start is not what is timed
    return member


def _wait_until_steady(members: Sequence[Consumer], partition_count: int, started: float) -> float:
    """Seconds until every member had partitions and all were taken once, counted from the last time that began."""
    settled_at: float | None = None
    while time.perf_counter() - started < SETTLE_TIMEOUT_S:
        for member in members:
            member.poll(0)
        now = time.perf_counter()
        if not _is_settled([member.assignment() for member in members], partition_count):
            settled_at = None
        elif settled_at is None:
            settled_at = now
        elif now - settled_at > STEADY_S:
            return settled_at - started
        time.sleep(LOOK_S)
    raise TimeoutError(f"{len(members)} members did not settle within {SETTLE_TIMEOUT_S:.0f} s")


def _is_settled(assignments: Sequence[Sequence[TopicPartition]], partition_count: int) -> bool:
    taken = [part.partition for assignment in assignments for part in assignment]
    return all(assignments) and len(taken) == len(set(taken)) == partition_count
