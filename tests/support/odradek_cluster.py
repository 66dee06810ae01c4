"""odradek's own cluster of three nodes, as `tests.support.clusters.Cluster`."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from odradek.broker.testing import Broker
from odradek.broker.testing.cluster import Node
from tests.support.clusters import NODE_IDS

# As in Apache Kafka's cluster: several partitions, so that groups have different coordinators.
SETTINGS = {
    # The records of the scripts are old: retention would delete them when it happens to run.
    "log.retention.ms": "-1",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
}


class OdradekNode(Node):
    """One node of `Broker(nodes=3)`."""

    @property
    def port(self) -> int:
        """The port of 127.0.0.1 on which clients reach it."""
        return int(self.address.rpartition(":")[2])


class OdradekCluster:
    """Three nodes in one process; implements `tests.support.clusters.Cluster`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._nodes = [OdradekNode(broker, one.id, one.address) for one in broker.nodes]

    @property
    def nodes(self) -> Sequence[OdradekNode]:
        """All nodes, by id."""
        return self._nodes

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes."""
        return self._broker.bootstrap_servers

    def node(self, node_id: int) -> OdradekNode:
        """The node with that id."""
        return self._nodes[node_id - 1]

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make a replica the leader."""
        self._broker.move_leader(topic, partition, to)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Give a partition these replicas."""
        self._broker.reassign(topic, partition, replicas)

    @property
    def cuttable_bootstrap(self) -> str:
        """The same addresses: a client is known by its id."""
        return self._broker.bootstrap_servers

    def cut(self, node_id: int, client_id: str) -> None:
        """Cut a client off from a node."""
        self.node(node_id).cut_from(client_id)

    def heal_cuts(self) -> None:
        """All nodes answer all clients."""
        self._broker.heal()


@contextlib.contextmanager
def running_odradek_cluster(settings: Mapping[str, str] | None = None) -> Iterator[OdradekCluster]:
    """odradek's nodes, which serve inside the `with`."""
    with Broker(nodes=len(NODE_IDS), settings={**SETTINGS, **(settings or {})}) as broker:
        yield OdradekCluster(broker)
