"""Builds Arrow arrays of byte strings from one buffer, without a Python object for each string.

The strings must be in ascending order of position. A temporary array over the whole buffer, whose
elements are string, gap, string, gap, … needs no copy. Arrow's `take` then copies only the strings.
"""

import numpy as np
import pyarrow as pa

from .varints import Ints


def binary_array(data: bytes, at: Ints, size_bytes: Ints) -> pa.BinaryArray:
    """Return the strings that begin at `at`, in ascending order; a size below 0 is a null."""
    count = at.size
    if not count or size_bytes.max() < 0:
        return pa.nulls(count, pa.binary())
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2] = at
    bounds[1::2] = at + np.maximum(size_bytes, 0)
    alternating = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    return alternating.take(_every_second(size_bytes))


def _every_second(size_bytes: Ints) -> pa.Array:
    indices = np.arange(0, 2 * size_bytes.size, 2, dtype=np.int32)
    absent = size_bytes < 0
    return pa.array(indices, mask=absent if absent.any() else None)


def string_array(values: pa.BinaryArray) -> pa.StringArray:
    """Return the values as text. Invalid UTF-8 is replaced, as Java's decoder does."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [value and value.decode("utf-8", "replace") for value in values.to_pylist()]
        return pa.array(texts, pa.string())


def constant(value: object, kind: pa.DataType, count: int) -> pa.Array:
    """Return an array of one value, repeated `count` times."""
    return pa.repeat(pa.scalar(value, kind), count)


def list_array(counts: Ints, elements: pa.Array, kind: pa.DataType) -> pa.ListArray:
    """Return one list of `counts[i]` elements for each i; null instead of an empty list."""
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    valid = counts > 0
    mask = np.packbits(valid, bitorder="little")
    return pa.Array.from_buffers(
        kind,
        counts.size,
        [None if valid.all() else pa.py_buffer(mask), pa.py_buffer(offsets)],
        children=[elements],
    )
