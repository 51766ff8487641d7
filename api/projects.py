"""/projects: parts of a tenant with a policy of their own. `id` is what a topic names as its project."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.authentication import caller_of
from api.fields import StrictSerializer, Text
from api.pagination import PageQuery, page_of, page_serializer, read_query
from control_plane.tenants.actions import create_project
from control_plane.tenants.models import Project, Role
from control_plane.tenants.queries import projects_of


class ProjectOut(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()


class ProjectIn(StrictSerializer):
    id = Text(required=False, max_length=63, source="slug", help_text="Made from the name where it is left out")
    name = Text(max_length=200)


class ProjectsView(APIView):
    @extend_schema(
        operation_id="projects_list", parameters=[PageQuery], responses=page_serializer("ProjectPage", ProjectOut)
    )
    def get(self, request: Request) -> Response:
        query = read_query(request, PageQuery)
        return Response(page_of(projects_of(caller_of(request).tenant), key="slug", query=query, show=show_project))

    @extend_schema(request=ProjectIn, responses={201: ProjectOut})
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require(Role.DEVELOPER)
        serializer = ProjectIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        project = create_project(actor=caller.name, tenant=caller.tenant, **serializer.validated_data)
        return Response(show_project(project), status=201)


def show_project(project: Project) -> dict[str, Any]:
    return {"id": project.slug, "name": project.name}
