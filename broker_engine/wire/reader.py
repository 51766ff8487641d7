"""Generates the reader of one struct at one version: straight-line code, nested structs inlined, no calls per field.

Neighbouring fields of constant size, and the length or tag count that follows them, are read by one unpack. Each array
count is checked against the bytes left and against the memory budget before anything is allocated for it.
"""

from __future__ import annotations

import struct

from broker_engine.wire import errors, primitives
from broker_engine.wire.kinds import UUID_KIND, ArrayOf, Blob, Fixed, Kind, RecordSet, StructOf, Text
from broker_engine.wire.schema import FieldSpec, Reader, Struct, fields_of
from broker_engine.wire.sizes import memory_bytes, wire_bytes_min
from broker_engine.wire.source import SHORT_ARRAY_COUNT, Source


def compile_reader(struct_type: type[Struct], version: int) -> Reader:
    generator = _ReaderGenerator(struct_type, version)
    reader: Reader = generator.generate()
    return reader


class _ReaderGenerator:
    def __init__(self, struct_type: type[Struct], version: int) -> None:
        self._struct_type = struct_type
        self._version = version
        self._is_flexible = version in struct_type.__wire_flexible__
        self._source = Source(f"{struct_type.__name__} v{version} reader")
        self._pending: list[tuple[Fixed, str]] = []
        for function in (errors.refuse_length, errors.refuse_null, errors.refuse_memory):
            self._source.name(function.__name__, function)
        for helper in (primitives.read_uvarint_rest, primitives.skip_tags, primitives.uuid_from):
            self._source.name(getattr(helper, "__name__", "uuid_from"), helper)
        self._source.name("new", object.__new__)
        self._source.name("unpack_from", struct.unpack_from)

    def generate(self) -> Reader:
        with self._source.block("def read(buffer, position, memory):"):
            self._source.line("end = len(buffer)")
            self._struct("message", self._struct_type)
            self._flush()
            self._source.line("return message, position")
        reader: Reader = self._source.build("read")
        return reader

    def _struct(self, target: str, struct_type: type[Struct]) -> None:
        line = self._source.line
        line(f"{target} = new({self._source.constant(struct_type.__name__, struct_type)})")
        specs = fields_of(struct_type)
        for spec in specs:
            if not self._is_regular(spec):
                line(f"{target}.{spec.name} = {self._default(spec)}")
        for spec in specs:
            if self._is_regular(spec):
                self._value(f"{target}.{spec.name}", spec.kind, self._version in spec.nullable)
        if self._is_flexible:
            self._tags(target, [spec for spec in specs if self._is_tagged(spec)])

    def _is_regular(self, spec: FieldSpec) -> bool:
        return self._version in spec.versions and self._version not in spec.tagged

    def _is_tagged(self, spec: FieldSpec) -> bool:
        return self._version in spec.versions and self._version in spec.tagged

    def _default(self, spec: FieldSpec) -> str:
        if isinstance(spec.kind, ArrayOf) and spec.default is not None:
            return "[]"
        return self._source.constant("default_", spec.default)

    def _value(self, target: str, kind: Kind, is_nullable: bool) -> None:
        match kind:
            case Fixed():
                self._pending.append((kind, target))
            case Text():
                self._text(target, is_nullable)
            case Blob() | RecordSet():
                self._blob(target, kind, is_nullable)
            case ArrayOf(element=element):
                self._array(target, element, is_nullable)
            case StructOf(struct=struct_type):
                self._nested(target, struct_type, is_nullable)

    def _flush(self) -> None:
        """Read the pending run of fields of constant size by one unpack."""
        if not self._pending:
            return
        run, self._pending = self._pending, []
        if len(run) == 1 and run[0][0].code == "B":
            self._source.line(f"{run[0][1]} = buffer[position]")
            self._source.line("position += 1")
            return
        names = [self._source.fresh("raw") if kind is UUID_KIND else target for kind, target in run]
        unpack = self._source.unpacker("".join(kind.code for kind, _ in run))
        self._source.line(f"{', '.join(names)}, = {unpack}(buffer, position)")
        self._source.line(f"position += {sum(kind.size_bytes for kind, _ in run)}")
        for name, (kind, target) in zip(names, run, strict=True):
            if kind is UUID_KIND:
                self._source.line(f"{target} = uuid_from({name})")

    def _length(self, kind: Fixed) -> str:
        """Read a length prefix into a fresh variable; negative means null."""
        length = self._source.fresh("n")
        self._pending.append((Fixed("B", 1) if self._is_flexible else kind, length))
        self._flush()
        if self._is_flexible:
            self._long_uvarint(length)
            self._source.line(f"{length} -= 1")
        return length

    def _long_uvarint(self, name: str) -> None:
        with self._source.block(f"if {name} > 127:"):
            self._source.line(f"{name}, position = read_uvarint_rest(buffer, position, {name})")

    def _null(self, target: str, is_nullable: bool) -> None:
        field = target.partition(".")[2] or target
        self._source.line(f"{target} = None" if is_nullable else f"refuse_null({field!r})")

    def _text(self, target: str, is_nullable: bool) -> None:
        length = self._length(Fixed("h", 2))
        with self._source.block(f"if {length} < 0:"):
            self._null(target, is_nullable)
        with self._source.block("else:"):
            self._source.line(f"stop = position + {length}")
            with self._source.block(f"if stop > end or {length} > 32767:"):
                self._source.line(f"refuse_length({target!r}, {length}, end - position)")
            self._source.line(f"{target} = str(buffer[position:stop], 'utf-8', 'replace')")
            self._source.line("position = stop")

    def _blob(self, target: str, kind: Blob | RecordSet, is_nullable: bool) -> None:
        length = self._length(Fixed("i", 4))
        with self._source.block(f"if {length} < 0:"):
            self._null(target, is_nullable)
        with self._source.block("else:"):
            self._source.line(f"stop = position + {length}")
            with self._source.block("if stop > end:"):
                self._source.line(f"refuse_length({target!r}, {length}, end - position)")
            view = "buffer[position:stop]"
            self._source.line(f"{target} = {view}" if isinstance(kind, RecordSet) else f"{target} = {view}.tobytes()")
            self._source.line("position = stop")

    def _array(self, target: str, element: Kind, is_nullable: bool) -> None:
        length = self._length(Fixed("i", 4))
        with self._source.block(f"if {length} < 0:"):
            self._null(target, is_nullable)
        with self._source.block("else:"):
            self._budget(target, element, length)
            if isinstance(element, Fixed):
                self._fixed_elements(target, element, length)
            else:
                self._elements(target, element, length)

    def _budget(self, target: str, element: Kind, length: str) -> None:
        smallest = wire_bytes_min(element, self._version, self._is_flexible)
        with self._source.block(f"if {length} * {smallest} > end - position:"):
            self._source.line(f"refuse_length({target!r}, {length}, end - position)")
        self._source.line(f"memory -= {length} * {memory_bytes(element)}")
        with self._source.block("if memory < 0:"):
            self._source.line(f"refuse_memory({target!r})")

    def _fixed_elements(self, target: str, element: Fixed, length: str) -> None:
        line = self._source.line
        line(f"stop = position + {length} * {element.size_bytes}")
        if element is UUID_KIND:
            line(f"{target} = [uuid_from(bytes(buffer[at:at + 16])) for at in range(position, stop, 16)]")
        else:
            short = f"{self._source.unpackers(element.code)}[{length}](buffer, position)"
            long = f"unpack_from(f'>{{{length}}}{element.code}', buffer, position)"
            line(f"{target} = list({short} if {length} < {SHORT_ARRAY_COUNT} else {long})")
        line("position = stop")

    def _elements(self, target: str, element: Kind, length: str) -> None:
        items, item = self._source.fresh("items"), self._source.fresh("item")
        self._source.line(f"{target} = {items} = []")
        with self._source.block(f"for _ in range({length}):"):
            if isinstance(element, StructOf):
                self._struct(item, element.struct)
            else:
                self._value(item, element, is_nullable=False)
            self._flush()
            self._source.line(f"{items}.append({item})")

    def _nested(self, target: str, struct_type: type[Struct], is_nullable: bool) -> None:
        item = self._source.fresh("item")
        if not is_nullable:
            self._struct(item, struct_type)
            self._flush()
            self._source.line(f"{target} = {item}")
            return
        mark = self._source.fresh("n")
        self._pending.append((Fixed("b", 1), mark))
        self._flush()
        with self._source.block(f"if {mark} < 0:"):
            self._source.line(f"{target} = None")
        with self._source.block("else:"):
            self._struct(item, struct_type)
            self._flush()
            self._source.line(f"{target} = {item}")

    def _tags(self, target: str, tagged: list[FieldSpec]) -> None:
        count = self._source.fresh("n")
        self._pending.append((Fixed("B", 1), count))
        self._flush()
        with self._source.block(f"if {count}:"):
            self._long_uvarint(count)
            if tagged:
                self._known_tags(target, tagged, count)
            else:
                self._source.line(f"position, memory = skip_tags(buffer, position, {count}, memory)")

    def _known_tags(self, target: str, tagged: list[FieldSpec], count: str) -> None:
        tag, size, tag_end = (self._source.fresh(prefix) for prefix in ("tag", "size", "tag_end"))
        line, block = self._source.line, self._source.block
        with block(f"if {count} < 0 or {count} * 2 > end - position:"):
            line(f"refuse_length('tagged fields', {count}, end - position)")
        line(f"memory -= {count} * {primitives.SKIPPED_TAG_COST_BYTES}")
        with block("if memory < 0:"):
            line("refuse_memory('tagged fields')")
        with block(f"for _ in range({count}):"):
            for name in (tag, size):
                line(f"{name} = buffer[position]")
                line("position += 1")
                self._long_uvarint(name)
            line(f"{tag_end} = position + {size}")
            with block(f"if {size} < 0 or {tag_end} > end:"):
                line(f"refuse_length('tagged field', {size}, end - position)")
            for spec in tagged:
                with block(f"if {tag} == {spec.tag}:"):
                    self._value(f"{target}.{spec.name}", spec.kind, self._version in spec.nullable)
                    self._flush()
                    with block(f"if position > {tag_end}:"):
                        line(f"refuse_length({spec.name!r}, {size}, end - position)")
            line(f"position = {tag_end}")
