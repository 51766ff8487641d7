"""What a transaction coordinator decides: one function per request, (what is stored, what is asked, now) -> Verdict.

A verdict may hold the next state. It is true, and its answer given, only once it is stored with acks=all; until then
`is_pending` holds up every other change with CONCURRENT_TRANSACTIONS. A stored PREPARE_* sends markers, and a second
step (`completed`) follows when all of them are written. Which rules of transaction version 2 hold is a matter of the
request's own version, never of the cluster. Measured on Kafka 4.3.1: protocol.md section 2.7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from broker_engine.errors import ErrorCode
from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    NOBODY,
    VERSION_2,
    Producer,
    TopicPartition,
    Transaction,
)

_S = TransactionState


@dataclass(frozen=True, slots=True)
class Verdict:
    code: ErrorCode = ErrorCode.NONE
    """The answer: at once, or where there is something to store, when it is stored."""
    producer: Producer = NOBODY
    store: Transaction | None = None
    needs_producer_id: bool = False
    """Nothing is decided: ask again with a producer id that nobody has had yet."""


@dataclass(frozen=True, slots=True)
class InitAsk:
    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    """Who the producer believes to be: it goes on after an error, and must not fence anybody but itself."""


_NEEDS_PRODUCER_ID = Verdict(needs_producer_id=True)


def _refused(code: ErrorCode) -> Verdict:
    return Verdict(code)


# --- InitProducerId


def init_producer_id(
    known: Transaction | None, ask: InitAsk, now_ms: int, *, is_pending: bool, spare_id: int | None
) -> Verdict:
    if is_pending:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if known is None:
        return _NEEDS_PRODUCER_ID if spare_id is None else _begun(_new(ask, spare_id, now_ms))
    if ask.expected is not None and not _may_go_on(known, ask.expected):
        return _refused(ErrorCode.PRODUCER_FENCED)
    if known.state.is_preparing:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if known.state is _S.ONGOING:
        if ask.expected is not None and ask.expected != known.producer:
            return _refused(ErrorCode.PRODUCER_FENCED)  # what is open is somebody else's: it is not his to abort
        return _fenced(known, now_ms, spare_id)
    return _raised(known, ask, now_ms, spare_id)


def _new(ask: InitAsk, producer_id: int, now_ms: int) -> Transaction:
    """The first epoch is 0: Flink looks for ids in use by it."""
    return Transaction(
        transactional_id=ask.transactional_id,
        producer_id=producer_id,
        producer_epoch=0,
        previous_producer_id=producer_id,
        timeout_ms=ask.timeout_ms,
        updated_ms=now_ms,
    )


def _begun(transaction: Transaction) -> Verdict:
    return Verdict(producer=transaction.producer, store=transaction)


def _may_go_on(known: Transaction, expected: Producer) -> bool:
    """As itself, or as whoever did not hear that its producer id was exchanged."""
    if expected.id == known.producer_id:
        return True
    return expected.id == known.previous_producer_id and expected.epoch >= EPOCH_MAX


def _raised(known: Transaction, ask: InitAsk, now_ms: int, spare_id: int | None) -> Verdict:
    """Nothing is open: the next epoch, for whom it is allowed."""
    expected = ask.expected
    if expected is None:
        return _with_next_epoch(known, ask, now_ms, spare_id, last_epoch=NO_EPOCH)
    if expected == known.producer:
        return _with_next_epoch(known, ask, now_ms, spare_id, last_epoch=expected.epoch)
    if expected.epoch != known.last_epoch:
        return _refused(ErrorCode.PRODUCER_FENCED)
    if known.producer_epoch > EPOCH_MAX:
        return _with_next_epoch(known, ask, now_ms, spare_id, last_epoch=expected.epoch)
    # It did not hear our last answer, and may not hear this one either.
    again = _emptied(known, ask, now_ms, known.producer, known.last_epoch)
    return _begun(dataclasses.replace(again, previous_producer_id=known.previous_producer_id))


def _with_next_epoch(
    known: Transaction, ask: InitAsk, now_ms: int, spare_id: int | None, *, last_epoch: int
) -> Verdict:
    if not known.is_epoch_exhausted:
        producer = Producer(known.producer_id, known.producer_epoch + 1)
    elif spare_id is None:
        return _NEEDS_PRODUCER_ID
    else:
        producer = Producer(spare_id, 0)
    return _begun(_emptied(known, ask, now_ms, producer, last_epoch))


def _emptied(known: Transaction, ask: InitAsk, now_ms: int, producer: Producer, last_epoch: int) -> Transaction:
    return known.moved(
        _S.EMPTY,
        now_ms,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        last_epoch=last_epoch,
        timeout_ms=ask.timeout_ms,
        partitions=(),
        started_ms=NO_TIME,
    )


# --- AddPartitionsToTxn, AddOffsetsToTxn


def add_partitions(
    known: Transaction | None,
    producer: Producer,
    partitions: Iterable[TopicPartition],
    now_ms: int,
    *,
    is_pending: bool,
    client_version: int = 0,
) -> Verdict:
    if known is None or known.producer_id != producer.id:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != producer.epoch:
        return _refused(ErrorCode.PRODUCER_FENCED)
    if is_pending or known.state.is_preparing:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_open = known.state is _S.ONGOING
    wanted = tuple(dict.fromkeys((*known.partitions, *partitions) if is_open else partitions))
    if is_open and wanted == known.partitions:
        return Verdict()
    started_ms = known.started_ms if is_open else max(now_ms, known.updated_ms)
    return Verdict(
        store=known.moved(_S.ONGOING, now_ms, partitions=wanted, started_ms=started_ms, client_version=client_version)
    )


def verify_partitions(
    known: Transaction | None, producer: Producer, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """May the producer write there now? What is being stored does not count yet: nobody was told of it."""
    code = _verification_error(known, producer)
    if code is not ErrorCode.NONE or known is None:
        return dict.fromkeys(partitions, code)
    inside = frozenset(known.partitions)
    return {place: ErrorCode.NONE if place in inside else ErrorCode.TRANSACTION_ABORTABLE for place in partitions}


def _verification_error(known: Transaction | None, producer: Producer) -> ErrorCode:
    if known is None or known.producer_id != producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if known.state.is_preparing else ErrorCode.NONE


# --- EndTxn


def end(
    known: Transaction | None,
    producer: Producer,
    now_ms: int,
    *,
    is_commit: bool,
    is_pending: bool,
    client_version: int = 0,
    spare_id: int | None = None,
) -> Verdict:
    is_version_2 = client_version >= VERSION_2
    is_retry = is_version_2 and known is not None and _has_missed_the_answer(known, producer)
    code = ErrorCode.NONE if is_retry else _end_error(known, producer, is_version_2=is_version_2)
    if code is not ErrorCode.NONE or known is None:
        return _refused(code)
    if is_pending:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if known.state is _S.ONGOING:
        return _ended(known, now_ms, is_commit, client_version, spare_id)
    if known.state.is_preparing:
        is_same = is_commit == known.is_commit
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE)
    if is_version_2 and not is_retry:
        return _ended_without_records(known, now_ms, is_commit, client_version, spare_id)
    return _ended_before(known, is_commit)


def _end_error(known: Transaction | None, producer: Producer, *, is_version_2: bool) -> ErrorCode:
    if known is None or known.producer_id != producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_untold = is_version_2 and known.state.is_preparing  # of the epoch that this end gave it
    is_fenced = known.producer_epoch != producer.epoch or is_untold
    return ErrorCode.PRODUCER_FENCED if is_fenced else ErrorCode.NONE


def _has_missed_the_answer(known: Transaction, producer: Producer) -> bool:
    """Transaction version 2: the epoch was raised with the end that it asks for again."""
    if known.state in (_S.EMPTY, _S.ONGOING):
        return False
    if producer == Producer(known.producer_id, known.producer_epoch - 1):
        return True
    return producer == Producer(known.previous_producer_id, EPOCH_MAX) and known.producer_epoch == 0


def _ended_before(known: Transaction, is_commit: bool) -> Verdict:
    """The same end again is fine: the client may not have heard of it."""
    if known.state is _S.EMPTY or is_commit != known.is_commit:
        return _refused(ErrorCode.INVALID_TXN_STATE)
    return Verdict(producer=known.producer)


def _ended_without_records(
    known: Transaction, now_ms: int, is_commit: bool, client_version: int, spare_id: int | None
) -> Verdict:
    """Transaction version 2 begins with the first write: an abort may come before the coordinator heard of one, and
    the raised epoch then refuses that write. There is nothing to commit.
    """
    if is_commit:
        return _refused(ErrorCode.INVALID_TXN_STATE)
    begun = max(now_ms, known.updated_ms)
    return _with_raised_epoch(known, now_ms, _S.PREPARE_ABORT, client_version, spare_id, started_ms=begun)


def _ended(known: Transaction, now_ms: int, is_commit: bool, client_version: int, spare_id: int | None) -> Verdict:
    state = _S.PREPARE_COMMIT if is_commit else _S.PREPARE_ABORT
    if client_version >= VERSION_2:
        return _with_raised_epoch(known, now_ms, state, client_version, spare_id, started_ms=known.started_ms)
    return Verdict(producer=known.producer, store=known.moved(state, now_ms, client_version=client_version))


def _with_raised_epoch(
    known: Transaction,
    now_ms: int,
    state: TransactionState,
    client_version: int,
    spare_id: int | None,
    *,
    started_ms: int,
) -> Verdict:
    """Markers carry the raised epoch, and whatever is still under way in the old one is refused behind them."""
    if known.is_epoch_exhausted and spare_id is None:
        return _NEEDS_PRODUCER_ID
    next_id = spare_id if known.is_epoch_exhausted and spare_id is not None else NO_PRODUCER_ID
    store = known.moved(
        state,
        now_ms,
        producer_epoch=known.producer_epoch + 1,
        last_epoch=known.producer_epoch,
        next_producer_id=next_id,
        started_ms=started_ms,
        client_version=client_version,
    )
    return Verdict(producer=store.producer if next_id == NO_PRODUCER_ID else Producer(next_id, 0), store=store)


# --- what the coordinator does by itself


def _fenced(known: Transaction, now_ms: int, spare_id: int | None) -> Verdict:
    """Another producer of the same id: what is open is aborted first, and it asks again."""
    verdict = timed_out(known, now_ms, spare_id)
    if verdict.store is None:
        return verdict
    return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS, store=verdict.store)


def timed_out(known: Transaction, now_ms: int, spare_id: int | None) -> Verdict:
    """Abort what is open, by an epoch that its producer does not have."""
    assert known.state is _S.ONGOING, "only what is open is aborted"
    return _with_raised_epoch(
        known, now_ms, _S.PREPARE_ABORT, known.client_version, spare_id, started_ms=known.started_ms
    )


def completed(known: Transaction, now_ms: int) -> Transaction:
    """Every partition has its marker."""
    state = _S.COMPLETE_COMMIT if known.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT
    if known.next_producer_id == NO_PRODUCER_ID:
        return known.moved(state, now_ms, partitions=())
    return known.moved(
        state,
        now_ms,
        partitions=(),
        producer_id=known.next_producer_id,
        producer_epoch=0,
        next_producer_id=NO_PRODUCER_ID,
    )


def is_expired(known: Transaction, now_ms: int, expiration_ms: int) -> bool:
    return known.state.is_over and known.updated_ms + expiration_ms <= now_ms
