"""Directories that odradek must not serve are refused in one line, and are not written to."""

import asyncio
import errno
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.startup.preflight import RefusedToStartError
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.coordinator.metadata.quorum_state import QuorumState
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from odradek.protocol.schema import Message
from odradek.storage.data_directory import DirectoryError
from odradek.storage.log import AppendOrigin
from odradek.storage.log_reader import LogReader
from tests.support.faulty_files import FaultyFiles, anything
from tests.support.metadata_logs import metadata_log

CODEC = MetadataRecordCodec.of_cluster()
NODE = 3
METADATA = "__cluster_metadata-0"
NEW_TOPIC = bytes(15) + b"\x77"


def config_of(data: Path, **settings: str) -> BrokerConfig:
    texts = {"node.id": str(NODE), "log.dirs": str(data), "listeners": "PLAINTEXT://:0"}
    return BrokerConfig.from_texts(texts | {k.replace("_", "."): v for k, v in settings.items()})


def open_broker(config: BrokerConfig, files: FaultyFiles | None = None) -> Broker:
    return Broker(config, asyncio.get_running_loop(), {"PLAINTEXT": 9092}, files=files)


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A directory that a broker has served and closed."""
    data = tmp_path / "data"
    broker = open_broker(config_of(data))
    await broker.admin.topics.create([NewTopic(name="orders")])
    await broker.close()
    return data


def append(data: Path, *messages: Message) -> None:
    """Records at the end of the metadata log, as a broker would have left them."""
    log = metadata_log(data, clean=True)
    records = [Record(*CODEC.encode(JournalRecord(message)), 0) for message in messages]
    log.append(build_batch(records), now_ms=0, origin=AppendOrigin.COORDINATOR)
    log.close(0)


def fingerprint(directory: Path) -> dict[str, tuple[str, int]]:
    """Of every file its content and when it was written."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns if path.is_file() else 0,
        )
        for path in sorted(directory.rglob("*"))
    }


def other_broker(data: Path) -> None:
    record = RegisterBrokerRecord(
        broker_id=4, incarnation_id=NEW_TOPIC, broker_epoch=9, end_points=[], features=[], rack=None
    )
    append(data, record)  # fenced, as one that is gone


def other_replica(data: Path) -> None:
    partition = PartitionRecord(
        partition_id=0,
        topic_id=NEW_TOPIC,
        replicas=[NODE, 4],
        isr=[NODE],
        removing_replicas=[],
        adding_replicas=[],
        leader=NODE,
        leader_epoch=0,
        partition_epoch=0,
    )
    append(data, TopicRecord(name="spread", topic_id=NEW_TOPIC), partition)


def newer_metadata(data: Path) -> None:
    append(data, FeatureLevelRecord(name="metadata.version", feature_level=34))


def tiered_topic(data: Path) -> None:
    record = ConfigRecord(
        resource_type=2, resource_name="orders", name="remote.storage.enable", value="true"
    )
    append(data, record)


def tiered_metadata(data: Path) -> None:
    append(data, TopicRecord(name="__remote_log_metadata", topic_id=NEW_TOPIC))


def other_voters(data: Path) -> None:
    """A static quorum of three: the form without a snapshot of the first voters."""
    metadata = data / METADATA
    for path in metadata.iterdir():
        path.unlink()
    append(data, FeatureLevelRecord(name="metadata.version", feature_level=30))
    state = QuorumState(leader_id=NODE, leader_epoch=5, voters=(NODE, 4, 5))
    (metadata / "quorum-state").write_text(state.to_json())


def another_directory(data: Path) -> None:
    """A copy of the directory of another node: the voter is in another directory."""
    meta = data / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("directory.id")]
    meta.write_text("\n".join([*lines, "directory.id=AAAAAAAAAAAAAAAAAAAAdw"]) + "\n")


def broken_quorum_state(data: Path) -> None:
    (data / METADATA / "quorum-state").write_text("{")


def broken_log(data: Path) -> None:
    log = data / METADATA / f"{0:020d}.log"
    content = log.read_bytes()
    log.write_bytes(content[:70] + bytes([content[70] ^ 1]) + content[71:])


