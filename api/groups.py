"""/groups: who reads what and how far, why a group rebalances, and where its offsets shall go.

What is shown comes from the live telemetry, so that looking costs the brokers nothing. A reset is asked for with
`dry_run=true` first: it answers where each partition would go, and what that skips or repeats. The first record that
would be read is one request away (`preview`), as the caller's own principal: the control plane reads nobody's records.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api import problems
from api.authentication import caller_of
from api.group_rows import show_event, show_group, show_group_page, show_point
from api.group_schema import (
    INT64_MAX,
    GroupOut,
    GroupPageOut,
    GroupsQuery,
    LagPointOut,
    OffsetsQuery,
    RebalanceOut,
    ResetIn,
    ResetOut,
    ResetQuery,
)
from api.pagination import page_of_named, page_serializer, read_query
from api.problems import ProblemError
from control_plane.engine.factory import get_engine
from control_plane.engine.groups import GroupName, GroupView
from control_plane.engine.interface import EngineUnavailable
from control_plane.groups import actions
from control_plane.groups.queries import GroupTruth, group_truth, group_truths, readers_of_topic
from control_plane.groups.reset import Scope, Step, To, Wish, cli_text, parse_csv, to_csv
from control_plane.groups.rules import Status, Trend
from control_plane.live.service import live
from control_plane.tenants.models import Role, Tenant
from control_plane.topics.queries import topic_of

SCOPES_MAX = 200
ENGINE_TIMEOUT_S = 5.0
GROUP_NAME_LENGTH_MAX = 255
DRY_RUN = OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Only say where the offsets would go")


def _truth(tenant: Tenant, name: str) -> GroupTruth:
    found = group_truth(tenant.pk, name)
    if found is not None:
        return found
    if not live.is_connected and get_engine().groups.describe(GroupName(tenant.pk, name), timeout_s=ENGINE_TIMEOUT_S):
        raise EngineUnavailable("no broker has told of this group yet")
    raise ProblemError(problems.not_found(f"There is no group {name!r}", error_code=40405))


class GroupsView(APIView):
    @extend_schema(
        operation_id="groups_list", parameters=[GroupsQuery], responses=page_serializer("GroupPageOfList", GroupOut)
    )
    def get(self, request: Request) -> Response:
        query, tenant = read_query(request, GroupsQuery), caller_of(request).tenant
        rows = [show_group(truth) for truth in group_truths(tenant.pk)]
        if not rows and not live.is_connected:
            views = get_engine().groups.list_groups(tenant.pk, timeout_s=ENGINE_TIMEOUT_S)
            rows = [show_view(view) for view in views]
        found = [row for row in rows if query["q"].lower() in row["name"].lower()]
        return Response(page_of_named(found, query=query))


class GroupDetailView(APIView):
    @extend_schema(operation_id="groups_retrieve", responses=GroupPageOut)
    def get(self, request: Request, name: str) -> Response:
        return Response(show_group_page(_truth(caller_of(request).tenant, name)))

    @extend_schema(operation_id="groups_destroy", request=None, responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        caller = caller_of(request)
        caller.require(Role.DEVELOPER)
        actions.delete_group(actor=caller.name, tenant=caller.tenant, group=name)
        return Response(status=204)


class GroupTimelineView(APIView):
    @extend_schema(
        operation_id="groups_timeline", responses=inline_serializer("Timeline", {"data": RebalanceOut(many=True)})
    )
    def get(self, request: Request, name: str) -> Response:
        truth = _truth(caller_of(request).tenant, name)
        return Response({"data": [show_event(event) for event in truth.page.events]})


class GroupLagView(APIView):
    @extend_schema(
        operation_id="groups_lag", responses=inline_serializer("LagHistory", {"data": LagPointOut(many=True)})
    )
    def get(self, request: Request, name: str) -> Response:
        truth = _truth(caller_of(request).tenant, name)
        return Response({"data": [show_point(point) for point in truth.lag_history]})


class GroupResetView(APIView):
    @extend_schema(
        operation_id="groups_reset_offsets", request=ResetIn, parameters=[DRY_RUN], responses={200: ResetOut}
    )
    def post(self, request: Request, name: str) -> Response:
        caller = caller_of(request)
        caller.require(Role.DEVELOPER)
        check_name(name)
        dry_run = read_query(request, ResetQuery)["dry_run"]
        serializer = ResetIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        wish = wish_of(serializer.validated_data, name)
        cli = cli_text(wish, name, settings.HIGHWATER.kafka_public, is_dry_run=dry_run)
        if dry_run:
            plan = actions.plan_reset(tenant=caller.tenant, group=name, wish=wish)
        else:
            plan = actions.reset_offsets(actor=caller.name, tenant=caller.tenant, group=name, wish=wish)
        return Response(show_plan(plan, cli, is_done=not dry_run))


class GroupOffsetsView(APIView):
    @extend_schema(
        operation_id="groups_offsets_destroy",
        request=None,
        parameters=[OffsetsQuery],
        responses=inline_serializer("DeletedOffsets", {"deleted_count": serializers.IntegerField()}),
    )
    def delete(self, request: Request, name: str) -> Response:
        caller = caller_of(request)
        caller.require(Role.DEVELOPER)
        query = read_query(request, OffsetsQuery)
        chosen = query.get("partitions")
        count = actions.delete_offsets(
            actor=caller.name,
            tenant=caller.tenant,
            group=name,
            topic=query["topic"],
            partitions=None if chosen is None else tuple(map(int, chosen.split(","))),
        )
        return Response({"deleted_count": count})


class GroupExportView(APIView):
    @extend_schema(
        operation_id="groups_offsets_export",
        responses={
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, "As kafka-consumer-groups --from-file takes it")
        },
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        offsets = actions.committed_offsets(tenant=caller_of(request).tenant, group=name)
        file_name = quote(f"{name}-offsets.csv", safe="")
        disposition = f"attachment; filename*=UTF-8''{file_name}"
        return HttpResponse(
            to_csv(offsets), content_type="text/csv; charset=utf-8", headers={"Content-Disposition": disposition}
        )


class TopicGroupsView(APIView):
    @extend_schema(
        operation_id="topics_groups_list",
        responses=inline_serializer("TopicGroups", {"data": GroupOut(many=True)}),
    )
    def get(self, request: Request, name: str) -> Response:
        topic = topic_of(caller_of(request).tenant, name)
        truths = readers_of_topic(topic.tenant_id, topic.name)
        return Response({"data": [show_group(truth) for truth in truths]})


def check_name(name: str) -> None:
    if len(name) > GROUP_NAME_LENGTH_MAX:
        raise ProblemError(
            problems.invalid_fields({"name": f"A group's name has at most {GROUP_NAME_LENGTH_MAX} characters"})
        )


NEEDED = {
    To.TIMESTAMP: "timestamp_ms",
    To.DURATION: "duration_ms",
    To.OFFSET: "offset",
    To.SHIFT: "shift",
    To.FILE: "csv",
}


def wish_of(asked: dict[str, Any], group: str) -> Wish:
    to = To(asked["to"])
    values = {name: asked[name] for name in NEEDED.values() if name in asked}
    needed = NEEDED.get(to)
    if needed is not None and needed not in values:
        raise ProblemError(problems.invalid_fields({needed: f"`to: {to}` needs this"}))
    surplus = next((name for name in values if name != needed), None)
    if surplus is not None:
        raise ProblemError(problems.invalid_fields({surplus: f"`to: {to}` does not take this"}))
    scopes = asked.get("topics")
    if to is To.FILE:
        if scopes is not None:
            raise ProblemError(problems.invalid_fields({"topics": "The file says which"}))
        return Wish(to=to, offsets=parse_csv(values["csv"], group))
    numbers = _numbers(values)
    return Wish(
        to=to,
        scopes=None if scopes is None else _scopes(scopes),
        timestamp_ms=numbers.get("timestamp_ms", 0),
        duration_ms=numbers.get("duration_ms", 0),
        offset=numbers.get("offset", 0),
        shift=numbers.get("shift", 0),
    )


def _numbers(values: dict[str, Any]) -> dict[str, int]:
    offset = values.get("offset")
    if offset is not None and not (offset.isascii() and offset.isdecimal() and int(offset) <= INT64_MAX):
        raise ProblemError(problems.invalid_fields({"offset": "This must be a whole number, as text"}))
    return {name: int(value) for name, value in values.items() if name != "csv"}


def _scopes(asked: list[dict[str, Any]]) -> tuple[Scope, ...]:
    if not 0 < len(asked) <= SCOPES_MAX:
        raise ProblemError(problems.invalid_fields({"topics": f"Name 1 to {SCOPES_MAX} topics, or none for all"}))
    return tuple(
        Scope(one["topic"], None if one.get("partitions") is None else tuple(one["partitions"])) for one in asked
    )


def show_plan(plan: actions.ResetPlan, cli: str, *, is_done: bool) -> dict[str, Any]:
    return {
        "is_done": is_done,
        "member_count": plan.member_count,
        "skipped_count": str(sum(step.skipped_count for step in plan.steps)),
        "replayed_count": str(sum(step.replayed_count for step in plan.steps)),
        "cli": cli,
        "steps": [show_step(step) for step in plan.steps],
    }


def show_step(step: Step) -> dict[str, Any]:
    is_empty = step.after >= step.log.end_offset
    path = f"/api/v1/topics/{quote(step.topic)}/partitions/{step.partition}/records"
    return {
        "topic": step.topic,
        "partition": step.partition,
        "before": None if step.before is None else str(step.before),
        "after": str(step.after),
        "log_start_offset": str(step.log.start_offset),
        "high_watermark": str(step.log.end_offset),
        "skipped_count": str(step.skipped_count),
        "replayed_count": str(step.replayed_count),
        "preview": None if is_empty else f"{path}?offset={step.after}&max_records=1",
    }


def show_view(view: GroupView) -> dict[str, Any]:
    """As the engine's own list tells it, while no telemetry is there: what it leaves out is null."""
    return {
        "name": view.name,
        "state": view.state,
        "protocol": view.protocol,
        "status": Status.UNKNOWN.value,
        "words": "The brokers have not told of it yet.",
        "worst": None,
        "member_count": view.member_count,
        "topics": [],
        "partition_count": 0,
        "lag": None,
        "lag_seconds": None,
        "trend": Trend.STEADY.value,
        "eta_seconds": None,
        "last_commit_ms": None,
        "coordinator": view.coordinator,
        "offsets_partition": None,
        "generation": None,
        "lag_points": [],
    }
