"""Consumer groups by heartbeats, on logs in memory, with a clock that moves when a test says so."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from odradek.coordinator.any_group.caller import Caller, MayDescribe
from odradek.coordinator.any_group.group_settings import ConsumerGroupSettings
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.groups.group_decisions import Slicer
from odradek.coordinator.metadata.topic_creation import MorePartitions, NewTopic, create_partitions
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from tests.support.groups import GROUP, Groups, ManualLoop
from tests.support.metadata import Metadata

SESSION_MS = 45_000
REBALANCE_MS = 60_000
# By topic name; what a test says and reads instead of ids.
Partitions = Mapping[str, Sequence[int]]


class Heartbeats:
    """A coordinator with consumer groups, its topics, and the clients' side of the protocol.

    Targets are made at once unless `assignment_interval_ms` says otherwise.
    """

    def __init__(
        self,
        *,
        groups: Groups | None = None,
        metadata: Metadata | None = None,
        overrides: Mapping[str, Mapping[str, str]] | None = None,
        slicer: Slicer | None = None,
        **settings: Any,
    ) -> None:
        self.metadata = metadata or Metadata()
        self.overrides = {name: dict(of_group) for name, of_group in (overrides or {}).items()}
        self.settings = replace(ConsumerGroupSettings(assignment_interval_ms=0), **settings)
        self.may_describe: MayDescribe = None
        self.groups = groups or Groups(
            metadata=self.metadata.state,
            slicer=slicer,
            consumer_configs=ConsumerGroupConfigs(
                self.settings, lambda group_id: self.overrides.get(group_id, {})
            ),
        )

    @property
    def loop(self) -> ManualLoop:
        return self.groups.loop

    def restarted(self) -> "Heartbeats":
        """Another life on the same logs; the clocks go on."""
        loop = ManualLoop()
        loop.now_ms = self.loop.now_ms
        groups = Groups(
            logs=self.groups.logs,
            loop=loop,
            uuids=self.groups.uuids,
            metadata=self.metadata.state,
            consumer_configs=self.groups.consumer_configs,
            slicer=self.groups.slicer,
        )
        return Heartbeats(groups=groups, metadata=self.metadata, overrides=self.overrides)

    def advance(self, by_ms: int = 0) -> None:
        self.groups.advance(by_ms)

    def fail_next_append(self, error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        self.groups.logs[0].fail_next = ApiError(error, "the disk says no")

    # -- topics ------------------------------------------------------------------------------------

    def topic(self, name: str, partitions: int) -> None:
        answer = self.metadata.create(NewTopic(name=name, partition_count=partitions))
        assert not isinstance(answer[name], ApiError), answer

    def grow(self, name: str, partitions: int) -> None:
        wish = MorePartitions(name=name, count=partitions)
        self.metadata.commit(create_partitions(self.metadata.state, [wish], self.metadata.rules))

    def delete(self, name: str) -> None:
        self.metadata.delete(name)

    def _id(self, name: str) -> bytes:
        return self.metadata.state.topics[name].id

    # -- requests ----------------------------------------------------------------------------------

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        owned: Partitions | None = None,
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        instance: str | None = None,
        group_id: str = GROUP,
        client_id: str = "client",
        version: int = 1,
        **words: Any,
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat, and its answer, be it an error."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            subscribed_topic_names=None if topics is None else list(topics),
            subscribed_topic_regex=regex,
            topic_partitions=None
            if owned is None
            else [
                ConsumerGroupHeartbeatTopicPartitions(
                    topic_id=self._id(name), partitions=list(partitions)
                )
                for name, partitions in owned.items()
            ],
            **words,
        )
        caller = Caller(client_id, "/127.0.0.1", version, self.may_describe)
        return self.groups.coordinator.members.consumer_group_heartbeat(request, caller)  # type: ignore[return-value] # an awaitable only where decisions take long

    def join(self, member_id: str, *topics: str, **words: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat that joins, and says all there is to say."""
        said = {"owned": {}, "topics": topics, "rebalance_timeout_ms": REBALANCE_MS, **words}
        return self.beat(member_id, 0, **said)

    def refusal(self, *words: Any, **more: Any) -> ErrorCode:
        """The error of a heartbeat; it says why, and nothing else."""
        return refusal(self.beat(*words, **more))

    def leave(self, member_id: str, **words: Any) -> ErrorCode:
        return ErrorCode(self.beat(member_id, -1, **words).error_code)

    # -- what came of it ---------------------------------------------------------------------------

    def assigned(self, answer: ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """What an answer assigns, by topic name; None: it does not say. It must not be an error.

        Topics that are no more are left out, as clients do: they find no name for their ids.
        """
        assert answer.error_code == ErrorCode.NONE, answer
        if answer.assignment is None:
            return None
        known = self.metadata.state.topics.by_id
        return {
            known[topic.topic_id].name: list(topic.partitions)
            for topic in answer.assignment.topic_partitions
            if topic.topic_id in known
        }

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        return self.groups.coordinator.shards.of(group_id).state.consumer_group(group_id)

    def member(self, member_id: str, group_id: str = GROUP) -> ConsumerMember:
        return self.group(group_id).member(member_id)

    @property
    def batches(self) -> int:
        """How many batches have been written."""
        return sum(len(log.stored) for log in self.groups.logs)


def refusal(answer: ConsumerGroupHeartbeatResponse) -> ErrorCode:
    """The error of an answer; it says why, and nothing else."""
    assert answer.error_message
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
    return ErrorCode(answer.error_code)
