"""What a handler is told about the request it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..broker import Broker
    from ..network.connection import Connection


class RequestContext:
    """One request: who sent it, in which version, and when it came."""

    __slots__ = ("api_version", "broker", "client_id", "connection", "now_ms")

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        api_version: int,
        client_id: str | None,
        now_ms: int,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.api_version = api_version
        self.client_id = client_id
        self.now_ms = now_ms

    @property
    def client_host(self) -> str:
        """The peer's address, as Kafka prints it in group descriptions: with a leading slash."""
        return f"/{self.connection.peer_host}"

    def advertised(self) -> tuple[str, int]:
        """Host and port that this client is told to connect to."""
        return self.broker.advertised(self.connection.listener, self.connection.local_host)
