"""The handlers of the group APIs: what each version is told, and that it can be written."""

import asyncio
from collections.abc import Awaitable, Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.common.nodes import Node
from odradek.broker.handlers import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from odradek.broker.requests.context import RequestContext, ServedVersions
from odradek.broker.requests.error_responses import handle_or_refuse
from odradek.broker.security.authorizer import Authorizer
from odradek.broker.security.session import Session
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.protocol.records.cluster_metadata import PartitionRecord, TopicRecord
from tests.support.groups import GROUP, SESSION_MS, TOPIC, Groups

NONE = ErrorCode.NONE
GONE_ID = b"gone topic 16 by"


class Broker:
    """What the group handlers ask of a broker: a topic of two partitions, and its groups."""

    def __init__(self, groups: Groups | None = None) -> None:
        self.clients = groups or Groups()
        topics = Topics()
        topics.replay_topic(TopicRecord(name=TOPIC[0], topic_id=TOPIC[1]))
        for index in range(2):
            topics.replay_partition(partition_record(index))
        self.broker: Any = SimpleNamespace(
            coordinators=SimpleNamespace(
                groups=self.clients.coordinator, groups_deleted=lambda _group_ids: None
            ),
            admin=SimpleNamespace(topics=SimpleNamespace(ensure_internal_topic=self._create_topic)),
            metadata=SimpleNamespace(topics=topics),
            config=SimpleNamespace(node_id=7),
            nodes=SimpleNamespace(
                own_id=7,
                leader=lambda node_id, *_: node_id,
                all=lambda *_: [Node(7, "localhost", 9092, rack=None)],
            ),
            security=SimpleNamespace(authorizer=Authorizer()),
            topic_name=self._topic_name,
        )

    async def _create_topic(self, name: str) -> None:
        assert name == "__consumer_offsets"
        self.clients.open()

    def context(self, version: int, client_id: str | None = "client") -> Any:
        listener: Any = None
        session = Session(listener, ("127.0.0.1", 40000))
        served = ServedVersions({}, {})
        return RequestContext(
            self.broker, session, served, version, client_id, now_ms=0, api_key=ApiKey.METADATA
        )

    def _topic_name(self, topic_id: bytes) -> str:
        if topic_id != TOPIC[1]:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        return TOPIC[0]

    def call(self, handler: Any, request: Any, version: int) -> Any:
        """The response, written in its version and read again: what the client sees."""
        response = handle_or_refuse(handler.handle, self.context(version), request)
        if isinstance(response, Awaitable):
            self.clients.advance(0)  # it is due at the loop's next turn
            response = next_of(response.__await__())
        return type(response).decode(response.encode(version), version)


def next_of(waiting: Generator[Any, None, Any]) -> Any:
    """What an awaitable that need not wait any more comes to."""
    try:
        next(waiting)
    except StopIteration as end:
        return end.value
    raise AssertionError("still parked")


def partition_record(index: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=TOPIC[1],
        replicas=[7],
        isr=[7],
        removing_replicas=[],
        adding_replicas=[],
        leader=7,
        leader_epoch=0,
        partition_epoch=0,
        directories=[],
    )


def versions_of(request: Any) -> range:
    spec = request.SPEC.versions
    return range(spec.lowest, spec.highest + 1)


# -- FindCoordinator -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions_of(FindCoordinatorRequest))
def test_find_coordinator_names_this_broker(version: int) -> None:
    request = FindCoordinatorRequest(key=GROUP, coordinator_keys=[GROUP, "other"])
    found = Broker().call(find_coordinator, request, version)
    answers = found.coordinators if version >= 4 else [found]
    assert len(answers) == (2 if version >= 4 else 1)
    for answer in answers:
        assert (answer.error_code, answer.node_id, answer.host, answer.port) == (
            NONE,
            7,
            "localhost",
            9092,
        )


@pytest.mark.parametrize(("key_type", "versions"), [(2, (1, 4)), (9, (1, 4, 6))])
def test_find_coordinator_refuses_for_good_what_is_not_served(
    key_type: int, versions: tuple[int, ...]
) -> None:
    request = FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=["k"])
    for version in versions:
        found = Broker().call(find_coordinator, request, version)
        answer = found.coordinators[0] if version >= 4 else found
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)
        assert "not served" in answer.error_message


def test_the_error_of_a_key_that_is_repeated_is_not_raised_each_time() -> None:
    error = ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no")
    context = Broker().context(4)
    results = [find_coordinator.find(context, 0, GROUP, {GROUP: error}) for _ in range(2)]
    assert [result.error_code for result in results] == [error.code] * 2
    assert error.__traceback__ is None


