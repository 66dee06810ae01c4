"""A group coordinator on logs in memory, with a clock that only moves when a test says so."""

from collections.abc import Callable, Container, Generator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NoReturn

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group_settings import (
    ConsumerGroupSettings,
    GroupSettings,
    ShareGroupSettings,
    StreamsGroupSettings,
)
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.classic_groups.member import ClassicMember
from odradek.coordinator.groups.group_configs_by_type import GroupConfigsByType
from odradek.coordinator.groups.group_coordinator import GroupCoordinator, ModernGroupParts, NewIds
from odradek.coordinator.groups.group_decisions import Slicer
from odradek.coordinator.groups.share_group_service import ShareStates
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.streams_groups.group_configs import StreamsGroupConfigs
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from odradek.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_versioned,
)
from tests.support.memory_log import MemoryLog

GROUP = "g"
TOPIC = ("topic", b"topic id 16bytes")
SESSION_MS = 10_000
REBALANCE_MS = 60_000
# Wall-clock and timer time differ, so that a mix-up shows.
WALL_AHEAD_MS = 1_700_000_000_000


def classic_member(member_id: str) -> ClassicMember:
    """A dynamic member for a classic group."""
    return ClassicMember(
        member_id=member_id,
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=1_000,
        session_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )


class Waiting:
    """A parked reply: what asyncio.Future is to the coordinator."""

    def __init__(self) -> None:
        self.response: Any = None
        self.cancelled = False

    def done(self) -> bool:
        return self.cancelled or self.response is not None

    def set_result(self, response: Any) -> None:
        assert not self.done(), "answered twice"
        self.response = response

    def cancel(self) -> None:
        self.cancelled = True

    def __await__(self) -> Generator[None, None, Any]:
        while self.response is None:
            yield
        return self.response


