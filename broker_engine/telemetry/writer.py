"""Writes this broker's own partition of `__telemetry` once a second, as long as the broker runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError
from broker_engine.names import ROOT, TELEMETRY, Name
from broker_engine.records.builder import BatchBuilder, NewRecord
from broker_engine.server.data_dir import id_text
from broker_engine.server.local_partition import LocalPartition
from broker_engine.telemetry.sampler import EncodedRecord, Sampler
from broker_engine.telemetry.schema import BrokerRow, Key, Kind, PartitionRow, ReplicaRow, Row, TenantRow

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

TOPIC = Name(ROOT, TELEMETRY)
TOPIC_CONFIGS = {
    "ack.durability": "page-cache",
    "cleanup.policy": "delete",
    "retention.ms": "3600000",
    "retention.bytes": str(64 << 20),
    "segment.bytes": str(4 << 20),
}
_BATCH_BYTES_MAX = 512 * 1024


class TelemetryWriter:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        self._interval_s = config.telemetry_interval_ms / 1000
        self._sampler = Sampler(config.telemetry_snapshot_interval_ms // config.telemetry_interval_ms)
        self._started_ms = broker.clock.now_ms()
        self._loop_lag_ms = 0
        self._keys: dict[LocalPartition, tuple[Key, int]] = {}

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._interval_s
            await asyncio.sleep(self._interval_s)
            self._loop_lag_ms = max(0, round((loop.time() - due) * 1000))
            try:
                self.tick()
            except BrokerError as error:
                log.warning("telemetry was not written: %s", error)

    def tick(self) -> None:
        target = self._own_partition()
        if target is None:
            return
        now_ms = self._broker.clock.now_ms()
        records = self._sampler.sample(self._rows(now_ms))
        for local in [local for local in self._keys if local.is_retired]:
            key, _ = self._keys.pop(local)
            records += self._sampler.forget(key, now_ms)
        for batch in _batches(records, now_ms):
            target.append_own(batch)
        # Writing moved the telemetry partition's own offsets: that alone is no news for the next second.
        self._broker.partitions.changed.pop(target, None)

    def _own_partition(self) -> LocalPartition | None:
        topic = self._broker.image.topic(TOPIC)
        return None if topic is None else self._broker.partitions.find(topic.id, self._broker.node_id)

    def _rows(self, now_ms: int) -> Iterator[tuple[Key, int, Row]]:
        partitions = self._broker.partitions
        changed, partitions.changed = partitions.changed, {}
        for local in partitions.all():
            key, turn = self._keys.get(local) or self._learn(local)
            if local in changed or self._sampler.is_turn(turn):
                yield key, turn, _partition_row(local, now_ms)
        for tenant, usage in self._broker.usage.items():
            key = self._key(Kind.TENANT, tenant=tenant)
            row = TenantRow(now_ms, usage.bytes_in, usage.bytes_out, usage.records_in, usage.requests)
            yield key, self._sampler.turn_of(key), row
        key = self._key(Kind.BROKER)
        yield key, self._sampler.turn_of(key), self._broker_row(now_ms)

    def _learn(self, local: LocalPartition) -> tuple[Key, int]:
        key = self._key(Kind.PARTITION, tenant=local.name.tenant, name=local.name.name, partition=local.index)
        self._keys[local] = key, self._sampler.turn_of(key)
        return self._keys[local]

    def _key(self, kind: Kind, *, tenant: str = "", name: str = "", partition: int = -1) -> Key:
        broker = self._broker
        return Key(broker.node_id, broker.broker_epoch, kind, tenant, name, partition)

    def _broker_row(self, now_ms: int) -> BrokerRow:
        broker, counters = self._broker, self._broker.counters
        return BrokerRow(
            at_ms=now_ms,
            started_ms=self._started_ms,
            connection_count=broker.connection_count,
            partition_count=len(broker.partitions),
            bytes_in=counters.bytes_in,
            bytes_out=counters.bytes_out,
            sendfile_calls=counters.sendfile_calls,
            sendfile_bytes=counters.sendfile_bytes,
            request_bytes_in_flight=broker.budget.taken_bytes,
            flush_count=broker.flush.flush_count,
            flush_ms_total=broker.flush.flush_ms_total,
            loop_lag_ms=self._loop_lag_ms,
            disk_free_bytes=broker.disk_floor.free_bytes,
            is_disk_low=broker.disk_floor.is_low,
        )


def _partition_row(local: LocalPartition, now_ms: int) -> PartitionRow:
    core = local.core
    own_end = local.log.log_end_offset
    return PartitionRow(
        at_ms=now_ms,
        topic_id=id_text(local.topic_id),
        leader=local.leader_id,
        leader_epoch=core.leader_epoch,
        isr=list(core.isr),
        replicas=[ReplicaRow(broker, own_end if broker == local.leader_id else -1) for broker in core.replicas],
        log_start_offset=local.log_start_offset,
        high_watermark=local.high_watermark,
        last_stable_offset=local.last_stable_offset,
        log_end_offset=own_end,
        size_bytes=local.log.size_bytes,
        last_append_ms=local.last_append_ms,
    )


def _batches(records: Iterable[EncodedRecord], now_ms: int) -> Iterator[bytes]:
    builder = BatchBuilder(size_bytes_max=_BATCH_BYTES_MAX)
    for key, value in records:
        record = NewRecord(now_ms, key, value)
        if not builder.append(record):
            yield builder.close()
            builder = BatchBuilder(size_bytes_max=_BATCH_BYTES_MAX)
            builder.append(record)
    if builder.count:
        yield builder.close()
