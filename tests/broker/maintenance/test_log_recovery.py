"""A broker that serves while large logs are still being recovered by other processes."""

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.disk import disk_executor
from odradek.broker.handlers import describe_log_dirs
from odradek.broker.maintenance import log_recovery
from odradek.broker.processes import child_process
from odradek.broker.processes.child_process import RecoveryWorker
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.storage.checkpoints import read_offsets
from odradek.storage.directories import found_log
from odradek.storage.directories.found_log import FoundLog
from odradek.storage.directories.log_opening import LogOpening
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.recovering.task import RecoveryTask
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.broker_in_loop import until
from tests.support.contexts import request_context
from tests.support.faulty_files import FaultyFiles, below
from tests.support.log_box import batch_of, values_from
from tests.support.open_files import open_links

pytestmark = pytest.mark.usefixtures("both_produce_paths")

NOW_MS = 1_700_000_000_000
PARTITIONS = 3
# A process that takes its task and never ends it.
STUCK = (sys.executable, "-c", "import sys; sys.stdin.buffer.read()")

# A process that takes its task and ends.
ENDING = (sys.executable, "-c", "import os; os.read(0, 1 << 20)")

# A process that says nothing, and does not hear that its broker is gone.
HUNG = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture(autouse=True)
def nothing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_log, "READ_AT_ONCE_BYTES", 0)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """No recovery ends."""
    monkeypatch.setattr(child_process, "RECOVERY_COMMAND", STUCK)


def open_broker(root: Path, **settings: str) -> Broker:
    config = BrokerConfig.from_texts(
        {"log.dirs": f"{root}/data", "listeners": "PLAINTEXT://localhost:9092", **settings}
    )
    loop = asyncio.get_running_loop()
    return Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS)


@asynccontextmanager
async def restarted(root: Path, **settings: str) -> AsyncIterator[Broker]:
    """A broker that recovers what its directory holds, and is stopped at the end."""
    broker = open_broker(root, **settings)
    broker.maintenance.recovery.begin(2)
    try:
        yield broker
    finally:
        await broker.close()


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    return await killed(tmp_path, t=PARTITIONS)


async def killed(root: Path, **topics: int) -> Path:
    """The directory of a broker that was killed: a record in each partition of the topics."""
    broker = open_broker(root)
    await broker.admin.topics.create(
        [NewTopic(name=name, partition_count=count) for name, count in topics.items()]
    )
    for log in broker.log_manager.logs():
        record = batch_of(b"%d" % log.partition, producer=(3, 0, 0))
        log.append(record, now_ms=NOW_MS)
    for directory in broker.log_manager.directories:
        directory.unlock()
    broker.disk.close()
    return root


async def at_work(broker: Broker) -> None:
    while not broker.maintenance.recovery.at_work:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.005)


