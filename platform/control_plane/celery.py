"""The Celery application, and the one way to put work on its queue.

A queued task is a hint, never the truth: the wish in the database is, and the periodic task finds what was lost.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from celery import Celery
from kombu.exceptions import OperationalError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")

log = logging.getLogger(__name__)

app = Celery("control_plane")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


P = ParamSpec("P")
R = TypeVar("R")


def task(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`app.task` with the function's own type kept."""

    def register(function: Callable[P, R]) -> Callable[P, R]:
        registered: Callable[P, R] = app.task(name=name)(function)
        return registered

    return register


def enqueue(task: Any, *arguments: object) -> None:
    """Ask a worker to run `task`. A queue that is down delays the work until the next periodic run; it fails nobody."""
    try:
        task.apply_async(args=arguments, retry=False)
    except (OperationalError, OSError):
        log.exception("the task queue did not take %s%r; the periodic task will find the work", task.name, arguments)
