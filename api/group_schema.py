"""What /groups takes and answers, declared for reading and for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from api.fields import StrictSerializer, Text, WholeNumber
from api.pagination import PageQuery
from control_plane.groups.queries import Doubt
from control_plane.groups.reset import TIMESTAMP_MS_MAX, To
from control_plane.groups.rules import Status, Trend

STATUSES = [it.value for it in Status]
TRENDS = [it.value for it in Trend]
DOUBTS = [it.value for it in Doubt]
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
CSV_LENGTH_MAX = 1 << 20


class Int64Field(serializers.CharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, **{"help_text": "int64 as text", **options})


class PlaceOut(serializers.Serializer):
    topic = serializers.CharField()
    partition = serializers.IntegerField()


class GroupOut(serializers.Serializer):
    name = serializers.CharField()
    state = serializers.CharField(help_text="Kafka's own names: Stable, Empty, PreparingRebalance, ...")
    protocol = serializers.CharField(help_text="classic or consumer")
    status = serializers.ChoiceField(STATUSES, help_text="Of its worst partition")
    words = serializers.CharField(help_text="The status of its worst partition, for people")
    worst = PlaceOut(allow_null=True)
    member_count = serializers.IntegerField(allow_null=True)
    topics = serializers.ListField(child=serializers.CharField())
    partition_count = serializers.IntegerField()
    lag = Int64Field(help_text="Records not read, over all partitions; int64 as text")
    lag_seconds = serializers.FloatField(allow_null=True, help_text="Age of the oldest record that is not read")
    trend = serializers.ChoiceField(TRENDS)
    eta_seconds = serializers.FloatField(allow_null=True, help_text="Until all is read, at the present pace")
    last_commit_ms = serializers.IntegerField(allow_null=True)
    coordinator = serializers.IntegerField(help_text="The broker that coordinates it")
    offsets_partition = serializers.IntegerField(
        allow_null=True, help_text="Of __consumer_offsets: its leader coordinates"
    )
    generation = serializers.IntegerField(allow_null=True, help_text="Or the group's epoch, with the consumer protocol")
    lag_points = serializers.ListField(child=serializers.IntegerField(), help_text="The last minutes, every 5 s")


class OwnedOut(serializers.Serializer):
    topic = serializers.CharField()
    partitions = serializers.ListField(child=serializers.IntegerField())


class GroupMemberOut(serializers.Serializer):
    id = serializers.CharField()
    client_id = serializers.CharField()
    host = serializers.CharField()
    instance_id = serializers.CharField(allow_null=True)
    partitions = OwnedOut(many=True)


class GroupPartitionOut(serializers.Serializer):
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    status = serializers.ChoiceField(STATUSES)
    words = serializers.CharField()
    owner = serializers.CharField(allow_null=True, help_text="The member's id")
    committed = Int64Field()
    commit_ms = serializers.IntegerField(allow_null=True)
    metadata = serializers.CharField(allow_null=True)
    commit_rate = serializers.FloatField(allow_null=True, help_text="Commits per second")
    position = Int64Field(help_text="Where its owner's fetches are; null: not known, position_doubt says why")
    position_doubt = serializers.ChoiceField(DOUBTS, allow_null=True)
    repeat_count = Int64Field(help_text="Sent to its owner and not committed: what a crash would repeat")
    log_start_offset = Int64Field()
    high_watermark = Int64Field()
    last_stable_offset = Int64Field()
    lag = Int64Field()
    lag_seconds = serializers.FloatField(allow_null=True)
    trend = serializers.ChoiceField(TRENDS)
    eta_seconds = serializers.FloatField(allow_null=True)
    lag_points = serializers.ListField(child=serializers.IntegerField(), help_text="The last minutes, every 15 s")


class RebalanceOut(serializers.Serializer):
    at_ms = serializers.IntegerField()
    kind = serializers.CharField(help_text="joined, left, timed_out, subscription_changed, rebalanced, ...")
    member = serializers.CharField(allow_null=True)
    client_id = serializers.CharField(allow_null=True)
    generation = serializers.IntegerField()
    duration_ms = serializers.IntegerField(allow_null=True, help_text="Of a rebalance that ended: how long it took")
    moved_count = serializers.IntegerField(allow_null=True, help_text="Partitions that changed hands")
    topics = serializers.ListField(
        child=serializers.CharField(),
        help_text="The topic whose partitions changed, or those that a member subscribes to from now on; a few",
    )
    dropped_topics = serializers.ListField(
        child=serializers.CharField(), help_text="Those that it subscribes to no more; a few"
    )
    unnamed_count = serializers.IntegerField(help_text="How many more topics it is about")
    partitions_before = serializers.IntegerField(allow_null=True, help_text="Of the topic; 0: there was none")
    partitions_after = serializers.IntegerField(allow_null=True)


class LagPointOut(serializers.Serializer):
    at_ms = serializers.IntegerField()
    records = serializers.IntegerField()
    seconds = serializers.FloatField(allow_null=True)


class GroupPageOut(GroupOut):
    protocol_type = serializers.CharField()
    assignor = serializers.CharField(allow_null=True)
    leader = serializers.CharField(allow_null=True)
    state_since_ms = serializers.IntegerField(allow_null=True)
    members = GroupMemberOut(many=True)
    partitions = GroupPartitionOut(many=True)
    events = RebalanceOut(many=True)
    lag_history = LagPointOut(many=True)


class GroupsQuery(PageQuery):
    q = serializers.CharField(required=False, allow_blank=True, default="", help_text="Part of the name")


class ScopeIn(StrictSerializer):
    topic = Text(max_length=249)
    partitions = serializers.ListField(
        child=WholeNumber(min_value=0, max_value=INT32_MAX), required=False, allow_null=True, max_length=10_000
    )


class ResetIn(StrictSerializer):
    to = serializers.ChoiceField([it.value for it in To])
    topics = ScopeIn(many=True, required=False, allow_null=True, help_text="Null: all in which it has an offset")
    timestamp_ms = WholeNumber(required=False, min_value=0, max_value=TIMESTAMP_MS_MAX)
    duration_ms = WholeNumber(required=False, min_value=0, max_value=INT64_MAX)
    offset = Text(required=False, max_length=19, help_text="int64 as text")
    shift = WholeNumber(required=False, min_value=-INT64_MAX, max_value=INT64_MAX)
    csv = Text(
        required=False, max_length=CSV_LENGTH_MAX, trim_whitespace=False, help_text="topic,partition,offset per line"
    )


class StepOut(serializers.Serializer):
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    before = Int64Field()
    after = serializers.CharField(help_text="int64 as text")
    log_start_offset = serializers.CharField()
    high_watermark = serializers.CharField()
    skipped_count = serializers.CharField(help_text="Records that the group will not have read")
    replayed_count = serializers.CharField(help_text="Records that it reads again")
    preview = serializers.CharField(allow_null=True, help_text="GET this for the first record that it would read")


class ResetOut(serializers.Serializer):
    is_done = serializers.BooleanField()
    member_count = serializers.IntegerField(help_text="While there are any, it cannot be done")
    skipped_count = serializers.CharField()
    replayed_count = serializers.CharField()
    cli = serializers.CharField(help_text="The same with Kafka's own tool")
    steps = StepOut(many=True)


class OffsetsQuery(StrictSerializer):
    topic = serializers.CharField(max_length=249)
    partitions = serializers.RegexField(r"^\d{1,9}(,\d{1,9})*$", required=False, help_text="0,1,2; all without it")


class ResetQuery(StrictSerializer):
    dry_run = serializers.BooleanField(required=False, default=False)
