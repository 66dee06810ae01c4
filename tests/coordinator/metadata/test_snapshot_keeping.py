"""When snapshots of the metadata log are written, how they get onto the disk, and when they go."""

import errno
import os
from pathlib import Path

import pytest

from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.kraft_log import KraftLog, open_kraft_log
from odradek.coordinator.metadata.metadata_format import metadata_log_directory
from odradek.coordinator.metadata.metadata_image import MetadataImage
from odradek.coordinator.metadata.metadata_snapshot import (
    read_snapshot,
    snapshot_pieces,
)
from odradek.coordinator.metadata.quorum import voter_records
from odradek.coordinator.metadata.snapshot_batches import control_records
from odradek.coordinator.metadata.snapshot_keeping import SnapshotKeeper, SnapshotRules
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.record_codec import CorruptJournalError, MetadataRecordCodec
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.deletions import Deletions
from odradek.storage.filenames import MetadataSnapshotName, metadata_snapshot_file
from odradek.storage.metadata_snapshots import snapshots_in
from tests.support.metadata_logs import FILES, ME, controller_of, formatted, metadata_log
from tests.support.partition_logs import UnsyncedFiles
from tests.support.timer import Timer

CODEC = MetadataRecordCodec.of_cluster()
NO_LIMITS = SnapshotRules(
    max_new_bytes=1 << 60, max_interval_ms=0, retention_bytes=-1, retention_ms=-1
)
# Every topic creation rolls a segment.
TINY_SEGMENTS = TopicConfig(internal_segment_bytes=400, retention_ms=-1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return formatted(tmp_path)


def opened(data: Path, *, files: UnsyncedFiles = FILES) -> KraftLog:
    log = metadata_log(data, files=files, config=TINY_SEGMENTS)
    return open_kraft_log(log, files, "cluster", ME, now_ms=1_000)


def create(kraft: KraftLog, *names: str, now_ms: int = 0) -> None:
    for name in names:
        controller_of(kraft).create_topics([NewTopic(name=name)], now_ms)


def keeper(
    kraft: KraftLog,
    rules: SnapshotRules = NO_LIMITS,
    *,
    files: UnsyncedFiles = FILES,
    deletions: Deletions | None = None,
) -> SnapshotKeeper:
    deletions = Deletions(Timer()) if deletions is None else deletions  # an empty one is false
    return SnapshotKeeper(kraft.journal.log, files, deletions, rules, now_ms=0)


def write(kraft: KraftLog, kept: SnapshotKeeper, now_ms: int = 0) -> MetadataSnapshotName:
    log = kraft.journal.log
    image = MetadataImage.of(kraft.metadata, log.log_end_offset)
    name = MetadataSnapshotName(image.end_offset, kraft.leader_epoch)
    kept.note_started(image.end_offset, now_ms)
    pieces = snapshot_pieces(
        voter_records(kraft.quorum),
        image.records(),
        CODEC,
        last_contained_ms=image.last_contained_ms,
        now_ms=now_ms,
        epoch=name.epoch,
    )
    kept.store(name, pieces)
    return name


def snapshot_path(data: Path, name: MetadataSnapshotName) -> Path:
    return metadata_log_directory(data) / metadata_snapshot_file(*name)


# -- when one is due


def test_a_snapshot_is_due_when_enough_bytes_were_logged_and_not_again_before_more_were(
    data: Path,
) -> None:
    kraft = opened(data)
    size = kraft.journal.log.size_bytes
    kept = keeper(kraft, SnapshotRules(max_new_bytes=size + 200, max_interval_ms=0))
    assert kept.due_reason(0) is None
    create(kraft, "a")
    assert kept.due_reason(0) is None
    create(kraft, "b")
    assert "bytes were logged" in (kept.due_reason(0) or "")
    write(kraft, kept)
    assert kept.due_reason(0) is None
    names = [f"c{number}" for number in range(100)]
    for name in names:
        create(kraft, name)
        if kept.due_reason(0):
            break
    logged = size + 200
    assert 2 <= names.index(name) <= logged // 100
    # A new life counts on from the same snapshot.
    again = opened(data)
    assert keeper(again, SnapshotRules(max_new_bytes=logged, max_interval_ms=0)).due_reason(0)


def test_a_snapshot_is_due_after_a_while_if_anything_is_new(data: Path) -> None:
    kraft = opened(data)
    kept = keeper(kraft, SnapshotRules(max_interval_ms=3_600_000))
    assert kept.due_reason(3_599_999) is None
    assert "60 minutes" in (kept.due_reason(3_600_000) or "")
    write(kraft, kept, now_ms=3_600_000)
    assert kept.due_reason(1 << 60) is None
    create(kraft, "a")
    assert kept.due_reason(7_199_999) is None
    assert kept.due_reason(7_200_000)


def test_an_interval_of_zero_is_never(data: Path) -> None:
    assert keeper(opened(data), NO_LIMITS).due_reason(1 << 60) is None


# -- on the disk


def test_a_restart_begins_with_the_newest_snapshot_and_goes_on_with_the_log(data: Path) -> None:
    kraft = opened(data)
    create(kraft, "a", "b")
    name = write(kraft, keeper(kraft))
    create(kraft, "c")
    path = snapshot_path(data, name)
    assert path.stat().st_mode & 0o777 == 0o444
    # What the snapshot tells is no longer looked for in the log.
    for segment in sorted(path.parent.glob("*.log"))[1:2]:
        assert int(segment.stem) < name.end_offset
    again = opened(data)
    assert list(again.metadata.topics) == ["a", "b", "c"]
    assert again.metadata.topics == kraft.metadata.topics
    assert again.metadata.features.in_log == kraft.metadata.features.in_log
    assert again.quorum == kraft.quorum
    assert [kind for kind, _ in controls(path)] == [
        ControlRecordType.SNAPSHOT_HEADER,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
        ControlRecordType.SNAPSHOT_FOOTER,
    ]


def controls(path: Path) -> list[tuple[ControlRecordType | None, object]]:
    return list(control_records(read_snapshot(FILES, path)))


class FailingFiles(UnsyncedFiles):
    """Fails at one named step."""

    def __init__(self, step: str) -> None:
        self.step = step

    def _step(self, name: str, path: Path) -> None:
        if name == self.step and ".checkpoint" in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def write(self, path: Path, data: bytes, *, sync: bool = True) -> None:  # type: ignore[override] # bytes is all we write here
        super().write(path, data[:100] if self.step == "write" else data, sync=sync)
        self._step("write", path)

    def make_read_only(self, path: Path) -> None:
        self._step("make_read_only", path)
        super().make_read_only(path)

    def rename(self, source: Path, target: Path) -> None:
        self._step("rename", source)
        super().rename(source, target)


@pytest.mark.parametrize("step", ["write", "make_read_only", "rename"])
def test_a_snapshot_that_could_not_be_written_leaves_nothing_behind(data: Path, step: str) -> None:
    kraft = opened(data)
    files = FailingFiles(step)
    before = sorted(path.name for path in metadata_log_directory(data).iterdir())
    with pytest.raises(OSError, match="No space"):
        write(kraft, keeper(kraft, files=files))
    assert sorted(path.name for path in metadata_log_directory(data).iterdir()) == before


def test_what_a_crash_left_half_written_or_half_deleted_is_removed_at_the_next_start(
    data: Path,
) -> None:
    opened(data)
    directory = metadata_log_directory(data)
    leftovers = [
        f"{9:020d}-{1:010d}.checkpoint.part",
        f"{9:020d}-{1:010d}-1234567.checkpoint.part",  # Kafka puts a number of its own in
        f"{3:020d}-{1:010d}.checkpoint.deleted",
    ]
    for leftover in leftovers:
        (directory / leftover).write_bytes(b"half")
    opened(data)
    assert not any((directory / leftover).exists() for leftover in leftovers)


def test_of_a_damaged_snapshot_the_one_before_and_the_log_tell_the_same(data: Path) -> None:
    kraft = opened(data)
    kept = keeper(kraft)
    create(kraft, "a")
    write(kraft, kept)
    create(kraft, "b")
    torn = snapshot_path(data, write(kraft, kept))
    torn.chmod(0o644)
    torn.write_bytes(torn.read_bytes()[:-1])
    create(kraft, "c")
    again = opened(data)
    assert list(again.metadata.topics) == ["a", "b", "c"]
    assert not torn.exists()
    assert torn.with_name(torn.name + ".damaged").exists()  # Kafka would stop at it


def test_a_damaged_snapshot_is_named_where_the_log_no_longer_has_what_it_told(data: Path) -> None:
    kraft = opened(data)
    kept = keeper(kraft, SnapshotRules(retention_bytes=0, retention_ms=-1))
    create(kraft, "a", "b", "c")
    only = snapshot_path(data, write(kraft, kept))
    assert kept.clean(0) == 1
    only.chmod(0o644)
    only.write_bytes(only.read_bytes()[:-1])
    with pytest.raises(CorruptJournalError, match=only.name):
        opened(data)


def test_a_log_whose_beginning_and_snapshot_are_gone_is_refused(data: Path) -> None:
    kraft = opened(data)
    kept = keeper(kraft, SnapshotRules(retention_bytes=0, retention_ms=-1))
    create(kraft, "a", "b", "c")
    only = snapshot_path(data, write(kraft, kept))
    kept.clean(0)
    only.unlink()
    with pytest.raises(CorruptJournalError, match="no snapshot has the records before it"):
        opened(data)


# -- cleaning


def test_over_the_size_the_old_snapshots_go_and_the_log_before_the_newest(data: Path) -> None:
    kraft = opened(data)
    log, timer = kraft.journal.log, Timer()
    deletions = Deletions(timer)
    kept = keeper(kraft, SnapshotRules(retention_bytes=1, retention_ms=-1), deletions=deletions)
    assert kept.clean(0) == 0  # a single snapshot always stays
    create(kraft, "a", "b")
    write(kraft, kept)
    create(kraft, "c", "d")
    newest = write(kraft, kept)
    create(kraft, "e")
    assert kept.clean(5) == 2
    assert snapshots_in(FILES, log.directory) == [newest]
    assert log.log_start_offset == newest.end_offset
    assert 0 < log.segments[0].base_offset <= newest.end_offset
    assert log.segments.floor_index(newest.end_offset) == 0  # none before it is left
    timer.ms = 59_999
    assert deletions.take_due() == []
    timer.ms = 60_000
    due = deletions.take_due()
    assert sorted(path.name for path in due) == [
        f"{0:020d}-{0:010d}.checkpoint.deleted",
        f"{newest.end_offset - 4:020d}-{1:010d}.checkpoint.deleted",
    ]
    again = opened(data)
    assert list(again.metadata.topics) == ["a", "b", "c", "d", "e"]
    assert again.leader_epoch == 2
    assert again.quorum == kraft.quorum


def test_over_the_age_a_snapshot_goes_by_the_time_of_what_it_tells(data: Path) -> None:
    kraft = opened(data)
    kept = keeper(kraft, SnapshotRules(retention_bytes=-1, retention_ms=1_000))
    create(kraft, "a", now_ms=10_000)
    first = write(kraft, kept, now_ms=20_000)  # when it was written does not count
    create(kraft, "b", now_ms=30_000)
    second = write(kraft, kept, now_ms=40_000)
    assert kept.clean(1_500) == 0  # that of the formatting tells of 500 ms
    assert kept.clean(1_501) == 1
    assert kept.clean(11_000) == 0
    assert kept.clean(11_001) == 1
    assert kept.clean(1 << 50) == 0
    assert snapshots_in(FILES, kraft.journal.log.directory) == [second]
    assert first < second


def test_without_limits_all_snapshots_stay(data: Path) -> None:
    kraft = opened(data)
    kept = keeper(kraft, NO_LIMITS)
    create(kraft, "a")
    write(kraft, kept)
    assert kept.clean(1 << 60) == 0
    assert len(snapshots_in(FILES, kraft.journal.log.directory)) == 2
