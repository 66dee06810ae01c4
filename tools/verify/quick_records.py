"""Reads the records of many batches at once, by the decoder of the pipeline.

It is several times faster than reading one record after another, and only tells whether something
may be wrong. It needs numpy and pyarrow; without them all records are read one by one.
"""

import functools
from collections.abc import Sequence

from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.inspect.raw_batch import RawBatch

_EVERY_OFFSET = (0, 2**63 - 1)
# No header holds keys and headers. So all fields of all records are read and checked.
_READ_ALL = ("offset", "timestamp", "key", "headers")


@functools.cache
def is_installed() -> bool:
    """Whether numpy and pyarrow can be imported."""
    try:
        import odradek.pipeline.decoding.decoder  # noqa: F401 - only whether it can be imported
    except ImportError:
        return False
    return True


def can_read(batch: RawBatch) -> bool:
    """Whether are_sound() takes such a batch."""
    return not batch.is_message and not batch.is_control and batch.header.record_count > 0


def are_sound(batches: Sequence[RawBatch]) -> bool:
    """Whether all records can be read, and their offsets ascend and are in their batches.

    The batches have valid CRCs. False if one has to be looked at more closely.
    """
    import numpy as np

    from odradek.pipeline.decoding.batch_table import find_batches, read_table
    from odradek.pipeline.decoding.decoder import RecordDecoder

    data = b"".join(batch.data() for batch in batches)
    try:
        positions, end = find_batches(data)
        if end != len(data) or positions.size != len(batches):
            return False
        table = read_table(np.frombuffer(data, np.uint8), positions)
        decoded = RecordDecoder("", 0, _READ_ALL).decode(data, table, *_EVERY_OFFSET)
        parts = [records.column(0).to_numpy() for records in decoded]
    except CorruptRecordError:
        return False
    offsets = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if offsets.size != table.record_count.sum():
        return False
    starts = np.repeat(table.base_offset, table.record_count)
    ends = np.repeat(table.last_offset, table.record_count)
    ascends = bool((np.diff(offsets, prepend=-1) > 0).all())
    return ascends and bool(((starts <= offsets) & (offsets <= ends)).all())
