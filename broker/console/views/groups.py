"""The groups of all four types."""

from __future__ import annotations

from typing import Literal, NamedTuple

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, View
from odradek.broker.console.groups.lags import Lag, Lags
from odradek.broker.console.paging import PageRequest, page_of
from odradek.broker.security.authorizer import CLUSTER_NAME
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.groups.group_state import GroupState

EVERY_S = 2.0


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
    """

    group_id: str
    type: str
    protocol_type: str
    state: str
    members: int
    coordinator: int
    partitions: int
    lag: int | None


class GroupList(View):
    """A page of the groups; `total` is how many there are without paging.

    `is_loading`: the broker has begun a moment ago, and there will be more. `are_lags_complete`:
    False if there were too many to sort all groups by their lag.
    """

    total: int
    is_loading: bool
    are_lags_complete: bool
    groups: list[GroupSummary]


class _Found(NamedTuple):
    """A group of the list, and the state of its partition of `__consumer_offsets`."""

    group_id: str
    group: Group
    state: GroupState


class _Measured(NamedTuple):
    lag: Lag
    found: _Found


def groups(call: Call, request: GroupsRequest) -> GroupList:
    """Make a page. Has the groups that the client may describe."""
    lags = Lags(call)
    shards = call.observed.broker.coordinators.groups.shards
    found = [
        _Found(group.group_id, group, shard.state)
        for shard in shards.serving()
        for group in call.sliced(shard.state.groups.values())
    ]
    found = [each for each in call.sliced(found) if _matches(request, each.group)]
    found = _visible(call, found)
    if request.sort == "name":
        descending = bool(request.descending)
        page = page_of(call, found, _by_name, request, descending=descending)
        measured = [_Measured(lags.of(each.group, each.state), each) for each in call.sliced(page)]
    else:
        all_measured = [
            _Measured(lags.of(each.group, each.state), each) for each in call.sliced(found)
        ]
        key = _by_lag if request.descending is False else _by_lag_descending
        measured = page_of(call, all_measured, key, request)
    return GroupList(
        total=len(found),
        is_loading=shards.is_loading,
        are_lags_complete=lags.are_complete,
        groups=[_summary(call, *each) for each in call.sliced(measured)],
    )


def _matches(request: GroupsRequest, group: Group) -> bool:
    if request.type and group.group_type != request.type:
        return False
    if request.search and not request.matches(group.group_id):
        return False
    return not request.state or group.state_name.lower() == request.state.lower()


def _visible(call: Call, found: list[_Found]) -> list[_Found]:
    """Those that ListGroups shows."""
    if call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return found
    return [
        each
        for each in call.sliced(found)
        if call.may(AclOperation.DESCRIBE, ResourceType.GROUP, each.group_id)
    ]


def _by_name(found: _Found) -> str:
    return found.group_id


def _by_lag(measured: _Measured) -> tuple[bool, int, str]:
    records = measured.lag.records
    return records is None, records or 0, measured.found.group_id


def _by_lag_descending(measured: _Measured) -> tuple[bool, int, str]:
    is_unknown, records, group_id = _by_lag(measured)
    return is_unknown, -records, group_id


def _summary(call: Call, lag: Lag, found: _Found) -> GroupSummary:
    group = found.group
    return GroupSummary(
        group_id=group.group_id,
        type=group.group_type,
        protocol_type=group.listed_protocol_type,
        state=group.state_name,
        members=len(group.members),
        coordinator=call.observed.broker.nodes.own_id,
        partitions=lag.partitions,
        lag=lag.records,
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
