"""Reads DER (ITU-T X.690), as far as key stores and names need it.

`cryptography` decodes names into text, and Kafka's principals depend on how a name was encoded.
"""

from collections.abc import Iterator
from typing import NamedTuple

SEQUENCE = 0x30
SET = 0x31
OCTET_STRING = 0x04
OID = 0x06
_LONG_FORM = 0x80


class Element(NamedTuple):
    """One element: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    encoded: bytes


def elements(data: bytes) -> Iterator[Element]:
    """The elements that follow one another in `data`. Raises ValueError."""
    position = 0
    while position < len(data):
        start = position
        if len(data) - position < 2:
            raise ValueError("a DER element is cut off")
        tag, size = data[position], data[position + 1]
        position += 2
        if size & _LONG_FORM:
            length_bytes = size & ~_LONG_FORM
            size = int.from_bytes(data[position : position + length_bytes])
            position += length_bytes
        end = position + size
        if end > len(data):
            raise ValueError("a DER element is cut off")
        yield Element(tag, data[position:end], data[start:end])
        position = end


def element(data: bytes, *path: int) -> Element:
    """The element at a path of indexes, from the outermost element on. Raises ValueError."""
    found = _nth(data, 0)
    for index in path:
        found = _nth(found.content, index)
    return found


def _nth(data: bytes, index: int) -> Element:
    for number, found in enumerate(elements(data)):
        if number == index:
            return found
    raise ValueError("a DER element is missing")


def oid_text(content: bytes) -> str:
    """An object identifier as numbers with dots. Raises ValueError."""
    if not content or content[-1] & 0x80:
        raise ValueError("an object identifier is cut off")
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))
