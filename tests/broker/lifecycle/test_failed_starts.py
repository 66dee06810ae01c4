"""A start that fails in a process that goes on: it leaves nothing, and the next one works."""

import asyncio
import socket
import threading
from pathlib import Path

import pytest

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
