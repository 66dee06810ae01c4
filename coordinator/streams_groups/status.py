"""What the response to a heartbeat says about the group, besides the member's tasks.

Kafka: StreamsGroupHeartbeatResponse.Status.
"""

from enum import IntEnum
from typing import NamedTuple


class StatusCode(IntEnum):
    """On the wire: never renumber."""

    STALE_TOPOLOGY = 0
    """The member's topology is older than the group's."""
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    """Topics that are joined, or an internal topic, have another number of partitions."""
    MISSING_INTERNAL_TOPICS = 3
    """They are being created."""
    SHUTDOWN_APPLICATION = 4
    """A member has asked all members to stop."""
    ASSIGNMENT_DELAYED = 5
    """New tasks wait for the initial rebalance delay, or for the assignment interval."""
    MISSING_CLIENT_TAGS = 6
    """The member lacks client tags over which standby tasks are spread."""


class Status(NamedTuple):
    """A code, and the values that belong to it as text."""

    code: StatusCode
    detail: str
