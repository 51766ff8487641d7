"""What to do with a batch when its answer has come: the Java client's rules, as one pure function."""

from __future__ import annotations

from enum import Enum

from broker_engine.client.batches import PartitionQueue, ProducerBatch
from broker_engine.errors import ErrorCode


class Verdict(Enum):
    DELIVERED = "delivered"
    RETRY = "retry"
    RETRY_IN_NEW_EPOCH = "retry in new epoch"
    SPLIT = "split"
    FAIL = "fail"


_LOST_PRODUCER_STATE = frozenset(
    {ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)

_METADATA_IS_OLD = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


_TELL_NOTHING = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,  # said also of what was appended, and was not acknowledged in that term
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


def note_whereabouts(batch: ProducerBatch, code: ErrorCode) -> None:
    """Only a broker that expects another number says for sure that it does not have this one."""
    if code in _TELL_NOTHING:
        batch.may_be_in_log = True
    elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        batch.may_be_in_log = False


def shows_old_metadata(code: ErrorCode) -> bool:
    return code in _METADATA_IS_OLD


def judge(code: ErrorCode, batch: ProducerBatch, queue: PartitionQueue, *, is_expired: bool) -> Verdict:
    if code == ErrorCode.NONE:
        return Verdict.DELIVERED
    if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and batch.identity is not None:
        return Verdict.DELIVERED  # it is in the log, only its offset is forgotten
    if is_expired:
        return Verdict.FAIL
    if code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1 and not queue.is_transactional:
        return Verdict.SPLIT
    if batch.identity is not None:
        is_lost = code in _LOST_PRODUCER_STATE or code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if is_lost and queue.is_transactional and queue.is_oldest(batch):
            return Verdict.FAIL  # a new epoch begins with an abort, which is the caller's to ask for
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            # An earlier batch that failed explains the gap, and goes first when it is sent again. Without one the
            # broker has lost our state: only a new epoch lets it begin at 0 again.
            return Verdict.RETRY_IN_NEW_EPOCH if queue.is_oldest(batch) else Verdict.RETRY
        if code in _LOST_PRODUCER_STATE:
            return Verdict.RETRY if queue.is_transactional else Verdict.RETRY_IN_NEW_EPOCH
    return Verdict.RETRY if code.is_retriable else Verdict.FAIL
