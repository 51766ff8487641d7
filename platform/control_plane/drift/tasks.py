"""The periodic task. The wish in the database is the truth; this finds what no task and no request brought about."""

from __future__ import annotations

import logging

from control_plane.celery import task
from control_plane.cluster.actions import end_throttle_when_done
from control_plane.drift.identities import mend_identities
from control_plane.drift.topics import mend_topics
from control_plane.engine.deadline import Deadline
from control_plane.engine.factory import get_engine
from control_plane.engine.interface import EngineUnavailable

log = logging.getLogger(__name__)

RUN_S_MAX = 60.0


@task("control_plane.drift.tasks.mend_drift")
def mend_drift() -> int:
    """How many things were mended. An engine that is away is no error: the next run tries again."""
    engine, deadline = get_engine(), Deadline.after(RUN_S_MAX)
    try:
        mended = mend_identities(engine, deadline) + mend_topics(engine, deadline)
        end_throttle_when_done()
    except EngineUnavailable as error:
        log.warning("drift was not mended this time: %s", error)
        return 0
    if mended:
        log.info("mended %d things adrift", mended)
    return mended
