"""Apache Kafka's admin commands as an operator runs them, against brokers of ours. `make kafka-peer` fetches them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.broker_engine.log.kafka_tools import LIBS, need_kafka_tools

_CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "election": "org.apache.kafka.tools.LeaderElectionCommand",
    "quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consume": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
_ROW = re.compile(
    r"Topic: (?P<topic>\S+)\tPartition: (?P<partition>\d+)\tLeader: (?P<leader>\S+)\tReplicas: (?P<replicas>\S*)\t"
    r"Isr: (?P<isr>\S*)\tElr: (?P<elr>\S*)\tLastKnownElr: (?P<last>\S*)"
)
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `kafka-topics --describe`."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]


class KafkaTools:
    def __init__(self, bootstrap: str, folder: Path) -> None:
        need_kafka_tools()
        self._bootstrap = bootstrap
        self._folder = folder

    def run(self, tool: str, *options: str) -> str:
        """What it prints; complaints too."""
        # One compiler is enough for a command that lives for a second.
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{LIBS}/*", _CLASSES[tool]]
        server = ["--bootstrap-server", self._bootstrap]
        # Only here the command of the tool comes first.
        given = [options[0], *server, *options[1:]] if tool == "cluster" else [*server, *options]
        done = subprocess.run([*command, *given], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        return done.stdout + done.stderr

    def create(self, topic: str, partitions: int, factor: int, **configs: str) -> None:
        given = [f"--config={key.replace('_', '.')}={value}" for key, value in configs.items()]
        counts = ["--partitions", str(partitions), "--replication-factor", str(factor)]
        said = self.run("topics", "--create", "--topic", topic, *counts, *given)
        assert f"Created topic {topic}." in said, said

    def describe(self, topic: str, *options: str) -> dict[int, Row]:
        said = self.run("topics", "--describe", "--topic", topic, *options)
        rows = {int(found["partition"]): _row(found.groupdict()) for found in _ROW.finditer(said)}
        assert rows or options, said
        return rows

    def reassign(self, action: str, topic: str, replicas: Mapping[int, Sequence[int]], *options: str) -> str:
        moves = [{"topic": topic, "partition": index, "replicas": list(to)} for index, to in replicas.items()]
        path = self._folder / "reassignment.json"
        path.write_text(json.dumps({"version": 1, "partitions": moves}))
        return self.run("reassign", f"--{action}", "--reassignment-json-file", str(path), *options)


def _row(found: Mapping[str, str]) -> Row:
    leader = None if found["leader"] in ("none", "-1") else int(found["leader"])
    return Row(leader, *(tuple(map(int, filter(None, found[name].split(",")))) for name in ("replicas", "isr", "elr")))
