"""Streams groups by heartbeats, on logs in memory, with a clock that moves when a test says so."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group_settings import StreamsGroupSettings
from odradek.coordinator.groups.group_decisions import Slicer
from odradek.coordinator.metadata.topic_creation import MorePartitions, NewTopic, create_partitions
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.coordinator.streams_groups.group_configs import StreamsGroupConfigs
from odradek.coordinator.streams_groups.heartbeat import HeartbeatReply
from odradek.coordinator.streams_groups.status import StatusCode
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatCopartitionGroup,
    StreamsGroupHeartbeatKeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatSubtopology,
    StreamsGroupHeartbeatTaskIds,
    StreamsGroupHeartbeatTopicInfo,
    StreamsGroupHeartbeatTopology,
)
from tests.support.groups import GROUP, Groups
from tests.support.metadata import Metadata
from tests.support.stretches import result_of

REBALANCE_MS = 60_000
# By subtopology id.
TaskList = Mapping[str, Sequence[int]]


def internal(
    name: str, partitions: int = 0, configs: Mapping[str, str] | None = None
) -> StreamsGroupHeartbeatTopicInfo:
    return StreamsGroupHeartbeatTopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=0,
        topic_configs=[
            StreamsGroupHeartbeatKeyValue(key=key, value=value)
            for key, value in (configs or {}).items()
        ],
    )


def subtopology(
    name: str,
    *sources: str,
    reads: Sequence[StreamsGroupHeartbeatTopicInfo] = (),
    writes: Sequence[str] = (),
    changelogs: Sequence[StreamsGroupHeartbeatTopicInfo] = (),
    joined: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
) -> StreamsGroupHeartbeatSubtopology:
    """`joined`: indexes of source topics and of repartition topics that are joined."""
    return StreamsGroupHeartbeatSubtopology(
        subtopology_id=name,
        source_topics=list(sources),
        source_topic_regex=[],
        state_changelog_topics=list(changelogs),
        repartition_sink_topics=list(writes),
        repartition_source_topics=list(reads),
        copartition_groups=[
            StreamsGroupHeartbeatCopartitionGroup(
                source_topics=list(of_sources),
                source_topic_regex=[],
                repartition_source_topics=list(of_repartition),
            )
            for of_sources, of_repartition in joined
        ],
    )


def topology(
    *subtopologies: StreamsGroupHeartbeatSubtopology, epoch: int = 0
) -> StreamsGroupHeartbeatTopology:
    return StreamsGroupHeartbeatTopology(epoch=epoch, subtopologies=list(subtopologies))


# One subtopology without stores, which reads the topic "lines".
PLAIN = topology(subtopology("0", "lines"))
# Splits lines into words, and counts them in a store with a changelog.
WORD_COUNT = topology(
    subtopology("0", "lines", writes=["words"]),
    subtopology("1", reads=[internal("words")], changelogs=[internal("counts")]),
)


def tasks_of(
    tasks: Sequence[StreamsGroupHeartbeatTaskIds] | None,
) -> dict[str, list[int]] | None:
    """Tasks of a response by subtopology; None if it has none."""
    return None if tasks is None else {one.subtopology_id: one.partitions for one in tasks}


def task_list(tasks: TaskList | None) -> list[StreamsGroupHeartbeatTaskIds] | None:
    if tasks is None:
        return None
    return [
        StreamsGroupHeartbeatTaskIds(subtopology_id=name, partitions=list(partitions))
        for name, partitions in tasks.items()
    ]


class StreamsMembers:
    """A coordinator with streams groups, its topics, and the clients' side of the protocol.

    Targets are made at once unless the settings say otherwise.
    """

    def __init__(
        self,
        *,
        overrides: Mapping[str, str] | None = None,
        slicer: Slicer | None = None,
        **settings: Any,
    ) -> None:
        self.metadata = Metadata()
        self.overrides = dict(overrides or {})
        self.api_version = 0
        at_once = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
        self.groups = Groups(
            metadata=self.metadata.state,
            slicer=slicer,
            streams_configs=StreamsGroupConfigs(
                replace(at_once, **settings), lambda _: self.overrides
            ),
        )

    def restart(self) -> None:
        """Another life on the same logs."""
        self.groups = self.groups.restarted()

    def advance(self, by_ms: int) -> None:
        self.groups.advance(by_ms)

    @property
    def group(self) -> StreamsGroup:
        return self.groups.coordinator.admin.streams_group(GROUP)

    # -- topics ------------------------------------------------------------------------------------

    def topic(self, name: str, partitions: int) -> None:
        answer = self.metadata.create(NewTopic(name=name, partition_count=partitions))
        assert not isinstance(answer[name], ApiError), answer

    def grow(self, name: str, partitions: int) -> None:
        wish = MorePartitions(name=name, count=partitions)
        self.metadata.commit(create_partitions(self.metadata.state, [wish], self.metadata.rules))

    def create_missing(self, reply: HeartbeatReply) -> None:
        """What the broker does with the missing topics of a reply."""
        for found in reply.missing_topics.values():
            self.topic(found.name, found.partition_count)

    # -- requests ----------------------------------------------------------------------------------

    def send(
        self,
        member_id: str,
        epoch: int,
        *,
        owned: TaskList | None = None,
        owned_standby: TaskList | None = None,
        client_id: str = "client",
        endpoint_epoch: int = 0,
        **words: Any,
    ) -> HeartbeatReply:
        """A heartbeat; `owned` are the active tasks that the member reports."""
        reports = owned is not None or owned_standby is not None
        request = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            endpoint_information_epoch=endpoint_epoch,
            active_tasks=task_list(owned or {}) if reports else None,
            standby_tasks=task_list(owned_standby or {}) if reports else None,
            warmup_tasks=[] if reports else None,
            **words,
        )
        caller = Caller(client_id, "/127.0.0.1", self.api_version)
        reply = result_of(self.groups.coordinator.members.streams_group_heartbeat(request, caller))
        assert isinstance(reply, HeartbeatReply)
        return reply

    def join(
        self,
        member_id: str,
        sent: StreamsGroupHeartbeatTopology = PLAIN,
        *,
        process: str | None = None,
        **words: Any,
    ) -> StreamsGroupHeartbeatResponse:
        """A join; each member is a process of its own unless `process` says otherwise."""
        return self.send(
            member_id,
            0,
            owned={},
            topology=sent,
            rebalance_timeout_ms=REBALANCE_MS,
            process_id=process or f"process of {member_id}",
            client_tags=[],
            **words,
        ).response

    def beat(
        self, member_id: str, epoch: int | None = None, **words: Any
    ) -> StreamsGroupHeartbeatResponse:
        """A heartbeat with the member's epoch, unless it says another."""
        if epoch is None:
            epoch = self.group.member(member_id).member_epoch
        return self.send(member_id, epoch, **words).response

    def leave(self, member_id: str, **words: Any) -> StreamsGroupHeartbeatResponse:
        return self.send(member_id, -1, **words).response

    # -- what is there -----------------------------------------------------------------------------

    def owned(self, member_id: str) -> dict[str, list[int]]:
        """The active tasks of a member."""
        active = self.group.member(member_id).assigned.active
        return {name: sorted(epochs) for name, epochs in sorted(active.items())}

    def settle(self, *member_ids: str) -> None:
        """Heartbeats of all members, as clients send them, until the group is stable."""
        for _ in range(10):
            for member_id in member_ids:
                member = self.group.member(member_id)
                standby = {name: sorted(held) for name, held in member.assigned.standby.items()}
                self.beat(member_id, owned=self.owned(member_id), owned_standby=standby)
        assert self.group.state_name == "Stable", self.group.state_name


def statuses(response: StreamsGroupHeartbeatResponse) -> list[StatusCode]:
    assert response.error_code == ErrorCode.NONE, response
    return [StatusCode(one.status_code) for one in response.status or ()]
