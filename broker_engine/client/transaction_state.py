"""Where a transactional producer stands: its phase, its identity, and which partitions the coordinator knows of. Pure.

UNREADY -> READY -> OPEN -> ENDING -> READY
                      |        |
                      +-> MUST_ABORT -> ENDING        FAILED from everywhere, and nowhere from there
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from broker_engine.client.batches import ProducerIdentity
from broker_engine.client.errors import AbortRequired, KafkaError, ProducerFenced
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode


class Phase(Enum):
    UNREADY = "unready"
    READY = "ready"
    OPEN = "open"
    MUST_ABORT = "must abort"
    ENDING = "ending"
    FAILED = "failed"


NEXT_PHASES = {
    Phase.UNREADY: {Phase.READY, Phase.FAILED},
    Phase.READY: {Phase.OPEN, Phase.FAILED},
    Phase.OPEN: {Phase.ENDING, Phase.MUST_ABORT, Phase.FAILED},
    Phase.MUST_ABORT: {Phase.ENDING, Phase.FAILED},
    Phase.ENDING: {Phase.READY, Phase.ENDING, Phase.MUST_ABORT, Phase.FAILED},
    Phase.FAILED: set[Phase](),
}

_FENCED = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)
_HOPELESS = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


def is_fatal(code: ErrorCode) -> bool:
    return code in _FENCED or code in _HOPELESS


def fatal_error(error: KafkaError) -> KafkaError:
    return ProducerFenced(error.code, error.message) if error.code in _FENCED else error


class TransactionState:
    """The gate between the producer's queues and the wire: nothing leaves for a partition that is not added yet, unless
    it is added by what is sent to it.
    """

    def __init__(self, transactional_id: str, on_wanted: Callable[[], None]) -> None:
        """`on_wanted` is called when there is something in `wanted` that was not there."""
        self.transactional_id = transactional_id
        self.phase = Phase.UNREADY
        self.identity: ProducerIdentity | None = None
        self.error: KafkaError | None = None
        """Why it must be aborted, or is of no further use."""
        self.is_known = False
        """The coordinator was asked to add something: it may have an open transaction."""
        self.adds_by_sending = False
        self.wanted: dict[TopicPartition, None] = {}
        self._added: dict[TopicPartition, None] = {}
        self._on_wanted = on_wanted

    def become(self, phase: Phase) -> None:
        assert phase in NEXT_PHASES[self.phase], f"{self.phase.name} -> {phase.name}"
        self.phase = phase

    def check(self, *allowed: Phase, what: str) -> None:
        """Raises why `what` cannot be done now."""
        if self.phase is Phase.FAILED:
            assert self.error is not None
            raise self.error
        if self.phase in allowed:
            return
        if self.phase is Phase.MUST_ABORT:
            raise self.abort_required()
        raise RuntimeError(f"{what} is for a transaction that is {allowed[0].value}, this one is {self.phase.value}")

    def abort_required(self) -> AbortRequired:
        assert self.error is not None
        return AbortRequired(self.error.code, self.error.message)

    # --- what the sender asks

    def admits(self, target: TopicPartition) -> bool:
        if self.phase is Phase.OPEN and self.adds_by_sending:
            self.is_known = True
            self._added[target] = None
        elif self.phase is Phase.OPEN and target not in self._added and target not in self.wanted:
            self.wanted[target] = None
            self._on_wanted()
        return target in self._added and self.phase in (Phase.OPEN, Phase.ENDING)

    def on_failed(self, error: KafkaError) -> None:
        """A record was not taken, or a question not answered: only an abort makes the rest whole again."""
        if is_fatal(error.code):
            self.fail(error)
        elif self.phase is Phase.OPEN:
            self.error = error
            self.become(Phase.MUST_ABORT)

    # --- what the coordinator said

    def on_ready(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self.error = None
        self.is_known = False
        self.wanted, self._added = {}, {}
        self.become(Phase.READY)

    def on_added(self, targets: Iterable[TopicPartition]) -> None:
        for target in targets:
            self.wanted.pop(target, None)
            self._added[target] = None

    def fail(self, error: KafkaError) -> KafkaError:
        """For good; gives what to raise."""
        if self.phase is not Phase.FAILED:
            self.become(Phase.FAILED)
            self.error = fatal_error(error)
        assert self.error is not None
        return self.error
