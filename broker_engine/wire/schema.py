"""The schema language: a message is a class, a field is an annotation with a default and, where needed, `field(...)`.

A Struct is a slotted, keyword-only dataclass for its users and a schema for the compiler, which turns it into a reader
and a writer per version on first use. Default values that are structs are shared and refuse assignment.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NoReturn,
    Self,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)

from broker_engine.wire.errors import WireError
from broker_engine.wire.kinds import ArrayMark, ArrayOf, Kind, StructOf
from broker_engine.wire.primitives import Part
from broker_engine.wire.versions import EVERY_VERSION, NO_VERSION, VersionRange, parse_versions

if TYPE_CHECKING:
    from broker_engine.wire.api import ApiSpec

T = TypeVar("T")
Reader = Callable[[memoryview, int, int], tuple[Any, int]]
Writer = Callable[[Any, bytearray, list[Part]], bytearray]

# What the objects of one decoded message may cost. Views of records are not counted: they stay in the frame.
MEMORY_BYTES_MAX = 128 << 20


@dataclass(frozen=True, slots=True)
class FieldMark:
    """What field() leaves in a class body until the class is made."""

    versions: VersionRange
    default: Any
    nullable: VersionRange | None
    tag: int | None
    tagged: VersionRange
    ignorable: bool


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field as the compiler sees it."""

    name: str
    kind: Kind
    versions: VersionRange
    default: Any
    nullable: VersionRange
    tag: int | None
    tagged: VersionRange
    ignorable: bool


def field(
    versions: str = "0+",
    *,
    default: T,
    nullable: str | None = None,
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
) -> T:
    """Say in which versions a field exists, may be null, is a tagged field, or may be dropped silently when absent."""
    tagged_versions = NO_VERSION if tag is None else parse_versions(tagged or versions)
    may_be_null = None if nullable is None else parse_versions(nullable)
    mark: Any = FieldMark(parse_versions(versions), default, may_be_null, tag, tagged_versions, ignorable)
    return cast(T, mark)  # the metaclass takes the mark out of the class body again


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class StructMeta(type):
    """Turns the annotated class body into slots, a constructor and field marks."""

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        versions: str = "0+",
        flexible: str = "0+",
    ) -> StructMeta:
        annotations = namespace.get("__annotations__", {})
        names = [key for key, text in annotations.items() if "ClassVar" not in str(text)]
        marks = {key: _mark(name, key, namespace) for key in names}
        namespace |= {"__slots__": tuple(names), "__wire_marks__": marks, "__wire_fields__": None}
        namespace |= {"__wire_versions__": parse_versions(versions), "__wire_flexible__": parse_versions(flexible)}
        namespace |= {"__wire_readers__": {}, "__wire_writers__": {}, "__wire_default__": None}
        namespace["__init__"] = _make_init(names, marks)
        return super().__new__(mcs, name, bases, namespace)


def _mark(struct_name: str, key: str, namespace: dict[str, Any]) -> FieldMark:
    if key not in namespace:
        raise TypeError(f"{struct_name}.{key} needs a default: Kafka gives every field one")
    value = namespace.pop(key)
    return value if isinstance(value, FieldMark) else FieldMark(EVERY_VERSION, value, None, None, NO_VERSION, False)


def _make_init(names: Sequence[str], marks: dict[str, FieldMark]) -> Any:
    arguments = "".join(f", {key}=d_{key}" for key in names)
    body = "; ".join(f"self.{key} = {key}" for key in names) or "pass"
    scope = {f"d_{key}": mark.default for key, mark in marks.items()}
    exec(f"def __init__(self{', *' if names else ''}{arguments}): {body}", scope)  # noqa: S102  # as dataclasses does
    return scope["__init__"]


