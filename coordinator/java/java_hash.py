"""Java's String.hashCode, length and order, and the iteration order of a HashMap.

Kafka maps a group to its partition by the hash. The order of a HashMap breaks ties: which protocol
a group elects when two have the same number of votes, and which of two equally loaded processes
gets a task. It also decides how large the internal topics of a streams group are. That order is not
specified by Java, but has not changed since 2014 (Java 8). Never change these functions.
"""

from collections.abc import Callable, Collection

SMALLEST_TABLE = 16


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 units, signed 32 bits."""
    value = 0
    units = java_order(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key: str, partition_count: int) -> int:
    """Return a key's partition: abs(hash) % count, as in Kafka. Never change it.

    The absolute value of the smallest int32 is taken as 0 (Kafka: Utils.abs).
    """
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


def hash_map_order(
    keys: Collection[str],
    capacity: int = SMALLEST_TABLE,
    step: Callable[[], object] = lambda: None,
    *,
    computed: bool = False,
) -> list[str]:
    """Sort distinct keys, given in insertion order, as a Java HashMap of them iterates.

    `capacity`: what the map was created with. `step` is called for each key (runtime/steps.py).
    `computed`: the entries were made by computeIfAbsent, which grows the table one entry later, and
    puts a new entry before others of its bucket.
    """
    if computed:
        keys = list(reversed(list(keys)))
    buckets = 1
    while buckets < capacity:
        buckets *= 2
    while len(keys) - computed > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        step()
        value = java_hash(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    buckets_of = {key: bucket(key) for key in list(keys)}  # others may change them in a step
    return sorted(buckets_of, key=buckets_of.__getitem__)


def utf16_units(text: str) -> int:
    """Return Java's String.length: the number of UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def java_order(text: str) -> bytes:
    """Return a sort key that orders as String.compareTo: by UTF-16 units, not code points."""
    return text.encode("utf-16-be", "surrogatepass")
