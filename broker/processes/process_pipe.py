"""The worker process's end of the socket to the broker, which is its stdin and stdout.

frames.py says how a message is written. The broker's end is child_process.py.

A worker process exits at once when the broker is gone, whatever it is doing. Otherwise a broker
that starts again on the same directory would share it with a process that still writes there. So
one thread of the worker does nothing but read stdin.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any, BinaryIO

from .frames import LENGTH, framed
from .signals import ignore_signals_of_all


def read_message(stream: BinaryIO) -> Any:
    """Wait for the broker's next message. Raises EOFError if the broker is gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


def pipe_to_broker() -> Callable[[object], None]:
    """Set this process up as a worker. Returns a function that sends a message to the broker."""
    ignore_signals_of_all()
    to_broker = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a stray print() goes to stderr, not between the messages

    def send(message: object) -> None:
        view = memoryview(framed(message))
        try:
            while view:
                view = view[to_broker.write(view) :]
        except ConnectionError:
            os._exit(0)

    return send


def listen(on_message: Callable[[Any], object]) -> None:
    """Pass the broker's messages to `on_message`, in a thread of its own.

    The process exits when the broker is gone.
    """
    Thread(target=_read_messages, args=(on_message,), daemon=True).start()


def _read_messages(on_message: Callable[[Any], object]) -> None:
    try:
        while True:
            on_message(read_message(sys.stdin.buffer))
    finally:
        os._exit(0)
