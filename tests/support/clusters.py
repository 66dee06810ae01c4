"""A cluster of three nodes under test: what the scripts of failures may do to it."""

from collections.abc import Sequence
from typing import Protocol

NODE_IDS = (1, 2, 3)


class Node(Protocol):
    """One node. A killed or stopped node keeps its port and its data, and can start again."""

    @property
    def id(self) -> int:
        """The node id that Metadata lists."""

    @property
    def port(self) -> int:
        """The port of 127.0.0.1 on which clients reach it."""

    @property
    def address(self) -> str:
        """Host and port, as a client is given them."""

    def kill(self) -> None:
        """End it at once, without a controlled shutdown."""

    def stop(self) -> None:
        """End it by a controlled shutdown: its leaders move before."""

    def start(self) -> None:
        """Start it again, and wait until it answers."""

    def pause(self) -> None:
        """Keep its connections, and answer nothing until `resume`."""

    def resume(self) -> None:
        """Go on after `pause`."""


class Cluster(Protocol):
    """Three nodes with the ids of NODE_IDS."""

    @property
    def nodes(self) -> Sequence[Node]:
        """All nodes by id, whether they run or not."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, with commas between them."""

    def node(self, node_id: int) -> Node:
        """The node with that id."""

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make an in-sync replica the leader, and wait until every running node knows it.

        The replicas keep their order.
        """

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Give a partition these replicas in this order, and wait until all are in sync."""


class CuttableCluster(Cluster, Protocol):
    """A cluster whose nodes can be cut off from clients."""

    @property
    def cuttable_bootstrap(self) -> str:
        """The addresses of all nodes, for clients that are to be cut off."""

    def cut(self, node_id: int, client_id: str) -> None:
        """Let nothing pass between a node and the client that came by `cuttable_bootstrap`."""

    def heal_cuts(self) -> None:
        """Let everything pass again, also what was sent meanwhile."""
