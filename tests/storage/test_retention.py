"""Segments are deleted by log start, size and age: whole ones, the oldest first."""

import os
from pathlib import Path
from typing import Any

import pytest

from odradek.storage import filenames, producer_state, segment
from odradek.storage.deletions import remove_paths
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.retention import delete_old_segments
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, values_from
from tests.support.open_files import open_files

SIZE = len(batch_of(b"v"))
DAY_MS = 86_400_000


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def two_per_segment(box: LogBox, ages_days: list[int]) -> PartitionLog:
    log = box.open()
    for age in ages_days:
        put(log, b"v", timestamps=[NOW_MS - age * DAY_MS])
    return log


def test_the_default_keeps_seven_days(tmp_path: Path) -> None:
    log = two_per_segment(LogBox(tmp_path, segment_bytes=2 * SIZE), [12, 9, 8, 7, 6, 0])
    assert delete_old_segments(log, NOW_MS) == 1
    assert (log.log_start_offset, bases(log)) == (2, [2, 4])
    assert delete_old_segments(log, NOW_MS + 1) == 1  # seven days and 1 ms
    assert bases(log) == [4]


def test_the_active_segment_goes_by_age_and_a_new_one_begins(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    log = two_per_segment(box, [20, 9, 8])
    assert delete_old_segments(log, NOW_MS) == 2
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (3, 3, [3])
    assert delete_old_segments(log, NOW_MS) == 0
    put(log, b"new")
    assert values_from(log) == [b"new"]
    log.close(NOW_MS)
    assert values_from(box.open(log_start_offset=3)) == [b"new"]


def test_a_young_segment_keeps_the_older_ones_after_it(tmp_path: Path) -> None:
    log = two_per_segment(LogBox(tmp_path, segment_bytes=2 * SIZE), [1, 1, 20, 20, 20])
    assert delete_old_segments(log, NOW_MS) == 0


def test_records_without_timestamps_count_by_the_file(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    log = box.open()
    for _ in range(3):
        put(log, b"v", timestamps=[-1])
    old_s = (NOW_MS - 8 * DAY_MS) // 1000
    os.utime(box.path(0, ".log"), (old_s, old_s))
    assert delete_old_segments(log, NOW_MS) == 1
    assert bases(log) == [2]


def test_a_damaged_segment_without_timestamps_counts_by_the_file(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    log = box.open()
    for _ in range(3):
        put(log, b"v", timestamps=[-1])
    log.close(NOW_MS)
    data = bytearray(box.path(0, ".log").read_bytes())
    data[SIZE + 8] ^= 0x80  # the length of the second batch
    box.path(0, ".log").write_bytes(data)
    old_s = (NOW_MS - 8 * DAY_MS) // 1000
    os.utime(box.path(0, ".log"), (old_s, old_s))
    log = box.open()
    assert delete_old_segments(log, NOW_MS) == 1
    assert bases(log) == [2]


def test_retention_bytes_keeps_at_least_that_much(tmp_path: Path) -> None:
    settings = {"segment_bytes": 2 * SIZE, "retention_ms": -1}
    for keep, left in [
        (7 * SIZE, [0, 2, 4, 6]),
        (5 * SIZE, [2, 4, 6]),
        (0, [6]),
        (-1, [0, 2, 4, 6]),
    ]:
        box = LogBox(tmp_path / str(keep), retention_bytes=keep, **settings)
        log = two_per_segment(box, [0] * 7)
        delete_old_segments(log, NOW_MS)
        assert bases(log) == (left if keep else [7]), keep


def test_segments_before_the_log_start_go_whatever_the_policy(tmp_path: Path) -> None:
    settings = {"segment_bytes": 2 * SIZE, "cleanup_policy": ("compact",)}
    log = two_per_segment(LogBox(tmp_path, **settings), [20] * 6)
    log.increment_log_start_offset(5)
    assert delete_old_segments(log, NOW_MS) == 2
    assert (log.log_start_offset, bases(log)) == (5, [4])
    assert values_from(log) == [b"v"]


def test_deleted_files_are_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE, file_delete_delay_ms=1000)
    log = two_per_segment(box, [20, 20, 20, 20, 0])
    delete_old_segments(log, NOW_MS)
    assert box.names(".log") == ["00000000000000000004.log"]
    assert [name for name in box.names(".deleted") if ".log" in name or "snap" in name] == [
        "00000000000000000000.log.deleted",
        "00000000000000000002.log.deleted",
        "00000000000000000002.snapshot.deleted",
    ]
    box.timer.ms = 999
    assert box.deletions.take_due() == []
    box.timer.ms = 1000
    remove_paths(Files(), box.deletions.take_due())
    assert box.names(".deleted") == []


def test_the_thread_of_the_log_makes_no_path_of_each_removed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To make five paths for each of a thousand segments would hold all clients up."""
    box = LogBox(tmp_path, segment_bytes=2 * SIZE, file_delete_delay_ms=0)
    log = two_per_segment(box, [20, 20, 20, 20, 0])
    in_run = False

    def segment_file(*args: Any) -> str:
        assert in_run
        return filenames.segment_file(*args)

    for module in (segment, producer_state):
        monkeypatch.setattr(module, "segment_file", segment_file)
    removal = log.begin_removal(2, NOW_MS)
    in_run = True
    removal.run()
    in_run = False
    removal.finish()
    assert {path.name for path in box.deletions.take_due()} >= set(box.names(".deleted"))
    assert len(box.names(".deleted")) == 7


def test_a_removed_file_gives_its_space_back(tmp_path: Path) -> None:
    """An open descriptor would keep it until the next removal."""
    box = LogBox(tmp_path, segment_bytes=2 * SIZE, file_delete_delay_ms=0)
    log = two_per_segment(box, [20, 20, 9, 9, 0])
    assert len(values_from(log)) == 5  # which opens the files
    assert delete_old_segments(log, NOW_MS) == 2
    removed = box.deletions.take_due()
    assert remove_paths(Files(), removed) == {}
    assert not any(path.exists() for path in removed)
    assert [name for name in open_files(tmp_path) if "(deleted)" in name] == []
