"""The views of the console: for each one a module with its endpoints, their types and handlers."""

from __future__ import annotations

from odradek.broker.console.endpoints import Endpoint

from . import messages, overview

ENDPOINTS: tuple[Endpoint, ...] = (
    *messages.ENDPOINTS,
    *overview.ENDPOINTS,
)
