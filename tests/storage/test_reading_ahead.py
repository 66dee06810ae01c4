"""Lookups over many segments whose files are closed, and not in memory."""

from collections.abc import Callable

import pytest

from odradek.storage.cleaning.plan import assess
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.retention import find_old_segments
from tests.storage.test_time_search import attempts
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

SEGMENTS = 60
SETTINGS = {
    "segment_bytes": len(batch_of(b"v")),
    "retention_ms": 1000,
    "min_compaction_lag_ms": 1000,
    "max_compaction_lag_ms": 1000,
    "segment_index_bytes": 120,
}

LOOKUPS: dict[str, Callable[[PartitionLog], object]] = {
    "offset for a timestamp": lambda log: log.offset_for_timestamp(NOW_MS + SEGMENTS - 1),
    "newest record": lambda log: log.offset_of_max_timestamp(),
    "offsets by file time": lambda log: log.offsets_written_before(-1, NOW_MS),
    "retention": lambda log: find_old_segments(log, NOW_MS + 100_000),
    "cleaning": lambda log: assess(log, 0, NOW_MS + 100_000),
    "aborted transactions": lambda log: (
        log.read_committed(0, 1000, at_least_one_batch=True).aborted
    ),
}


class ColdFiles(Files):
    """Nothing is in memory until another thread has read it."""

    def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
        return None


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> LogBox:
    """A log with a batch in each segment."""
    box = LogBox(tmp_path_factory.mktemp("cold"), files=ColdFiles(), **SETTINGS)
    log = box.open()
    for number in range(SEGMENTS):
        put(log, b"v", timestamps=[NOW_MS + number])
    log.close(NOW_MS)
    return box


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_takes_few_attempts_and_descriptors(box: LogBox, name: str) -> None:
    look_up, log = LOOKUPS[name], box.open()
    before = box.files.open_descriptors()
    made = attempts(log)
    found = made.look_up(lambda: look_up(log))
    assert made.count < SEGMENTS
    assert box.files.open_descriptors() - before <= 3 + SEGMENTS * (name == "cleaning")
    assert found == look_up(box.open())


def test_few_segments_are_read_in_vain(box: LogBox) -> None:
    log = box.open()
    made = attempts(log)
    made.look_up(lambda: log.offset_for_timestamp(NOW_MS + 9))
    assert log.segments[9]._newest is not None
    assert all(segment._newest is None for segment in list(log.segments)[20:])
