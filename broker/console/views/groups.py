"""The groups of all four types."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Literal

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint
from odradek.broker.console.groups.all_lags import AllLags, Ranked
from odradek.broker.console.groups.lags import Lag, Lags
from odradek.broker.console.paging import PageRequest, page_of
from odradek.broker.console.view import View
from odradek.broker.security.authorizer import CLUSTER_NAME
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.groups.group_state import GroupState

EVERY_S = 2.0
PART = 500  # groups

_BY_NAME = attrgetter("group_id")


class GroupsRequest(PageRequest):
    """The groups of one `type` or in one `state` only, if these are not empty.

    `descending` is the default of `sort=lag`: the groups that are furthest behind come first.
    """

    type: Literal["", "classic", "consumer", "share", "streams"] = ""
    state: str = ""
    sort: Literal["name", "lag"] = "name"
    descending: bool | None = None


class GroupSummary(View):
    """A group of the list.

    `coordinator` is the id of the node that has the group. `partitions` counts those in which the
    group has an offset, and `lag` their records that the group has not done; None: none is known.
    `held_back` counts the partitions where an open transaction stops consumers of committed records
    that have read all before it.
    """

    group_id: str
    type: str
    protocol_type: str
    state: str
    members: int
    coordinator: int
    partitions: int
    lag: int | None
    held_back: int


class GroupList(View):
    """A page of the groups; `total` is how many there are without paging.

    `is_loading`: the broker has begun a moment ago, and there will be more. `are_lags_complete`:
    False if there were too many to sort all groups by their lag.
    """

    total: int
    is_loading: bool
    are_lags_complete: bool
    groups: list[GroupSummary]


def groups(call: Call, request: GroupsRequest) -> GroupList:
    """Make a page. Has the groups that the client may describe."""
    return _by_lag(call, request) if request.sort == "lag" else _by_name(call, request)


def _by_name(call: Call, request: GroupsRequest) -> GroupList:
    shards = call.observed.broker.coordinators.groups.shards
    found: list[Group] = []
    for _, part in _found(call, request):
        found += part
    page = page_of(call, found, _BY_NAME, request, descending=bool(request.descending))
    lags = Lags(call)
    measured = (
        (lags.of(group, shards.of(group.group_id).state), group) for group in call.sliced(page)
    )
    summaries = [_summary(call, *each) for each in measured]
    return _list_of(call, len(found), summaries, are_lags_complete=lags.are_complete)


def _by_lag(call: Call, request: GroupsRequest) -> GroupList:
    """The parts are sorted, and merged as far as the page needs."""
    lags = AllLags(call)
    sign = 1 if request.descending is False else -1
    end = request.first + request.limit
    parts: list[list[Ranked]] = []
    total = 0
    for state, part in _found(call, request):
        ranked = lags.ranked(part, state, sign)
        ranked.sort()
        del ranked[end:]
        parts.append(ranked)
        total += len(part)
    page = islice(call.sliced(merge(*parts)), request.first, end)
    shards = call.observed.broker.coordinators.groups.shards
    summaries = []
    for *_, lag, group in page:
        summary = _summary(call, lag, group)
        summary.held_back = lags.held_back(group, shards.of(group.group_id).state)
        summaries.append(summary)
    for ranked in call.sliced(parts):  # freeing thousands of objects takes as long as making them
        ranked.clear()
    return _list_of(call, total, summaries, are_lags_complete=lags.are_complete)


def _list_of(
    call: Call, total: int, summaries: list[GroupSummary], *, are_lags_complete: bool
) -> GroupList:
    return GroupList(
        total=total,
        is_loading=call.observed.broker.coordinators.groups.shards.is_loading,
        are_lags_complete=are_lags_complete,
        groups=summaries,
    )


def _found(call: Call, request: GroupsRequest) -> Iterator[tuple[GroupState, list[Group]]]:
    """The groups that are asked for, of those that ListGroups shows, with the state of their shard.

    They are looked at in parts, between which other requests are served: there may be thousands.
    """
    search, name = request.search.lower(), request.state.lower()
    sees_all = call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    for shard in list(call.observed.broker.coordinators.groups.shards.serving()):
        groups = list(shard.state.groups.values())
        for start in call.sliced(iter(range(0, len(groups), PART))):
            part = groups[start : start + PART]
            if search:
                part = [group for group in part if search in group.group_id.lower()]
            if request.type:
                part = [group for group in part if group.group_type == request.type]
            if name:
                part = [group for group in part if group.state_name.lower() == name]
            if not sees_all:
                part = [
                    group
                    for group in call.sliced(part)
                    if call.may(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id)
                ]
            yield shard.state, part


def _summary(call: Call, lag: Lag, group: Group) -> GroupSummary:
    return GroupSummary(
        group_id=group.group_id,
        type=group.group_type,
        protocol_type=group.listed_protocol_type,
        state=group.state_name,
        members=len(group.members),
        coordinator=call.observed.broker.nodes.own_id,
        partitions=lag.partitions,
        lag=lag.records,
        held_back=lag.held_back,
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/groups",
        summary="The groups of all types, with their lag.",
        handle=groups,
        request=GroupsRequest,
        response=GroupList,
        every_s=EVERY_S,
    ),
)
