"""How many files the process may have open, and how many of them logs may keep open at once."""

from __future__ import annotations

import logging
import resource

log = logging.getLogger(__name__)

LIMIT_ENOUGH = 100_000
LOGS_MAX = 32_000
_WARN_BELOW = 4_096


def raise_limit() -> None:
    """Shells give a process 1,024, though the system would allow more; a JVM takes what it may, and so do we."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = LIMIT_ENOUGH if hard == resource.RLIM_INFINITY else min(hard, LIMIT_ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < _WARN_BELOW:
        log.warning("this process may open %d files: see `ulimit -Hn`", wanted)


def allowed_to_logs() -> int:
    """Three quarters of all: the rest is for connections, and for files that are open for a moment."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return LOGS_MAX if soft == resource.RLIM_INFINITY else min(LOGS_MAX, soft * 3 // 4)
