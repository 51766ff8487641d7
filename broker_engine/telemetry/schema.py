"""The keys and values of `__telemetry`, declared once: what the dashboard, the history and the usage roll-up read.

Each record's key and value are JSON objects. A key says what the row is about; the newest row of a key is the truth.
Offsets and sizes are JSON numbers here: readers in JavaScript get them as text from the gateway.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

VERSION = 1


class Kind(StrEnum):
    BROKER = "broker"
    CLUSTER = "cluster"
    GROUP = "group"
    GROUP_OFFSET = "group_offset"
    PARTITION = "partition"
    READERS = "readers"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Key:
    broker: int
    broker_epoch: int
    kind: Kind
    tenant: str = ""
    """The owner of what the row is about; "" = root."""
    name: str = ""
    """The topic's own name, without its tenant; of a `group` row the group's."""
    partition: int = -1
    group: str = ""
    """Of a `group_offset` row: whose offset in that partition."""
    v: int = VERSION


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    broker: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """Written by the partition's leader alone. While nobody leads it, the broker that speaks for the cluster writes the
    row: `leader` is -1 then, and offsets and sizes are -1, since no log was looked at."""

    at_ms: int
    topic_id: str
    leader: int
    leader_epoch: int
    isr: list[int]
    replicas: list[ReplicaRow]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    size_bytes: int
    last_append_ms: int
    """0: nothing was appended since the broker started."""
    is_deleted: bool = False
    partition_epoch: int = -1
    elr: list[int] = field(default_factory=list)
    """Out of sync, yet known to hold all that was committed: they may lead without loss."""
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    """What a reassignment under way brings and takes."""
    min_insync: int = 1
    """With fewer replicas in sync, acks=all is refused."""
    unclean_election_count: int = 0
    """How often acknowledged records may have been lost for the sake of having a leader."""


@dataclass(frozen=True, slots=True)
class TenantRow:
    """Running totals of one broker epoch."""

    at_ms: int
    bytes_in: int
    bytes_out: int
    records_in: int
    requests: int


@dataclass(frozen=True, slots=True)
class BrokerRow:
    at_ms: int
    started_ms: int
    connection_count: int
    partition_count: int
    bytes_in: int
    bytes_out: int
    sendfile_calls: int
    sendfile_bytes: int
    request_bytes_in_flight: int
    flush_count: int
    flush_ms_total: int
    loop_lag_ms: int
    """How late the sampler's own timer ran: a busy event loop shows here."""
    disk_free_bytes: int = -1
    is_disk_low: bool = False
    """Records are refused until there is room again."""
    leader_count: int = 0
    under_replicated_count: int = 0
    """Of the partitions led here: with a replica out of sync."""
    under_min_isr_count: int = 0
    """Of the partitions led here: with too few in sync for acks=all."""
    leaderless_count: int = 0
    """Of the partitions with a replica here: led by nobody."""
    offline_count: int = 0
    """Logs that a disk error took offline here."""
    size_bytes: int = 0
    """Of all logs here, leaders' and followers'."""
    is_degraded: bool = False
    """A flush has taken over ten seconds and goes on: the disk stands still, and where others can, they lead."""
    damaged_count: int = 0
    """Logs of which something rotted on disk and could not be mended yet by another replica: who reads there gets an
    error."""


@dataclass(frozen=True, slots=True)
class MemberRow:
    broker: int
    broker_epoch: int
    host: str
    rack: str
    is_fenced: bool
    is_shutting_down: bool


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """What the metadata say of the cluster as a whole; one broker speaks for all (`roster.speaker_of`)."""

    at_ms: int
    metadata_offset: int
    controller: int
    """-1 while none is known."""
    controller_epoch: int
    voters: list[int]
    brokers: list[MemberRow]
    unclean_election_count: int
    """Since the cluster began: each may have lost acknowledged records."""


@dataclass(frozen=True, slots=True)
class GroupMemberRow:
    id: str
    client_id: str
    host: str
    instance_id: str
    """Empty where the member is not a static one."""
    partitions: dict[str, list[int]]
    """What it owns, by topic, as its tenant names them. Empty while the group rebalances."""


