"""Hypothesis strategies for wire messages, from the declarations themselves.

With a `twin` (kio's class of the same message and version) values are kept to what kio can hold; without one every
value that the wire can carry is drawn.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from broker_engine.wire.kinds import BOOL, UUID_KIND, ArrayOf, Blob, Fixed, Kind, RecordSet, StructOf, Text
from broker_engine.wire.schema import FieldSpec, Struct, fields_of
from tests.broker_engine.wire import kio_oracle

NULL_UUID = UUID(int=0)
ELEMENT_COUNT_MAX = 3


def structs(struct_type: type[Struct], version: int, twin: type[Any] | None = None) -> st.SearchStrategy[Any]:
    """Structs whose fields of this version are drawn and whose other fields keep their defaults."""
    drawn = {}
    for spec in fields_of(struct_type):
        if version in spec.versions and (twin is None or kio_oracle.has_field(twin, spec.name)):
            drawn[spec.name] = _field(spec, version, twin)
    return st.builds(struct_type, **drawn)


def _field(spec: FieldSpec, version: int, twin: type[Any] | None) -> st.SearchStrategy[Any]:
    narrowed = None if twin is None else kio_oracle.narrow(twin, spec.name)
    nested = None if twin is None else kio_oracle.nested_type(twin, spec.name)
    values = narrowed if narrowed is not None else _values(spec.kind, version, nested)
    if version in spec.tagged and not isinstance(spec.kind, StructOf):
        values = st.just(spec.default) | values  # a tagged field at its default is left out
    return st.none() | values if version in spec.nullable else values


def _values(kind: Kind, version: int, nested: type[Any] | None) -> st.SearchStrategy[Any]:
    match kind:
        case Fixed():
            return _fixed(kind)
        case Text():
            return st.text(max_size=8)
        case Blob() | RecordSet():
            return st.binary(max_size=24)
        case ArrayOf(element=element):
            return st.lists(_values(element, version, nested), max_size=ELEMENT_COUNT_MAX)
        case StructOf(struct=struct_type):
            return structs(struct_type, version, nested)


def _fixed(kind: Fixed) -> st.SearchStrategy[Any]:
    if kind == BOOL:
        return st.booleans()
    if kind == UUID_KIND:
        return st.just(NULL_UUID) | st.uuids()
    if kind.code == "d":
        return st.floats(allow_nan=False)
    bits = kind.size_bytes * 8
    if kind.code.isupper():
        return st.integers(0, 2**bits - 1)
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
