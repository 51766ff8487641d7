"""Group configs: what one group may have of its own, under Kafka's 17 names, within the broker's bounds.

Those of share groups and of Streams groups are taken and shown, and decide nothing: Highwater has no such groups.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker_engine.config.broker import BrokerConfig
from broker_engine.config.describe import ConfigRow, ConfigSynonym
from broker_engine.config.knobs import (
    ConfigSource,
    ConfigType,
    Knob,
    Validator,
    at_least,
    between,
    format_value,
    one_of,
    unknown_name_text,
)
from broker_engine.errors import BrokerError, ErrorCode

SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL = (
    "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms")  # fmt: skip
_NONE_HERE = "Of groups that Highwater does not have."


def _int(name: str, default: int, doc: str = _NONE_HERE, validator: Validator | None = None) -> Knob:
    return Knob(name, ConfigType.INT, default, doc, validator or at_least(1))


def _is_reset(value: str) -> str | None:
    is_known = value in ("earliest", "latest") or value.startswith("by_duration:P")
    return None if is_known else "It must be earliest, latest or by_duration:PnDTnHnMn.nS"


_ROWS = (
    _int(SESSION_TIMEOUT, 45_000, "Silence after which a member is out of the group."),
    _int(HEARTBEAT_INTERVAL, 5_000, "How often members are told to send a heartbeat."),
    _int(ASSIGNMENT_INTERVAL, 1_000, "At most one new target assignment in this time.", at_least(0)),
    _int("share.session.timeout.ms", 45_000),
    _int("share.heartbeat.interval.ms", 5_000),
    _int("share.record.lock.duration.ms", 30_000, _NONE_HERE, between(1_000, 3_600_000)),
    _int("share.delivery.count.limit", 5, _NONE_HERE, between(2, 25)),
    _int("share.partition.max.record.locks", 2_000, _NONE_HERE, between(100, 10_000)),
    _int("share.assignment.interval.ms", 1_000, _NONE_HERE, at_least(0)),
    Knob("share.auto.offset.reset", ConfigType.STRING, "latest", _NONE_HERE, _is_reset),
    Knob("share.isolation.level", ConfigType.STRING, "read_uncommitted", _NONE_HERE,
         one_of("read_committed", "read_uncommitted")),
    Knob("share.renew.acknowledge.enable", ConfigType.BOOLEAN, True, _NONE_HERE),
    _int("streams.session.timeout.ms", 45_000),
    _int("streams.heartbeat.interval.ms", 5_000),
    _int("streams.num.standby.replicas", 0, _NONE_HERE, between(0, 2)),
    _int("streams.initial.rebalance.delay.ms", 3_000, _NONE_HERE, at_least(0)),
    _int("streams.assignment.interval.ms", 1_000, _NONE_HERE, at_least(0)),
)  # fmt: skip
GROUP_CONFIGS: dict[str, Knob] = {row.name: row for row in _ROWS}


def group_value(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> int:
    """The value in force of one of the consumer protocol's three, within the broker's bounds of today."""
    default = broker.get(f"group.{name}")
    assert isinstance(default, int)
    if name not in overrides:
        return default
    value = GROUP_CONFIGS[name].parse(overrides[name])
    low, high = _bounds(name, broker)
    assert isinstance(value, int)
    return min(max(value, low), high)


def check_group_config(name: str, value: str | None) -> None:
    """INVALID_CONFIG for an unknown name, a null or a value that does not fit."""
    row = GROUP_CONFIGS.get(name)
    if row is None:
        raise BrokerError(ErrorCode.INVALID_CONFIG, unknown_name_text(name, GROUP_CONFIGS))
    if value is None:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for group configs: {name}")
    try:
        row.parse(value)
    except ValueError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None


def check_group_bounds(name: str, value: str | None, broker: BrokerConfig) -> None:
    """INVALID_CONFIG where the broker's configuration allows a group no such value. Checks nothing else."""
    if not name.startswith("consumer.") or name not in GROUP_CONFIGS or value is None:
        return
    check_group_config(name, value)
    low, high = _bounds(name, broker)
    parsed = GROUP_CONFIGS[name].parse(value)
    assert isinstance(parsed, int)
    if not low <= parsed <= high:
        text = f"{name} must be between {low} and {high}: the broker's group.{name} has these bounds."
        raise BrokerError(ErrorCode.INVALID_CONFIG, text)


def describe_group(
    overrides: Mapping[str, str], broker: BrokerConfig, *, keys: Collection[str] | None = None
) -> list[ConfigRow]:
    """`keys` None or empty = all. A group that nobody has heard of has defaults, as in Kafka."""
    return [_row(row, overrides, broker) for row in _ROWS if not keys or row.name in keys]


def _row(row: Knob, overrides: Mapping[str, str], broker: BrokerConfig) -> ConfigRow:
    synonyms = []
    if row.name in overrides:
        synonyms.append(ConfigSynonym(row.name, overrides[row.name], ConfigSource.DYNAMIC_GROUP_CONFIG))
    broker_name = f"group.{row.name}"
    if broker_name in broker.given:
        value = format_value(broker.get(broker_name))
        synonyms.append(ConfigSynonym(broker_name, value, ConfigSource.STATIC_BROKER_CONFIG))
    synonyms.append(ConfigSynonym(broker_name, format_value(row.default), ConfigSource.DEFAULT_CONFIG))
    first = synonyms[0]
    return ConfigRow(row.name, first.value, first.source, False, False, row.type, row.doc, tuple(synonyms))


def _bounds(name: str, broker: BrokerConfig) -> tuple[int, int]:
    suffix = name.removeprefix("consumer.")
    low, high = (broker.get(f"group.consumer.{bound}.{suffix}") for bound in ("min", "max"))
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high