def broken_snapshot(data: Path) -> None:
    path = data / METADATA / f"{0:020d}-{0:010d}.checkpoint"
    path.write_bytes(path.read_bytes()[:-1])


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "another broker": (other_broker, r"broker 4 is registered besides this node \(3\)"),
    "a replica elsewhere": (other_replica, r"spread-0 has replicas on \[3, 4\]"),
    "a newer metadata.version": (newer_metadata, r"version 34 is not served: .* knows 7 to 33\."),
    "a tiered topic": (tiered_topic, r"topic orders has remote\.storage\.enable=true"),
    "tiered metadata": (tiered_metadata, "__remote_log_metadata exists: tiered storage"),
    "other voters": (other_voters, r"the quorum's voters are \[3, 4, 5\], not \[3\]"),
    "another directory": (another_directory, "this is 3 in directory AAAAAAAAAAAAAAAAAAAAdw"),
    "a broken quorum-state": (broken_quorum_state, "quorum-state: "),
    "a broken log": (broken_log, "__cluster_metadata-0: "),
    "a broken snapshot": (broken_snapshot, r"0000000000\.checkpoint: .* is cut short"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_must_not_be_served_is_refused_and_not_touched(case: str, data: Path) -> None:
    spoil, reason = REFUSED[case]
    spoil(data)
    (data / ".lock").touch()  # left by a process that was killed
    before = fingerprint(data)
    with pytest.raises(RefusedToStartError, match=reason) as refused:
        open_broker(config_of(data))
    assert "\n" not in str(refused.value)
    assert str(data / METADATA) in str(refused.value)
    assert fingerprint(data) == before


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"node_id": "4"}, r"meta\.properties: node\.id is 3, the configuration says 4"),
        ({"remote_log_storage_system_enable": "true"}, "tiered storage is not supported"),
        ({"log_dirs": "{data}-2,{data}"}, "the metadata log is in .*data/__cluster_metadata-0"),
        ({"metadata_log_dir": "{data}-2"}, "not in the configured metadata directory .*data-2"),
    ],
)
async def test_a_configuration_that_does_not_fit_the_directory_changes_nothing(
    settings: dict[str, str], reason: str, data: Path
) -> None:
    before = fingerprint(data)
    texts = {name: text.format(data=data) for name, text in settings.items()}
    with pytest.raises((RefusedToStartError, DirectoryError), match=reason):
        open_broker(config_of(data, **texts))
    assert fingerprint(data) == before


async def test_a_directory_that_was_refused_is_served_once_the_reason_is_gone(data: Path) -> None:
    metadata = data / METADATA / f"{0:020d}.log"
    sound = metadata.read_bytes()
    broken_log(data)
    with pytest.raises(RefusedToStartError):
        open_broker(config_of(data))
    metadata.write_bytes(sound)
    broker = open_broker(config_of(data))
    assert list(broker.metadata.topics) == ["orders"]
    await broker.close()


@pytest.fixture
async def two(tmp_path: Path) -> list[Path]:
    """Directories that a broker has served together; the metadata log is in the first."""
    directories = [tmp_path / "first", tmp_path / "second"]
    broker = open_broker(config_of(tmp_path, log_dirs=",".join(map(str, directories))))
    await broker.admin.topics.create([NewTopic(name="orders", partition_count=4)])
    await broker.close()
    return directories


def without_metadata(two: list[Path]) -> dict[str, str]:
    return {"log_dirs": str(two[1])}


def with_a_new_first_directory(two: list[Path]) -> dict[str, str]:
    return {"log_dirs": f"{two[0].with_name('new')},{two[1]}"}


def with_another_metadata_directory(two: list[Path]) -> dict[str, str]:
    return {"log_dirs": str(two[1]), "metadata_log_dir": str(two[0].with_name("new"))}


def with_a_metadata_log_that_was_deleted(two: list[Path]) -> dict[str, str]:
    shutil.rmtree(two[0] / METADATA)
    return {"log_dirs": ",".join(map(str, two))}


def with_a_metadata_log_that_has_no_records(two: list[Path]) -> dict[str, str]:
    """As `kafka-storage format --standalone` leaves it."""
    for path in (two[0] / METADATA).iterdir():
        if path.name != f"{0:020d}-{0:010d}.checkpoint":
            path.unlink()
    return {"log_dirs": ",".join(map(str, two))}


@pytest.mark.parametrize(
    "change",
    [
        without_metadata,
        with_a_new_first_directory,
        with_another_metadata_directory,
        with_a_metadata_log_that_was_deleted,
        with_a_metadata_log_that_has_no_records,
    ],
)
async def test_no_cluster_begins_beside_partitions_of_another(
    change: Callable[[list[Path]], dict[str, str]], two: list[Path]
) -> None:
    settings = change(two)
    before = [fingerprint(directory) for directory in two]
    with pytest.raises(
        RefusedToStartError, match=r"holds partitions \(orders-\d, orders-\d\).* no metadata log"
    ) as error:
        open_broker(config_of(two[0], **settings))
    assert "\n" not in str(error.value)
    assert [fingerprint(directory) for directory in two] == before


