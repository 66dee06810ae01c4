"""The addresses of hosts that limits and quotas name.

A host is an address or a name. A name is looked up once, when it is first used. As in Kafka it
stands for its first address, also after its address has changed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Iterable, Sequence
from typing import Any

from odradek.coordinator.runtime.steps import Step, no_step, stepping

logger = logging.getLogger("odradek.quotas")


class HostAddresses:
    """The canonical address of each host, by host. An IPv4 address in IPv6 form is an IPv4 one."""

    def __init__(self) -> None:
        self._by_name: dict[str, str] = {}

    async def look_up(self, hosts: Iterable[str], step: Step = no_step) -> None:
        """Look up the names among the hosts that are not known yet."""
        loop = asyncio.get_running_loop()
        for host in stepping(hosts, step):
            if host and not self.is_known(host):
                try:
                    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                except (OSError, UnicodeError):
                    continue
                self._by_name[host] = _first(found)

    def known(self, host: str) -> str | None:
        """The address of a host if it is an address, or a name that has been looked up."""
        return canonical(host) or self._by_name.get(host)

    def is_known(self, host: str) -> bool:
        """Whether `known` returns an address."""
        return self.known(host) is not None

    def of(self, host: str) -> str | None:
        """The address of a host; a name that is not known yet is looked up now, which blocks.

        None if there is no such host.
        """
        address = self.known(host)
        if address is None:
            try:
                found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                logger.error("a limit for host %s is ignored: %s", host, error)
                return None
            address = self._by_name[host] = _first(found)
        return address


def _first(found: Sequence[tuple[Any, ...]]) -> str:
    """The first address that was found; as in Java, an IPv4 address if there is one."""
    found_v4 = [entry for entry in found if entry[0] == socket.AF_INET]
    return str((found_v4 or found)[0][4][0])


def canonical(host: str) -> str | None:
    """An address in its usual form, or None for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
