"""Faults that a test has injected, seen from the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from odradek.broker.testing import calls

from .call import Call
from .durations import milliseconds
from .fault import FaultEvent

POLL_SECONDS = 0.01


class BrokerError(Exception):
    """The broker could not do what a test asked for, or has ended. The message says why."""


class Injected:
    """Faults of one `Broker.inject`. All methods raise BrokerError.

    What they have done can be asked until `clear_faults` or `reset`, or the broker's end.
    """

    def __init__(self, call: Callable[[Call, type[Any]], Any], script_id: str) -> None:
        self._call = call
        self._id = script_id

    def fired(self) -> int:
        """How many requests have failed so far, or were delayed."""
        return self._read(with_events=False).fired

    def events(self) -> list[FaultEvent]:
        """The requests that have failed so far, or were delayed, in order: the last 10,000."""
        return self._read(with_events=True).events

    def wait(self, count: int = 1, *, within: timedelta | int = 10_000) -> None:
        """Wait until at least `count` requests have failed, or were delayed.

        `within`: an int is in milliseconds of the machine's clock.
        """
        deadline = time.monotonic() + milliseconds(within) / 1000
        while (fired := self.fired()) < count:
            if time.monotonic() > deadline:
                raise BrokerError(f"the fault has fired {fired} times, not {count}")
            time.sleep(POLL_SECONDS)

    def remove(self) -> None:
        """Remove the faults: requests succeed again."""
        self._call(calls.RemoveFaults(self._id), type(None))

    def _read(self, *, with_events: bool) -> calls.FaultsSoFar:
        call = calls.ReadFaults(self._id, with_events)
        so_far: calls.FaultsSoFar = self._call(call, calls.FaultsSoFar)
        return so_far
