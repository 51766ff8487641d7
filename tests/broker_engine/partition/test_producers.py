"""Idempotence: each sequence is appended once, by Kafka's rules; the memory for it is bounded."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import DiskFiles
from broker_engine.log.scan import scan_batches
from broker_engine.partition.producers import ProducerStates
from broker_engine.records.batch import BatchHeader, parse_header
from broker_engine.records.builder import NewRecord, build_batch

GOLDEN = Path(__file__).parents[2] / "golden" / "segments"
LAST_SEQUENCE = (1 << 31) - 1
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


def header(sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 9) -> BatchHeader:
    batch = build_batch(
        [NewRecord(77, None, None)] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    return parse_header(batch)


class Story:
    """Sends batches to one partition's producer states; each answer is an offset, a repeated offset, or a code."""

    def __init__(self, states: ProducerStates | None = None) -> None:
        self.states = ProducerStates() if states is None else states
        self.next_offset = 0

    def send(self, sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 9, now_ms: int = 0) -> str:
        batch = header(sequence, count=count, epoch=epoch, producer_id=producer_id)
        try:
            earlier = self.states.check(batch)
        except BrokerError as error:
            return error.code.name
        if earlier is not None:
            return f"again {earlier.base_offset}"
        base_offset = self.next_offset
        self.states.record(batch, base_offset, now_ms)
        self.next_offset += count
        return f"at {base_offset}"


def test_sequences_follow_on_each_other_and_gaps_are_refused() -> None:
    story = Story()
    assert story.send(0, count=3) == "at 0"
    assert story.send(3) == "at 3"
    assert story.send(5) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert story.send(4) == "at 4"


def test_the_last_five_batches_are_answered_again_and_older_ones_are_out_of_order() -> None:
    story = Story()
    for sequence in range(0, 12, 2):
        story.send(sequence, count=2)
    assert [story.send(sequence, count=2) for sequence in range(2, 12, 2)] == [f"again {n}" for n in range(2, 12, 2)]
    assert story.send(0, count=2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_a_partly_overlapping_batch_is_out_of_order() -> None:
    story = Story()
    story.send(0, count=4)
    assert story.send(2, count=4) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert story.send(0, count=3) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_a_sequence_wraps_to_zero() -> None:
    story = Story()
    assert story.send(LAST_SEQUENCE - 1, count=2) == "at 0"
    assert story.send(0) == "at 2"
    story = Story()
    assert story.send(LAST_SEQUENCE, count=3) == "at 0", "one batch may straddle the end"
    assert story.send(LAST_SEQUENCE, count=3) == "again 0"
    assert story.send(2) == "at 3"


def test_epochs_only_rise_and_begin_at_zero() -> None:
    story = Story()
    story.send(0, epoch=2)
    assert story.send(1, epoch=1) == "INVALID_PRODUCER_EPOCH"
    assert story.send(1, epoch=-1) == "INVALID_PRODUCER_EPOCH"
    assert story.send(1, epoch=3) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert story.send(0, epoch=3) == "at 1"
    assert story.send(0, epoch=2) == "INVALID_PRODUCER_EPOCH"


def test_an_unknown_producer_begins_anywhere() -> None:
    assert Story().send(500, epoch=7) == "at 0"


def test_a_producer_without_id_leaves_no_trace() -> None:
    story = Story()
    assert story.send(-1, epoch=-1, producer_id=-1) == "at 0"
    assert story.send(-1, epoch=-1, producer_id=-1) == "at 1"
    assert len(story.states) == 0


def test_idle_producers_are_forgotten() -> None:
    story = Story(ProducerStates(expiration_ms=1000))
    story.send(0, producer_id=1, now_ms=0)
    story.send(0, producer_id=2, now_ms=900)
    assert story.states.expire(1000) == 0
    assert story.states.expire(1001) == 1
    assert story.states.find(1) is None
    assert story.send(9, producer_id=1, now_ms=1001) == "at 2"


def test_beyond_the_cap_the_longest_idle_goes() -> None:
    story = Story(ProducerStates(producers_max=2))
    story.send(0, producer_id=1)
    story.send(0, producer_id=2)
    story.send(1, producer_id=1)
    story.send(0, producer_id=3)
    assert [story.states.find(producer_id) is None for producer_id in (1, 2, 3)] == [False, True, False]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=30))
def test_however_often_batches_are_resent_each_is_appended_once(sends: list[tuple[int, int]]) -> None:
    """A producer keeps at most five batches in flight: any of the last five may come again, any number of times."""
    story = Story()
    sent: list[tuple[int, int, str]] = []
    sequence = 0
    for count, resend_back in sends:
        answer = story.send(sequence, count=count)
        sent.append((sequence, count, answer))
        sequence += count
        earlier_sequence, earlier_count, earlier_answer = sent[-min(resend_back, len(sent))]
        again = story.send(earlier_sequence, count=earlier_count)
        assert again == earlier_answer.replace("at", "again")
    assert story.next_offset == sequence


def snapshot_entries(path: Path) -> dict[int, tuple[int, int, int]]:
    data = path.read_bytes()
    (count,) = struct.unpack_from(">i", data, 6)
    rows = [SNAPSHOT_ENTRY.unpack_from(data, 10 + SNAPSHOT_ENTRY.size * row) for row in range(count)]
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


@pytest.mark.parametrize("folder", ["golden-0", "golden-append-time-0", "__consumer_offsets-0"])
def test_states_rebuilt_from_kafkas_log_are_those_of_its_snapshot(folder: str) -> None:
    """We may know more: Kafka forgets by the batches' own timestamps, which in these logs lie years back."""
    path = GOLDEN / folder
    states = ProducerStates()
    for log_file in sorted(path.glob("*.log")):
        for batch in scan_batches(DiskFiles().open(str(log_file)), 0):
            states.record(batch.header, batch.header.base_offset, 0)
    expected = snapshot_entries(max(path.glob("*.snapshot")))
    assert expected
    for producer_id, (epoch, last_sequence, last_offset) in expected.items():
        producer = states.find(producer_id)
        assert producer is not None
        assert (producer.epoch, producer.last_sequence) == (epoch, last_sequence)
        if producer.batches:
            assert producer.batches[-1].last_offset == last_offset


def test_the_errors_carry_kafkas_codes() -> None:
    states = ProducerStates()
    states.record(header(0), 0, 0)
    with pytest.raises(BrokerError) as raised:
        states.check(header(5))
    assert raised.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
