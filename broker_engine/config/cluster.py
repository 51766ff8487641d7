"""The rows of BrokerConfig that only matter among several nodes: roles, quorum, broker life, replication, balance."""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.config.knobs import ConfigType, at_least, each_of, knob

_BOOLEAN, _INT, _LIST, _LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LIST, ConfigType.LONG
_LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    # One row per config: the formatter would make five lines of each.
    # fmt: off
    process_roles: tuple[str, ...] = knob(
        "process.roles", _LIST, ("broker", "controller"),
        "What this node is: `broker` keeps data and serves clients, `controller` votes and may lead the metadata.",
        each_of("broker", "controller"))
    # --- metadata quorum
    controller_quorum_election_timeout_ms: int = knob(
        "controller.quorum.election.timeout.ms", _INT, 1_000,
        "How long a candidate waits for votes before it tries again.", at_least(1))
    controller_quorum_fetch_timeout_ms: int = knob(
        "controller.quorum.fetch.timeout.ms", _INT, 2_000,
        "A voter that hears nothing from the leader for this long stands for election.", at_least(1))
    controller_quorum_election_backoff_max_ms: int = knob(
        "controller.quorum.election.backoff.max.ms", _INT, 1_000,
        "A candidate that lost waits at most this long before it tries again.", at_least(1))
    controller_quorum_append_linger_ms: int = knob(
        "controller.quorum.append.linger.ms", _INT, 0,
        "No effect: the leader of the metadata never waits for more changes. One batch is under way at a time, and "
        "what comes meanwhile is the next. Taken so that a configuration of Apache Kafka's, whose default is 25, can "
        "be used.", at_least(0))
    metadata_log_max_record_bytes_between_snapshots: int = knob(
        "metadata.log.max.record.bytes.between.snapshots", _LONG, 20 << 20,
        "A snapshot of the metadata is made after this many bytes of changes.", at_least(1))
    metadata_log_max_snapshot_interval_ms: int = knob(
        "metadata.log.max.snapshot.interval.ms", _LONG, 3_600_000,
        "A snapshot of the metadata is made at least this often while it changes; 0 = by size only.", at_least(0))
    # --- broker life
    broker_heartbeat_interval_ms: int = knob(
        "broker.heartbeat.interval.ms", _INT, 2_000, "How often a broker tells the controller that it lives.",
        at_least(1))
    broker_session_timeout_ms: int = knob(
        "broker.session.timeout.ms", _INT, 9_000,
        "A broker that was not heard of for this long is fenced; one that gets no answer fences itself.", at_least(1))
    initial_broker_registration_timeout_ms: int = knob(
        "initial.broker.registration.timeout.ms", _INT, 60_000,
        "A broker that cannot register within this time after it found a leader stops.", at_least(1))
    controlled_shutdown_enable: bool = knob(
        "controlled.shutdown.enable", _BOOLEAN, True, "A broker that stops hands its leaderships over first.")
    # --- replication
    replica_lag_time_max_ms: int = knob(
        "replica.lag.time.max.ms", _LONG, 30_000,
        "A follower that has not caught up for this long leaves the ISR.", at_least(1))
    replica_fetch_wait_max_ms: int = knob(
        "replica.fetch.wait.max.ms", _INT, 500, "How long a leader may keep a follower waiting for new records.",
        at_least(1))
    replica_fetch_min_bytes: int = knob(
        "replica.fetch.min.bytes", _INT, 1, "A follower is answered once there are this many bytes.", at_least(0))
    replica_fetch_max_bytes: int = knob(
        "replica.fetch.max.bytes", _INT, 1 << 20, "Bytes of one partition in one answer to a follower.", at_least(0))
    replica_fetch_response_max_bytes: int = knob(
        "replica.fetch.response.max.bytes", _INT, 10 << 20, "Bytes of one answer to a follower.", at_least(0))
    replica_fetch_backoff_ms: int = knob(
        "replica.fetch.backoff.ms", _INT, 1_000, "How long a follower leaves a partition alone after an error.",
        at_least(0))
    num_replica_fetchers: int = knob(
        "num.replica.fetchers", _INT, 1, "Connections by which a follower fetches from one leader.", at_least(1))
    replica_high_watermark_checkpoint_interval_ms: int = knob(
        "replica.high.watermark.checkpoint.interval.ms", _LONG, 5_000, "How often high watermarks are written to disk.",
        at_least(1))
    leader_replication_throttled_rate: int = knob(
        "leader.replication.throttled.rate", _LONG, _LONG_MAX,
        "Bytes per second that this broker sends to followers of throttled replicas.", at_least(0), dynamic=True)
    follower_replication_throttled_rate: int = knob(
        "follower.replication.throttled.rate", _LONG, _LONG_MAX,
        "Bytes per second that this broker fetches for throttled replicas.", at_least(0), dynamic=True)
    # --- balance
    auto_leader_rebalance_enable: bool = knob(
        "auto.leader.rebalance.enable", _BOOLEAN, True, "Whether leadership goes back to preferred replicas by itself.")
    leader_imbalance_check_interval_seconds: int = knob(
        "leader.imbalance.check.interval.seconds", _LONG, 300, "How often the controller looks for imbalance.",
        at_least(1))
    leader_imbalance_per_broker_percentage: int = knob(
        "leader.imbalance.per.broker.percentage", _INT, 10,
        "The share of a broker's preferred partitions that others may lead before leadership is moved back.",
        at_least(0))
    # fmt: on

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles
