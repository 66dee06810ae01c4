"""The broker as the handlers of one node see it: they find the logs that the node leads, or has.

The objects here stand in for others, whose attributes they have, but for a few of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from odradek.broker.broker import Broker
from odradek.broker.common.nodes import Nodes
from odradek.broker.coordinators import Coordinators
from odradek.broker.fetching.fetch_sessions import FetchSessions
from odradek.broker.fetching.fetch_waiters import FetchWaiters
from odradek.broker.fetching.fetching import Fetching
from odradek.broker.shares.shares import Shares
from odradek.coordinator.metadata.topics import NO_LEADER
from odradek.protocol.errors import ApiError
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

from .cluster_nodes import ClusterNodes

# Raises ApiError if a node may not use a log for a request.
Check = Callable[[PartitionLog], object]


class _StandIn:
    """Has the attributes of another object, but for its own."""

    def __init__(self, original: object) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _CheckedLogs(_StandIn):
    """The logs that a request may use; for others `get` raises what the check raises."""

    def __init__(self, manager: LogManager, check: Check) -> None:
        super().__init__(manager)
        self._manager = manager
        self._check = check

    def get(self, topic: str, partition: int) -> PartitionLog:
        log = self._manager.get(topic, partition)
        self._check(log)
        return log

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        log = self._manager.find(topic, partition)
        return log if log is not None and self._may_use(log) else None

    def of_topic(self, topic: str) -> Mapping[int, PartitionLog]:
        logs = self._manager.of_topic(topic)
        return {index: log for index, log in logs.items() if self._may_use(log)}

    def _may_use(self, log: PartitionLog) -> bool:
        try:
            self._check(log)
        except ApiError:
            return False
        return True


class _NodeFetching(_StandIn):
    """The sessions and the waiting requests of one node, and the reads that all share."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker.fetching)
        self.waiters = FetchWaiters(broker.loop)
        self.sessions = FetchSessions(
            broker.config.max_incremental_fetch_session_cache_slots,
            new_id=lambda: random.randrange(1, 2**31),
            partition_count=broker.metadata.topics.partition_count,
            find_topic_name=broker.find_topic_name,
        )


class _NodeCoordinators(_StandIn):
    """The coordinators, and the share-partitions that one node leads."""

    def __init__(self, coordinators: Coordinators, shares: Shares) -> None:
        super().__init__(coordinators)
        self.shares = shares


class NodeParts(NamedTuple):
    """What a node has of its own, while it runs."""

    nodes: ClusterNodes
    fetching: Fetching
    shares: Shares


class _NodeBroker(_StandIn):
    def __init__(self, broker: Broker, parts: NodeParts, check: Check) -> None:
        super().__init__(broker)
        nodes, fetching, shares = parts
        self._broker = broker
        self.coordinators = cast("Coordinators", _NodeCoordinators(broker.coordinators, shares))
        self.nodes: Nodes = nodes
        self.fetching = fetching
        self.log_manager = cast("LogManager", _CheckedLogs(broker.log_manager, check))

    def is_served(self, topic: str, partition: int) -> bool:
        """Whether a node leads the partition, and its log is online."""
        is_led = self.nodes.leader(0, topic, partition) != NO_LEADER
        return is_led and self._broker.is_served(topic, partition)


def node_fetching(broker: Broker) -> Fetching:
    """What the Fetch requests of one node share, while it runs."""
    return cast("Fetching", _NodeFetching(broker))


def node_broker(broker: Broker, parts: NodeParts, check: Check) -> Broker:
    """The broker as handlers of one node see it, with the logs that `check` allows."""
    return cast("Broker", _NodeBroker(broker, parts, check))
