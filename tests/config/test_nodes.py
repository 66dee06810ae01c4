"""The ports and ids of the nodes of a played cluster."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("listeners", "PLAINTEXT://:65534", "there is no port 65536 for node 2"),
        ("listeners", "PLAINTEXT://:9092,SSL://:9093", "node 0 and node 1 would listen at port"),
        ("odradek.http.listener", "127.0.0.1:9093", "odradek.http.listener and node 1"),
        ("advertised.listeners", "PLAINTEXT://example.org:65534", "advertised.listeners: the last"),
        ("node.id", str(2**31 - 2), r"node\.id"),
    ],
)
def test_nodes_without_ports_or_ids_of_their_own_are_refused(
    name: str, value: str, problem: str
) -> None:
    settings = {name: value, "odradek.nodes": "1"}
    assert BrokerConfig.from_texts(settings)
    with pytest.raises(ConfigError, match=problem):
        BrokerConfig.from_texts({**settings, "odradek.nodes": "3"})
