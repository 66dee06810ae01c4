"""What a test does with the nodes of `Broker(nodes=3)`.

    with Broker(nodes=3) as cluster:
        cluster.create_topic("orders", partitions=3)
        ...
        cluster.node(cluster.partition("orders", 0).leader).kill()

The nodes are played: see the guide's page on clusters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from . import cluster_calls as calls
from .call import Call
from .durations import milliseconds
from .injected import BrokerError

T = TypeVar("T")

PartitionRoles = calls.PartitionRoles
MAX_NODES = 64  # of odradek.nodes


def cluster_settings(nodes: int) -> dict[str, str]:
    """The settings of a broker that plays a cluster of so many nodes; {} for one.

    Raises ValueError.
    """
    if not isinstance(nodes, int) or not 1 <= nodes <= MAX_NODES:
        raise ValueError(f"nodes is {nodes!r}, not a whole number from 1 to {MAX_NODES}")
    if nodes == 1:
        return {}
    return {
        "node.id": "1",
        "odradek.nodes": str(nodes),
        # As in Kafka: clients that lose a node stay members of their groups.
        "odradek.group.expire.on.disconnect": "false",
        "offsets.topic.num.partitions": str(2 * nodes),
        "transaction.state.log.num.partitions": str(2 * nodes),
    }


class Node:
    """A node of the cluster. `id` and `address` (host:port) are what clients see.

    All methods raise BrokerError.
    """

    def __init__(self, cluster: Cluster, node_id: int, address: str) -> None:
        self.id = node_id
        self.address = address
        self._cluster = cluster

    def __repr__(self) -> str:
        return f"Node({self.id}, {self.address})"

    def kill(self) -> None:
        """End the node as kill -9 does: its connections break, and nothing listens at its port.

        The other nodes notice it at once, and lead its partitions.
        """
        self._act(calls.NodeAction.KILL)

    def start(self) -> None:
        """Start the node again, at its port. Its replicas are in sync at once; it leads nothing."""
        self._act(calls.NodeAction.START)

    def stop(self) -> None:
        """Stop the node in good order: other nodes lead its partitions before it ends."""
        self._act(calls.NodeAction.STOP)

    def pause(self) -> None:
        """Let the node answer nothing, as SIGSTOP does. Its connections stay.

        Others notice it after broker.session.timeout.ms, or by `Broker.notice_now`.
        """
        self._act(calls.NodeAction.PAUSE)

    def resume(self) -> None:
        """Let a paused or isolated node continue. It answers what has arrived meanwhile."""
        self._act(calls.NodeAction.RESUME)

    def slow(self, delay: timedelta | int) -> None:
        """Delay every answer by this much; an int is in milliseconds, 0 ends that."""
        self._cluster._call(calls.SlowNode(self.id, milliseconds(delay)), type(None))

    def cut_from(self, client_id: str) -> None:
        """Let nothing pass between the node and a client, until `Broker.heal`."""
        self._cluster._call(calls.CutClient(self.id, client_id), type(None))

    def cut_from_nodes(self) -> None:
        """Let the other nodes lose this one, which still answers clients; `resume` ends that."""
        self._act(calls.NodeAction.CUT_FROM_NODES)

    def _act(self, action: calls.NodeAction) -> None:
        self._cluster._call(calls.ActOnNode(self.id, action), type(None))


class Cluster(ABC):
    """What `Broker(nodes=...)` can do beside a broker of one node."""

    _first_node_id: int

    @property
    @abstractmethod
    def _addresses(self) -> Sequence[str]: ...

    @abstractmethod
    def _call(self, call: Call, result: type[T]) -> T: ...

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in the order of their ids."""
        return [
            Node(self, node_id, address)
            for node_id, address in enumerate(self._addresses, self._first_node_id)
        ]

    def node(self, node_id: int) -> Node:
        """A node. The first one is 1. Raises ValueError."""
        if not self.nodes:
            raise BrokerError("the broker was not started")
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise ValueError(f"there is no node {node_id!r}, only {[node.id for node in self.nodes]}")

    def partition(self, topic: str, partition: int) -> PartitionRoles:
        """The leader, leader epoch, replicas and in-sync replicas of a partition."""
        return self._call(calls.DescribePartition(topic, partition), PartitionRoles)

    def coordinator(self, group_id: str) -> int:
        """The id of the node that coordinates a group; -1: none does."""
        return self._call(calls.FindCoordinator(group_id, is_transactional=False), int)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The id of the node that coordinates a transactional id; -1: none does."""
        return self._call(calls.FindCoordinator(transactional_id, is_transactional=True), int)

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Let another node, which is in sync, lead a partition."""
        self._call(calls.MoveLeader(topic, partition, to), type(None))

    def elect(self) -> None:
        """Let the preferred leaders lead again, where they are in sync."""
        self._call(calls.ElectPreferred(), type(None))

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Move a partition to other nodes. When this returns, they have it."""
        self._call(calls.Reassign(topic, partition, list(replicas)), type(None))

    def shrink_isr(self, topic: str, partition: int, to: Sequence[int] | None = ()) -> None:
        """Let only these nodes and the leader be in sync; None: all that run are, again."""
        isr = None if to is None else list(to)
        self._call(calls.ShrinkIsr(topic, partition, isr), type(None))

    def lag(self, topic: str, partition: int, records: int) -> None:
        """Let the followers have all but the newest records; 0: they have all.

        Consumers do not see what they lack, and acks=all waits for it.
        """
        self._call(calls.Lag(topic, partition, records), type(None))

    def notice_now(self) -> None:
        """Let the nodes notice at once which of them do not answer."""
        self._call(calls.NoticeNow(), type(None))

    def heal(self) -> None:
        """Let all nodes run and answer. Leaders stay as they are; see `elect`."""
        self._call(calls.HealCluster(), type(None))

    def rolling_restart(self) -> None:
        """Stop and start one node after the other, then elect the preferred leaders."""
        for node in self.nodes:
            node.stop()
            node.start()
        self.elect()
