"""Parses listeners (`NAME://host:port`) and the map from names to security protocols.

An empty host means every interface. An IPv6 address is written in brackets. Names are converted to
upper case. Two listeners may share a port only if one has an IPv4 and the other an IPv6 address.
Port 0 means any free port, so several listeners may have it.

Kafka: SocketServerConfigs.listenerListToEndPoints, AbstractKafkaConfig.validate and
effectiveListenerSecurityProtocolMap, Csv.parseCsvMap, Utils.validHostPattern.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from .errors import invalid_value
from .java_text import JAVA_BLANKS, parse_integer

_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]+")
_FORMAT = "must be NAME://host:port"
_MAP = "listener.security.protocol.map"
_LIMITS = "max.connections.per.ip.overrides"


class SecurityProtocol(StrEnum):
    """How a connection is encrypted and authenticated. Kafka numbers them in this order."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_sasl(self) -> bool:
        """Whether clients log in by SASL."""
        return self.name.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def number(self) -> int:
        """Kafka's number of the protocol, as it is in the metadata log: the order above."""
        return list(SecurityProtocol).index(self)


class Listener(NamedTuple):
    """One endpoint. Host None means every interface (to listen on) or unknown (to advertise)."""

    name: str
    host: str | None
    port: int
    security_protocol: SecurityProtocol

    def __str__(self) -> str:
        host = self.host or ""
        return f"{self.name}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def without_wildcard(self) -> "Listener":
        """This listener with host None if the host is a wildcard, which nobody can connect to."""
        return self._replace(host=None) if self.host in ("0.0.0.0", "::") else self


def parse_listeners(
    key: str,
    entries: Iterable[str],
    protocols: Mapping[str, SecurityProtocol],
    *,
    distinct_ports: bool = True,
) -> tuple[Listener, ...]:
    """Parse a list of listeners. Raises ConfigError for a malformed or duplicate entry."""
    listeners = tuple(_parse_listener(key, entry, protocols) for entry in entries)
    names = [item.name for item in listeners]
    for item in listeners:
        if names.count(item.name) > 1:
            raise invalid_value(key, str(item), "each listener must have a different name")
    if distinct_ports:
        _check_ports(key, listeners)
    return listeners


def _parse_listener(key: str, entry: str, protocols: Mapping[str, SecurityProtocol]) -> Listener:
    match = _ENDPOINT.fullmatch(entry)
    if match is None or not match[1].strip():
        raise invalid_value(key, entry, _FORMAT)
    name, host, port = match[1].upper(), match[2], int(match[3])
    if not 0 <= port <= 65535:
        raise invalid_value(key, entry, f"{_FORMAT}, with a port from 0 to 65535")
    if name not in protocols:
        raise invalid_value(key, entry, f"the name must be one of {_MAP}: {', '.join(protocols)}")
    return Listener(name, host or None, port, protocols[name])


def parse_http_listener(key: str, text: str) -> Listener:
    """Parse `host:port`, the address of the HTTP server. Raises ConfigError."""
    match = _ENDPOINT.fullmatch(f"HTTP://{text.strip()}")
    if match is None or not 0 <= int(match[3]) <= 65535:
        raise invalid_value(key, text, "must be host:port, with a port from 0 to 65535")
    return Listener("HTTP", match[2] or None, int(match[3]), SecurityProtocol.PLAINTEXT)


def _check_ports(key: str, listeners: Sequence[Listener]) -> None:
    for item in listeners:
        same_port = [other for other in listeners if other.port == item.port != 0]
        versions = sorted(_ip_version(other.host) for other in same_port)
        if len(same_port) > 1 and versions != [4, 6]:
            raise invalid_value(
                key,
                str(item),
                "each listener must have a different port, or one an IPv4 and one an IPv6 address",
            )


def _ip_version(host: str | None) -> int:
    """4, 6, or 0 for a host name."""
    if host is None:
        return 0
    if ":" in host:
        return 6
    return 4 if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", host) else 0


def protocols_by_listener(
    text: str, *, names_that_default_to_plaintext: Iterable[str] = ()
) -> dict[str, SecurityProtocol]:
    """Parse the map from listener names to security protocols. Raises ConfigError.

    The names in `names_that_default_to_plaintext` need no entry. Without a map from the user these
    are the controller's listeners.
    """
    defaults = dict.fromkeys(map(str.upper, names_that_default_to_plaintext), "PLAINTEXT")
    pairs = {name.upper(): protocol.upper() for name, protocol in _pairs(_MAP, text)}
    for name, protocol in pairs.items():
        if protocol not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol)
            raise invalid_value(_MAP, f"{name}:{protocol}", f"the protocol must be one of: {known}")
    return {name: SecurityProtocol(protocol) for name, protocol in (defaults | pairs).items()}


def parse_limits_by_host(text: str) -> dict[str, int]:
    """Parse max.connections.per.ip.overrides to limits by host. Raises ConfigError."""
    limits = {}
    for host, count in _pairs(_LIMITS, text):
        try:
            limits[host] = parse_integer(count, 32)
        except ValueError:
            limits[host] = -1
        if not _HOST.fullmatch(host) or limits[host] < 0:
            raise invalid_value(_LIMITS, f"{host}:{count}", "must be a list of host:count")
    return limits


def _pairs(key: str, text: str) -> list[tuple[str, str]]:
    """`a:1, b:c:2` -> [(a, 1), (b:c, 2)]: an entry is split at its last colon."""
    pairs = []
    for entry in filter(None, (item.strip(JAVA_BLANKS) for item in text.split(","))):
        name, colon, value = entry.rpartition(":")
        if not colon:
            raise invalid_value(key, entry, "must be a list of name:value")
        pairs.append((name.strip(JAVA_BLANKS), value.strip(JAVA_BLANKS)))
    return pairs
