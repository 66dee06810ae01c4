"""One end of the socket between the broker's own process and another one.

frames.py says how a message is written.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from typing import Any

from .frames import LENGTH, framed


class ChannelClosedError(Exception):
    """The other process has closed its end, or has ended."""


class Channel:
    """Sends and receives messages. Made by `open`."""

    def __init__(
        self, sock: socket.socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._socket = sock
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> Channel:
        """Make the end of a connected socket."""
        return cls(sock, *await asyncio.open_unix_connection(sock=sock))

    def send(self, message: object, content: bytes = b"") -> None:
        """Queue a message, followed by raw bytes. Does nothing if the other process has ended."""
        if not self._writer.is_closing():
            self._writer.write(framed(message))
            if content:
                self._writer.write(content)

    def send_at_once(self, message: object) -> None:
        """Send a small message while the event loop is blocked: `send` would wait for it.

        It is dropped if the other process has not read many others yet. Raises ChannelClosedError.
        """
        try:
            self._socket.send(framed(message), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except ConnectionError as error:
            raise ChannelClosedError from error

    async def receive(self) -> Any:
        """Wait for the next message. Raises ChannelClosedError."""
        return pickle.loads(await self.read_pickle())

    async def read_pickle(self) -> bytes:
        """Wait for the pickle of the next message. Raises ChannelClosedError."""
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            return await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ChannelClosedError from error

    def release_reader(self) -> None:
        """Let `receive` raise when it has read what has arrived."""
        self._reader.feed_eof()

    def abort(self) -> None:
        """Close without sending what is queued."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Send what is queued, and close."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return
