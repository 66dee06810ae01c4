"""Every request to a classic group in every state, asked of odradek and in long runs of Kafka.

The table of tests/support/group_states.py is what odradek's groups answer in memory; here it is
held to the reference, and to odradek's whole broker.
"""

import select
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from odradek.coordinator.classic_groups.protocols import elect_protocol
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.primitives import random_uuid
from odradek.protocol.schema import Message
from tests.conformance.conversation import Conversation, patiently, response_of
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, running
from tests.support.group_states import (
    CALLS,
    FULL_AT,
    PARKED,
    STATES,
    Cell,
    Codes,
    answers_of_a_full_group,
    cells,
)
from tests.support.kafka_answers import BROKERS
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
TOPIC = "group-states"
SESSION_MS, REBALANCE_MS = 60_000, 60_000
# A request that is not answered by then is parked: answers take a few milliseconds.
PARKED_AFTER_S = 0.05


class Sent:
    """A request that is on its way, on a connection of its own."""

    def __init__(self, client: WireClient, response: type[Message], version: int) -> None:
        self.client = client
        self._response = response
        self._version = version
        self._answer: Any = None

    def code(self, expected: Codes) -> Codes:
        if expected is PARKED and not self._has_come(PARKED_AFTER_S):
            return PARKED
        answer = self._first_part(self.read())
        return ErrorCode(answer.error_code)

    def joined(self) -> JoinGroupResponse:
        answer: JoinGroupResponse = self.read()
        return answer

    def read(self) -> Any:
        if self._answer is None:
            self._answer = self.client.read_answer(self._response, self._version)
        return self._answer

    def _has_come(self, within_s: float) -> bool:
        return self._answer is not None or bool(
            select.select([self.client.socket], [], [], within_s)[0]
        )

    @staticmethod
    def _first_part(answer: Any) -> Any:
        """What the answer says of the one member, partition or group that was asked about."""
        if getattr(answer, "error_code", ErrorCode.NONE) != ErrorCode.NONE:
            return answer
        for parts in ("members", "topics", "results"):
            listed = getattr(answer, parts, None)
            if listed and hasattr(listed[0], "error_code"):
                return listed[0]
            if listed and parts == "topics":
                return listed[0].partitions[0]
        return answer


class WireStage:
    """One group of a broker."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._group = f"group-{random_uuid().hex()}"
        self._clients: list[WireClient] = []
        self._idle: list[Sent] = []

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _send(self, request: Message, version: int) -> Sent:
        """By a connection on which nothing is parked."""
        client = next((one.client for one in self._idle if one._answer is not None), None)
        if client is None:
            client = WireClient(self._port, client_id="states")
            self._clients.append(client)
        self._idle = [one for one in self._idle if one.client is not client]
        client.send(client.frame_of(request, version))
        sent = Sent(client, response_of(type(request)), version)
        self._idle.append(sent)
        return sent

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        version: int = 9,
    ) -> Sent:
        offered = {"range": SUBSCRIPTION} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in offered.items()
            ],
        )
        return self._send(request, version)

    def sync(
        self,
        member_id: str,
        generation: int,
        *,
        instance: str | None = None,
        protocol: tuple[str, str] = ("consumer", "range"),
        assignments: Mapping[str, bytes] | None = None,
    ) -> Sent:
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol[0],
            protocol_name=protocol[1],
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=assignment)
                for name, assignment in (assignments or {}).items()
            ],
        )
        return self._send(request, 5)

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> Sent:
        request = HeartbeatRequest(
            group_id=self._group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return self._send(request, 4)

    def leave(self, member_id: str, instance: str | None = None) -> Sent:
        who = LeaveGroupMemberIdentity(member_id=member_id, group_instance_id=instance)
        return self._send(LeaveGroupRequest(group_id=self._group, members=[who]), 5)

    def commit(
        self, member_id: str = "", generation: int = -1, instance: str | None = None
    ) -> Sent:
        one = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[one])],
        )
        return self._send(request, 9)

    def delete(self) -> Sent:
        return self._send(DeleteGroupsRequest(groups_names=[self._group]), 2)

    def wait_for_members(self, wanted: int) -> None:
        def there() -> bool | None:
            answer = self._send(DescribeGroupsRequest(groups=[self._group]), 5).read()
            return len(answer.groups[0].members) == wanted or None

        patiently(there)


@pytest.fixture(params=BROKERS, scope="module")
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A broker with a topic to commit to."""
    kind = {"kafka": ApacheKafkaProcess, "odradek": BrokerProcess}[request.param]
    settings = {"group.max.size": str(FULL_AT)}
    with running(kind(tmp_path_factory.mktemp("broker"), settings)) as process:
        talk = Conversation(process.port, {})
        talk.create_topic(TOPIC)
        talk.wait_for_coordinator("states")
        talk.close()
        yield process.port


@pytest.mark.parametrize("state", STATES)
def test_each_state_answers_each_call_as_kafka_does(state: str, port: int) -> None:
    """Requests that change nothing are sent to one group, each other one to its own."""
    sent: list[tuple[Cell, Sent]] = []
    stages = [WireStage(port)]
    members = STATES[state](stages[0])
    for cell in sorted((cell for cell in cells() if cell.state == state), key=disturbs):
        if cell.disturbs:
            stages.append(WireStage(port))
            members = STATES[state](stages[-1])
        sent.append((cell, CALLS[cell.call](stages[-1], members)))
        sent[-1][1].code(cell.expected)
    # Looked at once more: what is parked is parked still.
    wrong = [
        f"{cell.call}: {one.code(cell.expected)!r}, not {cell.expected!r}"
        for cell, one in sent
        if one.code(cell.expected) != cell.expected
    ]
    for stage in stages:
        stage.close()
    assert wrong == []


def disturbs(cell: Cell) -> bool:
    return cell.disturbs


def test_a_full_group_answers_as_kafka_does(port: int) -> None:
    stage = WireStage(port)
    for what, expected, found in answers_of_a_full_group(stage):
        assert found == expected, what
    stage.close()


@pytest.mark.parametrize(
    "names",
    [("range", "sticky"), ("range", "roundrobin"), ("cooperative-sticky", "range"), ("b", "a")],
)
def test_of_two_protocols_with_as_many_votes_the_same_one_wins(
    names: tuple[str, str], port: int
) -> None:
    offered = dict.fromkeys(names, SUBSCRIPTION)
    other = dict(reversed(offered.items()))
    for first, second in ((offered, other), (other, offered)):
        stage = WireStage(port)
        leader = stage.join(version=3, protocols=first).joined()
        assert leader.protocol_name == next(iter(first))
        follower = stage.join(version=3, protocols=second)
        stage.wait_for_members(2)
        back = stage.join(leader.member_id, protocols=first).joined()
        assert back.protocol_name == elect_protocol([list(first), list(second)])
        assert follower.joined().protocol_name == back.protocol_name
        stage.close()
