"""Checks a snapshot of the metadata log: it must be complete, and every record must decode."""

from pathlib import Path

from odradek.coordinator.metadata.snapshot_batches import snapshot_batches
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files
from odradek.storage.inspect.raw_batch import scan_raw
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

from .findings import Findings, Kind
from .record_check import OnRecord, RecordCheck

_REFUSED = "an older snapshot or the log is read instead; without them the broker refuses to start"


def check_snapshot(files: Files, path: Path, findings: Findings, on_record: OnRecord) -> None:
    """Report what is wrong with it. `on_record` is called for its records. Raises OSError."""
    _check_records(files, path, findings, on_record)
    try:
        snapshot_batches(files.read(path))
    except CorruptRecordError as error:
        findings.problem(path, str(error), _REFUSED, Kind.SNAPSHOT)


def _check_records(files: Files, path: Path, findings: Findings, on_record: OnRecord) -> None:
    """Check the records up to the first damaged batch."""
    file = files.open(path, read_only=True)
    records = RecordCheck(CLUSTER_METADATA_TOPIC, path, findings, on_record)
    try:
        for batch in scan_raw(files, file, 0, file.append_position):
            if batch.is_message or batch.fault() is not None:
                break
            records.add(batch)
    except UnreadableError:
        pass  # snapshot_batches finds it, too
    records.end()
