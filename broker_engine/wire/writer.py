"""Generates the writer of one struct at one version: straight-line code, nested structs inlined, no calls per field.

Neighbouring fields of constant size, and the length or tag count that follows them, are written by one pack. Records
are not copied: the buffer so far and the records become parts, and a new buffer begins.
"""

from __future__ import annotations

import struct

from broker_engine.wire import errors, primitives
from broker_engine.wire.kinds import UUID_KIND, ArrayOf, Blob, Fixed, Kind, RecordSet, StructOf, Text
from broker_engine.wire.schema import FieldSpec, Struct, Writer, fields_of
from broker_engine.wire.source import SHORT_ARRAY_COUNT, Source


def compile_writer(struct_type: type[Struct], version: int) -> Writer:
    return _WriterGenerator(struct_type, version).generate()


class _WriterGenerator:
    def __init__(self, struct_type: type[Struct], version: int) -> None:
        self._struct_type = struct_type
        self._version = version
        self._is_flexible = version in struct_type.__wire_flexible__
        self._source = Source(f"{struct_type.__name__} v{version} writer")
        self._pending: list[tuple[str, str]] = []  # struct code and expression; pad bytes have no expression
        for helper in (errors.refuse_version, errors.refuse_length, primitives.write_uvarint, primitives.record_pieces):
            self._source.name(helper.__name__, helper)
        self._source.name("pack", struct.pack)
        self._source.name("in_memory", frozenset((bytes, memoryview)))

    def generate(self) -> Writer:
        with self._source.block("def write(message, out, parts):"):
            self._struct("message", self._struct_type)
            self._flush()
            self._source.line("return out")
        writer: Writer = self._source.build("write")
        return writer

    def _struct(self, value: str, struct_type: type[Struct]) -> None:
        specs = fields_of(struct_type)
        for spec in specs:
            if self._version not in spec.versions and not spec.ignorable:
                with self._source.block(f"if {self._is_set(value, spec)}:"):
                    self._source.line(f"refuse_version({f'{struct_type.__name__}.{spec.name}'!r}, {self._version})")
        for spec in specs:
            if self._version in spec.versions and self._version not in spec.tagged:
                self._value(f"{value}.{spec.name}", spec.kind, self._version in spec.nullable)
        if self._is_flexible:
            tagged = [spec for spec in specs if self._version in spec.versions and self._version in spec.tagged]
            self._tags(value, sorted(tagged, key=lambda spec: spec.tag or 0))

    def _is_set(self, value: str, spec: FieldSpec) -> str:
        """An expression that is true when the field differs from its default."""
        attribute = f"{value}.{spec.name}"
        if spec.default is None:
            return f"{attribute} is not None"
        if isinstance(spec.kind, ArrayOf):
            return attribute
        default = self._source.constant("default_", spec.default)
        if isinstance(spec.kind, StructOf):
            return f"({attribute} is not {default} and {attribute} != {default})"
        return f"{attribute} != {default}"

    def _value(self, value: str, kind: Kind, is_nullable: bool) -> None:
        match kind:
            case Fixed():
                self._pending.append((kind.code, f"{value}.bytes" if kind is UUID_KIND else value))
            case Text():
                self._text(value, is_nullable)
            case Blob():
                self._blob(value, is_nullable)
            case RecordSet():
                self._records(value, is_nullable)
            case ArrayOf(element=element):
                self._array(value, element, is_nullable)
            case StructOf(struct=struct_type):
                self._nested(value, struct_type, is_nullable)

    def _flush(self, tail: str = "", tail_value: str = "") -> None:
        """Write the pending run of fields of constant size by one pack, keeping the run for nobody else."""
        run, self._pending = self._pending, []
        self._pack(run + ([(tail, tail_value)] if tail else []))

    def _pack(self, run: list[tuple[str, str]]) -> None:
        if len(run) == 1 and run[0][0] in "Bx":
            self._source.line(f"out.append({run[0][1] or 0})")
        elif run:
            values = ", ".join(expression for code, expression in run if code != "x")
            self._source.line(f"out += {self._source.packer(''.join(code for code, _ in run))}({values})")

    def _length(self, length: str, code: str) -> None:
        """Write the pending run and a length prefix (-1 is null)."""
        if not self._is_flexible:
            self._flush(code, length)
            return
        run, self._pending = self._pending, []
        with self._source.block(f"if {length} < 127:"):
            self._pack([*run, ("B", f"{length} + 1")])
        with self._source.block("else:"):
            self._pack(run)
            self._source.line(f"write_uvarint(out, {length} + 1)")

    def _text(self, value: str, is_nullable: bool) -> None:
        text, length = self._source.fresh("text"), self._source.fresh("n")
        if is_nullable:
            self._source.line(f"{text} = {value}")
            with self._source.block(f"if {text} is None:"):
                self._source.line(f"{text} = b''; {length} = -1")
            with self._source.block("else:"):
                self._source.line(f"{text} = {text}.encode(); {length} = len({text})")
        else:
            self._source.line(f"{text} = {value}.encode(); {length} = len({text})")
        with self._source.block(f"if {length} > 32767:"):
            self._source.line(f"refuse_length({value!r}, {length}, 32767)")
        self._length(length, "h")
        self._source.line(f"out += {text}")

    def _blob(self, value: str, is_nullable: bool) -> None:
        blob, length = self._source.fresh("blob"), self._source.fresh("n")
        self._source.line(f"{blob} = {value}")
        if is_nullable:
            with self._source.block(f"if {blob} is None:"):
                self._source.line(f"{blob} = b''; {length} = -1")
            with self._source.block("else:"):
                self._source.line(f"{length} = len({blob})")
        else:
            self._source.line(f"{length} = len({blob})")
        self._length(length, "i")
        self._source.line(f"out += {blob}")

    def _records(self, value: str, is_nullable: bool) -> None:
        line, block = self._source.line, self._source.block
        records, length, pieces = (self._source.fresh(prefix) for prefix in ("records", "n", "pieces"))
        line(f"{records} = {value}")
        with block(f"if {records}.__class__ in in_memory:"):
            line(f"{length} = len({records}); {pieces} = None")
        if is_nullable:
            with block(f"elif {records} is None:"):
                line(f"{length} = -1")
        with block("else:"):
            line(f"{length}, {pieces} = record_pieces({records})")
        self._length(length, "i")
        with block(f"if {length} > 0:"):
            with block(f"if {pieces} is None and {length} < {primitives.PART_BYTES_MIN}:"):
                line(f"out += {records}")
            with block("else:"):
                line("parts.append(bytes(out))")
                line(f"parts.append({records}) if {pieces} is None else parts.extend({pieces})")
                line("out = bytearray()")

    def _array(self, value: str, element: Kind, is_nullable: bool) -> None:
        items, length = self._source.fresh("items"), self._source.fresh("n")
        self._source.line(f"{items} = {value}")
        if is_nullable:
            self._flush()
            with self._source.block(f"if {items} is None:"):
                self._pack([("x", "") if self._is_flexible else ("i", "-1")])
            with self._source.block("else:"):
                self._items(items, length, element)
        else:
            self._items(items, length, element)

    def _items(self, items: str, length: str, element: Kind) -> None:
        self._source.line(f"{length} = len({items})")
        if isinstance(element, Fixed) and element is not UUID_KIND:
            self._fixed_items(items, length, element)
            return
        self._length(length, "i")
        item = self._source.fresh("item")
        with self._source.block(f"for {item} in {items}:"):
            if isinstance(element, StructOf):
                self._struct(item, element.struct)
            else:
                self._value(item, element, is_nullable=False)
            self._flush()

    def _fixed_items(self, items: str, length: str, element: Fixed) -> None:
        """Count and values of a short array go by one pack of a ready-made format."""
        self._flush()
        prefix, count = ("B", f"{length} + 1") if self._is_flexible else ("i", length)
        with self._source.block(f"if {length} < {SHORT_ARRAY_COUNT}:"):
            packers = self._source.packers(prefix, element.code)
            self._source.line(f"out += {packers}[{length}]({count}, *{items})")
        with self._source.block("else:"):
            self._length(length, "i")
            self._source.line(f"out += pack(f'>{{{length}}}{element.code}', *{items})")

    def _nested(self, value: str, struct_type: type[Struct], is_nullable: bool) -> None:
        item = self._source.fresh("item")
        self._source.line(f"{item} = {value}")
        if not is_nullable:
            self._struct(item, struct_type)
            return
        self._flush()
        with self._source.block(f"if {item} is None:"):
            self._flush("b", "-1")
        with self._source.block("else:"):
            self._pending.append(("b", "1"))
            self._struct(item, struct_type)
            self._flush()

    def _tags(self, value: str, tagged: list[FieldSpec]) -> None:
        if not tagged:
            self._pending.append(("x", ""))
            return
        conditions = [self._is_set(value, spec) for spec in tagged]
        run, self._pending = self._pending, []
        with self._source.block(f"if {' or '.join(conditions)}:"):
            self._pack(run)
            self._source.line(f"write_uvarint(out, {' + '.join(f'(1 if {test} else 0)' for test in conditions)})")
            for spec, test in zip(tagged, conditions, strict=True):
                with self._source.block(f"if {test}:"):
                    self._tag(value, spec)
        with self._source.block("else:"):
            self._pack([*run, ("x", "")])

    def _tag(self, value: str, spec: FieldSpec) -> None:
        """A tagged field is written aside, because its size comes before it."""
        outer, line = self._source.fresh("outer"), self._source.line
        line(f"{outer} = out; out = bytearray()")
        self._value(f"{value}.{spec.name}", spec.kind, self._version in spec.nullable)
        self._flush()
        line(f"write_uvarint({outer}, {spec.tag}); write_uvarint({outer}, len(out))")
        line(f"{outer} += out; out = {outer}")
