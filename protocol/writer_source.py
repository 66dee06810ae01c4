"""Generates the source of a writer: one function per message and version, all structs inlined.

The function is `write(m, out, splices, pieces)`. It appends the message `m` to the bytearray `out`.
Records in a file are not copied: their size is written, and `splices` gets the position at which
they belong. If `pieces` is a list, large records in memory are not copied either: the list gets the
bytes before them, the records, and so on to the end of the message.

The generated code has no checks for values that raise an exception anyway, like a None that is not
allowed or a number too large for its field. compiler.py turns such an exception into an EncodeError
with the field's name. As in Kafka, a value for a field that the version does not have is refused,
unless the field is ignorable or the value is the default.

A writer in steps is `write(m, out, splices, step)`, without pieces. It calls `step` for each item
of an array.

There are two shortcuts for frequent responses:

- A struct whose lists are empty, and whose other fields are null or have their default, is written
  with one `struct` call. Most responses for a partition are like this.
- In an array, the last fields of all items often have the same values: the replicas of a topic's
  partitions, a commit's metadata (see declaration.split_tail). The encoded end of the first item is
  kept, and appended for each item that ends with equal values.
"""

import struct

import msgspec

from .declaration import (
    REUSE_FROM,
    Field,
    ListOf,
    PresentFields,
    Wire,
    fields_of,
    present_fields,
    split_tail,
)
from .packing import SHORT_ARRAY, short_packers, struct_of, write_numbers
from .primitives import write_uvarint
from .schema import EncodeError, Message, SplicedRecords, Splices, Struct, WireType
from .source import Place, Source, first, local, mangled

PIECE_BYTES = 1024  # smaller records are copied: a separate piece would cost more
NULL = {"h": b"\xff" * 2, "i": b"\xff" * 4}  # -1


def _splice(out: bytearray, splices: Splices | None, records: SplicedRecords) -> None:
    if splices is None:
        raise EncodeError("records in a file can only be sent by a connection")
    if records.size_bytes:
        splices.append((len(out), records))