def test_find_coordinator_makes_the_offsets_topic_before_it_answers() -> None:
    groups = Groups()
    groups.coordinator = groups.closed_coordinator()
    found = Broker(groups).call(find_coordinator, FindCoordinatorRequest(key=GROUP), 0)
    assert found.error_code == NONE
    assert groups.join().generation_id == 1


async def test_find_coordinator_has_none_when_the_offsets_topic_cannot_be_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(_name: str) -> None:
        raise ApiError(ErrorCode.INVALID_CONFIG, "segment.bytes is too small")

    groups = Groups()
    groups.coordinator = groups.closed_coordinator()
    rig = Broker(groups)
    rig.broker.admin.topics.ensure_internal_topic = refuse
    request = FindCoordinatorRequest(key=GROUP)
    found = await find_coordinator.handle(rig.context(3), request)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "segment.bytes is too small" in caplog.text


async def test_clients_of_08_are_answered_when_the_offsets_topic_cannot_be_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(_name: str) -> None:
        raise ApiError(ErrorCode.INVALID_CONFIG, "segment.bytes is too small")

    groups = Groups()
    groups.coordinator = groups.closed_coordinator()
    rig = Broker(groups)
    rig.broker.admin.topics.ensure_internal_topic = refuse
    answers = [
        await offset_commit.handle(rig.context(0), commit_request((*TOPIC, (0,)))),
        await offset_fetch.handle(rig.context(0), fetch_request(0)),
    ]
    codes = {p.error_code for answer in answers for t in answer.topics for p in t.partitions}
    assert codes == {ErrorCode.NOT_COORDINATOR}
    assert caplog.text.count("segment.bytes is too small") == len(answers)


async def test_find_coordinator_waits_for_the_topic_where_making_it_takes_time() -> None:
    groups = Groups()
    groups.coordinator = groups.closed_coordinator()
    broker = Broker(groups)
    created = asyncio.Event()

    async def create(_name: str) -> None:
        await created.wait()
        groups.open()

    broker.broker.admin.topics.ensure_internal_topic = create
    context = broker.context(4)
    request = FindCoordinatorRequest(coordinator_keys=[GROUP])
    waiting = asyncio.ensure_future(find_coordinator.handle(context, request))  # type: ignore[arg-type] # it waits
    await asyncio.sleep(0)
    assert not waiting.done()
    created.set()
    assert (await waiting).coordinators[0].error_code == NONE


def test_find_coordinator_has_none_for_a_partition_that_is_offline() -> None:
    groups = Groups()
    groups.coordinator.shards.unavailable(0)
    found = Broker(groups).call(find_coordinator, FindCoordinatorRequest(key=GROUP), 0)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# -- JoinGroup, SyncGroup, Heartbeat, LeaveGroup -------------------------------------------------


def join_request(member_id: str = "", *, group_id: str = GROUP) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=SESSION_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )


@pytest.mark.parametrize("version", versions_of(JoinGroupRequest))
def test_a_member_joins_syncs_beats_and_leaves_in_every_version(version: int) -> None:
    broker = Broker()
    joined = broker.call(join_group, join_request(), version)
    if version >= 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = broker.call(join_group, join_request(joined.member_id), version)
    member_id = joined.member_id
    assert (joined.error_code, joined.generation_id, joined.leader) == (NONE, 1, member_id)
    assert joined.protocol_name == "range"
    # JoinGroup v0 has no rebalance timeout: the session's is taken.
    assert broker.clients.group().members[member_id].rebalance_timeout_ms == SESSION_MS
    sync = SyncGroupRequest(
        group_id=GROUP,
        generation_id=1,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    )
    synced = broker.call(sync_group, sync, min(version, 5))
    assert (synced.error_code, synced.assignment) == (NONE, b"")
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)
    assert broker.call(heartbeat, beat, min(version, 4)).error_code == NONE
    leave = LeaveGroupRequest(
        group_id=GROUP,
        member_id=member_id,
        members=[LeaveGroupMemberIdentity(member_id=member_id)],
    )
    left = broker.call(leave_group, leave, min(version, 5))
    assert left.error_code == NONE
    again = broker.call(leave_group, leave, min(version, 5))
    codes = [member.error_code for member in again.members] if version >= 3 else [again.error_code]
    assert codes == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_refused_join_has_an_empty_protocol_before_v7_and_none_since() -> None:
    for version, protocol in ((6, ""), (7, None)):
        refused = Broker().call(join_group, join_request(group_id=""), version)
        assert refused.error_code == ErrorCode.INVALID_GROUP_ID
        assert refused.protocol_name == protocol


