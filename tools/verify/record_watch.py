"""Whether what is inside batches can be read; of internal logs also whether records decode."""

from collections.abc import Callable, Mapping
from pathlib import Path

from odradek.protocol.schema import DecodeError
from odradek.storage.raw_message import UnreadableError
from odradek.storage.raw_scan import AnyRecord, RawBatch
from odradek.storage.topic_names import (
    CLUSTER_METADATA_TOPIC,
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from odradek.tools.dump.decoders import (
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    RecordDecoder,
    control_of,
    metadata_decoder,
)

from .findings import Findings, Tally

_DECODERS: Mapping[str, RecordDecoder] = {
    CONSUMER_OFFSETS_TOPIC: OFFSETS,
    TRANSACTION_STATE_TOPIC: TRANSACTIONS,
    SHARE_GROUP_STATE_TOPIC: SHARE_STATE,
    CLUSTER_METADATA_TOPIC: metadata_decoder,
}
_ERROR = "Error at "
_UNKNOWN = "nknown "  # a type, or a version of one
SeeRecord = Callable[[AnyRecord], object]


def is_internal(topic: str) -> bool:
    """Whether every record of its logs is decoded."""
    return topic in _DECODERS


class RecordWatch:
    """The records of one file; `see_record` is shown those of no control batch."""

    def __init__(
        self, topic: str, path: Path, findings: Findings, see_record: SeeRecord | None = None
    ) -> None:
        self._path = path
        self._findings = findings
        self._decode = _DECODERS.get(topic)
        self._see_record = see_record
        self._unreadable = Tally()
        self._undecodable = Tally()
        self._unknown = Tally()
        self._misplaced = Tally()

    def see(self, batch: RawBatch) -> None:
        """The next batch, whose CRC is right."""
        previous = -1
        try:
            for record in batch.records():
                if not previous < record.offset <= batch.last_offset:
                    self._misplaced.add(
                        f"offset {record.offset} behind {previous}, in a batch that ends at "
                        f"{batch.last_offset}"
                    )
                previous = record.offset
                if batch.is_control:
                    self._see_control(record)
                else:
                    self._see_record_of_log(record)
        except (UnreadableError, DecodeError) as error:
            self._unreadable.add(str(error))

    def _see_control(self, record: AnyRecord) -> None:
        if control_of(record.key, record.value).kind is None:
            self._unknown.add(f"a control record of unknown kind at offset {record.offset}")

    def _see_record_of_log(self, record: AnyRecord) -> None:
        if self._see_record is not None:
            self._see_record(record)
        if self._decode is None:
            return
        # Of a record that cannot be decoded a text is told where else a message is.
        key, value = self._decode(record)
        told = key if isinstance(key, str) else value if key is None else None
        if isinstance(told, str) and told.startswith(_ERROR) and _UNKNOWN not in told:
            self._undecodable.add(told)
        elif isinstance(told, str):
            self._unknown.add(told)

    def end(self) -> None:
        """All batches went by."""
        fate = "the batch is served as it is, and kept by the cleaner"
        if self._unreadable.count:
            what = f"{self._unreadable.count} batches have a right CRC and cannot be read; "
            self._findings.problem(self._path, what + self._unreadable.first, fate)
        if self._misplaced.count:
            self._findings.problem(self._path, str(self._misplaced), fate)
        if self._undecodable.count:
            self._findings.problem(self._path, str(self._undecodable), "the record is passed over")
        if self._unknown.count:
            self._findings.note(self._path, str(self._unknown), "it is kept as it is")