class Alarm:
    def __init__(self, at_ms: float, ring: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.ring = ring
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualLoop:
    """What the coordinator uses of an event loop and its sockets, and `advance`."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.wall_ahead_ms = WALL_AHEAD_MS
        self.arrived: list[Callable[[], object]] = []
        self.alarms: list[Alarm] = []

    def create_future(self) -> Waiting:
        return Waiting()

    def call_later(self, delay_s: float, ring: Callable[[], None]) -> Alarm:
        alarm = Alarm(self.now_ms + delay_s * 1000, ring)
        self.alarms.append(alarm)
        return alarm

    def call_soon(self, call: Callable[..., None], *arguments: object) -> Alarm:
        return self.call_later(0, partial(call, *arguments))

    def after_arrivals(self, call: Callable[[], None]) -> None:
        """Serve what has arrived, and then call."""
        arrived, self.arrived = self.arrived, []
        for serve in arrived:
            serve()
        self.call_soon(call)

    def clock(self) -> Now:
        return Now(wall_ms=self.wall_ahead_ms + self.now_ms, timer_ms=self.now_ms)

    def turn(self) -> None:
        """Call what is due now, and not what that has called soon."""
        due = [alarm for alarm in self.alarms if alarm.at_ms <= self.now_ms]
        self.alarms = [alarm for alarm in self.alarms if alarm not in due]
        for alarm in due:
            if not alarm.cancelled:
                alarm.ring()

    def advance(self, by_ms: int) -> None:
        """Let time pass; alarms ring when their time comes."""
        end_ms = self.now_ms + by_ms
        while True:
            self.alarms = [alarm for alarm in self.alarms if not alarm.cancelled]
            due = min(self.alarms, key=lambda alarm: alarm.at_ms, default=None)
            if due is None or due.at_ms > end_ms:
                break
            self.alarms.remove(due)
            self.now_ms = max(self.now_ms, round(due.at_ms))
            due.ring()
        self.now_ms = end_ms


class AllTopics:
    """The ids of topics, of which none is missing."""

    def __contains__(self, topic_id: object) -> bool:
        return True


class NoShareStates:
    """A share coordinator that accepts everything and keeps nothing."""

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> None:
        pass

    def delete(self, key: SharePartitionKey, now_ms: int) -> None:
        pass


class AtOnce:
    """Has all decisions made at once."""

    def limited(self) -> Step:
        return no_step

    def run(self, work: object) -> NoReturn:
        raise AssertionError("no decision takes long")


class Groups:
    """A coordinator and the clients' side of its calls."""

    def __init__(
        self,
        partitions: int = 1,
        *,
        logs: Sequence[MemoryLog] | None = None,
        loop: ManualLoop | None = None,
        uuids: Callable[[], str] | None = None,
        metadata: ClusterMetadata | None = None,
        consumer_configs: ConsumerGroupConfigs | None = None,
        share_configs: ShareGroupConfigs | None = None,
        streams_configs: StreamsGroupConfigs | None = None,
        topic_ids: Container[bytes] | None = None,
        slicer: Slicer | None = None,
        share_states: ShareStates | None = None,
        **settings: int,
    ) -> None:
        self.share_states = share_states or NoShareStates()
        self.slicer = slicer or AtOnce()
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})  # type: ignore[arg-type] # all of them are ints
        self.loop = loop or ManualLoop()
        self.logs = list(logs or [MemoryLog("__consumer_offsets", n) for n in range(partitions)])
        numbers = count(1)
        self.uuids = uuids or (lambda: f"uuid{next(numbers)}")
        self.metadata = metadata or ClusterMetadata("cluster")
        self.topics = ClusterTopics(self.metadata)
        self.consumer_configs = consumer_configs or ConsumerGroupConfigs(ConsumerGroupSettings())
        self.streams_configs = streams_configs or StreamsGroupConfigs(StreamsGroupSettings())
        self.share_configs = share_configs or ShareGroupConfigs(ShareGroupSettings())
        self.configs = GroupConfigsByType(
            self.consumer_configs, self.share_configs, self.streams_configs
        )
        self.topic_ids = AllTopics() if topic_ids is None else topic_ids
        self.coordinator = self.closed_coordinator()
        self.open()

    def closed_coordinator(self) -> GroupCoordinator:
        """One for which `__consumer_offsets` does not exist yet."""
        return GroupCoordinator(
            self.settings,
            loop=self.loop,  # type: ignore[arg-type] # as much of a loop as is needed
            clock=self.loop.clock,
            after_arrivals=self.loop.after_arrivals,
            new_ids=NewIds(self.uuids, self.uuids),
            topics=self.topics,
            topic_ids=self.topic_ids,
            modern=ModernGroupParts(
                self.configs, self.slicer, self.share_states, lambda then: then()
            ),
        )

    def open(self) -> None:
        self.coordinator.open_topic(self.logs, len(self.logs))  # type: ignore[arg-type] # a MemoryLog serves a journal

    def restarted(self, *, topic_ids: Container[bytes] | None = None, **settings: int) -> "Groups":
        """Another life on the same logs."""
        new: dict[str, Any] = {"initial_rebalance_delay_ms": 0, **settings}
        return Groups(
            logs=self.logs,
            loop=ManualLoop(),
            uuids=self.uuids,
            metadata=self.metadata,
            consumer_configs=self.consumer_configs,
            share_configs=self.share_configs,
            share_states=self.share_states,
            streams_configs=self.streams_configs,
            topic_ids=self.topic_ids if topic_ids is None else topic_ids,
            **new,
        )

    def advance(self, by_ms: int) -> None:
        self.loop.advance(by_ms)

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        return self.coordinator.admin.classic_group(group_id)

    # -- what clients send ------------------------------------------------------------------------

    def send_join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        version: int = 9,
        client_id: str = "client",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        group_id: str = GROUP,
    ) -> Any:
        """The response, or a Waiting."""
        offered = {"range": subscription("topic")} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in offered.items()
            ],
        )
        caller = Caller(client_id, "/127.0.0.1", version)
        response: Any = self.coordinator.members.join_group(request, caller)
        self.loop.advance(0)  # what is due now is done at the loop's next turn
        if isinstance(response, Waiting) and response.done():
            return response.response
        return response

    def join(self, member_id: str = "", **words: Any) -> JoinGroupResponse:
        """A join that is answered at once; a new dynamic member asks for its id first."""
        response = self.send_join(member_id, **words)
        if isinstance(response, JoinGroupResponse) and (
            response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        ):
            response = self.send_join(response.member_id, **words)
        joined: JoinGroupResponse = answered(response)
        return joined

    def parked_join(self, member_id: str = "", **words: Any) -> tuple[str, Waiting]:
        """A join that must wait, and the id under which it does."""
        response = self.send_join(member_id, **words)
        if isinstance(response, JoinGroupResponse):
            assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED, response
            member_id = response.member_id
            response = self.send_join(member_id, **words)
        assert isinstance(response, Waiting), response
        return member_id or [*self.group(words.get("group_id", GROUP)).members][-1], response

    def send_sync(
        self,
        member_id: str,
        generation_id: int | None = None,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = None,
        group_id: str = GROUP,
    ) -> Any:
        if generation_id is None:
            generation_id = self.group(group_id).generation_id
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=assignment)
                for name, assignment in (assignments or {}).items()
            ],
        )
        return self.coordinator.members.sync_group(request)

    def sync(self, *words: Any, **more: Any) -> SyncGroupResponse:
        """A sync that is answered at once."""
        synced: SyncGroupResponse = answered(self.send_sync(*words, **more))
        return synced

    def heartbeat(
        self,
        member_id: str,
        generation_id: int | None = None,
        *,
        instance: str | None = None,
        group_id: str = GROUP,
    ) -> ErrorCode:
        if generation_id is None:
            generation_id = self.group(group_id).generation_id
        request = HeartbeatRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance,
        )
        return ErrorCode(self.coordinator.members.heartbeat(request).error_code)

    def leave(self, *members: str, group_id: str = GROUP) -> LeaveGroupResponse:
        leaving = [LeaveGroupMemberIdentity(member_id=member) for member in members]
        response = self.coordinator.members.leave_group(group_id, leaving)
        assert isinstance(response, LeaveGroupResponse), "the decision takes long"
        return response

    def commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        generation_id: int = -1,
        instance: str | None = None,
        version: int = 9,
        retention_ms: int = -1,
        metadata: str | None = "",
        topic: tuple[str, bytes] = TOPIC,
        partition: int = 0,
        group_id: str = GROUP,
    ) -> ErrorCode:
        """Commit one partition; raises ApiError when the group refuses."""
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[],
        )
        wanted = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        topics = [OffsetCommitRequestTopic(name=topic[0], topic_id=topic[1], partitions=[wanted])]
        answers = self.coordinator.offsets.commit(request, topics, version)
        return ErrorCode(answers[0].partitions[0].error_code)

    def committed(
        self, topic: str = TOPIC[0], partition: int = 0, *, group_id: str = GROUP
    ) -> int | None:
        """The committed offset, or None."""
        wanted = OffsetFetchRequestGroup(group_id=group_id, topics=None)
        for found in self.coordinator.offsets.fetch(wanted, None):
            for entry in found.partitions:
                if (found.name, entry.partition_index) == (topic, partition):
                    return entry.committed_offset
        return None

    # -- whole groups in one step -----------------------------------------------------------------

    def stable_group(self, members: int = 1, **words: Any) -> list[str]:
        """A stable group; the first member leads. Each is assigned its own name."""
        first = self.join(**words)
        ids = [first.member_id]
        ids += [self.parked_join(**words)[0] for _ in range(members - 1)]
        for member_id in ids if members > 1 else []:
            self.send_join(member_id, **words)
        for member_id in ids[1:]:
            self.send_sync(member_id)
        self.sync(ids[0], assignments={member_id: member_id.encode() for member_id in ids})
        return ids


def answered(response: Any) -> Any:
    """The response of a call that must not wait."""
    if isinstance(response, Waiting):
        assert response.done(), "still parked"
        return response.response
    return response


def subscription(*topics: str) -> bytes:
    """What a consumer says about itself when it joins."""
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 0)
