"""The OpenAPI document: what drf-spectacular finds, what its views may answer in the bad case, and the gateway's views.

The gateway's async views are no DRF views; they describe themselves in `api.gateway.schema`.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

METHODS = ("get", "post", "put", "patch", "delete")
PROBLEM = {
    "description": "Any error: an RFC 9457 problem document",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class CallerScheme(OpenApiAuthenticationExtension):
    target_class = "api.authentication.CallerAuthentication"
    name = ["apiKey", "session"]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "http", "scheme": "basic", "description": "An API key: id and secret"},
            {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "Unsafe methods send X-CSRFToken"},
        ]


def complete_document(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook."""
    from api.gateway.schema import describe_gateway

    for operations in result["paths"].values():
        for method in METHODS:
            if method in operations:
                operations[method]["responses"].setdefault("default", PROBLEM)
    return describe_gateway(result)
