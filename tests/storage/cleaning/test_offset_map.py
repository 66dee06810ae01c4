"""The offset map: a dict in memory that is counted beforehand."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.cleaning.offset_map import ENTRY_BYTES, NOT_FOUND, OffsetMap


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2**62))), st.integers(0, 300))
def test_it_is_a_dict_that_ends(entries: list[tuple[bytes, int]], expected_keys: int) -> None:
    offsets = OffsetMap(24 * 40, 0.9)
    offsets.clear(expected_keys)
    model: dict[bytes, int] = {}
    for key, offset in entries:
        assert offsets.put(key, offset) is (len(model) < offsets.capacity)
        if len(model) < offsets.capacity:
            model[key] = offset
    assert offsets.size == len(model)
    for key, _ in entries:
        assert offsets.get(key) == model.get(key, NOT_FOUND)
    assert offsets.get(b"never put") == NOT_FOUND


def memory_of(offsets: OffsetMap) -> int:
    return sum(sys.getsizeof(getattr(offsets, name)) for name in ("_first", "_second", "_offsets"))


def test_it_holds_as_many_keys_as_kafkas_and_stays_below_the_buffer() -> None:
    buffer_bytes = 1 << 20
    offsets = OffsetMap(buffer_bytes, 0.9)
    offsets.clear(1 << 62)
    count = 0
    while offsets.put(b"key-%d" % count, count):
        count += 1
    assert count == offsets.capacity == int(buffer_bytes // ENTRY_BYTES * 0.9)
    assert all(offsets.get(b"key-%d" % number) == number for number in range(count))
    assert memory_of(offsets) <= buffer_bytes


def test_a_small_log_takes_little_of_a_large_buffer() -> None:
    offsets = OffsetMap(128 << 20, 0.9)
    offsets.clear(1000)
    assert memory_of(offsets) < 64 << 10
    assert all(offsets.put(b"%d" % number, number) for number in range(1000))


def test_a_buffer_without_room_for_two_keys_is_refused() -> None:
    with pytest.raises(ValueError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        OffsetMap(ENTRY_BYTES * 2, 0.9)
