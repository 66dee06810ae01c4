"""`odradek verify` predicts what a start does about damage: compared with a start."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.coordinator.metadata.metadata_reading import read_metadata
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CorruptJournalError, MetadataRecordCodec
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import TopicRecord
from odradek.storage.checkpoints import MetaProperties, write_clean_shutdown, write_meta_properties
from odradek.storage.filenames import CLEAN_SHUTDOWN
from odradek.storage.files import Files
from odradek.tools.verify.findings import Finding, Kind, Severity
from odradek.tools.verify.job import VerifySettings, run_verify
from tests.support.archives import InThisProcess
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, split

SIZE_AT = 8  # in a batch
HUGE = struct.pack(">i", 1 << 30)
TINY = struct.pack(">i", 5)
UNCHECKED = "after a clean stop it is not checked"
METADATA = Path(__file__).resolve().parents[1] / "golden" / "metadata"


def all_findings(data: Path) -> list[Finding]:
    settings = VerifySettings(log_directories=[data], now_ms=NOW_MS)
    return run_verify(InThisProcess(), settings).findings


def structure(data: Path) -> list[Finding]:
    """The findings about batches."""
    kinds = (Kind.STRUCTURE, Kind.CHECKSUM, Kind.GAP)
    return [each for each in all_findings(data) if each.kind in kinds]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One segment of ten batches, stopped cleanly, without entries in its index."""
    log = LogBox(tmp_path).open()
    for number in range(10):
        put(log, b"%d" % number)
    log.close(NOW_MS)
    write_meta_properties(Files(), tmp_path, MetaProperties("c", 1, b"d" * 16))
    write_clean_shutdown(Files(), tmp_path, 7)
    return tmp_path


def damage(path: Path, batch: int, at: int, new: bytes) -> int:
    """Overwrite bytes of a batch; returns its position."""
    batches = split(path.read_bytes())
    position = sum(map(len, batches[:batch]))
    with path.open("r+b") as file:
        file.seek(position + at)
        file.write(new)
    return position


def test_a_damaged_size_is_not_taken_for_the_end_that_a_kill_leaves(data: Path) -> None:
    (data / CLEAN_SHUTDOWN).unlink()
    path = LogBox(data).path(0, ".log")
    position, size = damage(path, 3, SIZE_AT, HUGE), path.stat().st_size
    following = position + len(batch_of(b"3"))
    [found] = structure(data)
    assert found.severity is Severity.PROBLEM
    assert found.what.endswith(f"among them a whole batch, of offset 4 at byte {following}")
    assert found.at_start == (
        f"recovery cuts this segment at byte {position}: {size - position} bytes are lost"
    )
    LogBox(data).open(clean=False).close(NOW_MS)
    assert path.stat().st_size == position


def test_a_batch_before_the_torn_end_is_no_sign_of_a_damaged_size(data: Path) -> None:
    (data / CLEAN_SHUTDOWN).unlink()
    old = split(LogBox(data).path(0, ".log").read_bytes())[3]
    LogBox(data).tear(batch_of(b"torn" + old)[:-1])
    [found] = structure(data)
    assert found.severity is Severity.NOTE


def torn(box: LogBox) -> int:
    path = box.path(0, ".log")
    size = path.stat().st_size
    box.tear(batch_of(b"torn")[:50])
    return size


def torn_after_damage(box: LogBox) -> int:
    position = damage(box.path(0, ".log"), 2, 65, b"\xff")
    torn(box)
    return position


