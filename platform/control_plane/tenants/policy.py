"""The policy in force for a topic: the tenant's, with what its project overrides. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, fields

from control_plane.tenants.models import PolicyFields, Project, Tenant

# What a tenant may set on a topic unless its policy names another list. Left out on purpose: replication throttles
# and follower settings (the operator's), and the old message format.
DEFAULT_ALLOWED_CONFIGS = (
    "ack.durability",
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "record.validation",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.jitter.ms",
    "segment.ms",
)
PARTITIONS_PER_TOPIC_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    name_pattern: str | None = None
    partitions_per_topic_max: int = PARTITIONS_PER_TOPIC_MAX
    retention_ms_min: int | None = None
    retention_ms_max: int | None = None
    replication_factor_min: int | None = None
    replication_factor_max: int | None = None
    allowed_configs: tuple[str, ...] = DEFAULT_ALLOWED_CONFIGS
    default_partitions: int = 1


def policy_in_force(tenant: Tenant, project: Project | None = None) -> Policy:
    values: dict[str, object] = {}
    for level in (tenant, project):
        if level is not None:
            values.update(_set_values(level))
    return Policy(**values)  # type: ignore[arg-type]  # the two classes name the same fields


def _set_values(level: PolicyFields) -> dict[str, object]:
    found = {field.name: getattr(level, field.name) for field in fields(Policy)}
    values = {name: value for name, value in found.items() if value is not None}
    if "allowed_configs" in values:
        values["allowed_configs"] = tuple(values["allowed_configs"])
    return values


def engine_policy(tenant: Tenant) -> dict[str, object]:
    """The part of a tenant's policy that the engine itself enforces against Kafka clients (wire: policy_json)."""
    policy = policy_in_force(tenant)
    return {
        "name_pattern": policy.name_pattern,
        "max_partitions_per_topic": policy.partitions_per_topic_max,
        "max_partitions": tenant.partitions_max,
        "auto_create": tenant.auto_create,
        "default_partitions": policy.default_partitions,
    }
