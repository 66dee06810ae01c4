"""Flips one bit of a small log directory, opens the log, reads it, and checks the outcome.

Every byte of every file, in a directory that was closed cleanly and in one whose broker was killed.
The outcome must be one of those below. There is never a traceback, and wrong records are never
served silently: a damaged batch has a wrong CRC, which every consumer checks. The exceptions are
flips in one of the few fields without a checksum, named in the table: base offset and leader epoch
of a batch, and the list of aborted transactions.

The long variant (`make long`) flips every byte and prints the table; the short one takes samples.
"""

import logging
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import MAGIC_V2, CorruptRecordError, check_crc, read_header
from odradek.protocol.errors import ApiError
from odradek.protocol.primitives import uuid_from_text
from odradek.protocol.record import read_records
from odradek.protocol.schema import DecodeError
from odradek.storage.data_directory import DirectoryError
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from tests.support.dirty_logs import end_transaction
from tests.support.lengths import LONG, SEED
from tests.support.log_box import NOW_MS, batch_of, read_slice
from tests.support.partition_logs import UnsyncedFiles
from tests.support.timer import Timer

ABORTED = [(8, 6, 7)]
SAMPLES = 120
PROGRESS = re.compile(r"recovering ((segment )?\S+, \d+ of \d+|\d+ logs after an unclean stop)")
TOPIC_ID = uuid_from_text("AAAAAAAAAAAAAAAAAAAAAQ")
BATCH_BYTES = len(batch_of(b"0", producer=(7, 0, 0)))
CONFIG = TopicConfig(
    internal_segment_bytes=3 * BATCH_BYTES + 10, index_interval_bytes=0, segment_index_bytes=48
)
# Fields of a batch that its CRC does not cover, by their place in it.
OUTSIDE_CRC = {
    **dict.fromkeys(range(8), "base offset"),
    **dict.fromkeys(range(8, 12), "batch length"),
    **dict.fromkeys(range(12, 16), "leader epoch"),
    16: "magic",
    **dict.fromkeys(range(17, 21), "CRC"),
}

OUTSIDE = frozenset({".log, base offset", ".log, leader epoch"})  # the others end the batch


class Flip(NamedTuple):
    """A bit of a file, and the part of the file that it is in."""

    path: Path  # relative to the data directory
    byte: int
    bit: int
    part: str


def start(root: Path) -> LogManager:
    config = BrokerConfig.from_texts({"log.dirs": str(root)})
    report = logging.getLogger("start").warning
    manager = LogManager.open(config, files=UnsyncedFiles(), timer_ms=Timer(), report=report)
    manager.load_logs(lambda _: CONFIG, now_ms=NOW_MS)
    return manager


def kill(manager: LogManager) -> None:
    for directory in manager.directories:
        directory.unlock()


