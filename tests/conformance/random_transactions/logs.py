"""What a conversation has left in the transaction log and in the partitions of its topics."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.coordinator.record_codec import CoordinatorRecordCodec
from odradek.protocol.records.transaction_state import RECORD_TYPES
from odradek.storage.log_reader import LogReader
from odradek.storage.topic_names import TRANSACTION_STATE_TOPIC
from tests.conformance.random_transactions.cast import TransactionCast
from tests.conformance.random_transactions.plain import TransactionPlain

CODEC = CoordinatorRecordCodec(RECORD_TYPES)


class Logs:
    """The data directory of a broker, which may be at work."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._transactions = LogReader(data / f"{TRANSACTION_STATE_TOPIC}-0")

    def end(self) -> int:
        """Of the transaction log."""
        return self._transactions.end_offset()

    def left(self, since: int, cast: TransactionCast, plain: TransactionPlain) -> dict[str, Any]:
        """All records of each transactional id, and all batches of each partition."""
        found: dict[str, Any] = {}
        for transactional_id, value in self._states(since, cast, plain):
            found.setdefault(f"states of {transactional_id}", []).append(value)
        for path in sorted(self._data.glob(f"{cast.tag}-*-[0-9]")):
            found[path.name] = [
                plain.batch(stored.header, [*stored.records()])
                for stored in LogReader(path).batches(0)
            ]
        return found

    def _states(
        self, since: int, cast: TransactionCast, plain: TransactionPlain
    ) -> Iterator[tuple[str, Any]]:
        for record in self._transactions.records(since):
            value = None if record.value is None else bytes(record.value)
            decoded = CODEC.decode(bytes(record.key or b""), value)
            assert decoded is not None, f"a record of an unknown type at {record.offset}"
            key: Any = decoded.key
            # Conversations that are held together end in another order on each broker: their
            # producer ids would be counted differently among the unknown ones.
            if key.transactional_id.startswith(cast.tag):
                yield key.transactional_id, plain.of(decoded.value) if value else None
