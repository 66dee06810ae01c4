"""What a coordinator wrote is lost by a failed fsync: its clients hear that it is not one any more.

Of the groups that lie in the directory that fails; those in another one live on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.group_shards import partition_of
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
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
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop, until
from tests.support.faulty_files import FaultyFiles, below

PARTITIONS = 6
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


class House:
    """A broker with two data directories, and the names of a group in each."""

    def __init__(self, served: BrokerInLoop, files: FaultyFiles, failing: Path) -> None:
        self._served = served
        self._files = files
        self._failing = failing
        self.well, self.hurt = self._group_in("well"), self._group_in("hurt")

    def _group_in(self, place: str) -> str:
        """A name whose partition lies in the directory that will fail, or not."""
        manager = self._served.broker.log_manager
        for name in (f"{place}-{number}" for number in count()):
            log = manager.get(CONSUMER_OFFSETS_TOPIC, partition_of(name, PARTITIONS))
            if log.directory.is_relative_to(self._failing) is (place == "hurt"):
                return name
        raise AssertionError

    def beside_hurt(self) -> str:
        """Another name that lies in the same partition."""
        mine = partition_of(self.hurt, PARTITIONS)
        names = (f"beside-{number}" for number in count())
        return next(name for name in names if partition_of(name, PARTITIONS) == mine)

    def parked(self, group: str) -> bool:
        """Whether somebody waits for the others' joins."""
        return self._served.broker.groups.group(group).roster.joined > 0

    def fail(self) -> None:
        """From now on nothing can be synced there."""
        self._files.fail(below(self._failing, "fsync"))

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
        told = await self.join(group)
        assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED, told
        assert (await self.join(group, told.member_id)).error_code == ErrorCode.NONE
        return str(told.member_id)

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
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        answer = await self.ask(request, ConsumerGroupHeartbeatResponse, 1)
        code: int = answer.error_code
        return code

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


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    files = FaultyFiles()
    settings = {
        "log_flush_interval_messages": "1",
        "offsets_topic_num_partitions": str(PARTITIONS),
        "group_initial_rebalance_delay_ms": "0",
    }
    directories = [tmp_path / "a", tmp_path / "b"]  # the metadata log lies in the first
    async with broker_in_loop(directories, files, **settings) as served:
        await served.broker.topic_admin.create([NewTopic(name="t")])
        await served.broker.topic_admin.ensure_offsets_topic()
        yield House(served, files, directories[1])
        files.heal()


async def test_a_commit(house: House) -> None:
    house.fail()
    assert await house.commit(house.hurt) == NOT_COORDINATOR
    assert await house.commit(house.well) == ErrorCode.NONE


@pytest.mark.parametrize("version", [2, 5, 9])
async def test_a_join(house: House, version: int) -> None:
    house.fail()
    told = await house.join(house.hurt, version=version)
    assert told.error_code == NOT_COORDINATOR
    assert told.member_id == ""


async def test_a_sync(house: House) -> None:
    member, other = await house.member(house.hurt), await house.member(house.well)
    house.fail()
    assert await house.sync(house.hurt, member) == NOT_COORDINATOR
    assert await house.sync(house.well, other) == ErrorCode.NONE


@pytest.mark.parametrize("version", [2, 5])
async def test_a_leave(house: House, version: int) -> None:
    member = await house.member(house.hurt)
    house.fail()
    assert await house.leave(house.hurt, member, version) == NOT_COORDINATOR


async def test_a_heartbeat_of_a_consumer_group(house: House) -> None:
    house.fail()
    assert await house.beat(house.hurt) == NOT_COORDINATOR
    assert await house.beat(house.well) == ErrorCode.NONE


async def test_a_deletion_of_offsets(house: House) -> None:
    await house.commit(house.hurt)
    house.fail()
    assert await house.delete_offsets(house.hurt) == NOT_COORDINATOR


async def test_a_deletion_of_groups_in_both_directories(house: House) -> None:
    for group in (house.well, house.hurt):
        assert await house.commit(group) == ErrorCode.NONE
    house.fail()
    told = await house.delete(house.hurt, house.well)
    assert told == {house.hurt: NOT_COORDINATOR, house.well: ErrorCode.NONE}


async def test_from_then_on_the_group_has_no_coordinator(house: House) -> None:
    member = await house.member(house.hurt)
    await house.commit(house.well)
    house.fail()
    assert await house.sync(house.hurt, member) == NOT_COORDINATOR
    assert await house.found(house.hurt) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await house.found(house.well) == ErrorCode.NONE
    calls: list[tuple[Any, Any, int, Callable[[Any], int]]] = [
        (
            HeartbeatRequest(group_id=house.hurt, generation_id=1, member_id=member),
            HeartbeatResponse,
            4,
            lambda answer: answer.error_code,
        ),
        (
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=house.hurt, topics=None)]),
            OffsetFetchResponse,
            8,
            lambda answer: answer.groups[0].error_code,
        ),
        (
            DescribeGroupsRequest(groups=[house.hurt]),
            DescribeGroupsResponse,
            5,
            lambda answer: answer.groups[0].error_code,
        ),
        (
            ConsumerGroupDescribeRequest(
                group_ids=[house.hurt], include_authorized_operations=False
            ),
            ConsumerGroupDescribeResponse,
            1,
            lambda answer: answer.groups[0].error_code,
        ),
    ]
    for request, response, version, code in calls:
        assert code(await house.ask(request, response, version)) == NOT_COORDINATOR
    listed = await house.ask(ListGroupsRequest(), ListGroupsResponse, 5)
    assert listed.error_code == ErrorCode.NONE
    assert [group.group_id for group in listed.groups] == [house.well]


async def test_who_is_parked_is_told(house: House) -> None:
    await house.member(house.hurt)
    second = (await house.join(house.hurt)).member_id
    waits = asyncio.create_task(house.join(house.hurt, second))
    await until(lambda: house.parked(house.hurt))
    house.fail()
    third = await house.join(house.hurt)  # asks for an id only: nothing is written
    assert third.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert await house.beat(house.beside_hurt()) == NOT_COORDINATOR
    assert (await waits).error_code == NOT_COORDINATOR
