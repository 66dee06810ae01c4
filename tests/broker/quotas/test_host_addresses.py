"""Hosts of limits and quotas as addresses: what is looked up, and which address is chosen."""

import asyncio
import socket
from typing import Any

import pytest

from odradek.broker.quotas.host_addresses import HostAddresses, canonical
from odradek.broker.quotas.quotas import Quotas
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.client_quotas import ClientQuotas
from odradek.protocol.records.cluster_metadata import ClientQuotaRecord, EntityData

V4 = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 0))
OTHER_V4 = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.2", 0))
V6 = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0))
OTHER_V6 = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::2", 0, 0, 0))


class Names:
    """A resolver of names, which notes what it was asked."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[Any]] = {}
        self.asked: list[str] = []

    def found(self, host: str, port: None, *, type: socket.SocketKind) -> list[Any]:  # noqa: A002 # as getaddrinfo's
        self.asked.append(host)
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return self.addresses[host]

    async def found_later(self, host: str, port: None, *, type: socket.SocketKind) -> list[Any]:  # noqa: A002 # as getaddrinfo's
        return self.found(host, port, type=type)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    made = Names()
    monkeypatch.setattr(socket, "getaddrinfo", made.found)
    return made


@pytest.mark.parametrize(
    ("found", "address"),
    [
        ([V4], "192.0.2.1"),
        ([V6], "2001:db8::1"),
        ([V6, V4], "192.0.2.1"),
        ([V4, V6], "192.0.2.1"),
        ([V6, OTHER_V4, V4], "192.0.2.2"),
        ([OTHER_V6, V6], "2001:db8::2"),
    ],
)
def test_a_name_stands_for_its_first_address_of_ipv4_if_it_has_one(
    names: Names, found: list[Any], address: str
) -> None:
    names.addresses["host"] = found
    assert HostAddresses().of("host") == address


def test_a_name_is_looked_up_once_although_its_address_changes(names: Names) -> None:
    names.addresses["host"] = [V4]
    hosts = HostAddresses()
    assert not hosts.is_known("host")
    assert hosts.of("host") == "192.0.2.1"
    names.addresses["host"] = [OTHER_V4]
    assert hosts.of("host") == "192.0.2.1"
    assert hosts.is_known("host")
    assert names.asked == ["host"]


def test_a_name_without_an_address_is_asked_for_again(names: Names) -> None:
    hosts = HostAddresses()
    assert hosts.of("host") is None
    assert not hosts.is_known("host")
    names.addresses["host"] = [V4]
    assert hosts.of("host") == "192.0.2.1"


async def test_names_are_looked_up_ahead_and_addresses_are_not(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.found_later)
    names.addresses["host"] = [V6, V4]
    hosts = HostAddresses()
    await hosts.look_up(["", "unknown", "192.0.2.9", "::1", "host"])
    await hosts.look_up(["host"])
    assert names.asked == ["unknown", "host"]
    assert hosts.of("host") == "192.0.2.1"
    assert not hosts.is_known("unknown")


async def test_quotas_that_change_look_up_no_host_again(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    entity = [EntityData(entity_type="ip", entity_name="host")]
    stored, hosts = ClientQuotas(), HostAddresses()
    stored.replay(
        ClientQuotaRecord(entity=entity, key="connection_creation_rate", value=5.0, remove=False)
    )
    quotas = Quotas(BrokerConfig(), stored, hosts, lambda: 0)
    quotas.refresh()
    assert (names.asked, quotas.connection_rates) == (["host"], {})
    names.addresses["host"] = [V4]
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.found_later)
    await hosts.look_up(["host"])
    quotas.refresh()
    assert quotas.connection_rates == {"192.0.2.1": 5}


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("host", None),
        ("", None),
    ],
)
def test_an_address_has_one_form(host: str, address: str | None, names: Names) -> None:
    assert canonical(host) == address
    assert HostAddresses().is_known(host) == (address is not None)
    if address is not None:
        assert HostAddresses().of(host) == address
    assert names.asked == []
