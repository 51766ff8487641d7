"""What the coordinator answers in each state: the sentences of protocol.md 2.7, measured on Kafka 4.3.1, as a table."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.transactions import core
from broker_engine.transactions.core import InitAsk, Verdict
from broker_engine.transactions.states import TRANSITIONS, TransactionState
from broker_engine.transactions.transaction import EPOCH_MAX, VERSION_2, Producer, Transaction

S = TransactionState
E = ErrorCode
NOW_MS = 1_000
PLACE = ("orders", 0)
OTHER = ("orders", 1)
PID, EPOCH, SPARE = 7, 3, 99
ME = Producer(PID, EPOCH)
COMMIT, ABORT = True, False


def known(state: TransactionState, **fields: Any) -> Transaction:
    is_open = state is S.ONGOING or state.is_preparing
    given: dict[str, Any] = {
        "transactional_id": "t",
        "producer_id": PID,
        "producer_epoch": EPOCH,
        "previous_producer_id": PID,
        "timeout_ms": 60_000,
        "state": state,
        "partitions": (PLACE,) if is_open else (),
        "started_ms": -1 if state is S.EMPTY else 500,
        "updated_ms": 600,
        **fields,
    }
    return Transaction(**given)


def init(transaction: Transaction | None, expected: Producer | None = None, **fields: Any) -> Verdict:
    options: dict[str, Any] = {"is_pending": False, "spare_id": SPARE, **fields}
    return core.init_producer_id(transaction, InitAsk("t", 30_000, expected), NOW_MS, **options)


def end(transaction: Transaction | None, is_commit: bool, producer: Producer = ME, **fields: Any) -> Verdict:
    options: dict[str, Any] = {"is_pending": False, "spare_id": SPARE, **fields}
    return core.end(transaction, producer, NOW_MS, is_commit=is_commit, **options)


def add(transaction: Transaction | None, *places: tuple[str, int], producer: Producer = ME, **fields: Any) -> Verdict:
    options: dict[str, Any] = {"is_pending": False, **fields}
    return core.add_partitions(transaction, producer, places or (PLACE,), NOW_MS, **options)


def stored(verdict: Verdict) -> Transaction:
    assert verdict.store is not None
    return verdict.store


# --- InitProducerId


def test_the_first_use_of_an_id_gets_epoch_0() -> None:
    verdict = init(None)
    assert (verdict.code, verdict.producer) == (E.NONE, Producer(SPARE, 0))
    assert (stored(verdict).state, stored(verdict).timeout_ms) == (S.EMPTY, 30_000)


def test_an_unknown_id_with_a_producer_gets_a_fresh_one() -> None:
    assert init(None, Producer(5, 9)).producer == Producer(SPARE, 0)


def test_a_new_id_needs_a_producer_id() -> None:
    assert init(None, spare_id=None).needs_producer_id


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_every_later_call_raises_the_epoch_by_one(state: TransactionState) -> None:
    verdict = init(known(state))
    assert (verdict.code, verdict.producer) == (E.NONE, Producer(PID, EPOCH + 1))
    assert (stored(verdict).state, stored(verdict).partitions) == (S.EMPTY, ())


def test_after_the_last_epoch_comes_a_new_producer_id() -> None:
    exhausted = known(S.EMPTY, producer_epoch=EPOCH_MAX)
    assert init(exhausted, spare_id=None).needs_producer_id
    verdict = init(exhausted)
    assert verdict.producer == Producer(SPARE, 0)
    after = stored(verdict)
    assert after.previous_producer_id == PID
    old = Producer(PID, EPOCH_MAX)
    assert add(after, producer=old).code is E.INVALID_PRODUCER_ID_MAPPING
    assert end(after, COMMIT, old).code is E.INVALID_PRODUCER_ID_MAPPING
    assert init(after, old).code is E.PRODUCER_FENCED


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_what_is_being_ended_is_waited_for(state: TransactionState) -> None:
    assert init(known(state)) == Verdict(E.CONCURRENT_TRANSACTIONS)


def test_what_is_being_stored_is_waited_for() -> None:
    assert init(known(S.EMPTY), is_pending=True) == Verdict(E.CONCURRENT_TRANSACTIONS)
    assert init(None, is_pending=True) == Verdict(E.CONCURRENT_TRANSACTIONS)


def test_an_open_transaction_is_aborted_and_the_next_call_stands_two_epochs_higher() -> None:
    verdict = init(known(S.ONGOING))
    assert verdict.code is E.CONCURRENT_TRANSACTIONS
    fenced = stored(verdict)
    assert (fenced.state, fenced.producer_epoch, fenced.partitions) == (S.PREPARE_ABORT, EPOCH + 1, (PLACE,))
    assert init(core.completed(fenced, NOW_MS)).producer == Producer(PID, EPOCH + 2)


def test_a_producer_goes_on_with_its_own_epoch_and_may_ask_again() -> None:
    first = init(known(S.COMPLETE_COMMIT), ME)
    assert first.producer == Producer(PID, EPOCH + 1)
    again = init(stored(first), ME)
    assert again.producer == first.producer
    assert init(stored(again), ME).producer == first.producer


def test_a_producer_goes_on_after_its_last_epoch_and_may_ask_again() -> None:
    old = Producer(PID, EPOCH_MAX)
    first = init(known(S.EMPTY, producer_epoch=EPOCH_MAX), old)
    assert first.producer == Producer(SPARE, 0)
    assert init(stored(first), old, spare_id=None).producer == Producer(SPARE, 0)


@pytest.mark.parametrize("expected", [Producer(PID, EPOCH - 1), Producer(PID, EPOCH + 1), Producer(PID - 1, EPOCH)])
@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_ABORT, S.ONGOING])
def test_who_is_not_the_current_producer_is_fenced(state: TransactionState, expected: Producer) -> None:
    assert init(known(state), expected) == Verdict(E.PRODUCER_FENCED)


def test_a_new_producer_ends_the_right_to_ask_again() -> None:
    mine = stored(init(known(S.EMPTY), ME))
    theirs = stored(init(mine))
    assert init(theirs, ME).code is E.PRODUCER_FENCED


# --- AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: who may


@pytest.mark.parametrize("version", [0, VERSION_2])
def test_an_unknown_id_or_another_producer_id_is_no_mapping(version: int) -> None:
    stranger = Producer(PID + 1, EPOCH)
    for transaction, producer in ((None, ME), (known(S.ONGOING), stranger)):
        assert add(transaction, producer=producer).code is E.INVALID_PRODUCER_ID_MAPPING
        assert end(transaction, COMMIT, producer, client_version=version).code is E.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
@pytest.mark.parametrize("version", [0, VERSION_2])
def test_another_epoch_is_fenced(version: int, epoch: int) -> None:
    producer = Producer(PID, epoch)
    assert add(known(S.ONGOING), producer=producer).code is E.PRODUCER_FENCED
    assert end(known(S.ONGOING), ABORT, producer, client_version=version).code is E.PRODUCER_FENCED


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_partitions_wait_for_the_end_of_the_last_transaction(state: TransactionState) -> None:
    assert add(known(state)).code is E.CONCURRENT_TRANSACTIONS
    assert add(known(S.ONGOING), OTHER, is_pending=True).code is E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_first_partition_opens_a_transaction(state: TransactionState) -> None:
    after = stored(add(known(state)))
    assert (after.state, after.partitions, after.started_ms) == (S.ONGOING, (PLACE,), NOW_MS)


def test_more_partitions_join_and_known_ones_store_nothing() -> None:
    after = stored(add(known(S.ONGOING), OTHER, PLACE))
    assert (after.partitions, after.started_ms) == ((PLACE, OTHER), 500)
    assert add(known(S.ONGOING), PLACE) == Verdict()


def test_verification_knows_only_what_is_stored() -> None:
    def verify(transaction: Transaction | None, producer: Producer = ME) -> list[ErrorCode]:
        return list(core.verify_partitions(transaction, producer, [PLACE, OTHER]).values())

    assert verify(known(S.ONGOING)) == [E.NONE, E.TRANSACTION_ABORTABLE]
    assert verify(known(S.COMPLETE_COMMIT)) == [E.TRANSACTION_ABORTABLE] * 2
    assert verify(known(S.PREPARE_COMMIT)) == [E.CONCURRENT_TRANSACTIONS] * 2
    assert verify(known(S.ONGOING), Producer(PID, EPOCH - 1)) == [E.PRODUCER_FENCED] * 2
    assert verify(known(S.ONGOING), Producer(PID + 1, EPOCH)) == [E.INVALID_PRODUCER_ID_MAPPING] * 2
    assert verify(None) == [E.INVALID_PRODUCER_ID_MAPPING] * 2


# --- EndTxn up to version 4


@pytest.mark.parametrize(
    ("state", "is_commit", "code"),
    [
        (S.ONGOING, COMMIT, E.NONE),
        (S.ONGOING, ABORT, E.NONE),
        (S.PREPARE_COMMIT, COMMIT, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, ABORT, E.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, ABORT, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, COMMIT, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, COMMIT, E.NONE),
        (S.COMPLETE_COMMIT, ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, ABORT, E.NONE),
        (S.COMPLETE_ABORT, COMMIT, E.INVALID_TXN_STATE),
        (S.EMPTY, COMMIT, E.INVALID_TXN_STATE),
        (S.EMPTY, ABORT, E.INVALID_TXN_STATE),
    ],
)
def test_end_by_the_first_version(state: TransactionState, is_commit: bool, code: ErrorCode) -> None:
    verdict = end(known(state), is_commit)
    assert verdict.code is code
    assert (verdict.store is not None) == (state is S.ONGOING)


def test_the_first_version_keeps_the_epoch_and_the_start() -> None:
    after = stored(end(known(S.ONGOING), COMMIT))
    assert (after.state, after.producer, after.started_ms) == (S.PREPARE_COMMIT, ME, 500)
    done = core.completed(after, NOW_MS)
    assert (done.state, done.producer, done.partitions) == (S.COMPLETE_COMMIT, ME, ())


def test_an_end_waits_for_what_is_being_stored() -> None:
    assert end(known(S.ONGOING), COMMIT, is_pending=True) == Verdict(E.CONCURRENT_TRANSACTIONS)


# --- EndTxn by transaction version 2


RAISED = Producer(PID, EPOCH + 1)


@pytest.mark.parametrize(
    ("state", "is_commit", "producer", "code", "answered"),
    [
        (S.ONGOING, COMMIT, ME, E.NONE, RAISED),
        (S.ONGOING, ABORT, ME, E.NONE, RAISED),
        (S.EMPTY, ABORT, ME, E.NONE, RAISED),
        (S.EMPTY, COMMIT, ME, E.INVALID_TXN_STATE, None),
        (S.COMPLETE_COMMIT, COMMIT, ME, E.INVALID_TXN_STATE, None),
        (S.COMPLETE_COMMIT, ABORT, ME, E.NONE, RAISED),
        (S.COMPLETE_ABORT, ABORT, ME, E.NONE, RAISED),
        (S.COMPLETE_ABORT, COMMIT, ME, E.INVALID_TXN_STATE, None),
        (S.PREPARE_COMMIT, COMMIT, ME, E.PRODUCER_FENCED, None),
    ],
)
def test_end_by_version_2(
    state: TransactionState, is_commit: bool, producer: Producer, code: ErrorCode, answered: Producer | None
) -> None:
    verdict = end(known(state), is_commit, producer, client_version=VERSION_2)
    assert verdict.code is code
    if answered is None:
        assert verdict.store is None
    else:
        assert (verdict.producer, stored(verdict).producer) == (answered, answered)


@pytest.mark.parametrize(
    ("state", "is_commit", "code"),
    [
        (S.COMPLETE_COMMIT, COMMIT, E.NONE),
        (S.COMPLETE_COMMIT, ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, ABORT, E.NONE),
        (S.COMPLETE_ABORT, COMMIT, E.INVALID_TXN_STATE),
        (S.PREPARE_COMMIT, COMMIT, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, COMMIT, E.INVALID_TXN_STATE),
        (S.EMPTY, ABORT, E.PRODUCER_FENCED),
    ],
)
def test_asking_again_by_version_2(state: TransactionState, is_commit: bool, code: ErrorCode) -> None:
    verdict = end(known(state), is_commit, Producer(PID, EPOCH - 1), client_version=VERSION_2)
    assert (verdict.code, verdict.store) == (code, None)
    if code is E.NONE:
        assert verdict.producer == ME


def test_version_2_changes_the_producer_id_when_epochs_run_out() -> None:
    last = Producer(PID, EPOCH_MAX)
    open_one = known(S.ONGOING, producer_epoch=EPOCH_MAX)
    assert end(open_one, COMMIT, last, client_version=VERSION_2, spare_id=None).needs_producer_id
    verdict = end(open_one, COMMIT, last, client_version=VERSION_2)
    assert verdict.producer == Producer(SPARE, 0)
    assert stored(verdict).producer == Producer(PID, EPOCH_MAX + 1)  # what the markers carry
    done = core.completed(stored(verdict), NOW_MS)
    assert (done.producer, done.previous_producer_id, done.next_producer_id) == (Producer(SPARE, 0), PID, -1)
    again = end(done, COMMIT, last, client_version=VERSION_2)
    assert (again.code, again.producer, again.store) == (E.NONE, Producer(SPARE, 0), None)


def test_a_commit_of_the_first_version_after_one_of_version_2_is_fenced() -> None:
    """Flink commits again what it has committed, without having heard of the raised epoch."""
    done = core.completed(stored(end(known(S.ONGOING), COMMIT, client_version=VERSION_2)), NOW_MS)
    assert end(done, COMMIT).code is E.PRODUCER_FENCED


def test_flink_may_commit_twice_by_the_first_version() -> None:
    done = core.completed(stored(end(known(S.ONGOING), COMMIT)), NOW_MS)
    assert end(done, COMMIT).code is E.NONE


# --- time-outs


def test_after_a_time_out_the_old_producer_is_fenced_and_may_go_on() -> None:
    fenced = stored(core.timed_out(known(S.ONGOING), NOW_MS, None))
    assert (fenced.state, fenced.producer_epoch) == (S.PREPARE_ABORT, EPOCH + 1)
    done = core.completed(fenced, NOW_MS)
    assert add(done).code is E.PRODUCER_FENCED
    assert end(done, COMMIT).code is E.PRODUCER_FENCED
    assert end(done, COMMIT, client_version=VERSION_2).code is E.INVALID_TXN_STATE
    aborted = end(done, ABORT, client_version=VERSION_2)
    assert (aborted.code, aborted.store) == (E.NONE, None)
    assert init(done, ME).producer == Producer(PID, EPOCH + 1)


def test_a_time_out_at_the_last_epoch_takes_a_new_producer_id() -> None:
    last = known(S.ONGOING, producer_epoch=EPOCH_MAX)
    assert core.timed_out(last, NOW_MS, None).needs_producer_id
    done = core.completed(stored(core.timed_out(last, NOW_MS, SPARE)), NOW_MS)
    assert done.producer == Producer(SPARE, 0)
    assert init(done, Producer(PID, EPOCH_MAX)).producer == Producer(SPARE, 0)


@pytest.mark.parametrize("state", list(S))
def test_only_ids_without_a_transaction_expire(state: TransactionState) -> None:
    idle = known(state)
    is_over = state in (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
    assert core.is_expired(idle, 600 + 50, 50) == is_over
    assert not core.is_expired(idle, 600 + 49, 50)


# --- the table itself


def test_a_step_that_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        known(S.PREPARE_COMMIT).moved(S.COMPLETE_ABORT, NOW_MS)


def test_what_is_decided_has_one_way_on() -> None:
    assert TRANSITIONS[S.PREPARE_COMMIT] == {S.COMPLETE_COMMIT}
    assert TRANSITIONS[S.PREPARE_ABORT] == {S.COMPLETE_ABORT}


def test_a_clock_that_goes_back_takes_no_time_with_it() -> None:
    after = stored(core.end(known(S.ONGOING, updated_ms=2_000), ME, 5, is_commit=True, is_pending=False))
    assert after.updated_ms == 2_000
    assert stored(add(known(S.EMPTY, updated_ms=2_000))).started_ms == 2_000


def test_states_have_the_names_that_kafkas_tools_print() -> None:
    assert [state.text for state in S] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_transactions_are_values() -> None:
    assert dataclasses.replace(known(S.EMPTY)) == known(S.EMPTY)
