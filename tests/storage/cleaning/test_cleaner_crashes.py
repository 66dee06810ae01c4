"""A crash before every single change that a round of cleaning, a split or the recovery makes."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.cleaning.cleaner import Cleaner, SegmentOverflowError
from odradek.storage.cleaning.segment_swap import SegmentSwap, stage_cleaned
from odradek.storage.cleaning.task import CleanedSegment, CleaningTask, SegmentToClean
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader
from odradek.storage.segment_settings import SegmentSettings
from tests.support.crashing_files import CrashedError, CrashingFiles, QuickFiles
from tests.support.dirty_logs import BUFFER_BYTES, Writer, clean, compacted
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox, put, records_from

EVERY = by_length(10, 1)  # of the crashes that are followed by another
LATER_MS = NOW_MS + 10_000


def dirty_box(root: Path) -> LogBox:
    """A closed log of several segments, cleaned once already and dirty again."""
    box = LogBox(
        root,
        segment_bytes=1000,
        index_interval_bytes=200,
        segment_index_bytes=1024,
        delete_retention_ms=1000,
        file_delete_delay_ms=0,
    )
    log, writer = box.open(), Writer(3, keys=20)
    writer.write(log, 15)
    clean(log, NOW_MS)
    writer.write(log, 20)
    log.close(NOW_MS)
    for path in box.directory.glob("*.deleted"):
        path.unlink()
    box.config = compacted(box.config)
    return box


def copy_of(box: LogBox, root: Path, files: Files | None = None) -> LogBox:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(box.directory, root / box.directory.name)
    copy = LogBox(root, files=files)
    copy.config = box.config
    return copy


def records_of(box: LogBox) -> list[Record]:
    return list(LogReader(box.directory).records())


def crashes(run: Callable[[Files], None]) -> Iterator[int]:
    """Run it with a crash before its first change, its second, ...; ends when it survives."""
    for limit in range(10_000):
        files = CrashingFiles(limit)
        try:
            run(files)
        except CrashedError:
            yield limit
        else:
            return


@pytest.mark.slow
def test_after_a_crash_at_any_step_of_a_round_no_record_is_lost_and_the_next_round_cleans(
    scratch: Path,
) -> None:
    box = dirty_box(scratch / "dirty")
    before = records_of(box)
    cleaned = copy_of(box, scratch / "cleaned")
    log = cleaned.open()
    clean(log, LATER_MS)
    log.close(LATER_MS)
    after = records_of(cleaned)
    assert len(after) < len(before)
    crashed = scratch / "crashed"

    def run(files: Files) -> None:
        log = copy_of(box, crashed, files).open()
        clean(log, LATER_MS, files=files)

    steps = 0
    for step in crashes(run):
        steps += 1
        again = LogBox(crashed, files=QuickFiles())
        again.config = box.config
        log = again.open(clean=False)
        check_is_between(before, after, records_of(again), step)
        assert left_over(again) == [], step
        clean(log, LATER_MS, files=QuickFiles())
        log.close(LATER_MS)
        assert records_of(again) == after, step
    assert steps > 60, steps


def check_is_between(
    before: list[Record], after: list[Record], found: list[Record], step: object
) -> None:
    """Nothing is there that was not, nothing twice or out of order, and all that must stay."""
    offsets = [record.offset for record in found]
    assert offsets == sorted(set(offsets)), step
    originals = {record.offset: record for record in before}
    assert all(originals[record.offset] == record for record in found), step
    assert set(offsets) >= {record.offset for record in after}, step


def left_over(box: LogBox) -> list[str]:
    return [*box.names(".cleaned"), *box.names(".swap"), *box.names(".deleted")]


@pytest.mark.slow
def test_after_a_crash_of_a_split_and_another_one_of_its_recovery_the_log_is_the_same(
    scratch: Path,
) -> None:
    box = overflowing_box(scratch / "whole")
    before = records_of(box)
    first, second = scratch / "first", scratch / "second"

    def split(files: Files) -> None:
        copy_of(box, first, files).open(clean=False, recovery_point=FAR)

    def recover(files: Files) -> None:
        crashed = LogBox(first)
        crashed.config = box.config
        copy_of(crashed, second, files).open(clean=False, recovery_point=FAR)

    pairs = 0
    for step in crashes(split):
        if step % EVERY:
            continue
        for recovery_step in crashes(recover):
            pairs += 1
            again = LogBox(second, files=QuickFiles(), segment_index_bytes=240)
            again.open(clean=False, recovery_point=FAR).close(NOW_MS)
            assert records_of(again) == before, (step, recovery_step)
            assert [*again.names(".cleaned"), *again.names(".swap")] == [], (step, recovery_step)
            assert len(again.names(".log")) == 3, (step, recovery_step)
    assert pairs > 100, pairs


class Removals(QuickFiles):
    """Remembers what was removed, in its order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def remove(self, path: Path) -> None:
        self.names.append(path.name)
        super().remove(path)


