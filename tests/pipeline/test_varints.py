"""Varints at many positions at once are those that are read one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipeline.decoding.varints import read_varints, skip_length_prefixed
from odradek.protocol.primitives import read_varlong, write_varint

# Of one byte, of two, and of more.
NUMBERS = st.one_of(
    st.integers(-70, 70), st.integers(-9000, 9000), st.integers(-(1 << 31), (1 << 31) - 1)
)
POSITIONS = st.lists(st.integers(-(1 << 62), 1 << 62) | st.integers(-5, 40), max_size=20)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=40))
def test_numbers_are_those_that_were_written(numbers: list[int]) -> None:
    out, at = bytearray(), []
    for number in numbers:
        at.append(len(out))
        write_varint(out, number)
    data = np.frombuffer(bytes(out) + b"\x00", np.uint8)
    found, ends = read_varints(data, np.array(at, np.int64))
    assert found.tolist() == numbers
    assert ends.tolist() == [*at, len(out)][1:]
    assert skip_length_prefixed(data, np.array(at, np.int64)).tolist() == [
        end + number for end, number in zip(ends.tolist(), numbers, strict=True)
    ]


@settings(deadline=None)
@given(st.binary(min_size=12, max_size=60), st.data())
def test_any_bytes_are_read_as_one_by_one(data: bytes, drawn: st.DataObject) -> None:
    at = drawn.draw(st.lists(st.integers(0, len(data) - 1), min_size=1, max_size=20))
    found, ends = read_varints(np.frombuffer(data, np.uint8), np.array(at, np.int64))
    for position, number, end in zip(at, found.tolist(), ends.tolist(), strict=True):
        try:
            expected = read_varlong(data, position)
        except (IndexError, ValueError):
            continue  # it has no end, or too many bytes: the number may be any
        assert (number, end) == expected


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=40), POSITIONS)
def test_positions_outside_the_data_do_no_harm(data: bytes, at: list[int]) -> None:
    view, positions = np.frombuffer(data, np.uint8), np.array(at, np.int64)
    assert read_varints(view, positions)[0].size == len(at)
    assert skip_length_prefixed(view, positions).size == len(at)
