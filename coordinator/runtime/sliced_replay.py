"""Replays a log in slices, so that an event loop can serve requests in between.

Decoding takes 10 to 20 us a record and holds the interpreter, so a thread would not help: replaying
a large log at once blocks the event loop for seconds. No segment is held between two slices,
because the cleaner may replace it. The records that the cleaner removes meanwhile are superseded by
later ones, which are not replayed yet.
"""

from collections.abc import Iterator
from itertools import islice

from odradek.protocol.any_batch import read_any_header
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.schema import DecodeError
from odradek.storage.log import PartitionLog

from .journal import replay_stored, stored_records
from .outcome import StateMachine
from .record_codec import CorruptJournalError, RecordCodec

# A slice takes one or two milliseconds.
RECORDS_PER_SLICE = 50
BYTES_PER_READ = 16 << 10


def replay_in_slices(log: PartitionLog, state: StateMachine, codec: RecordCodec) -> Iterator[None]:
    """Replay the whole log into `state`, and yield after each slice.

    Raises CorruptJournalError for a record that can't be read, OSError.
    """
    first = log.log_start_offset
    stored = stored_records(_batches(log, first), codec, log.name)
    try:
        while some := list(islice(stored, RECORDS_PER_SLICE)):
            replay_stored(some, state, first, log.name)
            yield
    except (DecodeError, CorruptRecordError) as error:
        raise CorruptJournalError(f"{log.name}: {error}") from error


def _batches(log: PartitionLog, offset: int) -> Iterator[memoryview]:
    """Iterate over the batches from `offset` on, including those that are appended meanwhile."""
    while read := _next_batches(log, offset):
        yield from read
        offset = read_any_header(read[-1]).last_offset + 1


def _next_batches(log: PartitionLog, offset: int) -> list[memoryview]:
    read = []
    size = 0
    for batch in log.batches(offset):
        read.append(batch)
        size += len(batch)
        if size >= BYTES_PER_READ:
            break
    return read
