"""Formats texts and paths as Java prints them, and orders keys as Java's HashMap does.

A dump can be compared with Kafka's line by line only if both are formatted the same way.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from odradek.storage.inspect.raw_message import as_int32

_LONG = re.compile(r"[+-]?[0-9]+")
# An encoded surrogate is not valid UTF-8. Java replaces it (whole, or cut short) by one replacement
# character, Python by two or three.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()


class JavaFile:
    """A path as java.io.File prints it: `text` is the given path without doubled slashes."""

    def __init__(self, given: str) -> None:
        text = re.sub("/+", "/", given)
        self.text = text if text == "/" else text.removesuffix("/")
        self.name = self.text.rpartition("/")[2]
        self.path = Path(self.text)

    @property
    def absolute(self) -> str:
        """File.getAbsolutePath: relative to the working directory; `..` and links stay."""
        if self.text.startswith("/"):
            return self.text
        here = str(Path.cwd())
        return f"{here}/{self.text}" if self.text else here

    @property
    def suffix(self) -> str | None:
        """The name from its last dot; None without a dot."""
        dot = self.name.rfind(".")
        return None if dot < 0 else self.name[dot:]

    @property
    def stem(self) -> str:
        """The name up to its first dot."""
        return self.name.partition(".")[0]

    def sibling(self, suffix: str) -> "JavaFile":
        """The file with this suffix that belongs to the same segment."""
        return JavaFile(f"{self.text.removesuffix(self.name)}{self.stem}{suffix}")


def parse_long(text: str) -> int:
    """Long.parseLong of an offset in a file name. Raises ValueError."""
    if not _LONG.fullmatch(text) or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(f"{text!r} is not an offset")
    return int(text)


def decode_text(data: bytes) -> str:
    """Decode UTF-8; invalid parts are replaced as Java replaces them."""
    return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace")


def optional_long(value: int | None) -> str:
    """OptionalLong.toString."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def string_hash(text: str) -> int:
    """String.hashCode, computed over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return as_int32(value)


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """The order in which a HashMap iterates over keys that computeIfAbsent has added in this order.

    computeIfAbsent adds a key before the others in its bucket, and grows the map one key later than
    `put` does.
    """
    listed = list(keys)
    listed.reverse()
    slots = 16
    while len(listed) - 1 > slots * 3 // 4:
        slots *= 2

    def slot(key: str) -> int:
        spread = string_hash(key) & 0xFFFFFFFF
        return (spread ^ spread >> 16) & (slots - 1)

    return sorted(listed, key=slot)
