"""Consumer and classic groups in one partition: offsets, expiry, deletion, group types."""

from collections.abc import Iterable

import pytest

from odradek.coordinator.any_group.group import GroupType
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.records import (
    current_assignment_record,
    epoch_record,
    member_tombstones,
    subscription_record,
    target_epoch_record,
    target_record,
)
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.groups import GROUP, TOPIC, Groups

DAY = 24 * 60 * 60_000
RETENTION = 7 * DAY
NAME, TOPIC_ID = TOPIC


def write(groups: Groups, records: Iterable[JournalRecord]) -> None:
    journal = groups.coordinator.shards.of(GROUP).journal
    journal.commit(Outcome(reply=None, records=tuple(records)), groups.loop.clock().wall_ms)


def consumer_group(groups: Groups, topic: str = NAME) -> ConsumerMember:
    """A group with one member at epoch 2, which has the topic's partition 0."""
    member = ConsumerMember(
        member_id="m",
        member_epoch=2,
        subscribed_topics=frozenset({topic}),
        assigned={TOPIC_ID: {0: 2}},
    )
    write(
        groups,
        [
            subscription_record(GROUP, member),
            epoch_record(GROUP, 2, 0),
            target_record(GROUP, "m", {TOPIC_ID: frozenset({0})}),
            target_epoch_record(GROUP, 2, 1),
            current_assignment_record(GROUP, member),
        ],
    )
    return member


def leave(groups: Groups) -> None:
    write(groups, [*member_tombstones(GROUP, "m"), epoch_record(GROUP, 3, 0)])


def exists(groups: Groups) -> bool:
    return groups.coordinator.shards.of(GROUP).state.groups.get(GROUP) is not None


def deleted(groups: Groups) -> int:
    (result,) = groups.coordinator.admin.delete([GROUP])
    return result.error_code


def test_a_consumer_group_is_listed_and_found_as_what_it_is_after_a_restart_too() -> None:
    groups = Groups()
    consumer_group(groups)
    for each in (groups, groups.restarted()):
        (group,) = each.coordinator.admin.groups()
        assert group.group_type is GroupType.CONSUMER
        assert (group.state_name, group.listed_protocol_type) == ("Stable", "consumer")
        assert each.coordinator.admin.consumer_group(GROUP) is group
        with pytest.raises(ApiError, match="not a classic group") as caught:
            each.coordinator.admin.classic_group(GROUP)
        assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_classic_group_is_not_a_consumer_group() -> None:
    groups = Groups()
    groups.stable_group()
    with pytest.raises(ApiError, match="not a consumer group") as caught:
        groups.coordinator.admin.consumer_group(GROUP)
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_commits_at_its_epoch_and_no_other() -> None:
    groups = Groups()
    consumer_group(groups)
    assert groups.commit(7, member_id="m", generation_id=2) is ErrorCode.NONE
    with pytest.raises(ApiError) as caught:
        groups.commit(8, member_id="m", generation_id=3)
    assert caught.value.code is ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(ApiError) as caught:
        groups.commit(8, member_id="m", generation_id=1)
    assert caught.value.code is ErrorCode.STALE_MEMBER_EPOCH
    assert groups.restarted().committed() == 7


def test_a_simple_group_becomes_the_consumer_group_and_keeps_its_offsets() -> None:
    groups = Groups()
    groups.commit(5)
    consumer_group(groups)
    for each in (groups, groups.restarted()):
        assert each.coordinator.admin.consumer_group(GROUP).members
        assert each.coordinator.shards.of(GROUP).state.find_classic(GROUP) is None
        assert each.committed() == 5


def test_a_group_with_members_is_not_deleted_and_one_without_goes_with_its_offsets() -> None:
    groups = Groups()
    consumer_group(groups)
    groups.commit(7, member_id="m", generation_id=2)
    assert deleted(groups) == ErrorCode.NON_EMPTY_GROUP
    leave(groups)
    assert groups.coordinator.admin.consumer_group(GROUP).state_name == "Empty"
    assert deleted(groups) == ErrorCode.NONE
    for each in (groups, groups.restarted()):
        assert not exists(each)
        assert each.committed() is None
    assert deleted(groups) == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_topics_that_nobody_subscribes_to_expire_counted_from_the_commit() -> None:
    groups = Groups()
    consumer_group(groups)
    other = ("other", b"another id 16 by")
    groups.commit(7, member_id="m", generation_id=2)
    groups.commit(8, member_id="m", generation_id=2, topic=other)
    groups.advance(RETENTION + DAY)
    assert groups.committed() == 7
    assert groups.committed("other") is None
    assert exists(groups)


def test_an_empty_group_is_removed_with_its_last_offset() -> None:
    groups = Groups()
    consumer_group(groups)
    groups.commit(7, member_id="m", generation_id=2)
    leave(groups)
    groups.advance(RETENTION - DAY)
    assert groups.committed() == 7
    groups.advance(2 * DAY)
    assert not exists(groups)
    assert not exists(groups.restarted())


def test_a_classic_group_in_its_place_ends_it() -> None:
    groups = Groups()
    consumer_group(groups)
    state = groups.coordinator.shards.of(GROUP).state
    write(groups, state.consumer_group(GROUP).tombstones())
    assert not exists(groups)
    write(groups, state.create(GROUP, 0).records)
    for each in (groups, groups.restarted()):
        assert isinstance(each.group(), ClassicGroup)
        assert each.coordinator.shards.of(GROUP).state.find_consumer(GROUP) is None
