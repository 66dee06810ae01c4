"""What a conversation has left in the transaction log, in its topics, and in the log of offsets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.records.transaction_state import RECORD_TYPES
from odradek.storage.log_reader import LogReader
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.conformance.random_transactions.participants import TransactionParticipants
from tests.conformance.random_transactions.plain import TransactionPlain

Ends = tuple[int, int]

OFFSETS = "transactional offsets"
CODEC = CoordinatorRecordCodec(RECORD_TYPES)


class Logs:
    """The data directory of a broker, which may be at work."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._transactions = LogReader(data / f"{TRANSACTION_STATE_TOPIC}-0")
        self._offsets = LogReader(data / f"{CONSUMER_OFFSETS_TOPIC}-0")

    def ends(self) -> Ends:
        """Where the transaction log and the log of offsets end."""
        return self._transactions.end_offset(), self._offsets.end_offset()

    def left(
        self, since: Ends, participants: TransactionParticipants, plain: TransactionPlain
    ) -> dict[str, Any]:
        """All records of each transactional id, all batches of each partition, and OFFSETS."""
        found: dict[str, Any] = {OFFSETS: self._offset_batches(since[1], participants, plain)}
        for transactional_id, value in self._states(since[0], participants, plain):
            found.setdefault(f"states of {transactional_id}", []).append(value)
        for path in sorted(self._data.glob(f"{participants.tag}-*-[0-9]")):
            found[path.name] = [
                plain.batch(stored.header, [*stored.records()])
                for stored in LogReader(path).batches(0)
            ]
        return found

    def _offset_batches(
        self, since: int, participants: TransactionParticipants, plain: TransactionPlain
    ) -> list[str]:
        """Batches of the conversation's producers in the log of offsets, without the offsets.

        A marker that is written again, after a restart, does nothing there.
        """
        lines: list[str] = []
        for stored in self._offsets.batches(since):
            header = stored.header
            if header.producer_id in participants.producer_ids:
                line = plain.batch_of_offsets(header, [*stored.records()])
                if not (header.is_control and lines[-1:] == [line]):
                    lines.append(line)
        return lines

    def _states(
        self, since: int, participants: TransactionParticipants, plain: TransactionPlain
    ) -> Iterator[tuple[str, Any]]:
        for record in self._transactions.records(since):
            value = None if record.value is None else bytes(record.value)
            decoded = CODEC.decode(bytes(record.key or b""), value)
            assert decoded is not None, f"a record of an unknown type at {record.offset}"
            key: Any = decoded.key
            # Conversations that are held together end in another order on each broker: their
            # producer ids would be counted differently among the unknown ones.
            if key.transactional_id.startswith(participants.tag):
                yield key.transactional_id, plain.of(decoded.value) if value else None
