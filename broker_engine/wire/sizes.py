"""The two bounds of the element budget: the fewest bytes an element takes on the wire, and what it costs in memory."""

from __future__ import annotations

from broker_engine.wire.kinds import ArrayOf, Fixed, Kind, StructOf, Text
from broker_engine.wire.schema import FieldSpec, fields_of

POINTER_BYTES = 8
INT_BYTES = 32
OBJECT_BYTES = 48
STRING_BYTES = 64
VIEW_BYTES = 200
LIST_BYTES = 64


def wire_bytes_min(kind: Kind, version: int, is_flexible: bool) -> int:
    """Never 0, so that a count is always bounded by the bytes that are left."""
    match kind:
        case Fixed(size_bytes=size):
            return size
        case StructOf(struct=struct_type):
            regular = (spec for spec in fields_of(struct_type) if _is_regular(spec, version))
            total = sum(_field_bytes_min(spec, version, is_flexible) for spec in regular)
            return max(1, total + is_flexible)
        case Text():
            return 1 if is_flexible else 2
        case _:
            return 1 if is_flexible else 4


def _field_bytes_min(spec: FieldSpec, version: int, is_flexible: bool) -> int:
    if isinstance(spec.kind, StructOf) and version in spec.nullable:
        return 1
    return wire_bytes_min(spec.kind, version, is_flexible)


def _is_regular(spec: FieldSpec, version: int) -> bool:
    return version in spec.versions and version not in spec.tagged


def memory_bytes(kind: Kind) -> int:
    """A rough upper figure for one empty value of the kind in CPython, pointer to it included."""
    match kind:
        case Fixed():
            return POINTER_BYTES + INT_BYTES
        case StructOf(struct=struct_type):
            return POINTER_BYTES + OBJECT_BYTES + sum(memory_bytes(spec.kind) for spec in fields_of(struct_type))
        case Text():
            return POINTER_BYTES + STRING_BYTES
        case ArrayOf():
            return POINTER_BYTES + LIST_BYTES
        case _:
            return POINTER_BYTES + VIEW_BYTES
