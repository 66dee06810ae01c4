"""Topics that are deleted while a share group has state of them."""

import pytest

from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.share_members import ShareMembers


@pytest.fixture
def share() -> ShareMembers:
    """A member that reads a topic."""
    share = ShareMembers(orders=2)
    share.join("m", "orders")
    share.settle()
    assert share.assigned() == {("orders", 0), ("orders", 1)}
    return share


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_topic_that_was_deleted_while_the_group_was_not_served_is_forgotten(
    share: ShareMembers, is_created_again: bool
) -> None:
    share.lose_topic("orders")
    share.restart()
    assert not share.group.state_partitions.topic_ids()
    if is_created_again:
        share.topic("orders", 1)
    share.settle()
    assert share.assigned() == ({("orders", 0)} if is_created_again else set())


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_deleted_topic_that_could_not_be_forgotten_has_no_consequences(
    share: ShareMembers, is_created_again: bool
) -> None:
    share.groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
    share.delete_topic("orders")
    assert share.group.state_partitions.topic_ids()
    if is_created_again:
        share.topic("orders", 1)
    share.settle()
    epoch = share.group.epoch
    share.settle()
    assert share.group.epoch == epoch
    share.leave("m")
    assert share.delete_group() is ErrorCode.NONE
