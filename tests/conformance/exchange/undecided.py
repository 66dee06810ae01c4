"""Takes records of transactions out of a directory that no broker uses: what a crash would have
lost, or what a broker that was killed would not have written. It can also raise the epoch of an
open transaction to the last one.

The brokers then take the stop for an unclean one, and read all logs.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.batch_header import HEADER_BYTES, pack_header, read_header, stamp_crc
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.transaction_state import (
    RECORD_TYPES,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.protocol.schema import replace
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
        self._rewrite(f"{TRANSACTION_STATE_TOPIC}-*", _split)

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

    def raise_epoch(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Change the epoch of the transaction that is open."""

        def of_state(batch: memoryview) -> bytes | None:
            if _state_in(batch, transactional_id) != TransactionState.ONGOING:
                return None
            [record] = read_records(batch)
            stored = CODEC.decode(record.key, record.value)
            assert stored is not None
            value = replace(stored.value, producer_epoch=epoch)
            key, data = CODEC.encode(JournalRecord(value, stored.value_version, stored.key))
            changed = build_batch([Record(key, data, record.timestamp_ms)])
            header = read_header(changed)._replace(base_offset=record.offset)
            return pack_header(header) + bytes(changed[HEADER_BYTES:])

        def of_producer(batch: memoryview) -> bytes | None:
            header = read_header(batch)
            if header.producer_id != producer_id or header.is_control:
                return None
            changed = bytearray(batch)
            changed[:HEADER_BYTES] = pack_header(header._replace(producer_epoch=epoch))
            stamp_crc(changed)
            return bytes(changed)

        self._rewrite(f"{TRANSACTION_STATE_TOPIC}-*", of_state)
        for name in (f"{transactional_id}-[01]", f"{CONSUMER_OFFSETS_TOPIC}-*"):
            self._rewrite(name, of_producer, is_end=_is_marker_of(producer_id))

    def _rewrite(
        self,
        name: str,
        change: Callable[[memoryview], bytes | None],
        is_end: Callable[[memoryview], bool] = lambda _: False,
    ) -> None:
        """Replace batches for which `change` returns others, after the last one that is an end."""
        for log in self._data.glob(f"{name}/*.log"):
            batches = list(_batches(log))
            ends = [number for number, batch in enumerate(batches) if is_end(batch)]
            first = ends[-1] + 1 if ends else 0
            changed = [change(batch) or batch for batch in batches[first:]]
            log.write_bytes(b"".join([*batches[:first], *changed]))
            _remove_derived(log)

    def _drop(self, name: str, chosen: Callable[[list[memoryview]], list[memoryview]]) -> int:
        """Remove the chosen batches from the logs of a name. Returns how many."""
        dropped = 0
        for log in self._data.glob(f"{name}/*.log"):
            batches = list(_batches(log))
            gone = {read_header(batch).base_offset for batch in chosen(batches)}
            if gone:
                kept = [each for each in batches if read_header(each).base_offset not in gone]
                log.write_bytes(b"".join(kept))
                _remove_derived(log)
            dropped += len(gone)
        return dropped


def _split(batch: memoryview) -> bytes:
    """Give each record of a batch a batch of its own, so that it can be taken out alone."""
    epoch = read_header(batch).partition_leader_epoch
    return b"".join(
        build_batch([record], base_offset=record.offset, partition_leader_epoch=epoch)
        for record in read_records(batch)
    )


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


def _is_marker_of(producer_id: int) -> Callable[[memoryview], bool]:
    def is_marker(batch: memoryview) -> bool:
        header = read_header(batch)
        return header.is_control and header.producer_id == producer_id

    return is_marker


def _last_marker(producer_id: int, batches: list[memoryview]) -> list[memoryview]:
    return list(filter(_is_marker_of(producer_id), batches))[-1:]


def _remove_derived(log: Path) -> None:
    """Remove the files that recovery makes again."""
    for path in log.parent.iterdir():
        if path.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            path.unlink()


def _batches(log: Path) -> Iterator[memoryview]:
    data = memoryview(log.read_bytes())
    while data:
        size = read_header(data).size_bytes
        yield data[:size]
        data = data[size:]
