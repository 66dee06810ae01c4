"""An fsync of a coordinator's log fails: its clients get NOT_COORDINATOR.

Only groups stored in the failed directory are affected.
"""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.handlers import HANDLERS, join_group
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.lost_writes import retry_if_lost
from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteGroupsResult,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStatePartition,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateTopic,
)
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
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop, until
from tests.support.contexts import request_context
from tests.support.faulty_files import FaultyFiles, below
from tests.support.log_box import NOW_MS
from tests.support.quotas import ALTER_VERSION, quota_request

PARTITIONS = 6
SHARED = 20
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


class Rig:
    """A broker with two data directories, and the names of a group in each."""

    def __init__(self, served: BrokerInLoop, files: FaultyFiles, failing: Path) -> None:
        self._served = served
        self.broker = served.broker
        self._files = files
        self._failing = failing
        self.well, self.hurt = self._group_in("well"), self._group_in("hurt")

    def _group_in(self, place: str) -> str:
        """A name whose partition is in the directory that will fail ("hurt"), or in the other."""
        manager = self._served.broker.log_manager
        for name in (f"{place}-{number}" for number in count()):
            log = manager.get(CONSUMER_OFFSETS_TOPIC, partition_of(name, PARTITIONS))
            if log.directory.is_relative_to(self._failing) is (place == "hurt"):
                return name
        raise AssertionError

    def beside_hurt(self) -> str:
        """Another name with the same partition."""
        mine = partition_of(self.hurt, PARTITIONS)
        names = (f"beside-{number}" for number in count())
        return next(name for name in names if partition_of(name, PARTITIONS) == mine)

    def parked(self, group: str) -> bool:
        """Whether a member waits for the others to join."""
        return self._served.broker.coordinators.groups.admin.classic_group(group).roster.joined > 0

    def fail(self) -> None:
        """Make every further fsync in the directory fail."""
        self._files.fail(below(self._failing, "fsync"))

    def lack_space(self) -> None:
        """Refuse what is written before an fsync, for lack of space."""

        def wanted(kind: str, path: Path) -> bool:
            return kind == "pwrite" and path.suffix == ".index"

        self._files.fail(wanted, error=errno.ENOSPC)

    def heal(self) -> None:
        self._files.heal()

    async def retry_loads(self) -> None:
        """Load what could not be loaded, as the broker does each second."""
        coordinators = self._served.broker.coordinators
        coordinators.logs.retry_loads()
        shards = coordinators.groups.shards
        await until(lambda: len(list(shards.serving())) == PARTITIONS)

    async def ask(self, request: Any, response: Any, version: int) -> Any:
        return await self._served.ask(request, response, version)

    # -- requests ----------------------------------------------------------------------------------

    async def commit(self, group: str, version: int = 8) -> int:
        place = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, committed_metadata=""
        )
        topics = [
            OffsetCommitRequestTopic(name=name, partitions=[place]) for name in ("t", "missing")
        ]
        request = OffsetCommitRequest(group_id=group, topics=topics)
        answer = await self.ask(request, OffsetCommitResponse, version)
        codes = {one.name: one.partitions[0].error_code for one in answer.topics}
        assert codes["missing"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return codes["t"]

    async def join(self, group: str, member: str = "", version: int = 5) -> Any:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0" * 10)],
        )
        return await self.ask(request, JoinGroupResponse, version)

    async def member(self, group: str) -> str:
        """A member that leads its group, and has not synchronised yet."""
        reply = await self.join(group)
        assert reply.error_code == ErrorCode.MEMBER_ID_REQUIRED, reply
        assert (await self.join(group, reply.member_id)).error_code == ErrorCode.NONE
        return str(reply.member_id)

    async def sync(self, group: str, member: str) -> int:
        request = SyncGroupRequest(
            group_id=group, generation_id=1, member_id=member, assignments=[]
        )
        code: int = (await self.ask(request, SyncGroupResponse, 4)).error_code
        return code

    async def leave(self, group: str, member: str, version: int) -> int:
        who = LeaveGroupMemberIdentity(member_id=member)
        names = {"members": [who]} if version >= 3 else {"member_id": member}
        request = LeaveGroupRequest(group_id=group, **names)  # type: ignore[arg-type] # one of its shapes
        code: int = (await self.ask(request, LeaveGroupResponse, version)).error_code
        return code

    async def beat(self, group: str) -> int:
        code: int = (await self.beat_answer(group)).error_code
        return code

    async def beat_answer(self, group: str) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        return await self.ask(request, ConsumerGroupHeartbeatResponse, 1)

    async def delete_offsets(self, group: str) -> int:
        place = OffsetDeleteRequestPartition(partition_index=0)
        topics = [OffsetDeleteRequestTopic(name="t", partitions=[place])]
        request = OffsetDeleteRequest(group_id=group, topics=topics)
        code: int = (await self.ask(request, OffsetDeleteResponse, 0)).error_code
        return code

    async def delete(self, *groups: str) -> dict[str, int]:
        answer = await self.ask(DeleteGroupsRequest(groups_names=groups), DeleteGroupsResponse, 2)
        return {one.group_id: one.error_code for one in answer.results}

    async def found(self, group: str) -> int:
        request = FindCoordinatorRequest(coordinator_keys=[group])
        answer = await self.ask(request, FindCoordinatorResponse, 4)
        code: int = answer.coordinators[0].error_code
        return code

    async def create_shared(self) -> bytes:
        """A topic for share groups; its id."""
        broker = self._served.broker
        await broker.admin.topics.create([NewTopic(name="shared", partition_count=SHARED)])
        return broker.metadata.topics["shared"].id

    async def write_share_state(self, topic_id: bytes) -> dict[str, int]:
        """Initialize the state of a share-partition in each directory."""
        log_of = self._served.broker.log_manager.get
        places: dict[str, int] = {}
        for partition in range(SHARED):
            text = SharePartitionKey(self.well, topic_id, partition).text
            log = log_of(SHARE_GROUP_STATE_TOPIC, partition_of(text, PARTITIONS))
            is_hurt = log.directory.is_relative_to(self._failing)
            places["hurt" if is_hurt else "well"] = partition
        partitions = [
            InitializeShareGroupStatePartition(partition=each, state_epoch=1, start_offset=0)
            for each in places.values()
        ]
        topic = InitializeShareGroupStateTopic(topic_id=topic_id, partitions=partitions)
        request = InitializeShareGroupStateRequest(group_id=self.well, topics=[topic])
        answer = await self.ask(request, InitializeShareGroupStateResponse, 0)
        codes = {each.partition: each.error_code for each in answer.results[0].partitions}
        return {place: codes[partition] for place, partition in places.items()}


