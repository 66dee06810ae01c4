"""The partition of a key, as Kafka's producers choose it.

Kafka: BuiltInPartitioner.partitionForKey, Utils.murmur2.
"""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key in a topic with so many."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """The 32-bit hash, unsigned."""
    length = len(data)
    value = (_SEED ^ length) & _MASK
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        value = (value * _M & _MASK) ^ word
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15
