"""Apache Kafka opens what a power cut has left, and serves the same as odradek.

A start of Kafka takes seconds. So the partitions of hundreds of images are put into one directory:
each becomes the partition of a topic of its own, with its files and its two checkpoints. Those that
are alike in several images are taken once. Some images are opened as they are, too, with their
metadata logs.
"""

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from odradek.storage.checkpoints import (
    CheckpointError,
    read_offsets,
    write_offsets,
    write_topic_id,
)
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
)
from odradek.storage.files import Files
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from odradek.storage.topic_partition import TopicPartition
from tests.conformance.exchange.seen import committed_offsets, log_of
from tests.conformance.exchange.shared_directory import ONLY_KAFKA, SharedDirectory
from tests.support.broker_process import (
    ApacheKafkaProcess,
    BrokerProcess,
    against_apache_kafka,
    running,
)
from tests.support.committed import committed_by_partition, wait_until_decided
from tests.support.java_tools import why_no_java
from tests.support.lengths import SEED, only_long
from tests.support.topics import topic_partitions
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

from .images import Image, images
from .life import FIRST, GROUP, SECOND, SMALL, SMALL_LOGS, Life

logger = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
    only_long("damaged logs are recovered as Kafka does in storage/recovering"),
]

IMAGES = 4_000
WHOLE_IMAGES = 20
SHOWN = 3
SETTINGS = {
    "log.cleaner.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
AT_ONCE = 200  # topics of one request
CHECKPOINTS = (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT)


def has_lost_bytes(name: str, data: bytes, size: int) -> bool:
    """Whether a small text file has its name, and not its bytes. odradek replaces it.

    Kafka syncs such a file before it gets its name, and does not start on it, see
    docs/compatibility/differences.md. It takes an empty list of epochs for none.
    """
    may_be_empty = {PARTITION_METADATA: False, LEADER_EPOCH_CHECKPOINT: True}.get(Path(name).name)
    return may_be_empty is not None and not data.strip(b"\0") and not (may_be_empty and not size)


class Part(NamedTuple):
    """A partition in an image. `points`: what the checkpoints say of it; None: nothing."""

    topic: str
    files: tuple[tuple[str, bytes], ...]
    points: tuple[int | None, ...]

    @property
    def has_lost_a_small_file(self) -> bool:
        return any(has_lost_bytes(name, data, len(data)) for name, data in self.files)

    def write(self, directory: Path) -> None:
        """Put the files in the place of those in `directory`."""
        shutil.rmtree(directory)
        directory.mkdir()
        for name, content in self.files:
            (directory / name).write_bytes(content)


def parts(root: Path) -> Iterator[Part]:
    """All partitions of an image that is written at `root`, but for that of the metadata."""
    for data in (root / FIRST, root / SECOND):
        points = [_offsets(data / name) for name in CHECKPOINTS]
        for directory in sorted(data.glob("*-[01]")) if data.exists() else ():
            topic, _, partition = directory.name.rpartition("-")
            if topic == "__cluster_metadata":
                continue
            key = TopicPartition(topic, int(partition))
            files = [(each.name, each.read_bytes()) for each in sorted(directory.iterdir())]
            yield Part(topic.strip("_"), tuple(files), tuple(each.get(key) for each in points))


def _offsets(path: Path) -> Mapping[TopicPartition, int]:
    with suppress(CheckpointError, FileNotFoundError):
        return read_offsets(Files(), path)
    return {}


def created(shared: SharedDirectory, names: list[str]) -> dict[str, bytes]:
    """Create topics of one partition; returns their ids."""
    configs = [CreateTopicsConfig(name=key, value=value) for key, value in SMALL.items()]
    ids: dict[str, bytes] = {}
    with shared.served_by("odradek", killed=False) as broker, WireClient(broker.port) as client:
        for start in range(0, len(names), AT_ONCE):
            topics = [
                CreateTopicsTopic(
                    name=name, num_partitions=1, replication_factor=1, assignments=[],
                    configs=configs,
                )
                for name in names[start : start + AT_ONCE]
            ]  # fmt: skip
            answer = client.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse, 7)
            assert {each.error_code for each in answer.topics} == {0}
            ids |= {each.name: each.topic_id for each in answer.topics}
    return ids


def put(data: Path, found: Mapping[str, Part], ids: Mapping[str, bytes]) -> None:
    """Make of a data directory one in which the power went, with these partitions."""
    for name, part in found.items():
        part.write(data / f"{name}-0")
        metadata = data / f"{name}-0" / PARTITION_METADATA
        if not part.has_lost_a_small_file:
            write_topic_id(Files(), metadata, ids[name], sync=False)
    for number, checkpoint in enumerate(CHECKPOINTS):
        points = {
            TopicPartition(name, 0): point
            for name, part in found.items()
            if (point := part.points[number]) is not None
        }
        write_offsets(Files(), data / checkpoint, points)
    (data / CLEAN_SHUTDOWN).unlink()


