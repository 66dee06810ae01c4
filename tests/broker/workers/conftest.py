"""A broker with workers that the tests of a module share."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.broker_with_workers import BrokerWithWorkers


@pytest.fixture(scope="module")
def overrides() -> dict[str, str]:
    """The settings that are not as usual."""
    return {}


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, overrides: dict[str, str]
) -> Iterator[BrokerWithWorkers]:
    made = BrokerWithWorkers(tmp_path_factory.mktemp("workers"), overrides=overrides).start()
    yield made
    assert made.terminate() == 0
    assert made.crashes_in_log() == []


@pytest.fixture(scope="module")
def admin(broker: BrokerWithWorkers) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})
