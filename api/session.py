"""/session: signing in and out with a cookie, and who is signed in. Always hands out the CSRF cookie."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest
from django.middleware.csrf import get_token
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api import problems, throttle
from api.authentication import client_address, enforce_csrf, session_user
from api.exceptions import SESSION_CHALLENGE
from api.fields import StrictSerializer, Text
from api.problems import ProblemError
from control_plane.accounts.models import User
from control_plane.tenants.queries import tenants_of


class SignIn(StrictSerializer):
    email = Text(max_length=254)
    password = Text(max_length=1000, trim_whitespace=False)


class SessionUser(serializers.Serializer):
    email = serializers.EmailField()
    name = serializers.CharField()
    is_operator = serializers.BooleanField()


class SessionTenant(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    role = serializers.ChoiceField(["owner", "developer", "viewer"])


class EngineKind(serializers.Serializer):
    kind = serializers.CharField()


class Session(serializers.Serializer):
    user = SessionUser()
    tenants = SessionTenant(many=True)
    csrf_token = serializers.CharField()
    engine = EngineKind()
    kafka_bootstrap = serializers.CharField()


class SessionView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def perform_authentication(self, request: Request) -> None:
        """Nothing: DRF would overwrite the session's user with nobody."""

    @extend_schema(responses={200: Session, 401: OpenApiResponse(description="Nobody is signed in")})
    def get(self, request: Request) -> Response:
        plain = request._request
        get_token(plain)  # marks the CSRF cookie to be set, also on the 401
        user = session_user(plain)
        if user is None:
            raise ProblemError(problems.unauthenticated("Nobody is signed in", challenge=SESSION_CHALLENGE))
        return Response(show_session(plain, user))

    @extend_schema(request=SignIn, responses={200: Session})
    def post(self, request: Request) -> Response:
        plain = request._request
        enforce_csrf(plain)
        serializer = SignIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        user = sign_in(plain, **serializer.validated_data)
        return Response(show_session(plain, user))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request) -> Response:
        enforce_csrf(request._request)
        logout(request._request)
        return Response(status=204)


def sign_in(request: HttpRequest, *, email: str, password: str) -> User:
    address = client_address(request)
    throttle.check(email, address)
    user = authenticate(request, username=email, password=password)
    if not isinstance(user, User):
        throttle.failed(email, address)
        raise ProblemError(
            problems.unauthenticated("The address or the password is wrong", challenge=SESSION_CHALLENGE)
        )
    throttle.succeeded(email, address)
    login(request, user)
    return user


def show_session(request: HttpRequest, user: User) -> dict[str, Any]:
    return {
        "user": {"email": user.email, "name": user.name, "is_operator": user.is_operator},
        "tenants": [{"id": tenant.id, "name": tenant.name, "role": role} for tenant, role in tenants_of(user)],
        "csrf_token": get_token(request),
        "engine": {"kind": settings.HIGHWATER.engine},
        "kafka_bootstrap": settings.HIGHWATER.kafka_public,
    }
