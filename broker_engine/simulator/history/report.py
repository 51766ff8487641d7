"""What a check found: anomalies by name, those that the settings allow apart, and how much was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from broker_engine.simulator.history.rows import Partition, Process, Value


class Kind(StrEnum):
    """Jepsen's names for what a Kafka-like log does wrong; the last four, and those of whole transactions, are ours."""

    INCONSISTENT_OFFSETS = "inconsistent-offsets"
    """Two values at one offset."""
    DUPLICATE = "duplicate"
    """One value at two offsets."""
    LOST_WRITE = "lost-write"
    """Acknowledged, below the highest offset that was read, never read."""
    UNSEEN = "unseen"
    """Acknowledged, never read, and nothing behind it either: only final polls from the beginning make this a loss."""
    G1A = "G1a"
    """A value was read whose send failed or whose transaction was aborted."""
    G0 = "G0"
    """Transactions wrote between each other in a circle (dirty write). Records come as they come: Kafka allows it."""
    G1B = "G1b"
    """A value was read before its transaction asked to be committed."""
    LOST_COMMIT = "lost-commit"
    """A transaction was committed, and nothing of it was ever read."""
    FRACTURED = "fractured"
    """Some values of a transaction were read, and others never."""
    ZOMBIE_COMMIT = "zombie-commit"
    """A transaction was committed, or an epoch handed out, after a later one of the same id."""
    PRECOMMITTED_READ = "precommitted-read"
    """A transaction read its own write."""
    POLL_SKIP = "poll-skip"
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    INT_POLL_SKIP = "int-poll-skip"
    INT_NONMONOTONIC_POLL = "int-nonmonotonic-poll"
    NONMONOTONIC_SEND = "nonmonotonic-send"
    """A process's sends to a partition do not stand there in the order they were sent."""
    G1C = "G1c"
    """A cycle of transactions that read each other's writes."""
    G1C_WW = "G1c-ww"
    """The same where the order of writes counts too: Kafka's model allows it."""
    UNKNOWN_VALUE = "unknown-value"
    """Read, but nobody sent it."""
    NONMONOTONIC_END = "nonmonotonic-end"
    """One process saw a partition's end go back."""
    STALE_END = "stale-end"
    """A partition's end was told lower than somebody else knew it before the question was asked."""
    NOT_LINEARIZABLE = "not-linearizable"


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: Kind
    detail: str
    partition: Partition | None = None
    value: Value | None = None

    def __str__(self) -> str:
        where = "" if self.partition is None else f" {self.partition[0]}-{self.partition[1]}"
        return f"{self.kind}{where}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the settings of a run do not promise. The default allows nothing but what Kafka's own model does."""

    may_lose: frozenset[Process] = frozenset()
    """These send with acks 0 or 1: what they were acknowledged may be gone, and its offset be another's."""
    may_duplicate: frozenset[Process] = frozenset()
    """These retry without idempotence: duplicates and another order are theirs to expect."""
    kinds: frozenset[Kind] = frozenset({Kind.G0, Kind.G1C_WW})
    shaken_topics: frozenset[str] = frozenset()
    """Acknowledged records of these may be gone, whoever sent them: nothing that is found there counts."""
    first_offsets: Mapping[Partition, int] = field(default_factory=dict)
    """Below these, retention or DeleteRecords took what was there."""


@dataclass(slots=True)
class Report:
    sent: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    """Told neither: open, or `info`."""
    read: int = 0
    """Different values that were read."""
    lost: int = 0
    """Acknowledged and never read, allowed or not."""
    duplicated: int = 0
    """Values that stand more than once, allowed or not."""
    violations: list[Anomaly] = field(default_factory=list)
    allowed: list[Anomaly] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not self.violations

    def add(self, anomaly: Anomaly, *, is_allowed: bool) -> None:
        (self.allowed if is_allowed else self.violations).append(anomaly)

    def kinds(self) -> dict[Kind, int]:
        """How many violations of each kind."""
        return dict(Counter(anomaly.kind for anomaly in self.violations))

    def __str__(self) -> str:
        counts = f"sent {self.sent}, acked {self.acked}, failed {self.failed}, unknown {self.unknown}, read {self.read}"
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds().items()) or "none"
        allowed = f" ({len(self.allowed)} allowed)" if self.allowed else ""
        return f"{counts}, lost {self.lost}, duplicated {self.duplicated}, anomalies {kinds}{allowed}"
