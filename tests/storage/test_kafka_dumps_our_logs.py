"""Apache Kafka's own DumpLogSegments reads every file we write and finds nothing wrong."""

from pathlib import Path

import pytest

from odradek.protocol.compression import CompressionType
from odradek.storage.log import PartitionLog
from tests.support.java_tools import JAVA_TOOLS
from tests.support.log_box import NOW_MS, LogBox, put

pytestmark = pytest.mark.java

# What the tool says when something is wrong. (It also finds that offset -1 is followed by the first
# of every segment but the first, in Kafka's files too.)
WRONG = (
    "Mismatches",
    "Found timestamp",
    " is followed by ",
    "isvalid: false",
    "rror",
    "xception",
    "orrupt",
    "sanity check: false",
)


def fill(log: PartitionLog) -> None:
    """Every codec, idempotent producers, timestamps out of order, several epochs and segments."""
    sequence = 0
    for n in range(120):
        if n in (40, 90):
            log.become_leader(log.leader_epoch + 1)
        count = 1 + n % 4
        producer = (7, 0, sequence) if n % 3 else (-1, -1, -1)
        put(
            log,
            *[b"value %d" % n * (n % 7)] * count,
            timestamps=[NOW_MS + 50 * n - 700 * (n % 5) + i for i in range(count)],
            compression=CompressionType(n % 5),
            producer=producer,
        )
        sequence += count if n % 3 else 0


def complaints(box: LogBox, suffix: str, *options: str) -> list[str]:
    """Lines of the tool's output that say that something is wrong."""
    files = ",".join(str(box.directory / name) for name in box.names(suffix))
    output = JAVA_TOOLS.run("DumpLogSegments", *options, "--files", files)
    assert output.count("Dumping ") == len(box.names(suffix))
    lines = [line for line in output.splitlines() if "  -1 is followed by" not in line]
    return [line for line in lines if any(each in line for each in WRONG)]


@pytest.mark.parametrize("stop", ["closed", "recovered and closed", "killed"])
def test_kafka_finds_nothing_wrong_in_any_file(tmp_path: Path, stop: str) -> None:
    box = LogBox(tmp_path, segment_bytes=4000, index_interval_bytes=200)
    log = box.open()
    log.become_leader(0)
    fill(log)
    if stop == "recovered and closed":
        box.tear(b"torn" * 30)
        log = box.open(clean=False)
    if stop != "killed":
        log.close(NOW_MS)
    assert len(box.names(".log")) > 3
    assert complaints(box, ".log", "--deep-iteration", "--print-data-log") == []
    # A running broker's active index is preallocated; its zeros end it, as in Kafka.
    assert complaints(box, ".index", "--verify-index-only") == []
    assert complaints(box, ".timeindex", "--verify-index-only") == []
    if stop != "killed":
        assert complaints(box, ".index", "--index-sanity-check") == []
        assert complaints(box, ".timeindex", "--index-sanity-check") == []
    assert complaints(box, ".snapshot") == []


def test_the_check_sees_a_wrong_index(tmp_path: Path) -> None:
    box = LogBox(tmp_path, index_interval_bytes=200)
    log = box.open()
    fill(log)
    log.close(NOW_MS)
    path = box.path(0, ".index")
    data = bytearray(path.read_bytes())
    data[3] += 1
    path.write_bytes(data)
    assert complaints(box, ".index", "--verify-index-only") != []
