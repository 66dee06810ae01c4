"""A topic of a test broker that a share group reads, and what the answers to its members say."""

from typing import Any

from odradek.broker.testing import Broker
from tests.conformance.share_reader import ShareReader, joined, prepare_group
from tests.support.wire import WireClient


class Queue:
    """A topic that a share group reads."""

    def __init__(self, broker: Broker, **settings: str) -> None:
        self.broker = broker
        self.clients: list[WireClient] = []
        broker.create_topic("orders")
        with WireClient(self.port) as client:
            self.topic_id = prepare_group(client, "cooks", "orders", **settings)

    @property
    def port(self) -> int:
        return int(self.broker.bootstrap_servers.rpartition(":")[2])

    def member(self, name: str) -> ShareReader:
        """A member with a connection of its own."""
        client = WireClient(self.port)
        self.clients.append(client)
        return joined(client, "cooks", name, "orders", self.topic_id)

    def close(self) -> None:
        for client in self.clients:
            client.close()


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count of what a ShareFetch has brought."""
    assert not answer.error_code
    return [
        (one.first_offset, one.last_offset, one.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for one in partition.acquired_records
    ]


def acknowledged(answer: Any) -> list[int]:
    assert not answer.error_code
    return [one.error_code for topic in answer.responses for one in topic.partitions]
