"""A member of a streams group that sends its requests by hand, in a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTopology,
)
from tests.conformance.conversation import Change, Conversation
from tests.support.config_requests import alter_configs_request
from tests.support.streams_members import subtopology, task_list, topology

GROUP_RESOURCE = 32
NEWEST = 1  # version of both requests
# Kafka's coordinator may learn of a group's settings a little after the answer to their change.
COORDINATOR_LAG_S = 0.3
Owned = Mapping[str, Sequence[int]]


def beat(
    group: str, member: str, epoch: int, *, owned: Owned | None = None, **words: Any
) -> StreamsGroupHeartbeatRequest:
    """A heartbeat; `owned` are the active tasks that the member reports."""
    said = {
        "active_tasks": task_list(owned),
        "standby_tasks": None if owned is None else [],
        "warmup_tasks": None if owned is None else [],
        "endpoint_information_epoch": 0,
        **words,
    }
    return StreamsGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **said
    )


def join(
    group: str, member: str, sent: StreamsGroupHeartbeatTopology | None, **words: Any
) -> StreamsGroupHeartbeatRequest:
    """The first heartbeat; each member is a process of its own unless `process_id` is given."""
    said = {
        "topology": sent,
        "rebalance_timeout_ms": 60_000,
        "process_id": f"process-{member}",
        "client_tags": [],
        **words,
    }
    return beat(group, member, 0, owned={}, **said)


def configure(talk: Conversation, group: str, **more: str) -> None:
    """Have the group there, and its targets computed without delay."""
    talk.wait_for_coordinator(group)
    change = {
        "streams.assignment.interval.ms": "0",
        "streams.initial.rebalance.delay.ms": "0",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    talk.silently(alter_configs_request(GROUP_RESOURCE, group, change), 1)


def ask(talk: Conversation, request: StreamsGroupHeartbeatRequest, version: int = NEWEST) -> Any:
    """Send a heartbeat; its answer is written down."""
    return talk.ask(request, version)


def describe(
    talk: Conversation, *groups: str, change: Change | None = None, version: int = NEWEST
) -> None:
    """Write down what the groups are; `change` takes from the answer what may differ."""
    request = StreamsGroupDescribeRequest(
        group_ids=list(groups),
        include_authorized_operations=False,
        include_topology_description=version > 0,
    )
    talk.ask(request, version, change)


def reading(topic: str, epoch: int = 0) -> StreamsGroupHeartbeatTopology:
    """One subtopology without stores."""
    return topology(subtopology("0", topic), epoch=epoch)
