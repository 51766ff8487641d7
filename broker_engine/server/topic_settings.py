"""What a topic's configuration means to its produce checks, its log and its partition core."""

from __future__ import annotations

from broker_engine.config import BrokerConfig, TopicConfig
from broker_engine.log.config import LogConfig
from broker_engine.partition.core import AckDurability, PartitionSettings
from broker_engine.records.batch import ProduceLimits
from broker_engine.records.compression import Codec, StoredCompression


def produce_limits(config: TopicConfig) -> ProduceLimits:
    return ProduceLimits(
        max_message_bytes=config.max_message_bytes,
        validate_records=config.record_validation == "full",
        is_compacted=config.is_compacted,
        uses_log_append_time=config.uses_log_append_time,
        timestamp_before_ms_max=config.message_timestamp_before_max_ms,
        timestamp_after_ms_max=config.message_timestamp_after_max_ms,
        stored_as=stored_compression(config),
    )


def stored_compression(config: TopicConfig) -> StoredCompression | None:
    match config.compression_type:
        case "uncompressed":
            return StoredCompression(Codec.NONE)
        case "gzip":
            return StoredCompression(Codec.GZIP, config.compression_gzip_level)
        case "snappy":
            return StoredCompression(Codec.SNAPPY)
        case "lz4":
            return StoredCompression(Codec.LZ4, config.compression_lz4_level)
        case "zstd":
            return StoredCompression(Codec.ZSTD, config.compression_zstd_level)
    return None  # producer


def log_config(config: TopicConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=config.segment_bytes,
        # A record in the active segment is not compacted: it must not stay there for longer than the greatest lag.
        segment_ms=min(config.segment_ms, config.max_compaction_lag_ms) if config.is_compacted else config.segment_ms,
        segment_jitter_ms=config.segment_jitter_ms,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        retention_ms=config.retention_ms,
        retention_bytes=config.retention_bytes,
        file_delete_delay_ms=config.file_delete_delay_ms,
        is_deleting="delete" in config.cleanup_policy,
        is_compacting=config.is_compacted,
        min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        max_compaction_lag_ms=config.max_compaction_lag_ms,
        delete_retention_ms=config.delete_retention_ms,
    )


def partition_settings(config: TopicConfig, broker: BrokerConfig) -> PartitionSettings:
    return PartitionSettings(
        ack_durability=AckDurability(config.ack_durability),
        min_insync_replicas=config.min_insync_replicas,
        producer_expiration_ms=broker.producer_id_expiration_ms,
        lag_time_ms_max=broker.replica_lag_time_max_ms,
    )