@dataclass(frozen=True, slots=True)
class RebalanceRow:
    """One line of a group's timeline."""

    at_ms: int
    kind: str
    member: str
    client_id: str
    generation: int
    duration_ms: int
    """How long the rebalance took; -1 where this line is not its end."""
    moved_count: int
    """Partitions that changed hands; -1 where it is not known."""
    topics: list[str] = field(default_factory=list)
    """The topic whose partitions changed, or those that a member asks for from now on; a few."""
    dropped_topics: list[str] = field(default_factory=list)
    """Those that it asks for no more; a few."""
    unnamed_count: int = 0
    """How many more topics it is about."""
    partitions_before: int = -1
    partitions_after: int = -1
    """Of the topic; 0 where there is none, -1 where this line is about something else."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Written by the group's coordinator alone: the leader of `__consumer_offsets`-`offsets_partition`."""

    at_ms: int
    coordinator_epoch: int
    """The leader epoch of that partition: a deposed coordinator's late row has a lower one."""
    offsets_partition: int
    state: str
    protocol: str
    """`classic` or `consumer` (KIP-848)."""
    protocol_type: str
    generation: int
    """The group epoch of a KIP-848 group."""
    assignor: str
    leader: str
    state_since_ms: int
    member_count: int
    members: list[GroupMemberRow]
    """At most MEMBERS_TOLD_MAX."""
    events: list[RebalanceRow]
    """The newest of the timeline, the oldest first."""
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class GroupOffsetRow:
    """What a group has committed in one partition; written by its coordinator."""

    at_ms: int
    coordinator_epoch: int
    topic_id: str
    """Empty where the commit did not say it."""
    offset: int
    commit_ms: int
    metadata: str
    commit_count: int
    """A running total of this broker epoch."""
    unread_ms: int
    """The timestamp of the first record at or after the offset: UNREAD_NONE where there is none yet, UNREAD_UNKNOWN
    where nobody has looked."""
    is_deleted: bool = False


UNREAD_NONE, UNREAD_UNKNOWN = -1, -2


@dataclass(frozen=True, slots=True)
class ReaderRow:
    client_id: str
    host: str
    offset: int
    """What it asked for last: everything below has been sent to it. The lowest, where several connections ask."""
    connection_count: int
    """More than one: which of them is which member cannot be told."""


@dataclass(frozen=True, slots=True)
class ReadersRow:
    """Who fetches from a partition, and from where; written by its leader. Empty when nobody did for a while."""

    at_ms: int
    leader_epoch: int
    reader_count: int
    readers: list[ReaderRow]
    """At most READERS_TOLD_MAX."""
    is_deleted: bool = False


MEMBERS_TOLD_MAX = 300
EVENTS_TOLD_MAX = 20
READERS_TOLD_MAX = 50

Row = PartitionRow | TenantRow | BrokerRow | ClusterRow | GroupRow | GroupOffsetRow | ReadersRow

ROW_OF_KIND: dict[Kind, type[Row]] = {
    Kind.PARTITION: PartitionRow,
    Kind.TENANT: TenantRow,
    Kind.BROKER: BrokerRow,
    Kind.CLUSTER: ClusterRow,
    Kind.GROUP: GroupRow,
    Kind.GROUP_OFFSET: GroupOffsetRow,
    Kind.READERS: ReadersRow,
}


_NESTED: dict[Kind, dict[str, type[Any]]] = {
    Kind.PARTITION: {"replicas": ReplicaRow},
    Kind.CLUSTER: {"brokers": MemberRow},
    Kind.GROUP: {"members": GroupMemberRow, "events": RebalanceRow},
    Kind.READERS: {"readers": ReaderRow},
}


def _plain(value: Any) -> dict[str, Any]:
    """Not `asdict`: it copies in depth, and a thousand rows a second would hold up the loop."""
    return {name: getattr(value, name) for name in type(value).__slots__}


_KEYS_KEPT = 16_384
_encode_key = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
_encode_row = json.JSONEncoder(separators=(",", ":"), default=_plain).encode


@lru_cache(maxsize=_KEYS_KEPT)
def encode_key(key: Key) -> bytes:
    """Fields in one fixed order, so that equal keys are equal bytes. Only rows about groups name one."""
    fields = _plain(key)
    if not key.group:
        del fields["group"]
    return _encode_key(fields).encode()


def encode_row(row: Row) -> bytes:
    return _encode_row(_plain(row)).encode()


def decode_key(data: bytes) -> Key:
    fields = json.loads(data)
    return Key(**{**fields, "kind": Kind(fields["kind"])})


def decode_row(kind: Kind, data: bytes) -> Row:
    fields = json.loads(data)
    for name, row_type in _NESTED.get(kind, {}).items():
        fields[name] = [row_type(**each) for each in fields[name]]
    return ROW_OF_KIND[kind](**fields)
