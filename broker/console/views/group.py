"""A group: its members, its offsets, and what its consumers wait for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated

from msgspec import Meta

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint
from odradek.broker.console.groups.deliveries import (
    MAX_RANGES,
    MAX_RANGES_IN_ALL,
    ShareDelivery,
    delivery_of,
)
from odradek.broker.console.groups.described import GroupMember, TopologyView, described
from odradek.broker.console.groups.finding import find_group
from odradek.broker.console.groups.lags import Lags
from odradek.broker.console.groups.offsets import (
    GroupOffset,
    Place,
    offsets_of,
    owners_of,
    places_of,
)
from odradek.broker.console.paging import MAX_LIMIT, First, PageRequest
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.runtime.steps import free
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey

EVERY_S = 2.0
MAX_MEMBERS = 100  # of a page: as many as the pager of the pages counts (pages/components.js)


class GroupRequest(PageRequest, kw_only=True):
    """A page of the offsets, in topics whose name contains `search`, and a page of the members.

    That of the members begins at `members_from`, and has 100.
    """

    group: str
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] = 500
    members_from: First = 0


class ShareSettingsView(View):
    """The settings with which a share group delivers records. An empty queue is none."""

    isolation: str
    lock_duration_ms: int
    delivery_count_limit: int
    max_record_locks: int
    dead_letter_queue: str


class GroupView(View):
    """A group. What its type does not have is None.

    `protocol` is the protocol type: `consumer` in classic groups of consumers. `may_change`: the
    client may set offsets; `may_delete`: it may delete the group and its offsets. `lag` is that of
    all partitions. `share_settings` is None also if the client may not DESCRIBE_CONFIGS on the
    group. `members` and `offsets` are pages: `total_members`, `total_offsets` count all.
    """

    group_id: str
    type: str
    state: str
    protocol: str
    assignor: str | None
    group_epoch: int | None
    assignment_epoch: int | None
    may_change: bool
    may_delete: bool
    lag: int | None
    total_members: int
    members: list[GroupMember]
    total_offsets: int
    offsets: list[GroupOffset]
    share: list[ShareDelivery] | None = None
    share_settings: ShareSettingsView | None = None
    topology: TopologyView | None = None


async def group(call: Call, request: GroupRequest) -> GroupView:
    """Make the view."""
    group_id = request.group
    found, _ = find_group(call, group_id)
    description = await described(call, found)
    found, state = find_group(call, group_id)  # as it is now
    lags = Lags(call)
    owners = owners_of(call, description.members)
    places = [
        place
        for place in places_of(call, found, state, owners)
        if request.matches(place[0]) and lags.may_describe(place[0])
    ]
    page = places[request.first : request.first + request.limit]
    members = description.members[request.members_from : request.members_from + MAX_MEMBERS]
    total_members = len(description.members)
    free(call.slices.step, description.members)
    may_change = partial(call.may_change, resource_type=ResourceType.GROUP, name=group_id)
    view = GroupView(
        group_id=group_id,
        type=found.group_type,
        state=description.state,
        protocol=description.protocol,
        assignor=description.assignor,
        group_epoch=description.group_epoch,
        assignment_epoch=description.assignment_epoch,
        may_change=may_change(AclOperation.READ),
        may_delete=may_change(AclOperation.DELETE),
        lag=lags.of(found, state).records,
        total_members=total_members,
        members=members,
        total_offsets=len(places),
        offsets=await offsets_of(call, found, state, owners, page),
        topology=description.topology,
    )
    free(call.slices.step, places, owners)
    if isinstance(found, ShareGroup):
        view.share = _deliveries(call, found, page)
        if call.may_see_settings(ResourceType.GROUP, group_id):
            view.share_settings = _share_settings(call, group_id)
    return view


def _deliveries(call: Call, found: ShareGroup, page: Iterable[Place]) -> list[ShareDelivery]:
    """What is in flight in the partitions of a page."""
    topics = call.observed.broker.metadata.topics
    deliveries: list[ShareDelivery] = []
    left = MAX_RANGES_IN_ALL
    for topic, partition in call.sliced(iter(page)):
        known = topics.get(topic)
        if known is not None:
            key = SharePartitionKey(found.group_id, known.id, partition)
            delivery = delivery_of(call, key, topic, min(left, MAX_RANGES))
            left -= len(delivery.acquired)
            deliveries.append(delivery)
    return deliveries


def _share_settings(call: Call, group_id: str) -> ShareSettingsView:
    configs = call.observed.broker.coordinators.group_configs.share
    return ShareSettingsView(
        isolation="read_committed" if configs.reads_committed(group_id) else "read_uncommitted",
        lock_duration_ms=configs.record_lock_duration_ms(group_id),
        delivery_count_limit=configs.delivery_count_limit(group_id),
        max_record_locks=configs.max_record_locks(group_id),
        dead_letter_queue=configs.dead_letter_queue(group_id),
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/groups/{group}",
        summary="A group: members, assignments, offsets with lag, and what its consumers wait for.",
        handle=group,
        request=GroupRequest,
        response=GroupView,
        every_s=EVERY_S,
    ),
)
