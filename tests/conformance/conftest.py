"""Fixtures of the conformance tests."""

import pytest

from tests.conformance.clients import CLIENTS
from tests.conformance.clients.client import Client
from tests.support.broker_process import BrokerProcess
from tests.support.topics import create_topic


@pytest.fixture(params=CLIENTS.values(), ids=CLIENTS.keys())
def client(request: pytest.FixtureRequest) -> Client:
    """Each of the Python clients in turn."""
    return request.param


@pytest.fixture
def three_partitions(broker: BrokerProcess, topic: str) -> str:
    """A new topic of three partitions."""
    create_topic(broker.bootstrap, topic, 3)
    return topic
