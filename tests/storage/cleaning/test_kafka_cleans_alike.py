"""Apache Kafka's own cleaner and ours, round after round over copies of the same directories."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.compression import CompressionType
from odradek.protocol.legacy import build_message_set
from odradek.protocol.record import Record
from odradek.storage.cleaning.plan import assess
from odradek.storage.log_reader import LogReader
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import BUFFER_BYTES, Writer, clean, compacted
from tests.support.java_tools import JAVA_TOOLS, why_no_java
from tests.support.log_box import NOW_MS, LogBox

pytestmark = [pytest.mark.java, pytest.mark.slow]

PROGRAM = Path(__file__).parents[2] / "support" / "CleanLog.java"
RETENTION_MS = 1000
ROUNDS_MS = (NOW_MS, NOW_MS + 500, NOW_MS + 1600, NOW_MS + 2600, NOW_MS + 4000)
DIRTY_ROUNDS = (0, 3)  # before these, more is written
ALL_CODECS = tuple(CompressionType)


@dataclass
class Case:
    """A log in two copies, and how it is written and cleaned."""

    name: str
    writer: Writer
    segment_bytes: int = 4000
    timestamp_type: str = "CreateTime"
    buffer_bytes: int = BUFFER_BYTES
    same_bytes: bool = True  # not where records are compressed anew
    retention_ms: int = RETENTION_MS
    checkpoint: int = 0

    @property
    def settings(self) -> dict[str, object]:
        return {
            "segment_bytes": self.segment_bytes,
            "index_interval_bytes": 200,
            "segment_index_bytes": 4096,
            "delete_retention_ms": self.retention_ms,
            "message_timestamp_type": self.timestamp_type,
            "file_delete_delay_ms": 0,
        }

    def told(self, figures: list[int]) -> tuple[object, ...]:
        """What must be the same: not the bytes, where those are not."""
        return (self.name, *(figures if self.same_bytes else figures[:5]))

    def kafka_settings(self) -> str:
        return (
            f"internal.segment.bytes={self.segment_bytes},index.interval.bytes=200,"
            f"segment.index.bytes=4096,cleanup.policy=compact,delete.retention.ms={self.retention_ms}"
        )


class KafkaCleaner:
    """Kafka's cleaner in a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [*JAVA_TOOLS.java(), str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def clean(self, directory: Path, case: Case, now_ms: int) -> list[int]:
        """The figures of one round."""
        pipes = self._process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        assert pipes.stderr is not None
        line = f"{case.buffer_bytes} {now_ms} {directory} {case.checkpoint} {case.kafka_settings()}"
        print(line, file=pipes.stdin, flush=True)
        answer = pipes.stdout.readline()
        assert answer, pipes.stderr.read()
        return [int(word) for word in answer.split()]

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCleaner]:
    reason = why_no_java()
    if reason is not None:
        pytest.skip(reason)
    cleaner = KafkaCleaner()
    yield cleaner
    cleaner.close()


CASES = (
    *(Case(f"seed-{seed}", Writer(seed)) for seed in range(2)),
    Case("large-groups", Writer(10, keys=400), segment_bytes=20_000),
    *(
        Case(f"transactions-{seed}", Writer(seed, bumps_epochs=seed % 2 == 0, leaves_open=True))
        for seed in range(20, 26)
    ),
    *(
        Case(
            f"empty-transactions-{seed}",
            Writer(seed, bumps_epochs=seed % 2 == 0, leaves_open=True, empty_transactions=True),
            retention_ms=0 if seed < 32 else RETENTION_MS,
        )
        for seed in range(30, 34)
    ),
    Case("append-time", Writer(11), timestamp_type="LogAppendTime"),
    Case("codecs", Writer(12, codecs=ALL_CODECS), same_bytes=False),
    # Without transactions: Kafka takes those that an aborted one precedes in the segment where a
    # round begins for aborted too, and leaves their keys out of the map.
    Case("full-map", Writer(13, keys=300, producers=False), buffer_bytes=24 * 100),
)


