"""A process that works for the broker, and cannot be ended: its disk hangs."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from odradek.broker.processes import child_process
from odradek.broker.processes.channel import ChannelClosedError
from odradek.broker.processes.child_process import ChildProcess, start_process
from tests.support.broker_in_loop import until

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChildProcess]:
    """Killing it has no effect, as while a system call of it waits for a disk."""
    made = ChildProcess(*await start_process(SLEEPER))
    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", lambda pid, number: None)
        patched.setattr(child_process, "END_SECONDS", 0.2, raising=False)
        yield made
    os.kill(made.pid, signal.SIGKILL)
    await until(lambda: not made.is_alive)
    await made.end()


async def test_nobody_waits_for_ever_for_a_process_that_does_not_end(
    worker: ChildProcess, caplog: pytest.LogCaptureFixture
) -> None:
    hearing = asyncio.ensure_future(worker.channel.receive())
    await asyncio.sleep(0)
    worker.kill()
    async with asyncio.timeout(10):
        with pytest.raises(ChannelClosedError):
            await hearing
        assert await worker.describe_end() == "was killed and does not end"
        await worker.end()
        await worker.end()
    assert [line for line in caplog.messages if f"process {worker.pid}" in line] == [
        f"process {worker.pid} was killed and does not end: it may wait for a disk that hangs"
    ]
