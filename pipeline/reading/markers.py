"""Reads the markers of transactions: the control records that say how a transaction ended."""

from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.record_fields import read_fields
from odradek.pipeline.decoding.record_walk import find_records
from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.protocol.batch_header import HEADER_BYTES, CorruptRecordError
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.log_reader import OpenSegment

from .pieces import Piece, read_pieces, verify_checksums

# Most transactions are short, so that their markers are not far.
_MIN_AHEAD_BYTES = 64 << 10
_MAX_AHEAD_BYTES = 4 << 20
_KEY_BYTES = 4  # version and type


class Markers(NamedTuple):
    """The markers among some batches, in the order of the log."""

    producer_id: Ints
    offset: Ints
    is_abort: Bools


def markers_in(data: bytes, table: BatchTable) -> Markers:
    """Return the markers among the batches of a piece. Raises CorruptRecordError."""
    # A control batch without a record was emptied by the cleaner.
    control = table.where(table.is_control & (table.record_count > 0) & (table.producer_id >= 0))
    view = np.frombuffer(data, np.uint8)
    spans, _ = find_records(data, control.position + HEADER_BYTES, np.ones(control.height, int))
    fields, valid = read_fields(view, spans)
    valid &= fields.key_bytes >= _KEY_BYTES
    if not valid.all():
        offset = control.base_offset[np.flatnonzero(~valid)[0]]
        raise CorruptRecordError(f"the marker at offset {offset} cannot be read")
    kind = view[fields.key_at + 2].astype(np.int64) << 8 | view[fields.key_at + 3]
    is_abort = kind == ControlRecordType.ABORT
    ends = is_abort | (kind == ControlRecordType.COMMIT)  # others are not of transactions
    return Markers(control.producer_id[ends], control.base_offset[ends], is_abort[ends])


class SegmentMarkers:
    """The markers of one segment from a position on, where a batch begins.

    They are taken from pieces that the caller reads anyway, and from pieces after those as far as
    is needed.
    """

    def __init__(self, segment: OpenSegment, position: int, *, verify_crc: bool) -> None:
        self.segment = segment
        self._position = position  # of the first batch that has not been read
        self._verify_crc = verify_crc
        self._ahead_bytes = _MIN_AHEAD_BYTES
        self._offsets: dict[int, list[int]] = {}  # by producer id, ascending
        self._are_aborts: dict[int, list[bool]] = {}

    def knows_end(self, producer_id: int, offset: int) -> bool:
        """Whether a marker of the producer after this offset is known."""
        offsets = self._offsets.get(producer_id)
        return offsets is not None and offsets[-1] > offset

    def read_on(self) -> bool:
        """Read some more; False at the end of the segment. Raises CorruptRecordError, OSError."""
        pieces = read_pieces(
            self.segment,
            self._position,
            self.segment.size_bytes,
            verify_crc=False,
            piece_bytes=self._ahead_bytes,
        )
        piece = next(pieces, None)
        if piece is not None:
            self._ahead_bytes = min(2 * self._ahead_bytes, _MAX_AHEAD_BYTES)
            self.add(piece)
        return piece is not None

    def add(self, piece: Piece) -> None:
        """Add a piece that begins where the last one ended or before it.

        Raises CorruptRecordError.
        """
        if piece.end_position <= self._position:
            return
        if piece.table is not None:
            is_new = piece.table.position >= self._position - piece.position
            self._add(piece.data, piece.table.where(piece.table.is_control & is_new))
        self._position = piece.end_position

    def _add(self, data: bytes, control: BatchTable) -> None:
        if not control.height:
            return
        if self._verify_crc:
            verify_checksums(data, control)
        columns = [column.tolist() for column in markers_in(data, control)]
        for producer_id, offset, is_abort in zip(*columns, strict=True):
            self._offsets.setdefault(producer_id, []).append(offset)
            self._are_aborts.setdefault(producer_id, []).append(is_abort)

    def are_aborted(self, producer_id: int, offsets: Ints) -> Bools:
        """Return whether the first markers that were read after these offsets are of aborts.

        The offsets ascend. The result is shorter if there is no marker after some of them.
        """
        markers = np.array(self._offsets.get(producer_id, ()), np.int64)
        number = np.searchsorted(markers, offsets)
        are_aborts: Bools = np.array(self._are_aborts.get(producer_id, ()), np.bool_)
        return are_aborts[number[number < markers.size]]
