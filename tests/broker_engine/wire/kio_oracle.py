"""kio as an oracle: its class for a message, and our values as its values (enums, times, no null id)."""

from __future__ import annotations

import dataclasses
import io
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from broker_engine.wire.api import ApiSpec
from broker_engine.wire.schema import Message, Struct

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_2100_MS = 4_102_444_800_000


def twin_of(spec: ApiSpec, message_type: type[Message], version: int) -> type[Any]:
    package = message_type.__module__.rpartition(".")[2]
    side = "request" if message_type is spec.request else "response"
    twin: type[Any] = getattr(import_module(f"kio.schema.{package}.v{version}.{side}"), message_type.__name__)
    return twin


@cache
def _hints(twin: type[Any]) -> dict[str, Any]:
    """Types by our names: kio drops the unit from the name of what it holds as a time."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(twin)}
    hints = get_type_hints(twin)
    return {_our_name(name, metadata[name].get("kafka_type", "")): (name, hints[name]) for name in metadata}


def _our_name(name: str, kafka_type: str) -> str:
    is_time = kafka_type.startswith(("timedelta", "datetime"))
    return f"{name}_ms" if is_time and not name.endswith("_ms") else name


def _bare(hint: Any) -> Any:
    """The element type, without None and without the tuple around it."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    return get_args(hint)[0] if get_origin(hint) is tuple else hint


def has_field(twin: type[Any], name: str) -> bool:
    return name in _hints(twin)


def nested_type(twin: type[Any], name: str) -> type[Any] | None:
    bare = _bare(_hints(twin)[name][1])
    return bare if dataclasses.is_dataclass(bare) else None  # type: ignore[return-value]


def narrow(twin: type[Any], name: str) -> st.SearchStrategy[Any] | None:
    """Where kio cannot hold every value of the wire, a strategy for those that it can."""
    _, hint = _hints(twin)[name]
    bare = _bare(hint)
    if bare is ErrorCode:
        return st.sampled_from([code.value for code in ErrorCode])
    if not isinstance(bare, type):
        return None
    if issubclass(bare, datetime):
        times = st.integers(0, YEAR_2100_MS)
        return times if hint is bare else st.just(-1) | times
    if issubclass(bare, timedelta) and bare.__name__.startswith("i64"):
        return st.integers(-1, YEAR_2100_MS)
    return None


def to_kio(value: Struct, twin: type[Any]) -> Any:
    arguments = {kio: _convert(getattr(value, ours), hint) for ours, (kio, hint) in _hints(twin).items()}
    return twin(**arguments)


def _convert(value: Any, hint: Any) -> Any:
    bare = _bare(hint)
    if isinstance(value, list | tuple):
        return tuple(_convert(item, bare) for item in value)
    if value is None:
        return None
    if dataclasses.is_dataclass(bare):
        return to_kio(value, bare)  # type: ignore[arg-type]
    return _convert_scalar(value, bare)


def _convert_scalar(value: Any, bare: Any) -> Any:
    if bare is ErrorCode:
        return ErrorCode(value)
    if bare is UUID:
        return value if value.int else None
    if issubclass(bare, datetime):
        return None if value == -1 else EPOCH + timedelta(milliseconds=value)
    if issubclass(bare, timedelta):
        return timedelta(milliseconds=value)
    return value


def encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def decode(twin: type[Any], data: bytes) -> Any:
    entity, size = entity_reader(twin)(data, 0)
    assert size == len(data)
    return entity
