"""A log cleaner with real logs, but no broker; its processes are real, or played in this one."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.maintenance.cleaning.cleaner_pool import CleanerPool
from odradek.broker.maintenance.cleaning.log_cleaner import LogCleaner
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.processes.child_process import WorkerLostError
from odradek.broker.processes.cleaner_process import work_on
from odradek.broker.processes.messages import (
    CleaningEnding,
    FromCleaner,
    Rate,
    ToCleaner,
)
from odradek.broker.turns.slices import Surroundings
from odradek.broker.turns.turns import Turns
from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.cleaning.cleaner import Cleaner
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.cleaning.task import CleaningTask
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from tests.support.log_box import NOW_MS, records_from
from tests.support.timer import Timer

SEGMENT_BYTES = 4096
LIMIT_SECONDS = 20.0
SETTINGS = {"log.cleaner.backoff.ms": "20", "log.cleaner.dedupe.buffer.size": "16777216"}


Ruin = Callable[[CleaningTask], "CleaningEnding | None"]
MakePool = Callable[[Callable[[], BrokerConfig]], "CleanerPool | PlayedPool"]


class PlayedWorker:
    """A cleaning process that is none: it has done a task as soon as that is given to it.

    `ruin` may give another ending. One that raises leaves the broker without an answer for ever.
    """

    def __init__(self, ruin: Ruin) -> None:
        self.rate = 0.0
        self._cleaner = Cleaner(Files(), dedupe_buffer_bytes=1 << 20, io_buffer_bytes=4096)
        self._ruin = ruin
        self._answers: asyncio.Queue[FromCleaner | None] = asyncio.Queue()

    def send(self, message: ToCleaner) -> None:
        if isinstance(message, Rate):
            self.rate = message.bytes_per_second
        elif isinstance(message, CleaningTask):
            with suppress(SilenceError):
                ending = self._ruin(message)
                if ending is None:
                    ending = work_on(message, self._cleaner, self._answers.put_nowait)
                self._answers.put_nowait(ending)

    async def receive(self, timeout_seconds: float) -> FromCleaner:
        answer = await self._answers.get()
        if answer is None:
            raise WorkerLostError("it was killed")
        return answer

    def kill(self) -> None:
        self._answers.put_nowait(None)

    async def end(self) -> None:
        pass


class SilenceError(Exception):
    """Raised by a `ruin`: the process says nothing any more."""


class PlayedPool:
    """Gives such processes."""

    def __init__(self, config: Callable[[], BrokerConfig], ruin: Ruin = lambda _: None) -> None:
        self.max_workers = config().log_cleaner_threads
        self.taken = 0
        self.pids: list[int] = []
        self._ruin = ruin

    async def take(self) -> PlayedWorker:
        self.taken += 1
        return PlayedWorker(self._ruin)

    def give_back(self, worker: PlayedWorker, *, is_idle: bool) -> None:
        pass

    def update(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def no_walks(*_: object) -> object:
    """Stands for the process that walks records: no lookup of the cleaner needs one."""
    raise NotImplementedError


def idle_cleaner(
    manager: LogManager,
    config: Callable[[], BrokerConfig],
    files: Files,
    disk: DiskExecutor,
    *,
    now_ms: Callable[[], int] = lambda: NOW_MS,
    pool: CleanerPool | PlayedPool | None = None,
    silence_limit_seconds: float = LIMIT_SECONDS,
) -> LogCleaner:
    """A cleaner that was not started."""
    return LogCleaner(
        manager=manager,
        retention=RetentionCheck(manager, ColdReads(files, disk, no_walks), disk, now_ms),
        checkpoints=CleanerCheckpoints(manager, files),
        pool=pool or CleanerPool(config),  # type: ignore[arg-type] # or as much of one
        disk=disk,
        slices=Turns(asyncio.get_running_loop(), Surroundings(lambda _: None, lambda: None)).slices,
        config=config,
        now_ms=now_ms,
        timer_ms=now_ms,
        silence_limit_seconds=silence_limit_seconds,
    )


class CleanerRig:
    """Logs in one or more directories, and their cleaner. `now_ms` stands still until it is set.

    `pool` makes what it works with: in this process (`PlayedPool`), or real processes.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        pool: MakePool = PlayedPool,
        silence_limit_seconds: float = LIMIT_SECONDS,
        **texts: str,
    ) -> None:
        self.now_ms = NOW_MS
        self.files = Files()
        settings = {"log.dirs": ",".join(map(str, paths)), **SETTINGS}
        settings |= {name.replace("_", "."): value for name, value in texts.items()}
        self.config = BrokerConfig.from_texts(settings)
        self.manager = LogManager.open(self.config, files=self.files, timer_ms=Timer())
        self.manager.load_logs(lambda _: self.topic_config(), now_ms=NOW_MS)
        self.disk = DiskExecutor(asyncio.get_running_loop())
        self.pool = pool(lambda: self.config)
        self._silence_limit_seconds = silence_limit_seconds
        self.cleaner = self.new_cleaner()

    def new_cleaner(self) -> LogCleaner:
        """One that reads the checkpoints anew, as after a restart."""
        return idle_cleaner(
            self.manager,
            lambda: self.config,
            self.files,
            self.disk,
            now_ms=lambda: self.now_ms,
            pool=self.pool,
            silence_limit_seconds=self._silence_limit_seconds,
        )

    def topic_config(self, overrides: Mapping[str, str] | None = None) -> TopicConfig:
        """Compacted, in small segments."""
        texts = {
            "cleanup.policy": "compact",
            "internal.segment.bytes": str(SEGMENT_BYTES),
            "file.delete.delay.ms": "0",
            **(overrides or {}),
        }
        return self.config.stored_topic_config(texts)

    def alter(self, **texts: str) -> None:
        """The broker's settings change."""
        changes = {name.replace("_", "."): value for name, value in texts.items()}
        self.config = self.config.with_dynamic(changes)
        self.cleaner.update_config(self.config)

    def log(self, topic: str = "t", partition: int = 0, **overrides: str) -> PartitionLog:
        """A log, made where it is not there."""
        texts = {name.replace("_", "."): value for name, value in overrides.items()}
        name = topic.encode().ljust(16, b"\0")
        return self.manager.create(
            topic, partition, name, self.topic_config(texts), now_ms=self.now_ms
        )

    async def close(self) -> None:
        await self.cleaner.close()
        self.disk.close()
        self.manager.close(now_ms=self.now_ms)


def fill(log: PartitionLog, rounds: int = 3, keys: int = 100, *, now_ms: int = NOW_MS) -> None:
    """Every key once a round, over several segments, and a new segment begun behind it all."""
    for number in range(rounds):
        for first in range(0, keys, 10):
            records = [
                Record(b"key-%d" % key, b"value-%d " % number * 10, now_ms)
                for key in range(first, min(first + 10, keys))
            ]
            log.append(bytes(build_batch(records)), now_ms=now_ms)
    log.roll(now_ms)


def newest(rounds: int = 3, keys: int = 100) -> list[tuple[int, bytes]]:
    """Offsets and keys that are left of what `fill` wrote."""
    first = (rounds - 1) * keys
    return [(first + key, b"key-%d" % key) for key in range(keys)]


def left_in(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """What a consumer gets: offsets and keys."""
    return [(record.offset, record.key) for record in records_from(log)]


async def until(holds: Callable[[], object]) -> None:
    """Return as soon as it holds; AssertionError when that takes too long."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.005)
