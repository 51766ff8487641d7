from __future__ import annotations

from broker_engine.config import BrokerConfig, ConfigRow, ConfigSource, ConfigSynonym, describe_broker, describe_topic
from broker_engine.config.describe import _row
from broker_engine.config.knobs import ConfigType, Knob


def by_name(rows: list[ConfigRow]) -> dict[str, ConfigRow]:
    return {row.name: row for row in rows}


def test_a_topic_row_tells_override_broker_value_and_default_in_that_order() -> None:
    broker = BrokerConfig.load({"log.retention.hours": "1"})
    row = by_name(describe_topic({"retention.ms": "5"}, broker))["retention.ms"]
    assert (row.value, row.source, row.is_default) == ("5", ConfigSource.DYNAMIC_TOPIC_CONFIG, False)
    assert row.synonyms == (
        ConfigSynonym("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigSynonym("log.retention.hours", "3600000", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.retention.hours", "604800000", ConfigSource.DEFAULT_CONFIG),
    )


def test_an_untouched_topic_shows_defaults_only() -> None:
    rows = describe_topic({}, BrokerConfig.load())
    assert len(rows) == 35
    assert all(row.is_default and not row.read_only for row in rows)


def test_min_insync_shows_the_value_in_force() -> None:
    row = by_name(describe_topic({}, BrokerConfig.load(), replication_factor=3))["min.insync.replicas"]
    assert (row.value, row.source) == ("2", ConfigSource.DEFAULT_CONFIG)


def test_keys_choose_rows_and_unknown_keys_are_left_out() -> None:
    assert [row.name for row in describe_topic({}, BrokerConfig.load(), keys=["segment.ms", "nope"])] == ["segment.ms"]
    assert len(describe_topic({}, BrokerConfig.load(), keys=[])) == 35
    assert [row.name for row in describe_broker(BrokerConfig.load(), keys={"node.id"})] == ["node.id"]


def test_a_broker_row_says_whether_it_was_set() -> None:
    rows = by_name(describe_broker(BrokerConfig.load({"num.partitions": "4"}, quorum_size=3)))
    assert (rows["num.partitions"].value, rows["num.partitions"].source) == ("4", ConfigSource.STATIC_BROKER_CONFIG)
    assert rows["num.partitions"].read_only
    assert rows["default.replication.factor"].value == "3"
    assert rows["default.replication.factor"].is_default
    assert rows["broker.rack"].value is None


def test_a_sensitive_value_is_never_shown() -> None:
    secret = Knob("some.password", ConfigType.PASSWORD, None, "A secret.")
    row = _row(secret, [ConfigSynonym("some.password", None, ConfigSource.STATIC_BROKER_CONFIG)], read_only=True)
    assert row.value is None
    assert row.is_sensitive
