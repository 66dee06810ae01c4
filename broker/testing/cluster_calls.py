"""The calls that a test makes about the nodes of a played cluster; see calls.py."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from .call import Call, Count, Milliseconds


class NodeAction(StrEnum):
    """What a test does with a node."""

    KILL = "kill"
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    CUT_FROM_NODES = "cut_from_nodes"


class ActOnNode(Call, frozen=True):
    node: int
    action: NodeAction


class SlowNode(Call, frozen=True):
    """Let a node answer so much later."""

    node: int
    delay_ms: Milliseconds


class CutClient(Call, frozen=True):
    """Cut a node off from a client."""

    node: int
    client_id: str


class HealCluster(Call, frozen=True):
    """Start all nodes, and let all requests pass."""


class NoticeNow(Call, frozen=True):
    """Let the nodes notice at once which of them do not answer."""


class MoveLeader(Call, frozen=True):
    topic: str
    partition: int
    to: int


class ElectPreferred(Call, frozen=True):
    """Let the preferred leaders lead, where they are in sync."""


class Reassign(Call, frozen=True):
    topic: str
    partition: int
    replicas: list[int]


class ShrinkIsr(Call, frozen=True):
    """Let only these nodes be in sync; None: all that live."""

    topic: str
    partition: int
    isr: list[int] | None


class Lag(Call, frozen=True):
    """Let the followers lag behind by so many records; 0: they do not."""

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
