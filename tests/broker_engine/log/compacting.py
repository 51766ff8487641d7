"""Running a compaction as the broker does, step by step, with a place to stop after each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker_engine.log.compaction import CompactionJob
from broker_engine.log.partition_log import PartitionLog
from broker_engine.records.control import LastBatch


def run_compaction(
    log: PartitionLog,
    *,
    now_ms: int,
    limit_offset: int | None = None,
    last_batches: Mapping[int, LastBatch] | None = None,
    keys_max: int = 1000,
    on_step: Callable[[str], None] = lambda step: None,
) -> CompactionJob | None:
    """The job, ended; None if nothing was due."""
    job = log.compaction_job(
        limit_offset=log.log_end_offset if limit_offset is None else limit_offset,
        last_batches=lambda limit_offset: last_batches or {},
        now_ms=now_ms,
        keys_max=keys_max,
    )
    if job is None:
        return None
    job.prepare()
    on_step("prepared")
    for cleaning in job.cleanings():
        cleaning.clean()
        on_step("cleaned")
        deleted = log.swap_in(cleaning)
        if deleted is None:
            cleaning.discard()
            continue
        on_step("swapped in")
        cleaning.finish()
        on_step("finished")
        log.settle(cleaning)
        for segment in deleted:
            segment.remove()
        on_step("settled")
    log.end_compaction(job)
    return job
