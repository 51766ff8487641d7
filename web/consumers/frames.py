"""Client frames of `highwater.v1.json`, from text to typed requests. Pure; FrameError says which field and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.gateway.json_text import JsonCursor, JsonError
from api.gateway.record_json import FORMATS

FRAME_BYTES_MAX = 1 << 20
ID_CHARACTERS_MAX = 64
CREDIT_MAX = (1 << 31) - 1
TAIL_MAX = 1000
INT64_MAX = (1 << 63) - 1
PARTITION_MAX = (1 << 31) - 1

Frame = dict[str, Any]
ClientId = str | int


class NotAFrame(ValueError):  # noqa: N818 - reads as the sentence it is
    """The text is no JSON object with a `type`: nobody speaks this protocol on the other side."""


class FrameError(ValueError):
    """A frame that can be answered with an error frame; `id` and `sub` say which request it belongs to."""

    def __init__(self, message: str, code: str = "bad_frame") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Tail:
    """The last n records of each partition."""

    count: int


@dataclass(frozen=True, slots=True)
class Offsets:
    by_partition: Mapping[int, int]


Start = str | Tail | Offsets


@dataclass(frozen=True, slots=True)
class Subscribe:
    id: ClientId
    topic: str
    partitions: tuple[int, ...] | None
    start: Start
    key_format: str
    value_format: str
    credit_records: int
    credit_bytes: int


@dataclass(frozen=True, slots=True)
class AddCredit:
    sub: str
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Watch:
    id: ClientId
    topic: str


@dataclass(frozen=True, slots=True)
class WatchGroup:
    id: ClientId
    group: str


@dataclass(frozen=True, slots=True)
class WatchGroups:
    """All of the tenant's."""

    id: ClientId


AnyWatch = Watch | WatchGroup | WatchGroups


def parse_frame(text: str) -> Frame:
    try:
        cursor = JsonCursor(text)
        frame = cursor.value().decoded
        cursor.end()
    except JsonError as error:
        raise NotAFrame(str(error)) from None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise NotAFrame("a frame is a JSON object with a `type`")
    return frame


def parse_hello(frame: Frame) -> str | None:
    """The ticket, if one is given."""
    _only(frame, "token", "client", "resume")
    token = frame.get("token")
    if token is not None and not isinstance(token, str):
        raise FrameError("token must be a string")
    return token


def parse_subscribe(frame: Frame) -> Subscribe:
    _only(frame, "id", "topic", "partitions", "start", "format", "credit")
    start = _start(frame.get("start", "latest"))
    key_format, value_format = _formats(frame.get("format", "auto"))
    records, size_bytes = _credit(frame.get("credit", {}), smallest=0)
    return Subscribe(
        id=client_id(frame),
        topic=_text(frame, "topic"),
        partitions=_partitions(frame.get("partitions"), start),
        start=start,
        key_format=key_format,
        value_format=value_format,
        credit_records=records,
        credit_bytes=size_bytes,
    )


def parse_credit(frame: Frame) -> AddCredit:
    _only(frame, "sub", "records", "bytes")
    given = {name: frame[name] for name in ("records", "bytes") if name in frame}
    return AddCredit(_text(frame, "sub"), *_credit(given, smallest=0))


def parse_unsubscribe(frame: Frame) -> str:
    _only(frame, "sub")
    return _text(frame, "sub")


def parse_watch(frame: Frame) -> AnyWatch:
    _only(frame, "id", "topic", "group", "groups")
    if sum(name in frame for name in ("topic", "group", "groups")) != 1:
        raise FrameError("watch takes one of topic, group and groups")
    if "group" in frame:
        return WatchGroup(client_id(frame), _text(frame, "group"))
    if "groups" in frame:
        if frame["groups"] is not True:
            raise FrameError("groups must be true")
        return WatchGroups(client_id(frame))
    return Watch(client_id(frame), _text(frame, "topic"))


def parse_ping(frame: Frame) -> str | int | float | None:
    _only(frame, "t")
    moment = frame.get("t")
    if moment is not None and not isinstance(moment, (str, int, float)):
        raise FrameError("t must be a number or a string")
    return moment


def client_id(frame: Frame) -> ClientId:
    given = frame.get("id")
    if isinstance(given, bool) or not isinstance(given, (str, int)) or len(str(given)) > ID_CHARACTERS_MAX:
        raise FrameError(f"id must be a number or a string of at most {ID_CHARACTERS_MAX} characters")
    return given


def _only(frame: Frame, *known: str) -> None:
    for name in frame:
        if name != "type" and name not in known:
            raise FrameError(f"{name}: unknown field; {frame['type']} takes {', '.join(known)}")


def _text(frame: Frame, name: str) -> str:
    given = frame.get(name)
    if not isinstance(given, str) or not given or len(given) > 1000:
        raise FrameError(f"{name} must be a string that is not empty")
    return given


def _start(given: object) -> Start:
    if given in ("earliest", "latest"):
        return str(given)
    if isinstance(given, dict) and given.keys() == {"tail"}:
        return Tail(_number(given["tail"], "start.tail", 0, TAIL_MAX))
    if isinstance(given, dict) and given.keys() == {"offsets"} and isinstance(given["offsets"], dict):
        return Offsets(dict(_offset(*item) for item in given["offsets"].items()))
    raise FrameError('start must be "earliest", "latest", {"tail": n} or {"offsets": {"0": 5}}')


def _offset(partition: str, offset: object) -> tuple[int, int]:
    number = _number(partition, "start.offsets", 0, PARTITION_MAX)
    return number, _number(offset, f"start.offsets.{number}", 0, INT64_MAX)


def _number(given: object, name: str, smallest: int, largest: int) -> int:
    """Numbers may come as decimal text, since JavaScript's do not hold an int64."""
    if isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) <= 19:
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or not smallest <= given <= largest:
        raise FrameError(f"{name} must be a whole number between {smallest} and {largest}")
    return given


def _formats(given: object) -> tuple[str, str]:
    if isinstance(given, dict) and given.keys() <= {"key", "value"}:
        return _format(given.get("key", "auto")), _format(given.get("value", "auto"))
    return _format(given), _format(given)


def _format(given: object) -> str:
    if not isinstance(given, str) or given not in FORMATS:
        raise FrameError(f"format must be one of {', '.join(FORMATS)}")
    return given


def _credit(given: object, *, smallest: int) -> tuple[int, int]:
    if not isinstance(given, dict) or not given.keys() <= {"records", "bytes"}:
        raise FrameError("credit must be an object with records and bytes")
    records = _number(given.get("records", 0), "credit.records", smallest, CREDIT_MAX)
    return records, _number(given.get("bytes", 0), "credit.bytes", smallest, CREDIT_MAX)


def _partitions(given: object, start: Start) -> tuple[int, ...] | None:
    """None means all. Offsets that are given without partitions name the partitions, too."""
    if given is None:
        return tuple(sorted(start.by_partition)) if isinstance(start, Offsets) else None
    if not isinstance(given, list) or not given:
        raise FrameError("partitions must be an array that is not empty")
    return tuple(sorted({_number(each, "partitions", 0, PARTITION_MAX) for each in given}))
