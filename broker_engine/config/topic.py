"""TopicConfig: what one topic does, by its own overrides, else the broker's defaults. All names of Kafka 4.3, and ours.

Taken and checked but without effect: `preallocate`, and those of tiered storage.
`remote.storage.enable=true` is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from broker_engine.config.knobs import (
    BrokerDefault,
    ConfigType,
    ConfigValue,
    at_least,
    between,
    each_of,
    either,
    knob,
    knobs_of,
    one_of,
    unknown_name_text,
)
from broker_engine.errors import BrokerError, ErrorCode

_BOOLEAN, _DOUBLE, _INT, _LIST = ConfigType.BOOLEAN, ConfigType.DOUBLE, ConfigType.INT, ConfigType.LIST
_LONG, _STRING = ConfigType.LONG, ConfigType.STRING
LONG_MAX = (1 << 63) - 1
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000

_THROTTLED_REPLICA = re.compile(r"[0-9]+:[0-9]+", re.ASCII)


def _from(*names: str) -> tuple[BrokerDefault, ...]:
    return tuple(BrokerDefault(name) for name in names)


def _throttled_replicas(values: tuple[str, ...]) -> str | None:
    if values in ((), ("*",)) or all(_THROTTLED_REPLICA.fullmatch(value) for value in values):
        return None
    return "Must be the literal '*' or a list of replicas in the form [partition]:[broker],..."


def _no_tiered_storage(value: bool) -> str | None:
    return "Highwater has no tiered storage" if value else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """Typed and complete. `min_insync_replicas` is already the number in force."""

    # One row per config: the formatter would make five lines of each.
    # fmt: off
    ack_durability: str = knob(
        "ack.durability", _STRING, "fsync",
        "What acks=all promises: `fsync` = on disk on min.insync.replicas brokers, `page-cache` = as Apache Kafka.",
        one_of("fsync", "page-cache"), broker_defaults=_from("ack.durability"))
    cleanup_policy: tuple[str, ...] = knob(
        "cleanup.policy", _LIST, ("delete",),
        "Drop old segments (`delete`), keep the last value per key (`compact`), or both.",
        each_of("compact", "delete"), broker_defaults=_from("log.cleanup.policy"))
    compression_gzip_level: int = knob(
        "compression.gzip.level", _INT, -1, "Level where compression.type is gzip; -1 is the codec's own default.",
        either(-1, between(1, 9)), broker_defaults=_from("compression.gzip.level"))
    compression_lz4_level: int = knob(
        "compression.lz4.level", _INT, 9, "Level where compression.type is lz4.",
        between(1, 17), broker_defaults=_from("compression.lz4.level"))
    compression_type: str = knob(
        "compression.type", _STRING, "producer", "Codec of stored batches; `producer` keeps what was sent.",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        broker_defaults=_from("compression.type"))
    compression_zstd_level: int = knob(
        "compression.zstd.level", _INT, 3, "Level where compression.type is zstd.",
        between(-131_072, 22), broker_defaults=_from("compression.zstd.level"))
    delete_retention_ms: int = knob(
        "delete.retention.ms", _LONG, _DAY_MS, "How long compaction keeps tombstones.",
        at_least(0), broker_defaults=_from("log.cleaner.delete.retention.ms"))
    file_delete_delay_ms: int = knob(
        "file.delete.delay.ms", _LONG, _MINUTE_MS,
        "How long the files of a segment that retention, DeleteRecords or compaction took out stay on disk, named "
        "`.deleted`. While the disk is nearly full they go at once, as do those of a deleted topic.",
        at_least(0), broker_defaults=_from("log.segment.delete.delay.ms"))
    flush_messages: int = knob(
        "flush.messages", _LONG, LONG_MAX, "Flush after this many records, besides what ack.durability asks for.",
        at_least(1), broker_defaults=_from("log.flush.interval.messages"))
    flush_ms: int = knob(
        "flush.ms", _LONG, LONG_MAX, "Flush records that waited this long, besides what ack.durability asks for.",
        at_least(0), broker_defaults=_from("log.flush.interval.ms"))
    follower_replication_throttled_replicas: tuple[str, ...] = knob(
        "follower.replication.throttled.replicas", _LIST, (),
        "Replicas whose fetching is throttled: partition:broker,... or *.",
        _throttled_replicas)
    index_interval_bytes: int = knob(
        "index.interval.bytes", _INT, 4096, "An offset index entry about every this many bytes of log.",
        at_least(0), broker_defaults=_from("log.index.interval.bytes"))
    leader_replication_throttled_replicas: tuple[str, ...] = knob(
        "leader.replication.throttled.replicas", _LIST, (),
        "Replicas whose serving is throttled: partition:broker,... or *.",
        _throttled_replicas)
    local_retention_bytes: int = knob(
        "local.retention.bytes", _LONG, -2, "Tiered storage only, which Highwater does not have.",
        at_least(-2), broker_defaults=_from("log.local.retention.bytes"))
    local_retention_ms: int = knob(
        "local.retention.ms", _LONG, -2, "Tiered storage only, which Highwater does not have.",
        at_least(-2), broker_defaults=_from("log.local.retention.ms"))
    max_compaction_lag_ms: int = knob(
        "max.compaction.lag.ms", _LONG, LONG_MAX, "A record is compacted at the latest after this time.",
        at_least(1), broker_defaults=_from("log.cleaner.max.compaction.lag.ms"))
    max_message_bytes: int = knob(
        "max.message.bytes", _INT, 1_048_588, "The largest record batch that is taken.",
        at_least(0), broker_defaults=_from("message.max.bytes"))
    message_timestamp_after_max_ms: int = knob(
        "message.timestamp.after.max.ms", _LONG, _HOUR_MS,
        "How far ahead of the broker's clock a record's time may be.",
        at_least(0), broker_defaults=_from("log.message.timestamp.after.max.ms"))
    message_timestamp_before_max_ms: int = knob(
        "message.timestamp.before.max.ms", _LONG, LONG_MAX, "How far behind the broker's clock a record's time may be.",
        at_least(0), broker_defaults=_from("log.message.timestamp.before.max.ms"))
    message_timestamp_type: str = knob(
        "message.timestamp.type", _STRING, "CreateTime", "Whose clock stamps records: the producer's or the broker's.",
        one_of("CreateTime", "LogAppendTime"), broker_defaults=_from("log.message.timestamp.type"))
    min_cleanable_dirty_ratio: float = knob(
        "min.cleanable.dirty.ratio", _DOUBLE, 0.5, "Compact once this share of the log is new.",
        between(0, 1), broker_defaults=_from("log.cleaner.min.cleanable.ratio"))
    min_compaction_lag_ms: int = knob(
        "min.compaction.lag.ms", _LONG, 0, "A record is not compacted before this time.",
        at_least(0), broker_defaults=_from("log.cleaner.min.compaction.lag.ms"))
    min_insync_replicas: int = knob(
        "min.insync.replicas", _INT, 1,
        "acks=all needs this many replicas in sync. Unset: 2 where the topic has 3 or more replicas, else 1.",
        at_least(1), broker_defaults=_from("min.insync.replicas"))
    preallocate: bool = knob(
        "preallocate", _BOOLEAN, False,
        "No effect: a segment's file grows with what is appended. Room behind the last batch would look like what a "
        "crash tore.",
        broker_defaults=_from("log.preallocate"))
    record_validation: str = knob(
        "record.validation", _STRING, "header",
        "`header` checks batch headers and CRC; `full` also walks every record before it is taken.",
        one_of("header", "full"), broker_defaults=_from("record.validation"))
    remote_log_copy_disable: bool = knob(
        "remote.log.copy.disable", _BOOLEAN, False, "Tiered storage only, which Highwater does not have.")
    remote_log_delete_on_disable: bool = knob(
        "remote.log.delete.on.disable", _BOOLEAN, False, "Tiered storage only, which Highwater does not have.")
    remote_storage_enable: bool = knob(
        "remote.storage.enable", _BOOLEAN, False, "Tiered storage, which Highwater does not have: only false is taken.",
        _no_tiered_storage)
    retention_bytes: int = knob(
        "retention.bytes", _LONG, -1, "Drop the oldest segments of a partition above this size; -1 = never.",
        broker_defaults=_from("log.retention.bytes"))
    retention_ms: int = knob(
        "retention.ms", _LONG, 7 * _DAY_MS, "Drop segments older than this; -1 = never.", at_least(-1),
        broker_defaults=(BrokerDefault("log.retention.ms"), BrokerDefault("log.retention.minutes", _MINUTE_MS),
                         BrokerDefault("log.retention.hours", _HOUR_MS)))
    segment_bytes: int = knob(
        "segment.bytes", _INT, 1 << 30, "Roll a segment at this size.",
        at_least(1 << 20), broker_defaults=_from("log.segment.bytes"))
    segment_index_bytes: int = knob(
        "segment.index.bytes", _INT, 10 << 20, "Roll a segment when an index has this size.",
        at_least(4), broker_defaults=_from("log.index.size.max.bytes"))
    segment_jitter_ms: int = knob(
        "segment.jitter.ms", _LONG, 0,
        "Roll earlier than segment.ms by a random time below this, each segment by its own, so that topics do not all "
        "roll at once.", at_least(0),
        broker_defaults=(BrokerDefault("log.roll.jitter.ms"), BrokerDefault("log.roll.jitter.hours", _HOUR_MS)))
    segment_ms: int = knob(
        "segment.ms", _LONG, 7 * _DAY_MS, "Roll a segment at this age.", at_least(1),
        broker_defaults=(BrokerDefault("log.roll.ms"), BrokerDefault("log.roll.hours", _HOUR_MS)))
    unclean_leader_election_enable: bool = knob(
        "unclean.leader.election.enable", _BOOLEAN, False,
        "Let a replica lead that lacks acked records, when no other is left.",
        broker_defaults=_from("unclean.leader.election.enable"))

    # fmt: on

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @classmethod
    def resolve(
        cls, overrides: Mapping[str, str], broker: TopicDefaults, *, replication_factor: int = 1
    ) -> TopicConfig:
        """What is in force. `overrides` were checked when set; `replication_factor` decides min.insync's default."""
        values: dict[str, Any] = {}
        for row in TOPIC_CONFIGS.values():
            given = overrides.get(row.name)
            values[row.attribute] = broker.topic_default(row.name) if given is None else row.parse(given)
        if values["min_insync_replicas"] is None:
            values["min_insync_replicas"] = default_min_insync(replication_factor)
        return cls(**values)


