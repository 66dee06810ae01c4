"""What one node leads, has, and coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import ResourceType
from odradek.protocol.errors import ApiError

from .cluster import Cluster


class OfNode(NamedTuple):
    """A node of a played cluster. `coordinates` says whether it coordinates an id of a kind."""

    cluster: Cluster
    node_id: int
    coordinates: Callable[[RequestContext, ResourceType, str], bool]

    def leads(self, topic: str, index: int) -> bool:
        """Whether the node leads a partition."""
        return self.cluster.leader(topic, index) == self.node_id

    def has_replica(self, topic: str, index: int) -> bool:
        """Whether the node has a replica of a partition, which may not exist."""
        try:
            return self.node_id in self.cluster.roles(topic, index).replicas
        except ApiError:
            return False
