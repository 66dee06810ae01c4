"""What a node of a played cluster shows as its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from odradek.broker.cluster.played_cluster import reserve_ports
from odradek.broker.handlers import HANDLERS
from odradek.broker.lifecycle.running import open_broker
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.support.wire import WireClient

OWN = {
    "node.id": ("1", "2"),
    "broker.rack": ("a", "b"),
    "listeners": ("PLAINTEXT://127.0.0.1:19092", "PLAINTEXT://127.0.0.1:19093"),
    "advertised.listeners": ("PLAINTEXT://[::1]:29092", "PLAINTEXT://[::1]:29093"),
}


def described(port: int, node_id: str) -> dict[str, set[str | None]]:
    """The value of each setting of a node, and of the synonym that it comes from."""
    resource = DescribeConfigsResource(
        resource_type=ConfigResourceType.BROKER,
        resource_name=node_id,
        configuration_keys=list(OWN),
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    with WireClient(port) as client:
        (result,) = client.ask(request, DescribeConfigsResponse, 4).results
    return {
        each.name: {each.value, *(synonym.value for synonym in each.synonyms[:1])}
        for each in result.configs
    }


async def test_each_node_describes_settings_of_its_own(tmp_path: Path) -> None:
    texts = {name: values[0] for name, values in OWN.items()}
    config = BrokerConfig.from_texts(
        {
            **texts,
            "log.dirs": str(tmp_path),
            "odradek.nodes": "2",
            "odradek.nodes.racks": "a,b",
        }
    )
    any_ports = reserve_ports(config, [[0], [0]])
    running = await open_broker(config, nodes=any_ports, handlers=HANDLERS)
    try:
        for number, [listener] in enumerate(any_ports):
            own = {name: values[number] for name, values in OWN.items()}
            found = await asyncio.to_thread(described, listener.port, own["node.id"])
            assert found == {name: {value} for name, value in own.items()}
    finally:
        await running.stop()
