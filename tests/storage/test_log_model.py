"""Compares a log with a list of batches, after random operations, crashes and disk errors."""

import errno
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, read_records
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.storage.retention import delete_old_segments
from tests.support.dirty_logs import end_transaction
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox, batch_of, read_slice, split
from tests.support.power_cut import PowerCutFiles

EXAMPLES, STEPS = by_length(20, 600), by_length(30, 60)
MEMORY = Path("/dev/shm")  # mkdtemp makes a name of its own in it
PRODUCERS = (77, 78, 79)
VALUES = st.lists(st.binary(max_size=60), min_size=1, max_size=4)
AGES = st.lists(st.integers(-1000, 3000), min_size=4, max_size=4)
OPERATION = st.integers(0, 12)


class Entry(NamedTuple):
    """A batch that was appended; `producer` is -1 without one."""

    base_offset: int
    records: tuple[Record, ...]
    batch: bytes
    epoch: int
    producer: int = -1
    sequence: int = -1
    is_transactional: bool = False
    is_abort: bool | None = None  # None: no marker

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)


class Disk(PowerCutFiles):
    """Loses unsynced data at a power cut; fails when a rule asks for it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.left: int | None = None  # operations until one fails
        self.lasting = False

    def _operation(self) -> None:
        super()._operation()
        if self.left is not None:
            self.left -= 1
            if self.left == -1 or (self.left < -1 and self.lasting):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class LogMachine(RuleBasedStateMachine):
    """The model: the appended batches, the log start, and the synced offset."""

    def __init__(self) -> None:
        super().__init__()
        parent = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.root = Path(tempfile.mkdtemp(dir=parent))
        self.history: list[Entry] = []
        self.start = self.end = self.checkpoint = self.synced = self.epoch = 0
        self.cut_unsynced = False  # a truncation that a power cut would undo
        self.has_holes = False  # a power cut left a later segment, and took an earlier batch
        self.ids = list(PRODUCERS)  # which producer id each of the three has now

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize(
        segment_bytes=st.integers(300, 3000),
        interval=st.sampled_from([0, 100, 500]),
        index_bytes=st.sampled_from([36, 120, 600]),
        preallocate=st.booleans(),
    )
    def make(self, segment_bytes: int, interval: int, index_bytes: int, preallocate: bool) -> None:
        self.disk = Disk(self.root)
        self.box = LogBox(
            self.root,
            files=self.disk,
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            retention_bytes=4000,
            preallocate=preallocate,
        )
        self.open(clean=True)

    # --- what the model knows

    @property
    def records(self) -> list[Record]:
        return [record for entry in self.history for record in entry.records]

    def kept(self) -> list[Record]:
        return [record for record in self.records if record.offset >= self.start]

    def batches_of(self, producer: int) -> list[Entry]:
        """Of its data, in order."""
        return [e for e in self.history if e.producer == producer and e.is_abort is None]

    def next_sequence(self, producer: int) -> int:
        batches = self.batches_of(producer)
        return batches[-1].sequence + len(batches[-1].records) if batches else 0

    def open_since(self, producer: int) -> int | None:
        """Where its open transaction began."""
        first: int | None = None
        for entry in self.history:
            if entry.producer == producer and entry.is_abort is not None:
                first = None
            elif entry.producer == producer and entry.is_transactional and first is None:
                first = entry.base_offset
        return first

    def aborted(self) -> set[tuple[int, int, int]]:
        """Producer, first offset and marker of every transaction that was aborted."""
        began: dict[int, int] = {}
        found = set()
        for entry in self.history:
            if entry.is_abort is not None:
                first = began.pop(entry.producer, None)
                if entry.is_abort and first is not None:
                    found.add((entry.producer, first, entry.base_offset))
            elif entry.is_transactional:
                began.setdefault(entry.producer, entry.base_offset)
        return found

    def open(self, *, clean: bool) -> None:
        """Open the log as the broker does: with a new leader epoch after an unclean stop."""
        self.log = self.box.open(
            clean=clean, recovery_point=self.checkpoint, log_start_offset=self.start
        )
        self.epoch += not clean
        self.log.become_leader(self.epoch)
        self.let_new_producers_begin()

    def let_new_producers_begin(self) -> None:
        """A producer whose records are deleted may be forgotten at the next load, as in Kafka."""
        for number, producer in enumerate(self.ids):
            first, batches = self.open_since(producer), self.batches_of(producer)
            last = batches[-1].base_offset if batches else self.start
            if min(last, last if first is None else first) < self.start:
                self.ids[number] += 100

    def forget_from(self, offset: int) -> None:
        """Remove the batches of the model from that offset on."""
        self.end = offset
        self.history = [entry for entry in self.history if entry.next_offset <= offset]
        self.checkpoint = min(self.checkpoint, offset)
        self.synced = min(self.synced, offset)

    # --- appends

    def entry(
        self, values: list[bytes], ages: list[int], producer: int, codec: CompressionType
    ) -> Entry:
        stamps = [NOW_MS - age for age, _ in zip(ages, values, strict=False)]
        open_since = None if producer < 0 else self.open_since(producer)
        sequence = -1 if producer < 0 else self.next_sequence(producer)
        identity = (producer, 0 if producer >= 0 else -1, sequence)
        is_transactional = open_since is not None or (producer >= 0 and len(values) > 2)
        batch = batch_of(
            *values,
            timestamps=stamps,
            producer=identity,
            compression=codec,
            is_transactional=is_transactional,
        )
        records = tuple(
            Record(b"k", value, stamp, offset=self.end + index)
            for index, (value, stamp) in enumerate(zip(values, stamps, strict=True))
        )
        return Entry(self.end, records, batch, self.epoch, producer, sequence, is_transactional)

    def add(self, entry: Entry) -> None:
        self.history.append(entry)
        self.end = entry.next_offset

    def do_append(self, entry: Entry) -> None:
        result = self.log.append(entry.batch, now_ms=NOW_MS, transaction_verified=True)
        assert (result.base_offset, result.is_duplicate) == (self.end, False)
        self.add(entry)

    @rule(
        values=VALUES,
        ages=AGES,
        number=st.integers(-1, 2),
        codec=st.sampled_from([CompressionType.NONE, CompressionType.GZIP]),
    )
    def append(
        self, values: list[bytes], ages: list[int], number: int, codec: CompressionType
    ) -> None:
        entry = self.entry(values, ages, -1 if number < 0 else self.ids[number], codec)
        if len(entry.batch) <= self.box.config.segment_size_bytes:
            self.do_append(entry)

    @rule(number=st.integers(0, 2), commit=st.booleans())
    def end_a_transaction(self, number: int, commit: bool) -> None:
        producer = self.ids[number]
        if self.open_since(producer) is None:
            return
        end_transaction(self.log, producer, 0, commit=commit)
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        record = Record(control_key(kind), end_txn_value(0), NOW_MS, offset=self.end)
        self.add(Entry(self.end, (record,), b"", self.epoch, producer, is_abort=not commit))

    @rule(number=st.integers(0, 2), back=st.integers(1, 5))
    def retry(self, number: int, back: int) -> None:
        batches = self.batches_of(self.ids[number])[-back:]
        if len(batches) == back and batches[0].base_offset >= self.start:
            result = self.log.append(batches[0].batch, now_ms=NOW_MS, transaction_verified=True)
            assert result.is_duplicate
            assert result.base_offset == batches[0].base_offset

    # --- upkeep

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        # A cut is synced with what is written in its place.
        cut_stays = self.log.segments.active.base_offset < self.end > self.log.recovery_point
        self.log.flush(NOW_MS)
        assert self.log.recovery_point == self.end
        self.synced = self.end
        self.cut_unsynced = self.cut_unsynced and not cut_stays

    @rule()
    def write_checkpoint(self) -> None:
        self.checkpoint = self.log.recovery_point

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
        lowest = max(self.start, self.log.segments[0].base_offset)
        cuts = [e.base_offset for e in self.history if lowest <= e.base_offset < self.end]
        if not cuts:
            return
        cut = data.draw(st.sampled_from(cuts))
        self.log.truncate_to(cut, NOW_MS)
        self.forget_from(cut)
        self.let_new_producers_begin()
        self.cut_unsynced = True

    # --- the end, and a new beginning

    @rule(power_goes_too=st.booleans())
    def close_and_open(self, power_goes_too: bool) -> None:
        self.log.close(NOW_MS)
        if power_goes_too and not self.cut_unsynced:
            self.disk.power_cut()
        self.synced = self.end
        self.open(clean=True)
        assert self.log.recovery_point == self.end

    @rule(torn=st.binary(max_size=100), whole=st.booleans())
    def kill_and_open(self, torn: bytes, whole: bool) -> None:
        """`whole`: a batch header that announces more than there is."""
        self.box.tear(batch_of(b"never acknowledged" * 9)[: len(torn)] if whole else torn)
        self.open(clean=False)

    @precondition(lambda self: not self.cut_unsynced)
    @rule(seed=st.one_of(st.none(), st.integers(0, 1000)))
    def cut_the_power_and_open(self, seed: int | None) -> None:
        """Cut the power and open the log: synced data is there, other data may be."""
        self.disk.power_cut(None if seed is None else random.Random(seed))
        log = self.box.open(
            clean=False, recovery_point=self.checkpoint, log_start_offset=self.start
        )
        end_offset = log.log_end_offset
        assert max(self.synced, self.start) <= end_offset <= self.end
        # Of unsynced data, a later segment may survive while an earlier batch is lost.
        read = [record for batch in log.batches(self.start) for record in read_records(batch)]
        kept = {record.offset for record in read} | set(range(self.synced))
        lost = set(range(self.start, end_offset)) - kept
        self.has_holes = self.has_holes or bool(lost)
        self.history = [
            entry
            for entry in self.history
            if (last := entry.next_offset - 1) < self.start or last in kept
        ]
        log.take_offline("to be opened again, by the model's rules")
        self.forget_from(end_offset)
        self.open(clean=False)

    # --- a disk that is full

    def with_a_full_disk(self, at: int, lasting: bool, work: Callable[[], object]) -> bool:
        """Run `work` on a full disk; return whether it succeeded. Later rules check the state."""
        self.disk.left, self.disk.lasting = at, lasting
        try:
            work()
        except ApiError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR  # noqa: PT017 # or none at all
            return False
        finally:
            self.disk.left = None
        return True

    @rule(values=VALUES, at=OPERATION, lasting=st.booleans(), number=st.integers(0, 2))
    def append_to_a_full_disk(
        self, values: list[bytes], at: int, lasting: bool, number: int
    ) -> None:
        entry = self.entry(values, [0] * 4, self.ids[number], CompressionType.NONE)
        if len(entry.batch) <= self.box.config.segment_size_bytes:
            self.with_a_full_disk(at, lasting, lambda: self.do_append(entry))

    @rule(at=OPERATION, lasting=st.booleans())
    def roll_on_a_full_disk(self, at: int, lasting: bool) -> None:
        self.with_a_full_disk(at, lasting, lambda: self.log.roll(NOW_MS))

    @rule(at=OPERATION, lasting=st.booleans())
    def delete_on_a_full_disk(self, at: int, lasting: bool) -> None:
        self.with_a_full_disk(at, lasting, lambda: delete_old_segments(self.log, NOW_MS))
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset

    @rule(at=OPERATION)
    def flush_fails(self, at: int) -> None:
        """Fail a flush; after a failed fsync the log is not used again."""
        if self.with_a_full_disk(at, True, self.flush) or self.log.is_online:
            return
        self.open(clean=False)

    # --- what must hold

    def fetched(self, offset: int, max_bytes: int = 1 << 20) -> list[Record]:
        """As a consumer would fetch them."""
        records: list[Record] = []
        while batches := split(read_slice(self.log, offset, max_bytes)):
            for batch in batches:
                records += [each for each in read_records(batch) if each.offset >= offset]
            offset = read_header(batches[-1]).last_offset + 1
        assert offset == self.end or (self.has_holes and offset < self.end)
        return records

    @invariant()
    def every_record_can_be_read(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.high_watermark == self.end
        assert self.fetched(self.start) == self.kept()

    @invariant()
    def transactions_are_known(self) -> None:
        producers = {entry.producer for entry in self.history}
        unstable = [first for each in producers if (first := self.open_since(each)) is not None]
        if all(first >= self.start for first in unstable):
            assert self.log.last_stable_offset == min(unstable, default=self.end)
        stored = {
            (each.producer_id, each.first_offset, each.last_offset)
            for segment in self.log.segments
            for each in segment.aborted()
        }
        wanted = self.aborted()
        assert {each for each in wanted if each[1] >= self.start} <= stored
        # A recovery sees only the stored part of a transaction.
        first = self.log.segments[0].base_offset
        seen = {(producer, max(began, first), marker) for producer, began, marker in wanted}
        assert {each for each in stored if each[1] >= first} <= seen | wanted

    @invariant()
    def epochs_are_known(self) -> None:
        for entry in self.history:
            if entry.base_offset >= self.start:
                epoch, end_offset = self.log.end_offset_for_epoch(entry.epoch)
                assert epoch == entry.epoch
                later = (e.base_offset for e in self.history if e.epoch > entry.epoch)
                wanted = next(later, self.end)
                assert end_offset == wanted or (self.has_holes and end_offset < wanted)

    @rule(max_bytes=st.integers(0, 700), data=st.data())
    def read_in_small_pieces(self, max_bytes: int, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        wanted = [record for record in self.kept() if record.offset >= offset]
        assert self.fetched(offset, max_bytes) == wanted
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
        # Of records before the log start, a power cut may take some, and they count while they lie
        # there.
        highest = max((record.timestamp_ms for record in stored), default=-1)
        lowest = max((record.timestamp_ms for record in self.kept()), default=-1)
        assert lowest <= (found.timestamp_ms if found else -1) <= highest


LogMachine.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None
)
TestLogAgainstAList = LogMachine.TestCase
