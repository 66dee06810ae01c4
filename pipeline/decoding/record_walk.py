"""Where each record of many batches lies: the one thing that has to be found record after record.

A record begins where its predecessor ends. Step k finds record k of every batch at once; when only
few batches still have one, walking them in Python costs less than a step.

What comes out is only as good as the lengths in the data: record_fields.py checks the result.
"""

from typing import NamedTuple

import numpy as np

from odradek.protocol.primitives import read_varint

from .varints import Ints, behind_lengths, read_varints

# A step costs as much as this many turns of the walk in Python: measured, and not critical.
_FEW_BATCHES = 64


class RecordSpans(NamedTuple):
    """One element per record: its first byte behind the length, and the byte behind its last."""

    begin: Ints
    end: Ints


def find_records(data: bytes, begin: Ints, count: Ints) -> tuple[RecordSpans, Ints]:
    """The spans of `count` records from each position on, batch after batch.

    Also where the walk through each batch has ended. Where the data is broken, spans are anything.
    """
    behind_batch = np.cumsum(count)
    # The batches that have the most records first, so that those which still have one lie together.
    order = np.argsort(-count, kind="stable")
    position, left = begin[order], count[order]
    slot = (behind_batch - count)[order]
    lengths_at = np.empty(int(count.sum()), np.int64)
    view = np.frombuffer(data, np.uint8)
    # How many batches have a record of that number.
    active = (count.size - np.cumsum(np.bincount(left))).tolist() if left.size else []
    step = 0
    while step < len(active) and active[step] > _FEW_BATCHES:
        some = active[step]
        lengths_at[slot[:some]] = position[:some]
        position[:some] = behind_lengths(view, position[:some])
        slot[:some] += 1
        step += 1
    for row in range(active[step] if step < len(active) else 0):
        first, behind = int(slot[row]), int(slot[row] + left[row]) - step
        lengths_at[first:behind], position[row] = _walk(data, int(position[row]), behind - first)
    ended = np.empty_like(position)
    ended[order] = position
    end = np.empty_like(lengths_at)
    end[:-1] = lengths_at[1:]
    has_records = count > 0
    end[behind_batch[has_records] - 1] = ended[has_records]
    length, body = read_varints(view, lengths_at)
    if length.size and length.min() < 0:
        end[length < 0] = -1  # the walk over small lengths does not look at their sign
    return RecordSpans(body, end), ended


def _walk(data: bytes, position: int, count: int) -> tuple[list[int], int]:
    """Where each record has its length, and the end of the last.

    Where the data makes no sense, all further ones lie behind its end.
    """
    found: list[int] = []
    add = found.append
    try:
        for _ in range(count):
            size = data[position]
            add(position)
            if size < 0x80:
                position += (size >> 1) + 1
            elif (second := data[position + 1]) < 0x80:
                position += ((size & 0x7F | second << 7) >> 1) + 2
            else:
                size, behind = read_varint(data, position)
                position = behind + size
    except (IndexError, ValueError):
        found += [len(data)] * (count - len(found))
    return found, position
