"""A directory with damaged logs, opened by Apache Kafka and by odradek: the same is left of it.

Each topic has one partition of three segments, and a damage of its own.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.protocol.batch_header import read_header
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.checkpoints import read_offsets, write_offsets
from odradek.storage.files import Files
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.java_tools import why_no_java
from tests.support.lengths import only_long
from tests.support.stored_batches import stored_batches
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
    only_long("damaged logs are recovered in storage/recovering"),
]

BATCHES = 11
LIMIT_SECONDS = 100.0
VALUE_BYTES = 250_000  # four batches to a segment
SEGMENT_BYTES = 1 << 20
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
Damage = Callable[["Log"], None]


class Log:
    """The files of one partition."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, segment: int, suffix: str = ".log") -> Path:
        """A file of the first, second, last segment."""
        return sorted(self.directory.glob("*.log"))[segment].with_suffix(suffix)

    def batch_at(self, segment: int, number: int) -> int:
        """The position of a batch."""
        data, position = self.path(segment).read_bytes(), 0
        for _ in range(number):
            position += read_header(data, position).size_bytes
        return position

    def flip(self, segment: int, batch: int, byte: int) -> None:
        path = self.path(segment)
        data = bytearray(path.read_bytes())
        data[self.batch_at(segment, batch) + byte] ^= 0x10
        path.write_bytes(data)

    def append(self, data: bytes) -> None:
        with self.path(-1).open("ab") as file:
            file.write(data)


def cut_last_batch(log: Log) -> None:
    path = log.path(-1)
    path.write_bytes(path.read_bytes()[:-1000])


def lose(segment: int, *suffixes: str) -> Damage:
    def damage(log: Log) -> None:
        for suffix in suffixes:
            log.path(segment, suffix).unlink()

    return damage


def zero_snapshots(log: Log) -> None:
    for path in log.directory.glob("*.snapshot"):
        path.write_bytes(bytes(path.stat().st_size))


def odd_length(suffix: str) -> Damage:
    """An index that cannot be one."""

    def damage(log: Log) -> None:
        path = log.path(0, suffix)
        path.write_bytes(path.read_bytes() + b"?")

    return damage


UNCLEAN: dict[str, Damage] = {
    "whole": lambda log: None,
    "torn": cut_last_batch,
    "zeros-behind": lambda log: log.append(bytes(5000)),
    "garbage-behind": lambda log: log.append(b"\xa5" * 5000),
    "crc-in-the-last-segment": lambda log: log.flip(-1, 1, 5000),
    "crc-in-the-second-segment": lambda log: log.flip(1, 2, 5000),
    "crc-of-the-first-batch": lambda log: log.flip(0, 0, 5000),
    "length": lambda log: log.flip(-1, 1, 8),
    "no-offset-index": lose(0, ".index"),
    "no-time-index": lose(1, ".timeindex"),
    "no-indexes-of-the-last": lose(-1, ".index", ".timeindex"),
    "odd-offset-index": odd_length(".index"),
    "odd-time-index": odd_length(".timeindex"),
    "bad-snapshots": zero_snapshots,
    "no-epochs": lambda log: (log.directory / "leader-epoch-checkpoint").unlink(),
}
# All but the last segment were synced: recovery does not look at them.
FLUSHED: dict[str, Damage] = {
    "flushed-crc-in-the-second": lambda log: log.flip(1, 2, 5000),
    "flushed-torn": cut_last_batch,
    "flushed-crc-in-the-last": lambda log: log.flip(-1, 1, 5000),
}
CLEAN: dict[str, Damage] = {
    "clean-whole": lambda log: None,
    "clean-crc-in-the-last-segment": lambda log: log.flip(-1, 1, 5000),
    "clean-crc-in-the-second-segment": lambda log: log.flip(1, 2, 5000),
    "clean-no-offset-index": lose(0, ".index"),
    "clean-no-time-index": lose(-1, ".timeindex"),
    "clean-odd-offset-index": odd_length(".index"),
    "clean-bad-snapshots": zero_snapshots,
}


# After a clean stop Apache Kafka leaves a time index that was lost empty, and bytes after the last
# entry of an index where they are. Here the one is made again, and the others are cut off.
KNOWN_DIFFERENCES = {
    True: {
        "clean-no-time-index": ["00000000000000000008.timeindex differs"],
        "clean-odd-offset-index": ["00000000000000000000.index differs"],
    }
}


