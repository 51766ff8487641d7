"""Lists in pages: `page_size` and an opaque `page_token`; the answer is {data, next_page_token}.

Pages go by the last row's key, not by counting, so that rows which come or go do not shift the next page.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from django.db.models import IntegerField, Model, QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.request import Request

from api import problems
from api.fields import StrictSerializer
from api.problems import ProblemError

PAGE_SIZE_DEFAULT = 50
PAGE_SIZE_MAX = 500


class PageQuery(StrictSerializer):
    page_size = serializers.IntegerField(min_value=1, max_value=PAGE_SIZE_MAX, default=PAGE_SIZE_DEFAULT)
    page_token = serializers.CharField(required=False, help_text="next_page_token of the page before")


def read_query(request: Request, serializer_class: type[StrictSerializer]) -> dict[str, Any]:
    serializer = serializer_class(data=request.query_params.dict())
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values


def page_of(
    rows: QuerySet[Any],
    *,
    key: str,
    query: dict[str, Any],
    show: Callable[[Any], dict[str, Any]],
    descending: bool = False,
) -> dict[str, Any]:
    """One page of `rows` in the order of the unique column `key`."""
    if "page_token" in query:
        after = _read_token(query["page_token"], rows.model, key)
        rows = rows.filter(**{f"{key}__{'lt' if descending else 'gt'}": after})
    size = query["page_size"]
    found = list(rows.order_by(f"-{key}" if descending else key)[: size + 1])
    page = found[:size]
    token = _token(key, page[-1]) if len(found) > size else None
    return {"data": [show(row) for row in page], "next_page_token": token}


def page_of_named(rows: list[dict[str, Any]], *, query: dict[str, Any]) -> dict[str, Any]:
    """One page of rows that are in no database, in the order of their names."""
    if "page_token" in query:
        after = _parsed(query["page_token"], "name", str)
        rows = [row for row in rows if row["name"] > after]
    size = query["page_size"]
    page = sorted(rows, key=lambda row: row["name"])[:size]
    token = _encoded("name", page[-1]["name"]) if len(rows) > size else None
    return {"data": page, "next_page_token": token}


def _token(key: str, row: Model) -> str:
    return _encoded(key, getattr(row, key))


def _encoded(key: str, value: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps([key, value]).encode()).decode().rstrip("=")


def _read_token(token: str, model: type[Model], key: str) -> str | int:
    return _parsed(token, key, int if isinstance(model._meta.get_field(key), IntegerField) else str)


def _parsed(token: str, key: str, wanted: type[int] | type[str]) -> Any:
    """Tokens come from outside: one that we did not make for this list is the caller's mistake."""
    try:
        named, value = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, TypeError):
        named, value = None, None
    if named != key or type(value) is not wanted or "\0" in str(value):
        raise ProblemError(problems.invalid_fields({"page_token": "This is not a token of this list"}))
    return value


def page_serializer(name: str, row: type[serializers.Serializer]) -> serializers.Serializer:
    """The shape of a page, for the OpenAPI document."""
    return inline_serializer(name, {"data": row(many=True), "next_page_token": serializers.CharField(allow_null=True)})
