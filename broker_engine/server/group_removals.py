"""Takes groups and offsets out of the log: where somebody asks for it, and where they are too old."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from broker_engine.errors import ErrorCode
from broker_engine.groups.records import GroupRecord
from broker_engine.groups.shard import GroupShard, Subscribed, TopicPartition
from broker_engine.server.shards import Loaded, Shards, acked

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

_BATCH_OVERHEAD_BYTES = 61
_RECORD_OVERHEAD_BYTES = 32
"""At most: seven numbers of variable length."""


class GroupRemovals:
    def __init__(
        self, broker: Broker, shards: Shards[GroupShard], arm: Callable[[Loaded[GroupShard], str], None]
    ) -> None:
        self._broker = broker
        self._shards = shards
        self._arm = arm

    async def delete_group(self, name: str) -> ErrorCode:
        loaded = self._shards.find(name)
        group = loaded.shard.group(name)
        if group is None and not loaded.shard.committed(name) and not loaded.shard.pending.places_of(name):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None and group.members:
            return ErrorCode.NON_EMPTY_GROUP
        return await self._remove(loaded, loaded.shard.removal(name), [name])

    async def delete_offsets(self, name: str, places: Iterable[TopicPartition]) -> ErrorCode:
        loaded = self._shards.find(name)
        return await self._remove(loaded, loaded.shard.offset_removals(name, places), [])

    async def keep_expiring(self, subscribed: Subscribed) -> None:
        retention_ms = self._broker.config.offsets_retention_minutes * 60_000
        interval_s = self._broker.config.offsets_retention_check_interval_ms / 1000
        while True:
            await asyncio.sleep(interval_s)
            for index in [loaded.index for loaded in self._shards.ready()]:
                code = await self._expire(index, retention_ms, subscribed)
                if code is not ErrorCode.NONE:
                    log.info("expired offsets are not removed yet: %s", code.name)

    async def _expire(self, index: int, retention_ms: int, subscribed: Subscribed) -> ErrorCode:
        loaded = self._shards.at(index)  # by its number: while others were written it may have gone, and come again
        if loaded is None:
            return ErrorCode.NONE
        records, gone = loaded.shard.expired(self._broker.clock.now_ms(), retention_ms, subscribed)
        return await self._remove(loaded, records, gone)

    async def _remove(
        self, loaded: Loaded[GroupShard], records: Sequence[GroupRecord], names: Sequence[str]
    ) -> ErrorCode:
        """Groups go when it is appended: who joins after that joins a new one. Offsets go when it is acknowledged."""
        last: asyncio.Future[ErrorCode] | None = None
        for batch in _batches(records, loaded.local.message_bytes_max):
            last = self._shards.write(loaded, batch)
            if last.done() and last.result() is not ErrorCode.NONE:
                return last.result()
        for name in names:
            loaded.shard.forget(name)
            self._arm(loaded, name)
        return ErrorCode.NONE if last is None else await acked(last)


def _batches(records: Sequence[GroupRecord], bytes_max: int) -> Iterator[list[GroupRecord]]:
    """In order, each as large as a partition takes it."""
    batch: list[GroupRecord] = []
    size_bytes = _BATCH_OVERHEAD_BYTES
    for record in records:
        record_bytes = len(record.key) + len(record.value or b"") + _RECORD_OVERHEAD_BYTES
        if batch and size_bytes + record_bytes > bytes_max:
            yield batch
            batch, size_bytes = [], _BATCH_OVERHEAD_BYTES
        batch.append(record)
        size_bytes += record_bytes
    if batch:
        yield batch
