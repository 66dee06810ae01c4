"""Binds the sockets of the listeners, and reads the addresses of sockets.

The ports are taken before any data is touched, so that a start fails early if one is in use.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Iterable, Sequence

from msgspec import Struct

from odradek.broker.common.nodes import Ports
from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener

UNKNOWN_ADDRESS = ("unknown", 0)
# The system picks a port that is free for IPv4; another process may have it for IPv6.
FREE_PORT_ATTEMPTS = 10


class ListenError(Exception):
    """A listener cannot be opened; the message names it and the reason."""


class BoundListener(Struct, frozen=True):
    """A listener whose port is bound. It does not listen yet."""

    listener: Listener
    sockets: list[socket.socket]

    @property
    def port(self) -> int:
        """The bound port; for port 0 in the configuration, the one the system chose."""
        return int(self.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Release the port."""
        for sock in self.sockets:
            sock.close()


def ports_of(bound: Iterable[BoundListener]) -> Ports:
    """The port of each listener, by its name."""
    return {item.listener.name: item.port for item in bound}


def with_ports(listeners: Iterable[Listener], ports: Iterable[int]) -> list[Listener]:
    """The listeners at other ports."""
    return [listener._replace(port=port) for listener, port in zip(listeners, ports, strict=True)]


def bind_ports(config: BrokerConfig) -> tuple[list[BoundListener], BoundListener | None]:
    """Bind the ports of the listeners and of odradek.http.listener, if that is set; all or none.

    Raises ListenError.
    """
    http = config.http_listener
    bound = bind_listeners([*config.open_listeners, *([http] if http else [])])
    return bound, bound.pop() if http else None


def bind_registry(config: BrokerConfig) -> BoundListener | None:
    """Bind odradek.registry.listener, if that is set. Raises ListenError."""
    listener = config.registry_listener
    return bind_listeners([listener])[0] if listener else None


def bind_listeners(
    listeners: Iterable[Listener], *, shares_ports: bool = False
) -> list[BoundListener]:
    """Bind the ports of all listeners, or none. Raises ListenError.

    `shares_ports`: they may be bound again, with the same argument, while nothing listens there.
    """
    bound: list[BoundListener] = []
    try:
        for listener in listeners:
            options = _sharing_options() if shares_ports else _own_options()
            sockets = _bind(listener.host or "", listener.port, options)
            bound.append(BoundListener(listener, sockets))
    except ListenError:
        for bound_listener in bound:
            bound_listener.close()
        raise
    return bound


def listen(bound: Iterable[BoundListener], backlog: int) -> None:
    """Let the sockets listen. Raises ListenError.

    Linux lets two processes bind a port that neither of them listens on. So a port can still be
    lost to another process between its binding and this.
    """
    for item in bound:
        for sock in item.sockets:
            try:
                sock.listen(backlog)
            except OSError as error:
                where = f"{item.listener.host or '*'}:{item.port}"
                raise ListenError(f"cannot listen on {where}: {error.strerror or error}") from error


def _own_options() -> list[int]:
    if sys.platform == "win32":
        # There, SO_REUSEADDR lets another process bind a port that is served.
        return [socket.SO_EXCLUSIVEADDRUSE]
    return [socket.SO_REUSEADDR]


def _sharing_options() -> list[int]:
    if sys.platform in ("linux", "win32"):
        return [socket.SO_REUSEADDR]
    return [socket.SO_REUSEADDR, socket.SO_REUSEPORT]  # BSD and macOS want both, on both sockets


def _bind(host: str, port: int, options: Sequence[int]) -> list[socket.socket]:
    """Bind a socket in every address family of the host. Raises ListenError.

    `localhost` is 127.0.0.1 and ::1, because clients may try either first. An empty host stands for
    all addresses. With port 0, the system picks a free port, which all sockets use.
    """
    where = f"{host or '*'}:{port}"
    attempts = 1 if port else FREE_PORT_ATTEMPTS
    try:
        addresses = _addresses(host, port)
        while True:
            attempts -= 1
            try:
                sockets = _bound_to_all(addresses, port, options)
                break
            except OSError as error:
                if not attempts or error.errno != errno.EADDRINUSE:
                    raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ListenError(f"cannot listen on {where}: {reason}") from error
    if not sockets:
        raise ListenError(f"cannot listen on {where}: this machine has no such address")
    return sockets


def _bound_to_all(
    addresses: Iterable[tuple[socket.AddressFamily, str]], port: int, options: Sequence[int]
) -> list[socket.socket]:
    """Bind a socket for each address, all to one port. Raises OSError, and then binds none."""
    sockets: list[socket.socket] = []
    try:
        for family, address in addresses:
            sock = _bound(family, address, port, options)
            if sock is not None:
                port = sock.getsockname()[1]
                sockets.append(sock)
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    if not host:
        both = socket.has_dualstack_ipv6()
        return [(socket.AF_INET6, "::")] if both else [(socket.AF_INET, "0.0.0.0")]  # no host
    # For bytes the codec of international names, which takes 3 ms, is not imported.
    name = host.encode() if host.isascii() else host
    entries = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    unique = dict.fromkeys((family, str(address[0])) for family, _, _, _, address in entries)
    # IPv4 comes first: with port 0, its socket picks the port.
    return sorted(unique, key=lambda address: address[0] != socket.AF_INET)


def _bound(
    family: socket.AddressFamily, address: str, port: int, options: Sequence[int]
) -> socket.socket | None:
    """Return a bound socket, or None if this machine does not have the address family."""
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    for option in options:
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
    sock.setblocking(False)
    try:
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        if family == socket.AF_INET6 and error.errno == errno.EADDRNOTAVAIL:
            return None
        raise
    return sock


def host_and_port(name: object) -> tuple[str, int]:
    """Host and port of a socket name. An IPv4 client of a dual-stack socket has an IPv4 host."""
    if not isinstance(name, tuple):
        return UNKNOWN_ADDRESS
    host, port = name[0], name[1]
    return str(host).removeprefix("::ffff:"), int(port)
