"""What a transactional producer asks of coordinators, in the words of transaction version 1 or 2 (KIP-890).

Version 1: partitions and groups are added before anything is sent to them. Version 2, where the cluster has
`transaction.version` finalized at 2 or above: what is sent adds them, and each end raises the producer's epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from broker_engine.client.batches import ProducerIdentity
from broker_engine.client.client import Client
from broker_engine.client.coordinator import Coordinator, CoordinatorKind
from broker_engine.client.errors import error_for
from broker_engine.client.group_protocol import GroupIdentity
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from broker_engine.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from broker_engine.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker_engine.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

_FEATURE = "transaction.version"
_LEVEL_OF_VERSION_2 = 2
_ADD_PARTITIONS_VERSION_MAX = 3
"""Later ones are for brokers among themselves."""
_ADD_OFFSETS_VERSION_MAX = 3
_END_VERSION_MAX = 4
_OFFSET_COMMIT_VERSION_MAX = 4
"""Of transaction version 1; later ones are version 2."""

_RETRIED_WHEN_ADDING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED)
_RETRIED_WITH_OFFSETS = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)


class TransactionCalls:
    """All raise KafkaError where nobody answered; of `init` and `end` the code in the answer is the caller's."""

    def __init__(self, client: Client, transactional_id: str) -> None:
        self._client = client
        self._transactional_id = transactional_id
        self._coordinator = Coordinator(client, CoordinatorKind.TRANSACTION, transactional_id)
        self._group_coordinators: dict[str, Coordinator] = {}
        self.is_version_2 = False

    async def learn_version(self) -> None:
        """As the coordinator said it when the connection to it was made."""
        features = (await self._coordinator.connection()).finalized_features
        self.is_version_2 = features.get(_FEATURE, 0) >= _LEVEL_OF_VERSION_2

    async def init(self, known: ProducerIdentity, timeout_ms: int) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=known.producer_id,
            producer_epoch=known.epoch,
        )
        return await self._coordinator.ask(request, InitProducerIdResponse, _code)

    async def end(self, identity: ProducerIdentity, *, is_commit: bool) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=is_commit,
        )
        at_most = None if self.is_version_2 else _END_VERSION_MAX
        return await self._coordinator.ask(request, EndTxnResponse, _code, at_most=at_most)

    async def add_partitions(self, identity: ProducerIdentity, targets: Iterable[TopicPartition]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in _by_topic(targets)
            ],
        )
        response = await self._coordinator.ask(
            request,
            AddPartitionsToTxnResponse,
            _added_codes,
            at_most=_ADD_PARTITIONS_VERSION_MAX,
            passing=_RETRIED_WHEN_ADDING,
        )
        _raise_first(_added_codes(response), "add partitions to the transaction")

    async def add_offsets(self, identity: ProducerIdentity, group: GroupIdentity) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=group.group_id,
        )
        response = await self._coordinator.ask(
            request, AddOffsetsToTxnResponse, _code, at_most=_ADD_OFFSETS_VERSION_MAX
        )
        _raise_first(_code(response), f"add group {group.group_id!r} to the transaction")

    async def commit_offsets(
        self, identity: ProducerIdentity, offsets: Mapping[TopicPartition, int], group: GroupIdentity
    ) -> None:
        request = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=group.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[_offsets_of(name, indexes, offsets) for name, indexes in _by_topic(offsets)],
        )
        response = await self._group_coordinator(group.group_id).ask(
            request,
            TxnOffsetCommitResponse,
            _offset_codes,
            at_most=None if self.is_version_2 else _OFFSET_COMMIT_VERSION_MAX,
            passing=_RETRIED_WITH_OFFSETS,
        )
        _raise_first(_offset_codes(response), f"offsets of group {group.group_id!r}")

    def _group_coordinator(self, group_id: str) -> Coordinator:
        if group_id not in self._group_coordinators:
            self._group_coordinators.clear()  # one group at a time is what anybody has
            self._group_coordinators[group_id] = Coordinator(self._client, CoordinatorKind.GROUP, group_id)
        return self._group_coordinators[group_id]


def _offsets_of(
    name: str, indexes: Iterable[int], offsets: Mapping[TopicPartition, int]
) -> TxnOffsetCommitRequestTopic:
    partitions = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offsets[TopicPartition(name, index)])
        for index in indexes
    ]
    return TxnOffsetCommitRequestTopic(name=name, partitions=partitions)


def _by_topic(targets: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    grouped: defaultdict[str, list[int]] = defaultdict(list)
    for target in targets:
        grouped[target.topic].append(target.partition)
    return list(grouped.items())


def _raise_first(codes: Iterable[int], what: str) -> None:
    for code in codes:
        if code != ErrorCode.NONE:
            raise error_for(code, None, what)


def _code(response: InitProducerIdResponse | EndTxnResponse | AddOffsetsToTxnResponse) -> Iterable[int]:
    return (response.error_code,)


def _added_codes(response: AddPartitionsToTxnResponse) -> Iterable[int]:
    for topic in response.results_by_topic_v3_and_below:
        for part in topic.results_by_partition:
            yield part.partition_error_code


def _offset_codes(response: TxnOffsetCommitResponse) -> Iterable[int]:
    for topic in response.topics:
        for part in topic.partitions:
            yield part.error_code
