"""A transactional producer on a bare socket, in the words of the wire: each step may be taken, left out or repeated."""

from __future__ import annotations

from typing import Any

from broker_engine.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from broker_engine.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import batch_of, fetch, new_name, produce_request
from tests.broker_engine.handlers.transaction_calls import Producer, add, add_offsets, end, started
from tests.broker_engine.raw_client import RawClient

READ_COMMITTED = 1
_CONCURRENT_TRANSACTIONS = 51


class TxnProducer:
    def __init__(self, client: RawClient, name: str | None = None) -> None:
        self.client = client
        self.name = name or new_name("txn")
        self.id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    @property
    def _identity(self) -> Producer:
        return Producer(self.name, self.id, self.epoch)

    def init(self) -> TxnProducer:
        """Waits for a coordinator, and for an earlier transaction to be ended."""
        _, self.id, self.epoch = started(self.client, self.name, version=4)
        return self

    def add(self, topic: str, *partitions: int) -> int:
        """The first partition's code, once the last transaction is complete."""
        places = [(topic, index) for index in partitions or (0,)]
        codes: list[int] = []

        def is_settled() -> bool:
            codes[:] = add(self.client, self._identity, *places)
            return codes[0] != _CONCURRENT_TRANSACTIONS

        wait_for("the next transaction", is_settled)
        return codes[0]

    def add_group(self, group: str) -> int:
        return add_offsets(self.client, self._identity, group, 3)

    def batch(self, topic: str, *values: bytes, partition: int = 0, **identity: Any) -> bytes:
        """The next one in order, unless something else is asked for."""
        sequence = identity.pop("base_sequence", self._sequences.get((topic, partition), 0))
        self._sequences[topic, partition] = sequence + len(values)
        given = {"producer_id": self.id, "producer_epoch": self.epoch, "is_transactional": True, **identity}
        return batch_of(*values, base_sequence=sequence, **given)

    def send(self, topic: str, *values: bytes, partition: int = 0, version: int = 9, **identity: Any) -> Any:
        """The partition's answer."""
        records = self.batch(topic, *values, partition=partition, **identity)
        request = produce_request(topic, records, partition=partition)
        request.transactional_id = self.name
        return self.client.call(request, version).responses[0].partition_responses[0]

    def commit_offset(self, group: str, topic: str, offset: int, *, version: int = 3, **fields: Any) -> int:
        asked = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        given = {"producer_id": self.id, "producer_epoch": self.epoch, **fields}
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[asked])],
            **given,
        )
        return int(self.client.call(request, version).topics[0].partitions[0].error_code)

    def end(self, *, is_commit: bool = True, version: int = 3) -> Any:
        answer = end(self.client, self._identity, is_commit=is_commit, version=version)
        if version >= 5 and answer.error_code == 0:
            if (answer.producer_id, answer.producer_epoch) != (self.id, self.epoch):
                self._sequences.clear()
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer


def write_markers(client: RawClient, topic: str, producer_id: int, **fields: Any) -> list[int]:
    """The codes by partition."""
    partitions = fields.pop("partitions", [0])
    version = fields.pop("version", 1)
    marker = WritableTxnMarker(
        producer_id=producer_id,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)],
        **fields,
    )
    (answer,) = client.call(WriteTxnMarkersRequest(markers=[marker]), version).markers
    assert answer.producer_id == producer_id
    return [row.error_code for row in answer.topics[0].partitions]


def stable_offset(client: RawClient, topic: str, partition: int = 0) -> int:
    return int(fetch(client, topic, partition=partition).last_stable_offset)


def wait_until_stable(client: RawClient, topic: str, partition: int = 0) -> None:
    """Until the markers of every transaction that has ended are in."""

    def is_stable() -> bool:
        answer = fetch(client, topic, partition=partition)
        return bool(answer.last_stable_offset == answer.high_watermark)

    wait_for("the last stable offset", is_stable)
