from __future__ import annotations

import pytest

from broker_engine.config import TOPIC_CONFIGS, BrokerConfig, TopicConfig, validate_topic_configs
from broker_engine.errors import BrokerError, ErrorCode

# What a Kafka 4.3.1 answers to DescribeConfigs of a topic.
KAFKA_DEFAULTS = {
    "cleanup.policy": ("delete", 7), "compression.gzip.level": ("-1", 3), "compression.lz4.level": ("9", 3),
    "compression.type": ("producer", 2), "compression.zstd.level": ("3", 3), "delete.retention.ms": ("86400000", 5),
    "file.delete.delay.ms": ("60000", 5), "flush.messages": ("9223372036854775807", 5),
    "flush.ms": ("9223372036854775807", 5), "follower.replication.throttled.replicas": ("", 7),
    "index.interval.bytes": ("4096", 3), "leader.replication.throttled.replicas": ("", 7),
    "local.retention.bytes": ("-2", 5), "local.retention.ms": ("-2", 5),
    "max.compaction.lag.ms": ("9223372036854775807", 5), "max.message.bytes": ("1048588", 3),
    "message.timestamp.after.max.ms": ("3600000", 5), "message.timestamp.before.max.ms": ("9223372036854775807", 5),
    "message.timestamp.type": ("CreateTime", 2), "min.cleanable.dirty.ratio": ("0.5", 6),
    "min.compaction.lag.ms": ("0", 5), "min.insync.replicas": ("1", 3), "preallocate": ("false", 1),
    "remote.log.copy.disable": ("false", 1), "remote.log.delete.on.disable": ("false", 1),
    "remote.storage.enable": ("false", 1), "retention.bytes": ("-1", 5), "retention.ms": ("604800000", 5),
    "segment.bytes": ("1073741824", 3), "segment.index.bytes": ("10485760", 3), "segment.jitter.ms": ("0", 5),
    "segment.ms": ("604800000", 5), "unclean.leader.election.enable": ("false", 1),
}  # fmt: skip
OURS = {"ack.durability", "record.validation"}


def test_all_of_kafkas_topic_configs_are_there_with_its_types_and_defaults() -> None:
    from broker_engine.config.knobs import format_value

    assert len(KAFKA_DEFAULTS) == 33
    assert set(TOPIC_CONFIGS) == set(KAFKA_DEFAULTS) | OURS
    ours = {name: (format_value(TOPIC_CONFIGS[name].default), TOPIC_CONFIGS[name].type) for name in KAFKA_DEFAULTS}
    assert ours == KAFKA_DEFAULTS


def test_an_override_wins_over_the_broker_and_the_broker_over_the_default() -> None:
    broker = BrokerConfig.load(
        {"log.segment.bytes": "2097152", "log.retention.bytes": "5", "log.cleanup.policy": "compact"}
    )
    config = TopicConfig.resolve({"segment.bytes": " 1048576 "}, broker)
    assert config.segment_bytes == 1_048_576
    assert config.retention_bytes == 5
    assert config.is_compacted
    assert config.max_message_bytes == 1_048_588
    assert config.ack_durability == "fsync"


@pytest.mark.parametrize(
    ("values", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(values: dict[str, str], retention_ms: int) -> None:
    assert TopicConfig.resolve({}, BrokerConfig.load(values)).retention_ms == retention_ms


@pytest.mark.parametrize(("factor", "expected"), [(1, 1), (2, 1), (3, 2), (5, 2)])
def test_min_insync_unset_is_2_where_there_are_3_replicas(factor: int, expected: int) -> None:
    assert TopicConfig.resolve({}, BrokerConfig.load(), replication_factor=factor).min_insync_replicas == expected


def test_min_insync_set_is_taken_literally() -> None:
    broker = BrokerConfig.load({"min.insync.replicas": "1"})
    assert TopicConfig.resolve({}, broker, replication_factor=3).min_insync_replicas == 1
    assert TopicConfig.resolve({"min.insync.replicas": "4"}, broker, replication_factor=3).min_insync_replicas == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "1048575"),
        ("segment.bytes", "abc"),
        ("segment.bytes", None),
        ("segment.bytes", "${file:/etc/passwd}"),
        ("segmnet.bytes", "1048576"),
        ("message.format.version", "2.8"),
        ("message.timestamp.difference.max.ms", "5"),
        ("cleanup.policy", "shred"),
        ("min.insync.replicas", "0"),
        ("retention.ms", "-2"),
        ("compression.gzip.level", "0"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("remote.storage.enable", "true"),
        ("leader.replication.throttled.replicas", "0-1"),
        ("preallocate", "1"),
    ],
)
def test_a_bad_topic_config_is_refused_with_40(name: str, value: str | None) -> None:
    with pytest.raises(BrokerError) as caught:
        validate_topic_configs({name: value})
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert name in caught.value.message


def test_bounds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BrokerError, match=r"min\.compaction\.lag\.ms"):
        validate_topic_configs({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact, delete"),
        ("min.insync.replicas", "99"),
        ("preallocate", "TRUE"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("compression.gzip.level", "-1"),
        ("ack.durability", "page-cache"),
    ],
)
def test_what_kafka_takes_we_take(name: str, value: str) -> None:
    validate_topic_configs({name: value})
