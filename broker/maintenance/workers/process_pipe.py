"""The pipes between the broker and a process that works for it: the process's stdin and stdout.

Each message is its length in four bytes and a pickle: both sides are of the same program. Here are
the messages' form and the process's end; the broker's end is worker_process.py.

The process ends at once when the broker is gone, whatever it is doing: a broker that starts again
on the same directory must not meet a stranger who still writes there. A thread of it therefore does
nothing but listen. Signals that a terminal or a service manager sends to all are the broker's to
answer.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

LENGTH = struct.Struct(">I")


def pack(message: object) -> bytes:
    """The bytes of a message."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(content)) + content


def read_message(stream: BinaryIO) -> Any:
    """The next message of the broker; waits for it. Raises EOFError where the broker is gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


def pipe_to_broker() -> Callable[[object], None]:
    """Make a worker of this process; what is returned sends a message to its broker."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    to_broker = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what is printed by mistake is no message

    def send(message: object) -> None:
        view = memoryview(pack(message))
        try:
            while view:
                view = view[to_broker.write(view) :]
        except BrokenPipeError:
            os._exit(0)

    return send


def listen(stream: BinaryIO, take: Callable[[Any], object]) -> None:
    """Take in what the broker says; when it is gone, so are we."""
    try:
        while True:
            take(read_message(stream))
    finally:
        os._exit(0)
