"""The nodes that clients see: the broker itself, and each of its workers (odradek.workers).

A worker has a node id and ports of its own, so clients send the requests for a partition to the
process that serves it. In the metadata log all partitions belong to the broker's own node.
The nodes of a played cluster are in cluster/cluster_nodes.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener
from odradek.coordinator.metadata.topics import Topic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.directories.log_share import LogShare

Ports = Mapping[str, int]  # by listener name


class Node(NamedTuple):
    """A node as clients see it: where they connect to it."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class Nodes:
    """The nodes of the cluster. `ports` are those of each process, the broker's own first."""

    def __init__(self, config: BrokerConfig, share: LogShare, ports: Sequence[Ports]) -> None:
        self.own_id = config.node_id + share.process
        self.ports = ports
        self._config = config
        self._share = share
        self._has_workers = share.workers > 0

    @property
    def other_ids(self) -> range:
        """The node ids of the workers, or of the other nodes of a played cluster."""
        first = self._config.node_id + 1
        return range(first, first + (self._share.workers or self._config.odradek_nodes - 1))

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

    def address(self, listener: Listener, local_host: str, process: int) -> tuple[str, int]:
        """Host and port at which clients of the listener are to connect to a process.

        `local_host` is the address by which the client has reached this broker. It is the host if
        none is configured and the listener is bound to every interface.
        """
        advertised = self._config.advertised[listener.name]
        port = self.ports[process][listener.name]
        if advertised.port:
            port = self._config.port_of_process(advertised.port, process)
        return advertised.host or local_host, port

    def all(self, listener: Listener, local_host: str) -> list[Node]:
        """All nodes, as clients of the listener see them."""
        return [
            Node(
                self._config.node_id + process,
                *self.address(listener, local_host, process),
                self._config.broker_rack,
            )
            for process in range(len(self.ports))
        ]

    def fenced(self, listener: Listener, local_host: str) -> list[Node]:  # noqa: ARG002 # none are
        """The nodes that are registered and do not live."""
        return []

    def leader(self, node_id: int, topic: str, partition: int) -> int:
        """The leader that clients see where the metadata log has `node_id`, which may be -1.

        The broker's own node becomes that of the process that serves the partition.
        """
        if not self._has_workers or node_id != self._config.node_id:
            return node_id
        return node_id + self._share.owner(topic, partition)

    def replicas(self, node_ids: Iterable[int], topic: str, partition: int) -> list[int]:
        """The replicas that clients see where the metadata log has `node_ids`."""
        if not self._has_workers:
            return list(node_ids)
        return [self.leader(node_id, topic, partition) for node_id in node_ids]

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

    def stored(self, node_ids: Sequence[int], topic: str, partition: int) -> Sequence[int]:
        """The replicas for the metadata log where a client has named `node_ids`.

        The reverse of `replicas`. Ids of no node are kept. Raises INVALID_REPLICA_ASSIGNMENT if the
        id is that of another node than the one that serves the partition.
        """
        if not self._has_workers:
            return node_ids
        own_id = self._config.node_id
        serving_id = own_id + self._share.owner(topic, partition)
        others = {own_id, *self.other_ids} - {serving_id}
        if not others.isdisjoint(node_ids):
            text = f"partition {partition} of {topic} is served by node {serving_id}"
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{text}; which worker serves a partition cannot be chosen (odradek.workers)",
            )
        return [own_id if node_id == serving_id else node_id for node_id in node_ids]
