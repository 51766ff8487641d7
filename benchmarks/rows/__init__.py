"""All rows, by scenario. A scenario is one life of a broker; its rows run in order against it."""

from __future__ import annotations

from benchmarks.rows import cluster, consume, disturbance, groups, latency, partitions, produce, requests, stored, tls
from benchmarks.rows.row import Row, Scenario

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "load",
        "one broker, every row in turn",
        rows=(*requests.ROWS, *produce.ROWS, *requests.FSYNC_ROWS, *latency.ROWS, *consume.ROWS),
    ),
    Scenario("disturbance", "a neighbour reads or is compacted", rows=disturbance.ROWS),
    Scenario("groups", "consumer groups", rows=groups.ROWS),
    Scenario("tls", "the same fetch by sendfile, by read and write, over TLS", rows=tls.ROWS, is_tls=True),
    Scenario("partitions-1000", "1,000 partitions", rows=(partitions.row(1_000, is_quick=True),)),
    Scenario("partitions-10000", "10,000 partitions", rows=(partitions.row(10_000, is_quick=False),), rounds_max=1),
    Scenario("cluster", "three brokers, replication factor 3", rows=cluster.ROWS, is_cluster=True),
    Scenario("stored", "1 GB and 30 GB stored", rows=stored.ROWS, rounds_max=1),
)

__all__ = ["SCENARIOS", "Row", "Scenario"]
