"""Celery's part for API keys."""

from __future__ import annotations

from control_plane.celery import task
from control_plane.keys.push import push_key

IN_BACKGROUND_S = 30.0


@task("control_plane.keys.tasks.push")
def push(key_id: str) -> None:
    push_key(key_id, budget_s=IN_BACKGROUND_S)
