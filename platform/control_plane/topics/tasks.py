"""Celery's part for topics: the retry. Tasks take ids and may run twice."""

from __future__ import annotations

from control_plane.celery import task
from control_plane.topics.reconcile import IN_BACKGROUND_S, reconcile


@task("control_plane.topics.tasks.reconcile_topic")
def reconcile_topic(topic_pk: int) -> None:
    """One long try. If that does not do it, the periodic task comes by."""
    reconcile(topic_pk, budget_s=IN_BACKGROUND_S)