class TopicDefaults(Protocol):
    def topic_default(self, topic_config_name: str) -> ConfigValue:
        """The broker's default for one topic config; None for an unset `min.insync.replicas`."""
        ...


TOPIC_CONFIGS = knobs_of(TopicConfig)


def default_min_insync(replication_factor: int) -> int:
    """contracts.md section 6: safe where there are replicas to be safe with."""
    return 2 if replication_factor >= 3 else 1


def check_topic_config(name: str, value: str | None) -> None:
    """INVALID_CONFIG for an unknown name, a null or a value that does not fit."""
    row = TOPIC_CONFIGS.get(name)
    if row is None:
        raise BrokerError(ErrorCode.INVALID_CONFIG, unknown_name_text(name, TOPIC_CONFIGS))
    if value is None:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
    try:
        row.parse(value)
    except ValueError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None


def validate_topic_configs(overrides: Mapping[str, str | None]) -> None:
    """INVALID_CONFIG unless a topic may have exactly these overrides."""
    for name, value in overrides.items():
        check_topic_config(name, value)
    minimum, maximum = (_long(overrides, f"{bound}.compaction.lag.ms") for bound in ("min", "max"))
    if minimum is not None and maximum is not None and minimum > maximum:
        text = f"min.compaction.lag.ms ({minimum}) is greater than max.compaction.lag.ms ({maximum})"
        raise BrokerError(ErrorCode.INVALID_CONFIG, text)


def _long(overrides: Mapping[str, str | None], name: str) -> int | None:
    text = overrides.get(name)
    return None if text is None else int(text)
