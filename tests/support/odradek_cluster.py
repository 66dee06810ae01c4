"""odradek's own cluster of three nodes, as `tests.support.clusters.Cluster`."""

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from odradek.broker.testing import Broker
from tests.support.clusters import NODE_IDS

# As in Apache Kafka's cluster: several partitions, so that groups have different coordinators.
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
}


def why_no_nodes() -> str | None:
    """Why odradek has no cluster of nodes, or None."""
    if "nodes" in inspect.signature(Broker.__init__).parameters:
        return None
    return "odradek.broker.testing.Broker has no nodes yet"


class OdradekNode:
    """One node of `Broker(nodes=3)`."""

    def __init__(self, node_id: int, node: Any) -> None:
        self.id = node_id
        self._node = node

    @property
    def address(self) -> str:
        """Host and port."""
        return str(self._node.address)

    @property
    def port(self) -> int:
        """The port."""
        return int(self.address.rpartition(":")[2])

    def kill(self) -> None:
        """End it at once."""
        self._node.kill()

    def stop(self) -> None:
        """End it by a controlled shutdown."""
        self._node.stop()

    def start(self) -> None:
        """Start it again."""
        self._node.start()

    def pause(self) -> None:
        """Answer nothing until `resume`."""
        self._node.pause()

    def resume(self) -> None:
        """Go on."""
        self._node.resume()


class OdradekCluster:
    """Three nodes in one process; implements `tests.support.clusters.Cluster`."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._nodes = [OdradekNode(each, broker.node(each)) for each in NODE_IDS]

    @property
    def nodes(self) -> Sequence[OdradekNode]:
        """All nodes, by id."""
        return self._nodes

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes."""
        return str(self._broker.bootstrap_servers)

    def node(self, node_id: int) -> OdradekNode:
        """The node with that id."""
        return self._nodes[node_id - 1]

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make a replica the leader."""
        self._broker.move_leader(topic, partition, to)


@contextlib.contextmanager
def running_odradek_cluster(settings: Mapping[str, str] | None = None) -> Iterator[OdradekCluster]:
    """odradek's nodes, which serve inside the `with`."""
    made: Any = Broker  # mypy: this argument is not there yet
    with made(nodes=len(NODE_IDS), settings={**SETTINGS, **(settings or {})}) as broker:
        yield OdradekCluster(broker)
