"""The nodes that clients see: this broker alone.

A broker can play a cluster of several nodes for tests of clients (odradek.nodes). The nodes of such
a played cluster are in cluster/cluster_nodes.py, which has the same methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener
from odradek.coordinator.metadata.topics import Topic

Ports = Mapping[str, int]  # by listener name


class Node(NamedTuple):
    """A node as clients see it: where they connect to it."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class Nodes:
    """The nodes of the cluster. `ports` are those at which the node `own_id` listens."""

    def __init__(self, config: BrokerConfig, ports: Ports) -> None:
        self.own_id = config.node_id
        self.ports = ports
        self._config = config

    @property
    def controller_id(self) -> int:
        """The node that clients see as the controller."""
        return self.own_id

    @property
    def replica_ids(self) -> Sequence[int]:
        """The nodes that may have replicas, as the metadata log knows them."""
        nodes = self._config.odradek_nodes
        return range(self._config.node_id, self._config.node_id + nodes)

    @property
    def live_ids(self) -> Collection[int]:
        """Those of them that live."""
        return self.replica_ids

    def own_address(self, listener: Listener, local_host: str) -> tuple[str, int]:
        """Host and port at which clients of the listener are to connect to the node `own_id`.

        `local_host` is the address by which the client has reached this broker. It is the host if
        none is configured and the listener is bound to every interface.
        """
        advertised = self._config.advertised[listener.name]
        return advertised.host or local_host, advertised.port or self.ports[listener.name]

    def all(self, listener: Listener, local_host: str) -> list[Node]:
        """All nodes that live, as clients of the listener see them."""
        address = self.own_address(listener, local_host)
        return [Node(self.own_id, *address, self._config.broker_rack)]

    def fenced(self, listener: Listener, local_host: str) -> list[Node]:  # noqa: ARG002 # none are
        """The nodes that are registered and do not live."""
        return []

    # Which nodes have a partition. The arguments are what the metadata log has, and the partition.

    def leader(self, node_id: int, topic: str, partition: int) -> int:  # noqa: ARG002 # as in a cluster
        """The leader that clients see where the metadata log has `node_id`, which may be -1."""
        return node_id

    def replicas(self, node_ids: Iterable[int], topic: str, partition: int) -> list[int]:  # noqa: ARG002 # as in a cluster
        """The replicas that clients see where the metadata log has `node_ids`."""
        return list(node_ids)

    def replication_factor(self, topic: Topic) -> int:
        """The replication factor of a topic, as clients see it."""
        return topic.replication_factor

    def isr(self, node_ids: Iterable[int], topic: str, partition: int) -> list[int]:
        """The in-sync replicas that clients see where the metadata log has `node_ids`."""
        return self.replicas(node_ids, topic, partition)

    def eligible(self, node_ids: Iterable[int], topic: str, partition: int) -> list[int]:
        """The eligible leader replicas (KIP-966) where the metadata log has `node_ids`."""
        return self.replicas(node_ids, topic, partition)

    def last_known(self, node_ids: Iterable[int], topic: str, partition: int) -> list[int]:
        """The last known leaders (KIP-966) where the metadata log has `node_ids`."""
        return self.replicas(node_ids, topic, partition)

    def offline(self, topic: str, partition: int, *, is_served: bool) -> list[int]:
        """The replicas that are offline. `is_served`: the partition has a leader."""
        return [] if is_served else self.replicas([self.own_id], topic, partition)
