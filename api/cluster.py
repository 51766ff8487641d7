"""/cluster: brokers, the metadata quorum, partitions in trouble, moves of replicas. For operators only.

What is shown comes from the live telemetry, so that looking costs the brokers nothing.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.authentication import Caller, caller_of
from api.fields import StrictSerializer, Text, WholeNumber
from control_plane.cluster import actions
from control_plane.cluster.actions import Plan
from control_plane.cluster.queries import (
    BrokerView,
    ClusterView,
    PartitionInView,
    Status,
    Trouble,
    cluster_view,
)
from control_plane.engine.cluster import Move
from control_plane.live.states import int64_text

ROWS_MAX = 200
STATUSES = [it.value for it in Status]
TROUBLES = [it.value for it in Trouble]
THROTTLE_MIN_BYTES_PER_S = 1 << 10


class Brokers(serializers.ListField):
    child = serializers.IntegerField()


class BrokerOut(serializers.Serializer):
    id = serializers.IntegerField()
    status = serializers.ChoiceField(STATUSES)
    host = serializers.CharField()
    rack = serializers.CharField(allow_null=True)
    is_controller = serializers.BooleanField()
    is_voter = serializers.BooleanField()
    silent_for_s = serializers.FloatField(allow_null=True, help_text="null: not heard of yet")
    started_ms = serializers.IntegerField(allow_null=True)
    leader_count = serializers.IntegerField(allow_null=True)
    replica_count = serializers.IntegerField(allow_null=True)
    under_replicated_count = serializers.IntegerField(allow_null=True, help_text="Of the partitions that it leads")
    under_min_isr_count = serializers.IntegerField(allow_null=True, help_text="Of the partitions that it leads")
    offline_count = serializers.IntegerField(allow_null=True, help_text="Logs that a disk error took offline")
    damaged_count = serializers.IntegerField(
        allow_null=True, help_text="Logs of which something rotted on disk, and no other replica has mended it yet"
    )
    connection_count = serializers.IntegerField(allow_null=True)
    loop_lag_ms = serializers.IntegerField(allow_null=True)
    bytes_in = serializers.CharField(allow_null=True, help_text="Running total since it started; int64 as text")
    bytes_out = serializers.CharField(allow_null=True)
    size_bytes = serializers.CharField(allow_null=True)
    disk_free_bytes = serializers.CharField(allow_null=True)
    is_disk_low = serializers.BooleanField(allow_null=True)
    is_degraded = serializers.BooleanField(
        allow_null=True, help_text="Its disk stands still: a flush has taken over ten seconds"
    )


class QuorumOut(serializers.Serializer):
    leader = serializers.IntegerField(allow_null=True)
    epoch = serializers.IntegerField()
    metadata_offset = serializers.CharField()
    voters = Brokers()


class PartitionCounts(serializers.Serializer):
    all = serializers.IntegerField()
    leaderless = serializers.IntegerField()
    under_min_isr = serializers.IntegerField()
    under_replicated = serializers.IntegerField()
    moving = serializers.IntegerField()


class TroubledOut(serializers.Serializer):
    trouble = serializers.ChoiceField(TROUBLES)
    tenant = serializers.CharField()
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    leader = serializers.IntegerField(allow_null=True)
    leader_epoch = serializers.IntegerField()
    replicas = Brokers()
    isr = Brokers()
    osr = Brokers()
    elr = Brokers()
    min_insync = serializers.IntegerField()


class MovingOut(serializers.Serializer):
    tenant = serializers.CharField()
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    replicas = Brokers()
    adding = Brokers()
    removing = Brokers()
    progress = serializers.FloatField(help_text="0 to 1: how much of the log the slowest new replica has")
    bytes_left = serializers.CharField(allow_null=True)


class ClusterOut(serializers.Serializer):
    quorum = QuorumOut()
    brokers = BrokerOut(many=True)
    partitions = PartitionCounts()
    unclean_election_count = serializers.IntegerField(help_text="Each may have lost acknowledged records")
    troubled = TroubledOut(many=True, help_text=f"At most {ROWS_MAX}, the worst first")
    moves = MovingOut(many=True, help_text=f"At most {ROWS_MAX}")


class PlanIn(StrictSerializer):
    replication_factor = WholeNumber(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=9,
        help_text="Topics with fewer copies get as many; where brokers leave, topics with more keep as many",
    )
    leaving = serializers.ListField(
        child=WholeNumber(min_value=0), required=False, max_length=100, help_text="Brokers to take all replicas from"
    )
    plan_id = Text(required=False, max_length=64, help_text="Of the dry run; the plan is begun if it is still the same")
    throttle_bytes_per_s = WholeNumber(required=False, allow_null=True, min_value=THROTTLE_MIN_BYTES_PER_S)


class MoveOut(serializers.Serializer):
    tenant = serializers.CharField()
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    before = Brokers()
    after = Brokers()
    size_bytes = serializers.CharField(help_text="To be copied; int64 as text")


class PlanOut(serializers.Serializer):
    plan_id = serializers.CharField()
    is_begun = serializers.BooleanField()
    move_count = serializers.IntegerField()
    size_bytes = serializers.CharField()
    moves = MoveOut(many=True)


DRY_RUN = OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Only say what would be moved")


def operator_of(request: Request) -> Caller:
    caller = caller_of(request)
    caller.require_operator()
    return caller


class ClusterStateView(APIView):
    @extend_schema(operation_id="cluster_retrieve", responses=ClusterOut)
    def get(self, request: Request) -> Response:
        operator_of(request)
        return Response(show_cluster(cluster_view()))


class ClusterPlanView(APIView):
    @extend_schema(
        operation_id="cluster_moves_create",
        request=PlanIn,
        parameters=[DRY_RUN],
        responses={200: PlanOut, 202: PlanOut},
    )
    def post(self, request: Request) -> Response:
        caller = operator_of(request)
        serializer = PlanIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        wish = {
            "replication_factor": asked.get("replication_factor"),
            "leaving": frozenset(asked.get("leaving", ())),
        }
        if request.query_params.get("dry_run") in ("true", "1"):
            return Response(show_plan(actions.plan_moves(**wish), is_begun=False))
        plan = actions.begin_moves(
            actor=caller.name,
            plan_id=asked.get("plan_id", ""),
            bytes_per_s_max=asked.get("throttle_bytes_per_s"),
            **wish,
        )
        return Response(show_plan(plan, is_begun=True), status=202)

    @extend_schema(
        operation_id="cluster_moves_cancel",
        responses=inline_serializer("CancelledMoves", {"cancelled_count": serializers.IntegerField()}),
    )
    def delete(self, request: Request) -> Response:
        return Response({"cancelled_count": actions.cancel_moves(actor=operator_of(request).name)})


class ClusterElectionsView(APIView):
    @extend_schema(
        operation_id="cluster_elections_create",
        request=None,
        responses=inline_serializer("ElectedLeaders", {"moved_count": serializers.IntegerField()}),
    )
    def post(self, request: Request) -> Response:
        return Response({"moved_count": actions.elect_preferred_leaders(actor=operator_of(request).name)})


class ClusterBrokerView(APIView):
    @extend_schema(operation_id="cluster_brokers_destroy", responses={204: None})
    def delete(self, request: Request, broker: int) -> Response:
        actions.remove_broker(actor=operator_of(request).name, broker=broker)
        return Response(status=204)


def show_cluster(view: ClusterView) -> dict[str, Any]:
    cluster = view.cluster
    counts = {trouble: sum(found is trouble for found, _ in view.troubled) for trouble in Trouble}
    return {
        "quorum": {
            "leader": None if cluster.controller < 0 else cluster.controller,
            "epoch": cluster.controller_epoch,
            "metadata_offset": str(cluster.metadata_offset),
            "voters": list(cluster.voters),
        },
        "brokers": [show_broker(it, view) for it in view.brokers],
        "partitions": {
            "all": view.partition_count,
            "leaderless": counts[Trouble.LEADERLESS],
            "under_min_isr": counts[Trouble.UNDER_MIN_ISR],
            "under_replicated": counts[Trouble.UNDER_REPLICATED],
            "moving": len(view.moving),
        },
        "unclean_election_count": cluster.unclean_election_count,
        "troubled": [show_troubled(trouble, row) for trouble, row in view.troubled[:ROWS_MAX]],
        "moves": [show_moving(row) for row in view.moving[:ROWS_MAX]],
    }


COUNTS = (
    "started_ms",
    "leader_count",
    "under_replicated_count",
    "under_min_isr_count",
    "offline_count",
    "damaged_count",
    "connection_count",
    "loop_lag_ms",
    "is_disk_low",
    "is_degraded",
)
INT64S = ("bytes_in", "bytes_out", "size_bytes", "disk_free_bytes")


def show_broker(it: BrokerView, view: ClusterView) -> dict[str, Any]:
    told, member = it.told, it.member
    return {
        "id": member.broker,
        "status": it.status.value,
        "host": member.host,
        "rack": member.rack or None,
        "is_controller": member.broker == view.cluster.controller,
        "is_voter": member.broker in view.cluster.voters,
        "silent_for_s": None if it.silent_for_s is None else round(it.silent_for_s, 1),
        "replica_count": None if told is None else told.partition_count,
        **{name: None if told is None else getattr(told, name) for name in COUNTS},
        **{name: None if told is None else int64_text(getattr(told, name)) for name in INT64S},
    }


def show_troubled(trouble: Trouble, row: PartitionInView) -> dict[str, Any]:
    state = row.state
    return {
        "trouble": trouble.value,
        "tenant": row.name.tenant,
        "topic": row.name.topic,
        "partition": row.name.partition,
        "leader": None if state.is_leaderless else state.leader,
        "leader_epoch": state.leader_epoch,
        "replicas": [replica.broker for replica in state.replicas],
        "isr": list(state.isr),
        "osr": list(state.osr),
        "elr": list(state.elr),
        "min_insync": state.min_insync,
    }


def show_moving(row: PartitionInView) -> dict[str, Any]:
    state = row.state
    left = None if state.size_bytes < 0 else round(state.size_bytes * (1 - state.move_progress))
    return {
        "tenant": row.name.tenant,
        "topic": row.name.topic,
        "partition": row.name.partition,
        "replicas": [replica.broker for replica in state.replicas],
        "adding": list(state.adding),
        "removing": list(state.removing),
        "progress": round(state.move_progress, 4),
        "bytes_left": None if left is None else str(left),
    }


def show_plan(plan: Plan, *, is_begun: bool) -> dict[str, Any]:
    return {
        "plan_id": plan.id,
        "is_begun": is_begun,
        "move_count": len(plan.moves),
        "size_bytes": str(plan.bytes_total),
        "moves": [show_move(move, plan) for move in plan.moves],
    }


def show_move(move: Move, plan: Plan) -> dict[str, Any]:
    return {
        "tenant": move.partition.tenant,
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "before": list(move.before),
        "after": list(move.after),
        "size_bytes": str(plan.bytes_of(move)),
    }
