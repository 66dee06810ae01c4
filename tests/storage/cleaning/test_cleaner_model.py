"""Random logs, cleaned round after round, against a model that knows nothing of batches.

The model keeps a list of records, some of them aborted, and applies the rule of compaction to it;
when a tombstone may go it keeps per batch, as the rule says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.storage.cleaning.plan import assess
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer, clean
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox

RETENTION_MS = 1000


@dataclass
class ModelBatch:
    """A batch as it was written: its records, and what the rounds made of it."""

    records: list[Record]
    is_aborted: bool
    horizon_ms: int | None = None

    def clean(self, newest: dict[bytes, int], end_offset: int, now_ms: int) -> None:
        if self.is_aborted:
            self.records = []  # also behind what the map holds
            return
        tombstones_stay = self.horizon_ms is None or now_ms < self.horizon_ms
        self.records = [
            each
            for each in self.records
            if each.offset >= end_offset
            or (
                each.key is not None
                and each.offset >= newest.get(each.key, -1)
                and (each.value is not None or tombstones_stay)
            )
        ]
        has_tombstones = any(each.value is None for each in self.records)
        if has_tombstones and self.horizon_ms is None:
            self.horizon_ms = now_ms + RETENTION_MS


@dataclass
class Model:
    """The log's records, batch by batch."""

    batches: list[ModelBatch] = field(default_factory=list)

    def take(self, log: PartitionLog, start_offset: int) -> None:
        """What was appended from there on."""
        aborted = [
            (each.producer_id, each.first_offset, each.last_offset)
            for segment in log.segments
            for each in segment.aborted()
        ]
        for batch in LogReader(log.directory).batches(start_offset):
            header = batch.header
            if not header.is_control:
                is_aborted = header.is_transactional and any(
                    producer_id == header.producer_id and first <= header.base_offset <= last
                    for producer_id, first, last in aborted
                )
                self.batches.append(ModelBatch(list(batch.records()), is_aborted))

    def clean(self, first_dirty: int, end_offset: int, next_segment: int, now_ms: int) -> None:
        """A round whose map holds [first_dirty, end_offset), over whole segments."""
        newest = {
            each.key: each.offset
            for batch in self.batches
            if not batch.is_aborted
            for each in batch.records
            if each.key is not None and first_dirty <= each.offset < end_offset
        }
        for batch in self.batches:
            if batch.records and batch.records[0].offset < next_segment:
                batch.clean(newest, end_offset, now_ms)

    def records(self) -> Iterator[Record]:
        for batch in self.batches:
            yield from batch.records


@settings(
    max_examples=by_length(10, 1000),
    deadline=None,
)
@given(
    seed=st.integers(0, 2**32),
    keys=st.integers(2, 60),
    segment_bytes=st.sampled_from([600, 1500, 5000]),
    buffer_bytes=st.sampled_from([24 * 12, 24 * 60, 1 << 16]),
    producers=st.booleans(),
    codecs=st.sampled_from([(CompressionType.NONE,), tuple(CompressionType)]),
    rounds=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 900), st.booleans()), min_size=1, max_size=5
    ),
)
def test_what_survives_is_what_the_model_says(
    seed: int,
    keys: int,
    segment_bytes: int,
    buffer_bytes: int,
    producers: bool,
    codecs: tuple[CompressionType, ...],
    rounds: list[tuple[int, int, bool]],
) -> None:
    with TemporaryDirectory() as root:
        box = LogBox(
            Path(root),
            files=QuickFiles(),
            segment_bytes=segment_bytes,
            index_interval_bytes=100,
            segment_index_bytes=1024,
            delete_retention_ms=RETENTION_MS,
        )
        log, model, checkpoint, now_ms = box.open(), Model(), 0, NOW_MS
        writer = Writer(seed, keys=keys, producers=producers, codecs=codecs)
        for batches, wait_ms, all_again in rounds:
            written_from = log.log_end_offset
            writer.write(log, batches)
            model.take(log, written_from)
            now_ms += wait_ms
            checkpoint = 0 if all_again else checkpoint
            to_clean = assess(log, checkpoint, now_ms)
            bases = [*log.segments.base_offsets, log.log_end_offset]
            result = clean(
                log, now_ms, checkpoint=checkpoint, buffer_bytes=buffer_bytes, files=box.files
            )
            touched = next((base for base in bases if base >= result.end_offset), 0)
            model.clean(to_clean.first_dirty_offset, result.end_offset, touched, now_ms)
            assert result.unreadable == ()
            assert checkpoint <= result.end_offset <= to_clean.first_uncleanable_offset
            checkpoint = result.end_offset
            assert list(LogReader(box.directory).records()) == list(model.records())
            check_headers(log)
        before = headers_of(log)
        log.close(now_ms)
        assert headers_of(box.open(now_ms=now_ms)) == before


def headers_of(log: PartitionLog) -> list[BatchHeader]:
    return [header for segment in log.segments for _, header in segment.headers_from(0)]


def check_headers(log: PartitionLog) -> None:
    """Offsets ascend, every batch is found by its offsets, and producers keep their sequences."""
    next_offset = 0
    last_of: dict[int, BatchHeader] = {}
    for header in headers_of(log):
        assert header.base_offset >= next_offset
        next_offset = header.next_offset
        if not header.is_control:
            last_of[header.producer_id] = header
    for producer_id, entry in log.producers.producers.items():
        assert last_of[producer_id].last_sequence == entry.last_sequence
    for segment in log.segments:
        for _, header in segment.headers_from(segment.base_offset):
            found = segment.find(header.base_offset)
            assert found is not None
            assert found.header == header


def test_a_full_map_ends_the_round_and_the_next_one_goes_on(tmp_path: Path) -> None:
    box = LogBox(tmp_path, files=QuickFiles(), segment_bytes=1000, segment_index_bytes=1024)
    log = box.open()
    Writer(1, keys=200, producers=False, null_keys=False).write(log, 120)
    ends = [0]
    while ends[-1] < log.segments.active.base_offset:
        result = clean(log, NOW_MS, checkpoint=ends[-1], buffer_bytes=24 * 50)
        assert result.stats.map_entries <= 45
        ends.append(result.end_offset)
    assert len(ends) > 4
    records = list(LogReader(box.directory).records(0, log.segments.active.base_offset))
    keys = [record.key for record in records]
    assert len(keys) == len(set(keys))
