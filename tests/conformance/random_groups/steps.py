"""What may be said in a conversation: values that become requests of one broker.

Words are symbols, for the two brokers give out other ids. A member id is `own`, another seat's
name (its own id there, see `_id`), `nobody's` or empty. An epoch or generation is what was last
heard, and so much more ("+0", "-1"), or a number.
"""

import re
from abc import abstractmethod
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from odradek.protocol.schema import Message
from tests.conformance.random_groups.participants import ADMIN, UNKNOWN_ID, Assigned, Participants

OWN, NOBODYS = "own", "nobody"
JOINING, LEAVING, AWAY = 0, -1, -2
HEARD = "+0"
LONG_MS = 600_000  # of timeouts: nobody is put out in the course of a conversation
# What brokers name members: in a classic group by client and UUID, in a consumer group shortly.
GIVEN_ID = re.compile(r".+-[0-9a-f-]{36}|[\w-]{22}")
Epoch = str | int
REGEXES_SINCE = 1
# Member ids that clients choose sort before those that brokers draw: so assignors see one order.
CHOSEN = "!"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Step:
    """One request."""

    group: str = "g"
    who: str = ADMIN
    may_park: ClassVar[bool] = False

    @abstractmethod
    def request(self, participants: Participants) -> tuple[Message, int]:
        """The request, and its version."""

    def heard(self, participants: Participants, answer: Any) -> None:
        """Keep what a client would keep of the answer."""

    def __repr__(self) -> str:
        """As one would write it in a script: what is as usual is left out."""
        said = (
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if one.default is MISSING or getattr(self, one.name) != one.default
        )
        return f"{type(self).__name__}({', '.join(said)})"


def number(said: Epoch, heard: int) -> int:
    """What an epoch or generation stands for."""
    return said if isinstance(said, int) else heard + int(said)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Beat(Step):
    """A ConsumerGroupHeartbeat.

    `owned`: None (does not say), `all` that it was told, `some`, `none`, `more`, `other` topic.
    """

    id: str = OWN
    epoch: Epoch = HEARD
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: str | None = None
    instance: str | None = None
    rack: str | None = None
    timeout_ms: int = -1
    version: int = REGEXES_SINCE

    def request(self, participants: Participants) -> tuple[Message, int]:
        seat = participants.seat(self.group, self.who)
        request = ConsumerGroupHeartbeatRequest(
            group_id=participants.full(self.group),
            member_id=consumer_id(participants, self.group, self.who, self.id),
            member_epoch=number(self.epoch, seat.epoch),
            instance_id=self.instance,
            rack_id=self.rack,
            rebalance_timeout_ms=self.timeout_ms,
            subscribed_topic_names=None
            if self.topics is None
            else [participants.full(name) for name in self.topics],
            subscribed_topic_regex=self._expression(participants),
            server_assignor=self.assignor,
            topic_partitions=None if self.owned is None else _owned(self.owned, seat.assigned),
        )
        return request, self.version

    def _expression(self, participants: Participants) -> str | None:
        if self.version < REGEXES_SINCE or self.regex is None:
            return None
        return self.regex.replace("TAG", participants.tag)

    def heard(self, participants: Participants, answer: Any) -> None:
        seat = participants.seat(self.group, self.who)
        note_given(participants, self.group, answer.member_id or "")
        if self.id != OWN:
            return
        if answer.error_code == ErrorCode.NONE:
            seat.epoch = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                seat.assigned = {
                    one.topic_id: sorted(one.partitions)
                    for one in answer.assignment.topic_partitions
                }
            if answer.member_epoch <= 0:
                seat.assigned = {}
        elif answer.error_code in _OUT_OF_CONSUMERS:
            seat.forget_epoch()


_OUT_OF_CONSUMERS = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


def note_given(participants: Participants, group: str, member_id: str) -> None:
    given = participants.given_ids[group]
    if GIVEN_ID.fullmatch(member_id) and member_id not in given:
        given.append(member_id)


def _owned(said: str, assigned: Assigned) -> list[ConsumerGroupHeartbeatTopicPartitions]:
    """What a member reports that it owns."""
    if said == "none":
        places: Assigned = {}
    elif said == "some":
        places = {topic: ones[:-1] for topic, ones in assigned.items() if ones[:-1]}
    elif said == "more":
        places = {topic: [*ones, max(ones) + 1] for topic, ones in assigned.items()}
    elif said == "other":
        places = {**assigned, UNKNOWN_ID: [0]}
    else:
        places = assigned
    return [
        ConsumerGroupHeartbeatTopicPartitions(topic_id=topic, partitions=ones)
        for topic, ones in places.items()
    ]


def consumer_id(participants: Participants, group: str, who: str, said: str) -> str:
    """A member id as the consumer protocol uses it: clients choose it, here the seat's name."""
    return f"{CHOSEN}{who}" if said == OWN else _id(participants, group, said)


def classic_id(participants: Participants, group: str, who: str, said: str) -> str:
    """A member id as the classic protocol uses it: the broker gives it out."""
    return participants.seat(group, who).told_id if said == OWN else _id(participants, group, said)


def _id(participants: Participants, group: str, said: str) -> str:
    """A seat's name is its id in the consumer protocol; with a `'s`, the one it was told."""
    if said.endswith("'s"):
        return participants.seat(group, said.removesuffix("'s")).told_id
    return f"{CHOSEN}{said}" if (group, said) in participants.seats else said


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Restart(Step):
    """Both brokers are stopped, or killed, and started. It is no request."""

    kills: bool = False

    def request(self, participants: Participants) -> tuple[Message, int]:
        raise NotImplementedError
