"""Writes this broker's own partition of `__telemetry` once a second, as long as the broker runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

from broker_engine.errors import BrokerError
from broker_engine.ids import NO_LEADER
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from broker_engine.names import Name
from broker_engine.records.builder import BatchBuilder, NewRecord
from broker_engine.server.complaint import Complaint
from broker_engine.server.local_partition import LocalPartition
from broker_engine.telemetry.groups import GroupTeller
from broker_engine.telemetry.readers import ReaderTeller
from broker_engine.telemetry.roster import Entry, News, PartitionId, Roster, speaker_of
from broker_engine.telemetry.rows import LedCensus, LogCensus, census_of_led, census_of_logs, cluster_row, partition_row
from broker_engine.telemetry.sampler import EVERY_TICK, EncodedRecord, Sampler
from broker_engine.telemetry.schema import BrokerRow, ClusterRow, Key, Kind, Row, TenantRow
from broker_engine.telemetry.unread import UnreadTimes

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

_BATCH_BYTES_MAX = 512 * 1024
NO_NEWS = News()
CHANGED_PER_TICK_MAX = 500
"""Of the partitions that are written to, the longest untold first: some 10 ms of the event loop each second. Where
more of them are busy, each is told of every few seconds."""
TICKS_PER_CENSUS = 5
"""It looks at every log: with thousands of them that is worth something."""


class TelemetryWriter:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        self._interval_s = config.telemetry_interval_ms / 1000
        self._sampler = Sampler(config.telemetry_snapshot_interval_ms // config.telemetry_interval_ms)
        self._started_ms = broker.clock.now_ms()
        self._loop_lag_ms = 0
        self._complaint = Complaint()
        """Why the last tick was not written."""
        self._roster = Roster(broker.node_id, self._partition_key, self._sampler.turn_of)
        self._followed_topics: object = None
        self._followed: tuple[int, bool] = (-1, False)
        self._settling: list[LocalPartition] = []
        self._led, self._logs = LedCensus(), LogCensus()
        self._groups = GroupTeller(self._key, self._sampler.turn_of, self._topic_name)
        self._readers = ReaderTeller(broker.fetch_positions, self._roster.find, self._key, self._sampler.turn_of)
        self.unread = UnreadTimes(broker, self._groups)
        """Runs beside `run`: reading logs takes time, and telling of the broker does not wait for it."""

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._interval_s
            await asyncio.sleep(self._interval_s)
            self._loop_lag_ms = max(0, round((loop.time() - due) * 1000))
            try:
                self.tick()
            except BrokerError as error:
                if self._complaint.is_news(str(error)):
                    log.warning("telemetry is not written: %s", error)
            else:
                self._complaint.settle()

    def tick(self) -> None:
        target = self._own_partition()
        if target is None:
            return
        now_ms = self._broker.clock.now_ms()
        news = self._follow()
        self._count(news)
        self._groups.follow(self._broker.groups.ready())
        self._readers.follow(now_ms)
        records = self._sampler.sample(self._rows(news, now_ms))
        for key in (*news.handed_over, *self._groups.take_handed_over(), *self._readers.take_handed_over()):
            self._sampler.drop(key)
        for key in (*news.gone, *self._groups.take_gone()):
            records += self._sampler.forget(key, now_ms)
        for batch in _batches(records, now_ms):
            target.append_own(batch)
        # Writing moved the telemetry partition's own offsets: that alone is no news for the next second.
        self._broker.partitions.changed.pop(target, None)

    def _count(self, news: News) -> None:
        if news is not NO_NEWS:
            self._led = census_of_led(self._roster.led())
        if news is not NO_NEWS or self._sampler.turn % TICKS_PER_CENSUS == 0:
            self._logs = census_of_logs(self._broker.partitions.all())

    def _own_partition(self) -> LocalPartition | None:
        topic = self._broker.image.topic(TELEMETRY_TOPIC)
        return None if topic is None else self._broker.partitions.find(topic.id, self._broker.node_id)

    @property
    def _is_speaker(self) -> bool:
        return speaker_of(self._broker.image, self._controller) == self._broker.node_id

    @property
    def _controller(self) -> int:
        leader_id, _ = self._broker.known_leader
        return NO_LEADER if leader_id is None else leader_id

    def _follow(self) -> News:
        image, partitions = self._broker.image, self._broker.partitions
        seen = (len(partitions), self._is_speaker)
        if self._followed_topics is image.topics and self._followed == seen:
            return NO_NEWS
        self._followed_topics, self._followed = image.topics, seen
        return self._roster.follow(image, partitions.all(), is_speaker=self._is_speaker)

    def _rows(self, news: News, now_ms: int) -> Iterator[tuple[Key, int, Row]]:
        for entry in self._entries(news).values():
            yield entry.key, entry.turn, partition_row(entry, now_ms)
        turn, wall_offset_ms = self._sampler.turn, now_ms - self._broker.clock.monotonic_ms()
        yield from self._readers.rows(turn, now_ms)
        yield from self._groups.rows(turn, now_ms, wall_offset_ms)
        for tenant, usage in self._broker.usage.items():
            key = self._key(Kind.TENANT, tenant=tenant)
            row = TenantRow(now_ms, usage.bytes_in, usage.bytes_out, usage.records_in, usage.requests)
            yield key, self._sampler.turn_of(key), row
        yield self._key(Kind.BROKER), EVERY_TICK, self._broker_row(now_ms)
        if self._is_speaker:
            key = self._key(Kind.CLUSTER)
            yield key, self._sampler.turn_of(key), self._cluster_row(now_ms)

    def _entries(self, news: News) -> dict[PartitionId, Entry]:
        """What may have changed, and what has its turn."""
        partitions = self._broker.partitions
        changed = list(islice(partitions.changed, CHANGED_PER_TICK_MAX))
        for local in changed:
            del partitions.changed[local]
        entries = {**news.entries, **dict(self._roster.of_turn(self._sampler.turn))}
        entries |= islice(self._roster.unsettled(), CHANGED_PER_TICK_MAX)
        # Followers reach what was appended in one second in the next, when nothing else may happen any more.
        for local in (*changed, *self._settling):
            partition = (local.topic_id, local.index)
            if (entry := self._roster.find(partition)) is not None:
                entries[partition] = entry
        self._settling = [local for local in changed if len(local.core.replicas) > 1]
        return entries

    def _partition_key(self, name: Name, index: int) -> Key:
        return self._key(Kind.PARTITION, tenant=name.tenant, name=name.name, partition=index)

    def _key(self, kind: Kind, *, tenant: str = "", name: str = "", partition: int = -1, group: str = "") -> Key:
        broker = self._broker
        return Key(broker.node_id, broker.broker_epoch, kind, tenant, name, partition, group)

    def _topic_name(self, topic_id: UUID) -> Name | None:
        topic = self._broker.image.topics.get(topic_id)
        return None if topic is None else topic.name

    def _cluster_row(self, now_ms: int) -> ClusterRow:
        return cluster_row(
            self._broker.image,
            controller=self._controller,
            controller_epoch=self._broker.known_leader[1],
            unclean_election_count=self._roster.unclean_election_count,
            now_ms=now_ms,
        )

    def _broker_row(self, now_ms: int) -> BrokerRow:
        broker, counters = self._broker, self._broker.counters
        led, logs = self._led, self._logs
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
            leader_count=led.leader_count,
            under_replicated_count=led.under_replicated_count,
            under_min_isr_count=led.under_min_isr_count,
            leaderless_count=self._roster.leaderless_here_count,
            offline_count=logs.offline_count,
            size_bytes=logs.size_bytes,
            is_degraded=broker.stalled_disk.is_stalled,
            damaged_count=broker.mender.damaged_count,
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
