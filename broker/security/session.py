"""What the broker knows about the client of a connection.

A session begins with the connection. While it has a guard, Dispatcher asks it about every request:
before the client has logged in, only ApiVersions and the SASL APIs are served.
"""

from __future__ import annotations

from odradek.broker.security.sasl.authenticator import Authenticator
from odradek.config.key import INT_MAX
from odradek.config.listeners import Listener
from odradek.protocol.api_keys import ApiKey

from .principal import ANONYMOUS, Principal


class Session:
    """One connection's addresses and principal.

    `peer_host` and `peer_port` are the client's address. `local_host` is the address by which the
    client reached the broker. `principal` is None until the client is authenticated; listeners
    without authentication begin with ANONYMOUS. `token_authenticated` says that the client has
    logged in by a delegation token; it may not use the APIs of tokens. `guard` is the client's
    login, while that must check requests. `max_request_bytes` limits the next request. `ends` says
    that the connection is closed after the current response. `software` is the name and version of
    the client's software (KIP-511), if the client has sent them, and `client_id` what it then
    called itself. `client_instance_id` is the client whose telemetry has begun on this connection
    (KIP-714). `api_versions` are those of the requests that were timed, if any were.
    """

    __slots__ = (
        "api_versions",
        "client_id",
        "client_instance_id",
        "ends",
        "guard",
        "listener",
        "local_host",
        "max_request_bytes",
        "peer_host",
        "peer_port",
        "principal",
        "software",
        "token_authenticated",
    )

    def __init__(
        self,
        listener: Listener,
        peer: tuple[str, int],
        local_host: str = "unknown",
        max_request_bytes: int = INT_MAX,
    ) -> None:
        self.listener = listener
        self.peer_host, self.peer_port = peer
        self.local_host = local_host
        self.max_request_bytes = max_request_bytes
        self.principal: Principal | None = ANONYMOUS
        self.token_authenticated = False
        self.guard: Authenticator | None = None
        self.ends = False
        self.software: tuple[str, str] | None = None
        self.client_id: str | None = None
        self.client_instance_id: bytes | None = None
        self.api_versions: dict[ApiKey, int] | None = None

    @property
    def client(self) -> tuple[Principal | None, str]:
        """Who shares costly work fairly with others: a principal on one machine."""
        return self.principal, self.peer_host

    def __str__(self) -> str:
        """The client's address, for log lines."""
        return f"{self.peer_host}:{self.peer_port}"