@asynccontextmanager
async def broken_rig(tmp_path: Path) -> AsyncIterator[Rig]:
    files = FaultyFiles()
    settings = {
        "log_flush_interval_messages": "1",
        "offsets_topic_num_partitions": str(PARTITIONS),
        "share_coordinator_state_topic_num_partitions": str(PARTITIONS),
        "group_initial_rebalance_delay_ms": "0",
        "log_index_interval_bytes": "0",
    }
    directories = [tmp_path / "a", tmp_path / "b"]  # the metadata log is in the first
    async with broker_in_loop(directories, files, **settings) as served:
        await served.broker.admin.topics.create([NewTopic(name="t")])
        for name in (CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC):
            await served.broker.admin.topics.ensure_internal_topic(name)
        yield Rig(served, files, directories[1])
        files.heal()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with broken_rig(tmp_path) as rig:
        yield rig


async def test_a_commit(rig: Rig) -> None:
    rig.fail()
    assert await rig.commit(rig.hurt) == NOT_COORDINATOR
    assert await rig.commit(rig.well) == ErrorCode.NONE


@pytest.mark.parametrize("version", [2, 5, 9])
async def test_a_join(rig: Rig, version: int) -> None:
    rig.fail()
    reply = await rig.join(rig.hurt, version=version)
    assert reply.error_code == NOT_COORDINATOR
    if version >= 4:  # older ones wait for more members, and then the response may have the new id
        assert reply.member_id == ""


