"""The broker's end of the socket to another process.

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

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> Channel:
        """Make the end of a connected socket."""
        return cls(*await asyncio.open_unix_connection(sock=sock))

    def send(self, message: object, content: bytes = b"") -> None:
        """Queue a message, followed by raw bytes. Does nothing if the other process has ended."""
        if not self._writer.is_closing():
            self._writer.write(framed(message))
            if content:
                self._writer.write(content)

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
