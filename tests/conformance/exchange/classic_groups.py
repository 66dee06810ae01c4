"""Classic groups of every kind, written at every turn, and what is seen of them.

Their members are left behind as they are: whoever serves the directory next finds the group stable,
with the same members, and its members' sessions begin anew.
"""

import time
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.conformance.wire_groups import WireMember, commit, find_coordinator, stabilise
from tests.support.wire import WireClient

DAY_MS = 24 * 60 * 60 * 1000
WAIT_SECONDS = 60.0


def write_classic_groups(port: int, topic: str, turn: int) -> list[str]:
    """Groups of this turn; their names. The topic has two partitions."""
    kinds = ("pair", "static", "connect", "left", "expiring", "trimmed", "deleted")
    names = {kind: f"classic-{kind}-{turn}" for kind in kinds}
    with WireClient(port) as client:
        _with_members(port, topic, names)
        commit(client, names["expiring"], topic, {0: turn}, retention_ms=30 * DAY_MS)
        commit(client, names["trimmed"], topic, {0: turn, 1: turn}, metadata="one of them goes")
        _trim(client, names["trimmed"], topic)
        commit(client, names["deleted"], topic, {0: turn})
        request = DeleteGroupsRequest(groups_names=[names["deleted"]])
        [told] = client.ask(request, DeleteGroupsResponse, 2).results
        assert told.error_code == ErrorCode.NONE, told
    return list(names.values())


def _with_members(port: int, topic: str, names: dict[str, str]) -> None:
    first, second = (
        WireMember(port, names["pair"], topic, client_id=f"client-{number}") for number in (1, 2)
    )
    stabilise((first, {topic: [0]}), (second, {topic: [1]}))
    first.commit(topic, {0: 1})
    second.commit(topic, {1: 2})
    static = WireMember(port, names["static"], topic, instance="instance")
    stabilise((static, {topic: [0, 1]}))
    worker = WireMember(port, names["connect"], kind="connect", protocol="sessioned")
    stabilise((worker, {}))
    left = WireMember(port, names["left"], topic, protocol="roundrobin")
    stabilise((left, {topic: [0, 1]}))
    left.commit(topic, {0: 3})
    left.leave()
    for member in (first, second, static, worker, left):
        member.client.close()


def _trim(client: WireClient, group: str, topic: str) -> None:
    place = OffsetDeleteRequestPartition(partition_index=1)
    request = OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=[place])]
    )
    told = client.ask(request, OffsetDeleteResponse, 0)
    assert told.error_code == ErrorCode.NONE, told
    assert told.topics[0].partitions[0].error_code == ErrorCode.NONE, told


def described(client: WireClient, groups: list[str]) -> dict[str, Any]:
    """Each classic group with its members, and what the list of all groups says of it."""
    for group in groups:
        find_coordinator(client, group)
    listed = {one.group_id: one for one in _listed(client).groups}
    told = client.ask(DescribeGroupsRequest(groups=groups), DescribeGroupsResponse, 6)
    return {
        one.group_id: {
            "error": one.error_code,
            "state": (one.group_state, one.protocol_type, one.protocol_data),
            "members": sorted(map(repr, one.members)),
            "listed": repr(listed.get(one.group_id)),
        }
        for one in told.groups
    }


def _listed(client: WireClient) -> ListGroupsResponse:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        told = client.ask(ListGroupsRequest(), ListGroupsResponse, 5)
        if told.error_code == ErrorCode.NONE:
            return told
        assert told.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, told
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
