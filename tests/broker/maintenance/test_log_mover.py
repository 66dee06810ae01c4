"""Logs move between the directories of a broker that goes on serving them."""

import asyncio
import errno
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.cluster.cluster import Cluster
from odradek.broker.common.effective_config import MOVE_RATE
from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.throttle import Pace
from odradek.broker.maintenance import log_mover
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigChange,
    ConfigResource,
)
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.files import OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.moving.future_log import FutureLog
from tests.support.broker_in_loop import until
from tests.support.log_box import batch_of, values_from

pytestmark = pytest.mark.usefixtures("both_produce_paths")

NOW_MS = 1_700_000_000_000


class Rig:
    """A broker of two directories that listens nowhere, with one topic `t` of one partition."""

    def __init__(self, root: Path, **settings: str) -> None:
        self.root = root
        names = f"{root}/one,{root}/two"
        config = BrokerConfig.from_texts(
            {"log.dirs": names, "listeners": "PLAINTEXT://localhost:9092", **settings}
        )
        loop = asyncio.get_running_loop()
        self.broker = Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS)

    @property
    def log(self) -> PartitionLog:
        return self.broker.log_manager.get("t", 0)

    @property
    def place(self) -> str:
        return self.broker.log_manager.directory_of(self.log).path.name

    @property
    def elsewhere(self) -> str:
        return "two" if self.place == "one" else "one"

    @property
    def assigned(self) -> str:
        """The directory that the metadata names."""
        partition = self.broker.metadata.topics["t"].partitions[0]
        [name] = [
            one.path.name
            for one in self.broker.log_manager.directories
            if one.directory_id == partition.directory_of(self.broker.nodes.own_id)
        ]
        return name

    def put(self, *values: bytes) -> None:
        self.log.append(batch_of(*values), now_ms=NOW_MS)

    def alter(self, name: str, topic: str = "t", index: int = 0) -> None:
        self.broker.maintenance.mover.alter(topic, index, f"{self.root}/{name}")

    async def settled(self) -> None:
        """Return when nothing moves any more, nor waits to be written down."""
        await self.broker.background.wait()

    async def limit(self, rate: str | None) -> None:
        """Let all moves together copy so many bytes per second."""
        operation = AlterOperation.DELETE if rate is None else AlterOperation.SET
        alteration = Alteration(
            resource=ConfigResource(ConfigResourceType.BROKER, str(self.broker.nodes.own_id)),
            changes=(ConfigChange(MOVE_RATE, operation, rate),),
        )
        assert await self.broker.admin.configs.alter(
            [alteration], check_authorized=lambda *_: None, validate_only=False
        ) == [None]

    def directories(self) -> list[str]:
        """Of the topic, with the suffixes of those that are not the log."""
        found = [path for path in self.root.glob("*/t-0*") if path.is_dir()]
        return sorted(f"{path.parent.name}{path.suffix[33:]}" for path in found)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    await made.broker.admin.topics.create([NewTopic(name="t", partition_count=1)])
    yield made
    await made.broker.close()


async def test_a_log_moves_with_what_comes_meanwhile(rig: Rig) -> None:
    rig.put(b"a", b"b")
    source, target = rig.place, rig.elsewhere
    rig.alter(target)
    rig.put(b"c")
    await rig.settled()
    assert (rig.place, rig.assigned) == (target, target)
    assert values_from(rig.log) == [b"a", b"b", b"c"]
    assert rig.directories() == sorted([target, f"{source}-delete"])


async def test_the_directory_where_it_is_cancels_a_move(rig: Rig) -> None:
    source, target = rig.place, rig.elsewhere
    rig.alter(target)
    rig.alter(target)
    assert list(rig.broker.log_manager.futures) == [("t", 0)]
    rig.alter(source)
    assert rig.broker.log_manager.futures == {}
    await rig.settled()
    assert (rig.place, rig.assigned) == (source, source)
    rig.alter(source)
    assert not rig.broker.background.running