def has_ended(pid: int) -> bool:
    """Also where nobody has asked yet how."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def open_sockets() -> set[str]:
    """The sockets of this process."""
    return {link for link in open_links() if link.startswith("socket:")}


async def test_a_partition_is_served_when_it_is_recovered(root: Path) -> None:
    async with restarted(root) as broker:
        assert not broker.is_served("t", 0)
        await broker.maintenance.recovery.finished()
        for index in range(PARTITIONS):
            assert broker.is_served("t", index)
            log = broker.log_manager.get("t", index)
            assert values_from(log) == [b"%d" % index]
            assert log.leader_epoch == broker.metadata.topics["t"].partitions[index].leader_epoch
            assert log.leader_epoch == 1, "an unclean stop begins a new epoch"
            log.append(batch_of(b"next", producer=(3, 0, 1)), now_ms=NOW_MS)
            assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 1)]
            assert [log.end_offset_for_epoch(epoch) for epoch in (0, 1, 2)] == [
                (0, 1),
                (1, 2),
                (-1, -1),
            ]
    assert (root / "data" / ".kafka_cleanshutdown").exists()


async def test_a_waiting_partition_is_refused_so_that_clients_retry(
    root: Path, stuck: None
) -> None:
    async with restarted(root) as broker:
        await at_work(broker)
        with pytest.raises(ApiError) as refusal:
            broker.log_manager.get("t", 0)
        assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await broker.admin.topics.create([NewTopic(name="other", partition_count=1)])
        assert broker.is_served("other", 0), "the others are served"


async def test_a_stop_in_the_middle_is_followed_by_another_recovery(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as never:
        never.setattr(child_process, "RECOVERY_COMMAND", STUCK)
        async with restarted(root) as broker:
            await at_work(broker)
            pids = [worker.pid for worker in broker.maintenance.recovery.at_work.values()]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not (root / "data" / ".kafka_cleanshutdown").exists()
    async with restarted(root) as broker:
        await broker.maintenance.recovery.finished()
        assert values_from(broker.log_manager.get("t", 2)) == [b"2"]


async def test_a_topic_may_be_deleted_and_made_anew_while_it_is_recovered(
    root: Path, stuck: None
) -> None:
    async with asyncio.timeout(8), restarted(root) as broker:
        await at_work(broker)
        pids = [worker.pid for worker in broker.maintenance.recovery.at_work.values()]
        [deleted] = await broker.admin.topics.delete([TopicRef(name="t")])
        assert deleted.error is None
        assert all(map(has_ended, pids))
        await broker.admin.topics.create([NewTopic(name="t", partition_count=PARTITIONS)])
        for index in range(PARTITIONS):
            log = broker.log_manager.get("t", index)
            assert log.append(batch_of(b"new"), now_ms=NOW_MS).base_offset == 0
        await broker.maintenance.recovery.finished()
        assert values_from(broker.log_manager.get("t", 0)) == [b"new"]
    names = sorted(path.name for path in (root / "data").glob("t-*"))
    assert [name for name in names if "delete" not in name] == ["t-0", "t-1", "t-2"]


async def test_a_process_that_a_hung_disk_keeps_from_ending_stops_neither_a_deletion_nor_a_stop(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "RECOVERY_COMMAND", HUNG)
    monkeypatch.setattr(child_process, "END_SECONDS", 0.2, raising=False)
    monkeypatch.setattr(child_process, "STOP_SECONDS", 0.2, raising=False)
    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", lambda pid, number: None)
        async with asyncio.timeout(10), restarted(root) as broker:
            await at_work(broker)
            workers = list(broker.maintenance.recovery.at_work.values())
            [deleted] = await broker.admin.topics.delete([TopicRef(name="t")])
            assert deleted.error is None
    assert all(worker.is_alive for worker in workers)
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
        await until(lambda worker=worker: not worker.is_alive)
        await worker.end()
    assert not list((root / "data").glob("t-?"))


async def test_a_killed_process_is_named_and_the_next_log_is_recovered(
    root: Path, stuck: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = open_broker(root)
    broker.maintenance.recovery.begin(1)
    await at_work(broker)
    [(key, worker)] = broker.maintenance.recovery.at_work.items()
    monkeypatch.undo()
    os.kill(worker.pid, signal.SIGKILL)
    await broker.maintenance.recovery.finished()
    with pytest.raises(ApiError, match="was ended by signal 9"):
        broker.log_manager.get(*key)
    assert sum(broker.is_served("t", index) for index in range(PARTITIONS)) == PARTITIONS - 1
    await broker.close()
    assert not (root / "data" / ".kafka_cleanshutdown").exists()


async def test_recovery_waits_until_a_process_can_be_started(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_recovery, "RETRY_SECONDS", 0.01)
    refusals = [OSError(errno.EMFILE, "too many open files")] * 3
    start = subprocess.Popen

    def popen(*args: Any, **options: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return start(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    broker = open_broker(root)
    broker.maintenance.recovery.begin(1)
    await broker.maintenance.recovery.finished()
    assert all(broker.is_served("t", index) for index in range(PARTITIONS))
    assert caplog.text.count("too many open files") == 1
    await broker.close()


class GatedOpening:
    """Logs are opened once `gate` is set. `begun`: which; `ended`: whether they were there then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = Event()
        self.begun: list[FoundLog] = []
        self.ended: list[bool] = []
        self.threads: set[int] = set()
        opened = LogOpening.open_found

        def gated(opening: LogOpening, found: FoundLog, *rest: Any) -> PartitionLog:
            self.threads.add(get_ident())
            self.begun.append(found)
            assert self.gate.wait(20), "the event loop waits for the opening of a log"
            log = opened(opening, found, *rest)
            self.ended.append(found.path.exists())
            return log

        monkeypatch.setattr(LogOpening, "open_found", gated)