async def test_a_parked_join_of_an_old_version_is_answered_in_its_form() -> None:
    broker = Broker()
    (leader,) = broker.clients.stable_group(1)
    loop = asyncio.get_running_loop()
    broker.clients.loop.create_future = loop.create_future  # type: ignore[assignment,method-assign] # a real one, to await
    waiting = asyncio.ensure_future(
        join_group.handle(broker.context(3), join_request())  # type: ignore[arg-type] # it waits
    )
    await asyncio.sleep(0)
    (new,) = set(broker.clients.group().members) - {leader}
    broker.clients.leave(new)
    response = await waiting
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert response.protocol_name == ""


def test_a_client_without_an_id_is_named_by_its_uuid_alone() -> None:
    broker = Broker()
    response: Any = join_group.handle(broker.context(4, client_id=None), join_request())
    assert response.member_id == "-uuid1"


def test_since_v5_a_sync_must_name_its_protocol() -> None:
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m", assignments=[])
    inconsistent, unknown = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.UNKNOWN_MEMBER_ID
    assert Broker().call(sync_group, request, 5).error_code == inconsistent
    assert Broker().call(sync_group, request, 4).error_code == unknown


@pytest.mark.parametrize("handler", [sync_group, heartbeat, leave_group])
def test_a_group_without_a_name_is_refused(handler: Any) -> None:
    requests = {
        sync_group: SyncGroupRequest(group_id="", generation_id=1, member_id="m", assignments=[]),
        heartbeat: HeartbeatRequest(group_id="", generation_id=1, member_id="m"),
        leave_group: LeaveGroupRequest(group_id="", member_id="m"),
    }
    refused = Broker().call(handler, requests[handler], 0)
    assert refused.error_code == ErrorCode.INVALID_GROUP_ID


# -- OffsetCommit, OffsetFetch -------------------------------------------------------------------


def commit_request(
    *topics: tuple[str, bytes, tuple[int, ...]], generation_id: int = -1
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=generation_id,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=index + 10, committed_metadata="m"
                    )
                    for index in partitions
                ],
            )
            for name, topic_id, partitions in topics
        ],
    )


