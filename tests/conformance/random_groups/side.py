"""One broker's part of a conversation: connections, what was sent, what came back."""

import select
from dataclasses import dataclass, field
from typing import Any

from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.schema import Message
from tests.conformance.conversation import response_of
from tests.conformance.random_groups.admin_steps import Describe
from tests.conformance.random_groups.participants import ADMIN, Participants
from tests.conformance.random_groups.plain import Plain
from tests.conformance.random_groups.steps import JOINING, LONG_MS, Step
from tests.support.wire import ConnectionEndedError, WireClient

CLOSED = "closed"


@dataclass(slots=True, eq=False)
class Sent:
    """A request that is on its way; the connection is its own until the answer has come."""

    client: WireClient
    response: type[Message]
    version: int
    answer: Any = None

    def has_come(self, within_s: float = 0.0) -> bool:
        """Whether there is an answer, which is then read."""
        if self.answer is None and select.select([self.client.socket], [], [], within_s)[0]:
            try:
                self.answer = self.client.read_answer(self.response, self.version)
            except (ConnectionEndedError, ConnectionResetError):
                self.answer = CLOSED
        return self.answer is not None


@dataclass(slots=True)
class Side:
    """Speaks for everybody in the conversation, each by connections of its own."""

    port: int
    participants: Participants
    plain: Plain = field(init=False)
    _idle: dict[str, list[WireClient]] = field(default_factory=dict)
    _all: list[WireClient] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plain = Plain(self.participants)

    # -- the conversation --------------------------------------------------------------------------

    def send(self, step: Step) -> Sent:
        """By a connection of the speaker's on which nobody waits."""
        request, version = step.request(self.participants)
        client = self._client(step.who)
        client.send(client.frame_of(request, version))
        return Sent(client, response_of(type(request)), version)

    def done(self, step: Step, sent: Sent) -> Any:
        """The answer, made plain; its speaker has heard it."""
        if sent.answer is CLOSED:
            return CLOSED
        self._idle[step.who].append(sent.client)
        step.heard(self.participants, sent.answer)
        return self.plain.of(self._own_part(sent.answer))

    def _own_part(self, answer: Any) -> Any:
        """ListGroups tells of the groups of all conversations."""
        groups = getattr(answer, "groups", None)
        if groups and hasattr(groups[0], "group_type"):
            groups[:] = [one for one in groups if one.group_id.startswith(self.participants.tag)]
        return answer

    def close(self) -> None:
        """End all connections; new ones are made where somebody has more to say."""
        for client in self._all:
            client.close()
        self._all.clear()
        self._idle.clear()
        for seat in self.participants.seats.values():
            seat.parked = 0

    def _client(self, name: str) -> WireClient:
        idle = self._idle.setdefault(name, [])
        if not idle:
            idle.append(WireClient(self.port, client_id=name))
            self._all.append(idle[0])
        return idle.pop()

    # -- looks beside it ---------------------------------------------------------------------------

    def groups(self, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[str]:
        """The conversation's groups in these states and of these types, or all."""
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        answer: ListGroupsResponse = self._ask(request, 5)
        return {
            one.group_id for one in answer.groups if one.group_id.startswith(self.participants.tag)
        }

    def epochs(self, group: str) -> tuple[int, int]:
        """The epochs of a consumer group, and of its assignment; zeros: it is none."""
        answer: ConsumerGroupDescribeResponse = self._ask(
            *Describe(group=group).request(self.participants)
        )
        return answer.groups[0].group_epoch, answer.groups[0].assignment_epoch

    def known_partitions(self, topics: tuple[str, ...]) -> dict[bytes, int]:
        """How many partitions of topics the group coordinator knows of, by id.

        It learns of them later than clients do; so somebody in a group of its own is assigned them.
        """
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"looking-{self.participants.tag}",
            member_id="looking",
            member_epoch=JOINING,
            rebalance_timeout_ms=LONG_MS,
            subscribed_topic_names=[self.participants.full(name) for name in topics],
            topic_partitions=[],
        )
        answer: ConsumerGroupHeartbeatResponse = self._ask(request, 1)
        assert answer.assignment is not None, answer
        return {one.topic_id: len(one.partitions) for one in answer.assignment.topic_partitions}

    def _ask(self, request: Message, version: int) -> Any:
        client = self._client(ADMIN)
        self._idle[ADMIN].append(client)
        return client.ask(request, response_of(type(request)), version)
