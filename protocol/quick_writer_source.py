"""Generates the source of the writer with two shortcuts for frequent responses.

- A struct whose lists are empty, and whose other fields are null or have their default, is written
  with one `struct` call. Most responses for a partition are like this.
- In an array, the last fields of all items often have the same values: the replicas of a topic's
  partitions, a commit's metadata (see declaration.split_tail). The encoded end of the first item is
  kept, and appended for each item that ends with equal values.
"""

from .declaration import REUSE_FROM, Field, ListOf, PresentFields, present_fields, split_tail
from .packing import struct_of
from .schema import Struct, WireType
from .source import Place, first, local, mangled
from .writer_source import WriterSource


class QuickWriterSource(WriterSource):
    """The source of one writer with the shortcuts."""

    def _struct(self, depth: int, declared: type[Struct], value: str, out: str, path: str) -> None:
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
        for field, tag in sorted(present, key=lambda each: each[1] is not None):
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

    def _structs(self, depth: int, item: type[Struct], value: str, out: str, path: str) -> None:
        """Write structs; one that ends like the first item reuses the bytes of that end."""
        present = list(present_fields(item, self._version))
        head, tail = split_tail(present, self._version)
        if not tail or any(_is_list_of_structs(field) for field in head):
            super()._structs(depth, item, value, out, path)
            return
        each = f"i_{mangled(path)}"
        learn, known, end = (f"{word}_{mangled(path)}" for word in ("learn", "known", "end"))
        start = f"start_{mangled(path)}"
        self.emit(depth, f"{learn} = len({value}) >= {REUSE_FROM}", f"{known} = False")
        self.emit(depth, f"for {each} in {value}:")
        depth += 1
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


def _is_list_of_structs(field: Field) -> bool:
    return isinstance(field.wire, ListOf) and isinstance(field.wire.item, type)


def _is_same(field: Field, path: str) -> str:
    """The condition that a value equals that of the first item."""
    value, known = local(path, field), first(path, field)
    return (
        f"({value} is {known} or {value} == {known})"
        if isinstance(field.wire, type)
        else f"{value} == {known}"
    )
