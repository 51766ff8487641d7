"""/members: who belongs to the tenant. Owners change it; everyone in it may look."""

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
from control_plane.tenants.actions import add_member, change_role, remove_member
from control_plane.tenants.models import Membership, Role
from control_plane.tenants.queries import member_of, members_of

ROLES = [role.value for role in Role]


class MemberOut(serializers.Serializer):
    id = serializers.IntegerField()
    email = serializers.EmailField()
    name = serializers.CharField()
    role = serializers.ChoiceField(ROLES)


class MemberIn(StrictSerializer):
    email = Text(max_length=254)
    role = serializers.ChoiceField(ROLES)


class RoleIn(StrictSerializer):
    role = serializers.ChoiceField(ROLES)


class MembersView(APIView):
    @extend_schema(
        operation_id="members_list", parameters=[PageQuery], responses=page_serializer("MemberPage", MemberOut)
    )
    def get(self, request: Request) -> Response:
        query = read_query(request, PageQuery)
        return Response(page_of(members_of(caller_of(request).tenant), key="id", query=query, show=show_member))

    @extend_schema(request=MemberIn, responses={201: MemberOut})
    def post(self, request: Request) -> Response:
        caller = owner_of(request)
        serializer = MemberIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        member = add_member(actor=caller.name, tenant=caller.tenant, **serializer.validated_data)
        return Response(show_member(member), status=201)


class MemberView(APIView):
    @extend_schema(request=RoleIn, responses=MemberOut)
    def patch(self, request: Request, member_id: int) -> Response:
        caller = owner_of(request)
        serializer = RoleIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        member = member_of(caller.tenant, member_id)
        return Response(show_member(change_role(actor=caller.name, member=member, **serializer.validated_data)))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, member_id: int) -> Response:
        caller = owner_of(request)
        remove_member(actor=caller.name, member=member_of(caller.tenant, member_id))
        return Response(status=204)


def owner_of(request: Request) -> Caller:
    caller = caller_of(request)
    caller.require_person()
    caller.require(Role.OWNER)
    return caller


def show_member(member: Membership) -> dict[str, Any]:
    return {"id": member.pk, "email": member.user.email, "name": member.user.name, "role": member.role}
