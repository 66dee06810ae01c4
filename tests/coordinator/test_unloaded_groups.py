"""Groups whose partition is gone: what they waited for does not end later ones of the same name."""

from collections.abc import Callable

import pytest

from odradek.coordinator.classic_groups.group import ClassicState
from odradek.protocol.errors import ErrorCode
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.groups import REBALANCE_MS, SESSION_MS, Groups
from tests.support.heartbeats import Heartbeats
from tests.support.memory_log import MemoryLog


def delete_topic(groups: Groups) -> None:
    groups.coordinator.close()


def lose_partition(groups: Groups) -> None:
    groups.coordinator.partition_offline(0)


def begin_again(groups: Groups) -> None:
    """The topic is deleted, and made again without what was in it."""
    delete_topic(groups)
    groups.logs = [MemoryLog(CONSUMER_OFFSETS_TOPIC)]
    groups.open()


def rebalancing(groups: Groups, rebalance_ms: int) -> str:
    """A group of two waits for the second of them; returns its id."""
    _, absent = groups.stable_group(2, rebalance_ms=rebalance_ms, session_ms=3 * REBALANCE_MS)
    groups.parked_join(rebalance_ms=rebalance_ms, session_ms=3 * REBALANCE_MS)
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    return absent


def test_the_time_to_join_of_a_deleted_group_does_not_end_that_of_a_new_one() -> None:
    groups = Groups()
    rebalancing(groups, REBALANCE_MS)
    groups.advance(REBALANCE_MS - 1)
    begin_again(groups)
    absent = rebalancing(groups, REBALANCE_MS)
    groups.advance(REBALANCE_MS - 1)
    assert absent in groups.group().members


@pytest.mark.parametrize("gone", [delete_topic, lose_partition])
def test_a_coordinator_that_serves_no_group_waits_for_nothing_but_its_own_work(
    gone: Callable[[Groups], None],
) -> None:
    beats = Heartbeats()
    groups = beats.groups
    rebalancing(groups, REBALANCE_MS)
    groups.send_join(group_id="promised")
    groups.join(group_id="syncs")
    beats.topic("topic", 1)
    beats.join("member", "topic", group_id="consumers")
    gone(groups)
    groups.advance(0)  # those who wait are answered
    assert groups.heartbeat("member", 1, group_id="syncs") is ErrorCode.NOT_COORDINATOR
    check_ms = groups.loop.now_ms + groups.settings.offsets_retention_check_interval_ms
    groups.advance(SESSION_MS)
    alarms = [alarm.at_ms for alarm in groups.loop.alarms if not alarm.cancelled]
    assert alarms == ([check_ms] if gone is lose_partition else [])


def test_a_partition_that_is_found_again_gives_its_members_a_whole_session() -> None:
    groups = Groups()
    (member_id,) = groups.stable_group(1)
    groups.advance(SESSION_MS - 1)
    lose_partition(groups)
    groups.coordinator.partition_online(groups.logs[0])  # type: ignore[arg-type] # a MemoryLog serves a journal
    groups.advance(SESSION_MS - 1)
    assert groups.heartbeat(member_id) is ErrorCode.NONE
