"""Checks that the records in batches can be read, and that records of internal logs decode."""

from collections.abc import Callable, Mapping
from pathlib import Path

from odradek.coordinator.inspect.internal_records import (
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    RecordDecoder,
    decode_control,
    metadata_decoder,
)
from odradek.protocol.schema import DecodeError
from odradek.storage.inspect.raw_batch import AnyRecord, RawBatch
from odradek.storage.inspect.raw_message import TooLargeError, UnreadableError
from odradek.storage.topic_names import (
    CLUSTER_METADATA_TOPIC,
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from odradek.tools.verify import quick_records

from .findings import Findings, Kind, Tally

_DECODERS: Mapping[str, RecordDecoder] = {
    CONSUMER_OFFSETS_TOPIC: OFFSETS,
    TRANSACTION_STATE_TOPIC: TRANSACTIONS,
    SHARE_GROUP_STATE_TOPIC: SHARE_STATE,
    CLUSTER_METADATA_TOPIC: metadata_decoder,
}
# A decoder returns these texts in place of a record that it cannot decode.
_ERROR = "Error at "
_UNKNOWN = "nknown "  # part of "Unknown record type" and "unknown record version"
_QUICK_BYTES = 8 << 20  # of the batches that are read at once
OnRecord = Callable[[AnyRecord], object]


def is_internal(topic: str) -> bool:
    """Whether all records of this topic are decoded."""
    return topic in _DECODERS


class RecordCheck:
    """The records of one file. `on_record` is called for each record but control records."""

    def __init__(
        self, topic: str, path: Path, findings: Findings, on_record: OnRecord | None = None
    ) -> None:
        self._path = path
        self._findings = findings
        self._decode = _DECODERS.get(topic)
        self._on_record = on_record
        self._is_quick = self._decode is None and quick_records.is_installed()
        self._held: list[RawBatch] = []
        self._held_bytes = 0
        self._unreadable = Tally()
        self._too_large = Tally()
        self._undecodable = Tally()
        self._unknown = Tally()
        self._misplaced = Tally()

    def add(self, batch: RawBatch) -> None:
        """Check the records of the next batch, whose CRC is valid."""
        if self._is_quick and quick_records.can_read(batch):
            self._held.append(batch)
            self._held_bytes += batch.size_bytes
            if self._held_bytes >= _QUICK_BYTES:
                self._check_held()
        else:
            self._check(batch)

    def _check_held(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        if held and not quick_records.are_sound(held):
            for batch in held:
                self._check(batch)

    def _check(self, batch: RawBatch) -> None:
        # A message of an older format has the offset of the last record in it.
        previous = -1 if batch.is_message else batch.offset - 1
        try:
            for record in batch.records():
                if not previous < record.offset <= batch.last_offset:
                    self._misplaced.add(
                        f"offset {record.offset} where one from {previous + 1} to "
                        f"{batch.last_offset} was expected",
                        position=batch.position,
                        offset=batch.offset,
                    )
                previous = record.offset
                if batch.is_control:
                    self._add_control(record)
                else:
                    self._add_data(record)
        except TooLargeError as error:
            what = f"its records are not checked: {error}"
            self._too_large.add(what, position=batch.position, offset=batch.offset)
        except (UnreadableError, DecodeError) as error:
            what = f"the batch has a valid CRC but cannot be read: {error}"
            self._unreadable.add(what, position=batch.position, offset=batch.offset)

    def _add_control(self, record: AnyRecord) -> None:
        if decode_control(record.key, record.value).kind is None:
            self._unknown.add(f"a control record of unknown kind at offset {record.offset}")

    def _add_data(self, record: AnyRecord) -> None:
        if self._on_record is not None:
            self._on_record(record)
        if self._decode is None:
            return
        # The decoder returns an error text where it would else return a message.
        key, value = self._decode(record)
        error = key if isinstance(key, str) else value if key is None else None
        if isinstance(error, str) and error.startswith(_ERROR) and _UNKNOWN not in error:
            self._undecodable.add(error)
        elif isinstance(error, str):
            self._unknown.add(error)

    def end(self) -> None:
        """Report what was found, after the last batch."""
        self._check_held()
        at_start = "the batch is served as it is, and kept by the cleaner"
        findings, path = self._findings, self._path
        findings.problem(path, self._unreadable, at_start, Kind.RECORDS)
        findings.problem(path, self._misplaced, at_start, Kind.RECORDS)
        findings.problem(path, self._undecodable, "the record is skipped", Kind.RECORDS)
        findings.note(path, self._too_large, kind=Kind.RECORDS)
        findings.note(path, self._unknown, "it is kept as it is", Kind.RECORDS)
