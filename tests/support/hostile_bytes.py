"""Feeds a decoder what nobody should send: a sample cut at every byte, or with false lengths.

A decoder that reads bytes from outside may return a value or raise its one kind of error. Anything
else (another exception, memory out of proportion to the bytes) is a bug that a stranger can use.
"""

import struct
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

from .messages import LONG
from .reference_codec import Length

INT32_MAX = 2**31 - 1
# Of a long sample only so many variants, unless the tests may take long.
CUTS = 300
LENGTHS = 50
# The worst that is possible: objects of some 100 bytes for items of 2, beside what any error costs.
MEMORY_PER_BYTE = 100
MEMORY_BASE = 64 * 1024

Decoder = Callable[[bytes], object]


def feed(
    decode: Decoder,
    data: bytes,
    errors: type[Exception] | tuple[type[Exception], ...],
    lengths: Sequence[Length] = (),
) -> list[Exception]:
    """Feed every variant of `data`; returns the errors that came, all of them of `errors`.

    Raises AssertionError when a whole sample, or one with a tail, does not decode.
    """
    decode(data)
    decode(data + b"tail")
    refused = []
    for variant in (*cuts(data), *lies(data, lengths)):
        try:
            decode(variant)
        except errors as error:
            refused.append(error)
    return refused


def cuts(data: bytes) -> Iterator[bytes]:
    """The data cut before each of its bytes."""
    step = 1 if LONG else len(data) // CUTS + 1
    for end in range(0, len(data), step):
        yield data[:end]


def lies(data: bytes, lengths: Sequence[Length]) -> Iterator[bytes]:
    """The data with each of its lengths replaced by each of the numbers that tempt."""
    step = 1 if LONG else len(lengths) // LENGTHS + 1
    for length in lengths[::step]:
        end = length.position + length.size
        for lie in _lies_of(length.form, len(data) - end):
            yield data[: length.position] + lie + data[end:]


def _lies_of(form: str, left: int) -> list[bytes]:
    if form == "varint":
        numbers = (0, 2, left + 2, 2**14, INT32_MAX, 2**32 - 1)
        endless = [b"\xff" * 5, b"\xff" * 10, b"\x80" * 6]
        return [_varint(number) for number in numbers] + endless
    limit = 2**15 - 1 if form == "h" else INT32_MAX
    numbers_ = (-1, -2, -limit - 1, 1, left + 1, limit)
    return [struct.pack(">" + form, min(number, limit)) for number in numbers_]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    out.append(number)
    return bytes(out)


def peak_memory(decode: Decoder, data: bytes, errors: type[Exception]) -> int:
    """The bytes allocated at most at one time while `data` is decoded or refused."""
    tracemalloc.start()
    try:
        decode(data)
    except errors:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak
