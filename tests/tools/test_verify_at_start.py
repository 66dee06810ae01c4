"""`odradek verify` predicts what a start does about damage: compared with a start."""

import struct
from pathlib import Path

import pytest

from odradek.storage.checkpoints import MetaProperties, write_clean_shutdown, write_meta_properties
from odradek.storage.filenames import CLEAN_SHUTDOWN
from odradek.storage.files import Files
from odradek.tools.verify.findings import Finding, Kind, Severity
from odradek.tools.verify.job import VerifySettings, run_verify
from tests.support.archives import InThisProcess
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, split

SIZE_AT = 8  # in a batch
HUGE = struct.pack(">i", 1 << 30)


def structure(data: Path) -> list[Finding]:
    """The findings about batches."""
    settings = VerifySettings(log_directories=[data], now_ms=NOW_MS)
    found = run_verify(InThisProcess(), settings).findings
    return [each for each in found if each.kind in (Kind.STRUCTURE, Kind.CHECKSUM, Kind.GAP)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One segment of ten batches, stopped cleanly, without entries in its index."""
    log = LogBox(tmp_path).open()
    for number in range(10):
        put(log, b"%d" % number)
    log.close(NOW_MS)
    write_meta_properties(Files(), tmp_path, MetaProperties("c", 1, b"d" * 16))
    write_clean_shutdown(Files(), tmp_path, 7)
    return tmp_path


def damage(path: Path, batch: int, at: int, new: bytes) -> int:
    """Overwrite bytes of a batch; returns its position."""
    batches = split(path.read_bytes())
    position = sum(map(len, batches[:batch]))
    with path.open("r+b") as file:
        file.seek(position + at)
        file.write(new)
    return position


def test_a_damaged_size_is_not_taken_for_the_end_that_a_kill_leaves(data: Path) -> None:
    (data / CLEAN_SHUTDOWN).unlink()
    path = LogBox(data).path(0, ".log")
    position, size = damage(path, 3, SIZE_AT, HUGE), path.stat().st_size
    following = position + len(batch_of(b"3"))
    [found] = structure(data)
    assert found.severity is Severity.PROBLEM
    assert found.what.endswith(f"among them a whole batch, of offset 4 at byte {following}")
    assert found.at_start == (
        f"recovery cuts this segment at byte {position}: {size - position} bytes are lost"
    )
    LogBox(data).open(clean=False).close(NOW_MS)
    assert path.stat().st_size == position


def test_a_batch_before_the_torn_end_is_no_sign_of_a_damaged_size(data: Path) -> None:
    (data / CLEAN_SHUTDOWN).unlink()
    old = split(LogBox(data).path(0, ".log").read_bytes())[3]
    LogBox(data).tear(batch_of(b"torn" + old)[:-1])
    [found] = structure(data)
    assert found.severity is Severity.NOTE
