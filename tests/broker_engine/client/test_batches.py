"""The queue of one partition: when a batch leaves, in which order, with which sequence numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_engine.client.batches import PartitionQueue, ProducerBatch, ProducerIdentity, record_size_bytes_max
from broker_engine.client.delivery import Verdict, judge, note_whereabouts
from broker_engine.client.errors import KafkaError
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.decode import decode_records
from broker_engine.records.header import HEADER_SIZE_BYTES, parse_header

IDENTITY = ProducerIdentity(7, 0)
RECORD_BYTES = record_size_bytes_max(None, b"x" * 100, ())


@dataclass
class Told:
    offsets: list[int] = field(default_factory=list)
    errors: list[KafkaError] = field(default_factory=list)

    def succeed(self, offset: int, log_append_time_ms: int) -> None:
        self.offsets.append(offset)

    def fail(self, error: KafkaError) -> None:
        self.errors.append(error)


def queue(*, batch_size_bytes: int = 1_000, is_idempotent: bool = True, in_flight_max: int = 5) -> PartitionQueue:
    made = PartitionQueue(
        TopicPartition("orders", 0),
        batch_size_bytes=batch_size_bytes,
        codec=0,
        is_idempotent=is_idempotent,
        in_flight_max=in_flight_max,
    )
    if is_idempotent:
        made.set_identity(IDENTITY)
    return made


def fill(orders: PartitionQueue, count: int, *, now_ms: int = 0) -> list[Told]:
    outcomes = [Told() for _ in range(count)]
    for index, outcome in enumerate(outcomes):
        orders.append(NewRecord(1, None, b"%d" % index + b"x" * 90), outcome, RECORD_BYTES, now_ms)
    return outcomes


def take_all(orders: PartitionQueue, now_ms: int = 0, *, leader_id: int = 1) -> list[ProducerBatch]:
    taken = []
    while (due_ms := orders.due_ms(0)) is not None and due_ms <= now_ms and orders.may_go_to(leader_id):
        taken.append(orders.take(leader_id))
    return taken


def sequences(batches: list[ProducerBatch]) -> list[int]:
    return [batch.base_sequence for batch in batches]


def test_a_batch_leaves_when_it_has_lingered() -> None:
    orders = queue()
    fill(orders, 1, now_ms=100)

    assert orders.due_ms(linger_ms=5) == 105


def test_a_full_batch_leaves_at_once() -> None:
    orders = queue(batch_size_bytes=300)
    fill(orders, 3, now_ms=100)

    assert orders.waiting_count > 1
    assert orders.due_ms(linger_ms=5) == 100


def test_a_record_above_the_batch_size_gets_a_batch_of_its_own() -> None:
    orders = queue(batch_size_bytes=200)
    fill(orders, 3)

    assert [batch.record_count for batch in take_all(orders)] == [1, 1, 1]


def test_the_size_estimate_is_never_too_low() -> None:
    headers = (("trace", b"1" * 50), ("größe", None), ("", b""))
    record = NewRecord(1 << 40, b"k" * 300, b"v" * 70_000, headers)
    encoded = build_batch([NewRecord(0, None, None), record])
    rest = build_batch([NewRecord(0, None, None)])

    assert len(encoded) - len(rest) <= record_size_bytes_max(record.key, record.value, headers)
    assert len(rest) - HEADER_SIZE_BYTES <= record_size_bytes_max(None, None, ())


def test_sequences_follow_each_other_over_batches() -> None:
    orders = queue(batch_size_bytes=350)
    fill(orders, 6)

    batches = take_all(orders)

    assert sequences(batches) == [0, 2, 4]
    header = parse_header(batches[1].encode())
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (7, 0, 2, 2)


def test_nothing_goes_to_a_new_leader_past_what_the_old_one_has_not_answered() -> None:
    """The new one may never have heard of this producer: it would take the second batch for its first."""
    orders = queue()
    fill(orders, 1)
    (first,) = take_all(orders, leader_id=1)
    fill(orders, 1)

    assert take_all(orders, leader_id=2) == []
    orders.retry(first, retry_at_ms=0)
    assert sequences(take_all(orders, leader_id=2)) == [0]


def test_at_most_five_batches_are_on_the_wire() -> None:
    orders = queue(batch_size_bytes=200)
    fill(orders, 8)

    assert len(take_all(orders)) == 5
    assert orders.due_ms(0) is None


def test_without_sequences_only_one_batch_is_on_the_wire() -> None:
    orders = queue(batch_size_bytes=200, is_idempotent=False, in_flight_max=1)
    fill(orders, 3)

    assert len(take_all(orders)) == 1
    assert orders.due_ms(0) is None


def test_failed_batches_are_sent_again_in_order_and_one_by_one() -> None:
    orders = queue(batch_size_bytes=200)
    fill(orders, 5)
    first, second, third, *_ = sent = take_all(orders)
    fill(orders, 1)
    for batch in reversed(sent):
        orders.retry(batch, retry_at_ms=50)

    assert orders.due_ms(0) == 50
    assert take_all(orders, now_ms=50) == [first]
    orders.finish(first)
    assert take_all(orders, now_ms=50) == [second]
    orders.finish(second)
    assert take_all(orders, now_ms=50) == [third]
    assert sequences([first, second, third]) == [0, 1, 2]


def test_nothing_overtakes_a_batch_that_is_being_retried() -> None:
    orders = queue(batch_size_bytes=200)
    fill(orders, 1)
    (first,) = take_all(orders)
    orders.retry(first, retry_at_ms=0)
    fill(orders, 2)

    assert take_all(orders) == [first]


def test_a_given_up_batch_starts_a_new_epoch_for_those_behind_it() -> None:
    orders = queue(batch_size_bytes=200)
    fill(orders, 3)
    first, second, third = take_all(orders)

    orders.give_up(first)
    orders.retry(second, retry_at_ms=0)
    assert orders.due_ms(0) is None, "the third still has its old number on the wire"
    orders.retry(third, retry_at_ms=0)

    (again,) = take_all(orders)
    assert (again, again.identity, again.base_sequence) == (second, ProducerIdentity(7, 1), 0)
    header = parse_header(again.encode())
    assert (header.producer_epoch, header.base_sequence) == (1, 0)


def test_when_the_epochs_are_used_up_a_new_producer_id_is_asked_for() -> None:
    orders = queue()
    orders.set_identity(ProducerIdentity(7, 32_766))
    fill(orders, 1)
    (batch,) = take_all(orders)

    orders.retry(batch, retry_at_ms=0, in_new_epoch=True)

    assert orders.needs_identity
    orders.set_identity(ProducerIdentity(8, 0))
    assert take_all(orders)[0].identity == ProducerIdentity(8, 0)


def test_a_batch_that_is_too_large_is_split_and_keeps_its_place() -> None:
    orders = queue(batch_size_bytes=1_000)
    told = fill(orders, 4)
    (batch,) = take_all(orders)
    fill(orders, 1)

    orders.split(batch)
    (first_half,) = take_all(orders)
    orders.finish(first_half)
    first_half.succeed(10, -1)
    (second_half,) = take_all(orders)
    second_half.succeed(12, -1)

    assert [outcome.offsets for outcome in told] == [[10], [11], [12], [13]]
    assert first_half.reserved_bytes + second_half.reserved_bytes == 4 * RECORD_BYTES
    values = [
        record.value for half in (first_half, second_half) for record in decode_records(half.encode(), max_bytes=9_999)
    ]
    assert [value[:1] for value in values if value] == [b"0", b"1", b"2", b"3"]


def test_waiting_batches_expire() -> None:
    orders = queue()
    fill(orders, 1, now_ms=100)

    assert orders.expire(1_099, 1_000) == []
    assert [batch.record_count for batch in orders.expire(1_100, 1_000)] == [1]
    assert orders.is_idle


def test_sequences_wrap_after_the_largest_int32() -> None:
    orders = queue(batch_size_bytes=200)
    orders._next_sequence = 0x7FFFFFFF
    fill(orders, 2)

    assert sequences(take_all(orders)) == [0x7FFFFFFF, 0]


def test_out_of_order_is_retried_behind_an_earlier_failure_and_else_in_a_new_epoch() -> None:
    orders = queue(batch_size_bytes=200)
    fill(orders, 2)
    first, second = take_all(orders)
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    assert judge(code, second, orders, is_expired=False) is Verdict.RETRY
    assert judge(code, first, orders, is_expired=False) is Verdict.RETRY_IN_NEW_EPOCH


def test_verdicts() -> None:
    orders = queue()
    fill(orders, 2)
    (batch,) = take_all(orders)

    def verdict(code: ErrorCode, *, is_expired: bool = False) -> Verdict:
        return judge(code, batch, orders, is_expired=is_expired)

    assert verdict(ErrorCode.NONE) is Verdict.DELIVERED
    assert verdict(ErrorCode.DUPLICATE_SEQUENCE_NUMBER) is Verdict.DELIVERED
    assert verdict(ErrorCode.NOT_LEADER_OR_FOLLOWER) is Verdict.RETRY
    assert verdict(ErrorCode.NOT_LEADER_OR_FOLLOWER, is_expired=True) is Verdict.FAIL
    assert verdict(ErrorCode.MESSAGE_TOO_LARGE) is Verdict.SPLIT
    assert verdict(ErrorCode.UNKNOWN_PRODUCER_ID) is Verdict.RETRY_IN_NEW_EPOCH
    assert verdict(ErrorCode.TOPIC_AUTHORIZATION_FAILED) is Verdict.FAIL


def test_what_may_be_in_the_log_is_not_sent_again_under_new_numbers() -> None:
    orders = queue(batch_size_bytes=RECORD_BYTES)
    fill(orders, 1, now_ms=0)
    fill(orders, 2, now_ms=500)
    old, unsure, refused = take_all(orders, now_ms=500)
    for batch, code in (
        (old, ErrorCode.NETWORK_EXCEPTION),
        (unsure, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (refused, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ):
        note_whereabouts(batch, code)
        orders.retry(batch, retry_at_ms=600)

    assert orders.expire(now_ms=1_000, delivery_timeout_ms=1_000) == [old, unsure]
    assert [(batch, batch.base_sequence) for batch in take_all(orders, now_ms=1_000)] == [(refused, 0)]
    assert refused.identity == ProducerIdentity(7, 1)


def test_a_refusal_by_number_says_that_the_batch_is_not_in_the_log() -> None:
    orders = queue()
    fill(orders, 1)
    (batch,) = take_all(orders)
    note_whereabouts(batch, ErrorCode.REQUEST_TIMED_OUT)
    assert batch.may_be_in_log
    note_whereabouts(batch, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert batch.may_be_in_log, "this broker took nothing this time; the time before is as unknown as ever"
    note_whereabouts(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert not batch.may_be_in_log
