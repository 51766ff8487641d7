"""Frames and headers: what stands around a message on a connection.

Request header v2 and response header v1 (both with tags) go with flexible versions; the client id stays an int16
string in both, and ApiVersions responses always have header v0: the client does not yet know what the broker speaks.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from broker_engine.wire import registry
from broker_engine.wire.api import API_VERSIONS_KEY, ApiSpec
from broker_engine.wire.errors import WireError, refuse_length
from broker_engine.wire.primitives import Part, read_uvarint, skip_tags
from broker_engine.wire.schema import MEMORY_BYTES_MAX, Message

_HEAD = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_LENGTH = struct.Struct(">i")

# A first part up to this size is copied to stand in one buffer with its length.
_COPIED_BYTES_MAX = 8192


@dataclass(slots=True)
class RequestHeader:
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: memoryview


def parse_request_header(frame: memoryview) -> RequestHeader:
    """Read the header of a frame without its length. An unknown key is read as header v1; the version is not judged."""
    try:
        return _parse_request_header(frame)
    except (struct.error, IndexError) as error:
        raise WireError("request header is cut short") from error


def _parse_request_header(frame: memoryview) -> RequestHeader:
    key, version, correlation_id, length = _HEAD.unpack_from(frame, 0)
    position = _HEAD.size + max(length, 0)
    if position > len(frame):
        refuse_length("client_id", length, len(frame) - _HEAD.size)
    client_id = str(frame[_HEAD.size : position], "utf-8", "replace") if length >= 0 else None
    if _is_request_header_flexible(key, version):
        count, position = read_uvarint(frame, position)
        position, _ = skip_tags(frame, position, count, MEMORY_BYTES_MAX)
    return RequestHeader(key, version, correlation_id, client_id, frame[position:])


def _is_request_header_flexible(key: int, version: int) -> bool:
    spec = registry.find(key)
    if spec is None:
        return False
    # Kafka reads an ApiVersions request of a version it does not know, a negative one too, with the newest header.
    if key == API_VERSIONS_KEY and not spec.has_version(version):
        return True
    return spec.is_flexible(version)


def encode_request(correlation_id: int, client_id: str | None, message: Message, version: int) -> list[Part]:
    """Header and body as parts, without the length in front."""
    spec = message.API
    encoded = b"" if client_id is None else client_id.encode()
    head = bytearray(_HEAD.pack(spec.key, version, correlation_id, -1 if client_id is None else len(encoded)))
    head += encoded
    if spec.is_flexible(version):
        head.append(0)
    return _with_body(head, message, version)


def encode_response(correlation_id: int, message: Message, version: int) -> list[Part]:
    """Header and body as parts, without the length in front."""
    head = bytearray(_CORRELATION.pack(correlation_id))
    if _is_response_header_flexible(message.API, version):
        head.append(0)
    return _with_body(head, message, version)


def _with_body(head: bytearray, message: Message, version: int) -> list[Part]:
    parts: list[Part] = []
    rest = message.write_into(head, parts, version)
    if rest:
        parts.append(bytes(rest))
    return parts


def _is_response_header_flexible(spec: ApiSpec, version: int) -> bool:
    return spec.key != API_VERSIONS_KEY and spec.is_flexible(version)


def parse_response(frame: bytes | memoryview, spec: ApiSpec, version: int) -> tuple[int, Message]:
    """Correlation id and message of a response frame without its length."""
    view = memoryview(frame)
    try:
        (correlation_id,) = _CORRELATION.unpack_from(view, 0)
        position = _CORRELATION.size
        if _is_response_header_flexible(spec, version):
            count, position = read_uvarint(view, position)
            position, _ = skip_tags(view, position, count, MEMORY_BYTES_MAX)
    except (struct.error, IndexError) as error:
        raise WireError("response header is cut short") from error
    return correlation_id, spec.response.decode(view[position:], version)


def correlation_id_of(frame: bytes | memoryview) -> int:
    """The id a response answers to; a client needs it to know the API and version of the rest."""
    if len(frame) < _CORRELATION.size:
        raise WireError("response header is cut short")
    (correlation_id,) = _CORRELATION.unpack_from(frame, 0)
    return int(correlation_id)


def frame(parts: Sequence[Part]) -> list[Part]:
    """The parts of a message with the 4-byte length in front."""
    total = sum(len(part) if isinstance(part, bytes | memoryview) else part.size_bytes for part in parts)
    length = _LENGTH.pack(total)
    first = parts[0]
    if isinstance(first, bytes) and len(first) <= _COPIED_BYTES_MAX:
        return [length + first, *parts[1:]]
    return [length, *parts]
