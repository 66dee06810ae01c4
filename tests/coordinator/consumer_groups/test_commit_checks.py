"""Which members may commit and fetch offsets of a consumer group, and at which epoch."""

import pytest

from odradek.coordinator.any_group.group import Committer
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.records import (
    current_assignment_record,
    subscription_record,
)
from odradek.coordinator.consumer_groups.replay import replay
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_group import ClassicMemberMetadata
from tests.support.consumer_members import IDS

A, B, C = IDS


def group(*, is_classic: bool = False) -> ConsumerGroup:
    """One member at epoch 5: it has A-0 since 3, A-1 since 5, and gives up B-0 of epoch 2."""
    member = ConsumerMember(
        member_id="m",
        member_epoch=5,
        assigned={A: {0: 3, 1: 5}},
        pending_revocation={B: {0: 2}},
        classic=ClassicMemberMetadata() if is_classic else None,
    )
    groups: dict[str, ConsumerGroup] = {}
    for record in (subscription_record("g", member), current_assignment_record("g", member)):
        replay(groups, record.key, record.value)
    return groups["g"]


def committed(
    where: ConsumerGroup,
    epoch: int,
    partition: tuple[bytes, int] = (A, 0),
    *,
    member_id: str = "m",
    version: int = 9,
    transactional: bool = False,
) -> ErrorCode:
    committer = Committer(member_id, None, epoch, version, transactional)
    try:
        check = where.check_commit(committer)
        if check is not None:
            check("topic", *partition)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    ("epoch", "partition", "expected"),
    [
        (5, (A, 0), ErrorCode.NONE),
        (5, (C, 9), ErrorCode.NONE),  # at its own epoch a member may commit any partition
        (6, (A, 0), ErrorCode.STALE_MEMBER_EPOCH),
        (4, (A, 0), ErrorCode.NONE),
        (3, (A, 0), ErrorCode.NONE),
        (2, (A, 0), ErrorCode.STALE_MEMBER_EPOCH),
        (4, (A, 1), ErrorCode.STALE_MEMBER_EPOCH),
        (2, (B, 0), ErrorCode.NONE),
        (1, (B, 0), ErrorCode.STALE_MEMBER_EPOCH),
        (4, (C, 0), ErrorCode.STALE_MEMBER_EPOCH),
        (-1, (A, 0), ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_an_older_epoch_is_accepted_for_partitions_owned_since_then(
    epoch: int, partition: tuple[bytes, int], expected: ErrorCode
) -> None:
    assert committed(group(), epoch, partition) is expected
    is_stale = expected is ErrorCode.STALE_MEMBER_EPOCH
    in_classic_words = ErrorCode.ILLEGAL_GENERATION if is_stale else expected
    assert committed(group(is_classic=True), epoch, partition) is in_classic_words


def test_a_member_of_the_consumer_protocol_commits_in_versions_that_know_its_errors() -> None:
    assert committed(group(), 5, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert committed(group(is_classic=True), 5, version=8) is ErrorCode.NONE
    assert committed(group(), 5, version=3, transactional=True) is ErrorCode.NONE


def test_an_unknown_member_cannot_commit_while_the_group_has_members() -> None:
    assert committed(group(), 5, member_id="n") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(group(), -1, member_id="") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(ConsumerGroup("g"), -1, member_id="") is ErrorCode.NONE
    assert committed(ConsumerGroup("g"), 0, member_id="") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transactional_commit_need_not_name_its_member() -> None:
    assert committed(group(), -1, member_id="", transactional=True) is ErrorCode.NONE
    assert committed(group(), -1, member_id="n", transactional=True) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member_id", "epoch", "expected"),
    [
        (None, -1, ErrorCode.NONE),
        ("m", 5, ErrorCode.NONE),
        ("m", 4, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", 6, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("n", 5, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 5, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_offsets_are_fetched_at_the_members_epoch_or_without_a_member(
    member_id: str | None, epoch: int, expected: ErrorCode
) -> None:
    try:
        group().check_fetch(member_id, epoch)
        found = ErrorCode.NONE
    except ApiError as error:
        found = error.code
    assert found is expected
