"""/topics: list, create (with `dry_run` and verdicts), read, change, delete. Translates; the actions decide.

201, 200 and 204 mean that every live broker shows it; 202 that it is on its way, with Location as the place to ask.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.authentication import caller_of
from api.cluster import TROUBLES
from api.exceptions import verdict_json
from api.fields import Configs, StrictSerializer, Text, WholeNumber
from api.live_rows import live_figures
from api.pagination import PageQuery, page_of, page_serializer, read_query
from control_plane.tenants.models import Role
from control_plane.topics.actions import (
    change_topic,
    create_topic,
    delete_topic,
    insist,
    judge_change,
    judge_new_topic,
)
from control_plane.topics.models import State, Topic
from control_plane.topics.queries import topic_of, topics_of
from control_plane.topics.rules import Verdict

INT32_MAX = 2**31 - 1
INT16_MAX = 2**15 - 1
DRY_RUN = OpenApiParameter("dry_run", bool, description="Only the verdicts; nothing is changed")


class TopicOut(serializers.Serializer):
    name = serializers.CharField()
    project = serializers.CharField(allow_null=True, help_text="The project's id")
    partitions = serializers.IntegerField()
    replication_factor = serializers.IntegerField(allow_null=True)
    configs = serializers.DictField(child=serializers.CharField())
    status = serializers.ChoiceField(State.values)
    status_detail = serializers.CharField()
    topic_id = serializers.CharField(allow_null=True, help_text="As Kafka's tools write it")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    record_count = serializers.CharField(allow_null=True, help_text="int64 as text; null: not known now")
    size_bytes = serializers.CharField(allow_null=True, help_text="int64 as text; null: not known now")
    last_write_ms = serializers.IntegerField(allow_null=True)
    trouble = serializers.ChoiceField(TROUBLES, allow_null=True, help_text="The worst that any of its partitions is in")


class TopicIn(StrictSerializer):
    name = Text(max_length=1000)  # the rule on names gives the verdict, not this field
    partitions = WholeNumber(required=False, allow_null=True, min_value=-INT32_MAX, max_value=INT32_MAX)
    replication_factor = WholeNumber(required=False, allow_null=True, min_value=-INT16_MAX, max_value=INT16_MAX)
    configs = Configs(required=False)
    project = Text(required=False, allow_null=True, max_length=63)


class TopicChange(StrictSerializer):
    partitions = WholeNumber(required=False, min_value=-INT32_MAX, max_value=INT32_MAX)
    configs = Configs(required=False, allow_unset=True)


class VerdictOut(serializers.Serializer):
    rule = serializers.CharField()
    ok = serializers.BooleanField()
    message = serializers.CharField()
    want = serializers.CharField(required=False)
    got = serializers.CharField(required=False)
    quota_left = serializers.IntegerField(required=False)


class Verdicts(serializers.Serializer):
    ok = serializers.BooleanField()
    verdicts = VerdictOut(many=True)


class TopicsQuery(PageQuery):
    q = serializers.CharField(required=False, allow_blank=True, default="", help_text="Part of the name")
    project = serializers.CharField(required=False, allow_blank=True, default="", help_text="The project's id")


class WriteQuery(StrictSerializer):
    dry_run = serializers.BooleanField(required=False, default=False)


class TopicsView(APIView):
    @extend_schema(
        operation_id="topics_list", parameters=[TopicsQuery], responses=page_serializer("TopicPage", TopicOut)
    )
    def get(self, request: Request) -> Response:
        query = read_query(request, TopicsQuery)
        topics = topics_of(caller_of(request).tenant, contains=query["q"], project=query["project"])
        return Response(page_of(topics, key="name", query=query, show=show_topic))

    @extend_schema(request=TopicIn, parameters=[DRY_RUN], responses={200: Verdicts, 201: TopicOut, 202: TopicOut})
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require(Role.DEVELOPER)
        dry_run = read_query(request, WriteQuery)["dry_run"]
        serializer = TopicIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        if dry_run:
            return dry_answer(judge_new_topic(tenant=caller.tenant, **serializer.validated_data))
        topic = create_topic(actor=caller.name, tenant=caller.tenant, **serializer.validated_data)
        return topic_answer(topic, done=201)


class TopicView(APIView):
    @extend_schema(responses=TopicOut)
    def get(self, request: Request, name: str) -> Response:
        return Response(show_topic(topic_of(caller_of(request).tenant, name)))

    @extend_schema(request=TopicChange, parameters=[DRY_RUN], responses={200: TopicOut, 202: TopicOut})
    def patch(self, request: Request, name: str) -> Response:
        caller = caller_of(request)
        caller.require(Role.DEVELOPER)
        dry_run = read_query(request, WriteQuery)["dry_run"]
        serializer = TopicChange(data=request.data)
        serializer.is_valid(raise_exception=True)
        wish = {"partitions": None, "configs": None, **serializer.validated_data}
        topic = topic_of(caller.tenant, name)
        if dry_run:
            return dry_answer(judge_change(topic=topic, **wish))
        return topic_answer(change_topic(actor=caller.name, topic=topic, **wish), done=200)

    @extend_schema(request=None, responses={204: None, 202: TopicOut})
    def delete(self, request: Request, name: str) -> Response:
        caller = caller_of(request)
        caller.require(Role.DEVELOPER)
        topic = topic_of(caller.tenant, name)
        if delete_topic(actor=caller.name, topic=topic):
            return Response(status=204)
        return topic_answer(topic_of(caller.tenant, name), done=204)


def dry_answer(verdicts: list[Verdict]) -> Response:
    insist(verdicts)
    return Response({"ok": True, "verdicts": [verdict_json(verdict) for verdict in verdicts]})


def topic_answer(topic: Topic, *, done: int) -> Response:
    is_done = topic.state == State.READY
    location = {"Location": f"/api/v1/topics/{quote(topic.name)}"}
    return Response(show_topic(topic), status=done if is_done else 202, headers=location)


def show_topic(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "project": None if topic.project is None else topic.project.slug,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "configs": topic.configs,
        "status": topic.state,
        "status_detail": topic.status_detail,
        "topic_id": topic.kafka_id,
        "created_at": topic.created_at,
        "created_by": topic.created_by,
        **live_figures(topic),
    }