async def test_a_topic_may_be_deleted_while_its_logs_are_opened_by_disk_threads(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with restarted(root) as broker:
        opening = GatedOpening(monkeypatch)
        await until(lambda: opening.begun)
        deletion = asyncio.ensure_future(broker.admin.topics.delete([TopicRef(name="t")]))
        await until(lambda: not broker.log_manager.not_open())
        await broker.disk.run(lambda: None)  # the disk threads have begun the deletion
        assert not deletion.done()
        opening.gate.set()
        await deletion
        await broker.maintenance.recovery.finished()
        assert get_ident() not in opening.threads
        assert opening.ended == [True]
        assert not list((root / "data").glob("t-?"))


async def test_a_log_that_is_opened_does_not_hold_up_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(tmp_path, t=disk_executor.THREADS, other=1)
    monkeypatch.setattr(os, "cpu_count", lambda: disk_executor.THREADS + 1)
    recovered: list[RecoveryTask] = []
    recover = RecoveryWorker.recover

    async def counted(worker: RecoveryWorker, task: RecoveryTask, *rest: Any) -> Any:
        ending = await recover(worker, task, *rest)
        recovered.append(task)
        return ending

    monkeypatch.setattr(RecoveryWorker, "recover", counted)
    broker = open_broker(tmp_path)
    opening = GatedOpening(monkeypatch)
    broker.maintenance.recovery.begin(disk_executor.THREADS + 1)
    await until(lambda: opening.begun and len(recovered) == disk_executor.THREADS + 1)
    others = {"t", "other"} - {opening.begun[0].topic}
    [deleted] = await broker.admin.topics.delete([TopicRef(name) for name in others])
    assert deleted.error is None
    assert len(opening.begun) == 1
    opening.gate.set()
    await broker.close()


async def test_nothing_is_left_of_processes_that_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "RECOVERY_COMMAND", ENDING)
    broker = open_broker(root)
    sockets = open_sockets()
    broker.maintenance.recovery.begin(1)
    await broker.maintenance.recovery.finished()
    await until(lambda: open_sockets() == sockets)
    for index in range(PARTITIONS):
        with pytest.raises(ApiError, match="ended with code 0"):
            broker.log_manager.get("t", index)
    await broker.close()


async def test_checkpoints_do_not_forget_what_waits(root: Path, stuck: None) -> None:
    async with restarted(root) as broker:
        log = broker.log_manager.waiting()[0]
        broker.log_manager.write_recovery_points()
        broker.log_manager.write_high_watermarks()
        names = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
        for name in names:
            kept = read_offsets(Files(), root / "data" / name)
            expected = log.recovery_point if name == names[0] else log.high_watermark
            assert kept.get(log.key) == expected


async def test_a_failed_directory_ends_the_recovery_of_its_logs(root: Path, stuck: None) -> None:
    broker = open_broker(root)
    broker.maintenance.recovery.begin(2)
    await at_work(broker)
    workers = list(broker.maintenance.recovery.at_work.values())
    directory = broker.log_manager.directories[0]
    broker.log_manager.take_offline(directory, "it fell off the table")
    await broker.maintenance.recovery.finished()
    assert workers
    assert not any(worker.is_alive for worker in workers)
    assert "failed" in await broker.directory_failures.fatal
    with pytest.raises(ApiError) as refusal:
        broker.log_manager.get("t", 0)
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    await broker.maintenance.recovery.close()
    broker.disk.close()


async def described(broker: Broker) -> dict[int, tuple[int, int]]:
    """Size and lag of each partition of `t`, as DescribeLogDirs tells them."""
    context = request_context(broker, 4, NOW_MS)
    answer = await describe_log_dirs.handle(context, DescribeLogDirsRequest(topics=None))
    [found] = [topic for topic in answer.results[0].topics if topic.name == "t"]
    return {one.partition_index: (one.partition_size, one.offset_lag) for one in found.partitions}


