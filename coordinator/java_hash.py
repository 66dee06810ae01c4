"""Java's strings: their hash, length and order; and the order in which a HashMap lists its keys.

Kafka places groups by the one, and lets the other break ties (which protocol a group elects when
two have as many votes). Both are of one Java, but have not changed since 2014. Never change them.
"""

from collections.abc import Collection

SMALLEST_TABLE = 16


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 units, signed 32 bits."""
    value = 0
    units = java_order(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def hash_map_order(keys: Collection[str]) -> list[str]:
    """Distinct keys, given in the order of insertion, as a HashMap that holds them lists them."""
    buckets = SMALLEST_TABLE
    while len(keys) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        value = java_hash(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(keys, key=bucket)


def utf16_units(text: str) -> int:
    """The length of a text as Java counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def java_order(text: str) -> bytes:
    """A key to sort by as String.compareTo does: by UTF-16 units, where Python has code points."""
    return text.encode("utf-16-be", "surrogatepass")
