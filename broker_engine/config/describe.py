"""Rows of DescribeConfigs: each config with the value in force, where it comes from, and what it overrides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from broker_engine.config.broker import BROKER_CONFIGS, BrokerConfig
from broker_engine.config.knobs import ConfigSource, ConfigType, ConfigValue, Knob, format_value
from broker_engine.config.topic import TOPIC_CONFIGS, default_min_insync

NO_OVERRIDES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigRow:
    name: str
    value: str | None
    """None for a sensitive value and for one that is unset."""
    source: ConfigSource
    read_only: bool
    is_sensitive: bool
    type: ConfigType
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]
    """What would be in force, best first; the first is in force."""

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


def describe_topic(
    overrides: Mapping[str, str],
    broker: BrokerConfig,
    *,
    replication_factor: int = 1,
    keys: Collection[str] | None = None,
) -> list[ConfigRow]:
    """`keys` None or empty = all; names that are no topic config are left out, as Kafka does."""
    rows = [row for row in TOPIC_CONFIGS.values() if not keys or row.name in keys]
    return [_topic_row(row, overrides, broker, replication_factor) for row in rows]


def describe_broker(
    broker: BrokerConfig,
    *,
    own: Mapping[str, str] = NO_OVERRIDES,
    cluster_wide: Mapping[str, str] = NO_OVERRIDES,
    keys: Collection[str] | None = None,
) -> list[ConfigRow]:
    """`own` and `cluster_wide`: what was changed while it runs, for this broker and for all."""
    rows = [row for row in sorted(BROKER_CONFIGS.values(), key=lambda row: row.name) if not keys or row.name in keys]
    return [_broker_row(row, broker, own, cluster_wide) for row in rows]


def describe_cluster_wide(overrides: Mapping[str, str], *, keys: Collection[str] | None = None) -> list[ConfigRow]:
    """The default of all brokers holds only what was set there."""
    rows = [BROKER_CONFIGS[name] for name in sorted(overrides) if name in BROKER_CONFIGS and (not keys or name in keys)]
    return [_row(row, [_dynamic(row, overrides, cluster_wide=True)], read_only=False) for row in rows]


def _topic_row(row: Knob, overrides: Mapping[str, str], broker: BrokerConfig, replication_factor: int) -> ConfigRow:
    synonyms = []
    if row.name in overrides:
        # As parsed, not as typed: `DescribeConfigs` shows the value in force, " 5" being 5.
        shown = format_value(row.parse(overrides[row.name]))
        synonyms.append(ConfigSynonym(row.name, shown, ConfigSource.DYNAMIC_TOPIC_CONFIG))
    synonyms += _broker_synonyms(row, broker)
    synonyms.append(_default_synonym(row, replication_factor))
    return _row(row, synonyms, read_only=False)


def _broker_synonyms(row: Knob, broker: BrokerConfig) -> list[ConfigSynonym]:
    names = [synonym.name for synonym in row.broker_defaults if synonym.name in broker.given]
    return [ConfigSynonym(name, _in_topic_unit(row, name, broker), ConfigSource.STATIC_BROKER_CONFIG) for name in names]


def _in_topic_unit(row: Knob, broker_name: str, broker: BrokerConfig) -> str | None:
    factor = next(synonym.factor for synonym in row.broker_defaults if synonym.name == broker_name)
    value = broker.values[broker_name]
    return format_value(value * factor if isinstance(value, int) and factor > 1 else value)


def _default_synonym(row: Knob, replication_factor: int) -> ConfigSynonym:
    name = row.broker_defaults[-1].name if row.broker_defaults else row.name
    value: ConfigValue = row.default
    if row.name == "min.insync.replicas":
        value = default_min_insync(replication_factor)
    return ConfigSynonym(name, format_value(value), ConfigSource.DEFAULT_CONFIG)


def _broker_row(row: Knob, broker: BrokerConfig, own: Mapping[str, str], cluster_wide: Mapping[str, str]) -> ConfigRow:
    synonyms = []
    if row.name in own:
        synonyms.append(_dynamic(row, own, cluster_wide=False))
    if row.name in cluster_wide:
        synonyms.append(_dynamic(row, cluster_wide, cluster_wide=True))
    value = None if row.is_sensitive else format_value(broker.values[row.name])
    synonyms.append(ConfigSynonym(row.name, value, broker.source(row.name)))
    return _row(row, synonyms, read_only=not row.dynamic)


def _dynamic(row: Knob, overrides: Mapping[str, str], *, cluster_wide: bool) -> ConfigSynonym:
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG if cluster_wide else ConfigSource.DYNAMIC_BROKER_CONFIG
    return ConfigSynonym(row.name, format_value(row.parse(overrides[row.name])), source)


def _row(row: Knob, synonyms: list[ConfigSynonym], *, read_only: bool) -> ConfigRow:
    first = synonyms[0]
    value = None if row.is_sensitive else first.value
    return ConfigRow(row.name, value, first.source, read_only, row.is_sensitive, row.type, row.doc, tuple(synonyms))
