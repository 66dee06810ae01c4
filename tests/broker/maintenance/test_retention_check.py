"""Retention renames files in a disk thread while the log goes on, moves or is deleted."""

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import pytest

from odradek.broker.broker import Broker
from odradek.broker.maintenance.retention_check import LOGS_PER_TURN, RetentionCheck
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.storage.checkpoints import read_offsets
from odradek.storage.log import PartitionLog
from tests.support.broker_in_loop import until
from tests.support.log_box import NOW_MS, batch_of, values_from
from tests.support.partition_logs import UnsyncedFiles


class HeldRenames(UnsyncedFiles):
    """Renames of segments wait until they may go on, or fail."""

    def __init__(self) -> None:
        self.may_go_on = Event()
        self.waiting = 0
        self.error = 0

    def rename(self, source: Path, target: Path) -> None:
        if target.suffix == ".deleted":
            self.waiting += 1
            self.may_go_on.wait(20)
            if self.error:
                raise OSError(self.error, "no", str(source))
        super().rename(source, target)


class Rig:
    """A broker whose topic `t` has records before its log start in two segments."""

    def __init__(self, root: Path, files: HeldRenames) -> None:
        self.files = files
        config = BrokerConfig.from_texts(
            {"log.dirs": f"{root}/one,{root}/two", "listeners": "PLAINTEXT://localhost:9092"}
        )
        loop = asyncio.get_running_loop()
        self.broker = Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS, files=files)

    @property
    def log(self) -> PartitionLog:
        return self.broker.log_manager.get("t", 0)

    async def create(self) -> None:
        settings = {"internal.segment.bytes": "1000"}
        await self.broker.admin.topics.create(
            [NewTopic(name="t", partition_count=1, configs=settings)]
        )

    def fill(self) -> None:
        for number in range(6):
            self.log.append(batch_of(b"%d" % number * 400), now_ms=NOW_MS)
        self.log.increment_log_start_offset(4)

    def check(self) -> "asyncio.Task[None]":
        return asyncio.ensure_future(self.broker.maintenance.cleaner.retention.run(lambda _: True))

    async def begin(self) -> "asyncio.Task[None]":
        """A check that has come to its first rename."""
        check = self.check()
        await until(lambda: self.files.waiting)
        return check


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path, HeldRenames())
    await made.create()
    made.fill()
    yield made
    made.files.may_go_on.set()
    await made.broker.close()


async def test_the_log_is_written_and_read_while_its_segments_go(rig: Rig) -> None:
    assert rig.log.segments.base_offsets == [0, 2, 4]
    check = await rig.begin()
    rig.log.append(batch_of(b"more"), now_ms=NOW_MS)
    assert rig.log.segments.base_offsets[0] == 4
    assert values_from(rig.log)[-1] == b"more"
    rig.files.may_go_on.set()
    await check
    names = {path.name for path in rig.log.directory.glob("*.log*")}
    assert {f"{0:020}.log.deleted", f"{2:020}.log.deleted", f"{4:020}.log"} <= names


async def test_the_log_start_stays_in_its_checkpoint_until_the_files_are_renamed(rig: Rig) -> None:
    home = rig.broker.log_manager.directory_of(rig.log)
    checkpoint = home.path / "log-start-offset-checkpoint"
    check = await rig.begin()
    rig.broker.log_manager.write_log_starts()
    assert read_offsets(rig.files, checkpoint) == {("t", 0): 4}
    rig.files.may_go_on.set()
    await check
    rig.broker.log_manager.write_log_starts()
    assert read_offsets(rig.files, checkpoint) == {}


async def test_a_topic_that_is_deleted_meanwhile_and_made_again_keeps_its_new_files(
    rig: Rig,
) -> None:
    check = await rig.begin()
    deletion = asyncio.ensure_future(rig.broker.admin.topics.delete([TopicRef("t")]))
    await asyncio.sleep(0)
    assert not deletion.done()
    rig.files.may_go_on.set()
    await asyncio.gather(check, deletion)
    await rig.create()
    assert not list(rig.log.directory.glob("*.deleted"))
    assert not rig.broker.log_manager.offline


async def test_a_move_waits_until_the_files_are_renamed(rig: Rig) -> None:
    check = await rig.begin()
    here = rig.broker.log_manager.directory_of(rig.log)
    [there] = [one for one in rig.broker.log_manager.directories if one is not here]
    rig.broker.maintenance.mover.alter("t", 0, str(there.path))
    await asyncio.sleep(0.05)
    assert rig.broker.log_manager.directory_of(rig.log) is here
    rig.files.may_go_on.set()
    await check
    await until(lambda: rig.broker.log_manager.directory_of(rig.log) is there)
    assert values_from(rig.log) == [b"4" * 400, b"5" * 400]
    assert not rig.broker.log_manager.offline


async def test_segments_that_could_not_be_renamed_are_the_log_s_again(rig: Rig) -> None:
    rig.files.error = errno.ENOSPC
    rig.files.may_go_on.set()
    await rig.check()
    assert rig.log.segments.base_offsets == [0, 2, 4]
    assert rig.log.log_start_offset == 4
    rig.files.error = 0
    await rig.check()
    assert rig.log.segments.base_offsets == [4]


async def test_files_are_renamed_although_the_check_is_cancelled(rig: Rig) -> None:
    check = await rig.begin()
    check.cancel()
    await asyncio.wait([check])
    rig.files.may_go_on.set()
    await rig.broker.maintenance.cleaner.retention.close()
    assert len(list(rig.log.directory.glob("*.log.deleted"))) == 2


async def test_logs_that_are_passed_by_hold_up_nobody() -> None:
    class Manager:
        def logs(self) -> list[object]:
            return [object()] * 20 * LOGS_PER_TURN

    check = RetentionCheck(Manager(), None, None, lambda: NOW_MS)  # type: ignore[arg-type]
    run = asyncio.ensure_future(check.run(lambda _: False))
    turns = 0
    while not run.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 20
