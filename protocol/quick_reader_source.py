"""Generates the source of the quick reader, for valid messages of ordinary size.

It reads `bytes`, because strings are decoded from slices of bytes. Only a message with records is
read from a memoryview, so that the records need not be copied.

It has no code for invalid messages. If it fails (with an IndexError, or for text that is not
UTF-8), the careful reader (reader_source.py) reads the message again and replaces the text or
reports the error. Two checks are left out because a later step fails for certain:

- The end of a slice is not compared with the end of the data. A slice that reaches beyond the end
  is too short, but then `p` is also beyond the end. `p` never decreases, and it is checked before
  the message is returned.
- A length of zero that takes more than one byte is not recognized as null. It raises IndexError,
  and the careful reader accepts it.

A limited quick reader is `read(data, p, left)`. It also fails if the arrays have more than `left`
items.

In an array, the last fields of all items often have the same values (see
declaration.split_tail). The bytes of the first item's last fields are kept. If an item ends with
the same bytes, it gets the same values without being parsed: equal bytes decode to equal values
and have the same length.
"""

from .declaration import REUSE_FROM, Field, ListOf, carries_records, present_fields, split_tail
from .reader_source import ReaderSource
from .schema import Message, Struct, WireType
from .source import first, local, mangled

ORDINARY_BYTES = 2**20  # longer data is left to the careful reader, which does not copy it

MAX_TAGS = 16  # of a struct, for a limited reader


class QuickReaderSource(ReaderSource):
    """The source of one quick reader."""

    VERB = "quickly read"

    def __init__(self, message: type[Message], version: int, *, is_limited: bool = False) -> None:
        self._is_view = carries_records(message)
        self._is_limited = is_limited
        super().__init__(message, version)

    def _begin(self) -> None:
        self.emit(0, f"def read(data, p{', left' if self._is_limited else ''}):")
        if self._is_view:
            self.emit(1, "b = data if type(data) is memoryview else memoryview(data)")
        else:
            self.emit(1, f"if len(data) > {ORDINARY_BYTES}: raise ValueError")
            self.emit(1, "b = data if type(data) is bytes else data.tobytes()")
        self.emit(1, "limit = len(b)")

    def _count(self, depth: int, item: WireType | type[Struct]) -> None:
        """Count the `n` items of an array. Numbers are read at once, so that few of them count."""
        if self._is_limited:
            is_number = isinstance(item, WireType) and 0 < item.size <= 8
            self.emit(depth, f"left -= n{' >> 5' if is_number else ''}")
            self.emit(depth, "if left < 0: raise ValueError")

    def _end(self) -> None:
        self.emit(1, "if p > limit: raise IndexError")

    def _sized(self, depth: int, field: Field, path: str) -> None:
        """Test the most frequent cases first: null, an empty array, a short value."""
        if not self._is_flexible:
            super()._sized(depth, field, path)
            return
        word, target = "if", local(path, field)
        if self._version in field.nullable:
            self.emit(depth, f"if not n: {target} = None")
            word = "elif"
        if isinstance(field.wire, ListOf):
            self.emit(depth, f"{word} n == 1: {target} = []")
            word = "elif"
        if word == "elif":
            self.emit(depth, "else:")
            depth += 1
        self._rest_of_length(depth, field.wire)
        self.emit(depth, "if not n: raise IndexError")
        self._value(depth, field, path)

    def _tags(self, depth: int, known: dict[int, Field], path: str) -> None:
        if self._is_limited:
            self.emit(depth, f"if n > {MAX_TAGS}: raise ValueError")
        super()._tags(depth, known, path)

    def _check_end(self, depth: int, length: str) -> None:
        """Emit nothing: `_end` checks once for all slices."""

    def _copied(self, part: str) -> str:
        return super()._copied(part) if self._is_view else f"b[{part}]"

    def _text(self, copied: str) -> str:
        return f"{copied}.decode()"

    def _structs(self, depth: int, item: type[Struct], target: str, path: str) -> None:
        present = list(present_fields(item, self._version))
        head, tail = split_tail(present, self._version)
        if not tail:
            super()._structs(depth, item, target, path)
            return
        learn, size, end = (f"{word}_{mangled(path)}" for word in ("learn", "size", "tail"))
        start = f"start_{mangled(path)}"
        self.emit(depth, f"{target} = []", f"{learn} = n >= {REUSE_FROM}", f"{size} = 0")
        self.emit(depth, "for _ in range(n):")
        depth += 1
        self._run(depth, self._untagged(depth, head, path), path)
        self.emit(depth, f"if {size} and b[p:p + {size}] == {end}:")
        self.emit(depth + 1, f"p += {size}")
        for field, _ in tail:
            self.emit(depth + 1, f"{local(path, field)} = {_reused_value(path, field)}")
        self.emit(depth, "else:")
        self.emit(depth + 1, f"{start} = p")
        self._fields(depth + 1, tail, path)
        self.emit(depth + 1, f"if {learn}:")
        self.emit(depth + 2, f"{learn} = False", f"{end} = b[{start}:p]", f"{size} = p - {start}")
        for field, _ in tail:
            self.emit(depth + 2, f"{first(path, field)} = {local(path, field)}")
        self.emit(depth, f"{target}.append({self._constructor_call(item, present, path)})")


def _reused_value(path: str, field: Field) -> str:
    """The expression that reuses the first item's value; a list is copied for each item."""
    known = first(path, field)
    if not isinstance(field.wire, ListOf):
        return known
    return f"None if {known} is None else [*{known}]" if field.may_be_null else f"[*{known}]"
