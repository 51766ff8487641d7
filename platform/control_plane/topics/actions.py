"""Every write of a topic. The wish and its audit entry are one transaction; the engine follows after the commit.

After the commit the engine is brought there within the request, for at most five seconds. What is not done by then a
Celery task goes on with, and what that loses the periodic task finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from django.db import IntegrityError, transaction

from control_plane.audit.actions import record
from control_plane.celery import enqueue
from control_plane.refusals import Conflict, Invalid, PolicyViolation, RefusedByEngine
from control_plane.tenants.models import Project, Tenant
from control_plane.tenants.policy import policy_in_force
from control_plane.topics import tasks
from control_plane.topics.models import State, Topic
from control_plane.topics.queries import quota_of, topic_of
from control_plane.topics.reconcile import IN_REQUEST_S, reconcile
from control_plane.topics.rules import Proposal, Verdict, judge


def judge_new_topic(
    *,
    tenant: Tenant,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    configs: Mapping[str, str] | None = None,
    project: str | None = None,
) -> list[Verdict]:
    """The verdicts on a topic that might be made. Nothing changes."""
    policy = policy_in_force(tenant, find_project(tenant, project))
    wanted = policy.default_partitions if partitions is None else partitions
    proposal = Proposal(name, wanted, replication_factor, configs or {})
    return [*judge(proposal, policy, quota_of(tenant, without=name)), _freedom(tenant, name)]


def create_topic(
    *,
    actor: str,
    tenant: Tenant,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    configs: Mapping[str, str] | None = None,
    project: str | None = None,
) -> Topic:
    with transaction.atomic():
        _lock(tenant)
        home = find_project(tenant, project)
        policy = policy_in_force(tenant, home)
        wanted = policy.default_partitions if partitions is None else partitions
        _clear_failed_wish(tenant, name)
        proposal = Proposal(name, wanted, replication_factor, configs or {})
        insist(judge(proposal, policy, quota_of(tenant)))
        topic = _insert(
            tenant=tenant,
            name=name,
            project=home,
            partitions=wanted,
            replication_factor=replication_factor,
            configs=dict(configs or {}),
            created_by=actor,
        )
        record(actor=actor, verb="topic.created", target=name, tenant=tenant, after=facts(topic))
        transaction.on_commit(partial(settle, topic.pk))
    return _outcome(topic)


def judge_change(*, topic: Topic, partitions: int | None, configs: Mapping[str, str | None] | None) -> list[Verdict]:
    proposal = Proposal(
        topic.name,
        topic.partitions if partitions is None else partitions,
        topic.replication_factor,
        merged_configs(topic.configs, configs),
        partitions_now=topic.partitions,
    )
    return judge(proposal, policy_in_force(topic.tenant, topic.project), quota_of(topic.tenant))


def change_topic(
    *, actor: str, topic: Topic, partitions: int | None = None, configs: Mapping[str, str | None] | None = None
) -> Topic:
    """A config of null goes back to its default; configs that are not named stay as they are."""
    with transaction.atomic():
        _lock(topic.tenant)
        topic = topic_of(topic.tenant, topic.name)
        if topic.state == State.DELETING:
            raise Conflict(f"The topic {topic.name!r} is being deleted")
        insist(judge_change(topic=topic, partitions=partitions, configs=configs))
        before = facts(topic)
        topic.partitions = topic.partitions if partitions is None else partitions
        topic.configs = merged_configs(topic.configs, configs)
        if facts(topic) == before and topic.state == State.READY:
            return topic
        _open_wish(topic, State.UPDATING if topic.observed_generation else State.CREATING)
        record(
            actor=actor,
            verb="topic.changed",
            target=topic.name,
            tenant=topic.tenant,
            before=before,
            after=facts(topic),
        )
        transaction.on_commit(partial(settle, topic.pk))
    return _outcome(topic)


def delete_topic(*, actor: str, topic: Topic) -> bool:
    """True when the topic is gone everywhere already; else it is on its way."""
    with transaction.atomic():
        _lock(topic.tenant)
        topic = topic_of(topic.tenant, topic.name)
        if topic.state != State.DELETING:
            _open_wish(topic, State.DELETING)
            record(actor=actor, verb="topic.deleted", target=topic.name, tenant=topic.tenant, before=facts(topic))
        transaction.on_commit(partial(settle, topic.pk))
    return not Topic.objects.filter(pk=topic.pk).exists()


def settle(topic_pk: int) -> None:
    """After the commit: bring the engine there now if that goes quickly, else leave it to a worker."""
    if not reconcile(topic_pk, budget_s=IN_REQUEST_S):
        enqueue(tasks.reconcile_topic, topic_pk)


def find_project(tenant: Tenant, slug: str | None) -> Project | None:
    if slug is None:
        return None
    found = Project.objects.filter(tenant=tenant, slug=slug).first()
    if found is None:
        raise Invalid("project", f"There is no project {slug!r}")
    return found


def merged_configs(now: Mapping[str, str], change: Mapping[str, str | None] | None) -> dict[str, str]:
    merged: dict[str, str | None] = {**now, **(change or {})}
    return {name: value for name, value in merged.items() if value is not None}


def insist(verdicts: list[Verdict]) -> None:
    if not all(verdict.ok for verdict in verdicts):
        raise PolicyViolation(verdicts)


def facts(topic: Topic) -> dict[str, object]:
    return {
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "configs": dict(topic.configs),
        "project": None if topic.project is None else topic.project.slug,
    }


def _freedom(tenant: Tenant, name: str) -> Verdict:
    taken = Topic.objects.filter(tenant=tenant, name=name).exclude(state=State.FAILED, observed_generation=0).exists()
    message = f"There is a topic {name!r} already" if taken else "The name is free"
    return Verdict("name_free", not taken, message, None, name)


def _lock(tenant: Tenant) -> None:
    """Two requests must not share the last of a quota: writers of one tenant's topics go one after the other."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)


def _clear_failed_wish(tenant: Tenant, name: str) -> None:
    """A wish that the engine never fulfilled leaves its name free for a better one."""
    Topic.objects.filter(tenant=tenant, name=name, state=State.FAILED, observed_generation=0).delete()


def _insert(*, tenant: Tenant, name: str, **values: object) -> Topic:
    try:
        with transaction.atomic():
            return Topic.objects.create(tenant=tenant, name=name, **values)
    except IntegrityError:
        raise Conflict(f"There is a topic {name!r} already") from None


def _open_wish(topic: Topic, state: State) -> None:
    topic.state = state
    topic.status_detail = ""
    topic.generation += 1
    topic.save(update_fields=["partitions", "configs", "state", "status_detail", "generation"])


def _outcome(topic: Topic) -> Topic:
    topic.refresh_from_db()
    if topic.state == State.FAILED:
        raise RefusedByEngine(topic.status_detail)
    return topic