def served(shared: SharedDirectory, name: str, topics: Iterable[str]) -> dict[str, Any]:
    with shared.served_by(name, killed=False) as broker, WireClient(broker.port) as client:
        return {topic: log_of(client, topic, 0) for topic in topics}


async def left_by_a_life(scratch: Path, count: int) -> list[Image]:
    """About so many of the images of a life, spread over it."""
    root = scratch / "life"
    root.mkdir()
    life = Life(root)
    await life.run()
    found = list(images(life.files.journal))
    each = max(len(found) // count, 1)
    return found[SEED % each :: each]


async def test_kafka_serves_the_same_partitions(scratch: Path) -> None:
    sample = await left_by_a_life(scratch, IMAGES)
    distinct: dict[Part, None] = {}
    for image in sample:
        image.write(scratch / "image")
        distinct |= dict.fromkeys(parts(scratch / "image"))
        shutil.rmtree(scratch / "image")
    found = {f"{part.topic}-of-{number}": part for number, part in enumerate(distinct)}
    ours = SharedDirectory(scratch / "odradek", **SETTINGS)
    put(ours.data, found, created(ours, list(found)))
    shutil.copytree(ours.directory, scratch / "kafka")
    kafkas = SharedDirectory(scratch / "kafka", **SETTINGS)
    kafka_opens = [name for name, part in found.items() if not part.has_lost_a_small_file]
    for name in found.keys() - set(kafka_opens):
        shutil.rmtree(kafkas.data / f"{name}-0")
    told = served(ours, "odradek", found)
    logger.info("%d images, %d partitions, %d for Kafka", len(sample), len(found), len(kafka_opens))
    for one, names in ((kafkas, kafka_opens), (ours, found)):  # the second time after odradek
        kafka = served(one, "kafka", names)
        wrong = [(name, told[name], kafka[name]) for name in names if told[name] != kafka[name]]
        assert not wrong, f"{len(wrong)}: {wrong[:SHOWN]}"


# -- whole images ----------------------------------------------------------------------------------


def whole(kind: type[BrokerProcess], root: Path) -> BrokerProcess:
    """A broker, not started yet, of the data directories of an image."""
    broker = kind(root, {**SETTINGS, **ONLY_KAFKA, **SMALL_LOGS})
    broker.data = root / FIRST
    broker.settings["log.dirs"] = f"{root / FIRST},{root / SECOND}"
    broker.settings["node.id"] = "1"
    if "controller.quorum.voters" in broker.settings:
        address = broker.settings["controller.quorum.voters"].partition("@")[2]
        broker.settings["controller.quorum.voters"] = f"1@{address}"
    return broker


def is_whole(image: Image) -> bool:
    """Whether the node was registered, and no small file has lost its bytes."""
    at = f"{FIRST}/__cluster_metadata-0/"
    return any(name.startswith(at) and name.endswith(".log") for name in image.tree) and not any(
        content is not None and has_lost_bytes(name, content.data, content.size)
        for name, content in image.tree.items()
    )


def told_by(kind: type[BrokerProcess], root: Path) -> tuple[object, ...]:
    """The committed records of all topics, and the offsets of the group."""
    with running(whole(kind, root)) as broker:
        topics = topic_partitions(broker.bootstrap)
        counts = {topic: count for topic, count in topics.items() if not topic.startswith("__")}
        for topic, count in counts.items():
            wait_until_decided(broker.bootstrap, topic, count)
        keys = [(topic, each) for topic, count in counts.items() for each in range(count)]
        offsets: object = None
        if CONSUMER_OFFSETS_TOPIC in topics:
            wait_until(lambda: has_coordinator(broker))
            with WireClient(broker.port) as client:
                offsets = committed_offsets(client, GROUP)
        return committed_by_partition(broker.bootstrap, keys) if keys else {}, offsets


def has_coordinator(broker: BrokerProcess) -> bool:
    """Whether the group's offsets are loaded."""
    groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=None)]
    with WireClient(broker.port) as client:
        answer = client.ask(OffsetFetchRequest(groups=groups), OffsetFetchResponse, 8)
    return answer.groups[0].error_code == ErrorCode.NONE


async def test_kafka_serves_the_same_of_a_whole_image(scratch: Path) -> None:
    sample = await left_by_a_life(scratch, WHOLE_IMAGES)
    opened = 0
    for image in filter(is_whole, sample):
        image.write(scratch / "odradek")
        image.write(scratch / "kafka")
        ours = told_by(BrokerProcess, scratch / "odradek")
        kafka = told_by(ApacheKafkaProcess, scratch / "kafka")
        assert ours == kafka, f"after entry {image.at}, {image.what}"
        opened += 1
        for name in ("odradek", "kafka"):
            shutil.rmtree(scratch / name)
    logger.info("%d images", opened)
    assert opened > WHOLE_IMAGES // 2
