"""One broker with a registry serves all tests; each finds it empty."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.testing.broker import Broker
from tests.support.registry_client import RegistryClient


@pytest.fixture(scope="session")
def broker_with_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("registry"), registry=True) as broker:
        yield broker


@pytest.fixture
def broker(broker_with_registry: Broker) -> Broker:
    broker_with_registry.reset()
    return broker_with_registry


@pytest.fixture
def registry(broker: Broker) -> RegistryClient:
    return RegistryClient(broker.registry_url)


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker that a test may kill."""
    with Broker(tmp_path / "broker", registry=True) as broker:
        yield broker