def make(root: Path, *, clean: bool) -> list[bytes]:
    """A log of three segments with an aborted transaction and two leader epochs; its batches."""
    manager = start(root)
    log = manager.create("orders", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    for number in range(6):
        log.append(batch_of(b"%d" % number, producer=(7, 0, number)), now_ms=NOW_MS + number)
        if number == 3:
            log.flush(NOW_MS)
            manager.write_recovery_points()
            log.become_leader(2)
    batch = batch_of(b"t", producer=(8, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, 8, 0, commit=False)
    batches = [bytes(each) for each in log.batches(0)]
    if clean:
        manager.close(now_ms=NOW_MS)
    else:
        manager.write_high_watermarks()
        kill(manager)
    return batches


def flips(root: Path) -> Iterator[Flip]:
    """Every byte of every file, each with one of its bits."""
    chance = random.Random(SEED)
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        data = path.read_bytes()
        parts = parts_of_log(data) if path.suffix == ".log" else {}
        for byte in range(len(data)):
            part = parts.get(byte, path.suffix or path.name)
            yield Flip(path.relative_to(root), byte, chance.randrange(8), part)


def parts_of_log(data: bytes) -> dict[int, str]:
    """The name of the part that each byte of a segment's file belongs to."""
    parts = {}
    position = 0
    while position < len(data):
        size = read_header(data[position:]).size_bytes
        for offset in range(size):
            what = OUTSIDE_CRC.get(offset, "covered by the CRC")
            parts[position + offset] = f".log, {what}"
        position += size
    return parts


def outcome(root: Path, written: list[bytes], part: str, caplog: pytest.LogCaptureFixture) -> str:
    """Open the directory, read everything, append one batch; return the outcome."""
    caplog.clear()
    try:
        manager = start(root)
    except DirectoryError:
        return "refused to start, with a line"
    try:
        log = manager.create("orders", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS, is_new=False)
    except ApiError as error:
        kill(manager)
        return f"partition not served: {error.code.name}"
    try:
        result = judge(log, written, part)
        log.append(batch_of(b"more"), now_ms=NOW_MS)
    finally:
        kill(manager)
    warnings = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    said = any(PROGRESS.search(line) is None for line in warnings)
    return f"{result}, with a line" if said else result


def judge(log: PartitionLog, written: list[bytes], part: str) -> str:
    """What a consumer gets, which checks the CRC of every batch."""
    served, error = fetched(log)
    if error is not None:
        assert served == written[: len(served)], "something else came before the corrupt batch"
        return error
    if served == written:
        if aborted_of(log) == ABORTED:
            return "served the same"
        assert part == ".txnindex", "wrong transactions are said to be aborted"
        return "other transactions are said to be aborted"  # it has no checksum, in Kafka neither
    if served == written[: len(served)]:
        return "cut at the flipped batch" if served else "all cut"
    if served == written[-len(served) :]:
        return "begins later"
    assert part in OUTSIDE, "wrong records, in silence"
    assert {strip(one) for one in served} <= {strip(one) for one in written}
    return "served with another offset or epoch"


def aborted_of(log: PartitionLog) -> list[tuple[int, int, int]]:
    """The transactions that a read_committed consumer drops: producer, first offset, marker."""
    return [
        (each.producer_id, each.first_offset, each.last_offset)
        for segment in log.segments
        for each in segment.aborted()
    ]


def fetched(log: PartitionLog) -> tuple[list[bytes], str | None]:
    """Valid batches from the log start on, and the error that ended them, if any."""
    batches: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        try:
            data = read_slice(log, offset)
        except ApiError as error:
            return batches, f"a fetch is refused: {error.code.name}"
        if not data:
            return batches, "nothing more can be read"
        while data:
            try:
                header = read_header(data)
                if len(data) < header.size_bytes:
                    raise CorruptRecordError("it is cut")
                check_crc(data[: header.size_bytes], header)
                if header.magic != MAGIC_V2:
                    raise CorruptRecordError(f"magic {header.magic}")
                list(read_records(data[: header.size_bytes], header=header))
            except (CorruptRecordError, DecodeError):
                return batches, "the consumer sees a wrong CRC, length or magic"
            batches.append(bytes(data[: header.size_bytes]))
            data = data[header.size_bytes :]
            offset = max(offset + 1, header.last_offset + 1)
    return batches, None


def strip(batch: bytes) -> bytes:
    """A batch without the bytes that its CRC does not cover."""
    return batch[17:]


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False], ids=["closed", "killed"])
def test_a_flipped_bit_is_never_served_in_silence(
    scratch: Path, caplog: pytest.LogCaptureFixture, clean: bool
) -> None:
    original, damaged = scratch / "original", scratch / "damaged"
    written = make(original, clean=clean)
    chosen = list(flips(original))
    if not LONG:
        chosen = random.Random(SEED).sample(chosen, min(SAMPLES, len(chosen)))
    table: Counter[tuple[str, str]] = Counter()
    for flip in chosen:
        shutil.copytree(original, damaged)
        data = bytearray((damaged / flip.path).read_bytes())
        data[flip.byte] ^= 1 << flip.bit
        (damaged / flip.path).write_bytes(data)
        try:
            table[flip.part, outcome(damaged, written, flip.part, caplog)] += 1
        except Exception as error:
            raise AssertionError(f"{flip}: {error!r}") from error
        shutil.rmtree(damaged)
    for (part, what), count in sorted(table.items()):
        print(f"{part:32s} {what:48s} {count:6d}")  # noqa: T201 # the table
