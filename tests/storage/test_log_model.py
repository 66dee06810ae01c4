"""A log against a list: whatever is done to it, and however it ends, it holds what it must."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.protocol.record import Record
from odradek.storage.files import Files, OpenFile
from odradek.storage.retention import delete_old_segments
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox, batch_of, records_from

EXAMPLES, STEPS = by_length(60, 2000), by_length(30, 60)


class UnsyncedFiles(Files):
    """Syncing changes nothing that a killed process could see."""

    def fsync(self, file: OpenFile) -> None:
        pass

    def fsync_directory(self, path: Path) -> None:
        pass


class LogMachine(RuleBasedStateMachine):
    """The model: the records by offset, the log start, and how the producer stands."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.records: list[Record] = []
        self.start = self.end = self.checkpoint = self.sequence = 0
        self.boundaries = [0]  # offsets at which a batch begins, and the end
        self.producer_id = 77
        self.last_batch = b""

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize(
        segment_bytes=st.integers(200, 3000),
        interval=st.sampled_from([0, 100, 500]),
        index_bytes=st.sampled_from([36, 120, 10_000]),
        preallocate=st.booleans(),
    )
    def make(self, segment_bytes: int, interval: int, index_bytes: int, preallocate: bool) -> None:
        self.box = LogBox(
            self.root,
            files=UnsyncedFiles(),
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            retention_bytes=4000,
            preallocate=preallocate,
        )
        self.log = self.box.open()

    @rule(
        values=st.lists(st.binary(max_size=60), min_size=1, max_size=4),
        ages=st.lists(st.integers(-1000, 3000), min_size=4, max_size=4),
        idempotent=st.booleans(),
    )
    def append(self, values: list[bytes], ages: list[int], idempotent: bool) -> None:
        stamps = [NOW_MS - age for age, _ in zip(ages, values, strict=False)]
        producer = (self.producer_id, 0, self.sequence) if idempotent else (-1, -1, -1)
        batch = batch_of(*values, timestamps=stamps, producer=producer)
        if len(batch) > self.box.config.segment_size_bytes:
            return
        result = self.log.append(batch, now_ms=NOW_MS)
        assert (result.base_offset, result.is_duplicate) == (self.end, False)
        for value, stamp in zip(values, stamps, strict=True):
            self.records.append(Record(b"k", value, stamp, offset=self.end))
            self.end += 1
        self.boundaries.append(self.end)
        if idempotent:
            self.sequence += len(values)
            self.last_batch, self.last_base = batch, result.base_offset

    # A producer whose records are all deleted may be forgotten by a restart, as in Kafka.
    @precondition(lambda self: self.last_batch and self.last_base >= self.start)
    @rule()
    def retry(self) -> None:
        result = self.log.append(self.last_batch, now_ms=NOW_MS)
        assert result.is_duplicate
        assert result.base_offset == self.last_base

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush(NOW_MS)
        assert self.log.recovery_point == self.end

    @rule()
    def write_checkpoint(self) -> None:
        self.checkpoint = self.log.recovery_point

    @rule()
    def close_and_open(self) -> None:
        self.log.close(NOW_MS)
        self.log = self.box.open(
            clean=True, recovery_point=self.checkpoint, log_start_offset=self.start
        )
        assert self.log.recovery_point == self.end

    @rule(torn=st.binary(max_size=100), whole=st.booleans())
    def kill_and_open(self, torn: bytes, whole: bool) -> None:
        """`whole`: a batch header that announces more than there is."""
        self.box.tear(batch_of(b"never acknowledged" * 9)[: len(torn)] if whole else torn)
        self.log = self.box.open(
            clean=False, recovery_point=self.checkpoint, log_start_offset=self.start
        )

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.increment_log_start_offset(self.start)

    @rule()
    def retention(self) -> None:
        delete_old_segments(self.log, NOW_MS)
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset
        keep = self.box.config.retention_bytes
        assert self.log.size_bytes - self.log.segments[0].size_bytes < keep

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        first = self.log.segments[0].base_offset
        cuts = [each for each in self.boundaries if max(self.start, first) <= each < self.end]
        if not cuts:
            return
        self.end = data.draw(st.sampled_from(cuts))
        self.log.truncate_to(self.end, NOW_MS)
        self.records = [record for record in self.records if record.offset < self.end]
        self.boundaries = [each for each in self.boundaries if each <= self.end]
        self.checkpoint = min(self.checkpoint, self.end)
        # The old producer would have to go on from what is left of it; here a new one begins.
        self.producer_id += 1
        self.last_batch, self.sequence = b"", 0

    def kept(self) -> list[Record]:
        return [record for record in self.records if record.offset >= self.start]

    @invariant()
    def every_record_can_be_read(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.high_watermark == self.log.last_stable_offset == self.end
        assert records_from(self.log) == self.kept()

    @rule(max_bytes=st.integers(0, 700), data=st.data())
    def read_in_small_pieces(self, max_bytes: int, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        wanted = [record for record in self.kept() if record.offset >= offset]
        assert records_from(self.log, offset, max_bytes) == wanted
        piece = self.log.read(offset, max_bytes, at_least_one_batch=False)
        assert piece.size_bytes <= max_bytes

    @rule(age=st.integers(-1100, 3100))
    def look_up_a_timestamp(self, age: int) -> None:
        found = self.log.offset_for_timestamp(NOW_MS - age)
        wanted = next((r for r in self.kept() if r.timestamp_ms >= NOW_MS - age), None)
        assert (found and found.offset) == (wanted and wanted.offset)

    @rule()
    def look_up_the_newest(self) -> None:
        found = self.log.offset_of_max_timestamp()
        first = self.log.segments[0].base_offset
        stored = [record for record in self.records if record.offset >= first]
        wanted = max(stored, key=lambda record: record.timestamp_ms, default=None)
        assert (found and found.timestamp_ms) == (wanted and wanted.timestamp_ms)


LogMachine.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None
)
TestLogAgainstAList = LogMachine.TestCase