def test_a_swap_that_is_undone_loses_its_mark_last(scratch: Path) -> None:
    files = Removals()
    box = LogBox(scratch, files=files)
    log = box.open()
    Writer(1).write(log, 5)
    log.close(NOW_MS)
    before = records_of(box)
    box.path(0, ".log.cleaned").write_bytes(b"a part that had not been renamed yet")
    box.path(3, ".log.swap").write_bytes(b"one that had")
    files.names.clear()
    box.open()
    # The other way round, a crash in between would leave what looks like a finished swap.
    assert files.names[:2] == [f"{3:020d}.log.swap", f"{0:020d}.log.cleaned"]
    assert records_of(box) == before


def test_after_a_crash_while_a_swap_of_two_segments_is_undone_no_record_is_there_twice(
    scratch: Path,
) -> None:
    box = LogBox(scratch / "whole")
    log = box.open()
    for number in range(4):
        put(log, b"%d" % number)
    log.close(NOW_MS)
    before = records_of(box)
    half = box.path(0, ".log").stat().st_size // 2
    halves = [CleanedSegment(0, half), CleanedSegment(2, half)]
    data = box.path(0, ".log").read_bytes()
    for number, each in enumerate(halves):
        part = data[number * half : (number + 1) * half]
        box.path(each.base_offset, ".log.cleaned").write_bytes(part)
    crashed = scratch / "crashed"

    def undo(files: Files) -> None:
        copy = copy_of(box, crashed, files)
        staged = stage_cleaned(Files(), copy.directory, copy.config, halves, NOW_MS)
        swap = SegmentSwap(files, staged.new)
        for segment in swap.new:
            segment.files = files
        swap.undo()

    steps = 0
    for step in crashes(undo):
        steps += 1
        again = LogBox(crashed, files=QuickFiles())
        again.open(clean=False, recovery_point=4)
        assert records_of(again) == before, step
    assert steps > 4


FAR = 1 << 33


def overflowing_box(root: Path) -> LogBox:
    """Two segments, of which the first needs to be two: only Kafka before 2.0 could make it."""
    box = LogBox(root, segment_index_bytes=240)
    box.directory.mkdir(parents=True)
    offsets = (0, 5, 1 << 31, (1 << 31) + 7)
    for base_offset, held in ((0, offsets), (FAR, (FAR,))):
        batches = [
            build_batch([Record(b"k%d" % offset, b"v", NOW_MS)], base_offset=offset)
            for offset in held
        ]
        box.path(base_offset, ".log").write_bytes(b"".join(batches))
    return box


def test_a_segment_whose_offsets_are_too_far_apart_is_split_at_start_and_read(
    scratch: Path,
) -> None:
    box = overflowing_box(scratch)
    before = records_of(box)
    log = box.open(clean=False)
    assert log.segments.base_offsets == [0, 1 << 31, FAR]
    assert records_of(box) == before
    assert records_from(log, 1 << 31)[:2] == before[2:4]


def test_the_cleaner_names_such_a_segment_and_splits_it(scratch: Path) -> None:
    box = overflowing_box(scratch)
    box.config = compacted(box.config)
    before = records_of(box)
    whole = CleaningTask(
        name="orders-0",
        directory=box.directory,
        segments=(SegmentToClean(0, box.path(0, ".log").stat().st_size),),
        settings=SegmentSettings(4096, 1 << 20),
        segment_bytes=1 << 30,
        delete_retention_ms=0,
        first_dirty_offset=0,
        first_uncleanable_offset=FAR,
        high_watermark=FAR,
        last_records=b"",
        aborted=(),
        now_ms=NOW_MS,
    )
    cleaner = Cleaner(Files(), dedupe_buffer_bytes=BUFFER_BYTES)
    with pytest.raises(SegmentOverflowError) as raised:
        cleaner.clean(whole, lambda group: None)
    assert raised.value.base_offset == 0
    assert left_over(box) == []
    group = cleaner.split(whole, 0)
    assert [each.base_offset for each in group.segments] == [0, 1 << 31]
    for kind in (".log", ".index", ".timeindex"):
        for each in group.segments:
            cleaned = box.path(each.base_offset, f"{kind}.cleaned")
            cleaned.rename(cleaned.with_suffix(""))
    assert records_of(box) == before
