"""The registry of one broker, as an HTTP server of its own."""

from __future__ import annotations

import logging

from odradek.broker.broker import Broker
from odradek.broker.http.own_version import OWN_VERSION
from odradek.broker.http.server import HttpServer
from odradek.broker.network.listeners import BoundListener
from odradek.coordinator.registry.errors import RegistryError

from . import first_imports  # noqa: F401
from .access import Access
from .replies import http_error
from .resources import Resources
from .schema_log import SchemaLog
from .service import RegistryService

logger = logging.getLogger("odradek.registry")


class RestServer:
    """Serves from its creation to `close`. The first request may come before all is loaded."""

    def __init__(self, broker: Broker, bound: BoundListener) -> None:
        """Listen on the bound port. Raises OSError."""
        self._service = RegistryService(
            SchemaLog(broker), broker.background, broker.fetching.walks, broker.turns.slices
        )
        resources = Resources(
            self._service, Access(broker), broker.metadata.cluster_id, OWN_VERSION
        )
        self._http = HttpServer(broker.loop, bound, resources.routes(), error_response=http_error)
        broker.background.start(self._load())
        logger.info("the schema registry listens on %s:%d", bound.listener.host or "*", bound.port)

    async def _load(self) -> None:
        try:
            await self._service.load()
        except RegistryError as error:  # the next request tries again
            logger.warning("the schemas are not loaded yet: %s", error.message)

    def close(self) -> None:
        """Stop answering."""
        self._http.close()
