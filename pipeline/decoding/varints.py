"""Reads zigzag varints at many positions of one buffer at once.

Most varints have one or two bytes. For these, a table maps the two bytes to the number. Positions
may be anywhere: after the end, the last byte is read, so damaged data gives wrong numbers and never
an error. The caller must check the numbers.
"""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LONGEST = 10  # bytes of a 64-bit varint
_CONTINUATION_BIT = 0x80


def _zigzag(raw: npt.NDArray[np.uint64]) -> Ints:
    return ((raw >> np.uint64(1)) ^ -(raw & np.uint64(1))).view(np.int64)


def _number_of_pairs() -> Ints:
    """Return the decoded numbers; the index is the first byte plus 256 times the second."""
    pair = np.arange(1 << 16, dtype=np.uint64)
    first, second = pair & np.uint64(0x7F), pair >> np.uint64(8)
    has_second = (pair & np.uint64(_CONTINUATION_BIT)) != 0
    return _zigzag(np.where(has_second, first | (second & np.uint64(0x7F)) << np.uint64(7), first))


_NUMBER = _number_of_pairs()
_NUMBER_OF_ONE = _NUMBER[:_CONTINUATION_BIT].copy()


def read_varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Return the varints at these positions, and the positions after them."""
    first = data.take(at, mode="clip")
    if not at.size or first.max() < _CONTINUATION_BIT:
        return _NUMBER_OF_ONE.take(first), at + 1
    second = data.take(at + 1, mode="clip")
    number = _NUMBER.take(_pairs(first, second))
    after = at + 1 + (first >= _CONTINUATION_BIT)
    longer = (first & second) >= _CONTINUATION_BIT
    if longer.any():
        rows = np.flatnonzero(longer)
        number[rows], after[rows] = _read_long(data, at[rows])
    return number, after


def _pairs(first: Bytes, second: Bytes) -> npt.NDArray[np.uint16]:
    return first | second.astype(np.uint16) << np.uint16(8)


def _read_long(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Read varints of any length."""
    raw = np.zeros(at.size, np.uint64)
    after = at.copy()
    rows = np.arange(at.size)
    for shift in range(0, 7 * _LONGEST, 7):
        byte = data.take(after[rows], mode="clip")
        raw[rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[rows] += 1
        rows = rows[byte >= _CONTINUATION_BIT]
        if not rows.size:
            break
    return _zigzag(raw), after


# The bytes from a length of one or two bytes to the end of what it describes. 0: the length has
# more bytes, or is negative.
_STRIDE = np.where(
    (np.arange(1 << 16) & 0x8080 == 0x8080) | (_NUMBER < 0),
    0,
    _NUMBER + 1 + (np.arange(1 << 16) & _CONTINUATION_BIT != 0),
)


def skip_length_prefixed(data: Bytes, at: Ints) -> Ints:
    """Return the end of each item that begins with its length at one of these positions."""
    first, second = data.take(at, mode="clip"), data.take(at + 1, mode="clip")
    stride = _STRIDE.take(_pairs(first, second))
    end = at + stride
    if not stride.all():
        rows = np.flatnonzero(stride == 0)
        size, body = read_varints(data, at[rows])
        end[rows] = body + size
    return end
