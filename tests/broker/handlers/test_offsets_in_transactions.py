"""Offsets that a transaction commits for a group: pending until its marker, then valid or gone."""

from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
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
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.broker_in_loop import until
from tests.support.transactions import GROUP, TOPIC, Producer, Transactions, transactions_in

NONE = ErrorCode.NONE
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
NO_OFFSET = (-1, NONE)
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def pending(rig: Transactions, *offsets: int, **member: Any) -> Producer:
    """A transaction with these offsets, by partition."""
    one = rig.producer()
    await one.start()
    for partition, offset in enumerate(offsets):
        assert await one.commit_offset(offset, partition, **member) is NONE
    return one


async def commit(rig: Transactions, offset: int, partition: int = 0) -> None:
    """Commit an offset without a transaction."""
    place = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=""
    )
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[place])]
    answer = await rig.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
    assert answer.topics[0].partitions[0].error_code == NONE


def offsets_log(rig: Transactions) -> PartitionLog:
    return rig.broker.log_manager.get(CONSUMER_OFFSETS_TOPIC, 0)


def has_group(rig: Transactions) -> bool:
    return GROUP in rig.broker.coordinators.groups.shards.at(0).state.groups


@pytest.mark.parametrize("commits", [True, False])
async def test_only_pending_partitions_are_unstable_until_the_end(
    rig: Transactions, commits: bool
) -> None:
    await commit(rig, 5, 0)
    await commit(rig, 6, 2)
    one = await pending(rig, 50, 51)
    assert await rig.committed(0, 1, 2) == [(5, 0), NO_OFFSET, (6, 0)]
    assert await rig.committed(0, 1, 2, stable=True) == [UNSTABLE, UNSTABLE, (6, 0)]
    assert await one.end(commit=commits) is NONE
    after = [(50, 0), (51, 0), (6, 0)] if commits else [(5, 0), NO_OFFSET, (6, 0)]
    assert await rig.committed(0, 1, 2) == after
    assert await rig.committed(0, 1, 2, stable=True) == after


async def test_all_offsets_of_a_group_leave_out_a_topic_that_is_only_pending(
    rig: Transactions,
) -> None:
    one = await pending(rig, 50)
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)], require_stable=True
    )
    assert (await rig.ask(request, 8)).groups[0].topics == []
    await one.end()
    (topic,) = (await rig.ask(request, 8)).groups[0].topics
    assert [each.committed_offset for each in topic.partitions] == [50]


