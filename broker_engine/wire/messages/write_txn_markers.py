"""WriteTxnMarkers (key 27), versions 1-2: a transaction coordinator ends transactions in the partitions they wrote to.

From v2 with the version of transactions by which the markers are made. Clients may send it too: operators who abort a
transaction that hangs.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class WritableTxnMarkerTopic(Struct):
    name: String = ""
    partition_indexes: Array[Int32] = ()


class WritableTxnMarker(Struct):
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Bool = False
    topics: Array[WritableTxnMarkerTopic] = ()
    coordinator_epoch: Int32 = 0
    transaction_version: Int8 = field("2+", default=0, ignorable=True)


class WriteTxnMarkersRequest(Message, versions="1-2", flexible="1+"):
    markers: Array[WritableTxnMarker] = ()


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Struct):
    name: String = ""
    partitions: Array[WritableTxnMarkerPartitionResult] = ()


class WritableTxnMarkerResult(Struct):
    producer_id: Int64 = 0
    topics: Array[WritableTxnMarkerTopicResult] = ()


class WriteTxnMarkersResponse(Message, versions="1-2", flexible="1+"):
    markers: Array[WritableTxnMarkerResult] = ()


API = declare(27, "WriteTxnMarkers", WriteTxnMarkersRequest, WriteTxnMarkersResponse)
