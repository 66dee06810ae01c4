"""The send buffers of connections: small for clients on this machine, else the system's own."""

import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.broker.network.output import LOCAL_SEND_BYTES
from odradek.storage.files import Files
from tests.support.broker_in_loop import broker_in_loop, until
from tests.support.wire import WireClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux doubles SO_SNDBUF")

ANOTHER_HOST = "127.0.0.2"  # differs from the address of the broker


async def send_buffer_bytes(
    directory: Path,
    own_host: str,
    settings: Mapping[str, str],
    receive_buffer_bytes: int | None = None,
) -> int:
    async with broker_in_loop([directory], Files(), **settings) as broker:
        connections = broker._running._server.connections
        with WireClient(broker.port, own_host=own_host, receive_buffer_bytes=receive_buffer_bytes):
            await until(lambda: connections)
            (connection,) = connections
            size: int = connection._sender._output.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
            return size


async def test_a_client_on_this_machine_gets_a_small_buffer(tmp_path: Path) -> None:
    assert await send_buffer_bytes(tmp_path, "127.0.0.1", {}) == granted_bytes(LOCAL_SEND_BYTES)


async def test_the_buffer_of_a_local_client_with_a_small_window_is_left_to_the_system(
    tmp_path: Path,
) -> None:
    found = await send_buffer_bytes(tmp_path, "127.0.0.1", {}, receive_buffer_bytes=65536)
    assert is_of_the_system(found)


async def test_the_buffer_of_another_client_is_left_to_the_system(tmp_path: Path) -> None:
    assert is_of_the_system(await send_buffer_bytes(tmp_path, ANOTHER_HOST, {}))


async def test_a_configured_buffer_is_kept(tmp_path: Path) -> None:
    found = await send_buffer_bytes(tmp_path, "127.0.0.1", {"socket_send_buffer_bytes": "102400"})
    assert found == granted_bytes(102400)


async def test_a_client_on_this_machine_may_be_given_the_buffer_of_the_system(
    tmp_path: Path,
) -> None:
    settings = {"socket_send_buffer_bytes": "-1"}
    assert is_of_the_system(await send_buffer_bytes(tmp_path, "127.0.0.1", settings))


def granted_bytes(size: int) -> int:
    """The buffer that the system gives for that SO_SNDBUF: twice as much, up to a limit."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def is_of_the_system(size: int) -> bool:
    """Whether nobody has set it. What the system chooses differs between connections."""
    return size not in (granted_bytes(LOCAL_SEND_BYTES), granted_bytes(102400))
