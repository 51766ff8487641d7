"""Replays what a partition of `__consumer_offsets` holds into a shard: this broker leads it now."""

from __future__ import annotations

import logging

from broker_engine.groups.shard import GroupShard, UnknownGroupRecord
from broker_engine.records.control import read_marker
from broker_engine.server.shards import StoredBatch

log = logging.getLogger(__name__)


def replay_stored(shard: GroupShard, batch: StoredBatch, now_ms: int) -> None:
    header = batch.header
    marker = read_marker(batch.data) if header.is_control and header.is_transactional else None
    if marker is not None:
        shard.end_transaction(header.producer_id, is_commit=marker.is_commit)
    for key, value in batch.pairs:
        try:
            if header.is_transactional:
                shard.replay_in_transaction(header.producer_id, key, value)
            else:
                shard.replay(key, value, now_ms)
        except UnknownGroupRecord as error:
            log.info("a record of __consumer_offsets is passed over: %s", error)
