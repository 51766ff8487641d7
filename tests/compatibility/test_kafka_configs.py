"""Kafka's own `kafka-configs`, unmodified: what it shows and changes of brokers and topics."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.log.kafka_tools import LIBS, need_kafka_tools

_COMMAND = "kafka.admin.ConfigCommand"
_TIMEOUT_S = 180


@pytest.fixture
def root_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Root without authentication, as an operator has it on loopback."""
    need_kafka_tools()
    settings = {"log.retention.hours": "48", "log.segment.bytes": "20971520", "log.flush.interval.messages": "5000"}
    with BrokerProcess(tmp_path / "broker", settings=settings) as process:
        yield process


def kafka_configs(broker: BrokerProcess, *arguments: str) -> str:
    command = ["java", "-Xmx256m", "-cp", f"{LIBS}/*", _COMMAND, "--bootstrap-server", broker.address(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def listed(output: str) -> dict[str, str]:
    lines = [line.strip() for line in output.splitlines() if " sensitive=" in line]
    return dict(line.split(" sensitive=")[0].split("=", 1) for line in lines)  # type: ignore[misc]


def test_broker_wide_defaults_of_the_topic_configs_are_shown_and_reach_topics(root_broker: BrokerProcess) -> None:
    output = kafka_configs(root_broker, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    shown = listed(output)
    assert shown["log.retention.hours"] == "48"
    assert shown["log.segment.bytes"] == "20971520"
    assert shown["log.flush.interval.messages"] == "5000"
    names = {
        *("log.retention.ms", "log.retention.minutes", "log.retention.bytes", "log.roll.ms", "log.cleanup.policy"),
        *("log.flush.interval.ms", "log.index.interval.bytes", "log.message.timestamp.type", "message.max.bytes"),
        *("log.cleaner.delete.retention.ms", "log.cleaner.min.cleanable.ratio", "compression.type", "ack.durability"),
        *("min.insync.replicas", "num.partitions", "default.replication.factor", "log.flush.syncfs"),
    }
    assert sorted(names - set(shown)) == []
    subprocess.run(
        ["kcat", "-b", root_broker.address(), "-P", "-t", "orders"], input=b"x\n", check=True, timeout=_TIMEOUT_S
    )
    output = kafka_configs(root_broker, "--describe", "--all", "--entity-type", "topics", "--entity-name", "orders")
    topic = listed(output)
    assert (topic["retention.ms"], topic["segment.bytes"]) == (str(48 * 3_600_000), "20971520")
    assert topic["flush.messages"] == "5000"


def test_a_topic_is_changed_and_changed_back(root_broker: BrokerProcess) -> None:
    subprocess.run(
        ["kcat", "-b", root_broker.address(), "-P", "-t", "orders"], input=b"x\n", check=True, timeout=_TIMEOUT_S
    )
    entity = ("--entity-type", "topics", "--entity-name", "orders")
    kafka_configs(root_broker, "--alter", *entity, "--add-config", "retention.ms=60000,cleanup.policy=[compact,delete]")
    shown = listed(kafka_configs(root_broker, "--describe", *entity))
    assert shown == {"retention.ms": "60000", "cleanup.policy": "compact,delete"}
    kafka_configs(root_broker, "--alter", *entity, "--delete-config", "retention.ms,cleanup.policy")
    assert listed(kafka_configs(root_broker, "--describe", *entity)) == {}
