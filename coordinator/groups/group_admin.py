"""Requests of administrators: list, describe and delete groups. Kafka: GroupCoordinatorService."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from odradek.coordinator.any_group.group import Group
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.delete_groups import DeleteGroupsResult

from .group_shards import GroupShards
from .offset_deletion import commit_in_steps
from .share_group_service import ShareGroupService


class GroupAdmin:
    """The groups of all shards, to be read only, except that they can be deleted."""

    def __init__(
        self, shards: GroupShards, shares: ShareGroupService, clock: Callable[[], Now]
    ) -> None:
        self._shards = shards
        self._shares = shares
        self._clock = clock

    def classic_group(self, group_id: str) -> ClassicGroup:
        """Return a classic group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._shards.of(group_id).state.classic_group(group_id)

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._shards.of(group_id).state.consumer_group(group_id)

    def streams_group(self, group_id: str) -> StreamsGroup:
        """Return a streams group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._shards.of(group_id).state.streams_group(group_id)

    def share_group(self, group_id: str) -> ShareGroup:
        """Return a share group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._shards.of(group_id).state.share_group(group_id)

    def groups(self) -> Iterator[Group]:
        """Iterate over all groups. Raises ApiError while some are still loading."""
        return (group for shard in self._shards.all() for group in shard.state.groups.values())

    def delete(self, group_ids: Iterable[str], step: Step = no_step) -> list[DeleteGroupsResult]:
        """Delete groups that are empty. Returns one result for each id."""
        return [self._delete(group_id, step) for group_id in stepping(group_ids, step)]

    def _delete(self, group_id: str, step: Step) -> DeleteGroupsResult:
        try:
            shard = self._shards.of(group_id)
            group = shard.state.groups.get(group_id)
            if isinstance(group, ShareGroup):
                self._shares.delete_states(group, step)
            commit_in_steps(
                partial(self._shards.of, group_id),
                group_id,
                lambda state, each_step: state.delete(group_id, each_step),
                self._clock().wall_ms,
                step,
            )
            return DeleteGroupsResult(group_id=group_id)
        except ApiError as error:
            return DeleteGroupsResult(
                group_id=group_id, error_code=error.code, error_message=error.message
            )
