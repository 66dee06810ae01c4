"""Checks a snapshot of the metadata log: it must be complete, and every record must decode."""

from pathlib import Path

from odradek.coordinator.inspect.internal_records import decode_control
from odradek.storage.files import Files
from odradek.storage.inspect.raw_batch import RawBatch, scan_raw
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

from .findings import Findings, Kind
from .record_check import OnRecord, RecordCheck

_REFUSED = "an older snapshot or the log is read instead; without them the broker refuses to start"


def check_snapshot(files: Files, path: Path, findings: Findings, on_record: OnRecord) -> None:
    """Report what is wrong with it. `on_record` is called for its records. Raises OSError."""
    file = files.open(path, read_only=True)
    records = RecordCheck(CLUSTER_METADATA_TOPIC, path, findings, on_record)
    position = 0
    kinds: list[str] = []
    try:
        for batch in scan_raw(files, file, 0, file.append_position):
            position = batch.position
            if batch.is_message or not batch.is_valid():
                what = f"the batch at byte {position} is damaged"
                findings.problem(path, what, _REFUSED, Kind.SNAPSHOT)
                return
            records.add(batch)
            kinds += _control_kinds(batch)
            position += batch.size_bytes
    except UnreadableError as error:
        findings.problem(path, f"byte {position}: {error}", _REFUSED, Kind.SNAPSHOT)
        return
    records.end()
    if position != file.append_position:
        what = f"it is cut off after byte {position}"
        findings.problem(path, what, _REFUSED, Kind.SNAPSHOT)
    elif kinds[:1] != ["SNAPSHOT_HEADER"] or kinds[-1:] != ["SNAPSHOT_FOOTER"]:
        what = "its header or its footer is missing"
        findings.problem(path, what, _REFUSED, Kind.SNAPSHOT)


def _control_kinds(batch: RawBatch) -> list[str]:
    if not batch.is_control:
        return []
    kinds = (decode_control(record.key, record.value).kind for record in batch.records())
    return ["UNKNOWN" if kind is None else kind.name for kind in kinds]
