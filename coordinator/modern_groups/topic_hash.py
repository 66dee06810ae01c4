"""Hashes of topics, by which a group detects that its subscribed topics have changed.

The hash of a topic covers its id, its name, its partitions and the racks of their replicas. The
hash of a group covers the hashes of its subscribed topics. The group writes its hash with its epoch
(ConsumerGroupMetadataValue.metadata_hash), and Apache Kafka compares it after a restart. Both must
compute equal hashes; otherwise Kafka would rebalance every group.

Kafka passes the values one by one to hash4j's XXH3 (64 bits, seed 0). That equals the hash of the
following bytes. Numbers are little-endian. Text is UTF-16, followed by its length in code units:

    topic   00 · id (8 high, 8 low) · name · partition count (4) · each partition
            partition: index (4) · each rack, sorted: its length in units (4) · rack
    group   each topic's hash (8), in the order of the names

Hashes are signed 64-bit integers, as in Java.
Kafka: Utils.computeTopicHash, Utils.computeGroupHash.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from xxhash import xxh3_64_intdigest

from odradek.coordinator.java.java_hash import java_order, utf16_units
from odradek.coordinator.runtime.steps import Step, no_step, sorted_in_steps, stepping

# The hash of a topic that does not exist, and of a group without an existing topic.
NO_HASH = 0

_MAGIC = b"\x00"
_INT = Struct("<i")
_LONG = Struct("<q")


def topic_hash(
    topic_id: bytes, name: str, racks: Sequence[Iterable[str]], step: Step = no_step
) -> int:
    """Return the hash of a topic; `racks` gives the racks of the replicas of each partition.

    A rack that repeats is hashed as often: Kafka names it once for each replica.
    """
    pieces = [_MAGIC, topic_id[7::-1], topic_id[:7:-1], _text(name), _INT.pack(len(racks))]
    known: dict[tuple[str, ...], bytes] = {}  # most partitions of a topic are in the same racks
    for index, of_partition in enumerate(map(tuple, stepping(racks, step))):
        if of_partition not in known:
            known[of_partition] = _racks(of_partition)
        pieces += _INT.pack(index), known[of_partition]
    return _signed(xxh3_64_intdigest(b"".join(pieces)))


def group_hash(topic_hashes: Mapping[str, int], step: Step = no_step) -> int:
    """Return the hash of a group from the topic hashes by topic name."""
    if not topic_hashes:
        return NO_HASH
    # Topic names are ASCII, which Java and Python sort in the same order.
    in_order = stepping(sorted_in_steps(topic_hashes, step), step)
    packed = b"".join([_LONG.pack(topic_hashes[name]) for name in in_order])
    return _signed(xxh3_64_intdigest(packed))


def _racks(racks: Iterable[str]) -> bytes:
    in_order = sorted(racks, key=java_order)
    return b"".join(_INT.pack(utf16_units(rack)) + _text(rack) for rack in in_order)


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + _INT.pack(utf16_units(text))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
