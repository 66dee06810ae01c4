"""The cleaning process itself: how it starts, works, fails, is ended, and ends with its broker."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from odradek.broker.maintenance.cleaning.cleaner_pool import CleanerPool
from odradek.config.broker_config import BrokerConfig
from odradek.storage.checkpoints import read_offsets
from odradek.storage.files import Files
from tests.support.cleaner_rig import CleanerRig, MakePool, fill, left_in, newest, until

pytestmark = pytest.mark.slow

MakeRig = Callable[..., CleanerRig]
# The cleaning process, but for logs of the topic `bad`.
SABOTAGED = """
import os, time
from odradek.broker.processes import cleaner_process
work_on = cleaner_process.work_on
def sabotaged(task, *rest):
    if task.name.startswith("bad"):
        {what}
    return work_on(task, *rest)
cleaner_process.work_on = sabotaged
cleaner_process.main()
"""
WORKER_OF_A_BROKER = """
import asyncio, sys
from odradek.broker.processes.messages import CleanerSettings
from odradek.broker.processes.child_process import CleanerWorker
async def main():
    worker = await CleanerWorker.start(CleanerSettings(1 << 20, 0.9, 4096))
    print(worker.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""

LOOKS_AT_ONCE = """
from odradek.broker.disk import throttle
from odradek.broker.processes import cleaner_process
throttle.CHECK_AFTER_SECONDS = 0
cleaner_process.main()
"""


@pytest.fixture
async def make_rig(tmp_path: Path) -> AsyncIterator[MakeRig]:
    made = []

    def make(pool: MakePool = CleanerPool, **options: object) -> CleanerRig:
        made.append(CleanerRig([tmp_path], pool=pool, **options))
        return made[-1]

    yield make
    for rig in made:
        await rig.close()


def checkpoint(rig: CleanerRig) -> dict[tuple[str, int], int]:
    return read_offsets(Files(), Path(rig.config.log_dirs[0]) / "cleaner-offset-checkpoint")


def of_command(*command: str) -> MakePool:
    return lambda config: CleanerPool(config, command=command)


def sabotaged(what: str) -> MakePool:
    return of_command(sys.executable, "-P", "-c", SABOTAGED.format(what=what))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_one_process_cleans_log_after_log_and_is_ended_when_it_is_idle(
    make_rig: MakeRig,
) -> None:
    def pool(config: Callable[[], BrokerConfig]) -> CleanerPool:
        return CleanerPool(config, idle_seconds=1)

    rig = make_rig(pool)
    log, other = rig.log("a"), rig.log("b")
    fill(log)
    fill(other)
    pids = set()
    rig.cleaner.start()
    while len(checkpoint(rig)) < 2:
        pids.update(rig.cleaner.status().worker_pids)
        await asyncio.sleep(0.01)
    assert left_in(log) == left_in(other) == newest()
    [pid] = pids
    await until(lambda: not is_there(pid))
    assert rig.cleaner.status().worker_pids == []


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("os._exit(3)", "the cleaning process ended with code 3"),
        ("os.kill(os.getpid(), 9)", "the cleaning process was ended by signal 9"),
        ("time.sleep(60)", "the cleaning process has been silent for 2 seconds"),
        ("raise LookupError('new')", "the cleaning process ended with code 1"),
    ],
)
async def test_a_process_that_dies_or_falls_silent_costs_only_its_log(
    make_rig: MakeRig, what: str, reason: str
) -> None:
    rig = make_rig(sabotaged(what), silence_limit_seconds=2)
    fill(rig.log("bad"), rounds=4)
    fill(rig.log("good"))
    rig.cleaner.start()
    await until(lambda: checkpoint(rig) == {("good", 0): 300})
    await until(lambda: rig.cleaner.status().uncleanable)
    [reasons] = rig.cleaner.status().uncleanable.values()
    assert reasons == {("bad", 0): reason}


async def test_no_log_is_blamed_when_no_process_can_be_started(make_rig: MakeRig) -> None:
    rig = make_rig(of_command(sys.executable, "-c", "pass"))
    fill(rig.log())
    rig.cleaner.start()
    await until(lambda: rig.cleaner.status().last_error)
    told = str(rig.cleaner.status().last_error)
    assert told == "t-0 is not cleaned: the cleaning process ended with code 0"
    assert rig.cleaner.status().uncleanable == {}


async def test_a_command_that_is_not_there_is_named(make_rig: MakeRig) -> None:
    rig = make_rig(of_command("/nowhere/python"))
    fill(rig.log())
    rig.cleaner.start()
    await until(lambda: "/nowhere/python" in str(rig.cleaner.status().last_error))


async def test_settings_that_cannot_work_are_named_and_better_ones_do(make_rig: MakeRig) -> None:
    rig = make_rig(log_cleaner_io_buffer_load_factor="0")
    fill(rig.log())
    rig.cleaner.start()
    await until(lambda: rig.cleaner.status().last_error)
    assert "increase log.cleaner.dedupe.buffer.size" in str(rig.cleaner.status().last_error)
    rig.alter(log_cleaner_io_buffer_load_factor="0.9")
    rig.now_ms += 1000
    await until(lambda: checkpoint(rig) == {("t", 0): 300})


async def test_the_rate_holds_and_a_new_one_reaches_a_round_under_way(make_rig: MakeRig) -> None:
    pool = of_command(sys.executable, "-P", "-c", LOOKS_AT_ONCE)
    rig = make_rig(pool, log_cleaner_io_max_bytes_per_second="1")
    fill(rig.log())
    rig.cleaner.start()
    await until(lambda: [one.moved_bytes for one in rig.cleaner.status().cleaning] not in ([], [0]))
    assert checkpoint(rig) == {}
    rig.alter(log_cleaner_io_max_bytes_per_second="1e9")
    await until(lambda: checkpoint(rig) == {("t", 0): 300})


async def test_a_round_that_is_called_off_ends_its_process(make_rig: MakeRig) -> None:
    rig = make_rig(sabotaged("time.sleep(60)"))
    fill(rig.log("bad"))
    rig.cleaner.start()
    await until(lambda: rig.cleaner.status().worker_pids)
    [pid] = rig.cleaner.status().worker_pids
    await rig.cleaner.close()
    assert not is_there(pid)


async def test_more_processes_work_where_there_are_processors_for_them(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    rig = make_rig(sabotaged("time.sleep(60)"), log_cleaner_threads="8")
    for number in range(3):
        fill(rig.log("bad", number))
    rig.cleaner.start()
    await until(lambda: len(rig.cleaner.status().worker_pids) == 2)
    assert len(rig.cleaner.status().cleaning) == 2


async def test_it_ends_at_once_when_its_broker_is_killed() -> None:
    broker = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", WORKER_OF_A_BROKER, stdout=asyncio.subprocess.PIPE
    )
    assert broker.stdout is not None
    pid = int(await broker.stdout.readline())
    assert is_there(pid)
    broker.kill()
    await broker.wait()
    await until(lambda: not is_there(pid))
