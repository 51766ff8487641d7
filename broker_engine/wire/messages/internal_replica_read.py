"""ReplicaRead (key 10008, private), version 0: a replica asks another one for committed batches that it can no longer
read from its own disk, or says that what it was sent does not verify.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Bool, Bytes, Int16, Int32, Int64, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message


class ReplicaReadRequest(Message, versions="0"):
    topic_id: Uuid = NULL_UUID
    partition_index: Int32 = 0
    start_offset: Int64 = 0
    end_offset: Int64 = 0
    max_bytes: Int32 = 0
    is_doubted: Bool = False
    """Nothing is read: the batch at the start offset is to be verified where it is."""


class ReplicaReadResponse(Message, versions="0"):
    error_code: Int16 = 0
    records: Bytes = b""


API = declare(10008, "ReplicaRead", ReplicaReadRequest, ReplicaReadResponse, is_internal=True)
