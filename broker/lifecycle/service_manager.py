"""Tells systemd about the state of the broker: ready, alive, stopping (sd_notify(3)).

Nothing is sent unless the environment has NOTIFY_SOCKET, which `Type=notify` sets. With
`WatchdogSec=` systemd kills a process that has not reported for that time. The reports come from
the event loop, so a blocked loop is noticed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping

logger = logging.getLogger("odradek")


class ServiceManager:
    """Sends datagrams to systemd. `ready` starts the watchdog's reports, `close` ends them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, environment: Mapping[str, str]) -> None:
        self._loop = loop
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):  # the abstract namespace
            self._address = "\0" + self._address[1:]
        self._report_every_s = 0.0
        if environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
            # Half of the limit, as sd_watchdog_enabled(3) recommends.
            self._report_every_s = int(environment.get("WATCHDOG_USEC", "0")) / 2e6
        self._timer: asyncio.TimerHandle | None = None

    def ready(self) -> None:
        """The broker serves."""
        self._send("READY=1")
        if self._address and self._report_every_s:
            self._report()

    def stopping(self) -> None:
        """The broker begins to stop. It still reports to the watchdog."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Send no more reports."""
        if self._timer is not None:
            self._timer.cancel()

    def _report(self) -> None:
        self._send("WATCHDOG=1")
        self._timer = self._loop.call_later(self._report_every_s, self._report)

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
                notifier.setblocking(False)  # the event loop does not wait for a full queue
                notifier.sendto(message.encode(), self._address)
        except OSError as error:
            logger.warning("%s was not sent to NOTIFY_SOCKET: %s", message, error)
