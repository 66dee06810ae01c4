"""/readyz of a broker that runs on the test's loop: what makes it answer 503."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.lifecycle.running import RunningBroker, open_broker
from odradek.broker.network.listeners import bind_ports
from odradek.broker.processes import child_process
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.storage.directories import found_log
from tests.support.log_box import batch_of
from tests.support.metrics import get

# A process that takes its task and never ends it.
STUCK = (sys.executable, "-c", "import sys; sys.stdin.buffer.read()")


def config_in(root: Path, directories: str = "data") -> BrokerConfig:
    return BrokerConfig.from_texts(
        {
            "log.dirs": ",".join(f"{root}/{name}" for name in directories.split(",")),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "odradek.http.listener": "127.0.0.1:0",
        }
    )


@asynccontextmanager
async def running(config: BrokerConfig) -> AsyncIterator[tuple[RunningBroker, int]]:
    """A broker that serves, and the port of its HTTP listener."""
    bound, http = bind_ports(config)
    assert http is not None
    broker = await open_broker(config, bound, http=http)
    try:
        yield broker, http.port
    finally:
        await broker.stop()


async def readiness(port: int) -> tuple[int, str]:
    return await asyncio.to_thread(get, port, "/readyz")


async def kill_with_a_record(root: Path) -> None:
    """Leave the directory of a broker that was killed after a record had come."""
    config = config_in(root)
    broker = Broker(config, asyncio.get_running_loop(), {"PLAINTEXT": 9092})
    await broker.admin.topics.create([NewTopic(name="t", partition_count=1)])
    broker.log_manager.get("t", 0).append(batch_of(b"x"), now_ms=broker.clock.now_ms())
    for directory in broker.log_manager.directories:
        directory.unlock()
    broker.disk.close()


async def test_it_is_not_ready_while_a_log_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kill_with_a_record(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(found_log, "READ_AT_ONCE_BYTES", 0)
        patched.setattr(child_process, "RECOVERY_COMMAND", STUCK)
        async with running(config_in(tmp_path)) as (_, port):
            assert await readiness(port) == (503, "1 log is being recovered\n")
            assert await asyncio.to_thread(get, port, "/healthz") == (200, "ok\n")
    async with running(config_in(tmp_path)) as (_, port):
        assert await readiness(port) == (200, "ready\n")


async def test_it_is_not_ready_while_it_stops(tmp_path: Path) -> None:
    async with running(config_in(tmp_path)) as (broker, port):
        may_close = asyncio.Event()
        close = broker.broker.close

        async def close_later() -> None:
            await may_close.wait()
            await close()

        broker.broker.close = close_later  # type: ignore[method-assign] # a stop that takes long
        stopping = asyncio.ensure_future(broker.stop())
        await asyncio.sleep(0)
        assert await readiness(port) == (503, "the broker is stopping\n")
        broker.stop = lambda: stopping  # type: ignore[assignment,method-assign] # only once
        may_close.set()
        await stopping
        with pytest.raises(OSError, match="refused"):
            await readiness(port)


async def test_it_is_not_ready_with_a_failed_log_directory(tmp_path: Path) -> None:
    async with running(config_in(tmp_path, "one,two")) as (broker, port):
        manager = broker.broker.log_manager
        failed = manager.directories[1]
        manager.take_offline(failed, "it smells of smoke")
        text = f"log directory {failed.path} is offline: it smells of smoke\n"
        assert await readiness(port) == (503, text)
        metrics = (await asyncio.to_thread(get, port, "/metrics"))[1]
        assert "\nodradek_ready 0.0\n" in metrics
        assert "\nkafka_log_logmanager_offlinelogdirectorycount 1.0\n" in metrics


@pytest.mark.parametrize("name", ["groups", "transactions", "share_states"])
async def test_it_is_not_ready_while_a_coordinator_does_not_serve_a_partition(
    tmp_path: Path, name: str
) -> None:
    async with running(config_in(tmp_path)) as (broker, port):
        coordinator = getattr(broker.broker.coordinators, name)
        topic = coordinator.shards.topic
        await broker.broker.admin.topics.ensure_internal_topic(topic)
        assert await readiness(port) == (200, "ready\n")
        coordinator.partition_offline(3)
        coordinator.partition_offline(5)
        assert await readiness(port) == (503, f"partitions of {topic} are not served: 3, 5\n")
        coordinator.shards.prepare(1)
        assert await readiness(port) == (503, f"{topic} is loading\n")