class Struct(metaclass=StructMeta):
    """Base of every message and of the structs inside them."""

    __wire_marks__: ClassVar[dict[str, FieldMark]]
    __wire_fields__: ClassVar[tuple[FieldSpec, ...] | None]
    __wire_versions__: ClassVar[VersionRange]
    __wire_flexible__: ClassVar[VersionRange]
    __wire_readers__: ClassVar[dict[int, Reader]]
    __wire_writers__: ClassVar[dict[int, Writer]]
    __wire_default__: ClassVar[Any]

    @classmethod
    def decode(cls, body: bytes | memoryview, version: int, *, memory_bytes_max: int = MEMORY_BYTES_MAX) -> Self:
        """Read one message. Bytes after it are ignored, unknown tags skipped; anything malformed is a WireError."""
        read = cls.__wire_readers__.get(version) or _compile_reader(cls, version)
        view = body if type(body) is memoryview else memoryview(body)
        try:
            message: Self = read(view, 0, memory_bytes_max)[0]
        except (struct.error, IndexError) as error:
            raise WireError(f"{cls.__name__} v{version} is cut short") from error
        return message

    def encode(self, version: int) -> bytes:
        """The message as one bytes object. Records that live in files need encode_parts."""
        parts = self.encode_parts(version)
        if len(parts) == 1:
            return parts[0]  # type: ignore[return-value]  # the first part is always ours
        if not all(isinstance(part, bytes | memoryview) for part in parts):
            raise WireError(f"{type(self).__name__} holds parts that are not in memory: use encode_parts")
        return b"".join(parts)

    def encode_parts(self, version: int) -> list[Part]:
        """The message as buffers to be sent in order; records are passed on, not copied."""
        parts: list[Part] = []
        rest = self.write_into(bytearray(), parts, version)
        if rest or not parts:
            parts.append(bytes(rest))
        return parts

    def write_into(self, buffer: bytearray, parts: list[Part], version: int) -> bytearray:
        """Append to `buffer`; where records come, move it to `parts` and go on with a new one, which is returned."""
        write = self.__wire_writers__.get(version) or _compile_writer(type(self), version)
        try:
            return write(self, buffer, parts)
        except (struct.error, UnicodeEncodeError) as error:
            raise WireError(f"{type(self).__name__} v{version}: {error}") from error

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={getattr(self, key)!r}" for key in self.__wire_marks__)
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.__wire_marks__ is not other.__wire_marks__:
            return NotImplemented
        return all(_is_same(getattr(self, key), getattr(other, key)) for key in self.__wire_marks__)

    __hash__ = None  # type: ignore[assignment]  # messages are mutable


class Message(Struct):
    """A request or a response: a Struct that belongs to an API."""

    API: ClassVar[ApiSpec]


def _is_same(left: Any, right: Any) -> bool:
    """Arrays compare by content: a default is a tuple, what was read is a list."""
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return list(left) == list(right)
    return bool(left == right)


S = TypeVar("S", bound=Struct)


def default_of(struct_type: type[S]) -> S:
    """The one shared default value of a struct; assigning to it raises, because every message shares it."""
    if struct_type.__wire_default__ is None:
        body = {"__slots__": (), "__setattr__": _refuse_assignment}
        frozen: Any = type.__new__(StructMeta, struct_type.__name__, (struct_type,), body)
        shared: Any = object.__new__(frozen)
        for key, mark in struct_type.__wire_marks__.items():
            object.__setattr__(shared, key, mark.default)
        struct_type.__wire_default__ = shared
    return struct_type.__wire_default__  # type: ignore[no-any-return]


def _refuse_assignment(self: Struct, name: str, value: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__} is a shared default: build a new one to set {name}")


def fields_of(struct_type: type[Struct]) -> tuple[FieldSpec, ...]:
    """The fields with their kinds; annotations are resolved on first use, so that declaring stays cheap."""
    if struct_type.__wire_fields__ is None:
        module_scope = vars(sys.modules[struct_type.__module__])
        annotations, marks = struct_type.__annotations__, struct_type.__wire_marks__
        hints = {key: _evaluate(annotations[key], module_scope) for key in marks}
        struct_type.__wire_fields__ = tuple(_resolve(key, hints[key], mark) for key, mark in marks.items())
    return struct_type.__wire_fields__


def _evaluate(annotation: Any, scope: dict[str, Any]) -> Any:
    return eval(annotation, scope) if isinstance(annotation, str) else annotation  # noqa: S307  # source text of ours


def _resolve(name: str, hint: Any, mark: FieldMark) -> FieldSpec:
    is_nullable = get_origin(hint) in (Union, UnionType)
    if is_nullable:
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    nullable = (mark.nullable or EVERY_VERSION) if is_nullable else NO_VERSION
    kind = _kind_of(hint)
    return FieldSpec(name, kind, mark.versions, mark.default, nullable, mark.tag, mark.tagged, mark.ignorable)


def _kind_of(hint: Any) -> Kind:
    if get_origin(hint) is not Annotated:
        return StructOf(hint)
    plain, kind = get_args(hint)
    if isinstance(kind, ArrayMark):
        return ArrayOf(_kind_of(get_args(plain)[0]))
    return kind  # type: ignore[no-any-return]


def _compile_reader(struct_type: type[Struct], version: int) -> Reader:
    from broker_engine.wire.reader import compile_reader  # the compiler is needed only once a version is met

    _check_version(struct_type, version)
    read = compile_reader(struct_type, version)
    struct_type.__wire_readers__[version] = read
    return read


def _compile_writer(struct_type: type[Struct], version: int) -> Writer:
    from broker_engine.wire.writer import compile_writer

    _check_version(struct_type, version)
    write = compile_writer(struct_type, version)
    struct_type.__wire_writers__[version] = write
    return write


def _check_version(struct_type: type[Struct], version: int) -> None:
    if version not in struct_type.__wire_versions__:
        raise WireError(f"{struct_type.__name__} has no version {version}")
