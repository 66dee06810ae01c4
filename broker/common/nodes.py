"""The nodes that clients see: the broker itself, and each of its workers (odradek.workers).

A worker has a node id and ports of its own, so clients send the requests for a partition to the
process that serves it. In the metadata log all partitions belong to the broker's own node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.directories.log_share import LogShare

Ports = Mapping[str, int]  # by listener name


class Node(NamedTuple):
    """A node as clients see it: where they connect to it."""

    id: int
    host: str
    port: int


class Nodes:
    """The nodes of the cluster. `ports` are those of each process, the broker's own first."""

    def __init__(self, config: BrokerConfig, share: LogShare, ports: Sequence[Ports]) -> None:
        self.own_id = config.node_id + share.process
        self.ports = ports
        self._config = config
        self._share = share
        self._has_workers = share.workers > 0

    @property
    def worker_ids(self) -> range:
        """The node ids of the workers."""
        first = self._config.node_id + 1
        return range(first, first + self._share.workers)

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
            Node(self._config.node_id + process, *self.address(listener, local_host, process))
            for process in range(len(self.ports))
        ]

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

    def stored(self, node_ids: Sequence[int], topic: str, partition: int) -> Sequence[int]:
        """The replicas for the metadata log where a client has named `node_ids`.

        The reverse of `replicas`. Ids of no node are kept. Raises INVALID_REPLICA_ASSIGNMENT if the
        id is that of another node than the one that serves the partition.
        """
        if not self._has_workers:
            return node_ids
        own_id = self._config.node_id
        serving_id = own_id + self._share.owner(topic, partition)
        others = {own_id, *self.worker_ids} - {serving_id}
        if not others.isdisjoint(node_ids):
            text = f"partition {partition} of {topic} is served by node {serving_id}"
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{text}; which worker serves a partition cannot be chosen (odradek.workers)",
            )
        return [own_id if node_id == serving_id else node_id for node_id in node_ids]
