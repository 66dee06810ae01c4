"""read_committed: a consumer that drops the listed transactions sees exactly what was committed.

The consumer here works as Kafka's clients do: a listed transaction applies from its first offset to
its abort marker.
"""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage import committed_reads
from odradek.storage.log import PartitionLog
from odradek.storage.txn_index import AbortedTransaction
from tests.support.dirty_logs import end_transaction
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox, batch_of, split


class Writer:
    """Writes transactions of several producers, and knows what a consumer may see in the end."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.sequences: dict[int, int] = {}
        self.open: dict[int, list[int]] = {}
        self.values: dict[int, bytes] = {}
        self.aborted: set[int] = set()

    def plain(self, value: bytes) -> None:
        offset = self.log.append(batch_of(value), now_ms=NOW_MS).base_offset
        self.values[offset] = value

    def transactional(self, producer: int, value: bytes) -> None:
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + 1
        batch = batch_of(value, producer=(producer, 0, sequence), is_transactional=True)
        result = self.log.append(batch, now_ms=NOW_MS, transaction_verified=True)
        self.values[result.base_offset] = value
        self.open.setdefault(producer, []).append(result.base_offset)

    def end(self, producer: int, kind: ControlRecordType) -> None:
        offsets = self.open.pop(producer, [])
        if kind is ControlRecordType.ABORT:
            self.aborted.update(offsets)
        end_transaction(self.log, producer, 0, commit=kind is ControlRecordType.COMMIT)

    def trim(self, tenths: int) -> None:
        """DeleteRecords before an offset, which may be in the middle of transactions."""
        start, end = self.log.log_start_offset, self.log.high_watermark
        self.log.increment_log_start_offset(start + (end - start) * tenths // 10)

    def drop(self) -> None:
        """Delete the segments before the log start, as retention does."""
        start = self.log.log_start_offset
        bases = self.log.segments.base_offsets[1:]
        self.log.delete_first_segments(sum(base <= start for base in bases), NOW_MS)

    @property
    def last_stable_offset(self) -> int:
        firsts = [offsets[0] for offsets in self.open.values()]
        return max(min(firsts, default=self.log.log_end_offset), self.log.log_start_offset)

    def visible(self, start_offset: int) -> list[bytes]:
        return [
            value
            for offset, value in sorted(self.values.items())
            if start_offset <= offset < self.last_stable_offset and offset not in self.aborted
        ]


def consume(log: PartitionLog, offset: int, max_bytes: int) -> list[bytes | None]:
    """What a read_committed consumer sees of the log from an offset on."""
    seen: list[bytes | None] = []
    while True:
        read = log.read_committed(offset, max_bytes, at_least_one_batch=True)
        data = os.pread(read.records.file.fd, read.records.size_bytes, read.records.position)
        waiting = sorted(read.aborted, key=lambda one: one.first_offset)
        dropped: set[int] = set()
        for batch in split(data):
            header = read_header(batch)
            while waiting and waiting[0].first_offset <= header.last_offset:
                dropped.add(waiting.pop(0).producer_id)
            records = [each for each in read_records(batch) if each.offset >= offset]
            if header.is_control:
                if control_type(records[0].key) is ControlRecordType.ABORT:
                    dropped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in dropped):
                seen += [record.value for record in records]
        if not data:
            return seen
        offset = header.next_offset


STEPS = st.lists(
    st.one_of(
        st.just(("plain", 0)),
        st.tuples(st.sampled_from(["transactional", "commit", "abort"]), st.integers(1, 3)),
        st.tuples(st.just("trim"), st.integers(1, 10)),
        st.just(("drop", 0)),
    ),
    max_size=40,
)


@settings(
    max_examples=by_length(15, 200),
    deadline=None,
)
@given(steps=STEPS, max_bytes=st.sampled_from([1, 200, 1000, 1 << 20]), segment_bytes=st.just(400))
def test_a_consumer_sees_what_was_committed_before_the_last_stable_offset(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int]],
    max_bytes: int,
    segment_bytes: int,
) -> None:
    box = LogBox(tmp_path_factory.mktemp("log"), segment_bytes=segment_bytes)
    log = box.open()
    writer = Writer(log)
    for number, (step, producer) in enumerate(steps):
        if step == "plain":
            writer.plain(b"%d" % number)
        elif step == "transactional":
            writer.transactional(producer, b"%d" % number)
        elif step == "trim":
            writer.trim(producer)
        elif step == "drop":
            writer.drop()
        else:
            kind = ControlRecordType.COMMIT if step == "commit" else ControlRecordType.ABORT
            writer.end(producer, kind)
    start, end = log.log_start_offset, log.log_end_offset
    visible = {offset: writer.visible(offset) for offset in range(start, end + 1)}
    assert log.last_stable_offset == writer.last_stable_offset
    assert {offset: consume(log, offset, max_bytes) for offset in visible} == visible
    for max_aborted in (1, 2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(committed_reads, "MAX_ABORTED", max_aborted)
            assert {offset: consume(log, offset, max_bytes) for offset in visible} == visible
    log.close(NOW_MS)
    # A transaction that is open since before the log's start is not known after a crash.
    is_cut = writer.last_stable_offset == start < end
    for clean in (True,) if is_cut else (True, False):
        log = box.open(clean=clean, log_start_offset=start)
        assert {offset: consume(log, offset, max_bytes) for offset in visible} == visible


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """0: plain, 1: of producer 7, 2: plain, 3: 7 aborts, 4: plain, 5: of producer 8, 6: plain."""
    log = LogBox(tmp_path).open()
    writer = Writer(log)
    writer.plain(b"0")
    writer.transactional(7, b"1")
    writer.plain(b"2")
    writer.end(7, ControlRecordType.ABORT)
    writer.plain(b"4")
    writer.transactional(8, b"5")
    writer.plain(b"6")
    return log


ABORTED = AbortedTransaction(producer_id=7, first_offset=1, last_offset=3, last_stable_offset=4)


@pytest.mark.parametrize(
    ("offset", "max_bytes", "end", "aborted"),
    [
        (0, 1 << 20, 5, [ABORTED]),
        (0, 1, 1, []),  # the slice ends before the transaction begins
        (1, 1, 2, [ABORTED]),
        (2, 1, 3, [ABORTED]),  # it began before the slice
        (3, 1, 4, [ABORTED]),  # only its marker is there
        (4, 1 << 20, 5, []),
        (5, 1 << 20, 5, []),
        (6, 1 << 20, 6, []),  # after the last stable offset: nothing is visible
        (7, 1 << 20, 7, []),
    ],
)
def test_the_list_names_what_overlaps_the_slice(
    log: PartitionLog, offset: int, max_bytes: int, end: int, aborted: list[AbortedTransaction]
) -> None:
    read = log.read_committed(offset, max_bytes, at_least_one_batch=True)
    data = os.pread(read.records.file.fd, read.records.size_bytes, read.records.position)
    batches = split(data)
    assert (read_header(batches[-1]).next_offset if batches else offset) == end
    assert read.aborted == aborted


def test_a_slice_with_too_many_aborted_transactions_ends_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed_reads, "MAX_ABORTED", 3)
    log = LogBox(tmp_path).open()
    writer = Writer(log)
    for number in range(8):
        writer.transactional(7, b"%d" % number)
        writer.end(7, ControlRecordType.ABORT)
    offset, listed = 0, []
    while offset < log.log_end_offset:
        read = log.read_committed(offset, 1 << 20, at_least_one_batch=True)
        data = os.pread(read.records.file.fd, read.records.size_bytes, read.records.position)
        offset = read_header(split(data)[-1]).next_offset
        listed.append(len(read.aborted))
    assert listed == [3, 3, 2]


def test_an_offset_that_the_log_does_not_have_is_out_of_range(log: PartitionLog) -> None:
    with pytest.raises(ApiError) as refused:
        log.read_committed(8, 1, at_least_one_batch=True)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_truncation_removes_the_transactions_that_ended_after_it(log: PartitionLog) -> None:
    assert log.segments.active.aborted()
    log.truncate_to(3, NOW_MS)
    assert log.read_committed(0, 1 << 20, at_least_one_batch=True).aborted == []
    assert not list(log.directory.glob("*.txnindex"))
