"""BrokerConfig: everything that one broker is told, checked once at start, then frozen.

Precedence: `--set` over the file over the default. The broker configs that are defaults of topic configs
(`log.segment.bytes`, `message.max.bytes`, ...) come from the rows of `TopicConfig`, what only matters in a cluster from
those of `ClusterConfig`; the rest are the rows here.
`listener.name.NAME.tenant` is the one name with a part of the user's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from broker_engine.config.cluster import ClusterConfig
from broker_engine.config.kafka_names import KAFKA_NAMES_NOT_SUPPORTED
from broker_engine.config.knobs import (
    ConfigError,
    ConfigSource,
    ConfigType,
    ConfigValue,
    Knob,
    at_least,
    between,
    each_of,
    knob,
    knobs_of,
    one_of,
    unknown_name_text,
)
from broker_engine.config.listeners import (
    Endpoint,
    SecurityProtocol,
    is_listener_name,
    parse_endpoints,
    parse_protocol_map,
)
from broker_engine.config.topic import TOPIC_CONFIGS, default_min_insync
from broker_engine.names import is_valid_tenant_id

Environment = Literal["development", "production"]

_BOOLEAN, _DOUBLE, _INT = ConfigType.BOOLEAN, ConfigType.DOUBLE, ConfigType.INT
_LIST, _LONG, _STRING = ConfigType.LIST, ConfigType.LONG, ConfigType.STRING
_INT_MAX = (1 << 31) - 1
_TENANT_PREFIX, _TENANT_SUFFIX = "listener.name.", ".tenant"
INTERNAL_REPLICATION_FACTOR_MIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig(ClusterConfig):
    # One row per config: the formatter would make five lines of each.
    # fmt: off
    # --- who and where
    node_id: int = knob("node.id", _INT, 1, "This broker's number, one per cluster.", at_least(0))
    broker_rack: str | None = knob("broker.rack", _STRING, None, "The rack it stands in: replicas spread over racks.")
    log_dirs: tuple[str, ...] = knob("log.dirs", _LIST, (), "Where data is kept; `--data-dir` sets it.")
    controller_quorum_voters: tuple[str, ...] = knob(
        "controller.quorum.voters", _LIST, (),
        "The nodes that elect the controller, id@host:port each; `--quorum` sets it.")
    # --- listeners
    listeners_: tuple[str, ...] = knob(
        "listeners", _LIST, (), "Where clients connect: [NAME=]HOST:PORT each; `--listen` sets it.")
    advertised_listeners: tuple[str, ...] = knob(
        "advertised.listeners", _LIST, (),
        "What clients are told to connect to: NAME=host:port each. Default: what is bound.")
    listener_security_protocol_map: tuple[str, ...] = knob(
        "listener.security.protocol.map", _LIST, (),
        "NAME:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL each. Default: PLAINTEXT, SASL_PLAINTEXT on internal listeners.")
    internal_listener_names: tuple[str, ...] = knob(
        "internal.listener.names", _LIST, ("internal",),
        "Listeners of the gateway and the control plane: they ask for the cluster secret.")
    cluster_secret_file: str | None = knob(
        "cluster.secret.file", _STRING, None,
        "The cluster secret, mode 0600. Default: cluster-secret in the data directory.")
    ssl_certificate_file: str | None = knob("ssl.certificate.file", _STRING, None, "Certificate chain, PEM.")
    ssl_key_file: str | None = knob("ssl.key.file", _STRING, None, "The certificate's private key, PEM.")
    socket_request_max_bytes: int = knob(
        "socket.request.max.bytes", _INT, 100 << 20,
        "The largest request; a larger one closes the connection.", at_least(1))
    socket_listen_backlog_size: int = knob(
        "socket.listen.backlog.size", _INT, 50, "Connections that may wait to be accepted.", at_least(1))
    max_connections: int = knob("max.connections", _INT, _INT_MAX, "Connections of all clients together.", at_least(0))
    max_connections_per_ip: int = knob(
        "max.connections.per.ip", _INT, _INT_MAX, "Connections of one address.", at_least(0))
    max_incremental_fetch_session_cache_slots: int = knob(
        "max.incremental.fetch.session.cache.slots", _INT, 1000,
        "Fetch sessions of all readers together; one principal holds at most a quarter of them.", at_least(0))
    connections_max_idle_ms: int = knob(
        "connections.max.idle.ms", _LONG, 600_000, "A connection without requests is closed after this time.")
    connections_max_reauth_ms: int = knob(
        "connections.max.reauth.ms", _LONG, 0,
        "A signed-in client must sign in again within this time; 0 = never.", at_least(0))
    connection_failed_authentication_delay_ms: int = knob(
        "connection.failed.authentication.delay.ms", _INT, 100,
        "A failed sign-in is answered after this time.", at_least(0))
    # --- topics
    num_partitions: int = knob("num.partitions", _INT, 1, "Partitions of a topic that names no number.", at_least(1))
    default_replication_factor: int = knob(
        "default.replication.factor", _INT, None,
        "Replicas of a topic that names no number. Unset: 3, or the nodes in --quorum if fewer.",
        at_least(1))
    auto_create_topics_enable: bool = knob(
        "auto.create.topics.enable", _BOOLEAN, None,
        "Create a topic on first use. Unset: true in development, false in production.")
    delete_topic_enable: bool = knob("delete.topic.enable", _BOOLEAN, True, "Whether topics may be deleted at all.")
    # --- log upkeep
    log_retention_check_interval_ms: int = knob(
        "log.retention.check.interval.ms", _LONG, 300_000, "How often old segments are looked for.", at_least(1))
    log_cleaner_backoff_ms: int = knob(
        "log.cleaner.backoff.ms", _LONG, 15_000, "How long the compactor waits between two rounds.", at_least(1))
    log_cleaner_io_max_bytes_per_second: float = knob(
        "log.cleaner.io.max.bytes.per.second", _DOUBLE, float(32 << 20),
        "Bytes per second that compaction may read, all logs together; what it writes is less, and not counted. A log "
        "that is being compacted goes on as it began. Apache Kafka's default is no bound.", at_least(1), dynamic=True)
    log_flush_offset_checkpoint_interval_ms: int = knob(
        "log.flush.offset.checkpoint.interval.ms", _INT, 60_000, "How often recovery points are written.", at_least(0))
    log_dir_free_bytes_min: int = knob(
        "log.dir.free.bytes.min", _LONG, None,
        "With fewer bytes free on disk records are refused, while reads and deletes go on; 0 = no floor. Unset: the "
        "smaller of 1 GiB and 5 % of the file system. Highwater's own.", at_least(0))
    log_flush_syncfs: str = knob(
        "log.flush.syncfs", _STRING, "auto", "Whether one syncfs may stand for many fdatasyncs: auto, never or always.",
        one_of("auto", "never", "always"))
    log_flush_io_uring: str = knob(
        "log.flush.io.uring", _STRING, "auto",
        "Whether the kernel runs flushes by itself: auto (where it lets us; many containers do not) or never (threads "
        "do). Highwater's own.", one_of("auto", "never"))
    # --- groups and transactions
    group_min_session_timeout_ms: int = knob(
        "group.min.session.timeout.ms", _INT, 6_000, "Shortest session that a member may ask for.", at_least(1))
    group_max_session_timeout_ms: int = knob(
        "group.max.session.timeout.ms", _INT, 1_800_000, "Longest session that a member may ask for.", at_least(1))
    group_initial_rebalance_delay_ms: int = knob(
        "group.initial.rebalance.delay.ms", _INT, 3_000, "How long a new group waits for more members.", at_least(0))
    group_max_size: int = knob("group.max.size", _INT, _INT_MAX, "Members of one classic group.", at_least(1))
    group_consumer_session_timeout_ms: int = knob(
        "group.consumer.session.timeout.ms", _INT, 45_000, "Session of members of KIP-848 groups.", at_least(1))
    group_consumer_min_session_timeout_ms: int = knob(
        "group.consumer.min.session.timeout.ms", _INT, 45_000, "Shortest session that a group may set.", at_least(1))
    group_consumer_max_session_timeout_ms: int = knob(
        "group.consumer.max.session.timeout.ms", _INT, 60_000, "Longest session that a group may set.", at_least(1))
    group_consumer_heartbeat_interval_ms: int = knob(
        "group.consumer.heartbeat.interval.ms", _INT, 5_000, "Heartbeat of members of KIP-848 groups.", at_least(1))
    group_consumer_min_heartbeat_interval_ms: int = knob(
        "group.consumer.min.heartbeat.interval.ms", _INT, 5_000,
        "Shortest heartbeat interval that a group may set.", at_least(1))
    group_consumer_max_heartbeat_interval_ms: int = knob(
        "group.consumer.max.heartbeat.interval.ms", _INT, 15_000,
        "Longest heartbeat interval that a group may set.", at_least(1))
    group_consumer_max_size: int = knob(
        "group.consumer.max.size", _INT, _INT_MAX, "Members of one KIP-848 group.", at_least(1))
    group_consumer_assignors: tuple[str, ...] = knob(
        "group.consumer.assignors", _LIST, ("uniform", "range"),
        "Assignors of KIP-848 groups; the first is the one where no member asks for another.",
        each_of("uniform", "range"))
    group_consumer_migration_policy: str = knob(
        "group.consumer.migration.policy", _STRING, "bidirectional",
        "Whether classic groups become KIP-848 groups and back while members are in them.",
        one_of("bidirectional", "upgrade", "downgrade", "disabled"))
    group_consumer_assignment_interval_ms: int = knob(
        "group.consumer.assignment.interval.ms", _INT, 1_000,
        "At most one new target assignment of a KIP-848 group in this time.", at_least(0))
    group_consumer_min_assignment_interval_ms: int = knob(
        "group.consumer.min.assignment.interval.ms", _INT, 0,
        "Shortest assignment interval that a group may set.", at_least(0))
    group_consumer_max_assignment_interval_ms: int = knob(
        "group.consumer.max.assignment.interval.ms", _INT, 15_000,
        "Longest assignment interval that a group may set.", at_least(0))
    offset_metadata_max_bytes: int = knob(
        "offset.metadata.max.bytes", _INT, 4_096, "Longest note beside a committed offset.", at_least(0))
    offsets_retention_check_interval_ms: int = knob(
        "offsets.retention.check.interval.ms", _LONG, 600_000, "How often old offsets are looked for.", at_least(1))
    offsets_retention_minutes: int = knob(
        "offsets.retention.minutes", _INT, 10_080, "How long an empty group's offsets are kept.", at_least(1))
    offsets_topic_num_partitions: int = knob(
        "offsets.topic.num.partitions", _INT, 50, "Partitions of __consumer_offsets.", at_least(1))
    offsets_topic_replication_factor: int = knob(
        "offsets.topic.replication.factor", _INT, None,
        "Replicas of __consumer_offsets. Unset: 3, or the nodes in --quorum if fewer.",
        at_least(1))
    offsets_topic_segment_bytes: int = knob(
        "offsets.topic.segment.bytes", _INT, 100 << 20, "Segment size of __consumer_offsets.", at_least(1 << 20))
    transaction_state_log_num_partitions: int = knob(
        "transaction.state.log.num.partitions", _INT, 50, "Partitions of __transaction_state.", at_least(1))
    transaction_state_log_replication_factor: int = knob(
        "transaction.state.log.replication.factor", _INT, None,
        "Replicas of __transaction_state. Unset: 3, or the nodes in --quorum if fewer.", at_least(1))
    transaction_state_log_min_isr: int = knob(
        "transaction.state.log.min.isr", _INT, None,
        "min.insync.replicas of __transaction_state. Unset: 2 at 3 replicas, else 1.",
        at_least(1))
    transaction_state_log_segment_bytes: int = knob(
        "transaction.state.log.segment.bytes", _INT, 100 << 20,
        "Segment size of __transaction_state.", at_least(1 << 20))
    transaction_max_timeout_ms: int = knob(
        "transaction.max.timeout.ms", _INT, 900_000, "Longest transaction that a producer may ask for.", at_least(1))
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = knob(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", _INT, 10_000,
        "How often a coordinator looks for transactions that took too long.", at_least(1))
    transaction_remove_expired_transaction_cleanup_interval_ms: int = knob(
        "transaction.remove.expired.transaction.cleanup.interval.ms", _INT, 3_600_000,
        "How often a coordinator looks for transactional ids that expired.", at_least(1))
    transactional_id_expiration_ms: int = knob(
        "transactional.id.expiration.ms", _INT, 604_800_000, "How long an idle transactional id is kept.", at_least(1))
    producer_id_expiration_ms: int = knob(
        "producer.id.expiration.ms", _INT, 86_400_000, "How long an idle producer's sequence is kept.", at_least(1))
    # --- telemetry
    telemetry_interval_ms: int = knob(
        "telemetry.interval.ms", _LONG, 1_000,
        "How often what changed is written to __telemetry.", between(100, 60_000))
    telemetry_snapshot_interval_ms: int = knob(
        "telemetry.snapshot.interval.ms", _LONG, 30_000,
        "How often everything is written to __telemetry.", at_least(1_000))

    # fmt: on

    env: Environment = "development"
    quorum_size: int = 1
    """Nodes named in --quorum: counted from configuration, not from who is up."""
    listener_tenants: Mapping[str, str] = field(default_factory=dict)
    """Listener name to tenant id, from `listener.name.NAME.tenant`."""
    values: Mapping[str, ConfigValue] = field(default_factory=dict, repr=False)
    """Every broker config by Kafka's name, defaults filled in."""
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the file and `--set` said, as text."""

    @classmethod
    def load(
        cls,
        file_values: Mapping[str, str] | None = None,
        set_values: Mapping[str, str] | None = None,
        env: Environment = "development",
        *,
        quorum_size: int | None = None,
    ) -> BrokerConfig:
        """Check and freeze; ConfigError says what is wrong. `quorum_size` None = by controller.quorum.voters."""
        given = {**(file_values or {}), **(set_values or {})}
        listener_tenants = {}
        values: dict[str, ConfigValue] = {row.name: row.default for row in BROKER_CONFIGS.values()}
        for name, text in given.items():
            if _is_listener_tenant(name):
                listener_tenants[name[len(_TENANT_PREFIX) : -len(_TENANT_SUFFIX)]] = _tenant(name, text)
            else:
                values[name] = _parse(name, text)
        voters = values["controller.quorum.voters"]
        size = quorum_size or (len(voters) if isinstance(voters, tuple) else 0) or 1
        _fill_computed(values, env, size)
        fields: dict[str, Any] = {attribute: values[name] for attribute, name in _ATTRIBUTES.items()}
        config = cls(
            **fields,
            env=env,
            quorum_size=size,
            listener_tenants=MappingProxyType(listener_tenants),
            values=MappingProxyType(values),
            given=MappingProxyType(given),
        )
        config._check()
        return config

    def get(self, name: str) -> ConfigValue:
        """The value in force by Kafka's name."""
        if name not in self.values:
            raise ConfigError(unknown_name_text(name, self.values))
        return self.values[name]

    def source(self, name: str) -> ConfigSource:
        return ConfigSource.STATIC_BROKER_CONFIG if name in self.given else ConfigSource.DEFAULT_CONFIG

    def topic_default(self, topic_config_name: str) -> ConfigValue:
        """The default of a topic config here; None for an unset `min.insync.replicas`."""
        row = TOPIC_CONFIGS[topic_config_name]
        for synonym in row.broker_defaults:
            if synonym.name in self.given:
                value = self.values[synonym.name]
                return value * synonym.factor if isinstance(value, int) and synonym.factor > 1 else value
        return None if row.name == "min.insync.replicas" else row.default

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return parse_endpoints(self.listeners_)

    @property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        return parse_endpoints(self.advertised_listeners)

    def security_protocol(self, listener_name: str) -> SecurityProtocol:
        found = parse_protocol_map(self.listener_security_protocol_map).get(listener_name)
        if found is not None:
            return found
        return SecurityProtocol.SASL_PLAINTEXT if self.is_internal(listener_name) else SecurityProtocol.PLAINTEXT

    def is_internal(self, listener_name: str) -> bool:
        return listener_name in self.internal_listener_names

    @property
    def internal_factor_problem(self) -> str | None:
        """Why the coordinators' topics may not be made as configured, or None (contracts.md section 6)."""
        for name in _INTERNAL_FACTORS:
            factor = self.values[name]
            assert isinstance(factor, int)
            if self.env == "production" and factor < INTERNAL_REPLICATION_FACTOR_MIN:
                return f"{name} is {factor}: production needs 3 replicas, so name three nodes in --quorum"
        return None

    def _check(self) -> None:
        """What no single value can tell."""
        parse_endpoints(self.listeners_)
        parse_endpoints(self.advertised_listeners)
        for name in parse_protocol_map(self.listener_security_protocol_map):
            if name in self.internal_listener_names and not self.security_protocol(name).has_sasl:
                raise ConfigError(
                    f'internal listener "{name}" always authenticates: map it to SASL_PLAINTEXT or SASL_SSL'
                )
        for name in self.listener_tenants:
            if self.is_internal(name):
                raise ConfigError(f'internal listener "{name}" belongs to the cluster and cannot be bound to a tenant')
        if any(name in self.given for name in _INTERNAL_FACTORS) and self.internal_factor_problem is not None:
            raise ConfigError(self.internal_factor_problem)
        if not self.process_roles:
            raise ConfigError("process.roles is empty: a node is a broker, a controller, or both")
        if not self.is_controller and not self.controller_quorum_voters:
            raise ConfigError("process.roles=broker has nobody to follow: name the controllers in --quorum")
        if (self.ssl_certificate_file is None) != (self.ssl_key_file is None):
            raise ConfigError("ssl.certificate.file and ssl.key.file go together: one of them is missing")


