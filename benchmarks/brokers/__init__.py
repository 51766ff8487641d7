"""The two brokers, started the same way: a folder of their own, free ports of loopback, ended in all cases."""

from __future__ import annotations

from benchmarks.brokers.broker import Broker
from benchmarks.brokers.cluster import Cluster, HighwaterCluster, KafkaCluster
from benchmarks.brokers.highwater import Highwater
from benchmarks.brokers.kafka import Kafka

SIDES: dict[str, type[Broker]] = {"kafka": Kafka, "highwater": Highwater}
CLUSTERS: dict[str, type[Broker]] = {"kafka": KafkaCluster, "highwater": HighwaterCluster}

__all__ = ["CLUSTERS", "SIDES", "Broker", "Cluster", "Highwater", "Kafka"]
