"""Apache Kafka, one KRaft node, its default settings and its start script's JVM flags. Jars by `make kafka-peer`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.brokers.broker import Broker
from benchmarks.brokers.certificate import make_certificate
from tests.ports import own_port

LIBS = Path(__file__).resolve().parents[2] / "tests/compatibility/kafka-peer/libs"
JVM_FLAGS = [
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
]
LOG4J = """Configuration:
  Appenders: {Console: {name: STDOUT, PatternLayout: {pattern: "%d %p %m (%c)%n"}}}
  Loggers: {Root: {level: warn, AppenderRef: [{ref: STDOUT}]}}
"""


def version() -> str:
    jars = sorted(LIBS.glob("kafka_2.13-*.jar"))
    assert jars, "Kafka's jars are missing: run `make kafka-peer`"
    return jars[-1].stem.removeprefix("kafka_2.13-")


class Kafka(Broker):
    side = "kafka"

    def prepare(self) -> None:
        self._controller_port = own_port()
        if self.is_tls:
            make_certificate(self.folder)
        (self.folder / "log4j2.yaml").write_text(LOG4J)
        (self.folder / "server.properties").write_text("\n".join(self._properties()) + "\n")
        cluster_id = self._run_tool("random-uuid").strip().splitlines()[-1]
        self._run_tool("format", "-t", cluster_id, "-c", str(self.folder / "server.properties"))

    def _properties(self) -> list[str]:
        tls = f",SSL://127.0.0.1:{self.tls_port}" if self.is_tls else ""
        plain = f"PLAINTEXT://127.0.0.1:{self.port}{tls}"
        return [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{self._controller_port}",
            f"listeners={plain},CONTROLLER://127.0.0.1:{self._controller_port}",
            f"advertised.listeners={plain}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
            "inter.broker.listener.name=PLAINTEXT",
            f"log.dirs={self.folder / 'data'}",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "share.coordinator.state.topic.replication.factor=1",
            "share.coordinator.state.topic.min.isr=1",
            *(["ssl.keystore.type=PEM", f"ssl.keystore.location={self.folder / 'keystore.pem'}"] if tls else []),
        ]

    def _run_tool(self, *arguments: str) -> str:
        command = ["java", "-cp", f"{LIBS}/*", "kafka.tools.StorageTool", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    def command(self) -> list[str]:
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.yaml'}"
        return ["java", *JVM_FLAGS, log4j, "-cp", f"{LIBS}/*", "kafka.Kafka", str(self.folder / "server.properties")]

    def topic_configs(self, *, durability: str) -> dict[str, str]:
        return {"flush.messages": "1"} if durability == "fsync" else {}
