"""What only a follower does to its partition: take over the leader's batches and offsets, cut off what is not its.

Taking over happens on the loop at once, as appends do. A cut runs in a thread while the partition is busy, and so does
reading again what could not be read before. Before a cut no checkpoint may say that more is durable than will be left,
or a crash in between would look like damage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from broker_engine.errors import ErrorCode
from broker_engine.log.retention import DeletedSegment
from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.partition.producers import ProducerStates
from broker_engine.partition.replica import restored_producers
from broker_engine.records.control import TxnMarker, read_marker
from broker_engine.records.header import BatchHeader
from broker_engine.records.replicated import check_replicated
from broker_engine.server.local_partition import LocalPartition

log = logging.getLogger(__name__)

_PAUSE_S = 0.005
LowerPoints = Callable[[], Awaitable[None]]
"""Writes the recovery points; returns when they are on disk."""


@dataclass(frozen=True, slots=True)
class Position:
    """What a follower tells its leader of one partition. Equal positions need not be told twice."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    durable_offset: int


def position_of(local: LocalPartition, core: FollowerCore) -> Position:
    return Position(
        core.leader_epoch,
        core.log_end_offset,
        local.log.last_record_epoch,
        core.log_start_offset,
        core.durable_end_offset if core.is_fsync else core.log_end_offset,
    )


def take_records(local: LocalPartition, core: FollowerCore, records: memoryview, now_ms: int) -> bool:
    """Append what is news. True if the bytes ended inside a batch. CorruptBatch or BrokerError: that part is not in."""
    news = check_replicated(
        records,
        next_offset=core.log_end_offset,
        epoch_min=local.log.last_record_epoch,
        epoch_max=core.leader_epoch,
        is_log_empty=core.log_start_offset == core.log_end_offset,
    )
    if news.headers:
        _begin_with(local, core, news.headers[0].base_offset)

        def on_written(headers: Sequence[BatchHeader], position: int) -> None:
            for aborted in core.on_replicated(_with_markers(headers, records, position), local.monotonic_ms()):
                local.log.note_aborted(AbortedTransaction.of(aborted))

        with local.log.room_for_aborted(_abort_count(news.headers, records, news.start)):
            local.log.append_replica(records, news.headers, news.start, on_written)
        local.last_append_ms = now_ms
        local.after_append()
    return news.is_cut


def _abort_count(headers: Sequence[BatchHeader], records: memoryview, position: int) -> int:
    if not any(header.is_control for header in headers):
        return 0
    markers = (marker for _, marker in _with_markers(headers, records, position))
    return sum(marker is not None and not marker.is_commit for marker in markers)


def _begin_with(local: LocalPartition, core: FollowerCore, base_offset: int) -> None:
    if base_offset < core.log_end_offset:
        local.log.begin_lower(base_offset)
        core.on_truncated(base_offset, base_offset, core.producers)


def _with_markers(
    headers: Sequence[BatchHeader], records: memoryview, position: int
) -> list[tuple[BatchHeader, TxnMarker | None]]:
    batches: list[tuple[BatchHeader, TxnMarker | None]] = []
    for header in headers:
        end = position + header.size_bytes
        is_marker = header.is_control and header.is_transactional
        batches.append((header, read_marker(records[position:end]) if is_marker else None))
        position = end
    return batches


def take_offsets(
    local: LocalPartition, core: FollowerCore, high_watermark: int, log_start_offset: int
) -> list[DeletedSegment]:
    """The leader's high watermark and log start. Answers segments that are to be removed in a thread."""
    local.perform(core.on_leader_offsets(high_watermark))
    start_offset = min(log_start_offset, core.high_watermark)
    if start_offset <= core.log_start_offset:
        return []
    deleted = local.log.delete_records_before(start_offset)
    local.note_log_start()
    return deleted


async def cut_where_logs_part(
    local: LocalPartition, core: FollowerCore, epoch: int, leader_end_offset: int, lower_points: LowerPoints
) -> None:
    """The leader's log has nothing of our last epoch, or less: it named the largest epoch that it has, and its end."""
    _, own_end_offset = local.log.end_offset_for_epoch(epoch)
    offset = core.truncation_offset(max(0, own_end_offset), leader_end_offset)
    if offset < core.high_watermark:
        log.error(
            "%s-%d is cut to %d, below its high watermark %d: committed records were given up by an unclean election",
            local.name, local.index, offset, core.high_watermark,
        )  # fmt: skip
    else:
        log.info("%s-%d is cut from %d to %d", local.name, local.index, core.log_end_offset, offset)
    is_before_start = offset < local.log.log_start_offset
    await _cut(local, core, offset, lower_points, is_anew=is_before_start)


async def begin_anew(local: LocalPartition, core: FollowerCore, start_offset: int, lower_points: LowerPoints) -> None:
    """Nothing that we have is still in the leader's log, or it never was."""
    log.warning("%s-%d begins anew at offset %d, as its leader's log does", local.name, local.index, start_offset)
    await _cut(local, core, start_offset, lower_points, is_anew=True)


async def _cut(
    local: LocalPartition, core: FollowerCore, offset: int, lower_points: LowerPoints, *, is_anew: bool
) -> None:
    if local.following is not core:
        return  # another term has begun: its leader says what to cut
    with _busy(local):
        await _quiet(local)
        local.recovery_point_max = 0 if is_anew else offset
        try:
            await lower_points()
            producers = _unlearned(core, min(core.high_watermark, offset))
            await asyncio.to_thread(_cut_log, local, offset, producers, is_anew=is_anew)
            core.on_truncated(local.log.log_start_offset, local.log.log_end_offset, producers)
        finally:
            local.recovery_point_max = None
    local.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _cut_log(local: LocalPartition, offset: int, producers: ProducerStates, *, is_anew: bool) -> None:
    """In a thread: syncs, and reads what is left to know what producers did."""
    if is_anew:
        local.log.begin_anew(offset)
    else:
        local.log.truncate_to(offset)
    _learn(local, producers)


async def read_again(local: LocalPartition, core: FollowerCore) -> None:
    """All of the log can be read, and could not when it was opened: learn anew what producers did in it, and which of
    their transactions were aborted. What the leader sends meanwhile is not taken.
    """
    with _busy(local):
        await _quiet(local)
        producers = _unlearned(core, core.high_watermark)
        await asyncio.to_thread(_learn, local, producers)
        core.on_truncated(core.log_start_offset, core.log_end_offset, producers)


@contextmanager
def _busy(local: LocalPartition) -> Iterator[None]:
    assert local.busy is None, "one at a time"
    local.busy = asyncio.get_running_loop().create_future()
    try:
        yield
    finally:
        local.busy.set_result(None)
        local.busy = None


async def _quiet(local: LocalPartition) -> None:
    while local.log.is_flushing or local.log.is_swapping:  # noqa: ASYNC110 - each ends by itself, soon
        await asyncio.sleep(_PAUSE_S)


def _unlearned(core: FollowerCore, high_watermark: int) -> ProducerStates:
    return ProducerStates(expiration_ms=core.settings.producer_expiration_ms, high_watermark=high_watermark)


def _learn(local: LocalPartition, producers: ProducerStates) -> None:
    """In a thread."""
    if local.core.producers.is_partial:
        local.log.find_aborted_again()
    restored_producers(
        producers,
        local.log.producer_snapshots(),
        local.log.iter_batches,
        local.monotonic_ms(),
        unread_end_offset=local.log.unread_end_offset,
    )
