"""The data plane's part of the OpenAPI 3.1 document: drf-spectacular sees DRF views only, and these are plain ones."""

from __future__ import annotations

from typing import Any

from api.gateway import fetch_query, produce_body
from api.gateway.record_json import FORMATS

Schema = dict[str, Any]

INT64_TEXT: Schema = {"type": "string", "pattern": "^-?[0-9]+$", "description": "int64 as decimal text"}
SECURITY: list[Schema] = [{"apiKey": []}, {"session": []}]


def describe_gateway(document: Schema) -> Schema:
    """The document with our paths and components added."""
    document.setdefault("paths", {}).update(PATHS)
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in COMPONENTS.items():
        components.setdefault(name, schema)
    return document


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None, **more: Any) -> Schema:
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties, **more}


def _nullable(schema: Schema) -> Schema:
    return {"oneOf": [schema, {"type": "null"}]}


def _const(kind: str, member: str) -> Schema:
    return _object({"type": {"const": kind}, member: {"type": "string"}}, additionalProperties=False)


def _answer(description: str, schema: str, media_type: str = "application/json") -> Schema:
    return {"description": description, "content": {media_type: {"schema": _ref(schema)}}}


def _problems(*statuses: int) -> Schema:
    said = {
        400: "A field is wrong; `errors` names it",
        401: "Not signed in",
        403: "Not allowed",
        404: "No such topic or partition",
        413: "Too many records or bytes",
        415: "Neither JSON nor NDJSON",
        416: "No such offset; the valid range is beside it",
        429: "Too many failed tries",
        503: "The engine does not answer, or too much at once; see Retry-After",
    }
    return {str(status): _answer(said[status], "Problem", "application/problem+json") for status in statuses}


