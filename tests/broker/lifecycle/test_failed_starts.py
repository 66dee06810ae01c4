"""A start that fails in a process that goes on: it leaves nothing, and the next one works."""

import asyncio
import socket
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from odradek.broker.lifecycle import running
from odradek.broker.lifecycle.running import open_broker, start_broker
from odradek.broker.network.listeners import ListenError, bind_ports, bind_registry
from odradek.config.broker_config import BrokerConfig


def counts() -> tuple[int, int, int]:
    """How many descriptors, threads and tasks there are."""
    descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return descriptors, threading.active_count(), len(asyncio.all_tasks())


def config_of(data: Path, **settings: str) -> BrokerConfig:
    texts = {"log.dirs": str(data), "listeners": "PLAINTEXT://127.0.0.1:0"}
    return BrokerConfig.from_texts(texts | {k.replace("_", "."): v for k, v in settings.items()})


def lose(port: int) -> socket.socket:
    """Listen on a port that the broker has bound and does not listen on yet."""
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.bind(("127.0.0.1", port))
    other.listen()
    return other


@pytest.mark.parametrize("lost", ["second listener", "http", "registry"])
async def test_a_port_that_is_lost_after_its_binding_ends_the_start_and_leaves_nothing(
    lost: str, tmp_path: Path
) -> None:
    settings = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter_broker_listener_name": "A",
        "odradek_http_listener": "127.0.0.1:0",
        "odradek_registry_listener": "127.0.0.1:0",
    }
    config = config_of(tmp_path / "data", **settings)
    before = counts()
    bound, http = bind_ports(config)
    registry = bind_registry(config)
    assert http is not None
    assert registry is not None
    port = {"second listener": bound[1], "http": http, "registry": registry}[lost].port
    with lose(port), pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{port}: Addr"):
        await open_broker(config, bound, http=http, registry=registry)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert counts() == before

    again = await start_broker(config)
    await again.stop()


async def test_a_server_that_cannot_be_made_ends_the_start_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path / "data")
    before = counts()

    def fail(*_: object) -> NoReturn:
        raise OSError("there are no descriptors left")

    monkeypatch.setattr(running, "Server", fail)
    with pytest.raises(OSError, match="descriptors"):
        await start_broker(config)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert counts() == before


async def test_topics_that_cannot_be_created_end_the_start_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path / "data")
    before = counts()

    async def fail(_: object) -> NoReturn:
        raise OSError("the disk has failed")

    monkeypatch.setattr(running, "create_topics_at_start", fail)
    with pytest.raises(OSError, match="disk"):
        await start_broker(config)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert counts() == before
