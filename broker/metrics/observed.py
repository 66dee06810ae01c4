"""The objects from which the metrics read their values."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.broker import Broker
from odradek.broker.common.traffic import Traffic
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
    server: Server
    traffic: Traffic
    loop_delay: LoopDelay
    started_ms: int
    is_stopping: bool = False
    step: Step = no_step
