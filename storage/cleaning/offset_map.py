"""A map from key to last offset for one round of the log cleaner, with a fixed amount of memory.

A dict would need 150 to 250 bytes per key, and more while it grows. A round over a large log would
end early, and the log would be rewritten once more for the other keys. So this is a hash table in
three arrays with 24 bytes per slot: two hashes of the key, 64 bits each, and its offset. It holds
as many keys as Kafka's in the same `log.cleaner.dedupe.buffer.size`, so a round ends where Kafka's
would.

Keys are compared by the two hashes alone (SipHash with this process's secret, of the key and of the
key with a byte appended). The chance that two of a billion keys agree in both is 1 to 10**20. Kafka
uses MD5. A full map takes no more keys, and no entry is dropped within a round.

Kafka: SkimpyOffsetMap.
"""

from array import array
from math import isqrt

ENTRY_BYTES = 24
NOT_FOUND = -1
_FEWEST_SLOTS = 1021
_SALT = b"\x5a"


class OffsetMap:
    """See the module. `latest_offset`: the last offset read in the round; set by the cleaner."""

    __slots__ = (
        "_first",
        "_limit",
        "_offsets",
        "_second",
        "_slots",
        "_used_slots",
        "capacity",
        "latest_offset",
        "size",
    )

    def __init__(self, buffer_bytes: int, load_factor: float) -> None:
        """Raises ValueError if not even two keys fit."""
        self.capacity = int(buffer_bytes // ENTRY_BYTES * load_factor)
        if self.capacity <= 1:
            raise ValueError(
                f"{buffer_bytes} bytes hold no offset map: increase log.cleaner.dedupe.buffer.size "
                "or decrease log.cleaner.threads"
            )
        self._slots = buffer_bytes // ENTRY_BYTES
        self.clear(0)

    def clear(self, max_keys: int) -> None:
        """Start a round with at most `max_keys` keys; a small log needs little memory."""
        wanted = min(self._slots, max(2 * max_keys, _FEWEST_SLOTS))
        slots = _largest_prime(wanted)
        self._first = self._second = self._offsets = array("q")  # frees the old arrays first
        self._first = array("q", [0]) * slots
        self._second = array("q", [0]) * slots
        self._offsets = array("q", [0]) * slots  # one more than the offset; 0: the slot is free
        self._used_slots = slots
        self._limit = min(self.capacity, slots - 1)  # one stays free, where a search ends
        self.size = 0
        self.latest_offset = NOT_FOUND

    def put(self, key: bytes, offset: int) -> bool:
        """Set the offset of `key`. Returns False, and changes nothing, if the map is full."""
        if self.size >= self._limit:
            return False
        firsts, seconds, offsets = self._first, self._second, self._offsets
        first, second, slots = hash(key), hash(key + _SALT), self._used_slots
        slot = first % slots
        step = 0
        while offsets[slot]:
            if firsts[slot] == first and seconds[slot] == second:
                offsets[slot] = offset + 1
                return True
            # The number of slots is prime, so all slots are visited.
            step = step or 1 + second % (slots - 1)
            slot = (slot + step) % slots
        firsts[slot], seconds[slot], offsets[slot] = first, second, offset + 1
        self.size += 1
        return True

    def get(self, key: bytes) -> int:
        """The last offset of `key`; -1 if there is none."""
        offsets, first, slots = self._offsets, hash(key), self._used_slots
        slot = first % slots
        stored = offsets[slot]
        if not stored:
            return NOT_FOUND
        second = hash(key + _SALT)
        step = 1 + second % (slots - 1)
        while stored:
            if self._first[slot] == first and self._second[slot] == second:
                return stored - 1
            slot = (slot + step) % slots
            stored = offsets[slot]
        return NOT_FOUND


def _largest_prime(limit: int) -> int:
    """The largest prime up to `limit`, which is at least 2."""
    number = limit
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number -= 1
    return number
