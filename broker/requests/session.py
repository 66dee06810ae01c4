"""What the broker knows about the client of a connection.

A session begins with the connection. While it has no principal, Dispatcher serves only ApiVersions
and the SASL APIs.
"""

from __future__ import annotations

from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.config.listeners import Listener


class Session:
    """One connection's addresses and principal.

    `peer_host` and `peer_port` are the client's address. `local_host` is the address by which the
    client reached the broker. `principal` is None until the client is authenticated; listeners
    without authentication begin with ANONYMOUS. `software` is the name and version of the client's
    software (KIP-511), if metrics are kept and the client has sent them.
    """

    __slots__ = ("listener", "local_host", "peer_host", "peer_port", "principal", "software")

    def __init__(
        self, listener: Listener, peer: tuple[str, int], local_host: str = "unknown"
    ) -> None:
        self.listener = listener
        self.peer_host, self.peer_port = peer
        self.local_host = local_host
        self.principal: Principal | None = ANONYMOUS
        self.software: tuple[str, str] | None = None

    def __str__(self) -> str:
        """The client's address, for log lines."""
        return f"{self.peer_host}:{self.peer_port}"
