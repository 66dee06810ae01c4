"""Hosts in access control entries: `*`, an address, or a network such as `10.0.0.0/8` (KIP-1276).

An address is compared as text, as Java writes it. A network has an address and the length of its
prefix; the bits after the prefix are ignored. A network of IPv4 has no clients of IPv6, and the
other way round. Kafka decides by networks whatever the metadata.version is, but adds such entries
only from metadata.version 32 (4.4-IV1) on. Kafka: CidrUtils, SubnetUtils, SubnetUtils6.
"""

import re
import struct
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from .acls import WILDCARD

# Python refuses numbers that begin with 0, which Kafka reads as decimal.
_IPV4_NETWORK = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_PREFIX_LENGTH = re.compile(r"[+-]?\d{1,9}", re.ASCII)
MAX_CACHED_NETWORKS = 10_000


class Network(NamedTuple):
    """The addresses that begin with the same bits as `address`. `shift` is how many may differ."""

    ip_version: int
    address: int
    shift: int

    def __contains__(self, address: object) -> bool:
        """Whether an address of a client is in the network; 0.0.0.0 never is, as in Kafka."""
        if not isinstance(address, IPv4Address | IPv6Address):
            return False
        if address.version != self.ip_version or address == IPv4Address(0):
            return False
        return int(address) >> self.shift == self.address >> self.shift


class ClientHost:
    """The host of a client, to be compared with those of entries."""

    __slots__ = ("_address", "_texts")

    def __init__(self, host: str) -> None:
        self._texts = (WILDCARD, java_host(host))
        self._address = _address_of(host)

    def matches(self, pattern: str) -> bool:
        """Whether an entry with this host applies to the client."""
        if pattern in self._texts:
            return True
        if self._address is None or "/" not in pattern:
            return False
        network = _known_network(pattern)
        return network is not None and self._address in network


def java_host(host: str) -> str:
    """An address as Java writes it, and as ACLs have it: `::1` is `0:0:0:0:0:0:0:1`."""
    address = _address_of(host)
    if address is None:
        return host
    if isinstance(address, IPv4Address):
        return str(address)
    text = ":".join(f"{group:x}" for group in struct.unpack(">8H", address.packed))
    return f"{text}%{address.scope_id}" if address.scope_id else text


def network_of(pattern: str) -> Network:
    """Return the network that a host with a `/` stands for. Raises ValueError with the reason."""
    if ":" in pattern:
        return _ipv6_network(pattern)
    match = _IPV4_NETWORK.fullmatch(pattern)
    if match is None:
        raise ValueError(f"Could not parse [{pattern}]")
    *octets, prefix = map(int, match.groups())
    for value, highest in (*((octet, 255) for octet in octets), (prefix, 32)):
        if value > highest:
            raise ValueError(f"Value [{value}] not in range [0,{highest}]")
    return Network(4, int.from_bytes(bytes(octets), "big"), 32 - prefix)


def _ipv6_network(pattern: str) -> Network:
    text, slash, prefix = pattern.partition("/")
    problem = f"Could not parse [{pattern}]"
    if not slash:
        raise ValueError(f"{problem} - missing prefix length")
    if not _PREFIX_LENGTH.fullmatch(prefix):
        raise ValueError(f"{problem} - invalid prefix length")
    if not 0 <= int(prefix) <= 128:
        raise ValueError(f"{problem} - prefix length must be between 0 and 128")
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    address = _address_of(bare)
    if address is None:
        raise ValueError(f"Could not parse [{text}]")
    if not isinstance(address, IPv6Address):
        raise ValueError(f"Could not parse [{text}] - not an IPv6 address")
    return Network(6, int(address), 128 - int(prefix))


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return an address, that of IPv4 if it is mapped; None for a text that is no address."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


@lru_cache(MAX_CACHED_NETWORKS)
def _known_network(pattern: str) -> Network | None:
    try:
        return network_of(pattern)
    except ValueError:
        return None