def codes(response: Any) -> list[tuple[str | bytes, int, ErrorCode]]:
    return [
        (topic.name or topic.topic_id, partition.partition_index, ErrorCode(partition.error_code))
        for topic in response.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", versions_of(OffsetCommitRequest))
def test_offsets_are_committed_for_what_exists_and_the_rest_is_refused(version: int) -> None:
    broker = Broker()
    request = commit_request((*TOPIC, (0, 1, 5)), ("gone", GONE_ID, (0,)))
    response = broker.call(offset_commit, request, version)
    by_id = version >= 10
    name: str | bytes = TOPIC[1] if by_id else TOPIC[0]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(response) == [
        (name, 5, unknown),
        (name, 0, NONE),
        (name, 1, NONE),
        (GONE_ID if by_id else "gone", 0, ErrorCode.UNKNOWN_TOPIC_ID if by_id else unknown),
    ]
    assert broker.clients.committed(partition=1) == 11
    assert len(broker.clients.logs[0].stored) == 1


def test_a_refused_commit_is_refused_for_every_partition() -> None:
    broker = Broker()
    request = commit_request((*TOPIC, (0, 1)), generation_id=3)
    response = broker.call(offset_commit, request, 8)
    assert {code for _, _, code in codes(response)} == {ErrorCode.ILLEGAL_GENERATION}
    assert len(codes(response)) == 2


def test_a_topic_that_a_commit_names_twice_is_answered_twice_unless_some_of_it_is_refused() -> None:
    broker = Broker()
    response = broker.call(offset_commit, commit_request((*TOPIC, (0,)), (*TOPIC, (1,))), 9)
    assert [len(topic.partitions) for topic in response.topics] == [1, 1]
    response = broker.call(offset_commit, commit_request((*TOPIC, (0,)), (*TOPIC, (1, 5))), 9)
    assert [len(topic.partitions) for topic in response.topics] == [3]


def fetch_request(version: int, *, everything: bool = False) -> OffsetFetchRequest:
    topics = [
        OffsetFetchRequestTopic(name=TOPIC[0], topic_id=TOPIC[1], partition_indexes=[0, 1, 9]),
        OffsetFetchRequestTopic(name="gone", topic_id=GONE_ID, partition_indexes=[0]),
    ]
    wanted = None if everything else topics
    if version < 8:
        return OffsetFetchRequest(group_id=GROUP, topics=wanted)
    groups = [OffsetFetchRequestGroup(group_id=name, topics=wanted) for name in (GROUP, "nobody")]
    return OffsetFetchRequest(groups=groups)


@pytest.mark.parametrize("version", versions_of(OffsetFetchRequest))
def test_committed_offsets_are_fetched_for_the_topics_asked_for(version: int) -> None:
    broker = Broker()
    broker.call(offset_commit, commit_request((*TOPIC, (0, 1))), 9)
    request = OffsetFetchRequest.decode(fetch_request(version).encode(version), version)
    response = broker.call(offset_fetch, request, version)
    group = response.groups[0] if version >= 8 else response
    assert group.error_code == NONE
    known, gone = group.topics
    offsets = [(p.partition_index, p.committed_offset, p.metadata) for p in known.partitions]
    assert offsets == [(0, 10, "m"), (1, 11, "m"), (9, -1, "")]
    (missing,) = gone.partitions
    assert missing.committed_offset == -1
    unknown = {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 10: ErrorCode.UNKNOWN_TOPIC_ID}
    assert missing.error_code == unknown.get(version, NONE)
    if version >= 8:
        nobody = response.groups[1]
        assert nobody.error_code == NONE
        assert {p.committed_offset for topic in nobody.topics for p in topic.partitions} == {-1}


@pytest.mark.parametrize("version", range(2, 11))
def test_all_committed_offsets_are_fetched_when_no_topic_is_named(version: int) -> None:
    broker = Broker()
    broker.call(offset_commit, commit_request((*TOPIC, (0, 1))), 9)
    broker.clients.commit(3, topic=("gone", GONE_ID))
    request = OffsetFetchRequest.decode(
        fetch_request(version, everything=True).encode(version), version
    )
    response = broker.call(offset_fetch, request, version)
    topics = (response.groups[0] if version >= 8 else response).topics
    if version >= 10:  # a topic that is gone has no id
        assert [topic.topic_id for topic in topics] == [TOPIC[1]]
    else:
        assert [topic.name for topic in topics] == ["topic", "gone"]
    assert [p.committed_offset for p in topics[0].partitions] == [10, 11]
    if version >= 8:
        assert response.groups[1].topics == []


def test_a_fetch_without_a_coordinator_fails_per_partition_in_v1_and_as_a_whole_since() -> None:
    groups = Groups()
    groups.coordinator = groups.closed_coordinator()
    broker = Broker(groups)
    request = OffsetFetchRequest.decode(fetch_request(1).encode(1), 1)
    not_coordinator = ErrorCode.NOT_COORDINATOR
    response = broker.call(offset_fetch, request, 1)
    assert {p.error_code for topic in response.topics for p in topic.partitions} == {
        not_coordinator
    }
    response = broker.call(offset_fetch, request, 2)
    assert (response.error_code, response.topics) == (not_coordinator, [])


# -- DescribeGroups, ListGroups, DeleteGroups ----------------------------------------------------


@pytest.mark.parametrize("version", versions_of(DescribeGroupsRequest))
def test_a_stable_group_is_described_with_its_members(version: int) -> None:
    broker = Broker()
    (member_id,) = broker.clients.stable_group(1, protocols={"range": b"meta"})
    request = DescribeGroupsRequest(groups=[GROUP, "nobody"])
    group, nobody = broker.call(describe_groups, request, version).groups
    assert (group.error_code, group.group_state) == (NONE, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (
        member_id,
        "client",
        "/127.0.0.1",
    )
    assert (member.member_metadata, member.member_assignment) == (b"meta", member_id.encode())
    assert nobody.group_state == "Dead"
    assert nobody.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else NONE)
    assert (nobody.error_message is not None) == (version >= 6)


def test_a_group_that_rebalances_is_described_without_a_protocol() -> None:
    broker = Broker()
    broker.clients.stable_group(1, protocols={"range": b"meta"})
    broker.clients.parked_join(protocols={"range": b"meta"})
    (group,) = broker.call(describe_groups, DescribeGroupsRequest(groups=[GROUP]), 5).groups
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in group.members] == [b"", b""]


def test_operations_are_told_when_asked_for() -> None:
    broker = Broker()
    broker.clients.commit(1)
    for asked, operations in ((True, 0b110101001000), (False, -(2**31))):
        request = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=asked)
        (group,) = broker.call(describe_groups, request, 5).groups
        assert group.authorized_operations == operations