DAMAGES: dict[str, Callable[[LogBox], int]] = {
    "a torn end": torn,
    "a size that is too large": lambda box: damage(box.path(0, ".log"), 3, SIZE_AT, HUGE),
    "a size that is too small": lambda box: damage(box.path(0, ".log"), 3, SIZE_AT, TINY),
    "a wrong checksum before a torn end": torn_after_damage,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_last_segment_without_a_whole_end_is_recovered_after_a_clean_stop(
    data: Path, name: str
) -> None:
    box = LogBox(data)
    position = DAMAGES[name](box)
    path = box.path(0, ".log")
    lost = path.stat().st_size - position
    for found in structure(data):
        assert found.severity is Severity.PROBLEM
        assert found.at_start.startswith(
            "odradek finds no whole batch at the end: recovery cuts this segment at byte "
            f"{position}: {lost} bytes are lost. Apache Kafka: {UNCHECKED}"
        )
    box.open().close(NOW_MS)
    assert path.stat().st_size == position


def test_what_is_damaged_before_a_whole_end_stays_after_a_clean_stop(tmp_path: Path) -> None:
    box = LogBox(tmp_path, index_interval_bytes=1)
    log = box.open()
    for number in range(10):
        put(log, b"%d" % number)
    log.close(NOW_MS)
    write_meta_properties(Files(), tmp_path, MetaProperties("c", 1, b"d" * 16))
    write_clean_shutdown(Files(), tmp_path, 7)
    path = box.path(0, ".log")
    size = path.stat().st_size
    damage(path, 2, 65, b"\xff")
    damage(path, 3, SIZE_AT, TINY)
    found = structure(tmp_path)
    assert [each.kind for each in found] == [Kind.STRUCTURE, Kind.CHECKSUM]
    assert all(each.at_start.startswith(UNCHECKED) for each in found)
    box.open().close(NOW_MS)
    assert path.stat().st_size == size


# --- the metadata log


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    """Two segments of three batches, stopped cleanly."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    codec = MetadataRecordCodec.of_cluster()
    for first in (0, 3):
        batches = b""
        for offset in range(first, first + 3):
            topic = TopicRecord(name=f"topic{offset}", topic_id=bytes([offset + 1]) * 16)
            record = Record(*codec.encode(JournalRecord(topic, 0)), NOW_MS)
            batches += build_batch([record], base_offset=offset, partition_leader_epoch=1)
        (directory / f"{first:020}.log").write_bytes(batches)
    write_meta_properties(Files(), tmp_path, MetaProperties("c", 1, b"d" * 16))
    write_clean_shutdown(Files(), tmp_path, 7)
    return tmp_path


def topics_at_start(data: Path) -> int:
    """How many topics a start reads. Raises CorruptJournalError."""
    is_clean = (data / CLEAN_SHUTDOWN).exists()
    directory = data / "__cluster_metadata-0"
    reading = read_metadata(Files(), directory, "c", allow_torn_end=not is_clean)
    return len(reading.metadata.topics)


def test_a_damaged_batch_of_the_metadata_log_is_refused_after_a_clean_stop(metadata: Path) -> None:
    path = metadata / "__cluster_metadata-0" / f"{0:020}.log"
    position = damage(path, 1, 65, b"\xff")
    cut = (
        f"recovery cuts this segment at byte {position}: {path.stat().st_size - position} bytes"
        " and 1 later segment are lost"
    )
    [found] = structure(metadata)
    assert found.at_start == (
        "odradek refuses to start, unless a later snapshot has what is in the batch."
        f" Apache Kafka: {cut}"
    )
    with pytest.raises(CorruptJournalError):
        topics_at_start(metadata)
    (metadata / CLEAN_SHUTDOWN).unlink()
    [found] = structure(metadata)
    assert found.at_start == cut
    assert topics_at_start(metadata) == 1


def test_a_torn_end_of_the_metadata_log_is_cut(metadata: Path) -> None:
    path = metadata / "__cluster_metadata-0" / f"{3:020}.log"
    position = path.stat().st_size
    path.write_bytes(path.read_bytes() + batch_of(b"torn")[:50])
    [found] = structure(metadata)
    assert found.at_start == f"recovery cuts this segment at byte {position}: 50 bytes are lost"
    assert topics_at_start(metadata) == 6


def test_what_is_after_a_gap_of_the_metadata_log_is_dropped_unless_it_was_stopped_cleanly(
    metadata: Path,
) -> None:
    path = metadata / "__cluster_metadata-0" / f"{0:020}.log"
    path.write_bytes(b"".join(split(path.read_bytes())[:2]))
    [found] = structure(metadata)
    assert found.at_start == "reads continue after the gap"
    assert topics_at_start(metadata) == 5
    (metadata / CLEAN_SHUTDOWN).unlink()
    [found] = structure(metadata)
    assert found.at_start == (
        "odradek drops what is after the gap. Apache Kafka: reads continue after the gap"
    )
    assert topics_at_start(metadata) == 2


def refusals(data: Path) -> list[str]:
    found = all_findings(data)
    return [each.what for each in found if each.at_start == "the broker refuses to start"]


def test_a_metadata_log_that_has_lost_its_beginning_is_refused(metadata: Path) -> None:
    directory = metadata / "__cluster_metadata-0"
    (directory / f"{0:020}.log").unlink()
    (metadata / "topic0-0").mkdir()
    [found] = refusals(metadata)
    assert "begins at offset 3, and no snapshot has the records before it" in found
    assert not any("no topic" in each.what for each in all_findings(metadata))
    with pytest.raises(CorruptJournalError):
        topics_at_start(metadata)
    sound = METADATA / "formatted" / directory.name / f"{0:020}-{0:010}.checkpoint"
    shutil.copy(sound, directory / f"{3:020}-{1:010}.checkpoint")
    assert refusals(metadata) == []
    assert topics_at_start(metadata) == 3


def test_a_metadata_log_with_a_damaged_first_snapshot_is_refused(metadata: Path) -> None:
    (metadata / "__cluster_metadata-0" / f"{0:020}-{0:010}.checkpoint").write_bytes(b"damaged")
    assert len(refusals(metadata)) == 1
    with pytest.raises(CorruptJournalError):
        topics_at_start(metadata)
