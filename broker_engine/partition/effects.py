"""What the cores of a partition answer: decisions about a batch, and effects that the shell carries out."""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.errors import ErrorCode
from broker_engine.records.control import EndedTransaction

NO_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Append:
    """The batch is next: append it, then call on_appended."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The batch is in the log already: answer with these, nothing is appended."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """The stored batch's timestamp, whatever the topic's timestamp type: as Kafka answers."""


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Wake producers with acks=-1 and readers that wait below `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class NeedFlush:
    """What was appended is not committed before it is on disk: start a flush unless one is in flight."""


@dataclass(frozen=True, slots=True)
class NoteAborted:
    """The marker that was just appended aborted a transaction: into the log's index of them, before anybody reads."""

    transaction: EndedTransaction


@dataclass(frozen=True, slots=True)
class FailAcks:
    """Whoever waits for acks=-1 is told that what it appended may never be committed."""

    code: ErrorCode


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """What the leader asks the controller for: valid only on top of this leader epoch and partition epoch."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Of each member, as it last fetched; NO_BROKER_EPOCH for the leader itself and for who has not fetched yet."""


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Ask the controller, and tell the core what it answered."""

    proposal: IsrProposal


Effect = AdvanceHighWatermark | NeedFlush | NoteAborted | FailAcks | ProposeIsr
ProduceDecision = Append | Duplicate

APPEND = Append()
NEED_FLUSH = NeedFlush()
