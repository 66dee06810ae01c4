"""Zigzag varints at many positions of one buffer at once.

Most are of one or two bytes, and for those two bytes a table tells the number. Positions may lie
anywhere: behind the end the last byte is read, so that broken data gives wrong numbers and never a
crash. Whoever asks must check what comes out against what it knows.
"""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LONGEST = 10  # bytes of a 64-bit varint
_GOES_ON = 0x80


def _zigzag(raw: npt.NDArray[np.uint64]) -> Ints:
    return ((raw >> np.uint64(1)) ^ -(raw & np.uint64(1))).view(np.int64)


def _number_of_pairs() -> Ints:
    """By a varint's first byte and 256 times the one behind it."""
    pair = np.arange(1 << 16, dtype=np.uint64)
    first, second = pair & np.uint64(0x7F), pair >> np.uint64(8)
    goes_on = (pair & np.uint64(_GOES_ON)) != 0
    return _zigzag(np.where(goes_on, first | (second & np.uint64(0x7F)) << np.uint64(7), first))


_NUMBER = _number_of_pairs()
_NUMBER_OF_ONE = _NUMBER[:_GOES_ON].copy()


def read_varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The varints at these positions, and the positions behind them."""
    first = data.take(at, mode="clip")
    if not at.size or first.max() < _GOES_ON:
        return _NUMBER_OF_ONE.take(first), at + 1
    second = data.take(at + 1, mode="clip")
    number = _NUMBER.take(_pairs(first, second))
    behind = at + 1 + (first >= _GOES_ON)
    longer = (first & second) >= _GOES_ON
    if longer.any():
        rows = np.flatnonzero(longer)
        number[rows], behind[rows] = _read_long(data, at[rows])
    return number, behind


def _pairs(first: Bytes, second: Bytes) -> npt.NDArray[np.uint16]:
    return first | second.astype(np.uint16) << np.uint16(8)


def _read_long(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The same for varints of any length."""
    raw = np.zeros(at.size, np.uint64)
    behind = at.copy()
    going_on = np.arange(at.size)
    for shift in range(0, 7 * _LONGEST, 7):
        byte = data.take(behind[going_on], mode="clip")
        raw[going_on] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        behind[going_on] += 1
        going_on = going_on[byte >= _GOES_ON]
        if not going_on.size:
            break
    return _zigzag(raw), behind


# How far it is from a length of one or two bytes to behind what has that length; 0: it is longer,
# or a length below 0.
_STRIDE = np.where(
    (np.arange(1 << 16) & 0x8080 == 0x8080) | (_NUMBER < 0),
    0,
    _NUMBER + 1 + (np.arange(1 << 16) & _GOES_ON != 0),
)


def behind_lengths(data: Bytes, at: Ints) -> Ints:
    """Where that ends which begins with its length at each of these positions."""
    first, second = data.take(at, mode="clip"), data.take(at + 1, mode="clip")
    stride = _STRIDE.take(_pairs(first, second))
    behind = at + stride
    if not stride.all():
        rows = np.flatnonzero(stride == 0)
        size, body = read_varints(data, at[rows])
        behind[rows] = body + size
    return behind