async def test_a_join_whose_answer_is_ready_after_the_sync_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync of a quick disk may end before the answer that it concerns is sent."""

    def handle_late(context: RequestContext, request: JoinGroupRequest) -> Any:
        async def answer() -> JoinGroupResponse:
            response = await joined
            await until(lambda: not context.broker.log_syncs.coordinators)
            assert isinstance(response, JoinGroupResponse)
            return response

        joined = join_group.handle(context, request)
        return answer() if isinstance(joined, Awaitable) else joined

    monkeypatch.setitem(HANDLERS, ApiKey.JOIN_GROUP, handle_late)
    async with broken_rig(tmp_path) as rig:
        rig.fail()
        assert (await rig.join(rig.hurt, version=2)).error_code == NOT_COORDINATOR


async def test_a_sync(rig: Rig) -> None:
    member, other = await rig.member(rig.hurt), await rig.member(rig.well)
    rig.fail()
    assert await rig.sync(rig.hurt, member) == NOT_COORDINATOR
    assert await rig.sync(rig.well, other) == ErrorCode.NONE


@pytest.mark.parametrize("version", [2, 5])
async def test_a_leave(rig: Rig, version: int) -> None:
    member = await rig.member(rig.hurt)
    rig.fail()
    assert await rig.leave(rig.hurt, member, version) == NOT_COORDINATOR


async def test_a_heartbeat_of_a_consumer_group(rig: Rig) -> None:
    rig.fail()
    assert await rig.beat(rig.hurt) == NOT_COORDINATOR
    assert await rig.beat(rig.well) == ErrorCode.NONE


async def test_a_deletion_of_offsets(rig: Rig) -> None:
    await rig.commit(rig.hurt)
    rig.fail()
    assert await rig.delete_offsets(rig.hurt) == NOT_COORDINATOR


async def test_a_deletion_of_groups_in_both_directories(rig: Rig) -> None:
    for group in (rig.well, rig.hurt):
        assert await rig.commit(group) == ErrorCode.NONE
    rig.fail()
    reply = await rig.delete(rig.hurt, rig.well)
    assert reply == {rig.hurt: NOT_COORDINATOR, rig.well: ErrorCode.NONE}


async def test_groups_whose_deletion_is_not_lost_are_not_deleted_again(rig: Rig) -> None:
    request = DeleteGroupsRequest(groups_names=[rig.well])
    response = DeleteGroupsResponse(results=[DeleteGroupsResult(group_id=rig.well)])
    context = request_context(rig.broker, 2, NOW_MS)
    assert await retry_if_lost(not_called, context, request, response) is response


def not_called(_context: RequestContext, request: Any) -> Any:
    raise AssertionError(request)


async def test_a_small_request_is_handled_again_in_slices(rig: Rig) -> None:
    """Then it may take long, and a handler does not raise NotSmallError."""
    assert await rig.commit(rig.hurt) == ErrorCode.NONE
    rig.fail()
    assert await rig.commit(rig.hurt) == NOT_COORDINATOR
    contexts: list[RequestContext] = []

    def handle(context: RequestContext, _request: Any) -> HeartbeatResponse:
        contexts.append(context)
        return HeartbeatResponse(error_code=NOT_COORDINATOR)

    request = HeartbeatRequest(group_id=rig.hurt, generation_id=1, member_id="m")
    context = request_context(rig.broker, 4, NOW_MS)
    answer = await retry_if_lost(handle, context, request, HeartbeatResponse())
    assert isinstance(answer, HeartbeatResponse)
    assert answer.error_code == NOT_COORDINATOR
    assert [context.slices is not None for context in contexts] == [True]


async def test_the_response_to_a_throttled_client_has_its_throttle_time(rig: Rig) -> None:
    quota = quota_request({"client-id": "wire"}, request_percentage=1e-6)
    await rig.ask(quota, AlterClientQuotasResponse, ALTER_VERSION)
    rig.fail()
    answer = await rig.beat_answer(rig.hurt)
    assert (answer.error_code, answer.throttle_time_ms) == (NOT_COORDINATOR, 1000)


async def test_the_state_of_share_groups_in_both_directories(rig: Rig) -> None:
    topic_id = await rig.create_shared()
    rig.fail()
    assert await rig.write_share_state(topic_id) == {
        "hurt": NOT_COORDINATOR,
        "well": ErrorCode.NONE,
    }


async def test_from_then_on_the_group_has_no_coordinator(rig: Rig) -> None:
    member = await rig.member(rig.hurt)
    await rig.commit(rig.well)
    rig.fail()
    assert await rig.sync(rig.hurt, member) == NOT_COORDINATOR
    assert await rig.found(rig.hurt) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await rig.found(rig.well) == ErrorCode.NONE
    calls: list[tuple[Any, Any, int, Callable[[Any], int]]] = [
        (
            HeartbeatRequest(group_id=rig.hurt, generation_id=1, member_id=member),
            HeartbeatResponse,
            4,
            lambda answer: answer.error_code,
        ),
        (
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=rig.hurt, topics=None)]),
            OffsetFetchResponse,
            8,
            lambda answer: answer.groups[0].error_code,
        ),
        (
            DescribeGroupsRequest(groups=[rig.hurt]),
            DescribeGroupsResponse,
            5,
            lambda answer: answer.groups[0].error_code,
        ),
        (
            ConsumerGroupDescribeRequest(group_ids=[rig.hurt], include_authorized_operations=False),
            ConsumerGroupDescribeResponse,
            1,
            lambda answer: answer.groups[0].error_code,
        ),
    ]
    for request, response, version, code in calls:
        assert code(await rig.ask(request, response, version)) == NOT_COORDINATOR
    listed = await rig.ask(ListGroupsRequest(), ListGroupsResponse, 5)
    assert listed.error_code == ErrorCode.NONE
    assert [group.group_id for group in listed.groups] == [rig.well]


async def test_a_group_comes_back_if_there_was_no_space_to_sync_what_it_wrote(rig: Rig) -> None:
    """No fsync has failed: its log is online, and its records are in it."""
    assert await rig.commit(rig.hurt) == ErrorCode.NONE
    rig.lack_space()
    assert await rig.commit(rig.hurt) == NOT_COORDINATOR
    assert await rig.found(rig.hurt) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    rig.heal()
    await rig.retry_loads()
    assert await rig.found(rig.hurt) == ErrorCode.NONE
    assert await rig.commit(rig.hurt) == ErrorCode.NONE


async def test_a_parked_client_is_answered(rig: Rig) -> None:
    await rig.member(rig.hurt)
    second = (await rig.join(rig.hurt)).member_id
    waits = asyncio.create_task(rig.join(rig.hurt, second))
    await until(lambda: rig.parked(rig.hurt))
    rig.fail()
    third = await rig.join(rig.hurt)  # asks for an id only: nothing is written
    assert third.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert await rig.beat(rig.beside_hurt()) == NOT_COORDINATOR
    assert (await waits).error_code == NOT_COORDINATOR
