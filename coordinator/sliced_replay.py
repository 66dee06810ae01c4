"""Replaying a log bit by bit, for a caller that has other things to do meanwhile.

Decoding takes 10 to 20 us a record and holds the interpreter, so a thread would not help: a large
log stalls an event loop for seconds, if it is replayed at once. Between two slices nothing of the
log is held, for the cleaner may replace its segments. What it then takes away are records that
later ones, not replayed yet, make needless.
"""

from collections.abc import Iterator
from itertools import islice

from odradek.protocol.any_batch import read_any_header
from odradek.protocol.record_batch import CorruptRecordError
from odradek.protocol.schema import DecodeError
from odradek.storage.log import PartitionLog

from .journal import CorruptJournalError, replay_stored, stored_records
from .outcome import StateMachine
from .record_codec import RecordCodec

# A slice takes one or two milliseconds.
RECORDS_PER_SLICE = 50
BYTES_PER_READ = 16 << 10


def replay_in_slices(log: PartitionLog, state: StateMachine, codec: RecordCodec) -> Iterator[None]:
    """Replay the log into `state`, and yield after each slice. In the end all is replayed.

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
    """Every batch from `offset` on, with those that are appended meanwhile."""
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
