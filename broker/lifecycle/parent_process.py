"""For a process that starts the broker: tells it the address, and ends the broker with it.

A test or a build that starts `odradek serve` may be killed without ending what it has started. The
system then gives the broker another parent, which is noticed within a second. Windows does not:
there the broker runs until something else ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping

from odradek.broker.broker import Broker

CHECK_EVERY_S = 1.0


def print_address(broker: Broker, others: Mapping[str, str]) -> None:
    """Write one line of JSON to standard output: where clients connect, and the process id.

    The addresses of several nodes have commas between them. `others` are further members of it.
    """
    nodes = broker.nodes.all(broker.config.open_listeners[0], "localhost")
    addresses = ",".join(f"{_in_address(node.host)}:{node.port}" for node in nodes)
    address = {"bootstrap_servers": addresses, "pid": os.getpid(), **others}
    sys.stdout.write(json.dumps(address) + "\n")
    sys.stdout.flush()


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class ParentWatch:
    """Calls `on_end` when the process that has started this one has ended. `close` stops it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], object]) -> None:
        self._loop = loop
        self._on_end = on_end
        self._parent = os.getppid()
        self._timer = loop.call_later(CHECK_EVERY_S, self._check)

    def close(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        if os.getppid() == self._parent:
            self._timer = self._loop.call_later(CHECK_EVERY_S, self._check)
        else:
            self._on_end()
