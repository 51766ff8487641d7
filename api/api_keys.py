"""/api-keys: made and revoked by people. The secret is in the answer to POST and nowhere else, ever."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.authentication import Caller, caller_of
from api.fields import StrictSerializer, Text
from api.pagination import PageQuery, page_of, page_serializer, read_query
from control_plane.keys.actions import create_key, revoke_key
from control_plane.keys.models import ApiKey
from control_plane.keys.queries import key_of, keys_of
from control_plane.tenants.models import Role

STATUSES = ["active", "revoked"]


class ApiKeyOut(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    status = serializers.ChoiceField(STATUSES)


class NewApiKeyOut(ApiKeyOut):
    secret = serializers.CharField(help_text="Shown this once")


class ApiKeyIn(StrictSerializer):
    name = Text(max_length=200)


class ApiKeysView(APIView):
    @extend_schema(
        operation_id="api_keys_list", parameters=[PageQuery], responses=page_serializer("ApiKeyPage", ApiKeyOut)
    )
    def get(self, request: Request) -> Response:
        query = read_query(request, PageQuery)
        return Response(page_of(keys_of(caller_of(request).tenant), key="id", query=query, show=show_key))

    @extend_schema(request=ApiKeyIn, responses={201: NewApiKeyOut})
    def post(self, request: Request) -> Response:
        caller = keyholder(request)
        serializer = ApiKeyIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        key, secret = create_key(actor=caller.name, tenant=caller.tenant, **serializer.validated_data)
        return Response({**show_key(key), "secret": secret}, status=201, headers={"Cache-Control": "no-store"})


class ApiKeyView(APIView):
    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, key_id: str) -> Response:
        caller = keyholder(request)
        revoke_key(actor=caller.name, key=key_of(caller.tenant, key_id))
        return Response(status=204)


def keyholder(request: Request) -> Caller:
    """A person with the right to it. Not a key: one that leaked could make another and outlive its own revocation."""
    caller = caller_of(request)
    caller.require_person()
    caller.require(Role.DEVELOPER)
    return caller


def show_key(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "created_at": key.created_at,
        "created_by": key.created_by,
        "last_used_at": key.last_used_at,
        "status": key.status,
    }
