"""A log directory fails or is full: what clients are answered, what goes on, what comes back."""

import asyncio
import errno
import resource
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigChange,
    ConfigResource,
)
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.storage.log import PartitionLog
from tests.support.broker_in_loop import (
    PRODUCE_VERSION,
    BrokerInLoop,
    broker_in_loop,
    produce_to,
    until,
)
from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.faulty_files import FaultyFiles, below
from tests.support.log_box import batch_of
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient

PARTITIONS = 4
GIB = 1 << 30


class Disk(FaultyFiles):
    """A disk with as much free space as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.free = GIB
        self.free_files = 1000

    def free_bytes(self, directory: Path) -> int:
        return self.free

    def free_descriptors(self) -> int:
        return self.free_files


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def served(tmp_path: Path, disk: Disk) -> AsyncIterator[BrokerInLoop]:
    directories = [tmp_path / "a", tmp_path / "b"]
    async with broker_in_loop(directories, disk, odradek_min_free_bytes=str(2 << 20)) as broker:
        wish = NewTopic(name="t", partition_count=PARTITIONS)
        await broker.broker.admin.topics.create([wish])
        await broker.produce("t", batch_of(b"v"), range(PARTITIONS))
        yield broker
        disk.heal()


def logs_of(served: BrokerInLoop) -> list[PartitionLog]:
    return [served.broker.log_manager.get("t", index) for index in range(PARTITIONS)]


async def made_in_second(directories: list[Path]) -> set[int]:
    """Let a broker make the topic; return the partitions that are in the second directory."""
    async with broker_in_loop(directories, FaultyFiles()) as served:
        await served.broker.admin.topics.create([NewTopic(name="t", partition_count=PARTITIONS)])
        return {log.partition for log in logs_of(served) if log.directory.parent == directories[1]}


async def metadata(served: BrokerInLoop) -> dict[int, MetadataResponsePartition]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    answer = await served.ask(request, MetadataResponse, 12)
    return {each.partition_index: each for each in answer.topics[0].partitions}


async def fetch_code(served: BrokerInLoop, partition: int) -> int:
    request = fetch_request("t", partition, 0, 1000)
    answer = await served.ask(request, FetchResponse, FETCH_VERSION)
    code: int = answer.responses[0].partitions[0].error_code
    return code


async def list_offsets_code(served: BrokerInLoop, partition: int) -> int:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    topics = [ListOffsetsTopic(name="t", partitions=[wanted])]
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    answer = await served.ask(request, ListOffsetsResponse, 7)
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def test_a_failed_directory_takes_its_partitions_offline_and_no_others(
    served: BrokerInLoop, disk: Disk, tmp_path: Path
) -> None:
    failed = tmp_path / "b"  # the metadata log is in the other one
    disk.fail(below(failed, "write"), error=errno.EIO)
    answers = await served.produce("t", batch_of(b"w"), range(PARTITIONS))
    hurt = {log.partition for log in logs_of(served) if log.directory.parent == failed}
    assert 0 < len(hurt) < PARTITIONS
    codes = {answer.index: answer.error_code for answer in answers}
    found = await metadata(served)
    for index in range(PARTITIONS):
        error = ErrorCode.KAFKA_STORAGE_ERROR if index in hurt else ErrorCode.NONE
        assert codes[index] == error
        assert await fetch_code(served, index) == error
        assert await list_offsets_code(served, index) == error
        partition = found[index]
        if index in hurt:
            assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert (partition.leader_id, partition.offline_replicas) == (-1, [0])
        else:
            assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (
                0,
                0,
                [],
            )
    described = await served.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    by_path = {result.log_dir: result.error_code for result in described.results}
    assert by_path == {str(failed): ErrorCode.KAFKA_STORAGE_ERROR, str(tmp_path / "a"): 0}


async def test_a_fetch_that_waits_is_answered_at_once(
    served: BrokerInLoop, disk: Disk, tmp_path: Path
) -> None:
    log = next(each for each in logs_of(served) if each.directory.parent == tmp_path / "b")
    request = fetch_request("t", log.partition, log.log_end_offset, 1000, max_wait_ms=60_000)
    client = await served.send(request, FETCH_VERSION)
    await until(lambda: log.on_append)
    disk.fail(below(tmp_path / "b", "write"), error=errno.EIO)
    await served.produce("t", batch_of(b"w"), [log.partition])
    answer = await served.answer(client, FetchResponse, FETCH_VERSION)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_without_the_metadata_directory_the_broker_ends(
    served: BrokerInLoop, disk: Disk, tmp_path: Path
) -> None:
    disk.fail(below(tmp_path / "a", "write"), error=errno.EIO)
    await served.produce("t", batch_of(b"w"), range(PARTITIONS))
    reason = await served.broker.directory_failures.fatal
    assert reason.startswith(f"the metadata directory {tmp_path / 'a'} failed: ")


async def test_a_start_with_a_broken_directory_serves_the_others(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    async with broker_in_loop(directories, FaultyFiles()) as before:
        wish = NewTopic(name="t", partition_count=PARTITIONS)
        await before.broker.admin.topics.create([wish])
        await before.produce("t", batch_of(b"v"), range(PARTITIONS))
        hurt = {log.partition for log in logs_of(before) if log.directory.parent == directories[1]}
    disk = FaultyFiles()
    disk.fail(below(directories[1]))
    async with broker_in_loop(directories, disk) as served:
        found = await metadata(served)
        assert {index for index, partition in found.items() if partition.leader_id == -1} == hurt
        for index in range(PARTITIONS):
            error = ErrorCode.KAFKA_STORAGE_ERROR if index in hurt else ErrorCode.NONE
            assert await fetch_code(served, index) == error
        disk.heal()
    assert all((directories[1] / f"t-{index}").exists() for index in hurt)
    async with broker_in_loop(directories, FaultyFiles()) as healed:
        assert [await fetch_code(healed, index) for index in range(PARTITIONS)] == [0] * PARTITIONS
        assert all(log.log_end_offset == 1 for log in logs_of(healed))


async def test_a_topic_created_again_while_its_directory_was_broken_does_not_stop_the_next_start(
    tmp_path: Path,
) -> None:
    """Apache Kafka renames the logs of the former topic to -stray, too."""
    directories = [tmp_path / "a", tmp_path / "b"]
    topic = NewTopic(name="t", partition_count=PARTITIONS)
    async with broker_in_loop(directories, FaultyFiles()) as before:
        await before.broker.admin.topics.create([topic])
        await before.produce("t", batch_of(b"old"), range(PARTITIONS))
    disk = FaultyFiles()
    disk.fail(below(directories[1]))
    async with broker_in_loop(directories, disk) as served:
        await served.broker.admin.topics.delete([TopicRef("t")])
        await served.broker.admin.topics.create([topic])
        await served.produce("t", batch_of(b"new"), range(PARTITIONS))
        disk.heal()
    async with broker_in_loop(directories, FaultyFiles()) as healed:
        assert {log.directory.parent for log in logs_of(healed)} == {directories[0]}
        assert [log.log_end_offset for log in logs_of(healed)] == [1] * PARTITIONS
    assert len(list(directories[1].glob("t-*-stray"))) == PARTITIONS / 2


async def test_a_stray_log_that_cannot_be_renamed_takes_only_its_directory_offline(
    tmp_path: Path,
) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    hurt = await made_in_second(directories)
    shutil.copytree(directories[1] / f"t-{min(hurt)}", directories[1] / "gone-0")
    disk = FaultyFiles()
    disk.fail(lambda kind, path: kind == "rename" and path.name.startswith("gone-0"))
    async with broker_in_loop(directories, disk) as served:
        assert list(served.broker.log_manager.offline) == [directories[1]]
        for index in range(PARTITIONS):
            error = ErrorCode.KAFKA_STORAGE_ERROR if index in hurt else ErrorCode.NONE
            assert await fetch_code(served, index) == error
        disk.heal()


async def test_a_directory_taken_out_of_log_dirs_takes_its_partitions_offline(
    tmp_path: Path,
) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    async with broker_in_loop(directories, FaultyFiles()) as before:
        await before.broker.admin.topics.create([NewTopic(name="t", partition_count=PARTITIONS)])
        await before.produce("t", batch_of(b"v"), range(PARTITIONS))
        away = {log.partition for log in logs_of(before) if log.directory.parent == directories[1]}
    for _ in range(2):
        async with broker_in_loop(directories[:1], FaultyFiles()) as served:
            found = await metadata(served)
            assert {index for index, one in found.items() if one.leader_id == -1} == away
            for index in range(PARTITIONS):
                error = ErrorCode.KAFKA_STORAGE_ERROR if index in away else ErrorCode.NONE
                assert await fetch_code(served, index) == error
        assert not any((directories[0] / f"t-{index}").exists() for index in away)
    async with broker_in_loop(directories, FaultyFiles()) as again:
        assert [await fetch_code(again, index) for index in range(PARTITIONS)] == [0] * PARTITIONS
        assert all(log.log_end_offset == 1 for log in logs_of(again))


def registered(served: BrokerInLoop) -> set[bytes]:
    return set(served.broker.metadata.brokers[0].log_dirs)


async def test_a_failed_directory_is_recorded_and_comes_back_in_a_new_epoch(
    disk: Disk, tmp_path: Path
) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    async with broker_in_loop(directories, disk) as served:
        broker = served.broker
        await broker.admin.topics.create([NewTopic(name="t", partition_count=PARTITIONS)])
        hurt = [log.partition for log in logs_of(served) if log.directory.parent == directories[1]]
        both = registered(served)
        disk.fail(below(directories[1], "write"), error=errno.EIO)
        await served.produce("t", batch_of(b"w"), range(PARTITIONS))
        await until(lambda: len(registered(served)) == 1)
        log = broker.controller.log
        await until(lambda: log.recovery_point == log.log_end_offset)
        for index, now in broker.metadata.topics["t"].partitions.items():
            assert (now.leader, now.leader_epoch) == ((-1, 1) if index in hurt else (0, 0))
        found = await metadata(served)
        assert [index for index in sorted(found) if found[index].leader_epoch == 1] == hurt
        disk.heal()
    async with broker_in_loop(directories, disk) as again:
        assert registered(again) == both
        for index in hurt:
            led = again.broker.metadata.topics["t"].partitions[index]
            assert (led.leader, led.leader_epoch) == (0, 2)
            assert again.broker.log_manager.get("t", index).leader_epoch == 2
        assert {one.error_code for one in (await metadata(again)).values()} == {0}


async def test_a_start_with_a_broken_directory_is_recorded(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    hurt = await made_in_second(directories)
    disk = FaultyFiles()
    disk.fail(below(directories[1]))
    async with broker_in_loop(directories, disk) as served:
        assert len(registered(served)) == 1
        partitions = served.broker.metadata.topics["t"].partitions
        assert {index for index in partitions if partitions[index].leader == -1} == hurt
        disk.heal()


async def test_a_directory_that_fails_while_the_broker_starts_is_handled_too(
    tmp_path: Path,
) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    hurt = await made_in_second(directories)
    missing = min(hurt)
    shutil.rmtree(directories[1] / f"t-{missing}")  # so that it must be made again
    disk = FaultyFiles()
    disk.fail(below(directories[1] / f"t-{missing}"), error=errno.EIO)
    async with broker_in_loop(directories, disk) as served:
        await until(lambda: len(registered(served)) == 1)
        partitions = served.broker.metadata.topics["t"].partitions
        assert {index for index in partitions if partitions[index].leader == -1} == hurt
        disk.heal()


async def test_cordoned_directories_are_registered(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    settings = {"cordoned_log_dirs": str(directories[1])}
    async with broker_in_loop(directories, FaultyFiles(), **settings) as served:
        registration = served.broker.metadata.brokers[0]
        [cordoned] = registration.cordoned_log_dirs or ()
        [there] = [one for one in served.broker.log_manager.directories if one.path.name == "b"]
        assert cordoned == there.directory_id
        for text, count in (("*", 2), ("", 0)):
            change = ConfigChange("cordoned.log.dirs", AlterOperation.SET, text)
            resource = ConfigResource(ConfigResourceType.BROKER, "0")
            alteration = Alteration(resource=resource, changes=[change])
            assert await served.broker.admin.configs.alter(
                [alteration], check_authorized=lambda *_: None, validate_only=False
            ) == [None]
            registration = served.broker.metadata.brokers[0]
            assert len(registration.cordoned_log_dirs or ()) == count
            metadata_log = served.broker.controller.log
            assert metadata_log.recovery_point == metadata_log.log_end_offset


async def test_a_directory_for_the_metadata_log_alone_gets_no_partitions(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    settings = {"metadata_log_dir": str(tmp_path / "m")}
    async with broker_in_loop(directories, FaultyFiles(), **settings) as served:
        await served.broker.admin.topics.create([NewTopic(name="t", partition_count=PARTITIONS)])
        assert {log.directory.parent for log in logs_of(served)} == set(directories)
        assert len(registered(served)) == len(directories)
    # What is there all the same is served.
    (directories[1] / "t-1").rename(tmp_path / "m" / "t-1")
    async with broker_in_loop(directories, FaultyFiles(), **settings) as served:
        assert len(registered(served)) == len(directories) + 1
        assert {partition.leader_id for partition in (await metadata(served)).values()} == {0}


# --- full disks


async def code_of_produce(served: BrokerInLoop) -> set[int]:
    answers = await served.produce("t", batch_of(b"w"), range(PARTITIONS))
    return {answer.error_code for answer in answers}


async def test_below_the_minimum_of_free_space_only_produce_is_refused(
    served: BrokerInLoop, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.free = 1 << 20
    await served.broker.disk_space.check_directories()
    with disk.counting() as tried:
        await served.broker.disk_space.check_directories()
    assert tried == []  # what is left is for others
    for _ in range(3):
        assert await code_of_produce(served) == {ErrorCode.KAFKA_STORAGE_ERROR}
    lines = [each.message for each in caplog.records if "odradek.min.free.bytes" in each.message]
    assert len(lines) == 2  # one for each directory
    assert await fetch_code(served, 0) == ErrorCode.NONE
    assert served.broker.is_served("t", 0)
    await served.broker.admin.topics.create([NewTopic(name="other")])
    await served.broker.admin.topics.delete([TopicRef(name="other")])
    assert "other" not in served.broker.metadata.topics
    disk.free = GIB
    await served.broker.disk_space.check_directories()
    assert await code_of_produce(served) == {ErrorCode.NONE}
    assert [log.log_end_offset for log in logs_of(served)] == [2] * PARTITIONS


async def test_a_write_that_finds_no_space_refuses_the_next_until_there_is_some(
    served: BrokerInLoop, disk: Disk, tmp_path: Path
) -> None:
    disk.fail(below(tmp_path, "write"), error=errno.ENOSPC)
    assert await code_of_produce(served) == {ErrorCode.KAFKA_STORAGE_ERROR}
    disk.heal()
    assert await code_of_produce(served) == {ErrorCode.KAFKA_STORAGE_ERROR}  # nobody has looked
    disk.free = 1000
    await served.broker.disk_space.check_directories()
    assert await code_of_produce(served) == {ErrorCode.KAFKA_STORAGE_ERROR}
    disk.free = GIB
    await served.broker.disk_space.check_directories()
    assert await code_of_produce(served) == {ErrorCode.NONE}
    assert served.broker.log_manager.offline == {}


async def test_a_write_over_quota_refuses_the_next_until_the_quota_has_space(
    served: BrokerInLoop, disk: Disk, tmp_path: Path
) -> None:
    """The free space of the disk does not say what is left of a quota."""
    disk.fail(below(tmp_path, "write"), error=errno.EDQUOT)
    assert await code_of_produce(served) == {ErrorCode.KAFKA_STORAGE_ERROR}
    await served.broker.disk_space.check_directories()
    with disk.counting() as tried:
        assert await code_of_produce(served) == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert tried == []  # refused before anything is written
    disk.heal()
    await served.broker.disk_space.check_directories()
    assert await code_of_produce(served) == {ErrorCode.NONE}
    assert served.broker.log_manager.offline == {}
    assert not list(tmp_path.glob("*/.space-check"))  # noqa: ASYNC240 # it is removed again


@pytest.mark.parametrize("lack", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
async def test_logs_that_cannot_be_created_for_now_are_created_later(
    served: BrokerInLoop, disk: Disk, tmp_path: Path, lack: int
) -> None:
    broker = served.broker
    disk.fail(lambda kind, path: "new-" in str(path) and kind == "create", error=lack)
    await broker.admin.topics.create([NewTopic(name="new", partition_count=3)])
    assert not any(broker.is_served("new", index) for index in range(3))
    assert not list(tmp_path.glob("*/new-*"))  # noqa: ASYNC240 # nothing is left of them
    await broker.disk_space.check_directories()  # as each second
    assert not any(broker.is_served("new", index) for index in range(3))
    disk.heal()
    disk.free_files = 0
    await broker.disk_space.check_directories()
    assert not any(broker.is_served("new", index) for index in range(3))
    disk.free_files = 1000
    for _ in range(2):
        await broker.disk_space.check_directories()
    assert all(broker.is_served("new", index) for index in range(3))


async def test_a_topic_whose_log_could_not_be_created_leaves_nothing_to_the_next_of_its_name(
    served: BrokerInLoop, disk: Disk
) -> None:
    broker = served.broker
    disk.fail(lambda _, path: "new-0/leader-epoch" in str(path), error=errno.ENOSPC)
    await broker.admin.topics.create([NewTopic(name="new")])
    assert not broker.is_served("new", 0)
    await broker.admin.topics.delete([TopicRef("new")])
    disk.heal()
    await broker.admin.topics.create([NewTopic(name="new")])
    assert broker.log_manager.get("new", 0).topic_id == broker.metadata.topics["new"].id


# --- real producers


def send_by_librdkafka(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    errors: list[object] = []
    producer.produce("t", b"v", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(15)
    assert errors == [None]


def send_by_kafka_python(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send("t", b"v", partition=0).get(15)
    producer.close()


@pytest.mark.slow
@pytest.mark.parametrize("client", [send_by_librdkafka, send_by_kafka_python])
async def test_producers_keep_their_records_until_there_is_space(
    served: BrokerInLoop, disk: Disk, client: Callable[[str], None]
) -> None:
    disk.free = 1000
    await served.broker.disk_space.check_directories()
    sending = asyncio.create_task(asyncio.to_thread(client, f"127.0.0.1:{served.port}"))
    done, _ = await asyncio.wait([sending], timeout=1)
    assert not done
    assert [log.log_end_offset for log in logs_of(served)] == [1] * PARTITIONS
    disk.free = GIB
    await served.broker.disk_space.check_directories()
    await asyncio.wait_for(sending, 20)
    assert logs_of(served)[0].log_end_offset == 2


# --- the end


@pytest.mark.skipif(against_apache_kafka(), reason="odradek's own exit code")
@pytest.mark.slow
def test_without_any_directory_the_process_ends_with_one_line(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "t")
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (200_000, 200_000))  # writes fail: EFBIG
    batch = batch_of(bytes(150_000))
    codes: list[int] = []
    with WireClient(broker.port) as client:
        for _ in range(2):
            request = produce_to("t", batch)
            answer: Any = client.ask(request, ProduceResponse, PRODUCE_VERSION)
            codes.append(answer.responses[0].partition_responses[0].error_code)
    assert codes == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
    assert broker.wait_for_end() == 1
    last = broker.log_text().splitlines()[-1]
    assert f"the metadata directory {broker.data} failed: " in last