def _query(name: str, description: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _whole(largest: int, default: int | None = None, smallest: int = 0) -> Schema:
    bounds: Schema = {"type": "integer", "minimum": smallest, "maximum": largest}
    return bounds if default is None else {**bounds, "default": default}


TOPIC: Schema = {"name": "topic", "in": "path", "required": True, "schema": {"type": "string"}}
PARTITION: Schema = {"name": "partition", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
ACKS: Schema = {"type": "string", "enum": list(produce_body.ACKS), "default": "all"}
FORMAT: Schema = {"type": "string", "enum": list(FORMATS), "default": "auto"}

FETCH_PARAMETERS = [
    TOPIC,
    PARTITION,
    _query("offset", "An offset, `earliest` (also without any start) or `latest`", {"type": "string"}),
    _query("timestamp", "Instead of offset: from this time on (ms)", {"type": "integer", "minimum": 0}),
    _query("tail", "Instead of offset: the last n records", _whole(fetch_query.RECORDS_MAX)),
    _query("max_records", "", _whole(fetch_query.RECORDS_MAX, fetch_query.RECORDS_DEFAULT, 1)),
    _query(
        "max_bytes",
        "At least one record comes, however large",
        _whole(fetch_query.BYTES_MAX, fetch_query.BYTES_DEFAULT, 1),
    ),
    _query("wait_ms", "Wait so long for the first record", _whole(fetch_query.WAIT_MS_MAX, 0)),
    _query("key_format", "`string` and `json` fall back to base64", FORMAT),
    _query("value_format", "`string` and `json` fall back to base64", FORMAT),
]

HEADER = _object({"name": {"type": "string"}, "value": {"type": ["string", "null"], "contentEncoding": "base64"}})

COMPONENTS: dict[str, Schema] = {
    "Problem": _object(
        {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "error_code": {"type": "integer"},
            "message": {"type": "string"},
        },
        {
            "errors": {
                "type": "array",
                "items": _object({"field": {"type": "string"}, "message": {"type": "string"}}),
            },
            "log_start_offset": INT64_TEXT,
            "high_watermark": INT64_TEXT,
            "results": {"type": "array", "items": _ref("ProduceResult")},
        },
    ),
    "ProducePayload": {
        "description": "null; a string (stored as its bytes); any other JSON value (stored as its text); an envelope",
        "anyOf": [
            _object(
                {"type": {"enum": list(produce_body.ENVELOPE_TYPES)}, "data": {}},
                additionalProperties=False,
                description="STRING: text, BINARY: base64, JSON: any value",
            ),
            {},
        ],
    },
    "ProduceRecord": _object(
        {},
        {
            "key": _ref("ProducePayload"),
            "value": _ref("ProducePayload"),
            "headers": {"type": ["array", "null"], "items": {**HEADER, "required": ["name"]}},
            "partition": {"type": ["integer", "null"], "minimum": 0},
            "timestamp": {"type": ["integer", "null"], "minimum": 0, "description": "ms since 1970"},
        },
        additionalProperties=False,
    ),
    "ProduceRecords": {
        "type": "array",
        "maxItems": produce_body.RECORDS_MAX,
        "items": _ref("ProduceRecord"),
    },
    "ProduceRequest": {
        "oneOf": [
            _ref("ProduceRecords"),
            _object({"records": _ref("ProduceRecords")}, {"acks": ACKS}, additionalProperties=False),
        ]
    },
    "ProduceResult": {
        "oneOf": [
            _object(
                {
                    "partition": {"type": "integer"},
                    "offset": _nullable(INT64_TEXT),
                    "timestamp": {"type": "integer"},
                },
                additionalProperties=False,
            ),
            _object(
                {"error_code": {"type": "integer"}, "message": {"type": "string"}},
                additionalProperties=False,
            ),
        ]
    },
    "ProduceResponse": _object(
        {"results": {"type": "array", "items": _ref("ProduceResult")}}, additionalProperties=False
    ),
    "RecordPayload": {
        "oneOf": [_const("string", "data"), _const("json", "text"), _const("base64", "data"), {"type": "null"}]
    },
    "Record": _object(
        {
            "partition": {"type": "integer"},
            "offset": INT64_TEXT,
            "timestamp": {"type": "integer"},
            "key": _ref("RecordPayload"),
            "value": _ref("RecordPayload"),
            "headers": {"type": "array", "items": HEADER},
        },
        additionalProperties=False,
    ),
    "FetchResponse": _object(
        {
            "records": {"type": "array", "items": _ref("Record")},
            "next_offset": INT64_TEXT,
            "high_watermark": INT64_TEXT,
            "last_stable_offset": INT64_TEXT,
            "log_start_offset": INT64_TEXT,
        },
        additionalProperties=False,
    ),
    "WsTicket": _object(
        {"ticket": {"type": "string"}, "expires_in_s": {"type": "integer"}}, additionalProperties=False
    ),
}

PATHS: dict[str, Schema] = {
    "/api/v1/topics/{topic}/records": {
        "post": {
            "operationId": "topics_records_produce",
            "tags": ["records"],
            "summary": "Send up to 1,000 records (5 MiB), as an array, an object or NDJSON",
            "security": SECURITY,
            "parameters": [TOPIC, _query("acks", "Where the body cannot say it (array, NDJSON)", ACKS)],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": _ref("ProduceRequest")},
                    "application/x-ndjson": {"schema": _ref("ProduceRecord")},
                },
            },
            "responses": {
                "200": _answer("All records are in", "ProduceResponse"),
                "202": _answer("Sent with acks=none: nobody knows", "ProduceResponse"),
                "207": _answer("Some are in, some are not; in the order of the request", "ProduceResponse"),
                **_problems(400, 401, 403, 404, 413, 415, 429, 503),
            },
        }
    },
    "/api/v1/topics/{topic}/partitions/{partition}/records": {
        "get": {
            "operationId": "topics_partitions_records_fetch",
            "tags": ["records"],
            "summary": "Read one partition; nothing is kept between calls",
            "security": SECURITY,
            "parameters": FETCH_PARAMETERS,
            "responses": {
                "200": _answer("Records from the start on, maybe none", "FetchResponse"),
                **_problems(400, 401, 403, 404, 416, 429, 503),
            },
        }
    },
    "/api/v1/ws-tickets": {
        "post": {
            "operationId": "ws_tickets_create",
            "tags": ["live"],
            "summary": "A ticket for /api/v1/ws: one use, 30 seconds, to be sent as `token` in hello",
            "security": SECURITY,
            "responses": {"200": _answer("The ticket", "WsTicket"), **_problems(401, 403, 429)},
        }
    },
}
