"""/topics/{name}/partitions: leader, replicas and offsets, from the live telemetry or else from the engine itself."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.authentication import caller_of
from api.live_rows import live_partitions
from control_plane.engine.factory import get_engine
from control_plane.engine.interface import PartitionView
from control_plane.topics.queries import topic_of
from control_plane.topics.reconcile import name_of

ENGINE_TIMEOUT_S = 5.0


class Brokers(serializers.ListField):
    child = serializers.IntegerField()


class ReplicaOut(serializers.Serializer):
    broker = serializers.IntegerField()
    in_sync = serializers.BooleanField()
    log_end_offset = serializers.CharField(allow_null=True, help_text="int64 as text")


class PartitionOut(serializers.Serializer):
    partition = serializers.IntegerField()
    leader = serializers.IntegerField(allow_null=True)
    leader_epoch = serializers.IntegerField()
    partition_epoch = serializers.IntegerField(allow_null=True)
    replicas = ReplicaOut(many=True)
    isr = Brokers(help_text="In sync: what is acknowledged is on each of these")
    osr = Brokers(help_text="Replicas that are not in sync")
    elr = Brokers(help_text="Out of sync, yet eligible to lead without loss")
    adding = Brokers(help_text="Replicas that a reassignment under way brings")
    removing = Brokers(help_text="Replicas that a reassignment under way takes")
    min_insync = serializers.IntegerField(allow_null=True, help_text="With fewer in sync, acks=all is refused")
    unclean_election_count = serializers.IntegerField(
        allow_null=True, help_text="How often acknowledged records may have been lost to have a leader"
    )
    log_start_offset = serializers.CharField(allow_null=True)
    high_watermark = serializers.CharField(allow_null=True)
    last_stable_offset = serializers.CharField(allow_null=True)
    log_end_offset = serializers.CharField(allow_null=True)
    size_bytes = serializers.CharField(allow_null=True)


PARTITIONS_OUT = inline_serializer(
    "Partitions",
    {"data": PartitionOut(many=True), "source": serializers.ChoiceField(["telemetry", "engine"])},
)


class PartitionsView(APIView):
    @extend_schema(responses=PARTITIONS_OUT)
    def get(self, request: Request, name: str) -> Response:
        topic = topic_of(caller_of(request).tenant, name)
        rows = live_partitions(topic)
        if rows:
            return Response({"data": rows, "source": "telemetry"})
        views = get_engine().describe_partitions(name_of(topic), timeout_s=ENGINE_TIMEOUT_S) or []
        return Response({"data": [show_partition(view) for view in views], "source": "engine"})


def show_partition(view: PartitionView) -> dict[str, Any]:
    """The engine's metadata does not tell everything that telemetry does: what it leaves out is null."""
    return {
        "partition": view.partition,
        "leader": view.leader,
        "leader_epoch": view.leader_epoch,
        "partition_epoch": None,
        "replicas": [{"broker": it, "in_sync": it in view.isr, "log_end_offset": None} for it in view.replicas],
        "isr": list(view.isr),
        "osr": [broker for broker in view.replicas if broker not in view.isr],
        "elr": [],
        "adding": [],
        "removing": [],
        "min_insync": None,
        "unclean_election_count": None,
        "log_start_offset": _text(view.log_start_offset),
        "high_watermark": _text(view.high_watermark),
        "last_stable_offset": None,
        "log_end_offset": None,
        "size_bytes": None,
    }


def _text(offset: int | None) -> str | None:
    return None if offset is None else str(offset)
