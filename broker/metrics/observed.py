"""The objects of a process from which the metrics read their values."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.broker import Broker
from odradek.broker.common.traffic import Traffic
from odradek.broker.network.server import Server
from odradek.broker.node import BrokerNode

from .loop_delay import LoopDelay


@dataclass(slots=True, kw_only=True)
class Observed:
    """A process that serves, since `started_ms` on the timer clock.

    `is_stopping` is set when its stop begins.
    """

    broker: BrokerNode
    server: Server
    traffic: Traffic
    loop_delay: LoopDelay
    started_ms: int
    is_stopping: bool = False


@dataclass(slots=True, kw_only=True)
class ObservedBroker(Observed):
    """The broker's own process, which has more to show than a worker (odradek.workers)."""

    broker: Broker