def test_groups_are_listed_by_state_and_type() -> None:
    broker = Broker()
    broker.clients.stable_group(1)
    broker.clients.commit(1, group_id="simple")

    def listed(states: list[str], types: list[str]) -> list[str]:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return [g.group_id for g in broker.call(list_groups, request, 5).groups]

    assert listed([], []) == [GROUP, "simple"]
    assert listed([" STABLE"], []) == [GROUP]
    assert listed(["empty", "Stable"], ["Classic"]) == [GROUP, "simple"]
    assert listed([], ["consumer"]) == []
    assert listed(["nonsense"], []) == []
    assert listed(["St_able"], []) == []


def test_a_group_that_is_deleted_between_two_slices_is_not_listed() -> None:
    broker = Broker()
    for group_id in ("first", "deleted", "last"):
        broker.clients.commit(1, group_id=group_id)

    def of(groups: list[Any]) -> Iterator[Any]:
        for number, group in enumerate(groups):
            if number == 1:
                broker.clients.coordinator.admin.delete(["deleted"])
            yield group

    context = broker.context(5)
    context.slices = SimpleNamespace(of=of, step=lambda: None)
    listed = list_groups.handle(context, ListGroupsRequest()).groups
    assert [(group.group_id, group.group_state) for group in listed] == [
        ("first", "Empty"),
        ("last", "Empty"),
    ]


@pytest.mark.parametrize("version", versions_of(ListGroupsRequest))
def test_a_listed_group_carries_what_its_version_can_say(version: int) -> None:
    broker = Broker()
    broker.clients.stable_group(1)
    (group,) = broker.call(list_groups, ListGroupsRequest(), version).groups
    assert (group.group_id, group.protocol_type) == (GROUP, "consumer")
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", versions_of(DeleteGroupsRequest))
def test_groups_without_members_are_deleted_each_with_its_answer(version: int) -> None:
    broker = Broker()
    broker.clients.stable_group(1)
    broker.clients.commit(1, group_id="simple")
    request = DeleteGroupsRequest(groups_names=[GROUP, "simple", "nobody", "simple"])
    results = broker.call(delete_groups, request, version).results
    assert [(r.group_id, r.error_code) for r in results] == [
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("simple", NONE),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert broker.clients.committed(group_id="simple") is None


# -- OffsetDelete --------------------------------------------------------------------------------


def delete_request(*places: tuple[str, tuple[int, ...]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=GROUP,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=one) for one in indexes],
            )
            for name, indexes in places
        ],
    )


def deleted(broker: Broker, *places: tuple[str, tuple[int, ...]]) -> dict[str, list[Any]]:
    answer = broker.call(offset_delete, delete_request(*places), 0)
    assert answer.error_code == NONE
    return {
        topic.name: [(one.partition_index, one.error_code) for one in topic.partitions]
        for topic in answer.topics
    }


def test_offsets_are_deleted_for_what_exists_and_the_rest_is_unknown_in_front_of_it() -> None:
    broker = Broker()
    broker.clients.commit(1)
    broker.clients.commit(2, partition=1)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = deleted(broker, ("gone", (0,)), (TOPIC[0], (0, 9)), ("empty", ()))
    assert answers == {
        "gone": [(0, unknown)],
        TOPIC[0]: [(9, unknown), (0, NONE)],
        "empty": [],
    }
    assert (broker.clients.committed(), broker.clients.committed(partition=1)) == (None, 2)


def test_a_refused_deletion_tells_one_error_and_nothing_else() -> None:
    answer = Broker().call(offset_delete, delete_request(("gone", (0,)), (TOPIC[0], (0,))), 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


# -- while nobody coordinates --------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]
)
def test_every_administrative_request_says_why_there_is_no_coordinator(error: ErrorCode) -> None:
    broker = Broker()
    if error is ErrorCode.NOT_COORDINATOR:
        broker.clients.coordinator.shards.unavailable(0)
    else:
        broker.clients.coordinator.shards.prepare(1)
    assert broker.call(offset_delete, delete_request((TOPIC[0], (0,))), 0).error_code == error
    described = broker.call(describe_groups, DescribeGroupsRequest(groups=[GROUP]), 6).groups[0]
    assert (described.error_code, described.group_state) == (error, "")
    gone = broker.call(delete_groups, DeleteGroupsRequest(groups_names=[GROUP]), 2).results[0]
    assert gone.error_code == error
    committed = broker.call(offset_commit, commit_request((*TOPIC, (0,))), 8)
    assert committed.topics[0].partitions[0].error_code == error
    assert broker.call(offset_fetch, fetch_request(8), 8).groups[0].error_code == error
    listed = broker.call(list_groups, ListGroupsRequest(), 5)
    # A partition that is not served has no groups; one that loads may have some.
    assert listed.error_code == (NONE if error is ErrorCode.NOT_COORDINATOR else error)
