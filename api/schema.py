"""The OpenAPI document: what drf-spectacular finds, and the async views of the gateway, which it cannot see."""

from __future__ import annotations

import importlib.util
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class CallerScheme(OpenApiAuthenticationExtension):
    target_class = "api.authentication.CallerAuthentication"
    name = ["apiKey", "session"]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "http", "scheme": "basic", "description": "An API key: id and secret"},
            {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "Unsafe methods send X-CSRFToken"},
        ]


def add_gateway_paths(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook. The gateway describes itself in `api.gateway.schema`."""
    if importlib.util.find_spec("api.gateway.schema") is None:
        return result
    from api.gateway.schema import describe_gateway

    return describe_gateway(result)
