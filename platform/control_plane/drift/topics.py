"""Drift of topics: what the database wishes and what the engine has, compared one by one.

| In the database | In the engine | What happens |
|---|---|---|
| an open wish | anything | brought about: this finds the work of tasks that were lost |
| settled | missing | made anew |
| settled | changed, inside the policy | the wish follows: a tenant's own Kafka client may change its topics |
| settled | changed, outside the policy | put back |
| nothing | there, of a known tenant | adopted |
| nothing | there, of an unknown tenant | left alone |

Nothing is ever deleted from the engine here, except for a wish that says so.
"""

from __future__ import annotations

import logging

from django.db import transaction

from control_plane.audit.actions import record
from control_plane.engine.deadline import Deadline
from control_plane.engine.interface import Engine, TopicName, TopicView
from control_plane.tenants.models import Tenant
from control_plane.tenants.policy import policy_in_force
from control_plane.topics.actions import facts
from control_plane.topics.models import Origin, State, Topic
from control_plane.topics.queries import quota_of
from control_plane.topics.reconcile import IN_REQUEST_S, fulfils, name_of, reconcile
from control_plane.topics.rules import Proposal, judge

log = logging.getLogger(__name__)

KAFKA_CLIENT = "kafka-client"  # the actor of what a tenant's own Kafka client did; who exactly, the engine knows


def mend_topics(engine: Engine, deadline: Deadline) -> int:
    """How many topics were found adrift."""
    # The engine is asked first: a wish is always written before its topic, so a row that we read later can miss
    # nothing that the engine showed. The rest of what this list says may be old by the time it is looked at: it only
    # tells where to look again.
    there = {view.name: view for view in engine.describe_topics(timeout_s=deadline.left_s())}
    rows = list(Topic.objects.select_related("tenant", "project"))
    known = {name_of(row) for row in rows}
    count = sum(_mend_row(row, there.get(name_of(row)), engine, deadline) for row in rows)
    return count + sum(_adopt(name, engine, deadline) for name in sorted(set(there) - known))


def _mend_row(row: Topic, view: TopicView | None, engine: Engine, deadline: Deadline) -> bool:
    if row.state == State.FAILED or (not row.is_open_wish and _is_settled(row, view)):
        _note_factor(row, view)
        return False
    # Asked after the row was read: a difference to that very generation of the wish is real.
    now = engine.describe_topic(name_of(row), timeout_s=deadline.left_s())
    if not row.is_open_wish and _is_settled(row, now):
        return False
    if row.is_open_wish or now is None or not _follow(row, now):
        reconcile(row.pk, budget_s=IN_REQUEST_S)
    return True


def _note_factor(row: Topic, view: TopicView | None) -> None:
    """How many copies there are is the operators' affair: the row follows what they moved."""
    if view is not None and row.state == State.READY and view.replication_factor != row.replication_factor:
        Topic.objects.filter(pk=row.pk, generation=row.generation).update(replication_factor=view.replication_factor)


def _is_settled(row: Topic, view: TopicView | None) -> bool:
    return view is not None and fulfils(view, row) and view.topic_id == row.topic_id


def _follow(row: Topic, view: TopicView) -> bool:
    """Take over what a Kafka client changed, if the policy allows it. False: the wish stands."""
    proposal = Proposal(row.name, view.partitions, None, view.configs, partitions_now=row.partitions)
    # A topic that was deleted and made again may have fewer partitions than before: that is a new topic's right.
    if view.topic_id != row.topic_id:
        proposal = Proposal(row.name, view.partitions, None, view.configs, partitions_now=view.partitions)
    verdicts = judge(proposal, policy_in_force(row.tenant, row.project), quota_of(row.tenant))
    if not all(verdict.ok for verdict in verdicts):
        log.warning("topic %s was changed beyond its policy: put back", row)
        return False
    before = facts(row)
    with transaction.atomic():
        changed = Topic.objects.filter(pk=row.pk, generation=row.generation, state=State.READY).update(
            partitions=view.partitions, configs=dict(view.configs), topic_id=view.topic_id
        )
        row.partitions, row.configs = view.partitions, dict(view.configs)
        if changed and facts(row) != before:
            record(
                actor=KAFKA_CLIENT,
                verb="topic.changed",
                target=row.name,
                tenant=row.tenant,
                before=before,
                after=facts(row),
            )
    return True


def _adopt(name: TopicName, engine: Engine, deadline: Deadline) -> bool:
    tenant = Tenant.objects.filter(pk=name.tenant).first()
    if tenant is None:
        return False
    view = engine.describe_topic(name, timeout_s=deadline.left_s())
    if view is None:
        return False
    with transaction.atomic():
        topic, is_new = Topic.objects.get_or_create(tenant=tenant, name=name.name, defaults=_adopted_values(view))
        if is_new:
            record(actor=KAFKA_CLIENT, verb="topic.adopted", target=topic.name, tenant=tenant, after=facts(topic))
    return is_new


def _adopted_values(view: TopicView) -> dict[str, object]:
    return {
        "partitions": view.partitions,
        "replication_factor": view.replication_factor,
        "configs": dict(view.configs),
        "state": State.READY,
        "observed_generation": 1,
        "topic_id": view.topic_id,
        "origin": Origin.ENGINE,
        "created_by": KAFKA_CLIENT,
    }
