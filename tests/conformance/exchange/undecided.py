"""Takes records of transactions out of a directory that no broker uses: what a crash would have
lost, or what a broker that was killed would not have written.

The brokers then take the stop for an unclean one, and read all logs.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path

from odradek.coordinator.record_codec import CoordinatorRecordCodec
from odradek.protocol.batch_header import read_header
from odradek.protocol.record import read_records
from odradek.protocol.records.transaction_state import (
    RECORD_TYPES,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.storage.checkpoints import read_offsets, write_offsets
from odradek.storage.filenames import CLEAN_SHUTDOWN, RECOVERY_POINT_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

CODEC = CoordinatorRecordCodec(RECORD_TYPES)


class Undecided:
    """A data directory whose transactions are taken back."""

    def __init__(self, data: Path) -> None:
        self._data = data
        (data / CLEAN_SHUTDOWN).unlink(missing_ok=True)
        path = data / RECOVERY_POINT_CHECKPOINT
        write_offsets(Files(), path, dict.fromkeys(read_offsets(Files(), path), 0))

    def drop_states(self, transactional_id: str, states: Collection[int]) -> None:
        """Remove the coordinator's last records of an id, as long as they have these states."""

        def chosen(batches: list[memoryview]) -> list[memoryview]:
            found = [(batch, _state_in(batch, transactional_id)) for batch in batches]
            own = [(batch, state) for batch, state in reversed(found) if state is not None]
            return [batch for batch, _ in takewhile(lambda each: each[1] in states, own)]

        assert self._drop(f"{TRANSACTION_STATE_TOPIC}-*", chosen)

    def drop_marker(self, topic: str, partition: int, producer_id: int) -> None:
        """Remove a producer's last marker from a partition."""
        assert self._drop(f"{topic}-{partition}", partial(_last_marker, producer_id))

    def drop_offset_marker(self, producer_id: int) -> None:
        """Remove a producer's last marker from the offsets of groups."""
        assert self._drop(f"{CONSUMER_OFFSETS_TOPIC}-*", partial(_last_marker, producer_id))

    def _drop(self, name: str, chosen: Callable[[list[memoryview]], list[memoryview]]) -> int:
        """Remove the chosen batches from the logs of a name. Returns how many."""
        dropped = 0
        for log in self._data.glob(f"{name}/*.log"):
            batches = list(_batches(log))
            gone = {read_header(batch).base_offset for batch in chosen(batches)}
            if gone:
                kept = [each for each in batches if read_header(each).base_offset not in gone]
                log.write_bytes(b"".join(kept))
                for path in log.parent.iterdir():
                    if path.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
                        path.unlink()
            dropped += len(gone)
        return dropped


def _state_in(batch: memoryview, transactional_id: str) -> int | None:
    """The state that a batch of `__transaction_state` gives an id, if it is of that id."""
    state = None
    for record in read_records(batch):
        stored = CODEC.decode(record.key, record.value)
        assert stored is not None
        key, value = stored.key, stored.value
        assert isinstance(key, TransactionLogKey)
        assert isinstance(value, TransactionLogValue)
        if key.transactional_id == transactional_id:
            state = value.transaction_status
    return state


def _last_marker(producer_id: int, batches: list[memoryview]) -> list[memoryview]:
    markers = []
    for batch in batches:
        header = read_header(batch)
        if header.is_control and header.producer_id == producer_id:
            markers.append(batch)
    return markers[-1:]


def _batches(log: Path) -> Iterator[memoryview]:
    data = memoryview(log.read_bytes())
    while data:
        size = read_header(data).size_bytes
        yield data[:size]
        data = data[size:]
