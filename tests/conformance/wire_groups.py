"""Classic groups made by raw requests: members that say what they are told to, and never poll."""

import time
from collections.abc import Mapping, Sequence

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.leave_group import (
    LeaveGroupMemberIdentity,
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    encode_versioned,
)
from tests.support.wire import WireClient

FIND, JOIN, SYNC, BEAT, LEAVE, COMMIT = 3, 9, 5, 4, 5, 8
COMMIT_WITH_RETENTION = 4
HALF_AN_HOUR_MS = 1_800_000
WAIT_SECONDS = 60.0
NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
Assignment = Mapping[str, Sequence[int]]


class WireMember:
    """A member of a classic group, on a connection of its own. It lives half an hour untended."""

    def __init__(
        self,
        port: int,
        group: str,
        *topics: str,
        client_id: str = "wire",
        instance: str | None = None,
        kind: str = "consumer",
        protocol: str = "range",
        rebalance_ms: int = HALF_AN_HOUR_MS,
    ) -> None:
        self.client = WireClient(port, client_id=client_id)
        self.group = group
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self._kind, self._protocol = kind, protocol
        self._rebalance_ms = rebalance_ms
        self._metadata = encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 0)

    def join(self) -> None:
        """Join, alone or as the last that is waited for."""
        self.ask_to_join()
        self.joined()

    def ask_to_join(self) -> None:
        """Send a join that may be parked; `joined` takes its answer."""
        if not self.member_id and self.instance is None:
            answer = self._wait_for_coordinator()
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
            self.member_id = answer.member_id
        elif not self.member_id:
            find_coordinator(self.client, self.group)
        self.client.send(self.client.frame_of(self._join_request(), JOIN))

    def _wait_for_coordinator(self) -> JoinGroupResponse:
        find_coordinator(self.client, self.group)
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            answer = self.client.ask(self._join_request(), JoinGroupResponse, JOIN)
            if answer.error_code not in NOT_YET:
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)

    def joined(self) -> None:
        """Take the answer to the join."""
        answer = self.join_answer()
        assert answer.error_code == ErrorCode.NONE, answer
        self.member_id, self.generation = answer.member_id, answer.generation_id

    def join_answer(self) -> JoinGroupResponse:
        """The answer to the join, whatever it says."""
        return self.client.read_answer(JoinGroupResponse, JOIN)

    def reconnect(self, port: int) -> None:
        """Go on with the broker that has been started again."""
        self.client.close()
        self.client = WireClient(port, client_id=self.client.client_id)
        find_coordinator(self.client, self.group)

    def _join_request(self) -> JoinGroupRequest:
        protocol = JoinGroupRequestProtocol(name=self._protocol, metadata=self._metadata)
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=HALF_AN_HOUR_MS,
            rebalance_timeout_ms=self._rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self._kind,
            protocols=[protocol],
        )

    def sync(self, assignments: Mapping[str, Assignment] | None = None) -> None:
        """Fetch the assignment; the leader brings all of them, by member id."""
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self._kind,
            protocol_name=self._protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=encoded(assignment))
                for member, assignment in (assignments or {}).items()
            ],
        )
        answer = self.client.ask(request, SyncGroupResponse, SYNC)
        assert answer.error_code == ErrorCode.NONE, answer

    def beat(self) -> ErrorCode:
        """Send a heartbeat, and tell what it is answered."""
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return ErrorCode(self.client.ask(request, HeartbeatResponse, BEAT).error_code)

    def wait_for_rebalance(self) -> None:
        """Return when the group waits for its members to join again."""
        deadline = time.monotonic() + WAIT_SECONDS
        while (code := self.beat()) is ErrorCode.NONE or code in NOT_YET:
            assert time.monotonic() < deadline, "no rebalance"
            time.sleep(0.02)
        assert code is ErrorCode.REBALANCE_IN_PROGRESS, code

    def leave(self) -> None:
        """Leave the group."""
        leaver = LeaveGroupMemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        request = LeaveGroupRequest(group_id=self.group, members=[leaver])
        answer = self.client.ask(request, LeaveGroupResponse, LEAVE)
        assert answer.error_code == ErrorCode.NONE, answer

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets as this member."""
        commit(self.client, self.group, topic, offsets, member=(self.member_id, self.generation))


def encoded(assignment: Assignment) -> bytes:
    """An assignment as consumers read it."""
    topics = [
        ConsumerTopicPartitions(topic=name, partitions=list(partitions))
        for name, partitions in assignment.items()
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=topics), 0)


def stabilise(*members: tuple[WireMember, Assignment]) -> None:
    """Make a stable group of one or two members, each with its assignment; the first leads."""
    leader = members[0][0]
    leader.join()
    for other, _ in members[1:]:
        other.ask_to_join()
        leader.wait_for_rebalance()
        leader.ask_to_join()
        leader.joined()
        other.joined()
    leader.sync({member.member_id: assignment for member, assignment in members})
    for other, _ in members[1:]:
        other.sync()


def find_coordinator(client: WireClient, group: str) -> None:
    """Return when somebody coordinates the group."""
    request = FindCoordinatorRequest(key=group)
    deadline = time.monotonic() + WAIT_SECONDS
    while (told := client.ask(request, FindCoordinatorResponse, FIND)).error_code in NOT_YET:
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
    assert told.error_code == ErrorCode.NONE, told


def commit(
    client: WireClient,
    group: str,
    topic: str,
    offsets: Mapping[int, int],
    *,
    member: tuple[str, int] = ("", -1),
    metadata: str = "",
    retention_ms: int | None = None,
    version: int = COMMIT,
) -> None:
    """Commit offsets by partition; with a retention time of their own where one is given."""
    find_coordinator(client, group)
    places = [
        OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=0,
            committed_metadata=metadata,
        )
        for partition, offset in offsets.items()
    ]
    request = OffsetCommitRequest(
        group_id=group,
        member_id=member[0],
        generation_id_or_member_epoch=member[1],
        retention_time_ms=-1 if retention_ms is None else retention_ms,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=places)],
    )
    if retention_ms is not None:
        version = COMMIT_WITH_RETENTION
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        told = client.ask(request, OffsetCommitResponse, version)
        codes = {one.error_code for one in told.topics[0].partitions}
        if not codes & NOT_YET:
            assert codes == {ErrorCode.NONE}, told
            return
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