async def test_a_move_that_is_cancelled_at_its_end_is_taken_back_from_the_metadata(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = rig.place, rig.elsewhere
    flush = rig.broker.log_syncs.flush

    async def cancelled_then_synced(log: PartitionLog) -> None:
        assert (log, rig.assigned) == (rig.broker.controller.log, target)
        rig.alter(source)
        await flush(log)

    monkeypatch.setattr(rig.broker.log_syncs, "flush", cancelled_then_synced)
    rig.alter(target)
    await rig.settled()
    assert (rig.place, rig.assigned) == (source, source)


async def test_a_move_that_is_cancelled_before_its_end_is_not_in_the_metadata(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = rig.place, rig.elsewhere
    loop, manager = asyncio.get_running_loop(), rig.broker.log_manager
    write = manager.write_log_starts

    def cancelled_then_written() -> None:  # by a disk thread
        monkeypatch.undo()
        cancelled = Event()
        loop.call_soon_threadsafe(lambda: (rig.alter(source), cancelled.set()))
        assert cancelled.wait(20)
        write()

    monkeypatch.setattr(manager, "write_log_starts", cancelled_then_written)
    rig.alter(target)
    await rig.settled()
    assert (rig.place, rig.assigned) == (source, source)


async def test_a_log_that_is_truncated_at_the_end_of_its_move_stays_where_it_is(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = rig.place, rig.elsewhere
    cluster = Cluster(rig.broker, dict.fromkeys((1, 2, 3)), 3, lambda: None)
    rig.log.update_config(rig.log.config.replace(unclean_leader_election_enable=True))
    rig.put(b"at all nodes")
    cluster.shrink_isr("t", 0, [])
    rig.put(b"at the leader")
    flush = rig.broker.log_syncs.flush

    async def led_uncleanly_then_synced(log: PartitionLog) -> None:
        monkeypatch.undo()
        assert (log, rig.assigned) == (rig.broker.controller.log, target)
        cluster.node_lost(cluster.leader("t", 0))
        rig.put(b"new")
        await flush(log)

    monkeypatch.setattr(rig.broker.log_syncs, "flush", led_uncleanly_then_synced)
    rig.alter(target)
    await rig.settled()
    assert (rig.place, rig.assigned) == (source, source)
    assert values_from(rig.log) == [b"at all nodes", b"new"]
    assert rig.directories() == sorted([source, f"{target}-delete"])


async def test_a_deleted_topic_does_not_move_on(rig: Rig) -> None:
    rig.alter(rig.elsewhere)
    await rig.broker.admin.topics.delete([TopicRef("t")])
    await rig.settled()
    assert rig.directories() == ["one-delete", "two-delete"]


async def test_a_move_ends_without_an_error_while_the_deletion_of_its_topic_waits_for_the_cleaner(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop, manager = asyncio.get_running_loop(), rig.broker.log_manager
    cleaner = rig.broker.maintenance.cleaner
    write, paused = manager.write_log_starts, cleaner.paused
    is_deleted, may_go_on = Event(), asyncio.Event()
    deletions = []

    @asynccontextmanager
    async def paused_later(*arguments: Any) -> AsyncIterator[None]:
        is_deleted.set()
        await may_go_on.wait()
        async with paused(*arguments):
            yield

    def deleted_then_written() -> None:  # by a disk thread
        monkeypatch.setattr(manager, "write_log_starts", write)
        deletion = rig.broker.admin.topics.delete([TopicRef("t")])
        deletions.append(asyncio.run_coroutine_threadsafe(deletion, loop))
        assert is_deleted.wait(20)
        write()

    monkeypatch.setattr(cleaner, "paused", paused_later)
    monkeypatch.setattr(manager, "write_log_starts", deleted_then_written)
    rig.alter(rig.elsewhere)
    await rig.settled()
    may_go_on.set()
    await asyncio.wrap_future(deletions[0])
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert rig.directories() == ["one-delete", "two-delete"]


async def test_a_stop_leaves_a_move_to_the_next_start(rig: Rig, tmp_path: Path) -> None:
    rig.put(b"a")
    target = rig.elsewhere
    rig.alter(target)
    await rig.broker.close()
    assert rig.directories().count(f"{target}-future") == 1
    again = Rig(tmp_path)
    await again.settled()
    assert (again.place, again.assigned) == (target, target)
    assert values_from(again.log) == [b"a"]
    rig.broker = again.broker


async def test_moves_keep_to_the_rate_that_is_set(rig: Rig) -> None:
    value = bytes(900 << 10)
    for _ in range(3):
        rig.put(value)
    await rig.limit(str(4 << 20))
    target, began = rig.elsewhere, time.monotonic()
    rig.alter(target)
    await rig.settled()
    assert rig.place == target
    assert time.monotonic() - began > 0.6  # all but the end of it had to wait
    assert values_from(rig.log) == [value] * 3


async def test_a_rate_of_zero_stops_a_move_until_there_is_another(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait_seconds, looks = Pace.wait_seconds, []

    def counted(pace: Pace) -> float:
        looks.append(wait_seconds(pace))
        return looks[-1]

    monkeypatch.setattr(log_mover, "MAX_SLEEP_SECONDS", 0.005)
    monkeypatch.setattr(Pace, "wait_seconds", counted)
    caplog.set_level("INFO", "odradek.config")
    rig.put(b"a")
    await rig.limit("0")
    source, target = rig.place, rig.elsewhere
    rig.alter(target)
    await until(lambda: len(looks) > 3)
    assert rig.place == source
    assert rig.broker.log_manager.futures[("t", 0)].size_bytes == 0
    await rig.limit(None)
    await rig.settled()
    assert rig.place == target
    assert not [line for line in caplog.messages if "has no effect" in line]


async def test_a_move_that_is_held_back_ends_with_the_broker(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_mover, "MAX_SLEEP_SECONDS", 3600)
    await rig.limit("0")
    rig.alter(rig.elsewhere)
    await asyncio.sleep(0)
    rig.broker.maintenance.mover.close()
    async with asyncio.timeout(30):
        await rig.settled()


@pytest.mark.parametrize(
    ("name", "topic", "index", "code"),
    [
        ("three", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("one/", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("one", "t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("one", "u", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("one", "__cluster_metadata", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("three", "l" * 250, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_what_cannot_be_moved_is_refused(
    rig: Rig, name: str, topic: str, index: int, code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as caught:
        rig.alter(name, topic, index)
    assert caught.value.code is code


async def test_nothing_moves_to_or_while_a_directory_is_offline(rig: Rig) -> None:
    manager = rig.broker.log_manager
    [lost] = [one for one in manager.directories if one.path.name == rig.elsewhere]
    rig.alter(lost.path.name)
    manager.take_offline(lost, "test")
    await rig.settled()
    assert manager.futures == {}
    with pytest.raises(ApiError) as caught:
        rig.alter(lost.path.name)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    rig.alter(rig.place)


async def test_a_directory_without_room_for_a_new_name_ends_the_move_and_hurts_nobody(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, directory = rig.place, rig.log.directory
    rename = rig.broker.log_manager.files.rename

    def full(old: Path, new: Path) -> None:
        if old == directory:
            raise OSError(errno.ENOSPC, "full", str(old))
        rename(old, new)

    monkeypatch.setattr(rig.broker.log_manager.files, "rename", full)
    rig.put(b"a")
    rig.alter(rig.elsewhere)
    await rig.settled()
    assert (rig.place, rig.assigned, rig.broker.log_manager.offline) == (source, source, {})
    assert values_from(rig.log) == [b"a"]


async def test_a_move_that_can_neither_be_ended_nor_taken_back_keeps_the_copy(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, directory = rig.place, rig.elsewhere, rig.log.directory
    rename = rig.broker.log_manager.files.rename

    def full(old: Path, new: Path) -> None:
        if new.name == directory.name:
            raise OSError(errno.ENOSPC, "full", str(old))
        rename(old, new)

    monkeypatch.setattr(rig.broker.log_manager.files, "rename", full)
    rig.put(b"a")
    rig.alter(target)
    await rig.settled()
    assert rig.directories() == sorted([f"{source}-delete", f"{target}-future"])
    assert list(rig.broker.log_manager.offline) == [tmp_path / source]
    await rig.broker.close()
    rig.broker = Rig(tmp_path).broker
    assert (rig.place, rig.assigned) == (target, target)
    assert values_from(rig.log) == [b"a"]


async def test_a_move_that_fails_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.put(b"a")
    source, target = rig.place, rig.elsewhere

    def full(_: OpenFile, file: OpenFile, *args: int) -> None:
        raise OSError(28, "no space left", str(file.path))

    monkeypatch.setattr(rig.broker.log_manager.files, "copy_range", full)
    rig.alter(target)
    await rig.settled()
    assert (rig.place, rig.assigned, rig.broker.log_manager.offline) == (source, source, {})
    assert values_from(rig.log) == [b"a"]
    assert f"{target}-delete" in rig.directories()


async def test_a_log_that_rolls_while_its_copy_gets_its_name_has_no_hole_there(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata names the copy then, and after a power cut it may be the longer one."""
    rig.put(b"a")
    look_up = ColdReads.look_up
    has_rolled = False
    segments: list[str] = []

    async def look_up_later(reads: ColdReads, work: Callable[[], object], *args: Any) -> object:
        nonlocal has_rolled
        if getattr(work, "__name__", None) == "name_active" and not has_rolled:
            has_rolled = True
            rig.log.roll(NOW_MS)
            rig.put(b"b")
        return await look_up(reads, work, *args)

    def write_log_starts() -> None:  # the next step
        segments.extend(sorted(path.name for path in rig.root.glob("*/t-0.*-future/*.log")))

    monkeypatch.setattr(ColdReads, "look_up", look_up_later)
    monkeypatch.setattr(rig.broker.log_manager, "write_log_starts", write_log_starts)
    rig.alter(rig.elsewhere)
    await rig.settled()
    assert segments[:2] == [f"{0:020d}.log", f"{1:020d}.log"]
    assert values_from(rig.log) == [b"a", b"b"]


async def test_a_move_ends_though_the_metadata_log_has_failed_with_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rig.place == "one":  # where the metadata log is
        rig.alter("two")
        await rig.settled()

    def fail(_: FutureLog) -> None:  # when the metadata says already that it has moved
        raise OSError(errno.EIO, "failed", str(rig.root / "one" / "new"))

    monkeypatch.setattr(FutureLog, "read_rest", fail)
    rig.alter("one")
    [move] = rig.broker.background.running
    await rig.settled()
    assert move.exception() is None
    assert (rig.place, list(rig.broker.log_manager.offline)) == ("two", [rig.root / "one"])


async def test_a_cordoned_directory_gets_nothing_new(tmp_path: Path) -> None:
    rig = Rig(tmp_path, **{"cordoned.log.dirs": f"{tmp_path}/one"})
    await rig.broker.admin.topics.create([NewTopic(name="t", partition_count=5)])
    logs = rig.broker.log_manager.logs()
    assert {rig.broker.log_manager.directory_of(log).path.name for log in logs} == {"two"}
    with pytest.raises(ApiError) as caught:
        rig.alter("one")
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    rig.alter("two")
    await rig.broker.close()


async def test_where_all_is_cordoned_only_named_replicas_are_made(tmp_path: Path) -> None:
    rig = Rig(tmp_path, **{"cordoned.log.dirs": "*"})
    named = NewTopic(name="named", assignments=[(0, [rig.broker.nodes.own_id])])
    results = await rig.broker.admin.topics.create([NewTopic(name="t", partition_count=1), named])
    refused = results["t"]
    assert isinstance(refused, ApiError)
    assert refused.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert not isinstance(results["named"], ApiError)
    await rig.broker.close()