class Outcome(NamedTuple):
    """What a broker made of one topic."""

    start_offset: int
    end_offset: int
    batches: list[tuple[int, int]]  # base and last offset, as a consumer gets them
    files: dict[str, bytes | None]  # the content of those that must be equal


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> SharedDirectory:
    """Every topic is there, and the stop was clean."""
    shared = SharedDirectory(tmp_path_factory.mktemp("damaged"))
    with shared.served_by("odradek", killed=False) as broker:
        for topic in (*UNCLEAN, *FLUSHED, *CLEAN):
            create_topic(broker.bootstrap, topic, 1, {"segment.bytes": str(SEGMENT_BYTES)})
            fill(broker, topic)
    return shared


def fill(broker: BrokerProcess, topic: str) -> None:
    with WireClient(broker.port) as client:
        for n in range(BATCHES):
            records = [
                Record(key=b"%d" % n, value=bytes([n]) * VALUE_BYTES, timestamp_ms=10**12 + n)
            ]
            batch = bytes(build_batch(records, producer_id=4, producer_epoch=0, base_sequence=n))
            answer = client.ask(produce_request(topic, batch), ProduceResponse, PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == 0


def outcomes(shared: SharedDirectory, name: str, damages: dict[str, Damage]) -> Iterator[Outcome]:
    with shared.served_by(name, killed=False) as broker:
        answers = [(*offsets(broker, topic), served(broker, topic)) for topic in damages]
    for topic, (start, end, batches) in zip(damages, answers, strict=True):
        yield Outcome(start, end, batches, files(shared.data / f"{topic}-0"))


def offsets(broker: BrokerProcess, topic: str) -> tuple[int, int]:
    """Log start and log end."""
    return offset_at(broker, topic, -2), offset_at(broker, topic, -1)


def offset_at(broker: BrokerProcess, topic: str, timestamp: int) -> int:
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    topics = [ListOffsetsTopic(name=topic, partitions=wanted)]
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        with WireClient(broker.port) as client:
            answer = client.ask(request, ListOffsetsResponse, 5).topics[0].partitions[0]
        if answer.error_code == 0:
            return int(answer.offset)
        # Apache Kafka answers before it knows what it leads.
        assert time.monotonic() < deadline, (broker.name, topic, answer)
        time.sleep(0.05)


def served(broker: BrokerProcess, topic: str) -> list[tuple[int, int]]:
    return [(batch.base_offset, batch.last_offset) for batch in stored_batches(broker.port, topic)]


def files(directory: Path) -> dict[str, bytes | None]:
    """Names of all files; the content of logs and indexes."""
    equal = (".log", ".index", ".timeindex")
    return {
        path.name: path.read_bytes() if path.suffix in equal else None
        for path in directory.iterdir()
        if path.suffix != ".deleted"  # not gone yet
    }


def compare(
    written: SharedDirectory, root: Path, damages: dict[str, Damage], *, clean: bool
) -> None:
    found = {}
    for name in ("kafka", "odradek"):
        shutil.copytree(written.directory, root / name)
        shared = SharedDirectory(root / name)
        for topic, damage in damages.items():
            damage(Log(shared.data / f"{topic}-0"))
        if not clean:
            (shared.data / ".kafka_cleanshutdown").unlink()
            path = shared.data / RECOVERY_POINTS
            points = read_offsets(Files(), path)
            kept = {
                key: 8 if key[0] in FLUSHED else 0 if key[0] in UNCLEAN else point
                for key, point in points.items()
            }
            write_offsets(Files(), path, kept)
        found[name] = list(outcomes(shared, name, damages))
    differences = {
        topic: different
        for topic, kafkas, ours in zip(damages, found["kafka"], found["odradek"], strict=True)
        if (different := list(difference(kafkas, ours)))
    }
    assert differences == KNOWN_DIFFERENCES.get(clean, {})


def difference(kafkas: Outcome, ours: Outcome) -> Iterator[str]:
    for name in ("start_offset", "end_offset", "batches"):
        if getattr(kafkas, name) != getattr(ours, name):
            yield f"{name}: {getattr(kafkas, name)}, ours {getattr(ours, name)}"
    for name in sorted(kafkas.files.keys() | ours.files.keys()):
        if name not in ours.files:
            yield f"{name} is missing"
        elif name not in kafkas.files:
            yield f"{name} is not Kafka's"
        elif kafkas.files[name] != ours.files[name]:
            yield f"{name} differs"


def test_after_an_unclean_stop_the_same_is_left(written: SharedDirectory, tmp_path: Path) -> None:
    compare(written, tmp_path, {**UNCLEAN, **FLUSHED}, clean=False)


def test_after_a_clean_stop_the_same_is_left(written: SharedDirectory, tmp_path: Path) -> None:
    compare(written, tmp_path, CLEAN, clean=True)
