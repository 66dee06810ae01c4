"""The golden files that Apache Kafka wrote, and the program that wrote them."""

import subprocess
from pathlib import Path

import pytest

from odradek.protocol.record import Record
from tests.support.java_tools import JAVA_TOOLS, why_no_java

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "storage"
BASE_TIME = 1_700_000_000_000
APPEND_TIME = BASE_TIME + 999_999
BASE_OFFSET = 1000
LEADER_EPOCH = 7


def golden_records(count: int) -> list[Record]:
    """What GoldenFiles.java appends to its batches."""
    return [_record(i) for i in range(count)]


def _record(i: int) -> Record:
    return Record(
        key=None if i % 5 == 4 else b"key-%d" % i,
        value=None if i % 7 == 6 else b"value-%d-" % i * (i % 9),
        timestamp_ms=BASE_TIME + 37 * i - i % 4 * 1000,
        headers=() if i % 3 != 2 else (("größe", b"%d" % i), ("null", None), ("", b"")),
        offset=BASE_OFFSET + i,
    )


def golden_program(*arguments: str) -> list[str]:
    """The command line that runs GoldenFiles.java; skips the test where there is no Java."""
    reason = why_no_java()
    if reason is not None:
        pytest.skip(reason)
    return [*JAVA_TOOLS.java(), str(GOLDEN / "GoldenFiles.java"), *arguments]


def run_golden_program(*arguments: str) -> str:
    """What it printed."""
    done = subprocess.run(
        golden_program(*arguments), check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout
