"""Deleting offsets: of groups that no longer consume a topic."""

import pytest

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.groups import GROUP, TOPIC, Groups, subscription

SUBSCRIBED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def delete(groups: Groups, *places: tuple[str, int], group_id: str = GROUP) -> list[ErrorCode]:
    """The error of each place."""
    wanted = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
        )
        for name, partition in places
    ]
    answers = groups.coordinator.offsets.delete(group_id, wanted)
    assert [(one.name, one.partitions[0].partition_index) for one in answers] == list(places)
    return [ErrorCode(one.partitions[0].error_code) for one in answers]


def refused(groups: Groups, group_id: str = GROUP) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        delete(groups, (TOPIC[0], 0), group_id=group_id)
    return caught.value.code


def test_offsets_of_an_empty_group_are_deleted_and_stay_so() -> None:
    groups = Groups()
    groups.commit(1)
    groups.commit(2, partition=1)
    assert delete(groups, (TOPIC[0], 0)) == [ErrorCode.NONE]
    for life in (groups, groups.restarted()):
        assert (life.committed(), life.committed(partition=1)) == (None, 2)


def test_what_was_never_committed_is_deleted_without_a_record() -> None:
    groups = Groups()
    groups.commit(1)
    batches = len(groups.logs[0].stored)
    assert delete(groups, (TOPIC[0], 7), ("other", 0)) == [ErrorCode.NONE] * 2
    assert len(groups.logs[0].stored) == batches


def test_members_keep_the_offsets_of_what_they_subscribe_to() -> None:
    groups = Groups()
    groups.commit(1)
    groups.commit(2, topic=("other", b"other topic's id"))
    groups.stable_group(1, protocols={"range": subscription("topic")})
    assert delete(groups, (TOPIC[0], 0), ("other", 0)) == [SUBSCRIBED, ErrorCode.NONE]
    assert (groups.committed(), groups.committed("other")) == (1, None)


def test_nothing_is_deleted_while_members_joined_in_a_rebalance_may_consume_anything() -> None:
    groups = Groups()
    groups.commit(1)
    groups.stable_group(1, protocols={"range": b"unreadable"})
    assert delete(groups, (TOPIC[0], 0)) == [SUBSCRIBED]


def test_a_group_whose_members_are_no_consumers_is_refused_until_they_have_left() -> None:
    groups = Groups()
    groups.commit(1)
    joined = groups.join(protocol_type="connect")
    groups.sync(joined.member_id, protocol_type="connect")
    assert refused(groups) is ErrorCode.NON_EMPTY_GROUP
    groups.leave(joined.member_id)
    assert delete(groups, (TOPIC[0], 0)) == [ErrorCode.NONE]


def test_a_group_that_does_not_exist_or_has_no_name_is_refused() -> None:
    groups = Groups()
    assert refused(groups) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(groups, "") is ErrorCode.INVALID_GROUP_ID


def test_a_failed_write_is_told_and_nothing_is_deleted() -> None:
    groups = Groups()
    groups.commit(1)
    groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "disk")
    assert refused(groups) is ErrorCode.NOT_COORDINATOR
    assert groups.committed() == 1
