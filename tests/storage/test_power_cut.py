"""A power cut before any disk operation: synced data is kept, and the directory opens."""

import random
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.protocol.primitives import random_uuid
from odradek.storage.deletions import remove_paths
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.retention import delete_old_segments
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, records_from, values_from
from tests.support.power_cut import PowerCutFiles, PowerGoneError
from tests.support.timer import Timer

TOPIC_ID = random_uuid()
BATCH_BYTES = len(batch_of(b"00", producer=(7, 0, 0)))
PRODUCER = 7
APPENDS = 9


class Life:
    """A broker's logs from start to stop, and the appends that it acknowledged."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.files = PowerCutFiles(root)
        self.config = BrokerConfig.from_texts(
            {"log.dirs": str(root / "data"), "log.segment.delete.delay.ms": "0"}
        )
        self.topic_config = TopicConfig(
            internal_segment_bytes=2 * BATCH_BYTES + 20,
            index_interval_bytes=0,
            segment_index_bytes=120,
            retention_bytes=5 * BATCH_BYTES,
            file_delete_delay_ms=0,
        )
        self.acknowledged: list[bytes] = []

    def start(self) -> LogManager:
        manager = LogManager.open(
            self.config, files=self.files, timer_ms=Timer(), report=lambda line: None
        )
        manager.load_logs(lambda _: self.topic_config, now_ms=NOW_MS)
        return manager

    def log(self, manager: LogManager) -> PartitionLog:
        config = self.topic_config
        return manager.create("orders", 0, TOPIC_ID, config, now_ms=NOW_MS, is_new=False)

    def live(self) -> None:
        """Appends with flush.messages=1, rolls, checkpoints, retention, and a clean stop."""
        manager = self.start()
        log = self.log(manager)
        for number in range(APPENDS):
            value = b"%02d" % number
            log.append(batch_of(value, producer=(PRODUCER, 0, number)), now_ms=NOW_MS)
            log.flush(NOW_MS)
            self.acknowledged.append(value)
            if number == 3:
                manager.write_recovery_points()
            if number == 4:
                log.become_leader(3)
        delete_old_segments(log, NOW_MS)
        remove_paths(self.files, manager.deletions.take_due())
        manager.write_log_starts()
        manager.close(now_ms=NOW_MS)

    def check(self, *, may_lack: int) -> None:
        """Check that acknowledged records are there, unless retention deleted them; append more."""
        manager = self.start()
        log = self.log(manager)
        records = records_from(log)
        values = [record.value for record in records]
        first = records[0].offset if records else 0
        assert first <= may_lack
        assert values[: len(self.acknowledged) - first] == self.acknowledged[first:]
        if self.acknowledged:
            number = len(self.acknowledged) - 1
            again = batch_of(self.acknowledged[-1], producer=(PRODUCER, 0, number))
            assert log.append(again, now_ms=NOW_MS).is_duplicate
        if len(values) + first >= 7:
            assert log.end_offset_for_epoch(0) == (0, 5)
        assert put(log, b"more") == first + len(values)
        manager.close(now_ms=NOW_MS)


def cut_points(root: Path) -> int:
    life = Life(root)
    life.live()
    return life.files.operations


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, *range(by_length(2, 20))])
def test_what_was_acknowledged_survives_a_power_cut_anywhere(
    scratch: Path, seed: int | None
) -> None:
    for at in range(cut_points(scratch / "count") + 1):
        life = Life(scratch / f"{at}")
        life.files.cut_at = at
        with suppress(PowerGoneError):
            life.live()
        life.files.cut_at = None
        life.files.power_cut(None if seed is None else random.Random(seed * 10_000 + at))
        taken = APPENDS if len(life.acknowledged) == APPENDS else 0
        life.check(may_lack=taken)


def test_the_mark_of_a_clean_stop_does_not_come_back(scratch: Path) -> None:
    """Else logs with a torn end would be used as they are."""
    life = Life(scratch / "life")
    life.live()
    mark = scratch / "life" / "data" / ".kafka_cleanshutdown"
    assert mark.exists()
    life.start()
    life.files.power_cut()
    assert not mark.exists()


def test_a_length_that_a_roll_has_cut_is_synced_with_the_next_flush(scratch: Path) -> None:
    """Even where all records were synced before: the file is as long as it was preallocated."""
    files = PowerCutFiles(scratch)
    box = LogBox(scratch, files=files, segment_bytes=1000, preallocate=True)
    log = box.open()
    put(log, b"0")
    log.flush(NOW_MS)
    log.roll(NOW_MS)
    log.close(NOW_MS)
    files.power_cut()
    log = box.open(clean=True)
    put(log, b"1")
    assert values_from(log) == [b"0", b"1"]


def test_segments_that_recovery_has_dropped_do_not_come_back(scratch: Path) -> None:
    files = PowerCutFiles(scratch)
    box = LogBox(scratch, files=files, segment_bytes=2 * len(batch_of(b"0")) + 10)
    log = box.open()
    for number in range(4):
        put(log, b"%d" % number)
    log.flush(NOW_MS)
    damaged = box.path(0, ".log")
    file = files.open(damaged)
    files.pwrite(file, b"\xff", len(batch_of(b"0")) + 30)
    files.fsync(file)
    log = box.open(clean=False, recovery_point=1)
    assert values_from(log) == [b"0"]
    put(log, b"new 1")
    log.flush(NOW_MS)
    files.power_cut()
    assert values_from(box.open(clean=False, recovery_point=1)) == [b"0", b"new 1"]


def test_truncated_segments_do_not_come_back_after_synced_records(scratch: Path) -> None:
    files = PowerCutFiles(scratch)
    box = LogBox(scratch, files=files, segment_bytes=2 * len(batch_of(b"0")) + 10)
    log = box.open()
    for number in range(4):
        put(log, b"%d" % number)
    log.flush(NOW_MS)
    log.truncate_to(1, NOW_MS)
    put(log, b"new 1")
    log.flush(NOW_MS)
    files.power_cut()
    assert values_from(box.open(clean=False)) == [b"0", b"new 1"]


@pytest.mark.slow
def test_deleted_records_that_were_never_synced_do_not_take_others_with_them(
    scratch: Path,
) -> None:
    """They lie in front of what was synced, and recovery may read them."""
    size = len(batch_of(b"0"))
    for seed in range(20):
        root = scratch / str(seed)
        root.mkdir()
        files = PowerCutFiles(root)
        box = LogBox(root, files=files, segment_bytes=2 * size + 10)
        log = box.open()
        for number in range(3):
            put(log, b"%d" % number)
        log.increment_log_start_offset(2)
        log.flush(NOW_MS)
        files.power_cut(random.Random(seed))
        log = box.open(clean=False, log_start_offset=2)
        assert values_from(log) == [b"2"]