async def test_logs_that_wait_are_described_with_a_lag_that_nobody_knows(
    root: Path, stuck: None
) -> None:
    async with restarted(root) as broker:
        await at_work(broker)
        size = (root / "data" / "t-0" / "00000000000000000000.log").stat().st_size
        assert size > 0
        assert await described(broker) == dict.fromkeys(range(PARTITIONS), (size, -1))


async def test_a_missing_log_does_not_keep_its_directory_from_being_described(
    root: Path, stuck: None
) -> None:
    async with restarted(root) as broker:
        await at_work(broker)
        shutil.rmtree(root / "data" / "t-0")
        found = await described(broker)
        assert found.pop(0) == (0, -1)
        assert len(found) == PARTITIONS - 1
        assert all(size > 0 for size, _ in found.values())


async def test_what_a_full_disk_kept_from_being_recovered_is_recovered_when_there_is_room(
    root: Path,
) -> None:
    broker = open_broker(root)
    first, *others = broker.log_manager.waiting()
    broker.log_manager.give_up(first, OSError(errno.ENOSPC, "no space left"))
    broker.maintenance.recovery.begin(2)
    await broker.maintenance.recovery.finished()
    assert not broker.is_served(*first.key)
    with pytest.raises(ApiError, match="no space left") as refusal:
        broker.log_manager.get(*first.key)
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    await broker.disk_space.check_directories()
    await broker.maintenance.recovery.finished()
    assert all(broker.is_served(*log.key) for log in (first, *others))
    assert values_from(broker.log_manager.get(*first.key)) == [b"%d" % first.partition]
    assert {lag for _, lag in (await described(broker)).values()} == {0}
    await broker.close()
    assert (root / "data" / ".kafka_cleanshutdown").exists()


async def test_a_log_that_another_error_kept_is_not_tried_again(root: Path) -> None:
    broker = open_broker(root)
    damaged, full, *_ = broker.log_manager.waiting()
    broker.log_manager.give_up(damaged, CorruptRecordError("it is not a log"))
    broker.log_manager.give_up(full, OSError(errno.ENOSPC, "no space left"))
    await broker.admin.topics.delete([TopicRef(name="t")])
    await broker.disk_space.check_directories()
    assert broker.log_manager.waiting() == []
    await broker.close()


async def test_groups_are_served_when_their_log_could_be_recovered_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = open_broker(tmp_path, **{"offsets.topic.num.partitions": "1"})
    await broker.admin.topics.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    await broker.close()
    opened = LogOpening.open_found

    def no_space(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(LogOpening, "open_found", no_space)
    broker = open_broker(tmp_path)
    monkeypatch.setattr(LogOpening, "open_found", opened)
    assert not broker.coordinators.groups.shards.is_served("g")
    await asyncio.sleep(0)  # the broker hears of the full disk
    await broker.disk_space.check_directories()
    await broker.maintenance.recovery.finished()
    assert broker.coordinators.groups.shards.is_served("g")
    await broker.close()


async def test_a_log_that_could_not_be_made_is_made_when_there_is_room(tmp_path: Path) -> None:
    files = FaultyFiles()
    config = BrokerConfig.from_texts(
        {"log.dirs": f"{tmp_path}/data", "listeners": "PLAINTEXT://localhost:9092"}
    )
    loop = asyncio.get_running_loop()
    broker = Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS, files=files)
    files.fail(below(tmp_path / "data" / "t-0"), error=errno.ENOSPC)
    await broker.admin.topics.create([NewTopic(name="t", partition_count=2)])
    files.heal()
    assert [broker.is_served("t", index) for index in range(2)] == [False, True]
    await broker.disk_space.check_directories()
    log = broker.log_manager.get("t", 0)
    assert log.append(batch_of(b"v"), now_ms=NOW_MS).base_offset == 0
    assert log.topic_id == broker.metadata.topics["t"].id
    await broker.close()
