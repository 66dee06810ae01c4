"""The warning about listeners that serve everyone."""

import socket
from collections.abc import Iterator

import pytest

from odradek.broker.lifecycle.exposure import exposure_warning
from odradek.broker.network.listeners import BoundListener, bind_registry
from odradek.config.broker_config import BrokerConfig


def bound_to(config: BrokerConfig, *hosts: str) -> list[BoundListener]:
    bound = []
    for listener, host in zip(config.open_listeners, hosts, strict=True):
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        sock.bind((host, 0))
        bound.append(BoundListener(listener, [sock]))
    return bound


@pytest.fixture
def closing() -> Iterator[list[BoundListener]]:
    bound: list[BoundListener] = []
    yield bound
    for each in bound:
        each.close()


def warning(closing: list[BoundListener], listeners: str, *hosts: str, **texts: str) -> str | None:
    config = BrokerConfig.from_texts({"listeners": listeners} | texts)
    closing += bound_to(config, *hosts)
    return exposure_warning(config, closing)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
def test_a_listener_on_this_machine_only_is_no_exposure(
    host: str, closing: list[BoundListener]
) -> None:
    assert warning(closing, "PLAINTEXT://:9092", host) is None


def test_one_line_names_all_exposed_listeners(closing: list[BoundListener]) -> None:
    line = warning(closing, "PLAINTEXT://:9092,SSL://:9093", "0.0.0.0", "0.0.0.0")
    assert line is not None
    assert "\n" not in line
    assert "PLAINTEXT (*:" in line
    assert "SSL (*:" in line


def test_listeners_that_authenticate_are_no_exposure(closing: list[BoundListener]) -> None:
    listeners = "SASL_PLAINTEXT://:9092,SSL://:9093"
    required = {"listener.name.ssl.ssl.client.auth": "required"}
    assert warning(closing, listeners, "0.0.0.0", "::", **required) is None


@pytest.mark.parametrize("listeners", ["PLAINTEXT://:9092", "SASL_PLAINTEXT://:9092"])
def test_the_registry_is_exposed_unless_the_listeners_require_a_login(
    listeners: str, closing: list[BoundListener]
) -> None:
    config = BrokerConfig.from_texts({"listeners": listeners, "odradek.registry.listener": ":0"})
    registry = bind_registry(config)
    assert registry is not None
    closing.append(registry)
    line = exposure_warning(config, closing)
    assert (line is None) == listeners.startswith("SASL")
    assert line is None or "REGISTRY (*:" in line
