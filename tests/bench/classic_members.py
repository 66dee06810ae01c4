"""Members of classic groups, as a consumer's coordinator plays them, at next to no cost.

    join "" -> MEMBER_ID_REQUIRED -> join -> parked -> sync -> parked -> assigned -> heartbeats
                                       ^--------- REBALANCE_IN_PROGRESS -------------------'

The leader gives each member one partition, in the order in which they are listed to it.
"""

import struct
from collections import Counter

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from odradek.protocol.messages.leave_group import (
    LeaveGroupMemberIdentity,
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from odradek.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from odradek.protocol.records.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    encode_versioned,
)
from tests.bench.swarm import Swarm, now
from tests.support.wire import WireClient, request_frame

TOPIC = "bench-of-groups"
PARTITIONS = 1000
JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
LEAVE_VERSION = 5
SESSION_MS = 45_000  # what the Java consumer asks for, by default
REBALANCE_MS = 300_000
RETRY_SECONDS = 0.05

SUBSCRIPTION = encode_versioned(ConsumerProtocolSubscription(topics=[TOPIC]), 3)
PROTOCOLS = [
    JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION)
    for name in ("range", "cooperative-sticky")
]
JOIN_AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}
TRY_AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def parts_of(index: int) -> bytes:
    """The assignment of one partition; what there is none left for gets nothing."""
    mine = [ConsumerTopicPartitions(topic=TOPIC, partitions=[index])] if index < PARTITIONS else []
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=mine), 3)


ASSIGNMENTS = [parts_of(index) for index in range(PARTITIONS)]


class ClassicGroup:
    """What the members of one group share; `trips`: seconds that heartbeats took."""

    def __init__(self, swarm: Swarm, port: int, group_id: str, beat_every_s: float) -> None:
        self.swarm = swarm
        self.port = port
        self.group_id = group_id
        self.beat_every_s = beat_every_s
        self.members: list[ClassicMember] = []
        self.trips: list[float] = []
        self.assigned: Counter[int] = Counter()  # members by the generation they are assigned in

    def add(self, count: int) -> "list[ClassicMember]":
        """Connect so many members; they do nothing else yet."""
        new = [ClassicMember(self, len(self.members) + number) for number in range(count)]
        self.members += new
        self.swarm.await_greetings()
        return new

    def is_stable(self) -> bool:
        """Whether all members have an assignment of the same generation."""
        if not self.assigned:
            return False
        return self.assigned[max(self.assigned)] == len(self.members)

    def disturb(self) -> None:
        """Begin a rebalance: that a leader joins again always does."""
        next(member for member in self.members if member.leads).join()

    def leave(self) -> None:
        """Have all members leave, in one request; their connections stay open."""
        gone = [LeaveGroupMemberIdentity(member_id=member.member_id) for member in self.members]
        with WireClient(self.port) as client:
            request = LeaveGroupRequest(group_id=self.group_id, members=gone)
            client.ask(request, LeaveGroupResponse, LEAVE_VERSION)

    @property
    def generation(self) -> int:
        """The newest in which anybody has been assigned something."""
        return max(self.assigned, default=0)


class ClassicMember:
    """One member. It joins again whenever it is told to."""

    def __init__(self, group: ClassicGroup, number: int) -> None:
        self._group = group
        self._client_id = f"consumer-{number}"
        self.member_id = ""
        self.leads = False
        self._generation = -1
        self._is_assigned = False
        self._beats = False
        self._must_join = False
        self._heartbeat_frame = b""
        self._next = self._joined
        self._peer = group.swarm.connect(group.port, self._answered)

    def _answered(self, answer: bytes) -> None:
        self._next(answer)

    # -- joining -----------------------------------------------------------------------------------

    def join(self) -> None:
        """Send a JoinGroup; after the answer to what is under way, if there is something."""
        if self._peer.is_waiting:
            self._must_join = True
            return
        self._must_join = self._is_assigned = False
        request = JoinGroupRequest(
            group_id=self._group.group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=PROTOCOLS,
        )
        self._next = self._joined
        self._peer.send(request_frame(request, JOIN_VERSION, 1, self._client_id))

    def _joined(self, answer: bytes) -> None:
        response: JoinGroupResponse = JoinGroupResponse.decode(answer[1:], JOIN_VERSION)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.join()
        elif response.error_code != ErrorCode.NONE:
            self._refused(response.error_code)
        else:
            self._generation = response.generation_id
            self._heartbeat_frame = self._frame_of_heartbeats()
            self.leads = response.leader == self.member_id
            self._sync(response, response.members)

    def _refused(self, error: int) -> None:
        if error in TRY_AGAIN:
            self._group.swarm.call_at(now() + RETRY_SECONDS, self.join)
            return
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif error not in JOIN_AGAIN:
            raise AssertionError(f"a member was refused: {ErrorCode(error).name}")
        self.join()

    def _sync(self, joined: JoinGroupResponse, members: list[JoinGroupResponseMember]) -> None:
        request = SyncGroupRequest(
            group_id=self._group.group_id,
            generation_id=self._generation,
            member_id=self.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member.member_id,
                    assignment=ASSIGNMENTS[index] if index < PARTITIONS else parts_of(index),
                )
                for index, member in enumerate(members)
            ],
        )
        self._next = self._synced
        self._peer.send(request_frame(request, SYNC_VERSION, 1, self._client_id))

    def _synced(self, answer: bytes) -> None:
        response: SyncGroupResponse = SyncGroupResponse.decode(answer[1:], SYNC_VERSION)
        if response.error_code != ErrorCode.NONE:
            self._refused(response.error_code)
            return
        self._is_assigned = True
        self._group.assigned[self._generation] += 1
        if self._must_join:
            self.join()
        elif not self._beats:
            self._beats = True
            self._beat_later(self._group.beat_every_s)

    # -- heartbeats --------------------------------------------------------------------------------

    def _frame_of_heartbeats(self) -> bytes:
        request = HeartbeatRequest(
            group_id=self._group.group_id,
            generation_id=self._generation,
            member_id=self.member_id,
        )
        return request_frame(request, HEARTBEAT_VERSION, 1, self._client_id)

    def _beat_later(self, seconds: float) -> None:
        self._group.swarm.call_at(now() + seconds, self._beat_in_time)

    def _beat_in_time(self) -> None:
        self._beat_later(self._group.beat_every_s)
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat, if the member has an assignment and nothing is under way."""
        if self._is_assigned and not self._peer.is_waiting:
            self._next = self._beaten
            self._peer.send(self._heartbeat_frame)

    def _beaten(self, answer: bytes) -> None:
        self._group.trips.append(now() - self._peer.sent_at)
        (error,) = struct.unpack_from(">h", answer, 5)  # behind no tags and the throttle time
        if error != ErrorCode.NONE:
            self._refused(error)
        elif self._must_join:
            self.join()
