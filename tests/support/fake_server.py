"""A server to test connections with: a dispatcher that does as it is told, and no broker."""

import asyncio
import struct
from typing import Any

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.network.connection import Connection
from odradek.broker.network.frame_memory import FrameMemory
from odradek.broker.network.receive_buffer import SHARED_BYTES
from odradek.broker.security.session import Session
from odradek.broker.turns.group_turns import GroupTurns
from odradek.broker.turns.large_turns import LargeTurns
from odradek.broker.turns.turn_queue import TurnQueue
from odradek.broker.turns.turns import SEND_S
from odradek.storage.files import Files

LIMIT = 8 * 1024 * 1024


class FakeAnswer:
    """Writes the pieces it was made of: bytes, or slices of files."""

    def __init__(self, *pieces: object, pending: object = None, runs_on: bool = False) -> None:
        self.pending = pending
        self.is_cancelled_on_disconnect = not runs_on
        self.response: object = pieces
        self.meter = None

    def encoded(self) -> tuple[bytearray, list[Any]]:
        out, splices = bytearray(), []
        pieces = self.response if isinstance(self.response, tuple) else (self.response,)
        sizes = [len(p) if isinstance(p, bytes) else p.size_bytes for p in pieces]
        out += struct.pack(">i", sum(sizes))
        for piece in pieces:
            if isinstance(piece, bytes):
                out += piece
            else:
                splices.append((len(out), piece))
        return out, splices


class FakeServer:
    """What a connection needs of its server (ConnectionSupport and SenderSupport)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, memory_bytes: int = 4 * LIMIT) -> None:
        self.loop = loop
        self.max_request_bytes = LIMIT
        self.receive_view = memoryview(bytearray(SHARED_BYTES))
        self.frame_memory = FrameMemory(loop, memory_bytes)
        self.group_turns = GroupTurns(loop, self.clock)
        self.large_turns = LargeTurns(loop)
        self.send_turns = TurnQueue(loop, SEND_S)
        self.sender = self
        self.ticks = 0
        self.dispatcher = self
        self.disk = DiskExecutor(loop)
        self.files = Files()
        self.lost: asyncio.Event = asyncio.Event()
        self.served: list[bytes] = []
        self.has_served = asyncio.Event()
        self.connections: list[Connection] = []
        self.answers: dict[bytes, FakeAnswer | Exception | None] = {}

    def timer_ms(self) -> int:
        return 0

    def clock(self) -> float:
        """Goes on by a millisecond whenever it is looked at."""
        self.ticks += 1
        return self.ticks / 1000

    def opened(self, connection: Connection) -> None:
        self.connections.append(connection)

    def closed(self, connection: Connection) -> None:
        self.frame_memory.forget(connection)
        self.lost.set()

    def wait_for_coordinators(self, answer: FakeAnswer) -> None:
        """Nothing is left to wait for."""

    def dispatch(self, session: Session, frame: memoryview) -> FakeAnswer | None:
        request = bytes(frame)
        self.served.append(request[:20])
        self.has_served.set()
        answer = self.answers.get(request, FakeAnswer(request[:20]))
        if isinstance(answer, Exception):
            raise answer
        return answer
