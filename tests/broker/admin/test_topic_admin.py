"""Topics come and go: the metadata log, the logs on disk, the fsync between them and the answer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from odradek.broker.admin.operations import Operations
from odradek.broker.admin.recent_deletions import KEPT_MS
from odradek.broker.admin.topic_admin import TopicAdmin
from odradek.broker.admin.topic_logs import TopicLogs
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.disk.log_sync import LogSync, LogSyncs
from odradek.broker.fetching.fetch_waiters import FetchWaiters
from odradek.broker.turns.full_collections import FullCollections
from odradek.broker.turns.large_turns import LargeTurns
from odradek.broker.turns.slices import SliceRunner, Surroundings
from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.kraft_log import open_kraft_log
from odradek.coordinator.metadata.metadata_format import format_metadata
from odradek.coordinator.metadata.quorum import QuorumMember
from odradek.coordinator.metadata.record_limit import MAX_RECORDS
from odradek.coordinator.metadata.topic_creation import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    unlimited,
)
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.coordinator.metadata.topic_settings import topic_rules
from odradek.coordinator.metadata.topics import Topic
from odradek.coordinator.runtime.steps import Step
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import METADATA_TOPIC_ID
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from odradek.storage.topic_partition import TopicPartition
from tests.support.broker_in_loop import until
from tests.support.cleaner_rig import idle_cleaner
from tests.support.faulty_files import FaultyFiles
from tests.support.log_box import put
from tests.support.partition_logs import UnsyncedFiles
from tests.support.timer import Timer

pytestmark = pytest.mark.usefixtures("both_produce_paths")

NOW_MS = 1_700_000_000_000


class SlowDisk(LogSync):
    """A sync that ends when the test says so."""

    def __init__(self, controller: Controller, syncs: LogSyncs) -> None:
        super().__init__(controller.log, syncs.flush)
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def sync(self) -> None:
        await self.may_end.wait()
        await super().sync()


class Rig:
    """A topic admin with a real controller and log manager, in a directory."""

    def __init__(self, directory: Path, files: Files, **texts: str) -> None:
        settings = {"log.dirs": str(directory), "num.partitions": "2"}
        settings |= {name.replace("_", "."): value for name, value in texts.items()}
        self.config = BrokerConfig.from_texts(settings)
        self.log_manager = LogManager.open(self.config, files=files, timer_ms=Timer())
        home = self.log_manager.directories[0]
        me = QuorumMember(
            node_id=self.config.node_id,
            directory_id=home.directory_id,
            endpoint=Endpoint("CONTROLLER", "localhost", 9093),
        )
        format_metadata(files, directory, me, now_ms=NOW_MS)
        metadata_log = self.log_manager.open_metadata_log(
            METADATA_TOPIC_ID, self.config.stored_topic_config({}), now_ms=NOW_MS
        )
        kraft = open_kraft_log(metadata_log, files, self.log_manager.cluster_id, me, now_ms=NOW_MS)
        directories = [home.directory_id]
        rules = topic_rules(self.config, self.config.node_id, directories)
        self.controller = Controller(kraft, lambda: rules)
        self.controller.register_broker(
            incarnation_id=bytes(16),
            endpoints=[],
            directories=directories,
            rack=None,
            now_ms=NOW_MS,
        )
        self.metadata = kraft.metadata
        self.disk = DiskExecutor(asyncio.get_running_loop())
        self.sync = SlowDisk(self.controller, LogSyncs(self.log_manager, self.disk, lambda: NOW_MS))
        self.timer_ms = 0
        self.come: list[Topic] = []
        self.gone: list[Topic] = []
        self.deletions = 0
        self.parsed: list[str] = []
        self.log_cleaner = idle_cleaner(self.log_manager, lambda: self.config, files, self.disk)
        self.enlarged: list[tuple[str, list[int]]] = []
        loop = asyncio.get_running_loop()
        runner = SliceRunner(
            LargeTurns(loop), Surroundings(lambda _: None, lambda: None), FullCollections()
        )
        self.operations = Operations(loop, runner)
        self.admin = TopicAdmin(
            config=self.config,
            operations=self.operations,
            controller=self.controller,
            metadata_sync=self.sync,
            topic_logs=TopicLogs(
                log_manager=self.log_manager,
                disk=self.disk,
                node_id=self.config.node_id,
                config_of=self._config_of,
                on_deleted=self._deleted,
            ),
            log_cleaner=self.log_cleaner,
            on_created=self.come.append,
            on_enlarged=lambda topic, added: self.enlarged.append((topic.name, list(added))),
            now_ms=lambda: NOW_MS,
            timer_ms=lambda: self.timer_ms,
        )

    def _config_of(self, name: str) -> TopicConfig:
        self.parsed.append(name)
        return self.config.stored_topic_config(self.metadata.configs.of_topic(name))

    def _deleted(self, topics: Sequence[Topic]) -> None:
        self.gone += topics
        self.deletions += 1

    def close(self) -> None:
        self.disk.close()
        self.log_manager.close(now_ms=NOW_MS)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path / "data", UnsyncedFiles())
    yield made
    made.close()


def code_of(result: object) -> ErrorCode | None:
    return result.code if isinstance(result, ApiError) else None


async def test_a_topic_its_logs_and_its_records_are_on_disk_before_the_answer(rig: Rig) -> None:
    results = await rig.admin.create([NewTopic(name="t", partition_count=3)])
    topic = rig.metadata.topics["t"]
    assert results == {
        "t": CreatedTopic(name="t", topic_id=topic.id, partition_count=3, replication_factor=1)
    }
    assert [rig.log_manager.get("t", index).topic_id for index in range(3)] == [topic.id] * 3
    assert rig.come == [topic]
    assert rig.controller.log.recovery_point == rig.controller.log.log_end_offset


async def test_the_answer_waits_for_the_disk_but_the_topic_does_not(rig: Rig) -> None:
    rig.sync.may_end.clear()
    creation = asyncio.ensure_future(rig.admin.create([NewTopic(name="t")]))
    await until(lambda: rig.come)
    assert rig.log_manager.get("t", 1).log_end_offset == 0
    assert not creation.done()
    rig.sync.may_end.set()
    await creation


async def test_a_topic_is_created_with_its_overrides(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t", configs={"retention.ms": "1000"})])
    assert rig.log_manager.get("t", 0).config.retention_ms == 1000


async def test_the_overrides_of_a_topic_are_not_parsed_for_each_partition(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t", partition_count=30), NewTopic(name="u")])
    assert sorted(rig.parsed) == ["t", "t", "u", "u"]  # before and after its logs are created


async def test_validation_changes_nothing(rig: Rig) -> None:
    end = rig.controller.log.log_end_offset
    results = await rig.admin.create([NewTopic(name="t")], validate_only=True)
    assert isinstance(results["t"], CreatedTopic)
    assert "t" not in rig.metadata.topics
    assert rig.log_manager.find("t", 0) is None
    assert rig.controller.log.log_end_offset == end


async def test_an_illegal_config_is_refused_and_the_other_topics_are_created(rig: Rig) -> None:
    bad = NewTopic(name="bad", configs={"retention.ms": "soon"})
    results = await rig.admin.create([bad, NewTopic(name="good")])
    assert code_of(results["bad"]) is ErrorCode.INVALID_CONFIG
    assert "good" in rig.metadata.topics
    assert "bad" not in rig.metadata.topics


async def test_clients_that_name_the_same_topic_at_once_all_get_it(rig: Rig) -> None:
    rig.sync.may_end.clear()
    races = [asyncio.ensure_future(rig.admin.create_automatically(["t"])) for _ in range(5)]
    await asyncio.sleep(0)
    assert not any(race.done() for race in races)  # who was slower must not answer sooner
    rig.sync.may_end.set()
    assert await asyncio.gather(*races) == [{}] * 5
    assert len(rig.metadata.topics["t"].partitions) == 2


async def test_a_client_does_not_create_a_topic_that_an_administrator_deletes(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t")])

    async def create_for_client() -> list[ErrorCode]:
        errors = await rig.admin.create_for_client(["t"], unlimited)
        return [error.code for error in errors.values()]

    rig.sync.may_end.clear()
    deletion = asyncio.ensure_future(rig.admin.delete([TopicRef("t")]))
    await until(lambda: "t" not in rig.metadata.topics)
    unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    rig.timer_ms = 10 * KEPT_MS
    assert await create_for_client() == unknown  # before the deletion is answered
    rig.sync.may_end.set()
    await deletion
    rig.timer_ms += KEPT_MS - 1
    assert await create_for_client() == unknown
    await rig.admin.create([NewTopic(name="t", partition_count=7)])
    assert len(rig.metadata.topics["t"].partitions) == 7


async def test_a_client_creates_a_deleted_topic_after_a_moment(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t")])
    await rig.admin.delete([TopicRef("t")])
    assert "t" not in rig.metadata.topics
    rig.timer_ms += KEPT_MS
    assert await rig.admin.create_for_client(["t", "other"], unlimited) == {}
    assert sorted(rig.metadata.topics) == ["other", "t"]


async def test_more_names_than_one_operation_can_create_are_all_refused(rig: Rig) -> None:
    names = [f"t{number}" for number in range(MAX_RECORDS // 2 + 1)]  # each needs two records
    errors = await rig.admin.create_automatically(names)
    assert list(errors) == names
    assert {error.code for error in errors.values()} == {ErrorCode.POLICY_VIOLATION}
    assert not rig.come


async def test_names_that_cannot_be_topics_are_refused_one_by_one(rig: Rig) -> None:
    errors = await rig.admin.create_automatically(["a b", "fine"])
    assert {name: error.code for name, error in errors.items()} == {
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert list(rig.metadata.topics) == ["fine"]


async def test_the_offsets_topic_is_created_whole_and_once(rig: Rig) -> None:
    ensure = partial(rig.admin.ensure_internal_topic, CONSUMER_OFFSETS_TOPIC)
    await asyncio.gather(ensure(), ensure())
    topic = rig.metadata.topics["__consumer_offsets"]
    assert len(topic.partitions) == 50
    log = rig.log_manager.get("__consumer_offsets", 49)
    assert log.config.cleanup_policy == ("compact",)
    assert log.config.segment_bytes == rig.config.offsets_topic_segment_bytes
    end = rig.controller.log.log_end_offset
    await rig.admin.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    assert rig.controller.log.log_end_offset == end


async def test_the_creation_of_the_offsets_topic_delays_its_first_client_by_one_fsync(
    tmp_path: Path,
) -> None:
    files = FaultyFiles()
    rig = Rig(tmp_path / "data", files)
    with files.counting() as operations:
        await rig.admin.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    fsyncs = [path for kind, path in operations if kind in ("fsync", "fsync_directory")]
    rig.close()
    assert fsyncs == [tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000.log"]


async def test_partitions_are_added_with_their_logs(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t"), NewTopic(name="u")])
    wishes = [MorePartitions(name="t", count=4), MorePartitions(name="u", count=1)]
    results = await rig.admin.create_partitions(wishes)
    assert results["t"] is None
    assert code_of(results["u"]) is ErrorCode.INVALID_PARTITIONS
    assert [rig.log_manager.get("t", index).partition for index in range(4)] == [0, 1, 2, 3]
    assert rig.log_manager.find("u", 2) is None
    assert rig.enlarged == [("t", [2, 3])]


async def test_partitions_are_only_validated_when_asked_so(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t")])
    wish = MorePartitions(name="t", count=4)
    assert await rig.admin.create_partitions([wish], validate_only=True) == {"t": None}
    assert len(rig.metadata.topics["t"].partitions) == 2
    assert rig.enlarged == []


async def test_a_deleted_topic_is_gone_and_its_coordinators_are_notified(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t")])
    [deleted] = await rig.admin.delete([TopicRef("t")])
    assert deleted.error is None
    assert [topic.name for topic in rig.gone] == ["t"]
    assert "t" not in rig.metadata.topics
    with pytest.raises(ApiError, match="t-0"):
        rig.log_manager.get("t", 0)
    names = sorted(path.name for path in rig.log_manager.directories[0].path.glob("t-*"))
    assert [name.endswith("-delete") for name in names] == [True, True]


async def test_the_coordinators_look_for_all_topics_of_a_request_at_once(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name=name) for name in "abc"])
    await rig.admin.delete([TopicRef(name) for name in "abx"])
    assert {topic.name for topic in rig.gone} == {"a", "b"}
    assert rig.deletions == 1
    await rig.admin.delete([TopicRef("x")])
    assert rig.deletions == 1


async def test_the_cleaner_is_paused_only_for_topics_that_are_deleted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.admin.create([NewTopic(name="t", partition_count=3), NewTopic(name="u")])
    paused: list[TopicPartition] = []
    pause = rig.log_cleaner.paused

    def noted(
        partitions: Iterable[TopicPartition], step: Step
    ) -> AbstractAsyncContextManager[None]:
        paused.extend(partitions)
        return pause(paused, step)

    def exceeded(mutations: int) -> None:
        raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many")

    monkeypatch.setattr(rig.log_cleaner, "paused", noted)
    results = await rig.admin.delete([TopicRef("t"), TopicRef("t"), TopicRef("x")])
    results += await rig.admin.delete([TopicRef("t")], permits=exceeded)
    assert [code_of(result.error) for result in results] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ]
    assert paused == []
    await rig.admin.delete([TopicRef("t"), TopicRef("u"), TopicRef("u")])
    assert paused == [TopicPartition("t", index) for index in range(3)]


async def test_a_topic_created_again_has_another_id_and_is_empty(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t")])
    first = rig.metadata.topics["t"].id
    await rig.admin.delete([TopicRef(None, first)])
    await rig.admin.create([NewTopic(name="t")])
    assert rig.metadata.topics["t"].id != first
    assert rig.log_manager.get("t", 0).log_end_offset == 0


async def test_a_topic_that_is_deleted_and_created_at_once_is_complete(rig: Rig) -> None:
    await rig.admin.create([NewTopic(name="t")])
    put(rig.log_manager.get("t", 0), b"old")
    deletion, creation = rig.admin.delete([TopicRef("t")]), rig.admin.create([NewTopic(name="t")])
    [deleted], created = await asyncio.gather(deletion, creation)
    assert (deleted.error, code_of(created["t"])) == (None, None)
    log = rig.log_manager.get("t", 0)
    assert (log.topic_id, log.log_end_offset) == (rig.metadata.topics["t"].id, 0)


async def test_an_operation_runs_to_its_end_when_its_client_disconnects(rig: Rig) -> None:
    for change, done in (
        (rig.admin.create([NewTopic(name="t")]), rig.come),
        (rig.admin.create_partitions([MorePartitions(name="t", count=3)]), rig.come),
        (rig.admin.delete([TopicRef("t")]), rig.gone),
    ):
        request = asyncio.ensure_future(change)
        await asyncio.sleep(0)
        request.cancel()
        await rig.operations.wait()
        assert request.cancelled()
        assert [topic.name for topic in done] == ["t"]
    assert rig.log_manager.logs() == []
    assert len(rig.log_manager.deletions) == 3


async def test_a_fetch_that_waits_for_records_of_a_deleted_topic_reads_again_at_once(
    rig: Rig,
) -> None:
    await rig.admin.create([NewTopic(name="t")])
    waiters = FetchWaiters(asyncio.get_running_loop())
    waiting = asyncio.ensure_future(waiters.wait([rig.log_manager.get("t", 0)], 1, 60_000))
    await asyncio.sleep(0)
    await rig.admin.delete([TopicRef("t")])
    await asyncio.wait_for(waiting, 5)


async def test_each_created_enlarged_or_deleted_topic_is_logged_in_one_line(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "odradek.topics")
    await rig.admin.create([NewTopic(name="t", partition_count=1), NewTopic(name="u")])
    await rig.admin.create_partitions([MorePartitions(name="t", count=3)])
    await rig.admin.delete([TopicRef("t"), TopicRef("never")])
    assert [record.message for record in caplog.records if record.name == "odradek.topics"] == [
        "created topic t with 1 partition",
        "created topic u with 2 partitions",
        "topic t has now 3 partitions",
        "deleted topic t with 3 partitions",
    ]


class FullDisk(UnsyncedFiles):
    """A disk on which no directory can be made any more, once `is_full`."""

    is_full = False

    def make_directory(self, path: Path) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        super().make_directory(path)

    def rename(self, source: Path, target: Path) -> None:
        if self.is_full and source.is_dir():
            raise OSError(28, "No space left on device")
        super().rename(source, target)


async def test_a_topic_whose_logs_cannot_be_created_exists_and_is_offline(tmp_path: Path) -> None:
    files = FullDisk()
    rig = Rig(tmp_path / "data", files)
    files.is_full = True
    results = await rig.admin.create([NewTopic(name="t")])
    assert isinstance(results["t"], CreatedTopic)
    with pytest.raises(ApiError) as refusal:
        rig.log_manager.get("t", 0)
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    rig.close()


async def test_a_topic_created_again_does_not_get_records_that_could_not_be_deleted(
    tmp_path: Path,
) -> None:
    files = FullDisk()
    rig = Rig(tmp_path / "data", files)
    await rig.admin.create([NewTopic(name="t")])
    put(rig.log_manager.get("t", 0), b"old")
    files.is_full = True
    await rig.admin.delete([TopicRef("t")])
    files.is_full = False
    await rig.admin.create([NewTopic(name="t")])
    with pytest.raises(ApiError, match="topic id") as refusal:
        rig.log_manager.get("t", 0)
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not rig.log_manager.offline
    rig.close()