class WriterSource(Source):
    """The source of one writer. `in_steps`: it takes `step` as its last argument."""

    def __init__(self, message: type[Message], version: int, *, in_steps: bool = False) -> None:
        super().__init__(
            f"write {message.__name__} v{version}",
            {
                "EncodeError": EncodeError,
                "SplicedRecords": SplicedRecords,
                "pack": struct.pack,
                "splice": _splice,
                "write_numbers": write_numbers,
                "write_uvarint": write_uvarint,
            },
        )
        self._in_steps = in_steps
        self._version = version
        self._is_flexible = version in message.SPEC.flexible
        self.emit(0, f"def write(m, out, splices, {'step' if in_steps else 'pieces'}):")
        self._struct(1, message, "m", "out", "")
        self.about = ()
        self.emit(1, "return" if in_steps else "if pieces is not None: pieces.append(out)")

    def _struct(self, depth: int, declared: type[Struct], value: str, out: str, path: str) -> None:
        """Write the fields of the struct that is in the local variable `value`."""
        present = list(present_fields(declared, self._version))
        self._refuse_unsupported_fields(depth, declared, value, path)
        depth += self._write_if_empty(depth, present, value, out, path)
        self._fields(depth, present, value, out, path)

    def _write_if_empty(
        self, depth: int, present: PresentFields, value: str, out: str, path: str
    ) -> int:
        """Write a struct with one `struct` call if its lists are empty and the rest is default.

        Returns by how many levels the code for all other structs is indented: 0 or 1.
        """
        sized = [field for field, tag in present if tag is None and not field.fixed]
        if not sized or not all(self._can_be_empty(field) for field in sized):
            return 0
        codes, values, conditions = "", [], []
        # Tagged fields last: a comparison with a default costs more than a test for None.
        for field, tag in sorted(present, key=lambda item: item[1] is not None):
            held = local(path, field)
            if tag is not None:
                conditions.append(f"not ({self._differs(field, held)})")
            elif field.fixed:
                codes += field.fixed.struct_code
                values.append(f"{value}.{field.name}")
                continue
            else:
                conditions.append(
                    f"{held} is None" if self._is_nullable(field) else f"not len({held})"
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
        # Not records: a Fetch response at the end of the log has empty records, not null.
        is_primitive = isinstance(field.wire, WireType) and field.wire.name != "records"
        return is_primitive and self._is_nullable(field)

    def _empty(self, field: Field) -> int:
        """The length on the wire of a null or empty value."""
        length = -1 if self._is_nullable(field) else 0
        return length + 1 if self._is_flexible else length

    def _fields(self, depth: int, present: PresentFields, value: str, out: str, path: str) -> None:
        """Write fields, and in flexible versions the section of tagged fields after them."""
        run = self._untagged(depth, [f for f, tag in present if tag is None], value, out, path)
        if not self._is_flexible:
            self._run(depth, run, value, out, path)
            return
        known = {tag: field for field, tag in present if tag is not None}
        if not known and run:
            self._run(depth, run, value, out, path, "x")
            return
        self._run(depth, run, value, out, path)
        self._tags(depth, known, value, out, path)

    def _untagged(
        self, depth: int, fields: list[Field], value: str, out: str, path: str
    ) -> list[Field]:
        """Write fields up to the last of variable size; returns the fields after it."""
        run: list[Field] = []
        for field in fields:
            if field.fixed:
                run.append(field)
                continue
            self._run(depth, run, value, out, path)
            run = []
            self._load(depth, field, value, path)
            self._variable(depth, field, out, path)
        return run

    def _refuse_unsupported_fields(
        self, depth: int, declared: type[Struct], value: str, path: str
    ) -> None:
        for field in fields_of(declared):
            if self._version in field.versions or field.is_ignorable:
                continue
            self._load(depth, field, value, path)
            self.emit(depth, f"if {self._differs(field, local(path, field))}:")
            self.emit(
                depth + 1,
                f"raise EncodeError(f'this version cannot carry {{{local(path, field)}!r}}')",
            )

    def _is_nullable(self, field: Field) -> bool:
        return self._version in field.nullable

    def _length_code(self, wire: Wire) -> str:
        """The `struct` code of a length; in flexible versions, of a length of one byte."""
        if self._is_flexible:
            return "B"
        return "h" if isinstance(wire, WireType) and wire.name == "string" else "i"

    def _load(self, depth: int, field: Field, value: str, path: str) -> None:
        self.about = (Place(path + field.name),)
        self.emit(depth, f"{local(path, field)} = {value}.{field.name}")

    def _run(
        self, depth: int, run: list[Field], value: str, out: str, path: str, then: str = ""
    ) -> None:
        """Write neighbouring fields of fixed size at once, followed by the codes in `then`."""
        if not run:
            return
        self.about = (Place(path + ", ".join(field.name for field in run)),)
        codes = "".join(field.fixed.struct_code for field in run if field.fixed) + then
        values = ", ".join(f"{value}.{field.name}" for field in run)
        self.emit(depth, f"{out} += {self.name(struct_of(codes).pack)}({values})")

    def _variable(self, depth: int, field: Field, out: str, path: str) -> None:
        """Write an untagged value of variable size from its local variable."""
        wire, value = field.wire, local(path, field)
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
        item, each = wire.item, f"i_{mangled(path)}"
        if isinstance(item, WireType) and 0 < item.size <= 8:
            self._numbers(depth, wire, item.struct_code, value, out)
            return
        self._length(depth, wire, f"len({value})", out)
        if isinstance(item, type):
            self._structs(depth, item, value, out, path)
            return
        self.emit(depth, f"for {each} in {value}:")
        self._step(depth + 1)
        if item.size:
            self.emit(depth + 1, f"{out} += {self.name(struct_of(item.struct_code).pack)}({each})")
        else:
            self._slice(depth + 1, item, each, out)

    def _numbers(self, depth: int, wire: ListOf, code: str, value: str, out: str) -> None:
        """Write an array of numbers with its length; a short array with one `struct` call."""
        short = self.name(short_packers(self._length_code(wire), code))
        written = "n + 1" if self._is_flexible else "n"
        self.emit(depth, f"n = len({value})")
        self.emit(depth, f"if n < {SHORT_ARRAY}: {out} += {short}[n]({written}, *{value})", "else:")
        self._length(depth + 1, wire, f"len({value})", out)
        if self._in_steps:
            self.emit(depth + 1, f"write_numbers({out}, {value}, {code!r}, step)")
        else:
            self.emit(depth + 1, f"{out} += pack(f'>{{len({value})}}{code}', *{value})")

    def _structs(self, depth: int, item: type[Struct], value: str, out: str, path: str) -> None:
        """Write structs; one that ends like the first item reuses the bytes of that end."""
        present = list(present_fields(item, self._version))
        head, tail = split_tail(present, self._version)
        each = f"i_{mangled(path)}"
        if not tail or any(_is_list_of_structs(field) for field in head):
            self.emit(depth, f"for {each} in {value}:")
            self._step(depth + 1)
            self._struct(depth + 1, item, each, out, path)
            return
        learn, known, end = (f"{word}_{mangled(path)}" for word in ("learn", "known", "end"))
        start = f"start_{mangled(path)}"
        self.emit(depth, f"{learn} = len({value}) >= {REUSE_FROM}", f"{known} = False")
        self.emit(depth, f"for {each} in {value}:")
        depth += 1
        self._step(depth)
        self._refuse_unsupported_fields(depth, item, each, path)
        self._run(depth, self._untagged(depth, head, each, out, path), each, out, path)
        for field, _ in tail:
            self._load(depth, field, each, path)
        same = [_is_same(field, path) for field, _ in tail]
        self.emit(depth, f"if {known} and {' and '.join(same)}: {out} += {end}", "else:")
        self.emit(depth + 1, f"{start} = len({out})")
        self._fields(depth + 1, tail, each, out, path)
        self.emit(depth + 1, f"if {learn}:")
        self.emit(depth + 2, f"{learn}, {known}, {end} = False, True, {out}[{start}:]")
        for field, _ in tail:
            self.emit(depth + 2, f"{first(path, field)} = {local(path, field)}")

    def _step(self, depth: int) -> None:
        if self._in_steps:
            self.emit(depth, "step(1)")

    def _slice(self, depth: int, wire: WireType, value: str, out: str) -> None:
        if wire.name == "records":
            self._records(depth, wire, value, out)
            return
        if wire.name == "string":
            # As in Java, a lone surrogate, which UTF-8 cannot encode, becomes a question mark.
            self.emit(depth, f"e = {value}.encode('utf-8', 'replace')")
            value = "e"
        self._length(depth, wire, f"len({value})", out)
        self.emit(depth, f"{out} += {value}")

    def _records(self, depth: int, wire: WireType, value: str, out: str) -> None:
        self.emit(depth, f"if isinstance({value}, SplicedRecords):")
        self._length(depth + 1, wire, f"{value}.size_bytes", out)
        self.emit(depth + 1, f"splice({out}, splices, {value})")
        self.emit(depth, "else:")
        if not self._is_flexible:
            self.emit(depth + 1, f"n = len({value})")
        self._length(depth + 1, wire, f"len({value})", out)
        if out != "out" or self._in_steps:  # a tagged field is written to a buffer of its own first
            self.emit(depth + 1, f"{out} += {value}")
            return
        self.emit(depth + 1, f"if pieces is None or n < {PIECE_BYTES}: out += {value}", "else:")
        self.emit(depth + 2, f"pieces += out, {value}", "out = bytearray()")

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
        """Write the tagged fields that differ from their defaults, in ascending order."""
        if not tags:
            self.emit(depth, f"{out}.append(0)")
            return
        parts, part = f"tags_{mangled(path)}", f"part_{mangled(path)}"
        for field in tags.values():
            self._load(depth, field, value, path)
        differences = {number: self._differs(f, local(path, f)) for number, f in tags.items()}
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
        value = local(path, field)
        if field.fixed:
            pack = self.name(struct_of(field.fixed.struct_code).pack)
            self.emit(depth, f"{out} += {pack}({value})")
        elif isinstance(field.wire, type):
            if self._is_nullable(field):
                # In a tagged field Kafka writes a null struct as 0, not as a signed -1.
                self.emit(depth, f"if {value} is None: {out}.append(0)", "else:")
                depth += 1
                self.emit(depth, f"{out}.append(1)")
            self._struct(depth, field.wire, value, out, f"{path}{field.name}.")
        else:
            self._variable(depth, field, out, path)

    def _differs(self, field: Field, value: str) -> str:
        """The condition that a value differs from the field's default."""
        default = field.default
        if default is msgspec.NODEFAULT:
            raise TypeError(f"field {field.name} is missing in some versions and has no default")
        if default is None:
            return f"{value} is not None"
        if not default:  # 0, False or empty; a struct is always true
            return f"({value} or {value} is None)" if field.may_be_null else value
        name = self.name(default)
        return f"{value} is not {name} and {value} != {name}"


def _is_list_of_structs(field: Field) -> bool:
    return isinstance(field.wire, ListOf) and isinstance(field.wire.item, type)


def _is_same(field: Field, path: str) -> str:
    """The condition that a value equals that of the first item."""
    one, other = local(path, field), first(path, field)
    return (
        f"({one} is {other} or {one} == {other})"
        if isinstance(field.wire, type)
        else f"{one} == {other}"
    )
