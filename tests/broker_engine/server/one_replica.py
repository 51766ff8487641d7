"""One replica that leads its partition, without an event loop: real log, core and LocalPartition on files in memory.

replica = OneReplica(LogConfig(segment_bytes=400))
replica.send(7, b"value")            # in producer 7's transaction, which begins with it
replica.end(7, is_commit=True)
replica.committed_values()           # as a read_committed consumer reads, fetch after fetch
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from broker_engine.clock import Clock
from broker_engine.config import BrokerConfig, TopicConfig
from broker_engine.log.config import LogConfig
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.partition.core import AckDurability, PartitionCore, PartitionSettings
from broker_engine.records.batch import Record, decode_records, iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import TxnMarker, marker_batch, read_marker
from broker_engine.server.local_partition import LocalPartition
from tests.broker_engine.log.harness import DIRECTORY, TOPIC_ID, ManualClock
from tests.broker_engine.server.replicas import NAME

CACHES = (".index", ".timeindex", ".txnindex", ".snapshot")


class OneReplica:
    def __init__(
        self, config: LogConfig | None = None, durability: AckDurability = AckDurability.FSYNC, **settings: Any
    ) -> None:
        self.files = MemoryFiles()
        self.clock: Clock = ManualClock()
        self.config = config or LogConfig()
        self.settings = PartitionSettings(ack_durability=durability, **settings)
        self._sequences: dict[int, int] = {}
        self._wanted_flush = False
        self.high_watermark = 0
        """As in the checkpoint of the last run."""
        self.local = self._open(recovery_point=None)

    def _open(self, recovery_point: int | None) -> LocalPartition:
        log = ReplicaLog.open(
            self.files, DIRECTORY, self.config, self.clock, topic_id=TOPIC_ID, recovery_point=recovery_point
        )
        core = PartitionCore(
            leader_epoch=1,
            replicas=(1,),
            isr=(1,),
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            durable_end_offset=log.durable_end_offset,
            high_watermark=self.high_watermark,
            settings=self.settings,
        )
        core.restore(log.producer_snapshots(), log.iter_batches, self.clock.now_ms())
        return LocalPartition(
            name=NAME,
            index=0,
            topic_id=TOPIC_ID,
            log=log,
            core=core,
            leader_id=1,
            config=TopicConfig.resolve({}, BrokerConfig.load({}, {}), replication_factor=1),
            clock=self.clock,
            request_flush=self._request_flush,
            on_changed=lambda local: None,
        )

    def _request_flush(self, local: LocalPartition) -> None:
        self._wanted_flush = True

    @property
    def core(self) -> PartitionCore:
        assert self.local.leading is not None
        return self.local.leading

    # --- writing

    def append(self, batch: bytes) -> int:
        """With the guard of a verification that went well."""
        guard = self.core.producers.begin_verification(parse_header(batch), is_adding=False)
        return self.local.append(memoryview(batch), produce_version=11, acks=-1, guard=guard).base_offset

    def send(
        self, producer_id: int, *values: bytes, key: bytes | None = None, epoch: int = 0, is_plain: bool = False
    ) -> int:
        sequence = self._sequences.get(producer_id, 0)
        batch = build_batch(
            [NewRecord(self.clock.now_ms(), key, value) for value in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=not is_plain,
        )
        offset = self.append(batch)
        self._sequences[producer_id] = sequence + len(values)
        return offset

    def end(self, producer_id: int, *, is_commit: bool, epoch: int = 0) -> int:
        """Where the marker lies."""
        marker = TxnMarker(is_commit, 0)
        self.core.check_marker(producer_id, epoch, marker, 1)
        return self.local.append_own(marker_batch(producer_id, epoch, marker, self.clock.now_ms()), marker) - 1

    def flush(self) -> None:
        while self._wanted_flush:
            self._wanted_flush = False
            job = self.local.flush_job()
            if job is not None:
                job.run()
                self.local.on_flushed(job)

    # --- restarts

    def stop_and_start(self, *, are_caches_kept: bool = True) -> None:
        self.flush()
        self.high_watermark = self.local.high_watermark
        recovery_point = self.local.recovery_point
        self.local.log.close()
        if not are_caches_kept:
            self._remove_caches()
            recovery_point = 0
        self._reopen(recovery_point)

    def kill_and_start(self) -> None:
        """What was written is there; nobody wrote a checkpoint lately."""
        self._reopen(recovery_point=0)

    def lose_power_and_start(self) -> None:
        """What was synced is there."""
        recovery_point = self.local.recovery_point
        self.files.crash()
        self._reopen(recovery_point)

    def _reopen(self, recovery_point: int) -> None:
        self.local = self._open(recovery_point)
        self._sequences = {producer_id: producer.next_sequence for producer_id, producer in self.core.producers.items()}
        self._wanted_flush = True
        self.flush()

    def _remove_caches(self) -> None:
        for name in self.files.list_dir(DIRECTORY):
            if name.endswith(CACHES):
                self.files.unlink(f"{DIRECTORY}/{name}")

    # --- reading

    def committed_records(self, offset: int | None = None, *, bytes_max: int = 1 << 20) -> list[Record]:
        """Everything up to the last stable offset, by the rules of Kafka's own consumer."""
        local, found = self.local, list[Record]()
        position = local.log_start_offset if offset is None else offset
        while position < local.last_stable_offset:
            read = local.read(position, bytes_max=bytes_max, is_committed_only=True, at_least_one=True)
            aborted = local.aborted_in(read, position)
            data = b"".join(each.read() for each in read.ranges)
            read.release()
            if not data:
                break
            records, position = consume(data, aborted, position)
            found += records
        return found

    def committed_values(self, offset: int | None = None, *, bytes_max: int = 1 << 20) -> list[bytes | None]:
        return [record.value for record in self.committed_records(offset, bytes_max=bytes_max)]


def consume(data: bytes, aborted: Iterable[AbortedTransaction], position: int) -> tuple[list[Record], int]:
    """What a consumer makes of one answer: its records, and where it goes on."""
    waiting = sorted(aborted, key=lambda each: each.first_offset)
    passed_over: set[int] = set()
    found: list[Record] = []
    for batch in iter_batches(data):
        header = parse_header(batch)
        while waiting and waiting[0].first_offset <= header.last_offset:
            passed_over.add(waiting.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and not marker.is_commit:
                passed_over.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in passed_over):
            found += [each for each in decode_records(batch, max_bytes=1 << 20) if each.offset >= position]
        position = header.next_offset
    return found, position
