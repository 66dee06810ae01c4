"""The broker writes snapshots of its metadata while it goes on, as its configuration says."""

import asyncio
import errno
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.startup.startup import metadata_log_config
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.storage.files import Files
from odradek.storage.metadata_snapshots import snapshots_in
from tests.support.faulty_files import FaultyFiles

EAGER = {"metadata.log.max.record.bytes.between.snapshots": "1"}


def opened(data: Path, settings: dict[str, str], files: Files | None = None) -> Broker:
    texts = {"log.dirs": str(data), "listeners": "PLAINTEXT://localhost:9092", **settings}
    loop = asyncio.get_running_loop()
    return Broker(BrokerConfig.from_texts(texts), loop, {"PLAINTEXT": 9092}, files=files)


async def test_a_snapshot_tells_what_was_there_when_it_was_begun(tmp_path: Path) -> None:
    broker = opened(tmp_path, EAGER)
    names = [f"before-{number}" for number in range(120)]  # more records than one piece
    await broker.admin.topics.create([NewTopic(name=name) for name in names])
    end_offset = broker.controller.log.log_end_offset
    writing = asyncio.ensure_future(broker.metadata_log.snapshots.write_if_due())
    await asyncio.sleep(0)
    await broker.admin.topics.create([NewTopic(name="meanwhile")])
    await writing
    newest = snapshots_in(Files(), broker.controller.log.directory)[-1]
    assert newest == (end_offset, broker.controller.log.leader_epoch)
    await broker.close()
    again = opened(tmp_path, {})
    assert list(again.metadata.topics) == [*names, "meanwhile"]
    await again.close()


async def test_without_anything_new_no_other_snapshot_is_written(tmp_path: Path) -> None:
    broker = opened(tmp_path, EAGER)
    for _ in range(2):
        await broker.metadata_log.snapshots.write_if_due()
        assert len(snapshots_in(Files(), broker.controller.log.directory)) == 2  # the first voters
    await broker.close()


async def test_old_snapshots_go_by_the_configuration(tmp_path: Path) -> None:
    broker = opened(tmp_path, {**EAGER, "metadata.max.retention.bytes": "1"})
    for name in ("a", "b"):
        await broker.admin.topics.create([NewTopic(name=name)])
        await broker.metadata_log.snapshots.write_if_due()
    await broker.metadata_log.snapshots.clean()
    [kept] = snapshots_in(Files(), broker.controller.log.directory)
    assert broker.controller.log.log_start_offset == kept.end_offset
    await broker.close()
    again = opened(tmp_path, {})
    assert list(again.metadata.topics) == ["a", "b"]
    await again.close()


@pytest.mark.parametrize(
    ("code", "is_fatal"), [(errno.EIO, True), (errno.ENOSPC, False), (errno.EMFILE, False)]
)
async def test_an_error_of_the_disk_ends_the_broker_and_a_full_disk_does_not(
    tmp_path: Path, *, code: int, is_fatal: bool
) -> None:
    """The name of a snapshot that did not sync may be lost, and the log before it is deleted."""
    files = FaultyFiles()
    broker = opened(tmp_path, EAGER, files)
    await broker.admin.topics.create([NewTopic(name="a")])
    files.fail(lambda kind, path: kind == "write" and ".checkpoint" in path.name, error=code)
    await broker.metadata_log.snapshots.write_if_due()
    files.heal()
    await asyncio.sleep(0)
    assert broker.controller.log.is_online is not is_fatal
    assert broker.directory_failures.fatal.done() is is_fatal
    await broker.close()


@pytest.mark.parametrize(
    ("key", "value", "attribute", "found"),
    [
        ("metadata.log.segment.bytes", "8388608", "segment_size_bytes", 8388608),
        ("internal.metadata.log.segment.bytes", "700", "segment_size_bytes", 700),
        ("metadata.log.segment.ms", "7000", "max_segment_ms", 7000),
        ("internal.metadata.max.batch.size.in.bytes", "9000", "max_message_bytes", 9000),
        # What topics inherit is not for the metadata log.
        ("log.cleanup.policy", "compact", "delete", True),
        ("log.message.timestamp.type", "LogAppendTime", "message_timestamp_type", "CreateTime"),
        ("log.retention.ms", "1", "retention_ms", -1),
        ("compression.type", "zstd", "compression_type", "producer"),
    ],
)
def test_the_metadata_log_has_keys_of_its_own(
    key: str, value: str, attribute: str, found: object
) -> None:
    config = BrokerConfig.from_texts({"listeners": "PLAINTEXT://localhost:9092", key: value})
    assert getattr(metadata_log_config(config), attribute) == found
