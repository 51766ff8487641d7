"""Every config once: name, type, default, bounds and a sentence. Start at README.md."""

from broker_engine.config.broker import BROKER_CONFIGS, BrokerConfig
from broker_engine.config.describe import (
    ConfigRow,
    ConfigSynonym,
    describe_broker,
    describe_cluster_wide,
    describe_topic,
)
from broker_engine.config.knobs import ConfigError, ConfigSource, ConfigType
from broker_engine.config.listeners import Endpoint, SecurityProtocol, parse_endpoint
from broker_engine.config.properties import parse_properties
from broker_engine.config.topic import TOPIC_CONFIGS, TopicConfig, validate_topic_configs

__all__ = [
    "BROKER_CONFIGS",
    "TOPIC_CONFIGS",
    "BrokerConfig",
    "ConfigError",
    "ConfigRow",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "Endpoint",
    "SecurityProtocol",
    "TopicConfig",
    "describe_broker",
    "describe_cluster_wide",
    "describe_topic",
    "parse_endpoint",
    "parse_properties",
    "validate_topic_configs",
]
