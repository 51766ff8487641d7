"""Asks the controller to commit new ISRs: what is proposed while a request is under way goes with the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, TypeVar
from uuid import UUID

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import ErrorCode
from broker_engine.partition.core import IsrProposal
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.alter_partition import (
    AlterPartitionBrokerState,
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
)
from broker_engine.wire.schema import Message

log = logging.getLogger(__name__)

LANE = "isr"
_TIMEOUT_MS = 5_000
_PAUSE_S = 0.1
"""After an answer that decides nothing."""

R = TypeVar("R", bound=Message)
Key = tuple[UUID, int]


class Controller(Protocol):
    async def ask(self, message: Message, answer: type[R], *, timeout_ms: int, lane: str = ...) -> R: ...


class IsrProposals:
    def __init__(self, node_id: int, controller: Controller, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._waiting: dict[Key, tuple[LocalPartition, IsrProposal]] = {}
        self._wake = asyncio.Event()

    def propose(self, local: LocalPartition, proposal: IsrProposal) -> None:
        self._waiting[local.topic_id, local.index] = (local, proposal)
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            asked, self._waiting = self._waiting, {}
            asked = {key: each for key, each in asked.items() if _is_open(*each)}
            if asked and not await self._ask_safely(asked):
                await asyncio.sleep(_PAUSE_S)

    async def _ask_safely(self, asked: dict[Key, tuple[LocalPartition, IsrProposal]]) -> bool:
        """Whatever happens, nobody waits for an answer to what was not asked."""
        try:
            return await self._ask(asked)
        except Exception:
            self._ask_again(asked)
            raise

    async def _ask(self, asked: dict[Key, tuple[LocalPartition, IsrProposal]]) -> bool:
        """False if nothing was decided about some of them: they are asked for again."""
        try:
            response = await self._controller.ask(
                self._request(asked), AlterPartitionResponse, timeout_ms=_TIMEOUT_MS, lane=LANE
            )
        except ConnectionFailed as error:
            log.warning("%d ISR changes wait for a controller: %s", len(asked), error.message)
            return self._ask_again(asked)
        if response.error_code != ErrorCode.NONE:
            log.warning("the controller refused ISR changes: %s", ErrorCode(response.error_code).name)
            return self._ask_again(asked)
        return self._take(response, asked)

    def _ask_again(self, asked: dict[Key, tuple[LocalPartition, IsrProposal]]) -> bool:
        for key, each in asked.items():
            self._waiting.setdefault(key, each)
        self._wake.set()
        return False

    def _request(self, asked: dict[Key, tuple[LocalPartition, IsrProposal]]) -> AlterPartitionRequest:
        topics: dict[UUID, list[AlterPartitionPartition]] = {}
        for (topic_id, index), (_, proposal) in asked.items():
            topics.setdefault(topic_id, []).append(self._partition(index, proposal))
        return AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[AlterPartitionTopic(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()],
        )

    def _partition(self, index: int, proposal: IsrProposal) -> AlterPartitionPartition:
        members = [
            AlterPartitionBrokerState(
                broker_id=member, broker_epoch=self._broker_epoch() if member == self._node_id else epoch
            )
            for member, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
        ]
        return AlterPartitionPartition(
            partition_index=index,
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch,
            new_isr_with_epochs=members,
        )

    def _take(self, response: AlterPartitionResponse, asked: dict[Key, tuple[LocalPartition, IsrProposal]]) -> bool:
        left = dict(asked)
        for topic in response.topics:
            for result in topic.partitions:
                each = left.pop((topic.topic_id, result.partition_index), None)
                if each is not None:
                    _tell(*each, result)
        if left:
            self._ask_again(left)
        return not self._waiting


def _is_open(local: LocalPartition, proposal: IsrProposal) -> bool:
    return local.leading is not None and local.leading.proposal is proposal


def _tell(local: LocalPartition, proposal: IsrProposal, result: AlterPartitionPartitionResult) -> None:
    if local.leading is None:
        return
    code, isr = ErrorCode(result.error_code), tuple(result.isr)
    if code is ErrorCode.NONE and result.leader_epoch != proposal.leader_epoch:
        code = ErrorCode.NEW_LEADER_ELECTED  # the change ended our term, too
    is_news = code is ErrorCode.NONE and set(isr) != set(local.core.isr)
    local.perform(local.leading.on_isr_answer(proposal, code, isr, result.partition_epoch))
    if is_news:
        log.info("%s-%d: in sync are %s", local.name, local.index, list(isr))
        local.note_changed()
    elif code is not ErrorCode.NONE:
        log.info("%s-%d: ISR %s was not accepted: %s", local.name, local.index, list(proposal.isr), code.name)
