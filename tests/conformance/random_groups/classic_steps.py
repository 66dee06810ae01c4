"""What members say that speak the classic protocol, also to a consumer group: see steps.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    encode_versioned,
)
from odradek.protocol.schema import Message
from tests.conformance.random_groups.participants import GroupMember, Participants
from tests.conformance.random_groups.steps import (
    HEARD,
    LONG_MS,
    OWN,
    Epoch,
    Step,
    classic_id,
    note_given,
    number,
)

# Too short for a length: other garbage is an accident to Kafka, which then never answers.
GARBAGE = b"\x00\x00\x00"
# Versions at which something begins.
STATIC_JOINS, STATIC_SYNCS, STATIC_BEATS, SEVERAL_LEAVE = 5, 3, 3, 3


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Join(Step):
    """A JoinGroup; `protocols` are names, and each offers the same subscription.

    `metadata`: the version in which the subscription is written, -1: it is garbage.
    """

    id: str = OWN
    instance: str | None = None
    topics: tuple[str, ...] = ("a",)
    protocols: tuple[str, ...] = ("range",)
    protocol_type: str = "consumer"
    metadata: int = 1
    owned: str = "all"
    session_ms: int = LONG_MS
    rebalance_ms: int = LONG_MS
    version: int = 9
    may_park: ClassVar[bool] = True

    def request(self, participants: Participants) -> tuple[Message, int]:
        offered = self._subscription(participants)
        request = JoinGroupRequest(
            group_id=participants.full(self.group),
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=classic_id(participants, self.group, self.who, self.id),
            group_instance_id=self.instance if self.version >= STATIC_JOINS else None,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=offered) for name in self.protocols
            ],
        )
        return request, self.version

    def _subscription(self, participants: Participants) -> bytes:
        if self.metadata < 0:
            return GARBAGE
        seat = participants.seat(self.group, self.who)
        places = seat.assigned if self.owned == "all" else {}
        subscription = ConsumerProtocolSubscription(
            topics=[participants.full(name) for name in self.topics],
            owned_partitions=[
                ConsumerTopicPartitions(
                    topic=participants.full(participants.topic_name(topic)), partitions=ones
                )
                for topic, ones in sorted(
                    places.items(), key=lambda one: participants.topic_name(one[0])
                )
            ],
            generation_id=seat.generation,
        )
        return encode_versioned(subscription, self.metadata)

    def heard(self, participants: Participants, answer: Any) -> None:
        seat = participants.seat(self.group, self.who)
        note_given(participants, self.group, answer.member_id)
        if self.id not in (OWN, ""):
            return
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            seat.told_id = answer.member_id
        elif answer.error_code == ErrorCode.NONE:
            seat.told_id, seat.generation = answer.member_id, answer.generation_id
            seat.protocol, seat.phase = answer.protocol_name, "sync"
            seat.led = [one.member_id for one in answer.members]
        elif answer.error_code in _OUT_OF_CLASSIC:
            seat.forget_generation()


_OUT_OF_CLASSIC = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
_TO_JOIN_AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}


def _heard_classic(seat: GroupMember, code: int) -> None:
    if code in _OUT_OF_CLASSIC:
        seat.forget_generation()
    elif code in _TO_JOIN_AGAIN:
        seat.phase = "join"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sync(Step):
    """A SyncGroup. `gives`: what a leader assigns: `shares`, `part` of them, `garbage`, `none`."""

    id: str = OWN
    generation: Epoch = HEARD
    instance: str | None = None
    protocol_type: str | None = "consumer"
    protocol: str | None = "chosen"
    gives: str = "shares"
    version: int = 5
    may_park: ClassVar[bool] = True

    def request(self, participants: Participants) -> tuple[Message, int]:
        seat = participants.seat(self.group, self.who)
        request = SyncGroupRequest(
            group_id=participants.full(self.group),
            generation_id=number(self.generation, seat.generation),
            member_id=classic_id(participants, self.group, self.who, self.id),
            group_instance_id=self.instance if self.version >= STATIC_SYNCS else None,
            protocol_type=self.protocol_type,
            protocol_name=seat.protocol if self.protocol == "chosen" else self.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in self._given(participants, seat).items()
            ],
        )
        return request, self.version

    def _given(self, participants: Participants, seat: GroupMember) -> Mapping[str, bytes]:
        # In the order of seats: the broker lists members in the order of a hash table.
        members = sorted(seat.led)
        if self.gives == "none":
            return {}
        if self.gives == "garbage":
            return dict.fromkeys(members, GARBAGE)
        if self.gives == "part":
            members = members[1:]
        return {
            member: encode_versioned(
                ConsumerProtocolAssignment(
                    assigned_partitions=[
                        ConsumerTopicPartitions(topic=participants.full(name), partitions=[index])
                        for name in ("a", "b")
                    ]
                ),
                0,
            )
            for index, member in enumerate(members)
        }

    def heard(self, participants: Participants, answer: Any) -> None:
        seat = participants.seat(self.group, self.who)
        if self.id != OWN:
            return
        if answer.error_code == ErrorCode.NONE:
            seat.phase = "beat"
        _heard_classic(seat, answer.error_code)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClassicBeat(Step):
    """A Heartbeat."""

    id: str = OWN
    generation: Epoch = HEARD
    instance: str | None = None
    version: int = 4

    def request(self, participants: Participants) -> tuple[Message, int]:
        seat = participants.seat(self.group, self.who)
        request = HeartbeatRequest(
            group_id=participants.full(self.group),
            generation_id=number(self.generation, seat.generation),
            member_id=classic_id(participants, self.group, self.who, self.id),
            group_instance_id=self.instance if self.version >= STATIC_BEATS else None,
        )
        return request, self.version

    def heard(self, participants: Participants, answer: Any) -> None:
        if self.id == OWN:
            _heard_classic(participants.seat(self.group, self.who), answer.error_code)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Leave(Step):
    """A LeaveGroup; `leaving` are ids and instances."""

    leaving: tuple[tuple[str, str | None], ...] = ((OWN, None),)
    version: int = 5

    def request(self, participants: Participants) -> tuple[Message, int]:
        identities = [
            LeaveGroupMemberIdentity(
                member_id=classic_id(participants, self.group, self.who, member),
                group_instance_id=instance,
            )
            for member, instance in self.leaving
        ]
        group = participants.full(self.group)
        if self.version < SEVERAL_LEAVE:
            first = identities[0].member_id
            return LeaveGroupRequest(group_id=group, member_id=first), self.version
        return LeaveGroupRequest(group_id=group, members=identities), self.version

    def heard(self, participants: Participants, answer: Any) -> None:
        if answer.error_code == ErrorCode.NONE and self.leaving[0][0] == OWN:
            participants.seat(self.group, self.who).forget_generation()
