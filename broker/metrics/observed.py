"""The objects from which the metrics read their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from odradek.broker.broker import Broker
from odradek.broker.common.traffic import Traffic
from odradek.broker.network.connection import Connection
from odradek.broker.network.server import Server
from odradek.coordinator.runtime.steps import Step, no_step

from .loop_delay import LoopDelay


@dataclass(slots=True, kw_only=True)
class Observed:
    """A broker that serves, since `started_ms` on the timer clock.

    `is_stopping` is set when its stop begins. While the metrics are rendered, `step` serves other
    requests: what reads about many things calls it for each.
    """

    broker: Broker
    servers: Callable[[], Sequence[Server]]
    traffic: Traffic
    loop_delay: LoopDelay
    started_ms: int
    is_stopping: bool = False
    step: Step = no_step

    @property
    def connections(self) -> list[Connection]:
        """The connections that are open, of all nodes of a played cluster."""
        return [connection for server in self.servers() for connection in server.connections]

    @property
    def opened_count(self) -> int:
        """How many connections there were, the open ones included, of the nodes that run."""
        return sum(server.opened_count for server in self.servers())
