"""Finds the records of many batches.

This is the only step that is sequential within a batch: a record begins where the one before it
ends. Step k finds record k of all batches at once. When few batches have records left, a Python
loop over each of them costs less than a step.

The result depends on lengths in the data that are not checked here. record_fields.py checks it.
"""

from typing import NamedTuple

import numpy as np

from odradek.protocol.primitives import read_varint

from .varints import Ints, read_varints, skip_length_prefixed

# A step costs as much as a Python loop over this many records: measured, and not critical.
_FEW_BATCHES = 64


class RecordSpans(NamedTuple):
    """One element per record: the position after its length field, and the position of its end."""

    begin: Ints
    end: Ints


def find_records(data: bytes, begin: Ints, count: Ints) -> tuple[RecordSpans, Ints]:
    """Return the spans of `count[i]` records from `begin[i]` on, batch after batch.

    Also returns where the last record of each batch ends. Damaged data gives arbitrary spans.
    """
    batch_stop = np.cumsum(count)
    # Batches with the most records come first, so those with records left are a prefix.
    order = np.argsort(-count, kind="stable")
    position, left = begin[order], count[order]
    slot = (batch_stop - count)[order]
    lengths_at = np.empty(int(count.sum()), np.int64)
    view = np.frombuffer(data, np.uint8)
    # active[k]: how many batches have a record number k.
    active = (count.size - np.cumsum(np.bincount(left))).tolist() if left.size else []
    step = 0
    while step < len(active) and active[step] > _FEW_BATCHES:
        count_active = active[step]
        lengths_at[slot[:count_active]] = position[:count_active]
        position[:count_active] = skip_length_prefixed(view, position[:count_active])
        slot[:count_active] += 1
        step += 1
    for row in range(active[step] if step < len(active) else 0):
        start, stop = int(slot[row]), int(slot[row] + left[row]) - step
        lengths_at[start:stop], position[row] = _walk(data, int(position[row]), stop - start)
    ended = np.empty_like(position)
    ended[order] = position
    end = np.empty_like(lengths_at)
    end[:-1] = lengths_at[1:]
    has_records = count > 0
    end[batch_stop[has_records] - 1] = ended[has_records]
    length, body = read_varints(view, lengths_at)
    if length.size and length.min() < 0:
        end[length < 0] = -1  # the walk over small lengths does not check the sign
    return RecordSpans(body, end), ended


def _walk(data: bytes, position: int, count: int) -> tuple[list[int], int]:
    """Return the positions of the records' length fields, and the end of the last record.

    If the data is damaged, the remaining positions are the end of the data.
    """
    positions: list[int] = []
    add = positions.append
    try:
        for _ in range(count):
            size = data[position]
            add(position)
            if size < 0x80:
                position += (size >> 1) + 1
            elif (second := data[position + 1]) < 0x80:
                position += ((size & 0x7F | second << 7) >> 1) + 2
            else:
                size, body = read_varint(data, position)
                position = body + size
    except (IndexError, ValueError):
        positions += [len(data)] * (count - len(positions))
    return positions, position