async def join(rig: Transactions) -> tuple[str, int]:
    """The only member of a consumer group, and its epoch."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    answer = await rig.ask(request, 1)
    assert answer.error_code == NONE, answer
    return answer.member_id, answer.member_epoch


async def test_a_consumer_group_takes_offsets_of_its_members(rig: Transactions) -> None:
    member, epoch = await join(rig)
    fields = {"member_id": member, "generation_id_or_member_epoch": epoch}
    one = await pending(rig, 50, **fields)
    stale = {**fields, "generation_id_or_member_epoch": epoch + 1}
    assert await one.commit_offset(60, **stale) is ErrorCode.ILLEGAL_GENERATION
    unknown = {**fields, "member_id": "unknown"}
    assert await one.commit_offset(60, **unknown) is ErrorCode.UNKNOWN_MEMBER_ID
    assert await rig.committed(0, stable=True) == [UNSTABLE]
    await one.end()
    assert await rig.committed(0, stable=True) == [(50, 0)]


@pytest.mark.parametrize("commits", [True, False])
async def test_pending_offsets_survive_a_restart(tmp_path: Path, commits: bool) -> None:
    async with transactions_in(tmp_path) as rig:
        await join(rig)
        old = await pending(rig, 50)
    async with transactions_in(tmp_path) as rig:
        assert await rig.committed(0, stable=True) == [UNSTABLE]
        one = rig.producer()
        one.current = old.current
        assert await one.commit_offset(51) is NONE
        assert await one.end(commit=commits) is NONE
        after = [(51, 0) if commits else NO_OFFSET]
        assert await rig.committed(0, stable=True) == after
    async with transactions_in(tmp_path) as rig:
        assert await rig.committed(0, stable=True) == after


async def test_a_transaction_ends_when_the_groups_partition_is_loaded(rig: Transactions) -> None:
    one = await pending(rig, 50)
    log = offsets_log(rig)
    rig.broker.coordinators.groups.partition_offline(0)
    assert await one.end() is NONE
    assert rig.known("shop").state.client_name == "PrepareCommit"
    rig.wait(100)
    end_offset = log.log_end_offset
    rig.broker.coordinators.groups.partition_online(log)
    rig.wait(100)
    assert log.log_end_offset == end_offset  # the groups are loading
    assert await one.commit_offset(60) is LOADING
    await until(lambda: list(rig.broker.coordinators.groups.shards.serving()))
    assert await rig.committed(0, stable=True) == [UNSTABLE]
    rig.wait(100)
    assert rig.known("shop").state.client_name == "CompleteCommit"
    assert await rig.committed(0, stable=True) == [(50, 0)]
    assert log.last_stable_offset == log.log_end_offset


async def test_deleted_offsets_do_not_come_back_with_the_commit(rig: Transactions) -> None:
    one = await pending(rig, 50, 51)
    places = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 2)]
    topics = [OffsetDeleteRequestTopic(name=TOPIC, partitions=places)]
    before = offsets_log(rig).log_end_offset
    answer = await rig.ask(OffsetDeleteRequest(group_id=GROUP, topics=topics), 0)
    codes = [each.error_code for each in answer.topics[0].partitions]
    assert codes == [NONE, NONE]
    assert offsets_log(rig).log_end_offset == before + 1  # partition 2 has no offset
    assert has_group(rig)
    assert await rig.committed(0, 1, stable=True) == [NO_OFFSET, UNSTABLE]
    await one.end()
    assert await rig.committed(0, 1, stable=True) == [NO_OFFSET, (51, 0)]


async def test_a_deleted_group_does_not_come_back_with_the_commit(tmp_path: Path) -> None:
    async with transactions_in(tmp_path) as rig:
        await commit(rig, 5)
        one = await pending(rig, 50, 51)
        answer = await rig.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)
        assert answer.results[0].error_code == NONE
        assert not has_group(rig)
        await one.end()
        assert await rig.committed(0, 1, stable=True) == [NO_OFFSET, NO_OFFSET]
    async with transactions_in(tmp_path) as rig:
        assert not has_group(rig)
        assert await rig.committed(0, 1, stable=True) == [NO_OFFSET, NO_OFFSET]


async def test_offsets_after_the_deletion_of_the_group_belong_to_a_new_one(
    rig: Transactions,
) -> None:
    one = await pending(rig, 50, 51)
    await rig.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert await one.commit_offset(60, 1) is NONE
    await one.end()
    assert await rig.committed(0, 1, stable=True) == [NO_OFFSET, (60, 0)]
    assert has_group(rig)


async def test_offsets_in_a_deleted_topic_are_gone(rig: Transactions) -> None:
    one = await pending(rig, 50)
    await rig.broker.admin.topics.delete([TopicRef(TOPIC)])
    await one.end()
    assert rig.known("shop").state.client_name == "CompleteCommit"
    assert await rig.committed(0) == [NO_OFFSET]


async def test_adding_offsets_makes_the_offsets_topic_before_it_answers(rig: Transactions) -> None:
    await rig.broker.admin.topics.delete([TopicRef(CONSUMER_OFFSETS_TOPIC)])
    one = rig.producer(is_v2=False)
    await one.start()
    assert await one.add_offsets() is NONE
    assert await one.commit_offset(5) is NONE
    assert await one.end() is NONE
    assert await rig.committed(0) == [(5, 0)]