_INTERNAL_FACTORS = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")


def _topic_default_rows() -> dict[str, Knob]:
    """The broker's side of the topic configs. Of several units only the last one carries the default, as in Kafka."""
    rows: dict[str, Knob] = {}
    for topic_row in TOPIC_CONFIGS.values():
        synonyms = topic_row.broker_defaults
        for synonym in synonyms:
            default = topic_row.default if synonym is synonyms[-1] else None
            if isinstance(default, int) and synonym.factor > 1:
                default //= synonym.factor
            validator = topic_row.validator if synonym.factor == 1 else at_least(-1)
            kind = topic_row.type if synonym.factor == 1 else _INT
            doc = f"Default of the topic config {topic_row.name}. {topic_row.doc}"
            rows[synonym.name] = Knob(synonym.name, kind, default, doc, validator)
    rows["min.insync.replicas"] = dataclasses.replace(rows["min.insync.replicas"], default=None)
    return rows


BROKER_CONFIGS: Mapping[str, Knob] = MappingProxyType({**knobs_of(BrokerConfig), **_topic_default_rows()})
_ATTRIBUTES = {f.name: f.metadata["knob"].name for f in dataclasses.fields(BrokerConfig) if "knob" in f.metadata}


def _parse(name: str, text: str) -> ConfigValue:
    row = BROKER_CONFIGS.get(name)
    if row is not None:
        try:
            return row.parse(text)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    if name in KAFKA_NAMES_NOT_SUPPORTED:
        raise ConfigError(f'config "{name}" is known to Apache Kafka, but Highwater does not support it yet')
    if name in TOPIC_CONFIGS:
        instead = TOPIC_CONFIGS[name].broker_defaults
        hint = f': the broker\'s default is "{instead[0].name}"' if instead else ""
        raise ConfigError(f'config "{name}" belongs to a topic{hint}')
    raise ConfigError(unknown_name_text(name, BROKER_CONFIGS))


