"""Generates the source of the quick reader, for valid messages of ordinary size.

A message is read by this function first. If it fails (IndexError, struct.error, ValueError), the
careful reader (reader_source.py) reads the message again from its start, and accepts it or reports
the error. So the quick reader may fail for any message. What it returns must be what the careful
one returns.

The function is `read(data, p)`, as of the careful reader: `p` is the position, `b` the data,
`limit` its length, and `n` the length of the next value. It differs in this:

- `b` is `bytes`, because strings are decoded from slices of bytes. Only a message with records is
  read from a memoryview, so that the records need not be copied.
- Text that is not UTF-8 raises an exception. The careful reader replaces it.
- The end of a slice is not compared with `limit`. A slice that reaches beyond the end is too short,
  but then `p` is also beyond the end. `p` never decreases, so one check before the return is
  enough.
- Null and empty arrays are recognized by the first byte of their length. A length of zero that
  takes more bytes, which Java accepts, raises IndexError.
- The last fields of an array's items often have the same values (see declaration.split_tail). The
  bytes of these fields in the first item are kept. If an item has the same bytes there, it gets the
  values of the first item, and the bytes are not parsed. This is correct because equal bytes decode
  to equal values of the same length.

A limited quick reader is `read(data, p, left)`. It also fails if the arrays have more than `left`
items. A caller uses it to learn that a message can be read in a short time.
"""

from .declaration import REUSE_FROM, Field, ListOf, carries_records, present_fields, split_tail
from .reader_source import ReaderSource
from .schema import Message, Struct, WireType
from .source import first, local, mangled

# Longer data is left to the careful reader: this one may have to copy it to make it `bytes`.
ORDINARY_BYTES = 2**20

MAX_TAGS = 16  # the most tagged fields of a struct that a limited reader reads


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
        """Emit the check of the `n` items of an array against `left`.

        An array of numbers is read by one call. So 32 numbers count as one item.
        """
        if self._is_limited:
            is_number = isinstance(item, WireType) and 0 < item.size <= 8
            self.emit(depth, f"left -= n{' >> 5' if is_number else ''}")
            self.emit(depth, "if left < 0: raise ValueError")

    def _end(self) -> None:
        """Emit the check of the ends of all slices."""
        self.emit(1, "if p > limit: raise IndexError")

    def _sized(self, depth: int, field: Field, path: str) -> None:
        """Read a value, or null; the first byte of its length is in `n`.

        The frequent cases are tested first: null (0), an empty array (1), a length of one byte.
        """
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
        # Null where it is not allowed, or null that takes several bytes.
        self.emit(depth, "if not n: raise IndexError")
        self._value(depth, field, path)

    def _tags(self, depth: int, known: dict[int, Field], path: str) -> None:
        if self._is_limited:
            self.emit(depth, f"if n > {MAX_TAGS}: raise ValueError")
        super()._tags(depth, known, path)

    def _check_end(self, depth: int, length: str) -> None:
        """Emit nothing: `_end` emits one check for all slices."""

    def _copied(self, part: str) -> str:
        """The expression that copies bytes of `b`; a slice of `bytes` is a copy."""
        return super()._copied(part) if self._is_view else f"b[{part}]"

    def _text(self, copied: str) -> str:
        return f"{copied}.decode()"

    def _structs(self, depth: int, item: type[Struct], target: str, path: str) -> None:
        """Read an array of `n` structs. If their last fields often repeat, this is emitted:

        learn = n >= REUSE_FROM; size = 0
        for _ in range(n):
            (read the head)
            if size and b[p:p + size] == tail:
                p += size; (each field of the tail) = (its value in the first item)
            else:
                start = p; (read the tail)
                if learn: learn = False; tail = b[start:p]; size = p - start; (keep the values)
            (append the struct)
        """
        present = list(present_fields(item, self._version))
        head, tail = split_tail(present, self._version)
        if not tail:
            super()._structs(depth, item, target, path)
            return
        learn, size, first_tail, start = (
            f"{word}_{mangled(path)}" for word in ("learn", "size", "tail", "start")
        )
        self.emit(depth, f"{target} = []", f"{learn} = n >= {REUSE_FROM}", f"{size} = 0")
        self.emit(depth, "for _ in range(n):")
        depth += 1
        self._run(depth, self._untagged(depth, head, path), path)
        self.emit(depth, f"if {size} and b[p:p + {size}] == {first_tail}:")
        self.emit(depth + 1, f"p += {size}")
        for field, _ in tail:
            self.emit(depth + 1, f"{local(path, field)} = {_reused_value(path, field)}")
        self.emit(depth, "else:")
        self.emit(depth + 1, f"{start} = p")
        self._fields(depth + 1, tail, path)
        self.emit(depth + 1, f"if {learn}:")
        self.emit(depth + 2, f"{learn} = False")
        self.emit(depth + 2, f"{first_tail} = b[{start}:p]", f"{size} = p - {start}")
        for field, _ in tail:
            self.emit(depth + 2, f"{first(path, field)} = {local(path, field)}")
        self.emit(depth, f"{target}.append({self._constructor_call(item, present, path)})")


def _reused_value(path: str, field: Field) -> str:
    """The expression that reuses the first item's value.

    A list is copied, so that no two items share one.
    """
    value = first(path, field)
    if not isinstance(field.wire, ListOf):
        return value
    return f"None if {value} is None else [*{value}]" if field.may_be_null else f"[*{value}]"
