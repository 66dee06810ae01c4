"""Serves the calls of a test about the nodes of a played cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from odradek.broker.cluster.played_cluster import PlayedCluster
from odradek.broker.coordinators import Coordinators
from odradek.coordinator.metadata.topics import NO_LEADER, Topics

from . import cluster_calls as calls
from .call import Call


class ClusterService:
    """What a test does with the nodes of its broker."""

    def __init__(self, cluster: PlayedCluster, coordinators: Coordinators, topics: Topics) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._topics = topics

    def serve(self, call: Call) -> object:
        """Do what the test asks for; the result may be awaitable. Raises ApiError, ListenError."""
        return _SERVED[type(call)](self, call)

    def act_on_node(self, call: calls.ActOnNode) -> object:
        """Kill, start, stop, pause, resume or isolate a node."""
        act: Callable[[int], object] = getattr(self._cluster, call.action.value)
        return act(call.node)

    def slow_node(self, call: calls.SlowNode) -> None:
        """Let a node answer later."""
        self._cluster.slow(call.node, call.delay_ms)

    def cut_client(self, call: calls.CutClient) -> None:
        """Cut a node off from a client."""
        self._cluster.cut_from_client(call.node, call.client_id)

    def heal(self, _: calls.HealCluster) -> None:
        """Let all nodes run and answer."""
        self._cluster.heal()

    def notice_now(self, _: calls.NoticeNow) -> None:
        """Let the nodes notice which of them do not answer."""
        self._cluster.notice_now()

    def move_leader(self, call: calls.MoveLeader) -> None:
        """Let another node lead a partition."""
        self._cluster.state.move_leader(call.topic, call.partition, call.to)

    def elect_preferred(self, _: calls.ElectPreferred) -> None:
        """Let the preferred leaders lead."""
        self._cluster.elect_all()

    def reassign(self, call: calls.Reassign) -> None:
        """Move a partition to other nodes, completely."""
        self._cluster.state.reassign(call.topic, call.partition, call.replicas, at_once=True)

    def shrink_isr(self, call: calls.ShrinkIsr) -> None:
        """Set the in-sync nodes of a partition."""
        if call.isr is None:
            self._cluster.state.restore_isr(call.topic, call.partition)
        else:
            self._cluster.state.shrink_isr(call.topic, call.partition, call.isr)

    def lag(self, call: calls.Lag) -> None:
        """Let followers lag."""
        self._cluster.state.hold_back(call.topic, call.partition, call.records)

    def describe_partition(self, call: calls.DescribePartition) -> calls.PartitionRoles:
        """Who leads a partition, and who is in sync."""
        roles = self._cluster.state.roles(call.topic, call.partition)
        return calls.PartitionRoles(
            leader=roles.leader,
            leader_epoch=self._topics[call.topic].partitions[call.partition].leader_epoch,
            replicas=list(roles.replicas),
            isr=list(roles.isr),
        )

    def find_coordinator(self, call: calls.FindCoordinator) -> int:
        """The node that coordinates a group or a transactional id."""
        coordinators = self._coordinators
        shards = (
            coordinators.transactions.shards
            if call.is_transactional
            else coordinators.groups.shards
        )
        if not shards.is_open:
            return NO_LEADER
        return self._cluster.state.leader(shards.topic, shards.partition_of(call.key))


_SERVED: Mapping[type[Call], Callable[[ClusterService, Any], object]] = MappingProxyType(
    {
        calls.ActOnNode: ClusterService.act_on_node,
        calls.SlowNode: ClusterService.slow_node,
        calls.CutClient: ClusterService.cut_client,
        calls.HealCluster: ClusterService.heal,
        calls.NoticeNow: ClusterService.notice_now,
        calls.MoveLeader: ClusterService.move_leader,
        calls.ElectPreferred: ClusterService.elect_preferred,
        calls.Reassign: ClusterService.reassign,
        calls.ShrinkIsr: ClusterService.shrink_isr,
        calls.Lag: ClusterService.lag,
        calls.DescribePartition: ClusterService.describe_partition,
        calls.FindCoordinator: ClusterService.find_coordinator,
    }
)