async def test_a_partition_in_two_directories_is_refused_at_each_start(
    two: list[Path], tmp_path: Path
) -> None:
    log = next(two[0].glob("orders-*"))
    shutil.copytree(log, two[1] / log.name)
    for number in range(2):
        with pytest.raises(DirectoryError, match=f"{log.name} is in .*: remove one"):
            open_broker(config_of(two[0], log_dirs=",".join(map(str, two))))
        # Copies, because the locks are held until the process that could not start has ended.
        two = [shutil.copytree(path, tmp_path / f"{path.name}-{number}") for path in two]
    shutil.rmtree(two[1] / log.name)
    broker = open_broker(config_of(two[0], log_dirs=",".join(map(str, two))))
    assert broker.log_manager.get("orders", int(log.name[-1])).directory == two[0] / log.name
    await broker.close()


async def test_a_start_that_is_refused_by_its_settings_is_no_unclean_stop(data: Path) -> None:
    settings = {"listeners": "SSL://:0", "security_inter_broker_protocol": "SSL"}
    with pytest.raises(ConfigError):
        open_broker(config_of(data, ssl_keystore_location="/missing", **settings))
    assert (data / ".kafka_cleanshutdown").exists()


async def test_strays_do_not_keep_a_new_cluster_from_its_first_start(two: list[Path]) -> None:
    for path in two[1].glob("orders-*"):
        path.rename(path.with_name(f"{path.name}.{'0' * 32}-stray"))
    broker = open_broker(config_of(two[1]))
    assert not broker.metadata.topics
    await broker.close()


async def test_a_torn_end_after_a_crash_is_no_reason_to_refuse(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    with (data / METADATA / f"{0:020d}.log").open("ab") as file:
        file.write(b"\x00" * 7 + b"torn")
    broker = open_broker(config_of(data))
    assert list(broker.metadata.topics) == ["orders"]
    await broker.close()


async def test_after_a_power_cut_the_metadata_log_ends_where_records_are_missing(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    config = config_of(data, internal_metadata_log_segment_bytes="1000")
    broker = open_broker(config)
    for name in ("first", "second", "third", "fourth"):
        await broker.admin.topics.create([NewTopic(name=name)])
    await broker.close()
    (data / ".kafka_cleanshutdown").unlink()
    cut, later = sorted((data / METADATA).glob("*.log"))
    headers = [header for header, _ in LogReader(data / METADATA).batches(0)]
    [last] = [header for header in headers if header.next_offset == int(later.stem)]
    with cut.open("r+b") as file:
        file.truncate(cut.stat().st_size - last.size_bytes)
    broker = open_broker(config)
    assert not broker.metadata.topics
    await broker.close()


@pytest.mark.slow
async def test_a_disk_that_fails_while_the_broker_starts_is_named_and_nothing_is_lost(
    data: Path, tmp_path: Path
) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    disk = FaultyFiles()
    with disk.counting() as seen:
        broker = open_broker(config_of(shutil.copytree(data, tmp_path / "counted")), disk)
        changes = sum(anything(*operation) for operation in seen)
    await broker.close()
    for number in range(changes):
        failed = shutil.copytree(data, tmp_path / f"failed-{number}")
        disk = FaultyFiles()
        disk.fail(anything, at=number, error=(errno.ENOSPC, errno.EIO)[number % 2])
        with pytest.raises(DirectoryError, match=str(failed)):
            open_broker(config_of(failed), disk)
        # A copy, because the lock is held until the process that could not start has ended.
        broker = open_broker(config_of(shutil.copytree(failed, tmp_path / f"healed-{number}")))
        assert list(broker.metadata.topics) == ["orders"]
        await broker.close()


async def test_a_metadata_directory_that_cannot_be_listed_is_refused_in_one_line(
    data: Path, tmp_path: Path
) -> None:
    files = FaultyFiles()
    files.fail(lambda kind, path: kind == "read" and path.name == METADATA, at=1000)
    broker = open_broker(config_of(data), files)
    lists = [path for kind, path in files.seen if kind == "read"]
    await broker.close()
    assert lists
    for at in range(len(lists)):
        copy = tmp_path / f"at-{at}"  # one that could not start holds its locks
        shutil.copytree(data, copy)
        files.fail(lambda kind, path: kind == "read" and path.name == METADATA, at=at)
        with pytest.raises(DirectoryError, match="Input/output error"):
            open_broker(config_of(copy), files)
