"""No config is a trap: each is read somewhere, or its sentence says that it does nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import broker_engine
from broker_engine.config import BROKER_CONFIGS, BrokerConfig, TopicConfig
from broker_engine.config.knobs import Knob, knobs_of

ENGINE = Path(broker_engine.__file__).parent
ROWS = [*knobs_of(TopicConfig).values(), *knobs_of(BrokerConfig).values()]
END_OF_ROWS = "# fmt: on"
BOUND_OF_GROUPS = re.compile(r"group\.consumer\.(min|max)\.(session|heartbeat|assignment)\..*")
"""Read by names that are put together (config/group.py)."""


def _code(path: Path) -> str:
    text = path.read_text()
    return text.partition(END_OF_ROWS)[2] if END_OF_ROWS in text and path.parent.name == "config" else text


CODE = "\n".join(_code(path) for path in ENGINE.rglob("*.py"))
READ = set(re.findall(r"\.(\w+)", CODE)) | set(re.findall(r'"([\w.]+)"', CODE))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_config_does_something_or_says_that_it_does_not(row: Knob) -> None:
    is_read = not READ.isdisjoint({row.attribute, f"{row.attribute}_", row.name}) or BOUND_OF_GROUPS.fullmatch(row.name)
    assert is_read or "No effect" in row.doc or "which Highwater does not have" in row.doc


def test_what_changes_without_a_restart_is_what_the_page_of_differences_says() -> None:
    assert sorted(row.name for row in BROKER_CONFIGS.values() if row.dynamic) == [
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "log.cleaner.io.max.bytes.per.second",
    ]