def _is_listener_tenant(name: str) -> bool:
    is_long_enough = len(name) > len(_TENANT_PREFIX) + len(_TENANT_SUFFIX)
    return is_long_enough and name.startswith(_TENANT_PREFIX) and name.endswith(_TENANT_SUFFIX)


def _tenant(name: str, tenant_id: str) -> str:
    listener = name[len(_TENANT_PREFIX) : -len(_TENANT_SUFFIX)]
    if not is_listener_name(listener):
        raise ConfigError(f'"{listener}" in "{name}" is not a listener name')
    if not is_valid_tenant_id(tenant_id):
        raise ConfigError(f'{name}: "{tenant_id}" is not a tenant id (a-z, 0-9 and "-", at most 63 characters)')
    return tenant_id


def _fill_computed(values: dict[str, ConfigValue], env: Environment, quorum_size: int) -> None:
    """Defaults that depend on the cluster (contracts.md section 6) or on the environment."""
    for name in ("default.replication.factor", *_INTERNAL_FACTORS):
        if values[name] is None:
            values[name] = min(3, quorum_size)
    if values["transaction.state.log.min.isr"] is None:
        factor = values["transaction.state.log.replication.factor"]
        assert isinstance(factor, int)
        values["transaction.state.log.min.isr"] = default_min_insync(factor)
    if values["auto.create.topics.enable"] is None:
        values["auto.create.topics.enable"] = env == "development"
