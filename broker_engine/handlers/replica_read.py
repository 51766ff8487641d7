"""ReplicaRead (key 10008, private), version 0: batches as they are stored here, for a replica whose own copy is rotten.

Any replica answers, also one that is out of sync and does not know what is committed: who asks takes only batches that
verify, of the epochs that it has there itself or before a batch that both have, below its own high watermark. Those are
the same on all, byte for byte.
"""

from __future__ import annotations

import asyncio

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.log.results import LogRead
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.internal_replica_read import ReplicaReadRequest, ReplicaReadResponse

_BYTES_MAX = 4 << 20


async def handle(request: ReplicaReadRequest, call: Call) -> ReplicaReadResponse:
    local = call.broker.partitions.find(request.topic_id, request.partition_index)
    if local is None or local.is_retired or local.busy is not None:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if request.is_doubted:
        call.broker.mender.doubt(local, request.start_offset)
        return ReplicaReadResponse()
    return ReplicaReadResponse(records=await asyncio.to_thread(_bytes_of, _read(local, request)))


def _read(local: LocalPartition, request: ReplicaReadRequest) -> LogRead:
    if not local.log_start_offset <= request.start_offset < request.end_offset <= local.core.log_end_offset:
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
    max_bytes = min(request.max_bytes, _BYTES_MAX)
    return local.log.read(request.start_offset, max_bytes=max_bytes, end_offset=request.end_offset, at_least_one=True)


def _bytes_of(read: LogRead) -> bytes:
    try:
        return b"".join(file_range.read() for file_range in read.ranges)
    finally:
        read.release()


def refuse(request: ReplicaReadRequest, error: BrokerError) -> ReplicaReadResponse:
    return ReplicaReadResponse(error_code=error.code)


API = Api(request=ReplicaReadRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
