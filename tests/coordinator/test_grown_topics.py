"""Internal topics that get more partitions: keys hash to the new ones after the next start.

A group or transaction that exists by then stays in its shard, where requests do not find it any
more. Its deadlines still end there.
"""

from typing import Any

import pytest

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.transactions.completion import LONGEST_RETRY_MS, RETRY_MS
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction_coordinator import (
    InitCall,
    TransactionCoordinator,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.storage.append import EndMarker
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.coordinator.transactions.test_live_transactions_are_the_logs import (
    SETTINGS,
    Loop,
    Markers,
)
from tests.support import groups as classic
from tests.support.groups import GROUP, Groups
from tests.support.heartbeats import SESSION_MS, Heartbeats
from tests.support.memory_log import MemoryLog
from tests.support.streams_members import StreamsMembers

# The topic has one partition, and later 5: the ids that the tests use hash to another one then.
NEW_COUNT = 5
NEW_PARTITION = partition_of(GROUP, NEW_COUNT)


def add_partitions(groups: Groups) -> None:
    groups.logs += [MemoryLog(CONSUMER_OFFSETS_TOPIC, n) for n in range(1, NEW_COUNT)]


def grown(beats: Heartbeats) -> Heartbeats:
    """Another life, after partitions were added."""
    assert NEW_PARTITION != 0
    add_partitions(beats.groups)
    return beats.restarted()


def old_group(groups: Groups) -> Any:
    """The group where it was before the topic has grown."""
    return groups.coordinator.shards.at(0).state.groups.get(GROUP)


# -- while the broker runs -------------------------------------------------------------------------


def load_new_partitions(groups: Groups) -> None:
    add_partitions(groups)
    for log in groups.logs[1:]:
        groups.coordinator.partition_online(log)  # type: ignore[arg-type] # a MemoryLog serves a journal
    groups.advance(0)


def test_added_partitions_are_served_and_groups_stay_where_they_are() -> None:
    groups = Groups()
    (member_id,) = groups.stable_group()
    load_new_partitions(groups)
    assert len(list(groups.coordinator.shards.serving())) == NEW_COUNT
    assert groups.heartbeat(member_id) is ErrorCode.NONE
    assert groups.commit(7, group_id="another") is ErrorCode.NONE
    assert [bool(log.stored) for log in groups.logs] == [True, False, False, False, False]


@pytest.mark.parametrize("partition", [-1, 1, NEW_COUNT])
def test_a_marker_for_a_partition_that_is_not_loaded_is_refused(partition: int) -> None:
    marker = EndMarker(1, 0, is_commit=True, coordinator_epoch=0)
    with pytest.raises(ApiError) as refusal:
        Groups().coordinator.offsets.end_transaction(partition, marker, 0)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR


def test_a_log_that_is_found_later_is_loaded_also_if_others_before_it_are_missing() -> None:
    groups = Groups()
    log = MemoryLog(CONSUMER_OFFSETS_TOPIC, 3)
    groups.coordinator.partition_online(log)  # type: ignore[arg-type] # a MemoryLog serves a journal
    groups.advance(0)
    assert [shard.partition for shard in groups.coordinator.shards.serving()] == [0, 3]


def test_a_log_of_a_topic_that_is_closed_is_not_loaded() -> None:
    groups = Groups()
    groups.coordinator.close()
    groups.coordinator.partition_online(groups.logs[0])  # type: ignore[arg-type] # a MemoryLog serves a journal
    groups.advance(0)
    assert not groups.coordinator.shards.is_open


# -- after the next start --------------------------------------------------------------------------


def test_members_of_a_classic_group_time_out() -> None:
    beats = Heartbeats()
    beats.groups.stable_group(2)
    later = grown(beats)
    assert old_group(later.groups).state_name == "Stable"
    later.advance(classic.SESSION_MS + classic.REBALANCE_MS)
    assert old_group(later.groups).state_name == "Empty"


def test_the_time_to_join_ends_of_a_group_that_exceeds_a_lowered_limit() -> None:
    groups = Groups()
    groups.stable_group(2)
    add_partitions(groups)
    later = groups.restarted(max_size=1)
    assert old_group(later).state_name == "PreparingRebalance"
    later.advance(classic.REBALANCE_MS)
    assert old_group(later).state_name == "Empty"


def test_members_of_a_consumer_group_time_out() -> None:
    beats = Heartbeats()
    beats.topic("a", 2)
    beats.join("m1", "a")
    later = grown(beats)
    later.advance(SESSION_MS)
    assert old_group(later.groups).state_name == "Empty"


def test_a_member_that_does_not_give_up_partitions_is_removed() -> None:
    beats = Heartbeats()
    beats.topic("a", 2)
    beats.join("m1", "a", rebalance_timeout_ms=SESSION_MS // 2)
    beats.join("m2", "a")
    beats.beat("m1", 2)
    later = grown(beats)
    assert old_group(later.groups).state_name == "Reconciling"
    later.advance(SESSION_MS // 2)
    assert list(old_group(later.groups).members) == ["m2"]


def test_a_consumer_group_becomes_a_classic_group_when_its_last_consumer_times_out() -> None:
    beats = Heartbeats()
    beats.topic("topic", 2)
    beats.join("m1", "topic", owned={})
    beats.groups.join(session_ms=2 * SESSION_MS)
    later = grown(beats)
    later.advance(SESSION_MS)
    assert later.groups.coordinator.shards.at(0).state.find_classic(GROUP) is not None
    later.advance(SESSION_MS + classic.REBALANCE_MS)
    assert old_group(later.groups).state_name == "Empty"


def test_members_of_a_streams_group_time_out() -> None:
    members = StreamsMembers()
    members.topic("lines", 2)
    members.join("m1")
    add_partitions(members.groups)
    members.restart()
    members.advance(SESSION_MS)
    assert old_group(members.groups).state_name == "Empty"


def test_members_of_a_share_group_time_out() -> None:
    groups = Groups()
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="m1", member_epoch=0, subscribed_topic_names=["a"]
    )
    answer = groups.coordinator.members.share_group_heartbeat(
        request, Caller("client", "/127.0.0.1", 1)
    )
    assert answer.error_code == ErrorCode.NONE
    add_partitions(groups)
    later = groups.restarted()
    later.advance(SESSION_MS)
    assert old_group(later).state_name == "Empty"


def test_a_member_that_joins_again_where_the_id_hashes_now_has_a_session_of_its_own() -> None:
    beats = Heartbeats()
    beats.topic("a", 2)
    beats.join("m1", "a")
    later = grown(beats)
    later.advance(SESSION_MS - 1)
    later.join("m1", "a")
    later.advance(1)
    assert old_group(later.groups).state_name == "Empty"
    later.advance(SESSION_MS - 2)
    assert list(later.group().members) == ["m1"]
    later.advance(1)
    assert list(later.group().members) == []


# -- transactions ----------------------------------------------------------------------------------


class Transactions:
    """A coordinator of which each life has as many partitions as there are logs."""

    def __init__(self) -> None:
        self.now = Now(1_700_000_000_000, 0)
        self.logs = [MemoryLog(TRANSACTION_STATE_TOPIC)]
        self.markers = Markers()
        self.start()

    def start(self) -> None:
        self.coordinator = TransactionCoordinator(
            SETTINGS,
            loop=Loop(),  # type: ignore[arg-type] # as much of a loop as it needs
            clock=lambda: self.now,
            after_arrivals=lambda callback: callback(),
            markers=self.markers,  # type: ignore[arg-type] # a writer without logs
            new_producer_id=lambda _: 0,
            transaction_version=lambda: 2,
        )
        self.coordinator.open_topic(self.logs, len(self.logs))  # type: ignore[arg-type] # logs in memory

    def begin(self, producer_id: int) -> None:
        producer = self.coordinator.init_producer_id(InitCall("b", 60_000), producer_id)
        self.coordinator.add_partitions("b", producer, {("t", 0)}, client_version=2)

    def end(self) -> None:
        now = self.coordinator.shards.of("b").state.get("b")
        producer = ProducerIdAndEpoch(now.producer_id, now.producer_epoch)
        self.coordinator.end("b", producer, commit=True, client_version=2)

    def grow(self) -> None:
        self.logs += [MemoryLog(TRANSACTION_STATE_TOPIC, n) for n in range(1, NEW_COUNT)]
        assert partition_of("b", NEW_COUNT) != 0

    def wait(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.timer_ms + ms)
        self.coordinator.alarm.expire_due()

    def old_state(self) -> TransactionState:
        found: TransactionState = self.coordinator.shards.at(0).state.get("b").state
        return found

    def ended(self) -> list[int]:
        """The producer ids whose markers are written."""
        return [marker.producer_id for marker, _ in self.markers.written]


def test_a_prepared_transaction_whose_marker_has_to_wait_is_completed() -> None:
    rig = Transactions()
    rig.begin(40)
    rig.markers.offline = True
    rig.end()
    rig.grow()
    rig.start()
    rig.begin(41)  # a transaction of the same id, where the id hashes to now
    rig.end()
    rig.wait(RETRY_MS)
    assert rig.old_state() is TransactionState.PREPARE_COMMIT
    rig.markers.offline = False
    rig.wait(LONGEST_RETRY_MS)
    assert sorted(rig.ended()) == [40, 41]
    assert rig.old_state() is TransactionState.COMPLETE_COMMIT


def test_an_open_transaction_times_out_also_if_its_marker_has_to_wait() -> None:
    rig = Transactions()
    rig.begin(40)
    rig.grow()
    rig.start()
    rig.markers.offline = True
    rig.wait(60_001)
    rig.markers.offline = False
    rig.wait(RETRY_MS)
    assert rig.ended() == [40]
    assert rig.old_state() is TransactionState.COMPLETE_ABORT
