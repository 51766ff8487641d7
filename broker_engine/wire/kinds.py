"""The types a field may have on the wire, as annotations: `node_id: Int32 = 0`, `topics: Array[Topic] | None = None`.

Each alias is the Python type a user sees, annotated with the kind the compiler reads. `X | None` means nullable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from uuid import UUID

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fixed:
    """A kind of constant size; `code` is its letter in the struct module."""

    code: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Text:
    """UTF-8; bad input becomes U+FFFD. At most 32,767 bytes, as in Kafka."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that are copied out of the frame."""


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Record batches: a view into the frame when read, parts that are not copied when written."""


@dataclass(frozen=True, slots=True)
class ArrayMark:
    """Marks the Array alias; the element is the alias's argument."""


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: Kind


@dataclass(frozen=True, slots=True)
class StructOf:
    struct: type[Any]


Kind = Fixed | Text | Blob | RecordSet | ArrayOf | StructOf

BOOL = Fixed("?", 1)
UUID_KIND = Fixed("16s", 16)

Bool = Annotated[bool, BOOL]
Int8 = Annotated[int, Fixed("b", 1)]
Int16 = Annotated[int, Fixed("h", 2)]
UInt16 = Annotated[int, Fixed("H", 2)]
Int32 = Annotated[int, Fixed("i", 4)]
UInt32 = Annotated[int, Fixed("I", 4)]
Int64 = Annotated[int, Fixed("q", 8)]
Float64 = Annotated[float, Fixed("d", 8)]
Uuid = Annotated[UUID, UUID_KIND]
String = Annotated[str, Text()]
Bytes = Annotated[bytes, Blob()]
Records = Annotated[bytes | memoryview, RecordSet()]
# What a fetch answers with: Any, because it may be written from file ranges and is read as a view.
RecordParts = Annotated[Any, RecordSet()]
Array = Annotated[Sequence[T], ArrayMark()]
