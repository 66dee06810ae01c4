"""Members of a share group, its administrators, and the share coordinator that keeps its states."""

from typing import NamedTuple

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group_settings import ShareGroupSettings
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.support.groups import GROUP, Groups
from tests.support.metadata import Metadata

INTERVAL_MS = 5_000
RETRY_MS = 30_000


class State(NamedTuple):
    epoch: int
    start_offset: int


class States:
    """A share coordinator in memory. The logs of the states in `refused` are offline."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.kept: dict[SharePartitionKey, State] = {}
        self.refused: set[tuple[str, int]] = set()

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
        now_ms: int,  # as a share coordinator
    ) -> None:
        self._check(key)
        if key in self.kept and self.kept[key].epoch > state_epoch:
            raise ApiError(ErrorCode.FENCED_STATE_EPOCH, f"{self.kept[key]}, not {state_epoch}")
        self.kept[key] = State(state_epoch, start_offset)

    def delete(self, key: SharePartitionKey, now_ms: int) -> None:  # as a share coordinator
        self._check(key)
        self.kept.pop(key, None)

    def _check(self, key: SharePartitionKey) -> None:
        topic = self.metadata.state.topics.by_id.get(key.topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
        if (topic.name, key.partition) in self.refused:
            raise ApiError(ErrorCode.NOT_COORDINATOR, "its log is offline")


class ShareMembers:
    """One share group, whose coordinator can be started again."""

    def __init__(self, *, assignment_interval_ms: int = 0, **topics: int) -> None:
        """`topics`: the numbers of their partitions."""
        self.metadata = Metadata()
        self.states = States(self.metadata)
        settings = ShareGroupSettings(assignment_interval_ms=assignment_interval_ms)
        self.groups = Groups(
            metadata=self.metadata.state,
            share_configs=ShareGroupConfigs(settings),
            share_states=self.states,
        )
        self.epochs: dict[str, int] = {}
        for name, partitions in topics.items():
            self.topic(name, partitions)

    def restart(self) -> None:
        self.groups = self.groups.restarted()

    # -- topics

    def topic(self, name: str, partitions: int) -> None:
        self.metadata.create(NewTopic(name=name, partition_count=partitions))

    def delete_topic(self, name: str) -> None:
        """Delete a topic, as the broker does: the states go with it."""
        self.lose_topic(name)
        self.groups.coordinator.share_groups.on_topics_deleted()

    def lose_topic(self, name: str) -> None:
        """Delete a topic while the group's coordinator is not served."""
        topic_id = self.metadata.state.topics[name].id
        self.metadata.delete(name)
        kept = self.states.kept
        for key in [key for key in kept if key.topic_id == topic_id]:
            del kept[key]

    # -- members

    def join(self, member_id: str, *topics: str) -> None:
        self.epochs[member_id] = 0
        assert self.beat(member_id, *topics).error_code == ErrorCode.NONE

    def beat(self, member_id: str, *topics: str) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=self.epochs[member_id],
            subscribed_topic_names=list(topics) or None,
        )
        caller = Caller("client", "/127.0.0.1", 1)
        answer = self.groups.coordinator.members.share_group_heartbeat(request, caller)
        assert isinstance(answer, ShareGroupHeartbeatResponse), "the decision takes long"
        self.epochs[member_id] = answer.member_epoch if answer.error_code == ErrorCode.NONE else 0
        return answer

    def leave(self, member_id: str) -> None:
        self.epochs[member_id] = -1
        self.beat(member_id)
        del self.epochs[member_id]

    def settle(self, rounds: int = 4) -> None:
        """All members send heartbeats for a while."""
        for _ in range(rounds):
            for member_id in self.epochs:
                assert self.beat(member_id).error_code == ErrorCode.NONE
            self.groups.advance(INTERVAL_MS)

    # -- administrators

    def alter(self, step: Step = no_step, **topics: dict[int, int]) -> dict[str, list[ErrorCode]]:
        """Set start offsets by partition. Returns the errors."""
        wanted = [
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=partition, start_offset=offset
                    )
                    for partition, offset in offsets.items()
                ],
            )
            for name, offsets in topics.items()
        ]
        results = self.groups.coordinator.share_groups.alter_offsets(GROUP, wanted, step)
        return {
            topic.topic_name: [ErrorCode(each.error_code) for each in topic.partitions]
            for topic in results
        }

    def delete_group(self) -> ErrorCode:
        [result] = self.groups.coordinator.admin.delete([GROUP])
        return ErrorCode(result.error_code)

    # -- what is known

    @property
    def group(self) -> ShareGroup:
        return self.groups.coordinator.admin.share_group(GROUP)

    def assigned(self) -> set[tuple[str, int]]:
        """The partitions that the members read."""
        names = self.metadata.state.topics.by_id
        return {
            (names[topic_id].name, partition)
            for member in self.group.members.values()
            for topic_id, partitions in member.assigned.items()
            if topic_id in names
            for partition in partitions
        }

    def starts(self) -> dict[tuple[str, int], int]:
        """The start offsets of all states."""
        names = self.metadata.state.topics.by_id
        return {
            (names[key.topic_id].name, key.partition): state.start_offset
            for key, state in self.states.kept.items()
        }
