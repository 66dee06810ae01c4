"""Writes the source of a writer: one function per message and version, all structs inlined.

The function is `write(m, out, splices)`: it appends message `m` to the bytearray `out`. Records
that lie in a file are not copied: their size is written, and `splices` gets the place where they
belong.

Nothing is checked that fails by itself: a None where no null may be, a number too large for its
field, end in an exception that compiler.py turns into an EncodeError with the field's name. What a
version has no place for is refused unless it is ignorable or has its default, as in Kafka.
"""

import struct

import msgspec

from .declaration import Field, ListOf, Wire, fields_of, present_fields
from .primitives import write_uvarint
from .schema import EncodeError, Message, SplicedRecords, Splices, Struct, WireType
from .source import Place, Source, struct_of

Present = list[tuple[Field, int | None]]
NULL = {"h": b"\xff" * 2, "i": b"\xff" * 4}  # -1


def _splice(out: bytearray, splices: Splices | None, records: SplicedRecords) -> None:
    if splices is None:
        raise EncodeError("records that lie in a file can only be sent by a connection")
    splices.append((len(out), records))


class WriterSource(Source):
    """The source of one writer."""

    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(
            f"write {message.__name__} v{version}",
            {
                "EncodeError": EncodeError,
                "SplicedRecords": SplicedRecords,
                "pack": struct.pack,
                "splice": _splice,
                "write_uvarint": write_uvarint,
            },
        )
        self._version = version
        self._is_flexible = version in message.SPEC.flexible
        self.emit(0, "def write(m, out, splices):")
        self._struct(1, message, "m", "out", "")
        self.emit(1, "return")

    def _struct(self, depth: int, declared: type[Struct], value: str, out: str, path: str) -> None:
        """Write the fields of the struct that is in the local variable `value`."""
        present = list(present_fields(declared, self._version))
        self._refuse_the_absent(depth, declared, value, path)
        depth += self._write_if_empty(depth, present, value, out, path)
        run: list[Field] = []
        for field, tag in present:
            if tag is not None:
                continue
            if field.fixed:
                run.append(field)
                continue
            self._run(depth, run, value, out, path)
            run = []
            self._load(depth, field, value, path)
            self._variable(depth, field, out, path)
        self._run(depth, run, value, out, path)
        if self._is_flexible:
            self._tags(depth, {t: field for field, t in present if t is not None}, value, out, path)

    def _refuse_the_absent(self, depth: int, declared: type[Struct], value: str, path: str) -> None:
        for field in fields_of(declared):
            if self._version in field.versions or field.is_ignorable:
                continue
            self._load(depth, field, value, path)
            self.emit(depth, f"if {self._differs(field, _local(path, field))}:")
            self.emit(
                depth + 1,
                f"raise EncodeError(f'this version cannot carry {{{_local(path, field)}!r}}')",
            )

    def _write_if_empty(self, depth: int, present: Present, value: str, out: str, path: str) -> int:
        """One `struct` call for a struct whose lists are empty, its other fields null or default.

        That is the usual item of an answer. Returns how much deeper the code for all others goes.
        """
        sized = [field for field, tag in present if tag is None and not field.fixed]
        if not sized or not all(self._can_be_empty(field) for field in sized):
            return 0
        codes, values, conditions = "", [], []
        # Tags last: to compare with a default costs more than to look for None.
        for field, tag in sorted(present, key=lambda each: each[1] is not None):
            local = _local(path, field)
            if tag is not None:
                conditions.append(f"not ({self._differs(field, local)})")
            elif field.fixed:
                codes += field.fixed.struct_code
                values.append(f"{value}.{field.name}")
                continue
            else:
                conditions.append(
                    f"{local} is None" if self._is_nullable(field) else f"not len({local})"
                )
                codes += self._length_code(field.wire)
                values.append(str(self._empty(field)))
            self._load(depth, field, value, path)
        codes += "x" if self._is_flexible else ""  # no tagged fields
        self.about = (Place(path + ", ".join(field.name for field, _ in present)),)
        pack = self.name(struct_of(codes).pack)
        self.emit(depth, f"if {' and '.join(conditions)}: {out} += {pack}({', '.join(values)})")
        self.emit(depth, "else:")
        return 1

    def _can_be_empty(self, field: Field) -> bool:
        if isinstance(field.wire, ListOf):
            return True
        # Not records: a Fetch that has caught up leaves them empty, not null.
        is_primitive = isinstance(field.wire, WireType) and field.wire.name != "records"
        return is_primitive and self._is_nullable(field)

    def _is_nullable(self, field: Field) -> bool:
        return self._version in field.nullable

    def _empty(self, field: Field) -> int:
        """The length on the wire of a null or empty value."""
        length = -1 if self._is_nullable(field) else 0
        return length + 1 if self._is_flexible else length

    def _length_code(self, wire: Wire) -> str:
        """The `struct` code of a length, or in flexible versions of a short one."""
        if self._is_flexible:
            return "B"
        return "h" if isinstance(wire, WireType) and wire.name == "string" else "i"

    def _load(self, depth: int, field: Field, value: str, path: str) -> None:
        self.about = (Place(path + field.name),)
        self.emit(depth, f"{_local(path, field)} = {value}.{field.name}")

    def _run(self, depth: int, run: list[Field], value: str, out: str, path: str) -> None:
        """Write neighbours of fixed size at once."""
        if not run:
            return
        self.about = (Place(path + ", ".join(field.name for field in run)),)
        codes = "".join(field.fixed.struct_code for field in run if field.fixed)
        values = ", ".join(f"{value}.{field.name}" for field in run)
        self.emit(depth, f"{out} += {self.name(struct_of(codes).pack)}({values})")

    def _variable(self, depth: int, field: Field, out: str, path: str) -> None:
        """Write a value that is no tag and of no fixed size, from its local variable."""
        wire, value = field.wire, _local(path, field)
        is_nullable = self._is_nullable(field)
        if isinstance(wire, type):
            if is_nullable:
                self.emit(depth, f"if {value} is None: {out}.append(255)", "else:")
                depth += 1
                self.emit(depth, f"{out}.append(1)")
            self._struct(depth, wire, value, out, f"{path}{field.name}.")
            return
        if is_nullable:
            self.emit(depth, f"if {value} is None: {self._null(wire, out)}", "else:")
            depth += 1
        if isinstance(wire, ListOf):
            self._items(depth, wire, value, out, f"{path}{field.name}.")
        else:
            self._slice(depth, wire, value, out)

    def _null(self, wire: Wire, out: str) -> str:
        if self._is_flexible:
            return f"{out}.append(0)"
        return f"{out} += {self.name(NULL[self._length_code(wire)])}"

    def _items(self, depth: int, wire: ListOf, value: str, out: str, path: str) -> None:
        self._length(depth, wire, f"len({value})", out)
        item, each = wire.item, f"i_{_mangled(path)}"
        if isinstance(item, WireType) and 0 < item.size <= 8:
            code = item.struct_code
            self.emit(depth, f"if {value}: {out} += pack(f'>{{len({value})}}{code}', *{value})")
            return
        self.emit(depth, f"for {each} in {value}:")
        if isinstance(item, type):
            self._struct(depth + 1, item, each, out, path)
        elif item.size:
            self.emit(depth + 1, f"{out} += {self.name(struct_of(item.struct_code).pack)}({each})")
        else:
            self._slice(depth + 1, item, each, out)

    def _slice(self, depth: int, wire: WireType, value: str, out: str) -> None:
        if wire.name == "string":
            # As in Java: what UTF-8 cannot say (a lone surrogate) becomes a question mark.
            self.emit(depth, f"e = {value}.encode('utf-8', 'replace')")
            value = "e"
        elif wire.name == "records":
            self.emit(depth, f"if isinstance({value}, SplicedRecords):")
            self._length(depth + 1, wire, f"{value}.size_bytes", out)
            self.emit(depth + 1, f"splice({out}, splices, {value})")
            self.emit(depth, "else:")
            depth += 1
        self._length(depth, wire, f"len({value})", out)
        self.emit(depth, f"{out} += {value}")

    def _length(self, depth: int, wire: Wire, length: str, out: str) -> None:
        if not self._is_flexible:
            pack = self.name(struct_of(self._length_code(wire)).pack)
            self.emit(depth, f"{out} += {pack}({length})")
            return
        self.emit(depth, f"n = {length} + 1", f"if n < 128: {out}.append(n)", "else:")
        if isinstance(wire, WireType) and wire.name == "string":
            self.emit(depth + 1, "if n > 32768: raise EncodeError(f'a string of {n - 1} bytes')")
        self.emit(depth + 1, f"write_uvarint({out}, n)")

    # -- tagged fields ------------------------------------------------------------------------

    def _tags(self, depth: int, tags: dict[int, Field], value: str, out: str, path: str) -> None:
        """Write the tagged fields that do not have their defaults, in ascending order."""
        if not tags:
            self.emit(depth, f"{out}.append(0)")
            return
        parts, part = f"tags_{_mangled(path)}", f"part_{_mangled(path)}"
        for field in tags.values():
            self._load(depth, field, value, path)
        differences = {number: self._differs(f, _local(path, f)) for number, f in tags.items()}
        self.emit(depth, f"if {' or '.join(differences.values())}:")
        self.emit(depth + 1, f"{parts} = []")
        for number, field in sorted(tags.items()):
            self.emit(depth + 1, f"if {differences[number]}:")
            self.emit(depth + 2, f"{part} = bytearray()")
            self._tagged(depth + 2, field, part, path)
            self.emit(depth + 2, f"{parts}.append(({number}, {part}))")
        self.emit(depth + 1, f"write_uvarint({out}, len({parts}))")
        self.emit(depth + 1, f"for n, {part} in {parts}:")
        self.emit(depth + 2, f"write_uvarint({out}, n)", f"write_uvarint({out}, len({part}))")
        self.emit(depth + 2, f"{out} += {part}")
        self.emit(depth, f"else: {out}.append(0)")

    def _tagged(self, depth: int, field: Field, out: str, path: str) -> None:
        self.about = (Place(path + field.name),)
        value = _local(path, field)
        if field.fixed:
            pack = self.name(struct_of(field.fixed.struct_code).pack)
            self.emit(depth, f"{out} += {pack}({value})")
        elif isinstance(field.wire, type):
            if self._is_nullable(field):
                # Not the signed byte of an untagged one: here Kafka writes null as 0.
                self.emit(depth, f"if {value} is None: {out}.append(0)", "else:")
                depth += 1
                self.emit(depth, f"{out}.append(1)")
            self._struct(depth, field.wire, value, out, f"{path}{field.name}.")
        else:
            self._variable(depth, field, out, path)

    def _differs(self, field: Field, value: str) -> str:
        """The condition that a value is not the field's default."""
        default = field.default
        if default is msgspec.NODEFAULT:
            raise TypeError(f"field {field.name} can be left out, but has no default")
        if default is None:
            return f"{value} is not None"
        if not default:  # 0, False or empty; an instance of a struct is true
            return f"({value} or {value} is None)" if field.may_be_null else value
        name = self.name(default)
        return f"{value} is not {name} and {value} != {name}"


def _mangled(path: str) -> str:
    return path.replace(".", "__")


def _local(path: str, field: Field) -> str:
    """The local variable that holds a field."""
    return f"v_{_mangled(path)}{field.name}"