def test_the_same_records_survive_in_the_same_bytes(kafka: KafkaCleaner, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "kafka"
    boxes = {
        case.name: LogBox(ours / case.name, files=QuickFiles(), **case.settings) for case in CASES
    }
    for number, round_ms in enumerate(ROUNDS_MS):
        for case in CASES:
            if number in DIRTY_ROUNDS:
                write(boxes[case.name], case, theirs / case.name)
            else:
                case.checkpoint = 0  # all again, for its tombstones and markers
            copy = theirs / case.name / "orders-0"
            figures = kafka.clean(copy, case, round_ms)
            assert clean_with_ours(boxes[case.name], case, round_ms) == case.told(figures)
            compare(boxes[case.name].directory, copy, case)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_messages_of_the_formats_before_v2_become_the_same_batches(
    kafka: KafkaCleaner, tmp_path: Path, codec: CompressionType
) -> None:
    case = Case("old", Writer(1), segment_bytes=20_000, same_bytes=codec is CompressionType.NONE)
    box = LogBox(tmp_path / "ours", **case.settings)
    box.config = compacted(box.config)
    write_old(box, codec)
    theirs = tmp_path / "kafka" / "orders-0"
    shutil.copytree(box.directory, theirs)
    case.checkpoint = 30  # what lies before was cleaned: tombstones in old segments may go
    box.open(clean=False).close(NOW_MS)
    figures = kafka.clean(theirs, case, NOW_MS)
    assert clean_with_ours(box, case, NOW_MS) == case.told(figures)
    records = [list(batches(directory)) for directory in (box.directory, theirs)]
    assert records[0] == records[1]
    assert {header.magic for header, _ in records[0] if header.base_offset < 45} == {2}
    if case.same_bytes:
        for name in (f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex"):
            assert (box.directory / name).read_bytes() == (theirs / name).read_bytes(), name


def write_old(box: LogBox, codec: CompressionType) -> None:
    """Four segments of both old formats, written at different times."""
    box.directory.mkdir(parents=True)
    writer = Writer(5, keys=12)
    for base_offset in (0, 15, 30, 45):
        data = bytearray()
        for start in range(base_offset, base_offset + 15, 3):
            records = [
                writer.record()._replace(offset=offset, headers=())
                for offset in range(start, start + 3)
            ]
            stamp_ms = NOW_MS + start if start % 2 else None
            data += build_message_set(
                records, magic=start // 3 % 2, compression=codec, log_append_time_ms=stamp_ms
            )
        path = box.path(base_offset, ".log")
        path.write_bytes(data)
        box.files.set_modified_ms(path, NOW_MS + 100 * base_offset)


def write(box: LogBox, case: Case, theirs: Path) -> None:
    """Dirty records, for both."""
    log = box.open()
    log.update_config(box.config.replace(cleanup_policy=("delete",)))
    case.writer.write(log, 200)
    log.close(NOW_MS)
    box.config = compacted(box.config)
    shutil.rmtree(theirs, ignore_errors=True)
    shutil.copytree(box.directory, theirs / "orders-0")


def clean_with_ours(box: LogBox, case: Case, now_ms: int) -> tuple[object, ...]:
    """The figures that CleanLog.java prints; the checkpoint moves on for both."""
    log = box.open(now_ms=now_ms)
    to_clean = assess(log, case.checkpoint, now_ms)
    result = clean(
        log,
        now_ms,
        checkpoint=case.checkpoint,
        buffer_bytes=case.buffer_bytes,
        files=box.files,
    )
    log.close(now_ms)
    stats = result.stats
    case.checkpoint = result.end_offset
    return case.told(
        [
            result.end_offset,
            to_clean.first_uncleanable_offset,
            stats.messages_read,
            stats.messages_written,
            stats.invalid_messages,
            to_clean.clean_bytes,
            to_clean.cleanable_bytes,
            stats.bytes_read,
            stats.bytes_written,
        ]
    )


def compare(ours: Path, theirs: Path, case: Case) -> None:
    names = live_files(theirs)
    assert live_files(ours) == names, case.name
    if not case.same_bytes:
        assert list(batches(ours)) == list(batches(theirs)), case.name
        return
    for name in names:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), (case.name, name)


def live_files(directory: Path) -> list[str]:
    """Without what waits to be deleted."""
    names = sorted(path.name for path in directory.iterdir())
    return [name for name in names if not name.endswith(".deleted")]


def batches(directory: Path) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Headers and records, without what depends on how well they are compressed."""
    for batch in LogReader(directory).batches():
        yield batch.header._replace(crc=0, batch_length=0), list(batch.records())
