"""What the metrics are read from."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.broker import Broker
from odradek.broker.common.traffic import Traffic
from odradek.broker.network.server import Server

from .loop_delay import LoopDelay


@dataclass(slots=True, kw_only=True)
class Observed:
    """A broker that serves. `is_stopping` is set when its stop begins."""

    broker: Broker
    server: Server
    traffic: Traffic
    loop_delay: LoopDelay
    is_stopping: bool = False

    @property
    def is_worker(self) -> bool:
        """Whether the broker is a worker (odradek.workers)."""
        return self.broker.log_manager.share.process != 0
