"""Writes the source of the quick reader: the one that reads a good message of ordinary size.

It reads `bytes`, not a view, because slices of bytes are what strings are made from (but where a
message lends its records, it reads a view), and it leaves out what only a bad message needs. What
it stumbles over (an IndexError, text that is no UTF-8), the careful reader (reader_source.py) reads
once more, to replace the text or to say what is wrong.

What it may leave out, it leaves out because something later fails for certain:

- A slice is not held against the end. A slice of bytes that reaches beyond it is short, but `p` is
  then behind the end too, never comes back, and is looked at before the message is returned.
- A length of zero in more bytes than one is no null here, but something to stumble over.

Items of an array often end alike: the replicas of a topic's partitions, an empty error message, no
tagged fields. Where such fields stand at the end of a struct, the bytes of the first item's are
kept, and an item that ends with the same bytes gets the same values: the reader is a function of
the bytes, so equal bytes are equal values, and as many of them are read.
"""

from .declaration import MANY, Field, ListOf, carries_records, parted, present_fields
from .reader_source import ReaderSource
from .schema import Message, Struct
from .source import first, local, mangled

ORDINARY_BYTES = 2**20  # longer data is not copied, but read where it lies


class QuickReaderSource(ReaderSource):
    """The source of one quick reader."""

    VERB = "quickly read"

    def __init__(self, message: type[Message], version: int) -> None:
        self._is_view = carries_records(message)
        super().__init__(message, version)

    def _begin(self) -> None:
        self.emit(0, "def read(data, p):")
        if self._is_view:
            self.emit(1, "b = data if type(data) is memoryview else memoryview(data)")
        else:
            self.emit(1, f"if len(data) > {ORDINARY_BYTES}: raise ValueError")
            self.emit(1, "b = data if type(data) is bytes else data.tobytes()")
        self.emit(1, "limit = len(b)")

    def _end(self) -> None:
        self.emit(1, "if p > limit: raise IndexError")

    def _sized(self, depth: int, field: Field, path: str) -> None:
        """What is most often there comes first: nothing, an empty array, a short value."""
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

    def _check_end(self, depth: int, length: str) -> None:
        """Done once, at the end."""

    def _copied(self, part: str) -> str:
        return super()._copied(part) if self._is_view else f"b[{part}]"

    def _text(self, copied: str) -> str:
        return f"{copied}.decode()"

    def _structs(self, depth: int, item: type[Struct], target: str, path: str) -> None:
        present = list(present_fields(item, self._version))
        head, tail = parted(present, self._version)
        if not tail:
            super()._structs(depth, item, target, path)
            return
        learn, size, end = (f"{word}_{mangled(path)}" for word in ("learn", "size", "tail"))
        start = f"start_{mangled(path)}"
        self.emit(depth, f"{target} = []", f"{learn} = n >= {MANY}", f"{size} = 0")
        self.emit(depth, "for _ in range(n):")
        depth += 1
        self._run(depth, self._untagged(depth, head, path), path)
        self.emit(depth, f"if {size} and b[p:p + {size}] == {end}:")
        self.emit(depth + 1, f"p += {size}")
        for field, _ in tail:
            self.emit(depth + 1, f"{local(path, field)} = {_again(path, field)}")
        self.emit(depth, "else:")
        self.emit(depth + 1, f"{start} = p")
        self._fields(depth + 1, tail, path)
        self.emit(depth + 1, f"if {learn}:")
        self.emit(depth + 2, f"{learn} = False", f"{end} = b[{start}:p]", f"{size} = p - {start}")
        for field, _ in tail:
            self.emit(depth + 2, f"{first(path, field)} = {local(path, field)}")
        self.emit(depth, f"{target}.append({self._made(item, present, path)})")


def _again(path: str, field: Field) -> str:
    """The value of the first item once more; a list is a new one for each."""
    known = first(path, field)
    if not isinstance(field.wire, ListOf):
        return known
    return f"None if {known} is None else [*{known}]" if field.may_be_null else f"[*{known}]"
