"""Bringing the engine to one topic's wish. May run twice, anywhere, at once: every step looks before it acts.

The outcome is written only if the wish is still the one that was worked for (its generation), so a wish that changed
meanwhile stays open and is worked on again.
"""

from __future__ import annotations

import logging

from control_plane.audit.actions import SYSTEM, record
from control_plane.engine.deadline import Deadline
from control_plane.engine.factory import get_engine
from control_plane.engine.interface import Engine, EngineRefused, EngineUnavailable, TopicName, TopicSpec, TopicView
from control_plane.topics.models import State, Topic

log = logging.getLogger(__name__)

IN_REQUEST_S = 5.0
IN_BACKGROUND_S = 30.0
ROUNDS_MAX = 3


def reconcile(topic_pk: int, *, budget_s: float) -> bool:
    """Work on the wish for at most `budget_s`. True when nothing is left to do for it."""
    topic = Topic.objects.select_related("tenant").filter(pk=topic_pk).first()
    if topic is None:
        return True
    try:
        if topic.state == State.DELETING:
            return _remove(topic, get_engine(), Deadline.after(budget_s))
        return _bring_about(topic, get_engine(), Deadline.after(budget_s))
    except EngineRefused as refusal:
        if _may_pass(refusal, topic):
            _report(topic, status_detail=f"waiting for brokers: {refusal}"[:1000])
            return False
        _report(topic, state=State.FAILED, status_detail=f"{refusal.code}: {refusal}"[:1000])
        return True
    except EngineUnavailable as error:
        log.warning("topic %s waits: %s", topic, error)
        _report(topic, status_detail=f"waiting for the engine: {error}"[:1000])
        return False


def _may_pass(refusal: EngineRefused, topic: Topic) -> bool:
    """The factor was fine when the topic was first made: brokers are missing now and will come back."""
    return refusal.code == "INVALID_REPLICATION_FACTOR" and topic.observed_generation > 0


def _remove(topic: Topic, engine: Engine, deadline: Deadline) -> bool:
    name = name_of(topic)
    engine.delete_topic(name, timeout_s=deadline.left_s())
    if not engine.wait_until_shown(name, 0, timeout_s=deadline.left_s()):
        return False
    Topic.objects.filter(pk=topic.pk, generation=topic.generation, state=State.DELETING).delete()
    return True


def _bring_about(topic: Topic, engine: Engine, deadline: Deadline) -> bool:
    name = name_of(topic)
    # More than one round only when another client changes the topic between our look and our step.
    for _ in range(ROUNDS_MAX):
        view = engine.describe_topic(name, timeout_s=deadline.left_s())
        if view is not None and fulfils(view, topic):
            shown = engine.wait_until_shown(name, topic.partitions, timeout_s=deadline.left_s())
            return shown and _report_ready(topic, view)
        _step(topic, view, engine, deadline)
        if not engine.wait_until_shown(name, topic.partitions, timeout_s=deadline.left_s()):
            return False
    return False


def _step(topic: Topic, view: TopicView | None, engine: Engine, deadline: Deadline) -> None:
    if view is None:
        if engine.create_topic(name_of(topic), _spec(topic), timeout_s=deadline.left_s()):
            _note_loss(topic)
        return
    if view.partitions > topic.partitions:
        _accept_partitions(topic, view.partitions)
    _mend(topic, view, engine, deadline)


def name_of(topic: Topic) -> TopicName:
    return TopicName(topic.tenant_id, topic.name)


def fulfils(view: TopicView, topic: Topic) -> bool:
    return view.partitions == topic.partitions and dict(view.configs) == topic.configs


def _spec(topic: Topic) -> TopicSpec:
    return TopicSpec(topic.partitions, topic.replication_factor, topic.configs)


def _mend(topic: Topic, view: TopicView, engine: Engine, deadline: Deadline) -> None:
    name = name_of(topic)
    if view.partitions < topic.partitions:
        engine.add_partitions(name, topic.partitions, timeout_s=deadline.left_s())
    put = {key: value for key, value in topic.configs.items() if view.configs.get(key) != value}
    remove = [key for key in view.configs if key not in topic.configs]
    if put or remove:
        engine.alter_configs(name, put=put, remove=remove, timeout_s=deadline.left_s())


def _accept_partitions(topic: Topic, partitions: int) -> None:
    """Partitions cannot be taken away: where the engine has more of them, the wish follows."""
    topic.partitions = partitions
    _report(topic, partitions=partitions)


def _note_loss(topic: Topic) -> None:
    if topic.topic_id is not None:
        log.error("topic %s (id %s) is gone from the engine: made anew, without its records", topic, topic.topic_id)
        record(
            actor=SYSTEM,
            verb="topic.recreated",
            target=topic.name,
            tenant=topic.tenant,
            before={"topic_id": str(topic.topic_id)},
        )
        _report(topic, topic_id=None)


def _report_ready(topic: Topic, view: TopicView) -> bool:
    return _report(
        topic,
        state=State.READY,
        status_detail="",
        observed_generation=topic.generation,
        topic_id=view.topic_id,
        replication_factor=view.replication_factor,
    )


def _report(topic: Topic, **changes: object) -> bool:
    """Write an outcome unless the wish has moved on. Whether it was written."""
    return Topic.objects.filter(pk=topic.pk, generation=topic.generation).update(**changes) == 1
