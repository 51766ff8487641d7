"""The broker's side, seen by a client of nobody's library: plain requests, stored batches as they lie in the log.

It asks for leaders and coordinators by itself, so it works on one broker, on three, and on Apache Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from broker_engine.records.batch import BatchHeader, Record, decode_records, iter_batches, parse_header
from broker_engine.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker_engine.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from broker_engine.wire.messages.describe_groups import DescribeGroupsRequest
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from broker_engine.wire.messages.list_groups import ListGroupsRequest
from broker_engine.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_engine.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker_engine.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from broker_engine.wire.schema import Message
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import batch_of, fetch_request, produce_request
from tests.broker_engine.raw_client import RawClient

_RETRIABLE = frozenset({3, 5, 6, 14, 15, 16})
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Batch:
    header: BatchHeader
    records: tuple[Record, ...]


class Observer:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap.split(",", maxsplit=1)[0]

    # -- what is written before

    def create(self, partitions_of: dict[str, int]) -> None:
        topics = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=-1)
            for name, count in partitions_of.items()
        ]
        for each in self._ask(self._controller(), CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics:
            assert each.error_code == 0, each
        for name, count in partitions_of.items():
            wait_for(f"leaders of {name}", lambda name=name, count=count: self._has_leaders(name, count))

    def seed(self, topic: str, partition: int, values: Iterable[bytes]) -> None:
        request = produce_request(topic, batch_of(*values), partition=partition)
        answer = wait_for("an answer", lambda: self._settled(lambda: self._seeded(topic, partition, request)))
        assert answer.error_code == 0, answer

    def commit(self, group: str, topic: str, offset: int, *, retention_ms: int = -1) -> None:
        """A commit without a member. With a retention it is in the older version, which can say how long it counts."""
        wanted = OffsetCommitRequestTopic(
            name=topic, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        )
        request = OffsetCommitRequest(group_id=group, topics=[wanted], retention_time_ms=retention_ms)
        version = 8 if retention_ms < 0 else 4

        def attempt() -> Any:
            return self._ask(self._coordinator(group), request, version).topics[0].partitions[0]

        answer = wait_for("a commit", lambda: self._settled(attempt))
        assert answer.error_code == 0, answer

    def trim(self, topic: str, before_offset: int) -> None:
        wanted = DeleteRecordsTopic(
            name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=before_offset)]
        )
        request = DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000)
        (answer,) = self._ask(self._leader(topic, 0), request, 2).topics[0].partitions
        assert answer.error_code == 0, answer

    # -- what is there afterwards

    def batches(self, topic: str, partition: int = 0) -> list[Batch]:
        return [batch for batch, _ in self._fetched(topic, partition, isolation=0)]

    def values(self, topic: str, partition: int = 0) -> list[str]:
        batches = self.batches(topic, partition)
        return [
            (record.value or b"").decode()
            for batch in batches
            if not batch.header.is_control
            for record in batch.records
        ]

    def committed_values(self, topic: str, partition: int = 0) -> list[str]:
        """What a read_committed reader shows: up to the last stable offset, without aborted transactions."""
        return [value for _, value in self.committed_pairs(topic, partition)]

    def committed_pairs(self, topic: str, partition: int = 0) -> list[tuple[str, str]]:
        """The same with keys."""
        fetched = self._fetched(topic, partition, isolation=1)
        told = {(each.first_offset, each.producer_id) for _, aborted in fetched for each in aborted}
        pairs: list[tuple[str, str]] = []
        dropped: set[int] = set()
        for batch, _ in fetched:
            header = batch.header
            dropped |= {producer_id for first_offset, producer_id in told if first_offset == header.base_offset}
            if header.is_control:
                dropped.discard(header.producer_id)  # its transaction ends here, one way or the other
            elif header.producer_id not in dropped or not header.is_transactional:
                pairs += [((record.key or b"").decode(), (record.value or b"").decode()) for record in batch.records]
        return pairs

    def markers(self, topic: str, partition: int = 0) -> list[str]:
        """How each transaction ended in this partition."""
        controls = [batch.records[0] for batch in self.batches(topic, partition) if batch.header.is_control]
        return ["commit" if (record.key or b"")[2:4] == b"\x00\x01" else "abort" for record in controls]

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])])
        (answer,) = self._ask(self._coordinator(group), request, 8).groups
        assert answer.error_code == 0, answer
        offset: int = answer.topics[0].partitions[0].committed_offset
        return None if offset < 0 else offset

    def start_offset(self, topic: str, partition: int = 0) -> int:
        return self._offset(topic, partition, -2)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        return self._offset(topic, partition, -1)

    def partition_count(self, topic: str) -> int | None:
        """None where there is no such topic."""
        shown = self._describe(topic)
        return None if shown.error_code == 3 else len(shown.partitions)

    def groups(self) -> dict[str, str]:
        """All that any broker coordinates, with their type: `classic` or `consumer`."""
        nodes = self._metadata([]).brokers
        answers = [self._ask(f"{node.host}:{node.port}", ListGroupsRequest(), 5) for node in nodes]
        return {group.group_id: group.group_type for answer in answers for group in answer.groups}

    def instance_ids(self, group: str) -> list[str | None]:
        (answer,) = self._ask(self._coordinator(group), DescribeGroupsRequest(groups=[group]), 5).groups
        return [member.group_instance_id for member in answer.members]

    # -- how

    def _fetched(self, topic: str, partition: int, *, isolation: int) -> list[tuple[Batch, list[Any]]]:
        """Each batch from the beginning to the end that this reader may see, with the aborted transactions told."""
        found: list[tuple[Batch, list[Any]]] = []
        offset = self.start_offset(topic, partition)
        while True:
            request = fetch_request(topic, offset, partition=partition, isolation_level=isolation)
            answer = self._ask(self._leader(topic, partition), request, 12).responses[0].partitions[0]
            assert answer.error_code == 0, answer
            raw = [bytes(batch) for batch in iter_batches(answer.records or b"")]
            if not raw:
                return found
            for batch in raw:
                header = parse_header(batch)
                records = tuple(decode_records(batch, max_bytes=1 << 24))
                found.append((Batch(header, records), list(answer.aborted_transactions or ())))
                offset = header.next_offset

    def _offset(self, topic: str, partition: int, question: int) -> int:
        asked = ListOffsetsTopic(
            name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=question)]
        )
        request = ListOffsetsRequest(replica_id=-1, topics=[asked])
        offset: int = self._ask(self._leader(topic, partition), request, 7).topics[0].partitions[0].offset
        return offset

    def _seeded(self, topic: str, partition: int, request: Message) -> Any:
        return self._ask(self._leader(topic, partition), request, 9).responses[0].partition_responses[0]

    def _settled(self, attempt: Any) -> Any:
        answer = attempt()
        return None if answer.error_code in _RETRIABLE else answer

    def _ask(self, address: str, request: Message, version: int) -> Any:
        with RawClient(address) as client:
            return client.call(request, version)

    def _metadata(self, topics: list[str]) -> Any:
        asked = [MetadataRequestTopic(name=name) for name in topics]
        return self._ask(self._bootstrap, MetadataRequest(topics=asked, allow_auto_topic_creation=False), 9)

    def _describe(self, topic: str) -> Any:
        (shown,) = self._metadata([topic]).topics
        return shown

    def _has_leaders(self, topic: str, count: int) -> bool:
        partitions = self._describe(topic).partitions
        return len([each for each in partitions if each.leader_id >= 0]) == count

    def _controller(self) -> str:
        shown = self._metadata([])
        return next((f"{n.host}:{n.port}" for n in shown.brokers if n.node_id == shown.controller_id), self._bootstrap)

    def _leader(self, topic: str, partition: int) -> str:
        shown = self._metadata([topic])
        (described,) = shown.topics
        leader = next(each.leader_id for each in described.partitions if each.partition_index == partition)
        return next(f"{node.host}:{node.port}" for node in shown.brokers if node.node_id == leader)

    def _coordinator(self, group: str) -> str:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._ask(self._bootstrap, FindCoordinatorRequest(key=group, key_type=0), 3)
            if answer.error_code == 0:
                return f"{answer.host}:{answer.port}"
            assert answer.error_code in _RETRIABLE, answer
            assert time.monotonic() < deadline, f"no coordinator for {group}: {answer}"
            time.sleep(0.05)  # between two looks
