"""Apache Kafka and odradek serve one data directory in turn, and each finds what the other left.

Each turn begins with a look at everything that clients can see, which must be what the turn before
ended with; then it writes on; then it ends, cleanly or by SIGKILL.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from odradek.coordinator.metadata.metadata_snapshot import read_snapshot
from odradek.coordinator.runtime.journal import stored_records
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.records.cluster_metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from odradek.storage.filenames import parse_metadata_snapshot_file
from odradek.storage.files import Files
from tests.conformance.exchange.first_turn import kept
from tests.conformance.exchange.history import History
from tests.conformance.exchange.seen import seen
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.java_tools import java_tools_of
from tests.support.kafka_jars import BROKER_VERSION, PREVIOUS_BROKER_VERSION
from tests.support.lengths import by_length
from tests.support.metadata_images import kafkas_images
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]

# A topic and its partitions are one; see MetadataImage.write.
ORDER = [
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    ConfigRecord,
    ClientQuotaRecord,
    ProducerIdsRecord,
    AccessControlEntryRecord,
    UserScramCredentialRecord,
]
CLEAN, KILLED = False, True
VERSIONS = [PREVIOUS_BROKER_VERSION, BROKER_VERSION]
KAFKA_FIRST = [("kafka", CLEAN), ("odradek", KILLED), ("kafka", KILLED), ("odradek", CLEAN)]
SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "500"}
ODRADEK_FIRST = [("odradek", CLEAN), ("kafka", CLEAN), ("odradek", KILLED)]
MORE = [
    ("kafka", CLEAN),
    ("odradek", CLEAN),
    ("odradek", KILLED),
    ("kafka", KILLED),
    ("odradek", KILLED),
    ("odradek", CLEAN),
    ("kafka", CLEAN),
]
# By the release with whose metadata.version (29 to 33) the directory is formatted.
UP = [PREVIOUS_BROKER_VERSION, "odradek", BROKER_VERSION, "odradek"]
DOWN = [BROKER_VERSION, "odradek", PREVIOUS_BROKER_VERSION, "odradek"]
OURS = ["odradek", PREVIOUS_BROKER_VERSION, BROKER_VERSION, "odradek"]
NEWER = [BROKER_VERSION, "odradek", BROKER_VERSION, "odradek"]
MATRIX = [
    *((release, way) for release in ("4.2", "4.3") for way in (UP, DOWN, OURS)),
    *((release, way) for release in ("4.4-IV0", "4.4-IV1", "4.4") for way in (NEWER, NEWER[1:])),
]
WAYS = by_length([("4.3", UP)], MATRIX)


@pytest.mark.parametrize("kafka_version", by_length([BROKER_VERSION], VERSIONS))
@pytest.mark.parametrize(
    "turns", by_length([ODRADEK_FIRST], [KAFKA_FIRST, ODRADEK_FIRST]), ids=lambda turns: turns[0][0]
)
def test_each_finds_what_the_other_left(
    turns: list[tuple[str, bool]], kafka_version: str, tmp_path: Path
) -> None:
    shared = SharedDirectory(tmp_path, kafka_version=kafka_version, **SETTINGS)
    take_turns(shared, [*turns, *by_length([], MORE)])
    check_snapshots(shared.metadata, kafka_version)


@pytest.mark.parametrize(("release", "names"), WAYS)
@pytest.mark.parametrize("killed", by_length([KILLED], [CLEAN, KILLED]))
def test_two_releases_of_kafka_and_odradek_find_what_was_left(
    release: str, names: list[str], killed: bool, tmp_path: Path
) -> None:
    shared = SharedDirectory(tmp_path, **SETTINGS)
    first = shared.odradek() if names[0] == "odradek" else shared.kafka(names[0])
    first.format("--release-version", release)
    take_turns(shared, [(name, killed) for name in names])
    check_snapshots(shared.metadata, BROKER_VERSION)


def take_turns(shared: SharedDirectory, turns: Sequence[tuple[str, bool]]) -> None:
    """Each broker finds what those before have left, and writes; `True`: then it is killed."""
    history = History(shared.data)
    left: dict[str, Any] = {}
    stays: dict[str, Any] = {}
    for name, killed in turns:
        snapshots = set(shared.metadata.glob("*.checkpoint"))
        with shared.served_by(name, killed=killed) as broker:
            if left:
                same(left, seen(broker.port, history.groups, history.classic))
                same(stays, kept(broker.port))
            history.write(broker)
            assert committed_values(broker.bootstrap) == history.decided
            left = seen(broker.port, history.groups, history.classic)
            stays = stays or kept(broker.port)
            wait_until(lambda old=snapshots: set(shared.metadata.glob("*.checkpoint")) > old)


def same(expected: Any, found: Any, where: str = "") -> None:
    """Compare, and name the place where something differs."""
    if isinstance(expected, dict):
        assert expected.keys() == found.keys(), where
        for key, value in expected.items():
            same(value, found[key], f"{where}/{key}")
    else:
        assert expected == found, where


def committed_values(bootstrap: str) -> list[str]:
    """What a real read_committed consumer gets of the topic `transactional`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reads-no-group",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition("transactional", 0, 0)])
    values = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        values.append(message.value().decode())
    assert message is not None, "no end of the partition"
    consumer.close()
    return values


def check_snapshots(directory: Path, kafka_version: str) -> None:
    """Each snapshot, whoever wrote it, says what Kafka reads in the log up to it."""
    log = directory / "00000000000000000000.log"
    jobs = []
    for path in sorted(directory.glob("*.checkpoint")):
        name = parse_metadata_snapshot_file(path.name)
        assert name is not None
        if name.end_offset > 0:  # not that of the first voters
            jobs += [str(path), f"{log}@{name.end_offset}"]
            assert_kafkas_order(path)
    images = kafkas_images(jobs, java_tools_of(kafka_version))
    for told, logged in zip(images[::2], images[1::2], strict=True):
        assert Counter(told) == Counter(logged)


def assert_kafkas_order(path: Path) -> None:
    """The records of a snapshot come in the order in which Kafka writes them."""
    batches = read_snapshot(Files(), path)
    records = stored_records(batches, MetadataRecordCodec.of_cluster(), str(path))
    values = [record.value for record, _ in records if type(record.value) is not PartitionRecord]
    kinds = [ORDER.index(type(value)) for value in values]
    assert kinds == sorted(kinds)
