"""WriteTxnMarkers (key 27), versions 1-2: control batches end transactions in the partitions that this broker leads.

From other brokers' coordinators by the controller's listener; from operators (kafka-transactions abort), who need the
cluster's rights. Codes: an epoch below the known one 47 (with transaction version 2 it is above, unless the marker is a
repeated one), an earlier coordinator 52, no such partition 3. The answer waits until every marker is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.names import ROOT, from_wire, physical
from broker_engine.server.acks import AckWait
from broker_engine.server.markers import Marker, TopicPartition, append_marker
from broker_engine.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

_WAIT_S = 30.0
"""Kafka's request.timeout.ms."""

Codes = dict[TopicPartition, ErrorCode]


@dataclass(slots=True, eq=False)
class _Row:
    error_code: int = ErrorCode.NONE


async def write_markers(broker: Broker, markers: Sequence[Marker]) -> list[Codes]:
    """Of each marker, by partition: NONE once it is acknowledged. Partitions that are led elsewhere answer 6."""
    wait = AckWait(asyncio.get_running_loop())
    rows = [{place: _append(broker, marker, place, wait) for place in marker.partitions} for marker in markers]
    if not wait.is_over:
        wait.start_timer(_WAIT_S)
        await wait.wait()
    return [{place: ErrorCode(row.error_code) for place, row in each.items()} for each in rows]


def _append(broker: Broker, marker: Marker, place: TopicPartition, wait: AckWait) -> _Row:
    row = _Row()
    on_acked = wait.expect(row)
    try:
        append_marker(broker, marker, place, on_acked)
    except BrokerError as error:
        on_acked(error.code)
    return row


async def handle(request: WriteTxnMarkersRequest, call: Call) -> WriteTxnMarkersResponse:
    if not call.principal.is_root:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "transactions are ended by their coordinator")
    codes = await write_markers(call.broker, [_marker(each) for each in request.markers])
    return WriteTxnMarkersResponse(markers=[_result(*pair) for pair in zip(request.markers, codes, strict=True)])


def refuse(request: WriteTxnMarkersRequest, error: BrokerError) -> WriteTxnMarkersResponse:
    codes = [dict.fromkeys(_places(each), error.code) for each in request.markers]
    return WriteTxnMarkersResponse(markers=[_result(*pair) for pair in zip(request.markers, codes, strict=True)])


def _marker(asked: WritableTxnMarker) -> Marker:
    return Marker(
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        is_commit=asked.transaction_result,
        coordinator_epoch=asked.coordinator_epoch,
        partitions=tuple(dict.fromkeys(_places(asked))),
        transaction_version=asked.transaction_version,
    )


def _places(asked: WritableTxnMarker) -> list[TopicPartition]:
    return [(_text(topic), index) for topic in asked.topics for index in topic.partition_indexes]


def _text(topic: WritableTxnMarkerTopic) -> str:
    return physical(from_wire(topic.name, ROOT))


def _result(asked: WritableTxnMarker, codes: Codes) -> WritableTxnMarkerResult:
    topics = [
        WritableTxnMarkerTopicResult(
            name=topic.name,
            partitions=[
                WritableTxnMarkerPartitionResult(partition_index=index, error_code=codes[_text(topic), index])
                for index in topic.partition_indexes
            ],
        )
        for topic in asked.topics
    ]
    return WritableTxnMarkerResult(producer_id=asked.producer_id, topics=topics)


API = Api(request=WriteTxnMarkersRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
