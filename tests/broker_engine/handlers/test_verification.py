"""Asking a transaction's coordinator about a first batch, while it is still busy with the transaction before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers import produce
from broker_engine.handlers.api import Call
from broker_engine.handlers.verification import ask_coordinator
from broker_engine.names import ROOT, Name
from broker_engine.partition.producers import ProducerStates
from broker_engine.partition.verification import Verifications
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PLACE = ("orders", 0)
FIRST_BATCH = build_batch(
    [NewRecord(0, None, b"v")], producer_id=9, producer_epoch=4, base_sequence=0, is_transactional=True
)
FIRST = parse_header(FIRST_BATCH)


class BusyCoordinator:
    """The marker of the transaction before comes to the partition after it was asked for the first time."""

    def __init__(self, verifications: Verifications) -> None:
        self._verifications = verifications
        self._asked_count = 0

    async def verify(self, *_: object, is_adding: bool) -> dict[tuple[str, int], ErrorCode]:
        self._asked_count += 1
        if self._asked_count > 1:
            return {PLACE: ErrorCode.NONE}
        self._verifications.forget(FIRST.producer_id)
        return {PLACE: ErrorCode.CONCURRENT_TRANSACTIONS}


async def test_a_batch_that_waited_for_the_marker_before_it_is_let_in() -> None:
    verifications = Verifications()
    guards = [verifications.begin(FIRST, is_adding=True)]
    broker = cast(Any, SimpleNamespace(transactions=BusyCoordinator(verifications)))
    codes = await ask_coordinator(
        broker,
        "payer",
        FIRST.producer_id,
        FIRST.producer_epoch,
        [PLACE],
        is_adding=True,
        take_guards=lambda: guards.append(verifications.begin(FIRST, is_adding=True)),
    )
    assert codes == {PLACE: ErrorCode.NONE}
    verifications.check(FIRST, guards[-1])


class MovingLeaders:
    """Leads the first of two partitions, and the second from the moment on in which the coordinator is asked."""

    def __init__(self) -> None:
        self.producers = [ProducerStates(), ProducerStates()]
        self.led_count = 1
        self.asked: list[list[tuple[str, int]]] = []
        self.transactions = self

    def led_partition(self, call: Call, image: object, index: int) -> Any:
        if index >= self.led_count:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return SimpleNamespace(core=SimpleNamespace(producers=self.producers[index]))

    async def verify(self, *asked: Any, is_adding: bool) -> dict[tuple[str, int], ErrorCode]:
        self.asked.append(asked[-1])
        self.led_count = 2
        is_busy = len(self.asked) == 1
        return dict.fromkeys(asked[-1], ErrorCode.CONCURRENT_TRANSACTIONS if is_busy else ErrorCode.NONE)


async def test_a_partition_that_the_coordinator_was_not_asked_about_takes_no_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It came to be led here while the others waited for the coordinator: nobody would end the transaction in it."""
    leaders, taken = MovingLeaders(), []
    monkeypatch.setattr(produce, "find_topic", lambda *_: SimpleNamespace(name=Name(ROOT, "orders")))
    monkeypatch.setattr(produce, "led_partition", leaders.led_partition)
    monkeypatch.setattr(produce, "_append", lambda request, call, verified: taken.append(verified))
    batches = [PartitionProduceData(index=index, records=memoryview(FIRST_BATCH)) for index in (0, 1)]
    topics = [TopicProduceData(name="orders", partition_data=batches)]
    request = ProduceRequest(transactional_id="payer", acks=-1, topic_data=topics)
    call = Call(cast(Any, leaders), cast(Any, None), cast(Any, SimpleNamespace(tenant=ROOT)), 12, None)
    verification = produce._begin_verification(request, call)
    assert verification is not None
    await produce._verify_and_append(request, call, verification)
    [verified] = taken
    assert leaders.asked == [[("orders", 0)], [("orders", 0)]]
    assert list(verified.guards) == [("orders", 0)]
    leaders.producers[0].check(FIRST, verified.guards["orders", 0])
    refused = {place: error.code for place, error in verified.refusals.items()}
    assert refused == {("orders", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER}
