"""Batches that are appended together leave what they would have left one by one: bytes, indexes, producers, offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import LogConfig
from broker_engine.partition.core import AckDurability
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.header import NO_PRODUCER_ID
from broker_engine.server.local_partition import AppendedRun, LocalPartition
from broker_engine.server.produce_acks import run_acked
from broker_engine.server.produce_shape import Place
from broker_engine.wire.framing import parse_response
from broker_engine.wire.messages.produce import ProduceRequest
from tests.broker_engine.handlers.calls import produce_request
from tests.broker_engine.log.harness import DIRECTORY
from tests.broker_engine.server.one_replica import OneReplica

VERSION, ACKS_ALL = 9, -1
KNOWN, OTHER = 7, 8


class Sent(NamedTuple):
    """One batch, as a producer may send it: right, again, out of order, too old, broken."""

    producer_id: int = KNOWN
    skew: int = 0
    record_count: int = 1
    age_ms: int = 0
    is_broken: bool = False


sent = st.builds(
    Sent,
    producer_id=st.sampled_from([KNOWN, KNOWN, KNOWN, OTHER, NO_PRODUCER_ID]),
    skew=st.sampled_from([0, 0, 0, 0, -1, 1]),
    record_count=st.integers(1, 3),
    age_ms=st.sampled_from([0, 0, 500, -50_000]),
    is_broken=st.sampled_from([False] * 7 + [True]),
)


def batches_of(replica: OneReplica, run: list[Sent]) -> list[memoryview]:
    sequences = {KNOWN: 1, OTHER: 0}  # of KNOWN there is a batch already
    batches = []
    for each in run:
        is_numbered = each.producer_id != NO_PRODUCER_ID
        record = NewRecord(replica.clock.now_ms() - each.age_ms, None, b"value")
        batch = build_batch(
            [record] * each.record_count,
            producer_id=each.producer_id,
            producer_epoch=0 if is_numbered else -1,
            base_sequence=max(0, sequences[each.producer_id] + each.skew) if is_numbered else -1,
        )
        if is_numbered:
            sequences[each.producer_id] += each.record_count
        batches.append(memoryview(batch[:-1] + b"!" if each.is_broken else batch))
    return batches


FEW_BY_SIZE = LogConfig(segment_bytes=700, segment_ms=40_000, index_interval_bytes=100)
FEW_BY_INDEX = LogConfig(index_interval_bytes=60, segment_index_bytes=48)
"""Segments take a few batches only."""


def begun(config: LogConfig | None = None) -> OneReplica:
    replica = OneReplica(config, AckDurability.PAGE_CACHE)
    replica.send(KNOWN, b"first", is_plain=True)
    return replica


def one_by_one(local: LocalPartition, batches: list[memoryview]) -> list[int]:
    """Each batch's base offset, or minus its error code."""
    answers = []
    for batch in batches:
        try:
            answers.append(local.append(batch, produce_version=VERSION, acks=ACKS_ALL).base_offset)
        except BrokerError as error:
            answers.append(-error.code)
    return answers


def in_runs(local: LocalPartition, batches: list[memoryview]) -> list[int]:
    """As a connection does it: a run where there is one, else the first by itself."""
    answers: list[int] = []
    while len(answers) < len(batches):
        rest = batches[len(answers) :]
        run = local.append_run(rest, produce_version=VERSION, acks=ACKS_ALL)
        if run is None:
            answers += one_by_one(local, rest[:1])
            continue
        offset = run.base_offset
        for record_count in run.record_counts:
            answers.append(offset)
            offset += record_count
        assert offset == run.end_offset
    return answers


def state_of(replica: OneReplica) -> dict[str, object]:
    files, core = replica.files, replica.core
    stored = {name: files.read_small(f"{DIRECTORY}/{name}") for name in files.list_dir(DIRECTORY)}
    producers = {number: (each.epoch, list(each.batches)) for number, each in core.producers.items()}
    segment = replica.local.log._segments[-1]
    indexes = (segment.offset_index.pack(), segment.time_index.pack())  # type: ignore[union-attr]
    ages = (segment.max_timestamp, segment.newest_ms)
    return {
        **stored,
        "producers": producers,
        "ends": (core.log_end_offset, core.high_watermark),
        "active": indexes + ages,
    }


