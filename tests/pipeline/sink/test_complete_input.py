"""Whether Spark's end marker follows the rows, however the stream is cut."""

import io
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.sink.complete_input import require_complete
from odradek.pipeline.sink.rows import WriteError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ROWS = [pa.record_batch({"value": ["a"]}), pa.record_batch({"value": ["b"]})]
GOOD_END = struct.pack(">i", -4)


class Pieces(io.RawIOBase):
    """A stream that gives one of them at each read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        piece = next(self._pieces, b"")
        memoryview(buffer)[: len(piece)] = piece
        return len(piece)


def main(infile: io.BufferedReader) -> list[pa.RecordBatch]:
    """As pyspark's worker: its stream is known by the names of this function and its argument."""
    found = list(require_complete(ROWS))
    assert infile.read(4) == GOOD_END  # as the worker does, when the writer has returned
    return found


@pytest.mark.parametrize("cut", range(4))
def test_rows_that_are_followed_by_the_marker_are_complete(cut: int) -> None:
    pieces = [piece for piece in (GOOD_END[:cut], GOOD_END[cut:]) if piece]
    assert main(io.BufferedReader(Pieces(pieces))) == ROWS


@pytest.mark.parametrize("rest", [b"", struct.pack(">i", -1)])
def test_rows_that_are_followed_by_anything_else_are_incomplete(rest: bytes) -> None:
    with pytest.raises(WriteError, match="before all of its rows had arrived"):
        main(io.BufferedReader(Pieces([rest])))


def test_rows_outside_a_worker_that_is_known_are_refused() -> None:
    with pytest.raises(WriteError, match="unknown version of pyspark"):
        list(require_complete(ROWS))
