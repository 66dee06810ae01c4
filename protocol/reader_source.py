"""Generates the source of a reader: one function per message and version, all structs inlined.

The function is `read(data, p)`. `p` is the position; it returns the message and the position after
it. `b` is a memoryview of the data, `limit` its length. Neighbouring fields of fixed size, and the
first byte of the length that follows them, are read with one `struct` call.

Two rules protect against hostile bytes. A slice must end before `limit`. A count times the smallest
size of an item must also fit before `limit`, so a false count cannot make the reader allocate much.

A reader in steps is `read(data, p, step)`. It calls `step(n)` before it reads an array of `n` items
and `step(0)` before each item. So a long message can be read in several turns of an event
loop, and one with too many items can be refused before they are made.

A length is read into `n`. In flexible versions `n` is the encoded number: the length plus one, or
zero for null. In other versions it is the length; every negative one means null, as in Kafka.
"""

import msgspec

from .declaration import Field, ListOf, PresentFields, Wire, present_fields, smallest_size
from .packing import SHORT_ARRAY, array_of, read_numbers, short_unpackers, struct_of
from .primitives import skip_tags, too_long, uvarint_rest
from .schema import Message, Struct, WireType
from .source import Place, Source, local, mangled


def _bad_length(length: int) -> ValueError:
    if length == -1:
        return ValueError("it is null, which is not allowed")
    return ValueError(f"a length of {length}")


Then = tuple[str, str]  # a `struct` code, and the name of what it reads