@example(run=[Sent()] * 16, config=FEW_BY_SIZE)
@example(run=[Sent()] * 16, config=FEW_BY_INDEX)
@given(run=st.lists(sent, min_size=2, max_size=12), config=st.sampled_from([FEW_BY_SIZE, FEW_BY_INDEX]))
def test_a_run_leaves_what_its_batches_leave_one_by_one(run: list[Sent], config: LogConfig) -> None:
    together, apart = begun(config), begun(config)
    batches = batches_of(together, run)
    assert in_runs(together.local, batches) == one_by_one(apart.local, batches)
    assert state_of(together) == state_of(apart)


def test_a_run_is_one_write_and_one_word_to_who_waits() -> None:
    replica = begun()
    told: list[ErrorCode] = []
    replica.local.when_acked(4, told.append)
    run = replica.local.append_run(batches_of(replica, [Sent()] * 3), produce_version=VERSION, acks=ACKS_ALL)
    assert run is not None
    assert (run.base_offset, run.end_offset, run.record_counts) == (1, 4, [1, 1, 1])
    assert told == [ErrorCode.NONE]


def test_a_run_that_does_not_fit_on_the_disk_leaves_nothing() -> None:
    replica = begun()
    before = state_of(replica)
    batches = batches_of(replica, [Sent()] * 3)
    replica.files.free_bytes = len(batches[0]) + 10
    with pytest.raises(BrokerError) as refused:
        replica.local.append_run(batches, produce_version=VERSION, acks=ACKS_ALL)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    replica.files.free_bytes = None
    assert state_of(replica) == before
    assert in_runs(replica.local, batches) == [1, 2, 3], "and takes the same batches once there is room"


def test_below_min_insync_nothing_is_a_run() -> None:
    replica = begun()
    replica.core.isr = ()
    assert replica.local.append_run(batches_of(replica, [Sent()] * 2), produce_version=VERSION, acks=ACKS_ALL) is None


def test_with_a_transaction_open_each_batch_is_looked_at_by_itself() -> None:
    replica = begun()
    replica.send(OTHER, b"in a transaction")
    assert replica.local.append_run(batches_of(replica, [Sent()] * 2), produce_version=VERSION, acks=ACKS_ALL) is None


# --- when not all of a run is acknowledged


async def answers_of(replica: OneReplica, run: AppendedRun, *, then: Callable[[], None]) -> list[tuple[int, int, int]]:
    """Correlation id, error code and base offset of each answer, after something happened to the partition."""
    place = Place(produce_request("topic", b""), VERSION)
    numbers = list(range(100, 100 + len(run.record_counts)))
    waiting = run_acked(place, replica.local, run, numbers, b"all of them")
    then()
    parts = (await waiting).parts
    assert parts is not None
    if parts == (b"all of them",):
        return []
    answers = []
    for part in parts:
        correlation_id, response = parse_response(bytes(part)[4:], ProduceRequest.API, VERSION)  # type: ignore[arg-type]
        (partition,) = response.responses[0].partition_responses  # type: ignore[attr-defined]
        answers.append((correlation_id, partition.error_code, partition.base_offset))
    return answers


def waiting_run() -> tuple[OneReplica, AppendedRun]:
    """Three batches, none of which is on the disk."""
    replica = OneReplica(durability=AckDurability.FSYNC)
    replica.send(KNOWN, b"first", is_plain=True)
    run = replica.local.append_run(batches_of(replica, [Sent()] * 3), produce_version=VERSION, acks=ACKS_ALL)
    assert run is not None
    return replica, run


async def test_a_run_is_answered_when_its_last_batch_is_acknowledged() -> None:
    replica, run = waiting_run()
    assert await answers_of(replica, run, then=replica.flush) == []


async def test_of_a_run_that_fails_each_request_hears_what_became_of_its_own_batch() -> None:
    replica, run = waiting_run()

    def commit_two_then_lose_the_lead() -> None:
        replica.local.perform(replica.core.on_flushed(run.base_offset + 2))
        replica.local.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    answers = await answers_of(replica, run, then=commit_two_then_lose_the_lead)
    assert answers == [(100, 0, 1), (101, 0, 2), (102, ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)]
