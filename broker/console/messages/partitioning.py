"""The partition of a key, as Kafka's producers choose it.

Kafka: BuiltInPartitioner.partitionForKey, Utils.murmur2.
"""

import struct

from odradek.coordinator.runtime.steps import Step, stepping

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_WORD_BYTES = 4
# The number of bytes that are hashed between two steps.
_AT_ONCE = 4096


def partition_of(key: bytes, partitions: int, step: Step) -> int:
    """The partition of a key in a topic with so many."""
    return (murmur2(key, step) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes, step: Step) -> int:
    """The 32-bit hash, unsigned."""
    length = len(data)
    value = (_SEED ^ length) & _MASK
    whole = length - length % _WORD_BYTES
    for position in stepping(range(0, whole, _AT_ONCE), step):
        for (word,) in struct.iter_unpack("<I", data[position : min(position + _AT_ONCE, whole)]):
            mixed = word * _M & _MASK
            mixed = (mixed ^ mixed >> 24) * _M & _MASK
            value = (value * _M & _MASK) ^ mixed
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15
