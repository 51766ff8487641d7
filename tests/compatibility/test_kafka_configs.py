"""Kafka's own `kafka-configs`, unmodified: what it shows and changes of brokers and topics."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.kafka_tools_jvm import ToolsJvm

_TIMEOUT_S = 180


@pytest.fixture
def root_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Root without authentication, as an operator has it on loopback."""
    settings = {"log.retention.hours": "48", "log.segment.bytes": "20971520", "log.flush.interval.messages": "5000"}
    with BrokerProcess(tmp_path / "broker", settings=settings) as process:
        yield process


@pytest.fixture
def tools(root_broker: BrokerProcess) -> Iterator[ToolsJvm]:
    with ToolsJvm(root_broker.address()) as jvm:
        yield jvm


def listed(output: str) -> dict[str, str]:
    lines = [line.strip() for line in output.splitlines() if " sensitive=" in line]
    return dict(line.split(" sensitive=")[0].split("=", 1) for line in lines)  # type: ignore[misc]


def test_broker_wide_defaults_of_the_topic_configs_are_shown_and_reach_topics(
    root_broker: BrokerProcess, tools: ToolsJvm
) -> None:
    output = tools.run("configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
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
    output = tools.run("configs", "--describe", "--all", "--entity-type", "topics", "--entity-name", "orders")
    topic = listed(output)
    assert (topic["retention.ms"], topic["segment.bytes"]) == (str(48 * 3_600_000), "20971520")
    assert topic["flush.messages"] == "5000"


def test_a_topic_is_changed_and_changed_back(root_broker: BrokerProcess, tools: ToolsJvm) -> None:
    subprocess.run(
        ["kcat", "-b", root_broker.address(), "-P", "-t", "orders"], input=b"x\n", check=True, timeout=_TIMEOUT_S
    )
    entity = ("--entity-type", "topics", "--entity-name", "orders")
    tools.run("configs", "--alter", *entity, "--add-config", "retention.ms=60000,cleanup.policy=[compact,delete]")
    shown = listed(tools.run("configs", "--describe", *entity))
    assert shown == {"retention.ms": "60000", "cleanup.policy": "compact,delete"}
    tools.run("configs", "--alter", *entity, "--delete-config", "retention.ms,cleanup.policy")
    assert listed(tools.run("configs", "--describe", *entity)) == {}
