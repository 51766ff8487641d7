"""What groups are told: by the broker's configuration, and by a group's own configs in the metadata."""

from __future__ import annotations

import dataclasses

from broker_engine.config.broker import BrokerConfig
from broker_engine.config.group import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, group_value
from broker_engine.groups.settings import ConsumerSettings, GroupSettings
from broker_engine.metadata.image import MetadataImage
from broker_engine.names import ROOT, from_wire


def group_settings(config: BrokerConfig) -> GroupSettings:
    policy = config.group_consumer_migration_policy
    return GroupSettings(
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        size_max=config.group_max_size,
        consumer=ConsumerSettings(
            session_timeout_ms=config.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
            assignment_interval_ms=config.group_consumer_assignment_interval_ms,
            size_max=config.group_consumer_max_size,
            assignors=config.group_consumer_assignors,
            can_upgrade=policy in ("bidirectional", "upgrade"),
            can_downgrade=policy in ("bidirectional", "downgrade"),
        ),
    )


def consumer_settings(
    config: BrokerConfig, broker_wide: ConsumerSettings, name: str, image: MetadataImage
) -> ConsumerSettings:
    """The broker's, but for what the group has of its own."""
    own = image.group_configs.get(from_wire(name, ROOT), {})
    if not own:
        return broker_wide
    return dataclasses.replace(
        broker_wide,
        session_timeout_ms=group_value(SESSION_TIMEOUT, own, config),
        heartbeat_interval_ms=group_value(HEARTBEAT_INTERVAL, own, config),
        assignment_interval_ms=group_value(ASSIGNMENT_INTERVAL, own, config),
    )