class ReaderSource(Source):
    """The source of one reader. `in_steps`: it takes `step` as its third argument."""

    VERB = "read"

    def __init__(self, message: type[Message], version: int, *, in_steps: bool = False) -> None:
        super().__init__(
            f"{self.VERB} {message.__name__} v{version}",
            {
                "uvarint_rest": uvarint_rest,
                "too_long": too_long,
                "bad_length": _bad_length,
                "skip_tags": skip_tags,
                "array": array_of,
                "read_numbers": read_numbers,
            },
        )
        self._in_steps = in_steps
        self._version = version
        self._is_flexible = version in message.SPEC.flexible
        self._begin()
        made = self._struct(1, message, "")
        self._end()
        self.emit(1, f"return {made}, p")

    def _begin(self) -> None:
        self.emit(0, f"def read(data, p{', step' if self._in_steps else ''}):")
        self.emit(1, "b = memoryview(data)", "limit = len(b)")

    def _end(self) -> None:
        """Emit nothing: every slice has been checked."""

    def _struct(self, depth: int, declared: type[Struct], path: str) -> str:
        """Read the fields of a struct; returns the expression that creates it."""
        present = list(present_fields(declared, self._version))
        self._fields(depth, present, path)
        return self._constructor_call(declared, present, path)

    def _constructor_call(self, declared: type[Struct], present: PresentFields, path: str) -> str:
        arguments = ", ".join(f"{field.name}={local(path, field)}" for field, _ in present)
        return f"{self.name(declared)}({arguments})"

    def _fields(self, depth: int, present: PresentFields, path: str) -> None:
        """Read fields, and in flexible versions the section of tagged fields after them."""
        run = self._untagged(depth, [field for field, tag in present if tag is None], path)
        if not self._is_flexible:
            self._run(depth, run, path)
            return
        known = {tag: field for field, tag in present if tag is not None}
        for field in known.values():
            self.emit(depth, f"{local(path, field)} = {self._default(field)}")
        self._run(depth, run, path, ("B", "tagged fields"))
        self._tags(depth, known, path)

    def _untagged(self, depth: int, fields: list[Field], path: str) -> list[Field]:
        """Read fields up to the last of variable size; returns the fields after it."""
        run: list[Field] = []
        for field in fields:
            if field.fixed:
                run.append(field)
            elif isinstance(field.wire, type):
                self._run(depth, run, path)
                self._inner(depth, field, path)
                run = []
            else:
                self._run(depth, run, path, (self._length_code(field.wire), field.name))
                self._sized(depth, field, path)
                run = []
        return run

    def _run(self, depth: int, run: list[Field], path: str, then: Then | None = None) -> None:
        """Read neighbouring fields of fixed size at once, and the number after them into `n`."""
        wires = [field.fixed for field in run if field.fixed]
        places, targets, size = [], "", 0
        for field, wire in zip(run, wires, strict=True):
            places.append(Place(path + field.name, size))
            targets += f"{local(path, field)}, "
            size += wire.size
        codes = "".join(wire.struct_code for wire in wires)
        if then is not None:
            code, name = then
            places.append(Place(path + name, size))
            targets, codes, size = targets + "n, ", codes + code, size + struct_of(code).size
        self.about = tuple(places)
        if codes == "B":
            self.emit(depth, "n = b[p]", "p += 1")
        elif codes:
            unpack = self.name(struct_of(codes).unpack_from)
            self.emit(depth, f"{targets}= {unpack}(b, p)", f"p += {size}")
        if then is not None:
            self.about = (Place(path + then[1]),)

    def _length_code(self, wire: Wire) -> str:
        if self._is_flexible:
            return "B"
        return "h" if isinstance(wire, WireType) and wire.name == "string" else "i"

    def _inner(self, depth: int, field: Field, path: str) -> None:
        """Read a struct in a field. If it is nullable, a signed byte says whether it is null."""
        assert isinstance(field.wire, type)
        target = local(path, field)
        self.about = (Place(path + field.name),)
        if self._version in field.nullable:
            self.emit(depth, "p += 1", f"if b[p - 1] > 127: {target} = None", "else:")
            depth += 1
        made = self._struct(depth, field.wire, f"{path}{field.name}.")
        self.emit(depth, f"{target} = {made}")

    def _sized(self, depth: int, field: Field, path: str) -> None:
        """Read a value, or null. Its length, or the first byte of the length, is in `n`."""
        wire, target = field.wire, local(path, field)
        self._rest_of_length(depth, wire)
        null = "not n" if self._is_flexible else "n < 0"
        if self._version not in field.nullable:
            bad = "-1" if self._is_flexible else "n"
            self.emit(depth, f"if {null}: raise bad_length({bad})")
        else:
            self.emit(depth, f"if {null}: {target} = None", "else:")
            depth += 1
        self._value(depth, field, path)

    def _value(self, depth: int, field: Field, path: str) -> None:
        """Read a value that is not null, whose length is in `n`."""
        wire, target = field.wire, local(path, field)
        if isinstance(wire, ListOf):
            self._items(depth, wire.item, target, f"{path}{field.name}.")
        else:
            assert isinstance(wire, WireType)
            self.emit(depth, f"{target} = {self._slice(depth, wire)}", "p = e")

    def _rest_of_length(self, depth: int, wire: Wire) -> None:
        """Read the rest of the length if its first byte has the continuation bit."""
        if not self._is_flexible:
            return
        self.emit(depth, "if n > 127:")
        if isinstance(wire, WireType) and wire.name == "records":  # usually long, so unrolled
            self.emit(depth + 1, "e = b[p]", "if e < 128:")
            self.emit(depth + 2, "n += (e << 7) - 0x80", "p += 1")
            self.emit(depth + 1, "elif b[p + 1] < 128:")
            self.emit(depth + 2, "n += (e << 7) + (b[p + 1] << 14) - 0x4080", "p += 2")
            self.emit(depth + 1, "else: n, p = uvarint_rest(b, p, n)")
            return
        self.emit(depth + 1, "n, p = uvarint_rest(b, p, n)")
        if isinstance(wire, WireType) and wire.name == "string":
            self.emit(
                depth + 1, "if n > 32768: raise ValueError(f'it is a string of {n - 1} bytes')"
            )

    def _slice(self, depth: int, wire: WireType) -> str:
        """Compute the end `e` of a value of length `n`; returns the expression for the value."""
        length = "n - 1" if self._is_flexible else "n"
        self.emit(depth, f"e = p + {length}")
        self._check_end(depth, length)
        if wire.name == "records":
            return "b[p:e]"
        copied = self._copied("p:e")
        return copied if wire.name == "bytes" else self._text(copied)

    def _check_end(self, depth: int, length: str) -> None:
        self.emit(depth, f"if e > limit: raise too_long('a length', {length}, limit - p)")

    def _copied(self, part: str) -> str:
        """The expression that copies bytes of `b`."""
        return f"b[{part}].tobytes()"

    def _text(self, copied: str) -> str:
        # As in Java, invalid UTF-8 becomes U+FFFD. Such a name is then refused.
        return f"{copied}.decode('utf-8', 'replace')"

    def _items(self, depth: int, item: WireType | type[Struct], target: str, path: str) -> None:
        if self._is_flexible:
            self.emit(depth, "n -= 1")
        smallest = smallest_size(item, self._version, is_flexible=self._is_flexible)
        self.emit(
            depth,
            f"if n * {smallest} > limit - p: raise too_long('a count', n, limit - p)",
        )
        self._count(depth, item)
        if isinstance(item, type):
            self._structs(depth, item, target, path)
        elif item.size > 8:
            width = item.size
            step = "step(0) or " if self._in_steps else ""
            each = f"{step}{self._copied(f'i:i + {width}')}"
            self.emit(
                depth,
                f"e = p + n * {width}",
                f"{target} = [{each} for i in range(p, e, {width})]",
                "p = e",
            )
        elif item.size:
            code = item.struct_code
            short = self.name(short_unpackers(code))
            long = f"[*array(n, {code!r}).unpack_from(b, p)]"
            if self._in_steps:
                long = f"read_numbers(b, p, n, {code!r}, step)"
            self.emit(
                depth,
                f"if n < {SHORT_ARRAY}: {target} = [*{short}[n](b, p)]",
                f"else: {target} = {long}",
                f"p += n * {item.size}",
            )
        else:
            self._sized_items(depth, item, target)

    def _count(self, depth: int, item: WireType | type[Struct]) -> None:  # noqa: ARG002 # used by the quick reader
        """Announce the `n` items of an array."""
        if self._in_steps:
            self.emit(depth, "step(n)")

    def _structs(self, depth: int, item: type[Struct], target: str, path: str) -> None:
        """Read an array of `n` structs."""
        self.emit(depth, f"{target} = []", "for _ in range(n):")
        self._step(depth + 1)
        made = self._struct(depth + 1, item, path)
        self.emit(depth + 1, f"{target}.append({made})")

    def _sized_items(self, depth: int, item: WireType, target: str) -> None:
        """Read an array of strings or bytes, none of which may be null."""
        self.emit(depth, f"{target} = []", "for _ in range(n):")
        self._step(depth + 1)
        if self._is_flexible:
            self.emit(depth + 1, "n = b[p]", "p += 1")
        else:
            code = self._length_code(item)
            unpack = self.name(struct_of(code).unpack_from)
            self.emit(depth + 1, f"n, = {unpack}(b, p)", f"p += {struct_of(code).size}")
        self._rest_of_length(depth + 1, item)
        null, bad = ("not n", "-1") if self._is_flexible else ("n < 0", "n")
        self.emit(depth + 1, f"if {null}: raise bad_length({bad})")
        self.emit(depth + 1, f"{target}.append({self._slice(depth + 1, item)})", "p = e")

    def _step(self, depth: int) -> None:
        if self._in_steps:
            self.emit(depth, "step(0)")

    # -- tagged fields ------------------------------------------------------------------------

    def _tags(self, depth: int, known: dict[int, Field], path: str) -> None:
        """Read the tagged fields. Their count, or its first byte, is in `n`."""
        if not known:
            step = ", step" if self._in_steps else ""
            self.emit(depth, f"if n: p = skip_tags(b, p - 1, limit{step})")
            return
        # Structs in tagged fields have tagged fields, too. So these names include the path.
        tag, end = f"tag_{mangled(path)}", f"end_{mangled(path)}"
        self.emit(depth, "if n:")
        depth += 1
        self.emit(depth, "if n > 127: n, p = uvarint_rest(b, p, n)")
        self.emit(depth, "if n * 2 > limit - p:")
        self.emit(depth + 1, "raise too_long('a count of tagged fields', n, limit - p)")
        self.emit(depth, "for _ in range(n):")
        depth += 1
        self._step(depth)
        self.emit(depth, f"{tag} = b[p]", "p += 1")
        self.emit(depth, f"if {tag} > 127: {tag}, p = uvarint_rest(b, p, {tag})")
        self.emit(depth, "n = b[p]", "p += 1")
        self.emit(depth, "if n > 127: n, p = uvarint_rest(b, p, n)")
        self.emit(depth, f"{end} = p + n")
        self.emit(depth, f"if {end} > limit: raise too_long('a tagged field', n, limit - p)")
        word = "if"
        for number, field in sorted(known.items()):
            self.emit(depth, f"{word} {tag} == {number}:")
            self._tagged(depth + 1, field, path)
            self.emit(depth + 1, f"if p != {end}:")
            self.emit(depth + 2, "raise ValueError('the size of the tag is not that of its value')")
            word = "elif"
        self.about = (Place(path + "tagged fields"),)
        self.emit(depth, f"else: p = {end}")

    def _tagged(self, depth: int, field: Field, path: str) -> None:
        if field.fixed:
            self._run(depth, [field], path)
        elif isinstance(field.wire, type):
            if self._version in field.nullable:
                # In a tagged field Kafka writes a null struct as 0, not as a signed -1.
                self.about = (Place(path + field.name),)
                self.emit(depth, "p += 1", "if b[p - 1] == 0:")
                self.emit(depth + 1, f"{local(path, field)} = None")
                self.emit(depth, "else:")
                depth += 1
            made = self._struct(depth, field.wire, f"{path}{field.name}.")
            self.emit(depth, f"{local(path, field)} = {made}")
        else:
            self._run(depth, [], path, (self._length_code(field.wire), field.name))
            self._sized(depth, field, path)

    def _default(self, field: Field) -> str:
        if field.default is msgspec.NODEFAULT:
            raise TypeError(f"tagged field {field.name} has no default")
        if isinstance(field.default, list):
            return "[]"
        return self.name(field.default)
