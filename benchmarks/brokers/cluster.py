"""Three brokers on the same cores and disk, every topic with three replicas; the rest as with one broker.

Each side has its defaults. A member can be killed and brought back, for the rows that time fail-over.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.brokers.broker import NO_CONFIGS, START_TIMEOUT_S, STOP_TIMEOUT_S, Broker
from benchmarks.brokers.kafka import JVM_FLAGS, LIBS, LOG4J
from tests.chaos.asking import ask_quorum_leader, newest_leader, what_is_missing
from tests.ports import own_port

MEMBERS = (1, 2, 3)
POLL_S = 0.02
IN_SYNC_TIMEOUT_S = 180.0


class Cluster(Broker):
    replication_factor = 3

    def __init__(self, folder: Path, *, is_tls: bool = False) -> None:
        assert not is_tls, "clusters are measured in plain text"
        super().__init__(folder)
        self.ports = {member: own_port() for member in MEMBERS}
        self.controller_ports = {member: own_port() for member in MEMBERS}
        self.port = self.ports[1]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def command(self) -> list[str]:
        raise NotImplementedError("a cluster has a command per member")

    def member_command(self, member: int) -> list[str]:
        raise NotImplementedError

    def member_environment(self) -> Mapping[str, str]:
        return {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def pid(self) -> Sequence[int]:  # type: ignore[override]
        """All of them: what is measured is the cluster."""
        return [process.pid for process in self._processes.values()]

    @property
    def rss_bytes(self) -> int:
        raise NotImplementedError("not measured for clusters")

    def start(self) -> None:
        started = time.perf_counter()
        self.launch(MEMBERS)
        self.start_s = time.perf_counter() - started

    def stop(self) -> None:
        processes, self._processes = list(self._processes.values()), {}
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(STOP_TIMEOUT_S / 4)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def create_topic(
        self,
        name: str,
        partition_count: int,
        *,
        durability: str = "page-cache",
        configs: Mapping[str, str] = NO_CONFIGS,
    ) -> float:
        took_s = super().create_topic(name, partition_count, durability=durability, configs=configs)
        return took_s + self.wait_until_whole([name])

    # -- fail-over (see tests.chaos.failover.Killable)

    def leader_of(self, partition: tuple[str, int]) -> int:
        return newest_leader([self.ports[member] for member in self._processes], *partition)

    def controller_id(self) -> int:
        return max(ask_quorum_leader(self.ports[member]) for member in self._processes)[1]

    def kill(self, node_id: int) -> None:
        process = self._processes.pop(node_id)
        process.kill()
        process.wait()

    def launch(self, node_ids: Iterable[int]) -> None:
        for member in node_ids:
            with (self.folder / f"output-{member}.log").open("ab") as output:
                self._processes[member] = subprocess.Popen(
                    self.member_command(member),
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **self.member_environment()},
                )
        deadline = time.perf_counter() + START_TIMEOUT_S
        while not all(self._is_up(member) for member in node_ids):
            for member in node_ids:
                if self._processes[member].poll() is not None or time.perf_counter() > deadline:
                    tail = (self.folder / f"output-{member}.log").read_text()[-2_000:]
                    raise RuntimeError(f"member {member} of {self.side} did not start:\n{tail}")
            time.sleep(POLL_S)

    def _is_up(self, member: int) -> bool:
        """It answers, and knows every member as a broker that is there."""
        self.port = self.ports[member]
        try:
            return len(self.metadata(topics=[]).brokers) == len(MEMBERS)
        except OSError:
            return False

    def wait_until_whole(self, topics: Sequence[str]) -> float:
        started = time.perf_counter()
        while missing := what_is_missing(self.ports, list(topics)):
            assert time.perf_counter() - started < IN_SYNC_TIMEOUT_S, missing
            time.sleep(POLL_S)
        return time.perf_counter() - started


class HighwaterCluster(Cluster):
    side = "highwater"

    def prepare(self) -> None:
        self._secret = secrets.token_urlsafe(32)

    def member_environment(self) -> Mapping[str, str]:
        return {"HIGHWATER_CLUSTER_SECRET": self._secret}

    def member_command(self, member: int) -> list[str]:
        quorum = ",".join(f"{other}@127.0.0.1:{port}" for other, port in self.controller_ports.items())
        serve = [sys.executable, "-m", "broker_engine", "serve", "--data-dir", str(self.folder / f"data-{member}")]
        serve += ["--node-id", str(member), "--quorum", quorum, "--log-level", "WARNING"]
        return [*serve, "--listen", f"plain=127.0.0.1:{self.ports[member]}"]

    def topic_configs(self, *, durability: str) -> dict[str, str]:
        return {} if durability == "default" else {"ack.durability": durability}


class KafkaCluster(Cluster):
    side = "kafka"

    def prepare(self) -> None:
        (self.folder / "log4j2.yaml").write_text(LOG4J)
        cluster_id = _storage_tool("random-uuid").strip().splitlines()[-1]
        for member in MEMBERS:
            path = self.folder / f"server-{member}.properties"
            path.write_text("\n".join(self._properties(member)) + "\n")
            _storage_tool("format", "-t", cluster_id, "-c", str(path))

    def _properties(self, member: int) -> list[str]:
        plain = f"PLAINTEXT://127.0.0.1:{self.ports[member]}"
        voters = ",".join(f"{other}@127.0.0.1:{port}" for other, port in self.controller_ports.items())
        return [
            "process.roles=broker,controller",
            f"node.id={member}",
            f"controller.quorum.voters={voters}",
            f"listeners={plain},CONTROLLER://127.0.0.1:{self.controller_ports[member]}",
            f"advertised.listeners={plain}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name=PLAINTEXT",
            f"log.dirs={self.folder / f'data-{member}'}",
        ]

    def member_command(self, member: int) -> list[str]:
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.yaml'}"
        properties = str(self.folder / f"server-{member}.properties")
        return ["java", *JVM_FLAGS, log4j, "-cp", f"{LIBS}/*", "kafka.Kafka", properties]

    def topic_configs(self, *, durability: str) -> dict[str, str]:
        return {"flush.messages": "1"} if durability == "fsync" else {}


def _storage_tool(*arguments: str) -> str:
    command = ["java", "-cp", f"{LIBS}/*", "kafka.tools.StorageTool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
