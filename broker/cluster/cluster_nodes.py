"""The nodes of a played cluster (odradek.nodes), as the handlers of one node see them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from odradek.broker.common.nodes import Node, Nodes, Ports
from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener
from odradek.coordinator.metadata.topics import NO_LEADER, Topic
from odradek.protocol.errors import ApiError

from .cluster import Cluster
from .partition_roles import Roles

_OF_NO_PARTITION = Roles((), (), NO_LEADER)


class ClusterNodes(Nodes):
    """`own_id` is the node whose handlers ask. A partition without a leader has NO_LEADER (-1)."""

    def __init__(
        self, config: BrokerConfig, ports: Sequence[Ports], cluster: Cluster, own_id: int
    ) -> None:
        """`ports` are those of each node, in the order of their ids."""
        super().__init__(config, ports[own_id - config.node_id])
        self.own_id = own_id
        self._ports_of_all = ports
        self._cluster = cluster

    @property
    def controller_id(self) -> int:
        """The node that clients see as the controller."""
        return self._cluster.controller_id

    @property
    def live_ids(self) -> Collection[int]:
        """The nodes that live."""
        return self._cluster.live

    def all(self, listener: Listener, local_host: str) -> list[Node]:
        """The nodes that live, as clients of the listener see them."""
        return [node for node in self._registered(listener, local_host) if not node.is_fenced]

    def fenced(self, listener: Listener, local_host: str) -> list[Node]:
        """The nodes that do not live."""
        return [node for node in self._registered(listener, local_host) if node.is_fenced]

    def _registered(self, listener: Listener, local_host: str) -> list[Node]:
        live, racks = self._cluster.live, self._cluster.racks
        return [
            Node(node_id, *self._address(number, listener, local_host), rack, node_id not in live)
            for number, (node_id, rack) in enumerate(racks.items())
        ]

    def own_address(self, listener: Listener, local_host: str) -> tuple[str, int]:
        """Host and port at which clients of the listener connect to this node."""
        return self._address(self.own_id - self._config.node_id, listener, local_host)

    def _address(self, number: int, listener: Listener, local_host: str) -> tuple[str, int]:
        advertised = self._config.advertised[listener.name]
        port = self._config.port_of_node(advertised.port, number)
        return advertised.host or local_host, port or self._ports_of_all[number][listener.name]

    def leader(self, node_id: int, topic: str, partition: int) -> int:
        """The node that leads a partition, unless its log is offline (-1)."""
        return NO_LEADER if node_id == NO_LEADER else self._cluster.leader(topic, partition)

    def replicas(
        self,
        node_ids: Iterable[int],  # noqa: ARG002 # the metadata log has one node only
        topic: str,
        partition: int,
    ) -> list[int]:
        """The nodes that have a replica."""
        return list(self._roles(topic, partition).replicas)

    def isr(
        self,
        node_ids: Iterable[int],  # noqa: ARG002 # as above
        topic: str,
        partition: int,
    ) -> list[int]:
        """The nodes that are in sync."""
        return list(self._roles(topic, partition).isr)

    def eligible(
        self,
        node_ids: Iterable[int],  # noqa: ARG002 # as above
        topic: str,
        partition: int,
    ) -> list[int]:
        """The eligible leader replicas."""
        return list(self._roles(topic, partition).eligible)

    def last_known(
        self,
        node_ids: Iterable[int],  # noqa: ARG002 # as above
        topic: str,
        partition: int,
    ) -> list[int]:
        """The last leader while no replica is in sync."""
        return list(self._roles(topic, partition).last_known)

    def offline(
        self,
        topic: str,
        partition: int,
        *,
        is_served: bool,  # noqa: ARG002 # a replica is offline if its node is
    ) -> list[int]:
        """The nodes that have a replica and do not live."""
        live = self._cluster.live
        return [node for node in self._roles(topic, partition).replicas if node not in live]

    def replication_factor(self, topic: Topic) -> int:
        """The replication factor of a topic: that of its first partition."""
        return len(self._roles(topic.name, 0).replicas)

    def _roles(self, topic: str, partition: int) -> Roles:
        """The nodes of a partition; none if it was deleted while a request that lists it waited."""
        try:
            return self._cluster.roles(topic, partition)
        except ApiError:
            return _OF_NO_PARTITION
