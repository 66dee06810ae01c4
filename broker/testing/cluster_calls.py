"""The calls that a test makes about the nodes of a played cluster; see calls.py."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from .call import Call, Count, Milliseconds


class NodeAction(StrEnum):
    """What a test does with a node.

    CUT_FROM_NODES: the other nodes do not reach it; clients do. RESUME ends that, and PAUSE.
    """

    KILL = "kill"
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    CUT_FROM_NODES = "cut_from_nodes"


class ActOnNode(Call, frozen=True):
    """Do something with a node, at once."""

    node: int
    action: NodeAction


class SlowNode(Call, frozen=True):
    """Delay each answer of a node by `delay_ms`; 0 ends that."""

    node: int
    delay_ms: Milliseconds


class CutClient(Call, frozen=True):
    """Cut a node off from a client."""

    node: int
    client_id: str


class HealCluster(Call, frozen=True):
    """Start all nodes, and let all requests pass."""


class NoticeNow(Call, frozen=True):
    """Run the failure detection of the nodes now, without waiting for its timeout."""


class MoveLeader(Call, frozen=True):
    """Let the node `to`, which is in sync, lead a partition."""

    topic: str
    partition: int
    to: int


class ElectPreferred(Call, frozen=True):
    """Let the preferred leaders lead, where they are in sync."""


class Reassign(Call, frozen=True):
    """Move a partition to other nodes, and return when they have it."""

    topic: str
    partition: int
    replicas: list[int]


class ShrinkIsr(Call, frozen=True):
    """Let only these nodes and the leader be in sync; None: all that run are, again."""

    topic: str
    partition: int
    isr: list[int] | None


class Lag(Call, frozen=True):
    """Keep the followers `records` behind the leader; 0 removes the lag."""

    topic: str
    partition: int
    records: Count


class DescribePartition(Call, frozen=True):
    """Returns a PartitionRoles."""

    topic: str
    partition: int


class FindCoordinator(Call, frozen=True):
    """Returns the node that coordinates a group, or a transactional id; -1: none does."""

    key: str
    is_transactional: bool


class PartitionRoles(Struct, frozen=True):
    """The nodes of a partition. `leader` is -1 if it has none."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


AnyClusterCall = (
    ActOnNode
    | SlowNode
    | CutClient
    | HealCluster
    | NoticeNow
    | MoveLeader
    | ElectPreferred
    | Reassign
    | ShrinkIsr
    | Lag
    | DescribePartition
    | FindCoordinator
)
