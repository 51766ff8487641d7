"""TxnOffsetCommit (key 28), versions 0-5: a producer's transaction commits a group's offsets, if it commits.

Asked of the group's coordinator. The transaction's coordinator says whether the group's partition was added to the
transaction (up to v4) or adds it (v5); then the member is checked as for OffsetCommit, and the offsets are written as a
part of the transaction. Nobody sees them before its marker. Codes (Kafka 4.3.1): not added 48, from v4 120; an old
epoch 47; an unknown producer 49; a generation without a group 22; no such member 25; no group name 24.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.commits import CommitAsk
from broker_engine.groups.shard import GroupShard, NewOffset
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.handlers.topics import find_topic
from broker_engine.handlers.verification import ask_coordinator, refusal_of
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.metadata.image import TopicImage
from broker_engine.names import CONSUMER_OFFSETS, from_wire, physical
from broker_engine.partition.verification import Guard
from broker_engine.server.group_transactions import Producer, begin_verification, commit_in_transaction
from broker_engine.server.shards import Loaded
from broker_engine.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_FIRST_VERSION_WITH_ABORTABLE = 4
_FIRST_VERSION_THAT_ADDS = 5
_NO_GENERATION = -1


@dataclass(slots=True)
class _Wish:
    answer: TxnOffsetCommitResponsePartition
    offset: NewOffset


async def handle(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    name = group_name(call, request.group_id)
    wishes: list[_Wish] = []
    topics = [_topic(topic, call, wishes) for topic in request.topics]
    if wishes:
        code = await _commit(request, name, [wish.offset for wish in wishes], call)
        for wish in wishes:
            wish.answer.error_code = code
    return TxnOffsetCommitResponse(topics=topics)


def refuse(request: TxnOffsetCommitRequest, error: BrokerError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


async def _commit(request: TxnOffsetCommitRequest, name: str, offsets: list[NewOffset], call: Call) -> ErrorCode:
    try:
        producer = Producer(request.producer_id, request.producer_epoch)
        guard = await _verify(request, call.broker.groups.loaded(name), producer, call)
        loaded = call.broker.groups.loaded(name)  # again: the coordinator may have moved meanwhile
        code = _check_member(request, name, call)
        if code is not ErrorCode.NONE:
            return code
        now_ms = call.broker.clock.now_ms()
        return await commit_in_transaction(loaded, name, offsets, producer, guard=guard, now_ms=now_ms)
    except BrokerError as error:
        return error.code


async def _verify(
    request: TxnOffsetCommitRequest, loaded: Loaded[GroupShard], producer: Producer, call: Call
) -> Guard | None:
    """BrokerError in the words of a group's coordinator where the transaction's refuses."""
    is_adding = call.version >= _FIRST_VERSION_THAT_ADDS
    guard = begin_verification(loaded, producer, is_adding=is_adding)
    if guard is None:
        return None

    def take_guard() -> None:
        nonlocal guard
        guard = begin_verification(loaded, producer, is_adding=is_adding)

    place = (CONSUMER_OFFSETS, loaded.index)
    transactional_id = physical(from_wire(request.transactional_id, call.tenant))
    codes = await ask_coordinator(
        call.broker, transactional_id, *producer, [place], is_adding=is_adding, take_guards=take_guard
    )
    is_abortable_known = call.version >= _FIRST_VERSION_WITH_ABORTABLE
    refusal = refusal_of(
        codes[place],
        is_abortable_known=is_abortable_known,
        try_again=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
    if refusal is not None:
        raise refusal
    return guard


def _check_member(request: TxnOffsetCommitRequest, name: str, call: Call) -> ErrorCode:
    """A producer need not say for which member it commits; what it says has to be so."""
    is_anonymous = not request.member_id and request.group_instance_id is None
    if request.generation_id <= _NO_GENERATION and is_anonymous:
        return ErrorCode.NONE
    ask = CommitAsk(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        epoch=request.generation_id,
        knows_epochs=False,
        is_transactional=True,
    )
    code = call.broker.groups.check_commit(name, ask)
    if code is ErrorCode.STALE_MEMBER_EPOCH:
        return ErrorCode.ILLEGAL_GENERATION  # producers know no other word for it
    # A rebalance under way is no reason: the transaction's own fencing is what counts.
    return ErrorCode.NONE if code is ErrorCode.REBALANCE_IN_PROGRESS else code


# --- what is asked


def _topic(topic: TxnOffsetCommitRequestTopic, call: Call, wishes: list[_Wish]) -> TxnOffsetCommitResponseTopic:
    try:
        image = find_topic(call, topic.name, NO_TOPIC_ID)
    except BrokerError:
        return _refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    answers = [_partition(each, image, call, wishes) for each in topic.partitions]
    return TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers)


def _partition(
    asked: TxnOffsetCommitRequestPartition, image: TopicImage, call: Call, wishes: list[_Wish]
) -> TxnOffsetCommitResponsePartition:
    answer = TxnOffsetCommitResponsePartition(partition_index=asked.partition_index)
    metadata = asked.committed_metadata or ""
    if asked.partition_index not in image.partitions:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif len(metadata.encode()) > call.broker.config.offset_metadata_max_bytes:
        answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
    else:
        place = (physical(image.name), asked.partition_index)
        epoch = asked.committed_leader_epoch
        wishes.append(_Wish(answer, NewOffset(*place, asked.committed_offset, epoch, metadata, image.id)))
    return answer


def _refused(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(name=topic.name, partitions=list(_refusals(topic, code)))


def _refusals(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> Iterator[TxnOffsetCommitResponsePartition]:
    for each in topic.partitions:
        yield TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)


API = Api(request=TxnOffsetCommitRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
